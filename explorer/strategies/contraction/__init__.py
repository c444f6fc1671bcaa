"""Contraction: products of matrices in tiles, on tensor cores, with pipelined copies of the factors.

A product is recognised from its accesses (:mod:`~explorer.strategies.contraction.form`), whatever the order of its operands; its
tilings are a small space (:mod:`~explorer.strategies.contraction.shapes`), ranked by one model
(:mod:`~explorer.strategies.contraction.model`), and built by moves (:mod:`~explorer.strategies.contraction.moves`), the depth in
slices where tiles are few (:mod:`~explorer.strategies.contraction.slices`).  Sums straight into an output, in any order of the
loops, get a temporary first (:mod:`~explorer.strategies.contraction.outputs`); products among other nests come apart
(:mod:`~explorer.strategies.contraction.apart`).  A convolution is a product whose tiles are boxes of pixels (implicit: no matrix
of windows is in memory), one for each of its groups (:mod:`~explorer.strategies.contraction.groups`); results that lie
otherwise than tiles are copied behind (:mod:`~explorer.strategies.contraction.laid_out`).  Pipelines over several stages are
ALCOP's (Huang et al., MLSys 2023).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import inf, log

from ...errors import ScheduleError, TransformError
from ...gpu.spec import Gpu, default_gpu
from ...schedule import Schedule
from .apart import products_apart as products_apart
from .apart import used_by_products as used_by_products
from .arrange import Way, ways
from .form import NARROW, WHOLE, ProductForm, product_form
from .model import ProductTime, product_time
from .moves import build
from .outputs import factors_outside as factors_outside
from .outputs import products_summed as products_summed
from .shapes import Tiling, sliced, tilings

TRIED, ELSE = 8, 2
"""Tilings that are tried, the cheapest first, until one can be built; and of each engine and way to store results at least."""
SAME = 0.02
"""Times nearer to each other than this share are not told apart.  Of those a producer comes first, then fewer warpgroups (more
threads at a time where memory bounds the time, or where warps multiply), and last more stages; with a producer, results through
shared memory and larger tiles before these.  Of plain arithmetic, deeper steps come first, then larger tiles, then two stages.

1024 x 1024 x 1024 of f16 took 6.1 µs in tiles of 64 x 128 and 6.6 in tiles of 128 x 64, 512 x 2304 x 768 took 6.9 in tiles of
64 x 192 and 7.6 in tiles of 192 x 64 (H200).  Blocks that take tiles in turn share factors in the second-level cache, which the
model does not know: at 4096³ and 8192³ of f16 they took 0.96 and 0.91 of the time on an H200.  4095 x 1000 x 777 of f32 took 163
µs in two stages of tiles of 64 x 128 x 16, 205 in four, and 174 in tiles of 64 x 256 x 8 (H100)."""
WORTH = 1.05
"""The depth is sliced where that saves more than 5 %; so are factors copied for plain arithmetic, whose threads copy words."""


@lru_cache(maxsize=256)
def ranked(form: ProductForm, gpu: Gpu) -> tuple[tuple[Tiling, ProductTime], ...]:
    """The tilings of a product, the cheapest first."""
    priced = [found for t in tilings(form, gpu) for found in _priced(form, t, gpu)]
    least = min((us.total_us for _, us in priced), default=1.0)

    def order(found: tuple[Tiling, ProductTime]) -> tuple[object, ...]:
        t, us = found
        held = us.total_us * (WORTH if t.slices > 1 else 1.0)
        alike = int(log(held / least) / SAME)
        few = t.engine == "warpgroup" and us.memory_us < us.fill_us + us.steps_us + us.store_us
        threads = t.threads if few else -t.threads * us.resident * (t.engine != "plain")
        large: tuple[int, ...] = (not t.through, -t.rows * t.columns) if t.producer else ()
        if t.engine == "plain":
            large = (-t.depth, -t.rows * t.columns, abs(t.stages - 2))
        return alike, t.slices > 1, not t.producer, threads, large, -t.stages, us.total_us, str(t)

    return tuple(sorted(priced, key=order))


def _priced(form: ProductForm, t: Tiling, gpu: Gpu) -> Iterator[tuple[Tiling, ProductTime]]:
    """A tiling, and of those that slice its depth the cheapest, if that is cheaper."""
    whole = product_time(form, t, gpu)
    if whole is None:
        return
    yield t, whole
    slices = [(s, us) for s in sliced(t, form, gpu) if (us := product_time(form, s, gpu)) is not None]
    best = min(slices, key=lambda found: found[1].total_us, default=(t, whole))
    if best[1].total_us < whole.total_us:
        yield best


def contraction(schedule: Schedule, kernel: str = "", gpu: Gpu | None = None, tiling: Tiling | None = None,
                way: str = "") -> Schedule:
    """Give a product of matrices tiles, stages and tensor instructions.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Which kernel (default: the first); nothing of it is spread.
    gpu : Gpu, optional
        By default the H200.
    tiling : Tiling, optional
        By default the cheapest by the model that can be built.
    way : str
        How the product of this tiling is written (:mod:`~explorer.strategies.contraction.arrange`), by its label.

    Returns
    -------
    Schedule
        Legal and without open obligations of its own; the same schedule where the kernel is no product, or the GPU has no
        instruction for its types.

    Raises
    ------
    ScheduleError
        If the tiling that is asked for cannot be built.
    """
    kernel, gpu = kernel or schedule.plan.kernels[0].id, gpu or default_gpu()
    found = [*ways(schedule, kernel, gpu)]
    if not found or (tiling is None and min(found[0].form.extents[:2]) < NARROW):
        return schedule
    if tiling is not None:
        taken = next((w for w in found if w.label == way), None)
        if taken is None:
            raise TransformError(f"{kernel} has no product with {way}", hint=f"one of {', '.join(repr(w.label) for w in found)}")
        return build(taken.schedule, taken.form, tiling, gpu)
    return next((s for w in sorted(found, key=lambda w: least_us(w, gpu)) for s in _built(w.schedule, w.form, gpu)), schedule)


def contraction_us(schedule: Schedule, kernel: str, gpu: Gpu) -> float | None:
    """What the model says a kernel takes so; None where :func:`contraction` leaves it alone."""
    found = [*ways(schedule, kernel, gpu)]
    if not found or min(found[0].form.extents[:2]) < NARROW:
        return None
    least = min(least_us(w, gpu) for w in found)
    return least if least < inf else None


def is_narrow(schedule: Schedule, kernel: str) -> bool:
    """Whether a kernel is a product of which most of a tile would lie beyond its rows, or columns."""
    form = product_form(schedule, kernel)
    return form is not None and min(form.extents[:2]) < WHOLE


def least_us(way: Way, gpu: Gpu) -> float:
    """The time of the cheapest tiling, with that of copies before it, which are to be worth it for plain arithmetic."""
    us, engine = min(((us.total_us, t.engine) for t, us in ranked(way.form, gpu)), default=(inf, ""))
    return (way.copy_us + us) * (WORTH if way.slices > 1 or (way.copy_us and engine == "plain") else 1.0)


def _built(schedule: Schedule, form: ProductForm, gpu: Gpu) -> Iterator[Schedule]:
    """The schedules of the cheapest tilings that can be built; what one engine cannot bring, another one may."""
    every = [t for t, _ in ranked(form, gpu)]
    kinds = dict.fromkeys((t.engine, t.through, t.persistent > 0) for t in every)
    others = [[t for t in every if (t.engine, t.through, t.persistent > 0) == kind][:ELSE] for kind in kinds]
    for t in dict.fromkeys((*every[:TRIED], *(t for several in others for t in several))):
        try:
            made = build(schedule, form, t, gpu)
        except ScheduleError:
            continue
        if made.judgement.legal:
            yield made
