"""Ways to write a product before it is tiled: its factors in the other order, or copied with the depth along memory.

A convolution whose channels are no neighbours in memory gives tensor instructions single elements: pixels with their shifts begin
at no multiple of 16 bytes, and a channel's weights lie filter by filter.  A launch that copies the factors with the channels
last (`rearrange`) costs one read and one write of each, and then bulk copies bring whole rows.  And where the results lie along
the rows of a product, its factors trade places (`commute`), so that a lane holds neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from ...errors import ScheduleError, TransformError
from ...gpu.spec import Gpu
from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Node
from ...schedule import Schedule
from .._steps import Builder, chain
from ..stitching.rates import LATENCY_US, LAUNCH_US, bandwidth_of
from .form import ProductForm, product_form
from .groups import ready_form

TILE, THREADS_DOWN = 64, 8
"""Elements of a tile of a copy along each of two axes, and threads across it."""
PAIR_BYTES = 4
"""Bytes that a lane of a copy takes at a time."""
COMMUTED, COPIED = "factors exchanged", "factors copied with the depth along memory"
"""What is done, in words."""
PASSES = 1.15
"""A copy's bytes over what it would take at the memory's bandwidth: its tiles are small."""


@dataclass(frozen=True)
class Way:
    """A product as it is to be tiled.

    Attributes
    ----------
    label : str
        In words; "" as the program says.
    schedule : Schedule
    form : ProductForm
    copy_us : float
        Of the launch that copies factors, if there is one.
    """

    label: str
    schedule: Schedule
    form: ProductForm
    copy_us: float = 0.0


def ways(schedule: Schedule, kernel: str, gpu: Gpu) -> Iterator[Way]:
    """The ways to write a kernel's product; none where it is no product."""
    ready, form = ready_form(schedule, kernel)
    if form is None:
        return
    yield Way("", ready, form)
    if form.across and not form.grouped and not form.gathered and (other := _commuted(ready, form)):
        yield Way(COMMUTED, *other)  # gathered pixels as columns took 1.6 times as long on an H200 as gathered rows
    wanted = {f.array: axes for slot, f in enumerate((form.left, form.right)) if (axes := _depth_last(ready.plan, form, slot))}
    if not wanted or form.gathered:
        return
    try:
        copied = _rearranged(ready, form, wanted)
    except ScheduleError:
        return
    nbytes = sum(ready.plan.array_of[name].nbytes for name in wanted)
    us = LAUNCH_US + LATENCY_US + PASSES * 2 * nbytes / bandwidth_of(gpu)
    if copied[1].left.along == copied[1].depth == copied[1].right.along:
        yield Way(COPIED, *copied, us)
        if copied[1].across and not form.grouped and (other := _commuted(*copied)):
            yield Way(f"{COPIED}, {COMMUTED}", *other, us)


def _commuted(schedule: Schedule, form: ProductForm) -> tuple[Schedule, ProductForm] | None:
    b = Builder(schedule, judged=False)
    found = product_form(b.schedule, form.kernel) if b.attempt("commute", form.update) else None
    return None if found is None else (b.schedule, found)


def _depth_last(plan: Plan, form: ProductForm, slot: int) -> tuple[int, ...]:
    """The axes of a factor with that of the depth last; nothing where it is, or where others use the factor, too."""
    leaf = next(leaf for leaf, _, _ in plan.leaves if leaf.id == form.update)
    access = plan.statement_of[leaf.statement].reads[slot]
    array, rank = plan.array_of[access.array], len(access.index)
    index = [e.substitute(leaf.places) for e in access.index if isinstance(e, Expr)]
    along = [n for n, e in enumerate(index) if form.depth in e.variables()]
    readers = {k.id for leaf, _, k in plan.leaves for r in plan.statement_of[leaf.statement].reads if r.array == array.name}
    if array.role != "in" or len(index) < rank or len(along) != 1 or readers != {form.kernel}:
        return ()
    if prod(array.shape[along[0] + 1:]) == 1:
        return ()
    return (*(n for n in range(rank) if n != along[0]), along[0])


def _rearranged(schedule: Schedule, form: ProductForm, wanted: dict[str, tuple[int, ...]]) -> tuple[Schedule, ProductForm]:
    """The factors copied in a launch of its own; the product behind it.

    Raises
    ------
    ScheduleError
        If it is no product any more.
    """
    b = Builder(schedule, judged=False)
    product = copied_first(b, form.kernel, wanted)
    found = product_form(b.schedule, product)
    if found is None:
        raise TransformError(f"with its factors copied, {product} is no product")
    return b.schedule, found


def copied_first(b: Builder, kernel: str, wanted: dict[str, tuple[int, ...]]) -> str:
    """Inputs that a kernel alone reads copied with one of their axes moved last, in a launch before it; the kernel's new name.

    Parameters
    ----------
    b : Builder
    kernel : str
    wanted : dict of str to tuple of int
        Array to its axes in the copy's order.

    Raises
    ------
    TransformError, IllegalSchedule
        If an array is not an input that is only read.
    """
    copies = dict[str, str]()
    for name, axes in wanted.items():
        known = {n.id for n in _body(b.plan, kernel)}
        b.do("rearrange", name, axes)
        (copies[name],) = (n.id for n in _body(b.plan, kernel) if n.id not in known)
    kernels = {k.id for k in b.plan.kernels}
    b.do("launch", kernel, after=copies[next(iter(wanted))])  # the first one that was made stands right before the product
    (product,) = (k.id for k in b.plan.kernels if k.id not in kernels)
    for name, axes in wanted.items():
        _transposed(b, name, copies[name], axes[-1])
    return product


def _transposed(b: Builder, array: str, nest: str, axis: int) -> None:
    """A copy whose last axis was `axis` of the array, in square tiles through shared memory: read and written along memory."""
    *outer, row, moved = (x.id for x in chain(b.plan.loops[nest]))
    size, inside = b.plan.array_of[array].dtype.bytes, list[str]()
    wide, room = max(1, PAIR_BYTES // size), TILE
    for loop in reversed((*outer[axis:], row)):  # as many whole rows as make a tile
        extent = b.extent(loop)
        part = extent if extent <= (room + TILE // 2 if loop == row else room) else max(1, room)
        room //= part
        if part > 1 or loop == row:
            inside.insert(0, b.plan.fresh(f"{loop}.i"))
            b.do("split", loop, part, inner=inside[0])
    lanes = b.plan.fresh(f"{moved}.i")
    b.do("split", moved, min(TILE, -(-b.extent(moved) // wide) * wide), inner=lanes)
    b.do("reorder", (*outer, row, moved, *inside, lanes))
    for group in (outer[:axis], [*outer[axis:], row]):
        if len(group) > 1:
            b.do("coalesce", tuple(group))
    first = (outer[axis:] or [row])[0]
    for loop, role in (*((x, "block.z") for x in outer[:1] if axis), (first, "block.x"), (moved, "block.y")):
        b.do("bind", loop, role)
    down = inside[-1]
    if b.extent(down) > THREADS_DOWN:
        down = b.plan.fresh(f"{inside[-1]}.t")
        b.do("split", inside[-1], THREADS_DOWN, inner=down)
    b.do("bind", down, "thread.y")
    pair = b.plan.fresh(f"{lanes}.v")
    if wide > 1 and b.extent(lanes) % wide == 0 and b.extent(lanes) > wide:
        b.do("split", lanes, wide, inner=pair)
    b.do("bind", lanes, "thread.x")
    _staged(b, array, moved, wide)
    if pair in b.plan.loops:
        _staged_again(b, array, lanes)
        if not b.attempt("vectorize", pair):
            b.do("unroll", pair)
    for loop in inside:
        if loop in b.plan.loops and b.plan.loops[loop].role == "seq":
            b.attempt("unroll", loop)


def _staged(b: Builder, array: str, at: str, wide: int) -> None:
    """A tile in shared memory, by the widest accesses of a thread that it allows; columns of it lie in different banks."""
    while wide > 1:
        if b.attempt("stage", array, at, vector=wide, pad=wide):
            return
        wide //= 2
    b.do("stage", array, at, pad=1)


def _staged_again(b: Builder, array: str, at: str) -> None:
    """What a thread writes side by side is brought together in its registers."""
    copy = next(c.name for c in reversed(b.plan.copies) if c.reads[0].array == array)
    b.attempt("stage", copy, at, space="register")


def _body(plan: Plan, kernel: str) -> tuple[Node, ...]:
    return next(k.body for k in plan.kernels if k.id == kernel)
