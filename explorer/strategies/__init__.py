"""Strategies: sequences of moves chosen by rules.  Each returns a schedule whose steps a person can replay and change."""

from .default import default

__all__ = ["default"]
