"""The default: parallel loops to blocks and threads, temporaries to registers, reductions collected; legal, not tuned."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod

from ..errors import TransformError, noun, shown, spoken
from ..gpu.spec import Gpu, default_gpu
from ..ir.plan import Plan
from ..ir.tree import Loop, Node, walk
from ..schedule import Schedule
from ..transforms.bind import Bind
from ..transforms.contract import Contract
from ..transforms.distribute import Distribute
from ..transforms.fuse import Fuse
from ..transforms.launch import Launch
from ..transforms.reorder import Reorder
from ._steps import leaves_of
from .plain import attempt, is_parallel, perfect, spread
from .price import price

THREADS = 256
"""Threads per block: a multiple of the warp, and full occupancy on every architecture since Kepler at up to 32 registers."""

WORTH = 2.0
"""So many times cheaper another way to take a nest has to be: fewer is less than the price knows."""
REGISTER_WORDS = 64
"""32-bit words of temporaries that a thread may keep in registers: with :data:`THREADS` a quarter of the 65,536 registers of
a multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").  A larger array would be
indexed by a loop that compilers do not unroll, and so lie in local memory after all, at minutes of compile time."""


@spoken(TransformError, "default(schedule)")
def default(schedule: Schedule, threads: int = THREADS) -> Schedule:
    """A legal parallel schedule for any program, by rules of thumb.

    1. Nests at the top of a kernel become kernels of their own; each is spread over blocks and threads:
    2. its outermost parallel loops are coalesced, split by `threads` and bound to ``block.x`` and ``thread.x``;
    3. an outermost loop that carries a dependence is run by the host, once the loops below it are parallel (after
       skewing the innermost two, if need be);
    4. a nest without parallel loops whose outermost loop carries only a reduction is split over one block's threads
       and collected by warp shuffles;
    5. a nest that keeps few threads busy is looked at again: its parallel loops brought outside, taken apart where its body has
       several nests, those made one instead, or its outermost loop run by the host, if that takes half the time
       (:mod:`explorer.strategies.price`);
    6. temporaries go to registers where every value is used by the thread that made it and :data:`REGISTER_WORDS` hold
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
        raise TransformError(f"a strategy takes a schedule, not a {noun(schedule)}",
                             hint="program.schedule(M=…) makes one")
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1024:
        raise TransformError(f"a block has 1 to 1024 threads, not {shown(threads)}", hint=f"default(schedule, threads={THREADS})")
    return rest(schedule, threads)


def rest(schedule: Schedule, threads: int = THREADS, but: frozenset[str] = frozenset()) -> Schedule:
    """The default for the kernels of which nothing is spread, `but` some."""
    schedule = separate(schedule, but)
    for kernel in [k.id for k in schedule.plan.kernels if not any(isinstance(n, Loop) and n.is_place for n in walk(k.body))]:
        if kernel not in but:
            schedule = _spread(schedule, kernel, threads, default_gpu())
    return in_registers(schedule, but)


def in_registers(schedule: Schedule, but: frozenset[str] = frozenset()) -> Schedule:
    """Temporaries that no buffer holds in registers, where that is legal and they are small; none that kernels in `but` use."""
    plan = schedule.plan
    used = {a.array for leaf, _, k in plan.leaves if k.id in but for a in plan.statement_of[leaf.statement].accesses}
    for temporary in plan.program.temporaries:
        if temporary.name in plan.buffer_of or temporary.name in used:
            continue  # somebody put it there
        contracted = attempt(schedule, [Contract(temporary.name, "register")])
        schedule = contracted if _register_words(contracted.plan) <= REGISTER_WORDS else schedule
    return schedule


def _spread(schedule: Schedule, kernel: str, threads: int, gpu: Gpu) -> Schedule:
    """One kernel's nest spread; one that keeps few threads busy in the cheapest of several ways, if that takes half the time."""
    plain, others = spread(schedule, kernel, threads), frozenset(k.id for k in schedule.plan.kernels) - {kernel}
    new = [k for k in plain.plan.kernels if k.id not in others]
    nest = perfect(schedule.plan, kernel)
    threads_of = min(prod(plain.plan.extents[k.id]) for k in new)
    if not nest or any(x.extent == 0 for x in nest) or threads_of >= gpu.warp_size * gpu.multiprocessors:
        return plain
    best, least = plain, None
    for other in _otherwise(schedule, kernel, threads):
        if least is None:
            least = price(in_registers(plain, others).plan, gpu, others).total_us / WORTH
        if other.judgement.emittable and (us := price(in_registers(other, others).plan, gpu, others).total_us) < least:
            best, least = other, us
    return best


def _otherwise(schedule: Schedule, kernel: str, threads: int) -> Iterator[Schedule]:
    """A nest that is not parallel at the top, or holds several, spread in other ways."""
    nest = perfect(schedule.plan, kernel)
    hosted = attempt(schedule, [Bind(nest[0].id, "launch")]) if not is_parallel(schedule, nest[0]) else schedule
    if hosted is not schedule and len(nest) > 1:
        yield spread(hosted, kernel, threads)
    free = [x.id for x in nest if is_parallel(schedule, x)]
    order = (*free, *(x.id for x in nest if x.id not in free))
    if free and order != tuple(x.id for x in nest) and (outside := attempt(schedule, [Reorder(order)])) is not schedule:
        yield spread(outside, kernel, threads)
    if len({schedule.plan.statement_of[leaf.statement].target.array for leaf in leaves_of(nest[0])}) < 2:
        return
    apart = _distributed(schedule, kernel)
    if apart is not schedule:
        made = apart
        for k in [k.id for k in apart.plan.kernels if schedule.plan.kernel_of(k.body[0].id) is None or k.id == kernel]:
            made = spread(made, k, threads)
        yield made
    if not is_parallel(schedule, nest[0]):
        together = _fused(schedule, kernel)
        if together is not schedule:
            yield spread(together, kernel, threads)
            hosted = attempt(together, [Bind(nest[0].id, "launch")])
            if hosted is not together:
                yield spread(hosted, kernel, threads)


def _distributed(schedule: Schedule, kernel: str) -> Schedule:
    """A nest taken apart between statements that make different arrays, as far as that is legal, each part a kernel."""
    new, statement = schedule, schedule.plan.statement_of
    for first, then in pairwise(leaves_of(perfect(schedule.plan, kernel)[0])):
        hit = new.plan.find(first.id)
        if hit and statement[first.statement].target.array != statement[then.statement].target.array:
            for loop in reversed(hit[1]):
                new = attempt(new, [Distribute(loop.id, first.id)])
    return separate(new) if new is not schedule else schedule


def _fused(schedule: Schedule, kernel: str) -> Schedule:
    """A nest whose body's neighbouring nests are made one where they run equally often, from outside in, if that is legal."""
    new, inner = schedule, perfect(schedule.plan, kernel)[-1].id
    while True:
        nests = [n for n in new.plan.loops[inner].body if isinstance(n, Loop)]
        pairs = [(a, b) for a, b in pairwise(nests) if a.extent == b.extent]
        made = next((m for a, b in pairs if (m := attempt(new, [Fuse(a.id, b.id)])) is not new), None)
        if made is None:
            return new
        new, inner = made, perfect(made.plan, kernel)[-1].id


def _register_words(plan: Plan) -> int:
    """32-bit words that the temporaries in registers take, of all kernels together."""
    return sum(b.size * max(1, b.dtype.bytes // 4) for b in plan.buffers if b.space == "register")


def separate(schedule: Schedule, but: frozenset[str] = frozenset()) -> Schedule:
    """A kernel of its own for each nest at the top that is not spread yet, as far as a cut is legal; none in kernels in `but`."""
    kernel = 0
    while kernel < len(schedule.plan.kernels):
        if schedule.plan.kernels[kernel].id in but:
            kernel += 1
            continue
        body = schedule.plan.kernels[kernel].body
        cut = next((a for a, b in pairwise(body) if _is_open(a) or _is_open(b)), None)
        if cut is not None:
            schedule = attempt(schedule, [Launch(schedule.plan.kernels[kernel].id, after=cut.id)])
        kernel += 1
    return schedule


def _is_open(node: Node) -> bool:
    """Whether a node is a nest of which nothing is spread."""
    return isinstance(node, Loop) and not any(isinstance(n, Loop) and n.is_place for n in walk((node,)))
