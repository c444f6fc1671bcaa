"""Ways to write a product before it is tiled: its factors in the other order, or copied to where bulk copies reach them.

A convolution whose channels are no neighbours in memory gives tensor instructions single elements: pixels with their shifts begin
at no multiple of 16 bytes, and a channel's weights lie filter by filter.  A launch that copies the factors with the channels
last (`rearrange`) costs one read and one write of each, and then bulk copies bring whole rows.  So does one that pads the rows
of factors, where these begin at no multiples of 16 bytes.  And where the results lie along the rows of a product, its factors
trade places (`commute`), so that a lane holds neighbours.  Where the depth is several loops, as in the gradient of a
convolution's weights, tiles run along the rows' and columns' own axis of memory (`reorder`), behind copies with this axis last
where they lie otherwise; and where tiles are few, one of the depth's loops is cut into slices
(:mod:`~explorer.strategies.contraction.slices`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod

from ...errors import ScheduleError, TransformError
from ...gpu.spec import Gpu
from ...ir.expr import Expr
from ...ir.plan import Plan
from ...schedule import Schedule
from .._steps import Builder, chain
from ..pipelines.rates import LINE_BYTES
from ..reductions import reduce
from ..stitching.rates import LATENCY_US, LAUNCH_US, bandwidth_of
from .copies import Laid, copied_first
from .flat import depth_as_one
from .form import Factor, ProductForm, product_form
from .groups import ready_form
from .laid_out import results_copied
from .model import join_us
from .slices import sliced_apart

COMMUTED, COPIED, PADDED = "factors exchanged", "factors copied with the depth along memory", "factors copied to padded rows"
TURNED, WALKED = "factors copied with rows and columns along memory", "loops in the order of memory"
ONE, LAID = "loops of the depth as one", "results copied behind"
"""What is done, in words."""
PASSES = 1.15
"""A copy's bytes over what it would take at the memory's bandwidth: its tiles are small."""
TILE = 64
"""Rows and columns of a tile, about: with few of them, slices of the depth are tried."""
TILES = 2
"""Of these for each multiprocessor, at most: larger tiles, which multiply more for each byte, leave some idle then."""
FEW = 4
"""Iterations of a loop, as those over a filter, that is not cut into slices."""
LEAST_ROW = 16
"""Elements of an axis along which a factor's copy is laid, at least: rows of an instruction's tile."""
GRAIN = 16
"""Bytes that divide what rows of an array are apart which a bulk copy reads (:mod:`~explorer.poly.bulk`)."""


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
        Of the launch that copies factors, and of the one that adds up slices, if there are such.
    slices : int
        Of a loop along the depth.
    """

    label: str
    schedule: Schedule
    form: ProductForm
    copy_us: float = 0.0
    slices: int = 1


def ways(schedule: Schedule, kernel: str, gpu: Gpu) -> Iterator[Way]:
    """The ways to write a kernel's product; none where it is no product."""
    ready, form = ready_form(schedule, kernel)
    if form is None:
        return
    yield from _tiled_ways(ready, form, gpu)
    if form.outer_depth and (form.spaced or not form.across) and (laid := results_copied(ready, form)):
        us = LAUNCH_US + LATENCY_US + PASSES * 2 * laid.nbytes / bandwidth_of(gpu)
        for way in _tiled_ways(laid.schedule, laid.form, gpu):
            if way.slices == 1:
                yield replace(way, label=f"{way.label}, {LAID}" if way.label else LAID, copy_us=way.copy_us + us)


def _tiled_ways(ready: Schedule, form: ProductForm, gpu: Gpu) -> Iterator[Way]:
    """The ways to write a product whose results lie as the program says."""
    yield Way("", ready, form)
    if form.across and not form.grouped and not form.gathered and (other := _commuted(ready, form)):
        yield Way(COMMUTED, *other)  # gathered pixels as columns took 1.6 times as long on an H200 as gathered rows
    if (form.gathered or form.outer_depth) and (other := depth_as_one(ready, form)):
        yield (way := Way(ONE, *other))
        yield from _sliced(way, gpu)
    if form.gathered:
        return
    yield from _sliced(Way("", ready, form), gpu)
    if padded := {f.array: Laid(tuple(range(len(ready.plan.array_of[f.array].shape))), pad)
                  for f in (form.left, form.right) if (pad := _padding(ready.plan, form, f))}:
        yield from _copied(PADDED, ready, form, padded, gpu)
    if wanted := {f.array: laid for slot, f in enumerate((form.left, form.right))
                  if (laid := _depth_last(ready.plan, form, slot, f))}:
        for way in _copied(COPIED, ready, form, wanted | {k: v for k, v in padded.items() if k not in wanted}, gpu):
            if way.form.left.along == way.form.depth == way.form.right.along:
                yield way
                yield from _sliced(way, gpu)
                if way.form.across and not form.grouped and (other := _commuted(way.schedule, way.form)):
                    yield Way(f"{COPIED}, {COMMUTED}", *other, way.copy_us)
    if not form.outer_depth:
        return
    if wanted := {f.array: laid for slot, f in enumerate((form.left, form.right))
                  if (laid := _own_last(ready.plan, form, slot, f))}:
        for way in _copied(TURNED, ready, form, wanted, gpu):
            other = _walked(way.schedule, way.form) or (way.schedule, way.form)
            if all(f.along in f.free for f in (way.form.left, way.form.right)):
                yield (way := Way(way.label, *other, way.copy_us))
                yield from _sliced(way, gpu)
    elif other := _walked(ready, form):
        yield (way := Way(WALKED, *other))
        yield from _sliced(way, gpu)


def _copied(label: str, schedule: Schedule, form: ProductForm, wanted: dict[str, Laid], gpu: Gpu) -> Iterator[Way]:
    """The product behind a launch that copies factors; nothing where it is no product then."""
    with suppress(ScheduleError):
        nbytes = sum(schedule.plan.array_of[name].nbytes for name in wanted)
        us = LAUNCH_US + LATENCY_US + PASSES * 2 * nbytes / bandwidth_of(gpu)
        yield Way(label, *_rearranged(schedule, form, wanted), us)


def _sliced(way: Way, gpu: Gpu) -> Iterator[Way]:
    """The product with one of several loops along its depth in slices, where tiles are few, and a launch that adds them up."""
    form = way.form
    if not form.outer_depth or form.sums or any(form.cut) or not _few_tiles(form, gpu):
        return
    extent, loop = max(zip(form.outer_extents, form.outer_depth, strict=True))
    if extent < FEW:
        return
    results = form.batches * prod(form.extents[:2]) * form.accumulator.bytes
    for chunk in sorted({1, -(-extent // 2), -(-extent // 8)}):
        with suppress(ScheduleError):
            b, slices = Builder(way.schedule, judged=False), -(-extent // chunk)
            found, adding = sliced_apart(b, form, chunk, loop)
            us = join_us(slices * results, results, gpu)
            label = f"{way.label}, {slices} slices of {loop}" if way.label else f"{slices} slices of {loop}"
            yield Way(label, reduce(b.schedule, adding, gpu), found, way.copy_us + us, slices)


def _few_tiles(form: ProductForm, gpu: Gpu) -> bool:
    """Whether tiles leave many multiprocessors idle."""
    m, n, _ = form.extents
    return form.batches * -(-m // TILE) * -(-n // TILE) <= TILES * gpu.multiprocessors


def _commuted(schedule: Schedule, form: ProductForm) -> tuple[Schedule, ProductForm] | None:
    b = Builder(schedule, judged=False)
    found = product_form(b.schedule, form.kernel) if b.attempt("commute", form.update) else None
    return None if found is None else (b.schedule, found)


def _walked(schedule: Schedule, form: ProductForm) -> tuple[Schedule, ProductForm] | None:
    """The product with the loops along which its factors lie in memory innermost; None where they are, or cannot be."""
    moved = [f.along for f in (form.left, form.right) if f.along in f.free[:-1]]
    b = Builder(schedule, judged=False)
    body = next(k.body for k in b.plan.kernels if k.id == form.kernel)
    loops = [x.id for x in chain(body[0])] if len(body) == 1 else []
    order = (*(x for x in loops if x not in moved), *(x for x in loops if x in moved))
    if not moved or not set(moved) <= set(loops) or not b.attempt("reorder", order):
        return None
    found = product_form(b.schedule, form.kernel)
    return None if found is None else (b.schedule, found)


def _depth_last(plan: Plan, form: ProductForm, slot: int, factor: Factor) -> Laid | None:
    """A copy of a factor whose last axis is that of the depth; None where it is, or where others use the factor, too."""
    return _last(plan, form, factor, [n for n, e in enumerate(_index(plan, form, slot)) if form.depth in e.variables()])


def _own_last(plan: Plan, form: ProductForm, slot: int, factor: Factor) -> Laid | None:
    """A copy with the axis of a factor's own rows or columns last; None where it is, is short, or where others use the factor."""
    own, depths = set(factor.free), set(form.depths)
    found = [n for n, e in enumerate(_index(plan, form, slot)) if e.variables() & own and not e.variables() & depths]
    return _last(plan, form, factor, [n for n in found if plan.array_of[factor.array].shape[n] >= LEAST_ROW])


def _last(plan: Plan, form: ProductForm, factor: Factor, axes: list[int]) -> Laid | None:
    """A copy of a factor with this one of its axes last."""
    array = plan.array_of[factor.array]
    if not _own_input(plan, form, factor) or len(axes) != 1 or prod(array.shape[axes[0] + 1:]) == 1:
        return None
    others = [n for n in range(len(array.shape)) if n != axes[0]]
    return Laid((*_in_order(plan, form, factor, others), axes[0]), _behind(array.shape[axes[0]], array.dtype.bytes))


def _in_order(plan: Plan, form: ProductForm, factor: Factor, axes: list[int]) -> list[int]:
    """Some axes of a factor, those of its rows or columns in the order of their loops: so they are a tile's in memory."""
    index = _index(plan, form, (form.left, form.right).index(factor))
    first = {n: next((at for at, x in enumerate(factor.free) if x in index[n].variables()), -1) for n in axes}
    own = iter(sorted((n for n in axes if first[n] >= 0), key=lambda n: first[n]))
    return [next(own) if first[n] >= 0 else n for n in axes]


def _index(plan: Plan, form: ProductForm, slot: int) -> list[Expr]:
    """A factor's index in the loops; nothing where data choose an element."""
    leaf = next(leaf for leaf, _, _ in plan.leaves if leaf.id == form.update)
    index = plan.statement_of[leaf.statement].reads[slot].index
    exprs = [e.substitute(leaf.places) for e in index if isinstance(e, Expr)]
    return exprs if len(exprs) == len(index) else []


def _padding(plan: Plan, form: ProductForm, factor: Factor) -> int:
    """Elements behind each row of a factor's copy; 0 where rows of the factor itself are as far apart as bulk copies ask."""
    array = plan.array_of[factor.array]
    if not factor.along or not _own_input(plan, form, factor) or len(array.shape) < 2:
        return 0
    return _behind(array.shape[-1], array.dtype.bytes)


def _behind(row: int, size: int) -> int:
    """Elements behind a row that no tensor map takes, so that rows of the copy begin at whole lines of the cache."""
    return -row % (LINE_BYTES // size) if GRAIN % size == 0 and row * size % GRAIN else 0


def _own_input(plan: Plan, form: ProductForm, factor: Factor) -> bool:
    """Whether a factor is an input with elements that the product alone reads."""
    readers = {k.id for leaf, _, k in plan.leaves for r in plan.statement_of[leaf.statement].reads if r.array == factor.array}
    array = plan.array_of[factor.array]
    return array.role == "in" and all(array.shape) and readers == {form.kernel}


def _rearranged(schedule: Schedule, form: ProductForm, wanted: dict[str, Laid]) -> tuple[Schedule, ProductForm]:
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
