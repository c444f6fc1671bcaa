"""CUDA text to machine code with NVRTC, on any machine: the compiler in a process of its own, and what it prints."""
