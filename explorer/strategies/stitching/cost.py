"""What one kernel of a stitching costs, term by term."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .rates import GRID_US, JOIN_US, LAUNCH_US

TERMS: tuple[str, ...] = ("memory", "spread", "arithmetic", "launch", "latency", "barrier", "exchange", "recompute", "cache")
"""What the microseconds of a kernel are for."""


@dataclass(frozen=True)
class KernelCost:
    """One kernel (and the one that joins its parts, if it has some).

    Attributes
    ----------
    values : tuple of str
    moved_bytes : int
        To and from global memory.
    threads, registers, shared_bytes : int
        Of a block, of a thread, of a block.
    occupancy : float
        0 to 1.
    launches : int
        0 for a phase of the launch before it.
    flat : bool
        Whether it is made element by element.
    parts : bool
        Whether a reduction is made in parts.
    reads : int
        How often the kernel reads what it reads most often: 1 where rows are kept between its passes.
    terms : mapping of str to float
        Microseconds by :data:`TERMS`.
    """

    values: tuple[str, ...]
    moved_bytes: int
    threads: int
    registers: int
    shared_bytes: int
    occupancy: float
    launches: int
    flat: bool
    parts: bool
    reads: int
    terms: Mapping[str, float] = field(default_factory=dict)

    def phase(self, behind: bool, whole: bool) -> KernelCost:
        """The same in one launch with others: behind a barrier of the grid, its parts joined behind another one."""
        barriers = behind + (whole and self.parts)
        saved = LAUNCH_US * behind + JOIN_US * (whole and self.parts)
        terms = {**self.terms, "launch": self.terms["launch"] - saved, "barrier": GRID_US * barriers}
        return replace(self, launches=self.launches - barriers, terms=terms)
