"""The program as written, as float64 C: what runs are compared with, within which bounds, and of which slices."""
