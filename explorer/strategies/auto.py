"""The schedule to start from: the right strategy for each kernel of a program, by what the kernel is."""

from __future__ import annotations

from contextlib import suppress

from ..errors import ScheduleError, TransformError, noun, spoken
from ..gpu.spec import Gpu, target_gpu
from ..ir.tree import Loop, walk
from ..schedule import Schedule
from ._steps import Builder
from .attention import attention
from .contraction import factors_outside, used_by_products
from .contraction.factors import factors_before
from .default import default
from .guard import guarded
from .kernel_turns import Decide, cut, prepared, ridden, spread
from .price import price, through_memory_us
from .producers import chained, produced_in_place
from .stitch import stitch
from .stitching.graph import Graph
from .stitching.passes import in_one_pass
from .stitching.search import Search


@spoken(TransformError, "auto(schedule)")
def auto(schedule: Schedule, gpu: Gpu | str | None = None, approximate: bool = True, decide: Decide | None = None) -> Schedule:
    """A fast schedule by rules and a model, without tuning: of reductions, chains of loops, products, attention, windows.

    Other programs get the default.  In order:

    0. Sums that each term scatters are gathered by each element (:mod:`explorer.strategies.scatter_to_gather`).  A result's start
       and updates come under the same loops (:mod:`explorer.strategies.fuse_reduction`); products of matrices are summed in a
       temporary, the depth innermost (:mod:`explorer.strategies.contraction.outputs`); factors that are no elements are computed
       before, where that costs less (:mod:`explorer.strategies.contraction.factors`); and those that share a nest with other
       statements become kernels (:mod:`explorer.strategies.contraction.apart`).
    1. Column sums that stand behind a row nest are fused into it (:mod:`explorer.strategies.row_column`).
    2. Element-wise nests whose results only other nests read are computed there; nests that read what others have computed are
       stitched with them (:mod:`explorer.strategies.stitch`).
    3. Reductions of one array over the same loops come into one nest (:mod:`explorer.strategies.stitching.passes`).
    4. Nests at the top become kernels of their own (`launch`), each with the statements that start or end it.
    5. A kernel without reductions is spread flat over the GPU (:mod:`explorer.strategies.elementwise`).
    6. Reductions under parallel loops get their canonical form (:mod:`explorer.strategies.reductions`).
    7. A chain of loops over few and long rows is cut where that costs less (:mod:`explorer.strategies.stitch`), other chains
       are stitched in registers (:mod:`explorer.strategies.rows`).
    8. What is left gets the default schedule (:mod:`explorer.strategies.default`).
    9. Where that came out slower than the default by the price of plans (:mod:`explorer.strategies.price`), or computes too much
       again, or nests that share a kernel might be faster apart, the program is taken apart (:mod:`explorer.strategies.guard`).

    10. Two products with a softmax between them are one kernel where that costs less by the same price
        (:mod:`explorer.strategies.attention`).

    Parameters
    ----------
    schedule : Schedule
        A program as written.
    gpu : Gpu or str, optional
        By default the H200.
    approximate : bool
        Whether exponentials, logarithms and quotients may use the special-function units, as library kernels do; the steps
        `approximate` show where, and a run's tolerance grows by their errors.
    decide : callable, optional
        Asked before the rules, kernel by kernel, with the stage: ``"row_column"`` (1), ``"spread"`` (5 to 7), and once, with
        the kernel ``""``, ``"rest"`` (8); and before all of them ``"attention"`` (10).  This is how
        :mod:`explorer.strategies.choices` lists and builds other schedules.

    Returns
    -------
    Schedule
        Legal and without open obligations; its steps show what was done and can be replayed one by one.
    """
    target = target_gpu(gpu)
    if not isinstance(schedule, Schedule):
        raise TransformError(f"a strategy takes a schedule, not a {noun(schedule)}",
                             hint="program.schedule(M=…) makes one")
    start = factors_outside(schedule)
    own = decide("attention", start, "") if decide else None
    if own is not None:
        return own
    before = factors_before(start, approximate, target)
    if decide is not None:
        return guarded(schedule if before is start else before, target, approximate, decide, by_rules)
    whole = attention(start, gpu=target, approximate=approximate)
    if whole is not start and beats_scores_in_memory(whole, target):
        return whole
    every = [guarded(x, target, approximate, decide, by_rules) for x in ([schedule] if before is start else [schedule, before])]
    every += [whole] if whole is not start else []
    return every[0] if len(every) == 1 else min(every, key=lambda s: price(s.plan, target).total_us)


def beats_scores_in_memory(whole: Schedule, target: Gpu) -> bool:
    """Whether one kernel of attention costs less than writing and reading its scores, as any plan of several kernels does."""
    return price(whole.plan, target).total_us <= through_memory_us(whole.source, target)


def by_rules(schedule: Schedule, target: Gpu, approximate: bool = True, decide: Decide | None = None) -> Schedule:
    """The schedule of the rules 0 to 8, not held against the default."""
    b = prepared(schedule, approximate)
    ridden(b, target, decide)
    if chained(b.schedule):
        b.schedule = produced_in_place(b.schedule, but=used_by_products(b.schedule))
    if chained(b.schedule):
        _stitch(b, target)
    b.schedule = in_one_pass(b.schedule)
    if _shares(b):
        _stitch(b, target)
    cut(b)
    for kernel in [k.id for k in b.plan.kernels]:
        own = decide("spread", b.schedule, kernel) if decide else None
        b.schedule = spread(b.schedule, kernel, target) if own is None else own
    own = decide("rest", b.schedule, "") if decide else None
    return default(b.schedule) if own is None else own


def _stitch(b: Builder, target: Gpu) -> None:
    """Stitch the program; where there are several kernels already, each of those with several nests."""
    several = [k.id for k in b.plan.kernels if sum(isinstance(n, Loop) for n in k.body) > 1]
    for kernel in several if len(b.plan.kernels) > 1 else [""]:
        with suppress(ScheduleError):  # not a chain that it knows
            found = Search(b.schedule, target, kernel).made({}).schedule if kernel else stitch(b.schedule, gpu=target)
            b.schedule = found or b.schedule


def _shares(b: Builder) -> bool:
    """Whether nests of a kernel of which nothing is spread read one array over the same loops."""
    kernel = b.plan.kernels[0]
    if len(b.plan.kernels) > 1 or any(isinstance(n, Loop) and n.is_place for n in walk(kernel.body)):
        return False
    return sum(isinstance(n, Loop) for n in kernel.body) > 1 and Graph.of(b.plan, kernel.id).shared
