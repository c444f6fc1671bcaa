"""The moves that give reductions under parallel loops a shape: rows along lanes, columns across them, or flat over threads."""

from __future__ import annotations

from typing import TypeVar

from ...ir.tree import Leaf, Loop, Node, walk
from ...schedule import Schedule
from .._steps import Builder, chain
from .form import ReductionForm
from .shapes import JOIN_BLOCK, JOIN_COLUMNS, JOIN_LOADS, Shape, join_rows

S = TypeVar("S", bound=Schedule)


def shaped(b: Builder[S], form: ReductionForm, shape: Shape) -> S:
    """Give the reductions of a form a shape; the targets are temporaries of their own by now."""
    return (_rows if form.rows and not shape.flat else _columns)(b, form, shape)


def _rows(b: Builder[S], form: ReductionForm, shape: Shape) -> S:
    outer, inner = form.nested if shape.nested else ((), form.reduced)
    p, far, r = _flat(b, form.parallel), _flat(b, outer), _flat(b, inner)
    if b.extent(r) % shape.vector:
        b.attempt("align", r, form.array, shape.vector)
    lanes = _split(b, r, shape.vector, "v")
    thread = _split(b, r, shape.x, "t")
    part = _split(b, far or r, shape.parts, "s")
    if far and b.extent(r) <= shape.unroll:
        written = [_split(b, far, shape.unroll // b.extent(r), "u"), r if b.extent(r) > 1 else ""]
    else:
        written = [_split(b, r, shape.unroll, "u")]
    _in_order(b, [part, far, *([r] if r not in written else []), thread, *written, lanes])
    if part:
        _apart(b, form, [part], [p] if p else [])
    if p:
        row = _split(b, p, min(shape.y, b.extent(p)), "r")
        b.do("bind", p, "block.x")
        if row:
            b.do("bind", row, "thread.y")
    if part:
        b.do("bind", part, "block.y")
    if thread:
        b.do("bind", thread, "thread.x")
        for update in form.updates:
            b.do("collect", update, "shuffle")
    _finish(b, form.kernel, lanes, *written)
    if part:
        _join_rows(b, form, shape)
    return b.schedule


def _columns(b: Builder[S], form: ReductionForm, shape: Shape) -> S:
    outer, inner = ((), form.in_order) if shape.flat else form.batches
    if form.parallel != (*outer, *inner):
        b.do("reorder", (*outer, *inner))
    reduced, run = form.reduced, form.short_run(b.plan.loops) if shape.flat else ""
    if run and any(b.extent(n) > 1 for n in reduced if n != run):
        reduced = tuple(n for n in reduced if n != run)
        b.attempt("reorder", (*reduced, run))
    else:
        run = ""
    r, batch, p = _flat(b, reduced), _flat(b, outer), _flat(b, inner)
    period = _split(b, r, shape.period, "k")
    row = _split(b, r, shape.y, "y")
    part = _split(b, r, shape.parts, "s")
    several = run or _split(b, r, shape.unroll, "u")
    walk = [r, row, several]
    _in_order(b, [part, period, *walk])
    if part:
        _apart(b, form, [x for x in (part, period) if x], [x for x in (p, batch) if x])
    if period:
        _in_order(b, [part, batch, period, p])
        b.do("coalesce", (period, p))
        p = period
    lanes = _split(b, p, shape.vector, "v") if not form.rows else ""
    column = _split(b, p, shape.x, "x")
    _in_order(b, [part, batch, p, column, lanes])
    if lanes:
        b.do("distribute", lanes, after=_before(b, r))
        lanes = b.parent(r)
        if b.plan.loops[lanes].body[-1].id != r:
            b.do("distribute", lanes, after=r)
        _in_order(b, [*walk, lanes])
    for loop, place in ((batch, "block.z"), (p, "block.x"), (column, "thread.x"), (part, "block.y"), (row, "thread.y")):
        if loop:
            b.do("bind", loop, place)
    if row:
        for update in form.updates:
            b.do("collect", update, "shuffle")
    _finish(b, form.kernel, lanes, several)
    if part:
        _join_columns(b, form, shape, (batch, p))
    return b.schedule


def _flat(b: Builder, loops: tuple[str, ...]) -> str:
    """One loop of several; "" of none."""
    if len(loops) > 1:
        b.do("coalesce", loops)
    return loops[0] if loops else ""


def _split(b: Builder, loop: str, size: int, suffix: str) -> str:
    """An inner loop of so many iterations; "" where it would be one."""
    if size <= 1 or not loop:
        return ""
    name = b.plan.fresh(f"{loop}.{suffix}")
    b.do("split", loop, size, inner=name)
    return name


def _in_order(b: Builder, loops: list[str]) -> None:
    """Reorder a perfect nest, unless it stands in that order."""
    wanted = tuple(x for x in loops if x)
    if len(wanted) > 1:
        b.attempt("reorder", wanted)


def _before(b: Builder, loop: str) -> str:
    """The node that stands before a loop in its body: the last of the starts."""
    body = b.plan.loops[b.parent(loop)].body
    return body[next(n for n, node in enumerate(body) if node.id == loop) - 1].id


def _apart(b: Builder, form: ReductionForm, parts: list[str], around: list[str]) -> None:
    """Parts, each of some iterations of loops, in a launch of their own and each accumulated on its own."""
    before, part = {a.name for a in b.plan.program.arrays}, parts[0]
    for update in form.updates:
        b.do("rfactor", update, tuple(parts), first=not form.rows)
    for start in form.starts:
        b.do("sequence", start, after=part)
    partial = [a.name for a in b.plan.program.arrays if a.name not in before]
    for loop in around:
        b.do("distribute", loop, after=part)
    b.do("launch", form.kernel, after=around[-1] if around else part)
    for array in partial:
        b.do("accumulate", array)


def _finish(b: Builder, kernel: str, lanes: str, *written: str) -> None:
    """Temporaries into registers, wide accesses, loads written out."""
    _contract(b, kernel)
    if lanes:
        b.attempt("vectorize", lanes)
        for loop in _writing(b, kernel, b.extent(lanes)):
            b.attempt("vectorize", loop)
    for loop in written:
        if loop:
            b.do("unroll", loop)


def _writing(b: Builder, kernel: str, width: int) -> list[str]:
    """Innermost loops of a kernel, as wide as the lanes, whose statements all write memory."""

    def writes(node: Node) -> bool:
        return isinstance(node, Leaf) and not node.collect and not node.view(len(b.plan.statement_of[node.statement].reads))

    nodes = walk(next(k.body for k in b.plan.kernels if k.id == kernel))
    return [n.id for n in nodes if isinstance(n, Loop) and n.role == "seq" and n.extent == width and all(map(writes, n.body))]


def _contract(b: Builder, kernel: str) -> None:
    """The temporaries of a kernel that have no storage yet into registers, where that is legal."""
    used: dict[str, set[str]] = {}
    for leaf, _, owner in b.plan.leaves:
        for access in b.plan.statement_of[leaf.statement].accesses:
            used.setdefault(access.array, set()).add(owner.id)
    for temporary in list(b.plan.program.temporaries):
        if temporary.name not in b.plan.buffer_of and used.get(temporary.name) == {kernel}:
            b.attempt("contract", temporary.name, "register")


def _joining(b: Builder, form: ReductionForm) -> tuple[str, tuple[str, ...], list[tuple[str, str]]]:
    """The launch that joins the parts: its kernel, the loops over results, and each loop over parts with its statement."""
    names = [k.id for k in b.plan.kernels]
    kernel = b.plan.kernels[names.index(form.kernel) + 1]
    body, around = kernel.body, []
    while len(body) == 1 and isinstance(body[0], Loop):
        around.append(body[0].id)
        body = body[0].body
    joins = []
    for nest in [chain(node) for node in body if isinstance(node, Loop)]:
        _flat(b, tuple(x.id for x in nest))
        joins.append((nest[0].id, next(n.id for n in nest[-1].body if isinstance(n, Leaf))))
    return kernel.id, tuple(around), joins


def _join_rows(b: Builder, form: ReductionForm, shape: Shape) -> None:
    kernel, around, joins = _joining(b, form)
    p = _flat(b, around)
    alone = shape.clustered
    if p:
        row = _split(b, p, min(shape.y, b.extent(p)), "r") if shape.together else ""
        b.do("bind", p, "block.x")
        if row:
            b.do("bind", row, "thread.y")
    most = shape.x if shape.together else JOIN_BLOCK
    for parts, statement in () if alone else joins:
        threads = _split(b, parts, most, "t") if b.extent(parts) > most else parts
        b.do("bind", threads, "thread.x").do("collect", statement, "shuffle")
    _contract(b, kernel)
    for parts, _ in joins if alone else ():
        b.attempt("unroll", parts)
    if shape.together:
        b.attempt("join", kernel, shape.join)


def _join_columns(b: Builder, form: ReductionForm, shape: Shape, main: tuple[str, str]) -> None:
    kernel, around, joins = _joining(b, form)
    beside, rows = JOIN_COLUMNS, join_rows(shape.parts * shape.period)
    if shape.together:
        beside, rows = shape.x if shape.period > 1 else shape.x * shape.vector, shape.y
    batch, p = main
    if shape.together and batch:  # the same blocks as before
        batch, p = around[0], _flat(b, around[1:])
        b.do("bind", batch, "block.z")
    else:
        p = _flat(b, around)
    alone = shape.clustered and shape.period == 1
    if p and alone:
        _spread_columns(b, p, shape)
    elif p:
        column = _split(b, p, beside, "x") if b.extent(p) > beside or shape.together else ""
        for loop, place in ((p, "block.x"), (column, "thread.x")) if column else ((p, "thread.x"),):
            b.do("bind", loop, place)
    unrolled = [parts for parts, _ in joins] if alone else []
    for parts, statement in () if alone else joins:
        across = _split(b, parts, rows, "y") if b.extent(parts) > rows else parts
        if across:
            b.do("bind", across, "thread.y").do("collect", statement, "shuffle")
        if across != parts:
            unrolled.append(_split(b, parts, JOIN_LOADS, "u") if b.extent(parts) > 2 * JOIN_LOADS else parts)
    _contract(b, kernel)
    for loop in unrolled:
        if loop:
            b.attempt("unroll", loop)
    if shape.together:
        b.attempt("join", kernel, shape.join)


def _spread_columns(b: Builder, p: str, shape: Shape) -> None:
    """The columns of a block over its threads, each column's parts in one thread."""
    tile = _split(b, p, shape.x * shape.vector, "x")
    b.do("bind", p, "block.x")
    column = _split(b, tile, shape.x, "t")
    if 1 < shape.vector <= shape.y and tile:
        b.do("bind", tile, "thread.y")
        tile = ""
    if column or tile:
        b.do("bind", column or tile, "thread.x")
