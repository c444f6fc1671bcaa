"""Strategies: sequences of moves chosen by rules.  Each returns a schedule whose steps a person can replay and change."""
