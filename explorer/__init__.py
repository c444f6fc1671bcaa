"""See and shape how a loop nest becomes a fast GPU kernel."""
