"""The moves for the launch that joins the parts of reductions: in blocks of its own, or in those that made the parts."""

from __future__ import annotations

from ...ir.tree import Leaf, Loop
from .._steps import Builder, chain
from .form import ReductionForm
from .moves import contract, flat, split
from .shapes import JOIN_BLOCK, JOIN_COLUMNS, JOIN_LOADS, Shape, join_rows


def joining(b: Builder, form: ReductionForm) -> tuple[str, tuple[str, ...], list[tuple[str, str]]]:
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


def rows_joined(b: Builder, form: ReductionForm, shape: Shape) -> None:
    """Parts of rows: a block for each result, or as many rows to a block as before."""
    kernel, around, joins = joining(b, form)
    p = flat(b, around)
    alone = shape.joins_in_cluster
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


def columns_joined(b: Builder, form: ReductionForm, shape: Shape, batch: str = "") -> None:
    """Parts of columns: neighbouring lanes take neighbouring results, threads along y share the parts of each.

    Parameters
    ----------
    b : Builder
    form : ReductionForm
    shape : Shape
    batch : str
        The loop over batches of results that stand on block.z, if there is one.
    """
    kernel, around, joins = joining(b, form)
    beside, rows = JOIN_COLUMNS, join_rows(shape.parts)
    if shape.together:
        beside, rows = shape.x * shape.vector, shape.y
    if shape.together and batch:  # the same blocks as before
        p = flat(b, around[1:])
        b.do("bind", around[0], "block.z")
    else:
        p = flat(b, around)
    alone = shape.joins_in_cluster
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
