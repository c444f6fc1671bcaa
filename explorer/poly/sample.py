"""Some instances of a statement, each with where and when it runs: exact for those asked about, whatever the size.

Nothing is enumerated beyond the points given: the loop values of an instance follow from :attr:`Leaf.when`, its place
from the roles of those loops, its time from their values and the positions in the tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.expr import Expr
from ..ir.plan import Plan
from ..ir.program import Statement
from ..ir.tree import PLACE_ROLES, WARP_SIZE, Kernel, Leaf, Loop, ranges
from .isl import alone, smallest
from .relations import bounds as single_bounds
from .relations import domain, position_path

PLACE = PLACE_ROLES[:6]
"""Columns of a place: block x, y, z; thread x, y, z (warps and lanes are folded into thread x)."""
EVERYWHERE = -1
"""A coordinate that no loop binds, of a leaf that every block or thread runs for its own storage."""


@dataclass(frozen=True, eq=False)
class Instances:
    """Instances of one statement under a plan.

    Attributes
    ----------
    points : ndarray of int, (n, dimensions)
        Only those in the statement's domain that some leaf runs.
    leaf : ndarray of int, (n,)
        Index into `leaves`.
    leaves : tuple of str
        Ids of the statement's leaves.
    place : ndarray of int, (n, 6)
        Columns as in :data:`PLACE`; :data:`EVERYWHERE` where the instance runs at every coordinate.
    thread : ndarray of int, (n,)
        Number of the thread in its block (x fastest); :data:`EVERYWHERE` if every thread runs it.
    step : ndarray of int, (n,)
        Rank of its time among the times that occur here, from 0: what has a smaller rank runs earlier in its block
        (or in an earlier launch); equal ranks run at once, in different threads or blocks.
    """

    points: np.ndarray
    leaf: np.ndarray
    leaves: tuple[str, ...]
    place: np.ndarray
    thread: np.ndarray
    step: np.ndarray

    @property
    def steps(self) -> int:
        """How many different times occur."""
        return int(self.step.max()) + 1 if len(self.step) else 0


def locate(plan: Plan, statement: str, points: np.ndarray) -> Instances:
    """Where and when instances run.

    Parameters
    ----------
    plan : Plan
    statement : str
    points : ndarray of int, (n, dimensions)
        Values of the statement's dimensions, in its order; those outside the domain are left out.
    """
    s = plan.statement_of[statement]
    points = points[_holds(s, points)]
    values = dict(zip(s.dims, points.T, strict=True))
    own = [(leaf, above, kernel) for leaf, above, kernel in plan.leaves if leaf.statement == statement]
    index = np.full(len(points), -1)
    place = np.zeros((len(points), 6), np.int64)
    times = np.zeros((len(points), 2 + 2 * max((len(above) for _, above, _ in own), default=0)), np.int64)
    for number, (leaf, above, kernel) in enumerate(own):
        loops = {name: _broad(e, values, len(points)) for name, e in leaf.when}
        runs = index < 0
        for x in above:
            runs = runs & (loops[x.id] >= x.start) & (loops[x.id] < x.start + x.extent)
        index[runs] = number
        place[runs] = _place(plan, leaf, above, kernel, loops, len(points))[runs]
        time = _time(plan, leaf, above, kernel, loops, len(points))
        times[runs, : time.shape[1]] = time[runs]
    kept = index >= 0
    points, index, place, times = points[kept], index[kept], place[kept], times[kept]
    step = np.unique(times, axis=0, return_inverse=True)[1].reshape(-1) if len(times) else np.zeros(0, np.int64)
    return Instances(points, index, tuple(leaf.id for leaf, _, _ in own), place, _number(plan, own, index, place), step)


def bounds(plan: Plan, statement: str) -> dict[str, tuple[int, int]]:
    """Inclusive interval of each dimension of a statement (its domain's bounding box, or a little more)."""
    s = plan.statement_of[statement]
    box: dict[str, tuple[int, int]] = {}
    for leaf, above, _ in plan.leaves:
        if leaf.statement != statement:
            continue
        scope = ranges(above)
        for dim, e in leaf.at:
            low, high = e.interval(scope)
            before = box.get(dim, (low, high))
            box[dim] = (min(before[0], low), max(before[1], high))
    for dim, (low, high) in single_bounds(s.domain).items():
        if dim in box:
            box[dim] = (max(box[dim][0], low), min(box[dim][1], high))
    return box


@alone
def first_point(plan: Plan, statement: str) -> tuple[int, ...] | None:
    """The lexicographically smallest instance, or None if there is none."""
    found = domain(plan.statement_of[statement])
    return None if found.is_empty() else smallest(found)


def grid(s: Statement, axes: Mapping[str, Sequence[int]], at: Mapping[str, int]) -> np.ndarray:
    """All combinations of the values on some dimensions, the others fixed: (n, dimensions)."""
    columns = [np.asarray(axes[d]) if d in axes else np.asarray([at[d]]) for d in s.dims]
    if not columns:
        return np.zeros((1, 0), np.int64)
    return np.stack([m.reshape(-1) for m in np.meshgrid(*columns, indexing="ij")], axis=1).astype(np.int64)


@dataclass(frozen=True)
class Link:
    """Two instances (rows of the points) that touch one element, the first earlier in the program, at least one writing."""

    source: int
    sink: int
    kind: str
    array: str


def links(plan: Plan, statement: str, points: np.ndarray, most: int = 400) -> tuple[list[Link], int]:
    """Direct dependences of a program's statement on itself among some instances, and how many there are in all.

    From every write to the reads up to the next write among these points, from those reads to that write, and from
    write to write where nothing reads between; updates of one reduction are chained.  All other dependences among these
    points follow by transitivity; instances that are not among the points are passed over.
    """
    s = plan.statement_of[statement]
    if s.origin != "program" or not len(points):
        return [], 0
    order = np.lexsort(points.T[::-1]) if points.shape[1] else np.zeros(1, np.int64)
    values = dict(zip(s.dims, points.T, strict=True))
    slots = [i for i, use in enumerate(s.accesses) if use.array == s.target.array and use.affine]
    cells = {i: np.stack([_broad(e, values, len(points)) for e in s.accesses[i].index if isinstance(e, Expr)] or
                         [np.zeros(len(points), np.int64)], axis=1) for i in slots}
    happens = _holds_inside(s, points)
    readers: dict[tuple[int, ...], list[int]] = {}
    writer: dict[tuple[int, ...], int] = {}
    found: dict[tuple[int, int], str] = {}
    for row in map(int, order):
        for slot in slots[:-1]:
            cell = tuple(cells[slot][row].tolist())
            if happens[row]:
                if cell in writer:
                    found.setdefault((writer[cell], row), "flow")
                readers.setdefault(cell, []).append(row)
        cell = tuple(cells[slots[-1]][row].tolist())
        between = [reader for reader in readers.pop(cell, ()) if reader != row]
        for reader in between:
            found.setdefault((reader, row), "anti")
        if cell in writer and not between:
            found.setdefault((writer[cell], row), "reduction" if s.update else "output")
        writer[cell] = row
    chosen = [Link(a, b, kind, s.target.array) for (a, b), kind in list(found.items())[:most]]
    return chosen, len(found)


def _holds(s: Statement, points: np.ndarray) -> np.ndarray:
    return _all(s.domain, s, points)


def _holds_inside(s: Statement, points: np.ndarray) -> np.ndarray:
    return _all(s.inside, s, points)


def _all(constraints: Sequence, s: Statement, points: np.ndarray) -> np.ndarray:
    values = dict(zip(s.dims, points.T, strict=True))
    out = np.ones(len(points), bool)
    for c in constraints:
        value = c.expr.evaluate(values)
        out &= np.asarray(value == 0 if c.equality else value >= 0)
    return out


def _broad(e: Expr, values: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    return np.broadcast_to(np.asarray(e.evaluate(values), np.int64), (count,))


def _place(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], kernel: Kernel, loops: Mapping[str, np.ndarray],
           count: int) -> np.ndarray:
    """Coordinates from the loops' roles; an unbound one is 0, or everywhere if each place has its own storage."""
    out = np.zeros((count, 6), np.int64)
    bound = {x.role for x in above}
    for x in above:
        if x.role in PLACE:
            out[:, PLACE.index(x.role)] = loops[x.id]
        elif x.role in ("warp", "lane"):
            out[:, 3] += loops[x.id] * (WARP_SIZE if x.role == "warp" else 1)
    view = leaf.view(len(plan.statement_of[leaf.statement].reads))
    space = plan.buffer_of[view.buffer].space if view else "global"
    own = {"register": 6, "shared": 3, "global": 0}[space]
    launch = plan.extents[kernel.id]
    for axis in range(own):
        warps = axis == 3 and bound & {"warp", "lane"}
        if launch[axis] > 1 and PLACE[axis] not in bound and not warps:
            out[:, axis] = EVERYWHERE
    return out


def _time(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], kernel: Kernel, loops: Mapping[str, np.ndarray],
          count: int) -> np.ndarray:
    """Launch, then position and value at each level; place loops take no time."""
    path = position_path(kernel.body, leaf.id)
    assert path is not None
    columns = [np.full(count, plan.kernels.index(kernel))]
    for position, x in zip(path, above, strict=False):
        columns += [np.full(count, position), np.zeros(count, np.int64) if x.is_place else loops[x.id]]
    return np.stack([*columns, np.full(count, path[-1])], axis=1)


def _number(plan: Plan, own: Sequence[tuple[Leaf, tuple[Loop, ...], Kernel]], index: np.ndarray, place: np.ndarray) -> np.ndarray:
    out = np.zeros(len(index), np.int64)
    for number, (_, _, kernel) in enumerate(own):
        x, y, _ = plan.extents[kernel.id][3:]
        here = index == number
        coordinates = place[here][:, 3:]
        total = coordinates @ np.asarray([1, x, x * y])
        out[here] = np.where((coordinates == EVERYWHERE).any(axis=1), EVERYWHERE, total)
    return out
