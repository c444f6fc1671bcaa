"""Two-stage block reductions, for columns of which several make one result: a block's sums of them meet in its shared memory.

Rows of an odd length are no whole number of vectors, but several of them taken as one are; and where a reduced axis stands inside
of the results, it and they together are one contiguous run.  Either way neighbouring lanes read vectors of neighbouring elements,
whatever result those belong to; each lane keeps its own sums, and a second nest of the same block adds up those of a result.
"""

from __future__ import annotations

from math import prod

from ...ir.tree import Leaf, Loop, Node
from ...schedule import Schedule
from ...transforms.base import siblings
from .._steps import Builder, axes, chain
from .form import ReductionForm
from .joins import columns_joined
from .moves import apart, contract, finish, flat, in_order, innermost, split
from .shapes import JOIN_LOADS, Shape
from .sums import ALONE, Sums, shared

WIDE = 4
"""Sums of one access to shared memory."""


def two_stage(b: Builder, form: ReductionForm, shape: Shape) -> Schedule:
    """Give the reductions of a form a shape whose sums meet in the block."""
    kept = form.kept if shape.kept else ()
    rows = tuple(n for n in form.reduced if n not in kept)
    outer, inner = form.around(rows)
    end = form.axes.index(kept[-1]) if kept else -1
    head_loops = tuple(n for n in inner if n in form.axes and form.axes.index(n) < end)
    tail_loops = tuple(n for n in inner if n not in head_loops)
    in_memory = _targets(b, form) == (*outer, *head_loops, *tail_loops)
    if form.parallel != (*outer, *inner):
        b.do("reorder", (*outer, *inner))
    in_order(b, [*rows, *kept])
    r, batch = flat(b, rows), flat(b, outer)
    head, tail = flat(b, head_loops), flat(b, tail_loops)
    period = split(b, r, shape.period, "k")
    row = split(b, r, shape.y, "y")
    part = split(b, r, shape.parts, "s")
    several = split(b, r, shape.unroll, "u")
    sums = [x for x in (row, period, flat(b, kept)) if x]
    in_order(b, [part, *sums, r, several])
    if part:
        apart(b, form, part, [x for x in (tail, head, batch) if x], first=True)
        in_order(b, [part, batch, head, tail])
    of_block = _tile(b, head, [*kept[:1], tail], shape)
    tile = split(b, head, of_block, "b")
    results = [x for x in (tile, tail) if x]
    first = bool(part) + len(outer)
    at = [first] * bool(row) + [first + bool(row)] * bool(period)
    at += [first + len(at) + len(head_loops)] * bool(kept)
    partial = _meeting(b, form.updates, sums, results, tuple(at) if in_memory else ())
    columns = tuple(x for x in (tile, *kept[:1], tail) if x)
    in_order(b, [row, period, *columns])
    column = flat(b, columns)
    column = flat(b, (period, column)) if period else column  # one by one: then an index stays a sum
    lanes = split(b, column, shape.vector, "v")
    lanes = innermost(b, lanes, [r, several])
    for loop, place in ((batch, "block.z"), (head, "block.x"), (column, "thread.x"), (part, "block.y"), (row, "thread.y")):
        if loop:
            b.do("bind", loop, place)
    _add_up(b, _after(b, row or column), shape, rows=shape.y)
    for array in partial:
        b.do("contract", array, "shared")
    contract(b, form.kernel)
    if lanes:
        _leave(b, column)
    finish(b, form.kernel, lanes, several)
    if part and shape.together:
        _join(b, form, shape, batch, of_block if head else 0)
    elif part:
        columns_joined(b, form, shape)
    return b.schedule


def _tile(b: Builder, head: str, inside: list[str], shape: Shape) -> int:
    """Results along `head` whose columns are a block's."""
    if not head:
        return 1
    unit = prod(b.extent(loop) for loop in inside if loop)
    return max(1, min(b.extent(head), shape.x * shape.vector // unit))


def _meeting(b: Builder, updates: tuple[str, ...], sums: list[str], results: list[str], at: tuple[int, ...]) -> list[str]:
    """Sums for each iteration of `sums`, and behind their nest another that adds them up; their arrays."""
    known = {a.name for a in b.plan.program.arrays}
    for update in updates:
        b.do("rfactor", update, tuple(sums), axes=at)
    nest = sums[0]
    partial = [a.name for a in b.plan.program.arrays if a.name not in known]
    body = b.plan.loops[b.parent(nest)].body
    for start in [n.id for n in body[: [n.id for n in body].index(nest)] if isinstance(n, Leaf)]:
        b.do("sequence", start, after=nest)
    inside = nest
    for loop in reversed(results):
        b.do("distribute", loop, after=inside)
        inside = loop
    for array in partial:
        b.do("accumulate", array)
    return partial


def _targets(b: Builder, form: ReductionForm) -> tuple[str, ...]:
    """The loops that walk the axes of the results."""
    leaf = next(leaf for leaf, _, _ in b.plan.leaves if leaf.id == form.updates[0])
    return axes(leaf, b.plan.statement_of[leaf.statement].target)


def _leave(b: Builder, column: str) -> None:
    """The sums of a thread's lanes into shared memory, as many at once as one access has."""
    for last in [n for n in b.plan.loops[column].body if isinstance(n, Loop)][-1:]:
        lanes = split(b, last.id, WIDE, "w") if last.extent > WIDE else last.id
        if not b.attempt("vectorize", lanes):
            b.do("unroll", lanes)
        if lanes != last.id:
            b.do("unroll", last.id)


def _after(b: Builder, loop: str) -> Node:
    """The node behind a loop."""
    body = siblings(b.plan, loop)
    return body[[n.id for n in body].index(loop) + 1]


def _add_up(b: Builder, nest: Node, shape: Shape, rows: int = 0, alone: int = ALONE) -> None:
    """Spread a nest that adds up sums of each result over a block's threads: loops over results around those over sums."""
    results = []
    while isinstance(nest, Loop):
        results.append(nest.id)
        if len(nest.body) != 1:
            break
        (nest,) = nest.body
    assert isinstance(nest, Loop)
    adds = [chain(n) for n in nest.body if isinstance(n, Loop)]
    result = flat(b, tuple(results))
    how = shared(b.extent(result), prod(n.extent for n in adds[0]), shape.x, shape.y, alone, rows)
    if how.place == "x":
        if row := result if how.rounds == 1 else split(b, result, b.extent(result) // how.rounds, "y"):
            b.do("bind", row, "thread.y")
    elif b.extent(result) <= how.spread:
        b.do("bind", result, "thread.x")
    else:
        if beside := split(b, result, how.spread, "x"):
            b.do("bind", beside, "thread.x")
        if b.extent(result) <= shape.y:
            b.do("bind", result, "thread.y")
    for loops in adds:
        _share(b, loops, how)


def _share(b: Builder, loops: list[Loop], how: Sums) -> None:
    """The sums of a result over the threads that share them, those of one thread written out."""
    statement = next(n.id for n in loops[-1].body if isinstance(n, Leaf))
    if how.place == "y" and len(loops) > 1 and loops[0].extent == how.share:
        together, own = loops[0].id, flat(b, tuple(n.id for n in loops[1:]))
    else:
        own = flat(b, tuple(n.id for n in loops))
        together = (split(b, own, how.share, "t") if b.extent(own) > how.share else own) if how.place else ""
    if together:
        b.do("bind", together, f"thread.{how.place}").do("collect", statement, "shuffle")
    if together != own:
        several = next((n for n in (*range(JOIN_LOADS, 1, -1), *range(JOIN_LOADS, 2 * ALONE)) if b.extent(own) % n == 0), 1)
        if written := own if b.extent(own) <= 2 * ALONE else split(b, own, several, "u"):
            b.attempt("unroll", written)


def _join(b: Builder, form: ReductionForm, shape: Shape, batch: str, heads: int) -> None:
    """What joins the parts, in the same blocks again: each those of its own results, `heads` along the outer loop of them."""
    names = [k.id for k in b.plan.kernels]
    kernel = b.plan.kernels[names.index(form.kernel) + 1]
    around = [n.id for n in chain(kernel.body[0])]
    if batch:
        b.do("bind", around.pop(0), "block.z")
    if heads:
        tile = split(b, around[0], heads, "b")
        b.do("bind", around[0], "block.x")
        around[:1] = [tile] if tile else []
    _add_up(b, b.plan.loops[around[0]], shape, alone=1 if shape.join == "handoff" else ALONE)
    contract(b, kernel.id)
    b.attempt("join", kernel.id, shape.join)
