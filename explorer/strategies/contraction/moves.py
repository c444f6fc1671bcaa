"""A product's schedule by moves: blocks and warps, staged and pipelined factors, tensor instructions, what follows the sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...gpu.spec import Gpu, default_gpu
from ...ir.expr import Expr
from ...ir.layout import GROUP
from ...ir.swizzle import MODES
from ...ir.tree import Leaf
from ...schedule import Schedule
from ...transforms.bind import GRID_LIMITS
from .._steps import Builder, nest_apart, own_temporaries
from ..reductions import reduce
from .form import ProductForm
from .model import held_blocks, needs_bounds
from .results import WIDEST, by_bulk_stores, for_one_thread, in_fragments, outlined, pairs, stored
from .row_sums import in_parts, joined
from .shapes import ROW_BYTES, Tiling, boxes, require_tiling, warp_instruction
from .slices import sliced_apart
from .threads import deep, serpentine, spread_over_threads
from .triangles import longest_first, shortened

BLOCK_AXES = ("block.x", "block.y", "block.z")
GROUPED = 8
"""Rows of tiles that blocks share at a time: 132 blocks then read some 8 + 17 tiles of factors, not 1 + 132."""


def build(schedule: Schedule, form: ProductForm, t: Tiling, gpu: Gpu | None = None) -> Schedule:
    """The schedule of a tiling.

    Parameters
    ----------
    schedule : Schedule
        With the kernel as :func:`~explorer.strategies.contraction.form.product_form` found it.
    form : ProductForm
    t : Tiling
    gpu : Gpu, optional
        Over which the grid, and the sums of slices, are spread; by default the H200.

    Returns
    -------
    Schedule
        Not judged yet.

    Raises
    ------
    TransformError, IllegalSchedule
        If the product does not allow it.
    """
    require_tiling(t, form)
    b, adding, gpu = Builder(schedule, judged=False), "", gpu or default_gpu()
    before = form
    if t.slices > 1:
        form, adding = sliced_apart(b, form, t.chunk(form))
    tile = _blocks(b, form, t, gpu)
    update, tiles = _apart(b, form, tile), boxes(form, t)
    parts = in_parts(b, form)
    if t.persistent and form.sums:  # each tile has its own parts of the sums
        _persist(b, form, t)
    result, copy = outlined(b, form.update, t.matrix) if t.through else ("", "")
    by_engine = bool(result) and t.bulk_stores and t.engine == "warpgroup" and 1 in (t.down, t.across)
    down = for_one_thread(b, result) if by_engine else True
    ways: dict[str, Callable[[Builder, ProductForm, Tiling, tuple[str, ...]], None]] = {
        "warpgroup": _of_groups, "warp": _of_warps, "plain": _of_threads}
    ways[t.engine](b, form, t, update)
    joined(b, parts, t.engine == "warpgroup")
    if any(form.cut):
        b.attempt("trim", update[-1])
    role = "thread.x" if t.engine == "warpgroup" else "lane"
    if copy:
        in_fragments(b, copy, role)
    for temporary in own_temporaries(b.plan, form.kernel):
        if temporary not in b.plan.buffer_of and not (result and temporary == b.plan.statement_of[result].reads[0].array):
            b.do("contract", temporary, "register")
    if result:
        extents, boxed = (*form.row_extents, *form.column_extents), (*tiles[0], *tiles[1])
        ragged = any(extent % size for extent, size in zip(extents, boxed, strict=True))
        if not by_engine:
            stored(b, result, role, form.aligned or WIDEST, ragged)
        elif not by_bulk_stores(b, result, tiles[0] if down else tiles[1]):
            return build(schedule, before, replace(t, bulk_stores=False), gpu)
    if copy:
        b.attempt("store_matrix", copy)
    pairs(b, form.kernel, vectors=t.engine != "plain" or not deep(form))
    if needs_bounds(form, t, gpu):
        b.attempt("launch_bounds", form.kernel, held_blocks(form, t, gpu))
    return reduce(b.schedule, adding, gpu) if adding else b.schedule


def _blocks(b: Builder, form: ProductForm, t: Tiling, gpu: Gpu) -> tuple[str, ...]:
    """Loops over blocks, and over warps or threads, bound; the loops over the rows and columns of one of these."""
    for run in form.flat:
        b.do("coalesce", run)
    tiles, outer, inner = boxes(form, t), list[tuple[str, ...]](), list[list[str]]()
    for loops, box in zip((form.rows, form.columns), tiles, strict=True):
        inside = list[str]()
        for loop, size in zip(loops, box, strict=True):
            if size > 1 or len(loops) == 1:
                inside.append(b.plan.fresh(f"{loop}.w"))
                b.do("split", loop, size, inner=inside[-1])
        outer.append(loops)
        inner.append(inside)
    b.attempt("reorder", (*form.batch, *outer[0], *outer[1], *inner[0], *inner[1]))
    for group in (*inner, *outer, form.batch):
        if len(group) > 1:
            b.do("coalesce", tuple(group))
    (di, *_), (dj, *_) = inner
    own = spread_over_threads(b, form, t, di, dj) if t.engine == "plain" else _spread_over_warps(b, form, t, di, dj)
    if any(form.cut):
        longest_first(b, form)
    grid = (*form.batch[:1], form.rows[0], form.columns[0])
    if t.persistent and not form.sums:
        _persist(b, form, t)
    else:
        resident = held_blocks(form, t, gpu) * gpu.multiprocessors
        if form.cut[1] or (not form.cut[0] and rows_first(b.extent(grid[-2]), b.extent(grid[-1]), t, resident)):
            grid = (*grid[:-2], *reversed(grid[-2:]))
        for loop, role in zip(grid, reversed(BLOCK_AXES[: len(grid)]), strict=True):
            b.do("bind", loop, role)
    return own


def _persist(b: Builder, form: ProductForm, t: Tiling) -> None:
    """Few blocks that take the tiles in turn."""
    grid = (*form.batch[:1], form.rows[0], form.columns[0])
    b.do("persist", grid, t.persistent, **tile_order(b.extent(form.rows[0])))


def _spread_over_warps(b: Builder, form: ProductForm, t: Tiling, di: str, dj: str) -> tuple[str, ...]:
    """Deal the rows and columns of a block's tile out to its warps or warpgroups; the loops over the rows and columns of one."""
    ri, rj = di, dj
    if t.down > 1:
        ri = b.plan.fresh(f"{form.rows[-1]}.t")
        b.do("split", di, t.rows // t.down, inner=ri)
    if t.across > 1 or t.engine == "warp":
        rj = b.plan.fresh(f"{form.columns[-1]}.t")
        b.do("split", dj, t.columns // t.across, inner=rj)
    order = tuple(dict.fromkeys((di, dj, ri, rj)))
    b.attempt("reorder", (*(x for x in order if x not in (ri, rj)), ri, rj))
    if t.down > 1:
        b.do("bind", di, "thread.y")
    if t.engine == "warp":  # even a single one: its lanes take part in copies
        b.do("bind", dj, "warp")
    return ri, rj


def rows_first(rows: int, columns: int, t: Tiling, resident: int) -> bool:
    """Whether neighbours in a grid of so many tiles have the same columns, and other rows; else the same rows.

    So many blocks that are resident at a time read fewer rows of factors in one of the orders.  Where they read the same, the
    first is faster: 512 x 3072 x 768 in tiles of 64 x 192 took 8.2 µs by rows of tiles and 7.0 by columns, 512 x 4096 x 1024 in
    tiles of 64 x 128 took 11.2 and 8.5, and 12544 x 512 x 128, where it reads more, 8.4 and 8.9 (f16, H200).
    """
    by_columns = min(rows, resident) * t.rows + min(columns, -(-resident // rows)) * t.columns
    by_rows = min(columns, resident) * t.columns + min(rows, -(-resident // columns)) * t.rows
    return by_columns <= by_rows and columns <= GRID_LIMITS["block.y"]


def tile_order(rows: int) -> dict[str, object]:
    """How tiles of so many rows follow each other: groups of about `GROUPED` rows, all of them whole."""
    whole = next((n for n in sorted(range(2, 2 * GROUPED), key=lambda n: abs(n - GROUPED)) if rows % n == 0), 1)
    return {"order": "rows"} if whole == 1 else {"order": "grouped", "rows": whole} if whole < rows else {"order": "columns"}


def _apart(b: Builder, form: ProductForm, tile: tuple[str, ...]) -> tuple[str, ...]:
    """The sums in a nest of their own, the depth outermost; the loops over rows, columns and depth there."""
    above = nest_apart(b, tile, form.update)
    first = next(n for n, x in enumerate(above) if x in form.depths)
    own = above[first - len(tile): first]
    b.do("reorder", (*form.depths, *own))
    if form.gathered:
        b.do("coalesce", form.gathered)
    return (*own, form.depth)


def _split_depth(b: Builder, form: ProductForm, t: Tiling, loops: tuple[str, ...]) -> tuple[str, str]:
    """All loops over the depth as one over its steps, and the loop within a step, inside of the other `loops`."""
    *tile, depth = loops
    inner = b.plan.fresh(f"{depth}.i")
    b.do("split", depth, t.depth, inner=inner)
    if any(form.cut):
        shortened(b, form, depth)
    steps = form.depths if form.outer_depth else (depth,)
    if tile or steps[-1] != depth:
        b.do("reorder", (*steps, *tile, inner))
    if form.outer_depth:
        b.do("coalesce", steps)
    return steps[0], inner


def _of_groups(b: Builder, form: ProductForm, t: Tiling, loops: tuple[str, ...]) -> None:
    """A warpgroup's instructions on factors that bulk copies bring.

    A step may be deeper than a row of the swizzle: each panel of such rows is multiplied by instructions of its own.
    """
    depth, inner = _split_depth(b, form, t, loops)
    b.do("contract", form.total, "register")
    for slot, factor in enumerate((form.left, form.right)):
        row = min(t.depth * factor.dtype.bytes if factor.along == form.depth else ROW_BYTES, ROW_BYTES)
        if form.cut[slot]:
            _by_threads(b, _staged(b, form, t, slot, depth), row)
        else:
            b.do("stage", factor.array, depth, engine="bulk", swizzle=row, **_read(form, t, slot))
    if t.stages > 1 and not t.producer:
        b.do("pipeline", depth, t.stages)
    if t.depth > (row := t.row(form)):
        step = b.plan.fresh(f"{inner}.i")
        b.do("split", inner, row, inner=step).do("reorder", (inner, *loops[:-1], step)).do("unroll", inner)
    b.do("tensorize", form.update)
    if t.producer:
        b.do("specialise", depth, t.stages, registers=t.taken(form))
        _shared(b, form, t)
    if t.stages > 1:
        b.attempt("overlap", depth)


def _by_threads(b: Builder, copy: str, row: int) -> None:
    """A copy with zeros in it, which no box has, by all threads of a block, as instructions of warpgroups read it."""
    hit = b.plan.find(copy)
    assert hit is not None
    loop = next(x.id for x in hit[1] if x.id.startswith(f"{copy}."))
    if b.extent(loop) % GROUP == 0:
        inner = b.plan.fresh(f"{loop}.t")
        b.do("split", loop, GROUP, inner=inner).do("bind", inner, "thread.x")
    b.do("swizzle", copy, row)


def _shared(b: Builder, form: ProductForm, t: Tiling) -> None:
    """Boxes of the left factor for all tiles of a cluster in one row, and of the right one for those in one column."""
    for factor, along, count in ((form.left, form.columns[0], t.mates[1]), (form.right, form.rows[0], t.mates[0])):
        for leaf in [x for x, _, k in b.plan.leaves if k.id == form.kernel and x.mechanism == "bulk"]:
            if count > 1 and b.plan.statement_of[leaf.statement].reads[0].array == factor.array:
                b.do("multicast", leaf.id, BLOCK_AXES[0] if t.persistent else b.plan.loops[along].role, count)


def _of_warps(b: Builder, form: ProductForm, t: Tiling, loops: tuple[str, ...]) -> None:
    """A warp's instructions on fragments, loaded from factors that threads bring by asynchronous copies."""
    row = warp_instruction(form, t.step)
    assert row is not None
    rows, columns, _ = loops
    depth, inner = _split_depth(b, form, t, loops)
    b.do("contract", form.total, "register")
    copies = [_staged(b, form, t, slot, depth) for slot in (0, 1)]
    if b.extent(inner) > row.k:
        step = b.plan.fresh(f"{inner}.i")
        b.do("split", inner, row.k, inner=step).do("reorder", (inner, rows, columns, step))
    else:
        inner, step = depth, inner
    for copy in copies:  # eight rows of a fragment are read at once
        any(b.attempt("swizzle", copy, mode) for mode in reversed(MODES))
    if t.stages > 1 and not b.attempt("pipeline", depth, t.stages):
        b.attempt("pipeline", depth, 2, asynchronous=False)
    di, dj = b.plan.fresh(f"{rows}.i"), b.plan.fresh(f"{columns}.i")
    b.do("split", rows, row.m, inner=di).do("split", columns, row.n, inner=dj)
    b.do("reorder", (rows, columns, di, dj, step))
    registers = [_fragments(b, copy, inner) for copy in copies]
    b.do("tensorize", form.update)
    for name in registers:
        b.attempt("load_matrix", name)


def _of_threads(b: Builder, form: ProductForm, t: Tiling, loops: tuple[str, ...]) -> None:
    """Arithmetic of threads on factors that they bring by asynchronous copies; each has a tile of the results in registers."""
    *own, depth = loops
    depth, inner = _split_depth(b, form, t, (depth,))
    b.do("contract", form.total, "register")
    for slot, (factor, _) in enumerate(t.sides(form)):
        _staged(b, form, t, slot, depth, factor.padding, factor.transposed)
    if 0 < t.step < t.depth:
        whole, inner = inner, b.plan.fresh(f"{inner}.i")
        b.do("split", whole, t.step, inner=inner)
    if deep(form):
        right = _read_in(b, form, 1, depth)
        own = serpentine(b, [x for x in own if x not in right], [x for x in own if x in right])
    for loop in (inner, *own):
        if b.extent(loop) > 1 or loop == inner:
            b.do("unroll", loop)
    if t.stages > 1 and not b.attempt("pipeline", depth, t.stages):
        b.attempt("pipeline", depth, 2, asynchronous=False)


def _staged(b: Builder, form: ProductForm, t: Tiling, slot: int, at: str, pad: int = 0, transposed: bool = False) -> str:
    """A factor in shared memory, copied by the widest accesses that its rows allow, or gathered; the copy's name.

    With `transposed` it is stored column by column, one element at a time.
    """
    before, factor = {x.name for x in b.plan.copies}, (form.left, form.right)[slot]
    if transposed:
        b.do("stage", factor.array, at, pad=pad, axes=(1, 0), **_read(form, t, slot))
        return next(x.name for x in b.plan.copies if x.name not in before)
    width = WIDEST // factor.dtype.bytes if factor.along or not form.gathered else 0
    while width and not b.attempt("stage", factor.array, at, vector=width, pad=pad, **_read(form, t, slot)):
        width //= 2
    if not width:
        b.do("stage", factor.array, at, pad=pad, loops=_read_in(b, form, slot, at), **_read(form, t, slot))
    (name,) = {x.name for x in b.plan.copies} - before
    return name


def _read(form: ProductForm, t: Tiling, slot: int) -> dict[str, object]:
    """Which read a copy is for, where both factors are tiles of one array; whole tiles, of which half lies beyond the array."""
    which: dict[str, object] = {"read": slot} if form.left.array == form.right.array else {}
    deep = t.depth if t.engine == "warpgroup" else 1  # an instruction of a warp reads no fragment beyond its copy
    tile = (*boxes(form, t)[0], *boxes(form, t)[1], deep)
    half = any(2 * n <= size for n, size in zip((*form.row_extents, *form.column_extents, form.extents[2]), tile, strict=True))
    return which | ({"whole": True} if half else {}) | ({"masked": True} if form.cut[slot] else {})


def _read_in(b: Builder, form: ProductForm, slot: int, at: str) -> tuple[str, ...]:
    """The loops of a block within a step that a factor's elements depend on."""
    hit = b.plan.find(form.update)
    assert hit is not None
    leaf, above = hit
    assert isinstance(leaf, Leaf)
    access = b.plan.statement_of[leaf.statement].accesses[slot]
    used = frozenset[str]().union(*(e.substitute(leaf.places).variables() for e in access.index if isinstance(e, Expr)))
    below = [x.id for x in above].index(at)
    return tuple(x.id for n, x in enumerate(above) if x.id in used and (n > below or x.is_thread))


def _fragments(b: Builder, copy: str, at: str) -> str:
    """A copy's part in registers; the name of that copy."""
    before = {x.name for x in b.plan.copies}
    b.do("stage", copy, at, space="register")
    (name,) = {x.name for x in b.plan.copies} - before
    return name
