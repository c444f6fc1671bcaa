"""Loops whose iterations never meet: a few of them can be computed without the others.

A *slice group* picks one loop over each of a set of statements and one dimension of each array they write, such that
every access of such an array has exactly the loop's variable in that dimension.  Then an instance with loop value
``v`` only touches the cells with index ``v`` there, so running the chosen values of ``v`` alone computes exactly those
cells, as the whole program would.  Inputs are only read, so any index may be used on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ...ir.expr import var
from ...ir.memo import per_program
from ...ir.program import Program, Statement
from ...ir.scalar import flops
from ...ir.tree import Loop, leaves

_PASS_OVERHEAD = 1
"""Operations counted for a statement instance beside its arithmetic and its accesses: the loop and the store."""


@dataclass(frozen=True)
class Slice:
    """One slice group.

    Attributes
    ----------
    loops : tuple of str
        The loops that run only the chosen values.
    positions : tuple of (str, int)
        The dimension of each written array that these loops index.
    start, extent : int
        Values of the loops: ``start … start + extent - 1`` (the hull over the loops).
    """

    loops: tuple[str, ...]
    positions: tuple[tuple[str, int], ...]
    start: int
    extent: int


@per_program(1)
def slices(program: Program) -> tuple[Slice, ...]:
    """All slice groups with disjoint loops, found from the dimensions of the outputs."""
    found: list[Slice] = []
    taken: set[str] = set()
    for array in program.parameters:
        if array.role == "in":
            continue
        for position in range(len(array.shape)):
            group = _grow(program, array.name, position)
            if group and not taken & set(group.loops):
                found.append(group)
                taken |= set(group.loops)
    return tuple(found)


def _grow(program: Program, array: str, position: int) -> Slice | None:
    """The group that has `array` at `position`, by following accesses both ways until nothing changes; None if there is none."""
    placed = [(program.statement_of[leaf.statement], above) for leaf, above in leaves(program.body)]
    written = {s.target.array for s in program.statements}
    positions, loop_of = {array: position}, dict[str, str]()
    changed = True
    while changed:
        changed = False
        for statement, above in placed:
            if statement.name not in loop_of:
                if (loop := _forced(statement, above, positions, set(loop_of.values()))) is None:
                    continue
                if not loop:
                    return None
                loop_of[statement.name], changed = loop, True
            loop = loop_of[statement.name]
            for name in {a.array for a in statement.accesses} & written:
                candidates = _indexed_by(statement, name, loop)
                if name not in positions and candidates:
                    positions[name], changed = candidates[0], True
                if positions.get(name) not in candidates:
                    return None
    chosen = [loop for _, above in placed for loop in above if loop.id in loop_of.values()]
    if not chosen:
        return None
    loops = {c.id for c in chosen}
    if any(len([loop for loop in above if loop.id in loops]) > 1 for _, above in placed):
        return None
    start, stop = min(c.start for c in chosen), max(c.start + c.extent for c in chosen)
    return Slice(tuple(dict.fromkeys(c.id for c in chosen)), tuple(sorted(positions.items())), start, stop - start)


def _forced(statement: Statement, above: tuple[Loop, ...], positions: dict[str, int], loops: set[str]) -> str | None:
    """The loop that what is known so far gives the statement; "" if none can be, None if nothing is known."""
    under = [loop.id for loop in above if loop.id in loops]
    if under:
        return under[0]
    names = [a.array for a in statement.accesses if a.array in positions]
    if not names:
        return None
    fitting = [loop.id for loop in above if positions[names[0]] in _indexed_by(statement, names[0], loop.id)]
    return fitting[0] if fitting else ""


def _indexed_by(statement: Statement, array: str, loop: str) -> list[int]:
    """The dimensions of `array` that every access of the statement indexes with exactly this loop's variable."""
    uses = [a.index for a in statement.accesses if a.array == array]
    return [p for p in range(len(uses[0])) if all(index[p] == var(loop) for index in uses)] if uses and uses[0] else []


def cost(program: Program, counts: dict[str, int] | None = None) -> int:
    """Operations that the loops take as written, boxes counted in full; `counts` gives other extents to some loops."""
    total = 0
    for leaf, above in leaves(program.body):
        statement = program.statement_of[leaf.statement]
        each = flops(statement.value) + len(statement.accesses) + bool(statement.update) + _PASS_OVERHEAD
        total += each * prod((counts or {}).get(loop.id, loop.extent) for loop in above)
    return total


def sample(program: Program, budget: int, seed: int = 0) -> tuple[np.ndarray, ...] | None:
    """Values for each slice group such that the loops take at most about `budget` operations.

    Parameters
    ----------
    program : Program
    budget : int
        Operations, as :func:`cost` counts them.
    seed : int
        Of the choice (:func:`choose`).

    Returns
    -------
    tuple of ndarray of int64, or None
        Sorted values, one array per group of :func:`slices`; every value where all fit. None if the program has no
        groups or even two values of each are too many.
    """
    groups = slices(program)
    counts = {g: g.extent for g in groups}

    def total() -> int:
        return cost(program, {loop: counts[g] for g in groups for loop in g.loops})

    while total() > budget:
        shrinkable = [g for g in groups if counts[g] > 2]
        if not shrinkable:
            return None
        largest = max(shrinkable, key=lambda g: counts[g])
        counts[largest] = max(counts[largest] // 2, 2)
    return tuple(choose(g.start, g.extent, counts[g], seed + n) for n, g in enumerate(groups))


def choose(start: int, extent: int, count: int, seed: int) -> np.ndarray:
    """`count` different values of ``start … start + extent - 1``, sorted: one from each of `count` equal parts, and the ends.

    The exported file does the same arithmetic in C, so both check the same cells.
    """
    k = np.arange(count, dtype=np.int64)
    low, high = k * extent // count, (k + 1) * extent // count
    values = low + (splitmix(k, seed) % np.maximum(high - low, 1).astype(np.uint64)).astype(np.int64)
    if count:
        values[0], values[-1] = 0, max(extent - 1, 0)
    return values + start


def splitmix(index: np.ndarray, seed: int) -> np.ndarray:
    """SplitMix64 at a counter (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014)."""
    z = (index.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0xD1B54A32D192ED03 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def cells(program: Program, array: str, chosen: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The indices of `array`, per dimension, that a sliced run computes (to be crossed, as ``numpy.ix_`` does)."""
    shape = program.array_of[array].shape
    indices = [np.arange(extent, dtype=np.int64) for extent in shape]
    for group, values in zip(slices(program), chosen, strict=True):
        for name, position in group.positions:
            if name == array:
                indices[position] = values[(values >= 0) & (values < shape[position])]
    return tuple(indices)
