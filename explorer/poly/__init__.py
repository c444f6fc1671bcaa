"""Exact analysis with isl: dependences, the four questions of legality, barriers, counts.  The only user of islpy."""
