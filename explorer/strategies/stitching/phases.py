"""Kernels as phases of one launch: blocks of one shape, a grid that is resident at once, a barrier of it before each phase.

All blocks of a cooperative launch wait for each other, so all of them have to be on the GPU (CUDA C++ Programming Guide, "Grid
Synchronization").  How many that are depends on registers, which only a compiler knows; here they are estimated, on the safe
side, and blocks walk in a loop over what the grid does not cover.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

from ...errors import IllegalSchedule, TransformError
from ...gpu.occupancy import occupancy
from ...gpu.spec import Gpu
from ...ir.plan import Plan, block_extents, grid_extents
from ...ir.swizzle import shared_bytes as allocated
from ...ir.tree import BLOCK_ROLES, Kernel, Leaf, Loop, leaves, walk
from ...schedule import Schedule
from ...transforms.bind import THREADS_PER_BLOCK
from .._steps import Builder

WORKING = 56
"""Registers of a thread beside the arrays that it keeps: an estimate on the safe side.  For 39 launches of stitched softmax,
normalisations and cross entropy NVRTC 13 took 18 to 66 registers in all, so few that each grid fits that this allows."""
SCRATCH = 8
"""Bytes of shared memory for each thread where warps meet (at most: a value of 8 bytes each)."""


def one_launch(schedule: Schedule, phases: Sequence[str], gpu: Gpu) -> Schedule:
    """Join kernels that follow each other by barriers of the grid.

    Parameters
    ----------
    schedule : Schedule
        With all loops spread.
    phases : sequence of str
        Two or more kernels, next to each other in launch order.
    gpu : Gpu
        Which has to hold all blocks at once.

    Raises
    ------
    TransformError, IllegalSchedule
        If the phases cannot share a block, or not one block of them fits.
    """
    b = Builder(schedule, judged=False)
    apart(b, phases)
    for kernel in _kernels(b.plan, phases):
        if kernel.resident:  # the barrier of the grid decides how many blocks there are
            b.do("launch_bounds", kernel.id, 0)
    spread = b.schedule
    _one_block(b, phases)
    if prod(_threads(b.plan, phases)) > THREADS_PER_BLOCK:
        b.schedule = spread
        _rows_apart(b, phases)
        _one_block(b, phases)
    for phase in phases:
        _descending(b, phase)
    threads = _threads(b.plan, phases)
    if prod(threads) <= THREADS_PER_BLOCK:  # else the join says what does not fit
        _bound(b, phases, resident(b.plan, phases, gpu), gpu)
    for phase in phases[1:]:
        b.do("join", phase, "grid")
    if refusals := b.schedule.judgement.refusals:
        first = refusals[0]
        raise IllegalSchedule(f"these kernels cannot be phases of one launch: {first.what}", where=first.where, why=first.why,
                              hint="; or ".join(first.hints), finding=first)
    return b.schedule


def apart(b: Builder, kernels: Iterable[str]) -> None:
    """Let kernels be launches of their own that were joined by other means than a barrier."""
    for kernel in _kernels(b.plan, kernels):
        if kernel.join:
            b.do("join", kernel.id, "launch")


def resident(plan: Plan, phases: Sequence[str], gpu: Gpu) -> int:
    """Blocks of a launch of these kernels that a GPU holds at once, by an estimate of its registers; 0 where not one fits."""
    kernels, threads = _kernels(plan, phases), prod(_threads(plan, phases))
    words, scratch = [0], 0
    for kernel in kernels:
        used = {view.buffer for leaf, _ in leaves(kernel.body) for _, view in leaf.views}
        held = [x for x in plan.buffers if x.name in used]
        words.append(sum(-(-x.nbytes // 4) for x in held if x.space == "register"))
        scratch = max(scratch, sum(len(leaf.collect) * SCRATCH * threads * _lanes(above) for leaf, above in leaves(kernel.body)))
    registers = min(WORKING + max(words), gpu.max_registers_per_thread, gpu.registers_per_sm // max(threads, 1))
    shared, room = shared_bytes(plan, kernels), gpu.shared_bytes_per_block_optin
    return gpu.multiprocessors * occupancy(gpu, threads, registers, min(shared + scratch, max(shared, room))).blocks_per_sm


def shared_bytes(plan: Plan, kernels: Iterable[Kernel]) -> int:
    """Bytes of the arrays that kernels of one launch have in shared memory."""
    used = {view.buffer for kernel in kernels for leaf, _ in leaves(kernel.body) for _, view in leaf.views}
    return allocated(x for x in plan.buffers if x.name in used)


def _lanes(above: tuple[Loop, ...]) -> int:
    """Results of one thread that are combined together."""
    return prod(x.extent for x in above if x.role == "vector")


def _kernels(plan: Plan, phases: Iterable[str]) -> list[Kernel]:
    return [k for k in plan.kernels if k.id in phases]


def _threads(plan: Plan, phases: Iterable[str]) -> tuple[int, ...]:
    """Threads of a block, along each axis the most of any phase."""
    return tuple(map(max, zip(*map(block_extents, _kernels(plan, phases)), strict=True)))


def _loops(plan: Plan, phase: str, role: str) -> list[Loop]:
    (kernel,) = _kernels(plan, (phase,))
    return [n for n in walk(kernel.body) if isinstance(n, Loop) and n.role == role]


def _one_block(b: Builder, phases: Sequence[str]) -> None:
    """Fold phases with threads along x alone into rows of threads, where blocks of both forms would be larger together."""
    shapes = {k.id: block_extents(k) for k in _kernels(b.plan, phases)}
    if prod(_threads(b.plan, phases)) == max(map(prod, shapes.values())):
        return
    width = max(x for x, y, z in shapes.values() if y * z > 1)
    for phase, (x, y, z) in shapes.items():
        if y * z > 1 or x <= width or _combined(b.plan, phase):
            continue
        for loop in [n.id for n in _loops(b.plan, phase, "thread.x") if n.extent > width]:
            inner = b.plan.fresh(f"{loop}.x")
            b.do("bind", loop, "seq").do("split", loop, width, inner=inner)
            b.do("bind", loop, "thread.y").do("bind", inner, "thread.x")


def _rows_apart(b: Builder, phases: Sequence[str]) -> None:
    """Give rows that lie side by side in a block, each its own threads along x, blocks of their own."""
    for phase in phases:
        (kernel,) = _kernels(b.plan, (phase,))
        above = [{x.id for x in around} for _, around in leaves(kernel.body)]
        for loop in [x.id for x in _loops(b.plan, phase, "thread.y")]:
            if grid_extents(kernel)[1] == 1 and all(loop in around for around in above):
                b.do("bind", loop, "seq").do("bind", loop, "block.y")


def _combined(plan: Plan, phase: str) -> bool:
    return any(leaf.collect for node in _kernels(plan, (phase,))[0].body for leaf in _leaves(node))


def _leaves(node: object) -> Iterable[Leaf]:
    return [n for n in walk((node,)) if isinstance(n, Leaf)]  # type: ignore[arg-type]


def _descending(b: Builder, phase: str) -> None:
    """Turn the axes of a phase's grid: most blocks along x.  The grid of the launch is the widest along each axis."""
    extents = grid_extents(_kernels(b.plan, (phase,))[0])
    order = sorted(range(3), key=lambda axis: -extents[axis])
    turned = [(old, new) for new, old in enumerate(order) if old != new and extents[old] > 1]
    loops = {old: [x.id for x in _loops(b.plan, phase, BLOCK_ROLES[old])] for old in range(3)}
    if not turned:
        return
    moved = [(name, BLOCK_ROLES[new]) for new, old in enumerate(order) if old != new for name in loops[old]]
    for name, _ in moved:
        b.do("bind", name, "seq")
    for name, role in moved:
        b.do("bind", name, role)


def _bound(b: Builder, phases: Sequence[str], room: int, gpu: Gpu) -> None:
    """Blocks walk in a loop over what is more than fits at once."""
    grids = [grid_extents(k) for k in _kernels(b.plan, phases)]
    if not room:
        raise TransformError(f"not one block of {', '.join(phases)} together fits a multiprocessor of the {gpu.name}",
                             hint="launches of their own: 'cut', or 'global'")
    caps = _caps(grids, room)
    for phase in phases:
        for role, cap in zip(BLOCK_ROLES, caps, strict=True):
            for loop in [x.id for x in _loops(b.plan, phase, role) if x.extent > cap]:
                b.do("bind", loop, "seq").do("bind", loop, role, count=cap)


def _caps(grids: Sequence[tuple[int, int, int]], room: int) -> tuple[int, int, int]:
    """The grid of a launch, of at most `room` blocks, with which its phases take the fewest rounds; the smallest of these."""
    most = tuple(map(max, zip(*grids, strict=True)))
    if prod(most) <= room:
        return most  # type: ignore[return-value]
    across = [sorted({1 << n for n in range(17) if 1 << n < extent} | {extent}) for extent in most[1:]]
    found = []
    for y, z in product(*across):
        if y * z <= room:
            caps = (min(most[0], room // (y * z)), y, z)
            rounds = sum(prod(-(-n // cap) for n, cap in zip(grid, caps, strict=True)) for grid in grids)
            found.append((rounds, prod(caps), caps))
    return min(found)[2]
