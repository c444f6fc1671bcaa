"""Early loads for rows: values that the end of a row needs are loaded at its start, which overlaps their latency.

Sums, and the barriers of their blocks, stand between the loads of a row and what is done with them.  What is loaded behind them
costs each block another latency; two, where it says which element to load next, as a target's number does.  A compiler loads
ahead by itself what every thread needs, but not what stands under a condition, as at the end of an odd row, or where the last
block has fewer rows than the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...ir.program import Indirect, Statement
from ...ir.scalar import Read, walk
from ...ir.tree import Loop, Node
from .._steps import Builder, leaves_of
from ..ahead import WORDS, given, staged
from .form import moving
from .model import RowSpread, RowWork


@dataclass(frozen=True)
class Late:
    """An array that is read behind the first loop over a row, and not in it or before.

    Attributes
    ----------
    array : str
    along : bool
        Whether along the row, and not one element of it for each row.
    points : bool
        Whether it says which element of another array is read.
    """

    array: str
    along: bool
    points: bool


def ask_ahead(b: Builder, scope: str, kernel: str, spread: RowSpread, work: RowWork, room: int) -> None:
    """Stage what a compiler would load late in registers, at the start of the row.

    Parameters
    ----------
    b : Builder
    scope : str
        The innermost loop around a row.
    kernel : str
    spread : RowSpread
    work : RowWork
    room : int
        Words that a thread has left for it.
    """
    room, odd = min(room, WORDS), work.extent % (spread.threads * spread.vector) > 0
    conditional = odd or work.count % spread.side(work) > 0
    for late in _late(b, scope, kernel):
        if late.points or (late.along and conditional):
            room = staged(b, late.array, scope, (spread.vector, 1) if late.along and spread.vector > 1 else (1,), room)


def _late(b: Builder, scope: str, kernel: str) -> list[Late]:
    """What is read late, those first that point to others."""
    arrays, found, behind = given(b, kernel), dict[str, Late](), False
    for node in b.plan.loops[scope].body:
        for array, along, points in _reads(b, node):
            if not behind:
                arrays.discard(array)
            elif array in arrays:
                known = found.get(array, Late(array, False, False))
                found[array] = Late(array, known.along or along, known.points or points)
        behind = behind or (isinstance(node, Loop) and _sums(b, node))
    return sorted(found.values(), key=lambda late: not late.points)


def _sums(b: Builder, node: Node) -> bool:
    """Whether a node reduces."""
    return any(b.plan.statement_of[leaf.statement].update for leaf in leaves_of(node))


def _reads(b: Builder, node: Node) -> Iterator[tuple[str, bool, bool]]:
    """Arrays that a node reads at places known before, whether along its loops, and whether their values are places of others."""
    for leaf in leaves_of(node):
        statement = b.plan.statement_of[leaf.statement]
        pointers = set(_pointers(statement))
        for slot, access in enumerate(statement.reads):
            if not leaf.view(slot) and access.affine:
                yield access.array, bool(moving(leaf, access.index) & _inside(node)), slot in pointers


def _pointers(s: Statement) -> Iterator[int]:
    """The reads whose values are indices of others."""
    for access in s.reads:
        for e in access.index:
            if isinstance(e, Indirect):
                yield from (n.slot for n in walk(e.value) if isinstance(n, Read))


def _inside(node: Node) -> set[str]:
    """The loops at and below a node."""
    if not isinstance(node, Loop):
        return set()
    return {node.id}.union(*(_inside(child) for child in node.body))
