"""The protocol's types for loops as a statement sees them: parallel or reduced, and the strides of its accesses."""

from __future__ import annotations

from typing import TypedDict


class WalkAccess(TypedDict):
    """One access of a statement: elements from one iteration of a loop to the next (None: not always the same).

    `indices` of loops that are several indices in one: (elements from one to the next, how many) of each, the innermost first.

    `marks` of loops: ``coalesced``, ``same`` or ``apart`` for neighbouring threads of a warp, ``contiguous`` for other loops.
    """

    text: str
    array: str
    space: str
    writes: bool
    strides: dict[str, int | None]
    indices: dict[str, list[tuple[int, int]]]
    marks: dict[str, str]


class Walk(TypedDict):
    """What the loops around a statement are to it: ``parallel``, ``reduced`` or ``ordered``; `notes` say what would help."""

    loops: dict[str, str]
    accesses: list[WalkAccess]
    notes: list[str]
