"""The iteration space of a statement: which block and thread runs each instance, when, and what depends on what.

A window of the space is computed, never the whole: a domain of billions of instances opens as fast as one of a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...ir.finding import Instance
from ...ir.plan import Plan, block_extents, grid_extents
from ...ir.program import Statement
from ...ir.text import written_text
from ...ir.tree import Leaf, Loop, leaves
from ...poly.count import instances
from ...poly.sample import EVERYWHERE, Instances, Link, bounds, first_point, grid, links, locate
from ...schedule import Schedule
from .asked import Asked, Look

ROOM: dict[str, dict[int, tuple[int, ...]]] = {
    "small": {1: (16,), 2: (16, 12), 3: (6,) * 3},
    "large": {1: (64,), 2: (32, 20), 3: (9,) * 3},
    "half": {1: (8,), 2: (8, 8), 3: (6,) * 3},
}
"""Cells of the window along each axis, by size and number of axes; half of two grids that stand side by side."""
ARROWS = 600


@dataclass(frozen=True)
class Cell:
    """One instance: its point in the statement's dimensions, its leaf, block, thread, number of the thread, time, and the
    values of the leaf's loops from the outermost inwards.
    """

    point: tuple[int, ...]
    leaf: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    number: int
    step: int
    loops: tuple[int, ...] = ()


@dataclass(frozen=True)
class Marked:
    """One end of a violating pair: its name, where it stands on the shown axes, and whether it must run first."""

    name: str
    at: tuple[float, ...]
    first: bool


@dataclass(frozen=True)
class Domain:
    """A window of a statement's instances.

    Attributes
    ----------
    statement, text : str
        Name, and the statement as the user wrote it.
    dims, axes : tuple of str
        All dimensions; those on the x, y (and z) axis.
    roles : tuple of str
        For each axis the blocks and threads that its dimension is spread over, in words.
    fixed : tuple of (str, int)
        Values of the other dimensions.
    window : tuple of (int, int, int)
        First value, count and stride along each axis.
    extents : tuple of (int, int)
        Bounds of each axis in the whole domain.
    colour : str
        ``"thread"``, ``"block"``, ``"time"`` or ``"leaf"``.
    cells : tuple of Cell
    arrows : tuple of Link
        Rows are positions in `cells`; `arrow_count` is how many there would be.
    pair : tuple of Marked
        Those of source and sink of a finding that are instances of this statement.
    other : Domain or None
        The window of the statement that the other end of the finding is of, if that is another one.
    above : tuple of (str, tuple of str)
        For each leaf its kernel and its loops from the outermost inwards.
    total : int
        Instances in the whole domain.
    steps : int
        Different times in the window.
    threads, blocks : int
        Of the launch.
    """

    statement: str
    text: str
    dims: tuple[str, ...]
    axes: tuple[str, ...]
    roles: tuple[str, ...]
    fixed: tuple[tuple[str, int], ...]
    window: tuple[tuple[int, int, int], ...]
    extents: tuple[tuple[int, int], ...]
    colour: str
    cells: tuple[Cell, ...]
    arrows: tuple[Link, ...]
    arrow_count: int
    pair: tuple[Marked, ...]
    total: int
    steps: int
    threads: int
    blocks: int
    above: tuple[tuple[str, tuple[str, ...]], ...] = ()
    other: Domain | None = None

    @property
    def sampled(self) -> bool:
        """Whether the window leaves out instances of the shown plane."""
        return any(start > low or step > 1 or start + (count - 1) * step < high
                   for (start, count, step), (low, high) in zip(self.window, self.extents, strict=True))


def domain(schedule: Schedule, asked: Asked, look: Look) -> Domain | str:
    """The window that is asked for, or a sentence where there is nothing to see."""
    plan = schedule.plan
    names = {s.name: f"{s.name}: {written_text(s, plan.array_of, own=True)}" for s in (*plan.program.statements, *plan.copies)
             if any(leaf.statement == s.name for leaf, _, _ in plan.leaves)}
    if not names:
        return "This schedule has no statements."
    s = plan.statement_of[asked.one_of("statement", "statement", names, _focus(plan, look, tuple(names)))]
    ends = [x.statement for x in (look.finding.source, look.finding.sink) if x] if look.finding else []
    partner = next((name for name in ends if name != s.name and name in names), None) if s.name in ends else None
    shown = _grid(plan, s, asked, look, narrow=partner is not None)
    if isinstance(shown, str) or not shown.pair or partner is None:
        return shown
    beside = _grid(plan, plan.statement_of[partner], Asked({"colour": shown.colour}), look, narrow=True)
    return shown if isinstance(beside, str) else replace(shown, other=beside)


def _grid(plan: Plan, s: Statement, asked: Asked, look: Look, narrow: bool) -> Domain | str:
    """The window of one statement; a narrow one stands beside another."""
    first = _first_of(plan, s, look.node) or first_point(plan, s.name)
    if first is None:
        return f"{s.name} has no instances at these sizes."
    box, pair = bounds(plan, s.name), tuple(x.point for x, _ in _ends(s, look))
    axes = _axes(plan, s, asked, box, pair)
    hidden = dict(zip(s.dims, pair[0] if pair else first, strict=True))
    at = {d: asked.number(f"at.{d}", f"{d} =", *box[d], hidden[d]) for d in s.dims if d not in axes}
    points = [tuple(dict(zip(s.dims, p, strict=True))[d] for d in axes) for p in pair]
    window, found = _view(plan, s, axes, box, asked, hidden, at, points, narrow)
    arrows, count = links(plan, s.name, found.points, ARROWS)
    kernel = next(k for leaf, _, k in plan.leaves if leaf.statement == s.name)
    blocks, threads = int(np.prod(grid_extents(kernel))), int(np.prod(block_extents(kernel)))
    colour = asked.one_of("colour", "colour by", _colours(blocks, threads, len(found.leaves)),
                          "thread" if threads > 1 else "block" if blocks > 1 else "time")
    rows = zip(found.points.tolist(), found.leaf.tolist(), found.place.tolist(), found.thread.tolist(), found.step.tolist(),
               _loop_values(plan, s, found), strict=True)  # fmt: skip
    cells = tuple(Cell(tuple(p), found.leaves[leaf], tuple(place[:3]), tuple(place[3:]), number, step, loops)
                  for p, leaf, place, number, step, loops in rows)
    above = {leaf.id: (k.id, *(x.id for x in over)) for leaf, over, k in plan.leaves if leaf.statement == s.name}
    bound = _roles(plan, s)
    roles = tuple(" · ".join(bound.get(d, ())) for d in axes)
    return Domain(
        s.name,
        written_text(s, plan.array_of, own=True),
        s.dims,
        axes,
        roles,
        tuple(at.items()),
        window,
        tuple(box[d] for d in axes),
        colour,
        cells,
        tuple(arrows),
        count,
        _marked(s, axes, look),
        instances(plan)[s.name],
        found.steps,
        threads,
        blocks,
        tuple(above.items()),
    )


def _first_of(plan: Plan, s: Statement, node: str | None) -> tuple[int, ...] | None:
    """The instance at the first values of the loops of the selected leaf, or of a leaf in the selected loop; None without one."""
    for leaf, above, _ in plan.leaves:
        if leaf.statement == s.name and (leaf.id == node or any(x.id == node for x in above)):
            env = {x.id: x.start for x in above}
            point = [dict(leaf.at)[d].evaluate(env) for d in s.dims]
            found = locate(plan, s.name, np.array([point], np.int64).reshape(1, len(s.dims)))
            if found.leaf.size and found.leaves[found.leaf[0]] == leaf.id:
                return tuple(int(v) for v in point)
    return None


def _loop_values(plan: Plan, s: Statement, found: Instances) -> list[tuple[int, ...]]:
    """For each instance the values of its leaf's loops."""
    values = dict(zip(s.dims, found.points.T, strict=True))
    out: list[tuple[int, ...]] = [()] * len(found.points)
    for number, name in enumerate(found.leaves):
        leaf, above, _ = next(entry for entry in plan.leaves if entry[0].id == name)
        when = dict(leaf.when)
        columns = [np.broadcast_to(np.asarray(when[x.id].evaluate(values)), len(out)) for x in above]
        for n in np.flatnonzero(found.leaf == number):
            out[n] = tuple(int(column[n]) for column in columns)
    return out


def _colours(blocks: int, threads: int, parts: int) -> dict[str, str]:
    offered = {"thread": threads > 1, "block": blocks > 1, "time": True, "leaf": parts > 1}
    words = {"thread": "thread", "block": "block", "time": "time: order of execution", "leaf": "place in the loops"}
    return {name: words[name] for name, there in offered.items() if there}


def _focus(plan: Plan, look: Look, names: tuple[str, ...]) -> str:
    """The statement to open on: of the finding, of the selected node (of a buffer, one that uses it), else the one with the
    most dimensions that updates.
    """
    if look.finding and look.finding.source and look.finding.source.statement in names:
        return look.finding.source.statement
    hit = plan.find(look.node) if look.node else None
    if hit and isinstance(hit[0], Leaf):
        return hit[0].statement
    if look.node in names:
        return str(look.node)
    below = [leaf.statement for leaf, _ in leaves(hit[0].body)] if hit and isinstance(hit[0], Loop) else []
    using = [leaf.statement for leaf, _, _ in plan.leaves if any(view.buffer == look.node for _, view in leaf.views)]
    offered = below or using or [leaf.statement for leaf, _, _ in plan.leaves]

    def weight(name: str) -> tuple[bool, int, bool]:
        s = plan.statement_of[name]
        return s.origin == "program", len(s.dims), bool(s.update)

    return max(dict.fromkeys(offered), key=weight)


def _ends(s: Statement, look: Look) -> list[tuple[Instance, bool]]:
    """The instances of a finding that are of this statement, and whether each must run first."""
    ends = ((look.finding.source, True), (look.finding.sink, False)) if look.finding else ()
    return [(x, first) for x, first in ends if x and x.statement == s.name and len(x.point) == len(s.dims)]


def _marked(s: Statement, axes: tuple[str, ...], look: Look) -> tuple[Marked, ...]:
    return tuple(Marked(str(x), tuple(float(dict(zip(s.dims, x.point, strict=True))[d]) for d in axes), first)
                 for x, first in _ends(s, look))


def _axes(
    plan: Plan, s: Statement, asked: Asked, box: dict[str, tuple[int, int]], pair: tuple[tuple[int, ...], ...]
) -> tuple[str, ...]:
    """The dimensions to show: those in which a pair differs, those bound to places, the longest."""
    if not s.dims:
        return ()
    apart = {d for p in pair[1:] for d, a, b in zip(s.dims, pair[0], p, strict=True) if a != b}
    bound = _roles(plan, s)
    long = [d for d in s.dims if box[d][1] > box[d][0]] or list(s.dims)
    ranked = sorted(long, key=lambda d: (d not in apart, d not in bound, -s.dims.index(d)))[:2]
    inner = max(ranked, key=lambda d: (any(r.endswith("x") or r == "lane" for r in bound.get(d, ())), s.dims.index(d)))
    x = asked.one_of("x", "across", s.dims, inner)
    others = [d for d in s.dims if d != x]
    if not others:
        return (x,)
    y = asked.one_of("y", "down", others, next((d for d in [*ranked, *long, *others] if d != x), others[0]))
    rest = [d for d in others if d != y]
    z = asked.one_of("z", "third axis", ("none", *rest), "none") if rest else "none"
    return (x, y) if z == "none" else (x, y, z)


def _roles(plan: Plan, s: Statement) -> dict[str, tuple[str, ...]]:
    """Dimension to the roles of the blocks and threads that it is spread over."""
    out: dict[str, tuple[str, ...]] = {}
    for leaf, above, _ in plan.leaves:
        for d, e in leaf.at if leaf.statement == s.name else ():
            here = [x.role for x in above if x.is_place and x.id in e.variables()]
            out[d] = tuple(dict.fromkeys((*out.get(d, ()), *here)))
    return {d: roles for d, roles in out.items() if roles}


def _view(plan: Plan, s: Statement, axes: tuple[str, ...], box: dict[str, tuple[int, int]], asked: Asked, first: dict[str, int],
          at: dict[str, int], pair: list[tuple[int, ...]], narrow: bool) -> tuple[tuple[tuple[int, int, int], ...], Instances]:
    """The window and its instances: a small one where arrows have to be told apart."""
    def seen(window: tuple[tuple[int, int, int], ...]) -> Instances:
        ranges = {d: range(start, start + count * step, step) for d, (start, count, step) in zip(axes, window, strict=True)}
        return locate(plan, s.name, grid(s, ranges, at))

    if not axes:
        return (), seen(())
    small, large = (ROOM[size][len(axes)] for size in ("half" if narrow else "small", "large"))
    size = "small"
    if not narrow and any(box[d][1] - box[d][0] >= n for d, n in zip(axes, small, strict=True)):
        probe = seen(tuple((min(max(first[d], box[d][0]), box[d][1]), min(n, 6), 1) for d, n in zip(axes, small, strict=True)))
        linked = links(plan, s.name, probe.points, 1)[1] > 0
        size = asked.one_of("size", "window", {"small": "small", "large": "large"}, "small" if linked or pair else "large")
    window = _window(axes, small if size == "small" else large, box, asked, first, pair)
    return window, seen(window)


def _window(axes: tuple[str, ...], room: tuple[int, ...], box: dict[str, tuple[int, int]], asked: Asked, first: dict[str, int],
            pair: list[tuple[int, ...]]) -> tuple[tuple[int, int, int], ...]:
    """First value, count and stride on each axis: a corner, or every n-th instance of the whole; a pair lies inside."""
    beyond = any(box[d][1] - box[d][0] >= n for d, n in zip(axes, room, strict=True))
    far = any(max(p[i] for p in pair) - min(p[i] for p in pair) >= n for i, n in enumerate(room)) if pair else False
    every = {"corner": "neighbours, from a corner", "whole": "the whole, every n-th"}
    whole = beyond and asked.one_of("show", "show", every, "whole" if far else "corner") == "whole"
    out = []
    for i, (d, n) in enumerate(zip(axes, room, strict=True)):
        low, high = box[d]
        length = high - low + 1
        if length <= n:
            out.append((low, length, 1))
        elif whole:
            step = -(-length // n)
            start = low + (pair[0][i] - low) % step if pair else low
            out.append((start, (high - start) // step + 1, step))
        else:
            ends = [p[i] for p in pair]
            start = max(low, min(min(ends) - 2, high - n + 1)) if ends else min(max(first[d], low), high - n + 1)
            out.append((asked.number(f"from.{d}", f"{d} from", low, high - n + 1, start), n, 1))
    return tuple(out)


def words(data: Domain, cell: Cell) -> str:
    """Where and when an instance runs, in words."""
    parts = []
    if data.blocks > 1:
        parts.append("every block" if EVERYWHERE in cell.block else f"block ({', '.join(map(str, cell.block))})")
    if data.threads > 1:
        parts.append("every thread" if cell.number == EVERYWHERE else f"thread {cell.number}" +
                     (f" ({', '.join(map(str, cell.thread))})" if any(cell.thread[1:]) else ""))
    return " · ".join([*parts, f"step {cell.step + 1} of {data.steps}"])


def table(data: Domain, most: int = 100) -> tuple[list[str], list[list[str]]]:
    """The instances in order of execution, as text."""
    cells = sorted(data.cells, key=lambda c: (c.step, c.block, c.number))[:most]
    rows = [[c.leaf, f"{data.statement}[{', '.join(map(str, c.point))}]", words(data, c)] for c in cells]
    return ["instance", "where and when"], rows


def remark(data: Domain) -> str:
    """What is shown, what is left out, how to read it."""
    parts = [_count(data)]
    if data.other:
        parts = [f"{g.statement}: {_count(g)[0].lower()}{_count(g)[1:]}" for g in (data, data.other)]
    elif data.arrow_count:
        kinds = ", ".join(sorted({a.kind for a in data.arrows}))
        count = f"{len(data.arrows)} of {data.arrow_count:,}" if len(data.arrows) < data.arrow_count else f"{data.arrow_count}"
        parts.append(f"arrows: {count} direct dependences among them ({kinds}" +
                     ("; dotted: updates of one cell, in either order)" if "reduction" in kinds else ")"))
    if data.blocks > 1:
        parts.append("thick lines: borders of blocks")
    if data.pair:
        parts.append("red: the pair whose order would be lost" + (", in the grids of its two statements" if data.other else ""))
    return ". ".join(p[0].upper() + p[1:] for p in parts) + "."


def _count(data: Domain) -> str:
    shown = " × ".join(f"{d} {start} … {start + (count - 1) * step}" + (f" (every {_nth(step)})" if step > 1 else "")
                       for d, (start, count, step) in zip(data.axes, data.window, strict=True))
    some = f"{len(data.cells):,} of {data.total:,} instances: {shown}"
    return some if len(data.cells) < data.total else f"All {data.total:,} instances" if data.total != 1 else "The one instance"


def _nth(step: int) -> str:
    return f"{step}{'th' if step % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(step % 10, 'th')}"
