"""The default: parallel loops to blocks and threads, temporaries to registers, reductions collected; legal, not tuned."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeVar

from ..errors import TransformError
from ..ir.plan import Plan
from ..ir.tree import Loop, Node, walk
from ..schedule import Schedule
from ..transforms.base import Transform
from ..transforms.bind import Bind
from ..transforms.coalesce import Coalesce
from ..transforms.collect import Collect
from ..transforms.contract import Contract
from ..transforms.interchange import Interchange
from ..transforms.launch import Launch
from ..transforms.reorder import Reorder
from ..transforms.skew import Skew
from ..transforms.split import Split

S = TypeVar("S", bound=Schedule)
THREADS = 256
"""Threads per block: a multiple of the warp, and full occupancy on every architecture since Kepler at up to 32 registers."""

REGISTER_WORDS = 64
"""32-bit words of temporaries that a thread may keep in registers: with :data:`THREADS` a quarter of the 65,536 registers of
a multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").  A larger array would be
indexed by a loop that compilers do not unroll, and so lie in local memory after all, at minutes of compile time."""


def default(schedule: S, threads: int = THREADS) -> S:
    """A legal parallel schedule for any program, by rules of thumb.

    1. Nests at the top of a kernel become kernels of their own; each is spread over blocks and threads:
    2. its outermost parallel loops are coalesced, split by `threads` and bound to ``block.x`` and ``thread.x``;
    3. an outermost loop that carries a dependence is run by the host, once the loops below it are parallel (after
       skewing the innermost two, if need be);
    4. a nest without parallel loops whose outermost loop carries only a reduction is split over one block's threads
       and collected by warp shuffles;
    5. temporaries go to registers where every value is used by the thread that made it and :data:`REGISTER_WORDS` hold
       them; the others stay in global memory.

    Parameters
    ----------
    schedule : Schedule
        A program as written.
    threads : int
        Threads per block, 1 to 1024.

    Returns
    -------
    Schedule
        Legal and without open obligations; its steps show what was done.

    Raises
    ------
    TransformError
        If `threads` is no number of threads that a block can have.
    """
    if not isinstance(schedule, Schedule):
        raise TransformError(f"a strategy takes a schedule, not a {type(schedule).__name__}",
                             hint="program.schedule(M=…) makes one")
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024:
        raise TransformError(f"a block has 1 to 1024 threads, not {threads!r}", hint=f"default(schedule, threads={THREADS})")
    schedule = separate(schedule)
    for number, kernel in enumerate(schedule.plan.kernels):
        if any(isinstance(n, Loop) and n.is_place for n in walk(kernel.body)):
            continue
        schedule = _spread(schedule, schedule.plan.kernels[number].id, threads)
    for temporary in schedule.plan.program.temporaries:
        if temporary.name in schedule.plan.buffer_of:
            continue  # somebody put it there
        contracted = _attempt(schedule, [Contract(temporary.name, "register")])
        schedule = contracted if _register_words(contracted.plan) <= REGISTER_WORDS else schedule
    return schedule


def _register_words(plan: Plan) -> int:
    """32-bit words that the temporaries in registers take, of all kernels together."""
    return sum(b.size * max(1, b.dtype.bytes // 4) for b in plan.buffers if b.space == "register")


def _attempt(schedule: S, steps: Iterable[Transform]) -> S:
    """The schedule after `steps`, or as it was if one of them does not apply."""
    new = schedule
    for step in steps:
        verdict, _ = new.try_step(step)
        if not verdict:
            return schedule
        new = new.apply(step)
    return new


def separate(schedule: S) -> S:
    """A kernel of its own for each nest at the top that is not spread yet, as far as a cut is legal."""
    kernel = 0
    while kernel < len(schedule.plan.kernels):
        body = schedule.plan.kernels[kernel].body
        cut = next((a for a, b in pairwise(body) if _is_open(a) or _is_open(b)), None)
        if cut is not None:
            schedule = _attempt(schedule, [Launch(schedule.plan.kernels[kernel].id, after=cut.id)])
        kernel += 1
    return schedule


def _is_open(node: Node) -> bool:
    """Whether a node is a nest of which nothing is spread."""
    return isinstance(node, Loop) and not any(isinstance(n, Loop) and n.is_place for n in walk((node,)))


def _chain(plan: Plan, kernel: str) -> list[Loop]:
    """The loops of the perfect nest at the top of a kernel."""
    body, loops = next(k.body for k in plan.kernels if k.id == kernel), []
    while len(body) == 1 and isinstance(body[0], Loop):
        loops.append(body[0])
        body = body[0].body
    return loops


def _parallel(schedule: Schedule, loop: Loop) -> bool:
    """Whether the loop's iterations may run in different blocks, without a race to collect."""
    if loop.role != "seq":
        return False
    verdict, plan = schedule.try_step(Bind(loop.id, "block.x", min(loop.extent, 2) if loop.extent > 1 else None))
    if not verdict or plan is None:
        return False
    before = {f.nodes[0] for f in schedule.judgement.obligations}
    from ..poly.judge import judge

    return {f.nodes[0] for f in judge(plan).obligations} <= before


def _spread(schedule: S, kernel: str, threads: int) -> S:
    """Bind one kernel's nest."""
    loops = [x for x in _chain(schedule.plan, kernel) if x.role == "seq"]
    if not loops or any(x.extent == 0 for x in loops):
        return schedule
    parallel = [x for x in loops if _parallel(schedule, x)]
    if parallel and parallel[0] is not loops[0]:
        names = tuple(x.id for x in (*parallel, *(x for x in loops if x not in parallel)))
        moved = _attempt(schedule, [Reorder(names)])
        if moved is not schedule:
            return _spread(moved, kernel, threads)
    if run := _adjacent(loops, parallel):
        return _bind_run(_host(schedule, loops, run[0]), run, threads)
    if _reduces(schedule, loops[0]):
        return _collected(schedule, loops, threads)
    return _hosted(schedule, kernel, loops, threads)


def _hosted(schedule: S, kernel: str, loops: list[Loop], threads: int) -> S:
    """Nothing is parallel: skew the innermost two loops, or let the host run the outermost and look again."""
    hosted = _attempt(schedule, [Bind(loops[0].id, "launch")])
    if hosted is not schedule and len(loops) > 2 - any(_parallel(hosted, x) for x in loops[1:]):
        deeper = _spread(hosted, kernel, threads)
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


def _host(schedule: S, loops: list[Loop], first: Loop) -> S:
    """Let the host run the sequential loops around the first parallel one."""
    for loop in loops[: loops.index(first)]:
        schedule = _attempt(schedule, [Bind(loop.id, "launch")])
    return schedule


def _bind_run(schedule: S, run: list[Loop], threads: int) -> S:
    name = run[0].id
    if len(run) > 1:
        schedule = _attempt(schedule, [Coalesce(tuple(x.id for x in run))])
    loop = schedule.plan.loops[name]
    inner = schedule.plan.fresh(f"{name}.i")
    if loop.extent > threads:
        return _attempt(schedule, [Split(name, threads), Bind(name, "block.x"), Bind(inner, "thread.x")])
    return _attempt(schedule, [Bind(name, "thread.x")])


def _reduces(schedule: Schedule, loop: Loop) -> bool:
    """Whether the loop carries nothing but reductions."""
    verdict, _ = schedule.try_step(Bind(loop.id, "thread.x", min(loop.extent, 2) if loop.extent > 1 else None))
    return bool(verdict)


def _collected(schedule: S, loops: list[Loop], threads: int) -> S:
    """A reduction over everything: one block's threads share it, warp shuffles collect it."""
    loop = loops[0]
    targets = [schedule.plan.statement_of[leaf.statement] for leaf, above, _ in schedule.plan.leaves if loop in above]
    arrays = list(dict.fromkeys(s.target.array for s in targets if s.update))
    if len(loops) > 1:
        schedule = _attempt(schedule, [Coalesce(tuple(x.id for x in loops))])
        loop = schedule.plan.loops[loop.id]
    inner, steps = loop.id, []
    if loop.extent > threads:
        inner = schedule.plan.fresh(f"{loop.id}.i")
        steps.append(Split(loop.id, threads))
    steps.append(Bind(inner, "thread.x"))
    steps += [Collect(array, "shuffle") for array in arrays]
    return _attempt(schedule, steps)


def _wavefront(schedule: S, kernel: str, loops: list[Loop], threads: int) -> S:
    """Skew the two innermost loops so that a diagonal is parallel, the host running the loops around it."""
    if len(loops) < 2:
        return schedule
    outer, inner = loops[-2], loops[-1]
    skewed = _attempt(schedule, [Skew(inner.id, outer.id, 1), Interchange(outer.id, inner.id)])
    if skewed is schedule:
        return schedule
    nest = [x for x in _chain(skewed.plan, kernel) if x.role == "seq"]
    diagonal = next(x for x in nest if x.id == outer.id)
    hosted = _host(skewed, nest, diagonal)
    return _bind_run(hosted, [diagonal], threads) if _parallel(hosted, diagonal) else schedule
