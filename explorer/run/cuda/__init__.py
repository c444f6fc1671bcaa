"""The CUDA device: kernels run by CuPy in a worker process."""
