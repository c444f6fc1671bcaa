"""Strategies: sequences of moves chosen by rules.  Each returns a schedule whose steps a person can replay and change."""

from .auto import auto
from .default import default

__all__ = ["auto", "default"]
