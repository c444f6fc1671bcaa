"""Ways to write a product before it is tiled: its factors in the other order, or copied to where bulk copies reach them.

A convolution whose channels are no neighbours in memory gives tensor instructions single elements: pixels with their shifts begin
at no multiple of 16 bytes, and a channel's weights lie filter by filter.  A launch that copies the factors with the channels
last (`rearrange`) costs one read and one write of each, and then bulk copies bring whole rows.  So does one that pads the rows
of factors, where these begin at no multiples of 16 bytes.  And where the results lie along the rows of a product, its factors
trade places (`commute`), so that a lane holds neighbours.  Where the depth is several loops and tiles are few, as in the gradient
of a convolution's weights, one of these loops is cut into slices (:mod:`~explorer.strategies.contraction.slices`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import prod

from ...errors import ScheduleError, TransformError
from ...gpu.spec import Gpu
from ...ir.expr import Expr
from ...ir.plan import Plan
from ...schedule import Schedule
from .._steps import Builder
from ..pipelines.rates import LINE_BYTES
from ..reductions import reduce
from ..stitching.rates import LATENCY_US, LAUNCH_US, bandwidth_of
from .copies import Laid, copied_first
from .form import Factor, ProductForm, product_form
from .groups import ready_form
from .model import join_us
from .slices import sliced_apart

COMMUTED, COPIED, PADDED = "factors exchanged", "factors copied with the depth along memory", "factors copied to padded rows"
"""What is done, in words."""
PASSES = 1.15
"""A copy's bytes over what it would take at the memory's bandwidth: its tiles are small."""
TILE = 64
"""Rows and columns of a tile, about: with few of them, slices of the depth are tried."""
FEW = 4
"""Iterations of a loop, as those over a filter, that is not cut into slices."""
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
    yield Way("", ready, form)
    if form.across and not form.grouped and not form.gathered and (other := _commuted(ready, form)):
        yield Way(COMMUTED, *other)  # gathered pixels as columns took 1.6 times as long on an H200 as gathered rows
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


def _copied(label: str, schedule: Schedule, form: ProductForm, wanted: dict[str, Laid], gpu: Gpu) -> Iterator[Way]:
    """The product behind a launch that copies factors; nothing where it is no product then."""
    with suppress(ScheduleError):
        nbytes = sum(schedule.plan.array_of[name].nbytes for name in wanted)
        us = LAUNCH_US + LATENCY_US + PASSES * 2 * nbytes / bandwidth_of(gpu)
        yield Way(label, *_rearranged(schedule, form, wanted), us)


def _sliced(way: Way, gpu: Gpu) -> Iterator[Way]:
    """The product with one of several loops along its depth in slices, where tiles are few, and a launch that adds them up."""
    form = way.form
    m, n, _ = form.extents
    if not form.outer_depth or form.sums or any(form.cut):
        return
    if form.batches * -(-m // TILE) * -(-n // TILE) > gpu.multiprocessors // 2:
        return
    extent, loop = max(zip(form.outer_extents, form.outer_depth, strict=True))
    if extent < FEW:
        return
    results = form.batches * m * n * form.accumulator.bytes
    for chunk in sorted({1, -(-extent // 2), -(-extent // 8)}):
        with suppress(ScheduleError):
            b, slices = Builder(way.schedule, judged=False), -(-extent // chunk)
            found, adding = sliced_apart(b, form, chunk, loop)
            us = join_us(form.batches * m * n * slices * form.accumulator.bytes, results, gpu)
            label = f"{way.label}, {slices} slices of {loop}" if way.label else f"{slices} slices of {loop}"
            yield Way(label, reduce(b.schedule, adding, gpu), found, way.copy_us + us, slices)


def _commuted(schedule: Schedule, form: ProductForm) -> tuple[Schedule, ProductForm] | None:
    b = Builder(schedule, judged=False)
    found = product_form(b.schedule, form.kernel) if b.attempt("commute", form.update) else None
    return None if found is None else (b.schedule, found)


def _depth_last(plan: Plan, form: ProductForm, slot: int, factor: Factor) -> Laid | None:
    """A copy of a factor whose last axis is that of the depth; None where it is, or where others use the factor, too."""
    leaf = next(leaf for leaf, _, _ in plan.leaves if leaf.id == form.update)
    access = plan.statement_of[leaf.statement].reads[slot]
    array, rank = plan.array_of[access.array], len(access.index)
    index = [e.substitute(leaf.places) for e in access.index if isinstance(e, Expr)]
    along = [n for n, e in enumerate(index) if form.depth in e.variables()]
    if not _own_input(plan, form, factor) or len(index) < rank or len(along) != 1 or prod(array.shape[along[0] + 1:]) == 1:
        return None
    return Laid((*(n for n in range(rank) if n != along[0]), along[0]), _behind(array.shape[along[0]], array.dtype.bytes))


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
