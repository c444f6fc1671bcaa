"""Strategies: sequences of moves chosen by rules.  Each returns a schedule whose steps a person can replay and change."""

from .auto import auto
from .default import default
from .pipelined import pipelined
from .stitch import Edge, Option, Stitching, edges, stitch, stitching

__all__ = ["Edge", "Option", "Stitching", "auto", "default", "edges", "pipelined", "stitch", "stitching"]
