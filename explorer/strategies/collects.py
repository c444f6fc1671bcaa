"""Costs and guarantees of each way to combine a reduction's updates, computed before one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from ..gpu.spec import Gpu, default_gpu
from ..ir.finding import Verdict, no
from ..ir.plan import Plan
from ..ir.rounding import METHODS, sum_bound, tree_height
from ..ir.scalar import Literal, Read
from ..ir.tree import Leaf, Loop, walk
from ..poly.count import instances
from ..poly.obligations import TOGETHER
from ..schedule import Schedule
from ..transforms._reduction import Updates, update_verdict, updates
from ..transforms.base import Transform
from ..transforms.collect import HOWS, Collect

ORDERLESS = ("max", "min", "and", "or", "xor", "bitand", "bitor", "bitxor", "argmax", "argmin")
"""Reductions of which every order gives the same bits."""


@dataclass(frozen=True)
class Way:
    """One way to combine the updates, as it would be: exact facts of the schedule that it makes.

    Attributes
    ----------
    how : str
        What `collect` is told.
    steps : tuple of Transform
        The moves it takes; what they cannot do is in `verdict`.
    verdict : Verdict
        Whether it applies and is legal.
    deterministic : bool
        Whether every run gives the same bits.
    launches : int
        Of the whole schedule.
    parts : int
        Partial results of one element, one for each block that updates it.
    workspace_bytes : int
        Global memory that it needs beyond what the schedule uses already.
    initial_bytes : int
        Bytes of global memory that are set to a first value before the updates.
    atomics : int
        Atomic operations on the busiest address: updates of an element, blocks counted as finished, arrivals at a barrier.  A
        handoff takes none.
    grid_barriers : int
        Times that all blocks wait for each other.
    errors : mapping of str to float
        For each of :data:`~explorer.ir.rounding.METHODS` in each thread: the bound of the error against the exact sum, per
        unit of the sum of the terms' magnitudes.  0 where nothing is rounded.
    """

    how: str
    steps: tuple[Transform, ...]
    verdict: Verdict
    deterministic: bool = True
    launches: int = 0
    parts: int = 0
    workspace_bytes: int = 0
    initial_bytes: int = 0
    atomics: int = 0
    grid_barriers: int = 0
    errors: tuple[tuple[str, float], ...] = ()

    @property
    def error(self) -> float:
        """The bound with plain additions."""
        return dict(self.errors).get("plain", 0.0)


OVER_BLOCKS, OVER_THREADS = ("atomic", "kernel", "last_block", "handoff", "grid", "cluster"), ("shuffle", "shared", "atomic")


WORD = 8
"""Bytes of a part that is handed off: its value and its flag."""


def ways(schedule: Schedule, target: str, gpu: Gpu | None = None) -> tuple[Way, ...]:
    """Every way to combine the updates of a reduction that differ in bound loops: over blocks where some are, else over threads.

    Threads that are open beside the blocks are combined by shuffles in each way.

    Parameters
    ----------
    schedule : Schedule
    target : str
        The reduction: its statement, or the array it updates.
    gpu : Gpu, optional
        Whose memory the workspaces have to fit; by default the H200.

    Returns
    -------
    tuple of Way
        Empty where the target is no reduction, or no bound loop carries it.
    """
    u = update_verdict(schedule.plan, target)
    if isinstance(u, Verdict) or not any(x.is_place for x in u.carrying):
        return ()
    wanted = OVER_BLOCKS if any(x.is_block for x in u.carrying) else OVER_THREADS
    found = (_way(schedule, u, target, how) for how in HOWS if how in wanted)
    return tuple(_fitting(w, gpu or default_gpu()) for w in found)


def _fitting(way: Way, gpu: Gpu) -> Way:
    """The way, refused where its workspace alone exceeds the GPU's memory."""
    if not way.verdict or way.workspace_bytes <= gpu.memory_bytes:
        return way
    why = f"{way.parts:,} parts of each element are {way.workspace_bytes:,} bytes; the {gpu.name} has {int(gpu.memory_bytes):,}"
    return replace(way, verdict=no("the workspace does not fit", why, "fewer blocks that share an element, or how='atomic'"))


def table(found: Sequence[Way]) -> str:
    """The ways as lines of text; a way that does not apply says why."""
    lines = [f"{'how':8s} {'same bits':10s} {'launches':>8s} {'parts':>7s} {'workspace':>12s} {'first set':>12s} "
             f"{'atomics':>9s} {'barriers':>8s}  error bound: plain, pairwise, Kahan"]
    for w in found:
        if not w.verdict:
            lines.append(f"{w.how:8s} no: " + "; ".join(filter(None, (w.verdict.what, w.verdict.why))))
            continue
        errors = ", ".join(f"{dict(w.errors)[m]:.2g}" for m in METHODS) if w.error else "exact"
        same = "yes" if w.deterministic else "no"
        lines.append(f"{w.how:8s} {same:10s} {w.launches:8,d} {w.parts:7,d} {w.workspace_bytes:10,d} B "
                     f"{w.initial_bytes:10,d} B {w.atomics:9,d} {w.grid_barriers:8,d}  {errors}")
    return "\n".join(lines)


def _way(schedule: Schedule, u: Updates, target: str, how: str) -> Way:
    """The facts of one way: what it takes is tried, and looked at."""
    array = u.statement.target.array
    steps: list[Transform] = [Collect(target, how)]
    verdict, plan = schedule.try_step(steps[0])
    if verdict and plan is not None:  # what is left open between threads is combined by shuffles
        after = Schedule(schedule.source, plan, schedule.steps)
        threads = [name for name in _open_threads(plan, array, u)]
        for name in threads:
            more = Collect(name, "shuffle")
            found, then = after.try_step(more)
            if found and then is not None:
                steps.append(more)
                after = Schedule(schedule.source, then, schedule.steps)
        plan = after.plan
    if not verdict or plan is None:
        return Way(how, tuple(steps), verdict)
    return _facts(schedule.plan, plan, u, Way(how, tuple(steps), verdict))


def _open_threads(plan: Plan, array: str, before: Updates) -> list[str]:
    """Update leaves of the reduction that threads still carry without being combined."""
    out = []
    for leaf, above, _ in plan.leaves:
        statement = plan.statement_of[leaf.statement]
        if statement.update and _chain(plan, array, statement.target.array):
            mine = updates(plan, leaf, above)
            if any(x.is_thread and x.id not in dict(leaf.collect) for x in mine.carrying):
                out.append(leaf.id)
    return out


def _chain(plan: Plan, array: str, other: str) -> bool:
    """Whether an array is the reduction's target, or holds partial results of it."""
    if array == other:
        return True
    return any(_chain(plan, array, s.target.array) for s in plan.program.statements
               if s.origin == "combine" and any(r.array == other for r in s.reads) and s.target.array != other)


def _facts(before: Plan, plan: Plan, u: Updates, way: Way) -> Way:
    array, s = u.statement.target.array, u.statement
    dtype = before.array_of[array].dtype.wide
    exact = s.update in ORDERLESS or dtype.kind != "float"
    mine = [(leaf, above) for leaf, above, _ in plan.leaves
            if _chain(plan, array, plan.statement_of[leaf.statement].target.array)]
    atomic = [(leaf, above) for leaf, above in mine if "atomic" in dict(leaf.collect).values()]
    serial, above_it = _height(plan, array)
    errors = tuple((m, 0.0 if exact or s.update != "sum" else sum_bound(serial, above_it, dtype.digits, m)) for m in METHODS)
    if s.update == "prod" and not exact:
        errors = tuple((m, sum_bound(serial, above_it, dtype.digits)) for m in METHODS)
    blocks = [x for x in u.carrying if x.is_block]
    return Way(
        way.how, way.steps, way.verdict, exact or not atomic,
        sum(prod(n.extent for k in g for n in walk(k.body) if isinstance(n, Loop) and n.role == "launch") for g in plan.launched),
        prod(x.extent for x in blocks), _workspace(plan) - _workspace(before), _initial(plan, array),
        max([_serial(plan, leaf, above) for leaf, above in atomic] + _arrivals(plan, before), default=0),
        sum(k.join == "grid" for k in plan.kernels) - sum(k.join == "grid" for k in before.kernels), errors)


def _workspace(plan: Plan) -> int:
    """Bytes of the temporaries that lie in global memory."""
    arrays, buffers = set(), set()
    for leaf, _, _ in plan.leaves:
        statement = plan.statement_of[leaf.statement]
        for slot, access in enumerate(statement.accesses):
            view = leaf.view(slot)
            if view is None:
                arrays.add(access.array)
            elif plan.buffer_of[view.buffer].space == "global":
                buffers.add(view.buffer)
    words = {name for _, name in plan.handed_off}
    temporary = [a for a in plan.program.temporaries if a.name in arrays]
    bytes_of = {a.name: WORD if a.name in words else a.dtype.bytes for a in temporary}
    return sum(prod(a.shape) * bytes_of[a.name] for a in temporary) + sum(plan.buffer_of[b].nbytes for b in buffers)


def _initial(plan: Plan, array: str) -> int:
    """Bytes of global memory that are set to a constant before the reduction's updates."""
    ran, total = instances(plan), 0
    for leaf, _, _ in plan.leaves:
        statement = plan.statement_of[leaf.statement]
        if statement.update or not isinstance(statement.value, Literal) or not _chain(plan, array, statement.target.array):
            continue
        view = leaf.view(len(statement.reads))
        if view is None or plan.buffer_of[view.buffer].space == "global":
            total += ran[statement.name] * plan.array_of[statement.target.array].dtype.bytes
    return total


def _arrivals(plan: Plan, before: Plan) -> list[int]:
    """Blocks that come to one counter, for each kernel that newly joins the launch before it."""
    out, old = [], {k.id for k in before.kernels if k.join}
    for group in plan.launched:
        for earlier, kernel in pairwise(group):
            blocks = plan.extents[earlier.id][:3]
            if kernel.id not in old and kernel.join not in ("handoff", "cluster"):  # those count nothing
                axes = plan.joined_axes(kernel) if kernel.join == "last_block" else ()
                out.append(prod(n for axis, n in enumerate(blocks) if axis not in axes))
    return out


# -- the tree of additions ---------------------------------------------------------------------------------------


def _serial(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> int:
    """Updates of one element by this leaf that are made one after the other."""
    how = dict(leaf.collect)
    return prod(x.extent for x in updates(plan, leaf, above).carrying if how.get(x.id) not in TOGETHER)


def _tree(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> int:
    """Additions in a row in which the values of places are combined; a group that is no power of two may take one more."""
    how = dict(leaf.collect)
    count = prod(x.extent for x in updates(plan, leaf, above).carrying if how.get(x.id) in TOGETHER)
    return tree_height(count) + (count & (count - 1) != 0)


def _height(plan: Plan, array: str) -> tuple[int, int]:
    """Terms that a thread adds first, and additions in a row from there to an element of the array, over its partial results."""
    best = (0, 0)
    for leaf, above, _ in plan.leaves:
        s = plan.statement_of[leaf.statement]
        if s.target.array != array or not (s.update or (s.origin == "combine" and isinstance(s.value, Read))):
            continue
        partial = [r.array for r in s.reads if s.origin == "combine" and r.array != array]
        below = max((_height(plan, name) for name in partial), default=(0, 0), key=sum)
        serial, tree = (_serial(plan, leaf, above), _tree(plan, leaf, above)) if s.update else (0, 0)
        own = (below[0], below[1] + serial + tree) if below[0] else (serial, tree)
        best = max(best, own, key=sum)
    return best
