"""From a plan to CUDA text."""
