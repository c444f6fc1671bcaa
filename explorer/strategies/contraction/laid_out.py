"""Results that lie otherwise than tiles: a temporary has them with the tiles' columns last, and a launch behind copies them.

A transposed convolution with channels first writes two neighbours of a row at a time, the gradient of a filter single elements:
each store fills a part of a sector.  The temporary's rows are written in whole sectors, and a transposing copy, which reads and
writes along memory, takes one more read and write of the results.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from ...errors import ScheduleError
from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Leaf
from ...schedule import Schedule
from .._steps import Builder, chain
from ..stitching.moves import separate_leaves
from .accesses import index_of, strides_of
from .copies import PAIR_BYTES, THREADS_DOWN, TILE, staged, staged_again
from .form import ProductForm, product_form


class LaidOut(NamedTuple):
    """A product whose results are copied behind it.

    Attributes
    ----------
    schedule : Schedule
    form : ProductForm
    nbytes : int
        Of the results.
    """

    schedule: Schedule
    form: ProductForm
    nbytes: int


def results_copied(schedule: Schedule, form: ProductForm) -> LaidOut | None:
    """The product with its results laid out for its tiles, and a launch that copies them; None where they lie so, or cannot.

    Before::

        for n in 0…N
            for k in 0…K
                for p in 0…P
                    total = 0
                    for c in 0…C
                        total += x[n, p, c] * f[c, k]
                    y[n, k, p] = total

    After::

        for n in 0…N
            for p in 0…P
                for k in 0…K
                    total = 0
                    for c in 0…C
                        total += x[n, p, c] * f[c, k]
                    y_t[n, p, k] = total
        for n.2 in 0…N
            for k.2 in 0…K
                for p.2 in 0…P
                    y[n.2, k.2, p.2] = y_t[n.2, p.2, k.2]
    """
    with suppress(ScheduleError):
        return _made(schedule, form)
    return None


def _made(schedule: Schedule, form: ProductForm) -> LaidOut | None:
    b, longest = Builder(schedule, judged=False), max(zip(form.column_extents, form.columns, strict=True))[1]
    result = _result(b.plan, form)
    index = index_of(b.plan, result, len(b.plan.statement_of[result.statement].reads)) if result else None
    if result is None or index is None or (axis := _axis(index, longest)) is None or axis == len(index) - 1:
        return None
    if strides_of(b.plan, result, len(b.plan.statement_of[result.statement].reads))[longest] == 1:
        return None
    known = {leaf.id for leaf, _, _ in b.plan.leaves}
    b.do("outline", result.id)
    (store,) = (leaf for leaf, _, _ in b.plan.leaves if leaf.id not in known)
    copy = b.plan.statement_of[store.statement]
    temporary, size = copy.reads[0].array, b.plan.array_of[copy.target.array].dtype.bytes
    kernels = separate_leaves(b, form.kernel, {leaf.id: int(leaf.id == store.id) for leaf, _, k in b.plan.leaves
                                               if k.id == form.kernel})
    if len(kernels) != 2:
        return None
    b.do("rearrange", temporary, (*(n for n in range(len(index)) if n != axis), axis))
    axes = _loop_per_axis(b, store.id)
    if axes is None:
        return None
    _transposed(b, temporary, axes, axis, size)
    body = next(k.body for k in b.plan.kernels if k.id == form.kernel)
    loops = [x.id for x in chain(body[0])] if len(body) == 1 else []
    b.attempt("reorder", (*(x for x in loops if x != longest), longest))
    found = product_form(b.schedule, form.kernel)
    return None if found is None or found.columns[-1] != longest else LaidOut(
        b.schedule, found, b.plan.array_of[copy.target.array].nbytes)


def _result(plan: Plan, form: ProductForm) -> Leaf | None:
    """The one statement of the kernel that writes an output."""
    own = [leaf for leaf, _, k in plan.leaves if k.id == form.kernel]
    found = [leaf for leaf in own if plan.array_of[plan.statement_of[leaf.statement].target.array].role != "temporary"]
    return found[0] if len(found) == 1 and not plan.statement_of[found[0].statement].update else None


def _axis(index: tuple[Expr, ...], loop: str) -> int | None:
    """The axis that a loop walks alone."""
    found = [n for n, e in enumerate(index) if loop in e.variables()]
    return found[0] if len(found) == 1 and index[found[0]].variables() == {loop} else None


def _loop_per_axis(b: Builder, store: str) -> list[str] | None:
    """Let each axis of what a leaf writes be walked by one loop, from its first element on; their names in order, or None."""
    hit = b.plan.find(store)
    assert hit is not None
    leaf, above = hit
    assert isinstance(leaf, Leaf)
    index = index_of(b.plan, leaf, 1) or ()
    groups = [[str(atom) for atom, _ in sorted(e.terms, key=lambda term: -term[1])] for e in index]
    order = tuple(name for group in groups for name in group)
    if not all(groups) or sorted(order) != sorted(x.id for x in above):
        return None
    if order != tuple(x.id for x in above):
        b.do("reorder", order)
    for group, e in zip(groups, index, strict=True):
        if len(group) > 1:
            b.do("coalesce", tuple(group))
        if e.const:
            b.do("shift", group[0], e.const)
    return [group[0] for group in groups]


def _transposed(b: Builder, temporary: str, axes: list[str], axis: int, size: int) -> None:
    """The copy through shared memory, in tiles of a part of the temporary's last axis, `axis` of the results, and of theirs."""
    before, moved, behind = axes[:axis], axes[axis], axes[axis + 1:]
    wide, room, inside = max(1, PAIR_BYTES // size), TILE, list[str]()
    for loop in reversed(behind):  # as many whole rows of the results as make a tile
        extent = b.extent(loop)
        part = extent if extent <= (room + TILE // 2 if loop == behind[-1] else room) else max(1, room)
        room //= part
        if part > 1 or loop == behind[-1]:
            inside.insert(0, b.plan.fresh(f"{loop}.i"))
            b.do("split", loop, part, inner=inside[0])
    across = b.plan.fresh(f"{moved}.i")
    b.do("split", moved, min(TILE, b.extent(moved)), inner=across)
    b.do("reorder", (*before, moved, *behind, across, *inside))
    for group in (before, behind):
        if len(group) > 1:
            b.do("coalesce", tuple(group))
    for loop, role in zip((before[:1] or [""], [moved], behind[:1]), ("block.z", "block.y", "block.x"), strict=True):
        if loop[0]:
            b.do("bind", loop[0], role)
    if b.extent(across) > THREADS_DOWN:
        down = b.plan.fresh(f"{across}.t")
        b.do("split", across, THREADS_DOWN, inner=down)
        b.do("bind", down, "thread.y")
    else:
        b.do("bind", across, "thread.y")
    if len(inside) > 1:
        b.do("coalesce", tuple(inside))
    lanes, pair = inside[0], b.plan.fresh(f"{inside[0]}.v")
    if wide > 1 and b.extent(lanes) % wide == 0 and b.extent(lanes) > wide:
        b.do("split", lanes, wide, inner=pair)
    b.do("bind", lanes, "thread.x")
    staged(b, temporary, behind[0], wide)
    if pair in b.plan.loops:
        staged_again(b, temporary, lanes)
        if not b.attempt("vectorize", pair):
            b.do("unroll", pair)
    if b.plan.loops[across].role == "seq":
        b.attempt("unroll", across)
