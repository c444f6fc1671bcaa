"""The moves that give reductions under parallel loops a shape: rows along lanes, columns across them, or flat over threads."""

from __future__ import annotations

from typing import TypeVar

from ...ir.tree import Leaf, Loop
from ...schedule import Schedule
from .._steps import Builder, chain
from .form import ReductionForm
from .met import met
from .moves import apart, before, contract, finish, flat, in_order, split
from .shapes import JOIN_BLOCK, JOIN_COLUMNS, JOIN_LOADS, Shape, join_rows

S = TypeVar("S", bound=Schedule)


def shaped(b: Builder[S], form: ReductionForm, shape: Shape) -> S:
    """Give the reductions of a form a shape; the targets are temporaries of their own by now."""
    if shape.met:
        return met(b, form, shape)
    return (_rows if form.rows and not shape.flat else _columns)(b, form, shape)


def _rows(b: Builder[S], form: ReductionForm, shape: Shape) -> S:
    outer, inner = form.nested if shape.nested else ((), form.reduced)
    p, far, r = flat(b, form.parallel), flat(b, outer), flat(b, inner)
    if b.extent(r) % shape.vector:
        b.attempt("align", r, form.array, shape.vector)
    lanes = split(b, r, shape.vector, "v")
    thread = split(b, r, shape.x, "t")
    part = split(b, far or r, shape.parts, "s")
    if far and b.extent(r) <= shape.unroll:
        written = [split(b, far, shape.unroll // b.extent(r), "u"), r if b.extent(r) > 1 else ""]
    else:
        written = [split(b, r, shape.unroll, "u")]
    in_order(b, [part, far, *([r] if r not in written else []), thread, *written, lanes])
    if part:
        apart(b, form, part, [p] if p else [], first=False)
    if p:
        row = split(b, p, min(shape.y, b.extent(p)), "r")
        b.do("bind", p, "block.x")
        if row:
            b.do("bind", row, "thread.y")
    if part:
        b.do("bind", part, "block.y")
    if thread:
        b.do("bind", thread, "thread.x")
        for update in form.updates:
            b.do("collect", update, "shuffle")
    finish(b, form.kernel, lanes, *written)
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
    r, batch, p = flat(b, reduced), flat(b, outer), flat(b, inner)
    row = split(b, r, shape.y, "y")
    part = split(b, r, shape.parts, "s")
    several = run or split(b, r, shape.unroll, "u")
    walk = [r, row, several]
    in_order(b, [part, *walk])
    if part:
        apart(b, form, part, [x for x in (p, batch) if x], first=not form.rows)
    lanes = split(b, p, shape.vector, "v") if not form.rows else ""
    column = split(b, p, shape.x, "x")
    in_order(b, [part, batch, p, column, lanes])
    if lanes:
        b.do("distribute", lanes, after=before(b, r))
        lanes = b.parent(r)
        if b.plan.loops[lanes].body[-1].id != r:
            b.do("distribute", lanes, after=r)
        in_order(b, [*walk, lanes])
    for loop, place in ((batch, "block.z"), (p, "block.x"), (column, "thread.x"), (part, "block.y"), (row, "thread.y")):
        if loop:
            b.do("bind", loop, place)
    if row:
        for update in form.updates:
            b.do("collect", update, "shuffle")
    finish(b, form.kernel, lanes, several)
    if part:
        _join_columns(b, form, shape, (batch, p))
    return b.schedule


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
        flat(b, tuple(x.id for x in nest))
        joins.append((nest[0].id, next(n.id for n in nest[-1].body if isinstance(n, Leaf))))
    return kernel.id, tuple(around), joins


def _join_rows(b: Builder, form: ReductionForm, shape: Shape) -> None:
    kernel, around, joins = _joining(b, form)
    p = flat(b, around)
    alone = shape.clustered
    if p:
        row = split(b, p, min(shape.y, b.extent(p)), "r") if shape.together else ""
        b.do("bind", p, "block.x")
        if row:
            b.do("bind", row, "thread.y")
    most = shape.x if shape.together else JOIN_BLOCK
    for parts, statement in () if alone else joins:
        threads = split(b, parts, most, "t") if b.extent(parts) > most else parts
        b.do("bind", threads, "thread.x").do("collect", statement, "shuffle")
    contract(b, kernel)
    for parts, _ in joins if alone else ():
        b.attempt("unroll", parts)
    if shape.together:
        b.attempt("join", kernel, shape.join)


def _join_columns(b: Builder, form: ReductionForm, shape: Shape, main: tuple[str, str]) -> None:
    kernel, around, joins = _joining(b, form)
    beside, rows = JOIN_COLUMNS, join_rows(shape.parts)
    if shape.together:
        beside, rows = shape.x * shape.vector, shape.y
    batch, p = main
    if shape.together and batch:  # the same blocks as before
        batch, p = around[0], flat(b, around[1:])
        b.do("bind", batch, "block.z")
    else:
        p = flat(b, around)
    alone = shape.clustered
    if p and alone:
        _spread_columns(b, p, shape)
    elif p:
        column = split(b, p, beside, "x") if b.extent(p) > beside or shape.together else ""
        for loop, place in ((p, "block.x"), (column, "thread.x")) if column else ((p, "thread.x"),):
            b.do("bind", loop, place)
    unrolled = [parts for parts, _ in joins] if alone else []
    for parts, statement in () if alone else joins:
        across = split(b, parts, rows, "y") if b.extent(parts) > rows else parts
        if across:
            b.do("bind", across, "thread.y").do("collect", statement, "shuffle")
        if across != parts:
            unrolled.append(split(b, parts, JOIN_LOADS, "u") if b.extent(parts) > 2 * JOIN_LOADS else parts)
    contract(b, kernel)
    for loop in unrolled:
        if loop:
            b.attempt("unroll", loop)
    if shape.together:
        b.attempt("join", kernel, shape.join)


def _spread_columns(b: Builder, p: str, shape: Shape) -> None:
    """The columns of a block over its threads, each column's parts in one thread."""
    tile = split(b, p, shape.x * shape.vector, "x")
    b.do("bind", p, "block.x")
    column = split(b, tile, shape.x, "t")
    if 1 < shape.vector <= shape.y and tile:
        b.do("bind", tile, "thread.y")
        tile = ""
    if column or tile:
        b.do("bind", column or tile, "thread.x")
