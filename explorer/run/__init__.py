"""Running: text to machine code on any machine, kernels on the GPU or emulated on the CPU, checked and timed."""
