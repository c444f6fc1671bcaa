"""The schedule to start from: the right strategy for each kernel of a program, by what the kernel is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ..errors import ScheduleError, TransformError
from ..gpu.spec import Gpu, default_gpu
from ..gpu.spec import gpu as find_gpu
from ..ir.tree import Leaf, Loop, Node, walk
from ..schedule import Schedule
from ._steps import Builder, leaves_of
from .default import default
from .elementwise import elementwise
from .gather import gather
from .producers import chained, produced_in_place
from .reductions import reduce
from .riding import ride
from .rows import rows
from .stitch import cut_long_rows, stitch
from .stitching.graph import Graph
from .stitching.passes import in_one_pass

S = TypeVar("S", bound=Schedule)
Decide = Callable[[str, Schedule, str], Schedule | None]
"""``decide(stage, schedule, kernel)``: the schedule with that kernel's turn taken, or None to leave it to the rules."""


def auto(schedule: S, gpu: Gpu | str | None = None, approximate: bool = True, decide: Decide | None = None) -> S:
    """A fast schedule for a memory-bound program, without tuning.

    0. A result's start and updates come under the same loops (:mod:`explorer.strategies.gather`).
    1. Column sums that stand behind a row nest ride along it (:mod:`explorer.strategies.riding`).
    2. Element-wise nests whose results only other nests read are computed there; nests that read what others have computed are
       stitched with them (:mod:`explorer.strategies.stitch`).
    3. Reductions of one array over the same loops come into one nest (:mod:`explorer.strategies.stitching.passes`).
    4. Nests at the top become kernels of their own (`launch`), each with the statements that start or end it.
    5. A kernel without reductions is spread flat over the GPU (:mod:`explorer.strategies.elementwise`).
    6. Reductions under parallel loops get their canonical form (:mod:`explorer.strategies.reductions`).
    7. A chain of loops over few and long rows is cut where that costs less (:mod:`explorer.strategies.stitch`), other chains
       are stitched in registers (:mod:`explorer.strategies.rows`).
    8. What is left gets the default schedule (:mod:`explorer.strategies.default`).

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
        Asked before the rules, kernel by kernel, with the stage: ``"ride"`` (1), ``"spread"`` (5 to 7), and once, with the kernel
        ``""``, ``"rest"`` (8).  This is how :mod:`explorer.strategies.choices` lists and builds other schedules.

    Returns
    -------
    Schedule
        Legal and without open obligations; its steps show what was done and can be replayed one by one.
    """
    target = find_gpu(gpu) if isinstance(gpu, str) else gpu or default_gpu()
    if not isinstance(schedule, Schedule):
        raise TransformError(f"a strategy takes a schedule, not a {type(schedule).__name__}",
                             hint="program.schedule(M=…) makes one")
    b = Builder(gather(schedule))
    if approximate:
        b.judged = False  # another way to compute the same value at the same place
        for leaf, _, _ in b.plan.leaves:
            b.attempt("approximate", leaf.id)
        b.judged = True
    for kernel in [k.id for k in b.plan.kernels]:
        own = decide("ride", b.schedule, kernel) if decide else None
        b.schedule = ride(b.schedule, kernel, target) if own is None else own
    if chained(b.schedule):
        b.schedule = produced_in_place(b.schedule)
    if chained(b.schedule):
        with suppress(ScheduleError):  # not a chain that it knows
            b.schedule = stitch(b.schedule, gpu=target)
    b.schedule = in_one_pass(b.schedule)
    if _shares(b):
        with suppress(ScheduleError):
            b.schedule = stitch(b.schedule, gpu=target)
    _cut(b)
    for kernel in [k.id for k in b.plan.kernels]:
        own = decide("spread", b.schedule, kernel) if decide else None
        b.schedule = _spread(b.schedule, kernel, target) if own is None else own
    own = decide("rest", b.schedule, "") if decide else None
    return default(b.schedule) if own is None else own  # type: ignore[return-value]


def _shares(b: Builder) -> bool:
    """Whether nests of a kernel of which nothing is spread read one array over the same loops."""
    kernel = b.plan.kernels[0]
    if len(b.plan.kernels) > 1 or any(isinstance(n, Loop) and n.is_place for n in walk(kernel.body)):
        return False
    return sum(isinstance(n, Loop) for n in kernel.body) > 1 and Graph.of(b.plan, kernel.id).shared


def _spread(schedule: Schedule, kernel: str, target: Gpu) -> Schedule:
    """The kernel spread by the first strategy that it fits; the same schedule if there is none."""
    for strategy in (elementwise, lambda s, k: reduce(s, k, target), lambda s, k: cut_long_rows(s, k, target),
                     lambda s, k: rows(s, k, gpu=target)):
        try:
            new = strategy(schedule, kernel)
        except ScheduleError:  # a form it was not made for: the next one may fit
            continue
        if new is not schedule and len(new.judgement.obligations) <= len(schedule.judgement.obligations):
            return new
    return schedule


def _cut(b: Builder) -> None:
    """One launch for each nest at the top; a statement beside goes with the nest that it starts, else with the one before."""
    number = 0
    while number < len(b.plan.kernels):
        kernel = b.plan.kernels[number]
        loops = [n for n, node in enumerate(kernel.body) if isinstance(node, Loop)]
        if len(loops) > 1:
            here, following = loops[0], kernel.body[loops[1]]
            wanted = {a.array for leaf in leaves_of(following) for a in b.plan.statement_of[leaf.statement].accesses}
            last = here
            for node in kernel.body[here + 1 : loops[1]]:
                target = b.plan.statement_of[node.statement].target.array if isinstance(node, Leaf) else ""
                if target in wanted and all(target != t for t in _targets(b, kernel.body[: here + 1])):
                    break
                last += 1
            b.attempt("launch", kernel.id, after=kernel.body[last].id)
        number += 1


def _targets(b: Builder, nodes: tuple[Node, ...]) -> set[str]:
    """Arrays that some nodes write."""
    return {b.plan.statement_of[leaf.statement].target.array for node in nodes for leaf in leaves_of(node)}
