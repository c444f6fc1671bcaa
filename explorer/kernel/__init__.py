"""From a plan to CUDA C++: a small IR, the passes over it, and its text."""
