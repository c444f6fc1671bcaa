"""The CPU device: the emitted text compiled by the system's C++ compiler against a small CUDA runtime (``simt/``)."""
