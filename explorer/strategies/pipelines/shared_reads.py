"""What a thread reads of shared memory in a step: elements that its unrolled loops name, each once, neighbours together.

Statements that read the same elements, such as the two halves of a tile in serpentine order, load them once.  Neighbours are
taken to begin at multiples of an access, as the layouts that strategies make do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Loop
from ...poly.sites import Site
from ...poly.traffic import WORD_BYTES, AccessFacts
from .rates import shared_cycles

WIDEST = 16
"""Bytes of a thread's widest access."""
Offsets = frozenset[tuple[int, ...]]
"""Constant offsets of the cells that the unrolled iterations of a thread read."""


@dataclass(frozen=True)
class Read:
    """A site and the loops around it within a step, with what is known of its access."""

    site: Site
    inside: tuple[Loop, ...]
    known: AccessFacts | None


def shared_loads(plan: Plan, reads: Iterable[Read]) -> Iterator[tuple[float, float]]:
    """(loads, cycles) of a warp in a step, for each set of cells that its sites read."""
    groups = dict[object, list[tuple[Read, Offsets]]]()
    for read in reads:
        offsets, base = _offsets(read)
        again = tuple(x.id for x in _again(read))
        groups.setdefault((read.site.storage, base, again) if offsets else read, []).append((read, offsets))
    for group in groups.values():
        read, cells = group[0][0], frozenset[tuple[int, ...]]().union(*(offsets for _, offsets in group))
        item = (plan.buffer_of if read.site.leaf.view(read.site.slot) else plan.array_of)[read.site.storage].dtype.bytes
        turns = prod(x.extent for x in _again(read))
        if not cells:  # an index that is no sum over the unrolled loops
            turns *= prod(x.extent for x in _written_out(read))
            yield turns, turns * _conflicts(read)
            continue
        most = max(1, WIDEST // max(item, WORD_BYTES))
        loads, together = _loads(cells, most)
        different = prod(x.extent for x in read.inside if x.is_place and x.id in _moving(read.site))
        yield turns * loads, turns * loads * (shared_cycles(different) if together > 1 else _conflicts(read))


def _conflicts(read: Read) -> float:
    return max(1.0, read.known.conflicts if read.known else 1.0)


def _moving(site: Site) -> set[str]:
    return {v for e in site.cell if e is not None for v in e.variables()}


def _written_out(read: Read) -> list[Loop]:
    """The unrolled, vector and one-iteration loops that the cell depends on; along others it stays in registers."""
    moving = _moving(read.site)
    return [x for x in read.inside if (x.role in ("unroll", "vector") or x.extent == 1) and not x.is_place and x.id in moving]


def _again(read: Read) -> list[Loop]:
    """The loops in each of whose iterations it is read again: sequential ones, down to the innermost that the cell depends on."""
    loops = [x for x in read.inside if not x.is_place and x.role not in ("unroll", "vector") and x.extent > 1]
    moving = _moving(read.site)
    last = max((n for n, x in enumerate(loops) if x.id in moving), default=-1)
    return loops[: last + 1]


def _offsets(read: Read) -> tuple[Offsets, tuple[Expr, ...]]:
    """Of the cells that the unrolled loops name, and what these have in common; none where an index is no sum over the loops."""
    if not read.site.cell:
        return frozenset(), ()
    loops = _written_out(read)
    names, base, parts = {x.id for x in loops}, list[Expr](), list[tuple[int, dict[str, int]]]()
    for e in read.site.cell:
        if e is None or any(not isinstance(atom, str) and names & Expr(((atom, 1),)).variables() for atom, _ in e.terms):
            return frozenset(), ()
        own = {str(atom): k for atom, k in e.terms if atom in names}
        base.append(Expr(tuple((atom, k) for atom, k in e.terms if atom not in names)))
        parts.append((e.const, own))
    found = set[tuple[int, ...]]()
    for values in product(*(range(x.start, x.start + x.extent) for x in loops)):
        at = dict(zip((x.id for x in loops), values, strict=True))
        found.add(tuple(c + sum(k * at[name] for name, k in own.items()) for c, own in parts))
    return frozenset(found), tuple(base)


def _loads(cells: Offsets, most: int) -> tuple[int, int]:
    """How many accesses of so many neighbours, or fewer, read cells; and how many the widest reads."""
    found = Counter((*row, last // most) for *row, last in cells)
    return len(found), max(found.values())
