"""One nest spread by rules of thumb: its parallel loops over blocks and threads, a reduction collected, a wavefront skewed."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.plan import Plan
from ..ir.tree import Loop
from ..schedule import Schedule
from ..transforms.base import Transform
from ..transforms.bind import Bind
from ..transforms.coalesce import Coalesce
from ..transforms.collect import Collect
from ..transforms.interchange import Interchange
from ..transforms.reorder import Reorder
from ..transforms.skew import Skew
from ..transforms.split import Split
from .deferred import ask, take


def attempt(schedule: Schedule, steps: Iterable[Transform]) -> Schedule:
    """The schedule after `steps`, or as it was if one of them does not apply."""
    new = schedule
    for step in steps:
        verdict, _ = ask(new, step)
        if not verdict:
            return schedule
        new = take(new, step)
    return new


def perfect(plan: Plan, kernel: str) -> list[Loop]:
    """The loops of the perfect nest at the top of a kernel."""
    body, loops = next(k.body for k in plan.kernels if k.id == kernel), []
    while len(body) == 1 and isinstance(body[0], Loop):
        loops.append(body[0])
        body = body[0].body
    return loops


def is_parallel(schedule: Schedule, loop: Loop) -> bool:
    """Whether the loop's iterations may run in different blocks, without a race to collect."""
    if loop.role != "seq":
        return False
    verdict, plan = ask(schedule, Bind(loop.id, "block.x", min(loop.extent, 2) if loop.extent > 1 else None))
    if not verdict or plan is None:
        return False
    before = {f.nodes[0] for f in schedule.judgement.obligations}
    from ..poly.judge import judge

    return {f.nodes[0] for f in judge(plan).obligations} <= before


def spread(schedule: Schedule, kernel: str, threads: int) -> Schedule:
    """Bind one kernel's nest; the same schedule where nothing of it can be spread."""
    loops = [x for x in perfect(schedule.plan, kernel) if x.role == "seq"]
    if not loops or any(x.extent == 0 for x in loops):
        return schedule
    parallel = [x for x in loops if is_parallel(schedule, x)]
    if parallel and parallel[0] is not loops[0]:
        names = tuple(x.id for x in (*parallel, *(x for x in loops if x not in parallel)))
        moved = attempt(schedule, [Reorder(names)])
        if moved is not schedule:
            return spread(moved, kernel, threads)
    if run := _adjacent(loops, parallel):
        return _bind_run(_host(schedule, loops, run[0]), run, threads)
    if _reduces(schedule, loops[0]):
        return _collected(schedule, loops, threads)
    return _hosted(schedule, kernel, loops, threads)


def _hosted(schedule: Schedule, kernel: str, loops: list[Loop], threads: int) -> Schedule:
    """Nothing is parallel: skew the innermost two loops, or let the host run the outermost and look again."""
    hosted = attempt(schedule, [Bind(loops[0].id, "launch")])
    if hosted is not schedule and len(loops) > 2 - any(is_parallel(hosted, x) for x in loops[1:]):
        deeper = spread(hosted, kernel, threads)
        return deeper if deeper is not hosted else schedule
    return _wavefront(schedule, kernel, loops, threads)


def _adjacent(loops: list[Loop], parallel: list[Loop]) -> list[Loop]:
    """The first run of neighbouring parallel loops."""
    run: list[Loop] = []
    for loop in loops:
        if loop in parallel:
            run.append(loop)
        elif run:
            break
    return run


def _host(schedule: Schedule, loops: list[Loop], first: Loop) -> Schedule:
    """Let the host run the sequential loops around the first parallel one."""
    for loop in loops[: loops.index(first)]:
        schedule = attempt(schedule, [Bind(loop.id, "launch")])
    return schedule


def _bind_run(schedule: Schedule, run: list[Loop], threads: int) -> Schedule:
    name = run[0].id
    if len(run) > 1:
        schedule = attempt(schedule, [Coalesce(tuple(x.id for x in run))])
    loop = schedule.plan.loops[name]
    inner = schedule.plan.fresh(f"{name}.i")
    if loop.extent > threads:
        return attempt(schedule, [Split(name, threads), Bind(name, "block.x"), Bind(inner, "thread.x")])
    return attempt(schedule, [Bind(name, "thread.x")])


def _reduces(schedule: Schedule, loop: Loop) -> bool:
    """Whether the loop carries nothing but reductions."""
    verdict, _ = ask(schedule, Bind(loop.id, "thread.x", min(loop.extent, 2) if loop.extent > 1 else None))
    return bool(verdict)


def _collected(schedule: Schedule, loops: list[Loop], threads: int) -> Schedule:
    """A reduction over everything: one block's threads share it, warp shuffles collect it."""
    loop = loops[0]
    targets = [schedule.plan.statement_of[leaf.statement] for leaf, above, _ in schedule.plan.leaves if loop in above]
    arrays = list(dict.fromkeys(s.target.array for s in targets if s.update))
    if len(loops) > 1:
        schedule = attempt(schedule, [Coalesce(tuple(x.id for x in loops))])
        loop = schedule.plan.loops[loop.id]
    inner, steps = loop.id, []
    if loop.extent > threads:
        inner = schedule.plan.fresh(f"{loop.id}.i")
        steps.append(Split(loop.id, threads))
    steps.append(Bind(inner, "thread.x"))
    steps += [Collect(array, "shuffle") for array in arrays]
    return attempt(schedule, steps)


def _wavefront(schedule: Schedule, kernel: str, loops: list[Loop], threads: int) -> Schedule:
    """Skew the two innermost loops so that a diagonal is parallel, the host running the loops around it."""
    if len(loops) < 2:
        return schedule
    outer, inner = loops[-2], loops[-1]
    skewed = attempt(schedule, [Skew(inner.id, outer.id, 1), Interchange(outer.id, inner.id)])
    if skewed is schedule:
        return schedule
    nest = [x for x in perfect(skewed.plan, kernel) if x.role == "seq"]
    diagonal = next(x for x in nest if x.id == outer.id)
    hosted = _host(skewed, nest, diagonal)
    return _bind_run(hosted, [diagonal], threads) if is_parallel(hosted, diagonal) else schedule
