"""One `.cu` file: the kernels, a host program that checks and times them, and the reference it checks against."""
