"""What a plan costs as counts: bytes, operations, threads at work, launches, and what one thread does one after the other.

The rules hold for any plan, and nothing is sampled but sectors:

- *Moved bytes* are those of the distinct elements that a kernel reads and writes in global memory.  Of an access these are the
  least of the box of its indices, the iterations of the loops that it moves with, and the array.  A temporary in global memory
  is written and read like any other array.  What several statements of a kernel read counts once where the second-level cache
  can hold what is touched in between, else for each of them.
- *Requested bytes* are whole sectors, as the warps ask for them (:mod:`explorer.poly.traffic`).  What does not move with the
  inner loops is asked for outside of them, as compilers do it.
- *Operations* are those of every execution, after inlining and recomputation: a statement runs as often as its loops and its
  domain's box say, and once more in every thread that repeats it.  A trimmed loop runs as often as it does on average.
- A thread is *busy* if its loops give it an instance: of a statement no more threads than it has instances, of a kernel those of
  the statement with the most.
- A *path* is one thread's iterations and the loads that it waits for, some in flight together; what few blocks do counts by
  their share.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import prod

from ..gpu.spec import Gpu
from ..ir.instructions import instruction
from ..ir.operations import LESS_EXACT, SPECIAL
from ..ir.plan import Plan
from ..ir.program import Statement
from ..ir.scalar import Call, Scalar, flops, walk
from ..ir.swizzle import shared_bytes
from ..ir.tree import BLOCK_ROLES, Kernel, Leaf, Loop, Node
from ..poly.bulk_store import IN_BOXES
from ..poly.matrix_move import MOVES as MATRIX_MOVES
from ..poly.relations import FAR, bounds
from ..poly.sites import Site, launch_extents, sites
from ..poly.traffic import AccessFacts, traffic
from ._steps import leaves_of
from .kernel_counts import KernelCounts, LeafCounts
from .tensor_rates import tensor_flops_per_s
from .trips import share_run

FAST_COST, SPECIAL_COST = 8, 16
"""What a function of the special units takes in additions: units for 16 a clock where 128 add (CUDA C++ Programming Guide,
"Arithmetic Instructions"); and as much again for the instructions around one that is rounded correctly."""
AHEAD, MOST_AHEAD = 4, 32
"""Loads of one thread in flight in a loop that compilers unroll by themselves, and at most in one that is written out."""
BESIDE = 4
"""Operations of one thread that overlap where lanes and iterations need no results of each other: an operation's cycles."""
REUSE = 2
"""Reads of each element from which on it is read again and again."""
Box = tuple[tuple[int, int], ...]


def work(plan: Plan) -> int:
    """Operations of a plan in all launches, after inlining and recomputation, as if no two threads repeated one.

    Of the user's statements alone: what joins partial results is not counted.
    """
    return sum(_executions(s, above, 1) * operations_of(s) for leaf, above, _ in plan.leaves
               if (s := plan.statement_of[leaf.statement]).origin == "program")


def additions(value: Scalar) -> int:
    """Operations of one evaluation, by what each takes in additions."""
    called = [node.op for node in walk(value) if isinstance(node, Call)]
    special, fast = sum(op in SPECIAL for op in called), sum(op in LESS_EXACT for op in called)
    return flops(value) + (SPECIAL_COST - 1) * special + (FAST_COST - 1) * fast


@lru_cache(maxsize=4096)
def operations_of(statement: Statement) -> int:
    """Of one execution of a statement, in additions; its update is one."""
    return additions(statement.value) + bool(statement.update)


def least_bytes(written: Plan) -> int:
    """Bytes of the parameters that a program as written reads from outside, and of those that it writes, once each."""
    found: dict[str, list[Site]] = {}
    for site in (s for k in written.kernels for s in sites(written)[k.id]):
        if site.storage in written.array_of and written.array_of[site.storage].role != "temporary":
            found.setdefault(site.storage, []).append(site)
    total = 0
    for name, here in found.items():
        made = written.array_of[name].role == "out"
        total += _itemsize(written, here[0]) * sum(_together(written, [s for s in here if s.writes is way])
                                                   for way in ((True,) if made else (True, False)))
    return total


def longest(written: Plan, threads: int) -> float:
    """Loads that a thread at least waits for where it makes a result alone, or so many threads make the only one, the longest."""
    found = 0.0
    for leaf, above, kernel in written.leaves:
        statement = written.statement_of[leaf.statement]
        if statement.update:
            here = [s for s in sites(written)[kernel.id] if s.leaf.id == leaf.id]
            kept = _moving(here[-1])
            reduced = {x.id for x in above} - kept
            if any(reduced <= _moving(s) for s in here[:-1]):
                turns = prod(x.extent for x in above if x.id in reduced)
                found = max(found, turns / (1 if any(x.id in kept for x in above) else threads) / AHEAD)
    return found


def reuses(plan: Plan, node: Node) -> bool:
    """Whether an update below a node reads its elements again and again, as products and convolutions do.

    Such a nest wants threads for its results, and computes again, many times, whatever is written into it.
    """
    inside = {leaf.id for leaf in leaves_of(node)}
    for leaf, above, kernel in plan.leaves:
        if leaf.id in inside and plan.statement_of[leaf.statement].update:
            reads = [s for s in sites(plan)[kernel.id] if s.leaf.id == leaf.id and not s.writes]
            most = max((_distinct(plan, s)[0] for s in reads), default=0)
            if most and prod(x.extent for x in above) > REUSE * most:
                return True
    return False


def counted(plan: Plan, kernel: Kernel, gpu: Gpu) -> KernelCounts:
    """The counts of a kernel of a plan; the GPU says what its caches and multiprocessors hold."""
    extents, used = plan.extents[kernel.id], sites(plan)[kernel.id]
    facts = {(a.leaf, a.slot): a for a in traffic(plan, kernel.id)}
    launches = prod(x.extent for x in kernel.body if isinstance(x, Loop) and x.role == "launch")
    here = [(leaf, above) for leaf, above, k in plan.leaves if k.id == kernel.id]
    buffers = {view.buffer for leaf, _ in here for _, view in leaf.views}
    shared = shared_bytes(plan.buffer_of[name] for name in buffers)
    bare = KernelCounts(kernel.id, launches, kernel.join, prod(extents[:3]), prod(extents[3:]), shared, 0, 0, ())
    resident = min(1.0, gpu.multiprocessors * bare.resident(gpu) / max(1, bare.blocks))
    read, written = _moved(plan, used, resident, gpu)
    again = _again(used)
    found = tuple(_leaf(plan, leaf, above, kernel, [s for s in used if s.leaf.id == leaf.id], facts, gpu, again)
                  .scaled(share_run(plan, above)) for leaf, above in here)
    return KernelCounts(kernel.id, launches, kernel.join, bare.blocks, bare.threads, shared, read, written, found)


def _leaf(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], kernel: Kernel, used: list[Site],
          facts: dict[tuple[str, int], AccessFacts], gpu: Gpu, again: frozenset[tuple[str, int]]) -> LeafCounts:
    """The counts of one statement in one launch; the reads `again` of its loop's body cost nothing more."""
    statement, launches = plan.statement_of[leaf.statement], prod(x.extent for x in above if x.role == "launch")
    inside = tuple(x for x in above if x.role != "launch")
    iterations = prod(x.extent for x in inside if not x.is_place)
    row = instruction(leaf.mechanism)
    whole = row is not None or leaf.mechanism in (*MATRIX_MOVES, *IN_BOXES)
    repeats = _repeats(used[-1] if whole else used[0], launch_extents(plan, kernel))
    places = prod(x.extent for x in inside if x.is_place) * repeats
    executions = max(1, _executions(statement, above, repeats) // launches)
    requested = requests = accesses = waits = near = 0.0
    for site in used:
        known = facts.get((leaf.id, site.slot))
        if known is None or (leaf.id, site.slot) in again:
            continue
        wide = known.width_bytes // _itemsize(plan, site) or 1
        turns = _turns(site)
        accesses += turns / wide
        requested += known.bytes / launches * turns / max(1, iterations)
        requests += known.requests / launches * turns / max(1, iterations) * (site.space == "global")
        if site.space == "global" and site.reads:
            lanes = prod(x.extent for x in inside if x.role == "vector")  # in flight together, if they are not one access
            ahead = min(MOST_AHEAD, max(AHEAD, prod(x.extent for x in inside if x.role == "unroll")))
            waiting = max(1.0, turns / max(wide, lanes) / ahead)
            if _distinct(plan, site)[0] * 2 <= executions and _nbytes(plan, site) <= (gpu.l2_bytes or 0):
                near = max(near, waiting)
            else:
                waits = max(waits, waiting)
    operations = operations_of(statement)
    if whole:  # one instruction for the loops that it is, whose operands are registers or shared memory
        steps = iterations / prod(x.extent for x in inside if x.role == "tensor")
        tensor_us = executions * operations / tensor_flops_per_s(row, gpu) * 1e6 if row else 0.0
        lanes = places * row.lanes if row else places
        if leaf.mechanism in IN_BOXES:  # which nobody waits for one by one
            requested = executions * _itemsize(plan, used[0]) * share_run(plan, above)
            near = steps / AHEAD * (leaf.mechanism == "bulk")
        return LeafCounts(leaf.id, executions, min(lanes, executions), executions * operations, requested, 0.0, lanes * steps,
                          steps, 0.0, near, 0, 1.0, tensor_us)
    steps = iterations * operations + accesses
    free = {x.id for x in inside} if not statement.update else _moving(used[-1])
    beside = prod(x.extent for x in inside if x.role in ("vector", "unroll") and x.id in free)
    spread = {x.role: x.extent for x in inside if x.is_block}
    grid = dict(zip(BLOCK_ROLES, plan.extents[kernel.id][:3], strict=True))
    blocks = prod(spread.values())
    lanes = max(places, min(gpu.warp_size, _warped(plan, kernel, gpu)) * blocks)
    return LeafCounts(leaf.id, executions, min(places, executions), executions * operations, requested, requests,
                      lanes * steps, steps / min(beside, BESIDE), waits, near, iterations if leaf.collect else 0,
                      prod(spread.get(r, n) for r, n in grid.items()) / prod(grid.values()))


def _again(used: tuple[Site, ...]) -> frozenset[tuple[str, int]]:
    """The reads of elements that a statement before them in the same body reads too, where nothing writes that storage: one
    load serves all of them.
    """
    written, seen, out = {s.storage for s in used if s.writes}, set(), set()
    for s in used:
        key = tuple(x.id for x in s.above), s.storage, s.cell
        if s.reads and s.storage not in written and None not in s.cell:
            out |= {(s.leaf.id, s.slot)} if key in seen else set()
            seen.add(key)
    return frozenset(out)


def _warped(plan: Plan, kernel: Kernel, gpu: Gpu) -> int:
    """Threads of a kernel's block in whole warps."""
    return -(-prod(plan.extents[kernel.id][3:]) // gpu.warp_size) * gpu.warp_size


def _repeats(site: Site, launch: tuple[int, ...]) -> int:
    """How many places run each instance of a site's statement."""
    return prod(n for n, place in zip(launch, site.place, strict=True) if place is None)


def _executions(statement: Statement, above: tuple[Loop, ...], repeats: int) -> int:
    """Executions in all launches: no more than the loops' iterations, no more than the domain's box."""
    known = bounds(statement.domain)
    box = prod(max(0, high - low + 1) for d in statement.dims for low, high in [known.get(d, (-FAR, FAR))])
    return min(prod(x.extent for x in above), box) * repeats


def _turns(site: Site) -> int:
    """How often a thread makes an access: what does not move with the inner loops is made outside of them."""
    loops = [x for x in site.above if not x.is_place and x.role != "launch"]
    if any(e is None for e in site.cell):
        return prod(x.extent for x in loops)
    moving = _moving(site)
    last = max((n for n, x in enumerate(loops) if x.id in moving), default=-1)
    return prod(x.extent for x in loops[: last + 1])


def _moving(site: Site) -> set[str]:
    """The loops that an access moves with."""
    return {v for e in site.cell if e is not None for v in e.variables()}


def _shape(plan: Plan, site: Site) -> tuple[tuple[int, ...], int]:
    """Extents of a site's storage, and bytes of an element."""
    if site.storage in plan.buffer_of and site.leaf.view(site.slot):
        buffer = plan.buffer_of[site.storage]
        return buffer.padded_shape, buffer.dtype.bytes
    array = plan.array_of[site.storage]
    return array.stored, array.dtype.bytes


def _itemsize(plan: Plan, site: Site) -> int:
    return _shape(plan, site)[1]


def _nbytes(plan: Plan, site: Site) -> int:
    shape, item = _shape(plan, site)
    return prod(shape) * item


def _distinct(plan: Plan, site: Site) -> tuple[int, Box]:
    """Elements that an access touches in one launch, at most, and the box in which they lie."""
    shape, _ = _shape(plan, site)
    scope = {x.id: (x.start, x.start) if x.role == "launch" else x.range for x in site.above}
    box = []
    for e, extent in zip(site.cell, shape, strict=True):
        low, high = (0, extent - 1) if e is None else e.interval(scope)
        box.append((max(0, low), min(extent - 1, high)))
    moving = _moving(site)
    loops = [x for x in site.above if x.role != "launch" and (x.id in moving or any(e is None for e in site.cell))]
    return min(prod(x.extent for x in loops), _size(tuple(box))), tuple(box)


def _size(box: Box) -> int:
    return prod(max(0, high - low + 1) for low, high in box)


def _moved(plan: Plan, used: tuple[Site, ...], resident: float, gpu: Gpu) -> tuple[int, int]:
    """Bytes that a kernel reads from global memory, and writes there; that share of its blocks is resident at a time."""
    found: dict[str, list[Site]] = {}
    for site in used:
        if site.space == "global":
            found.setdefault(site.storage, []).append(site)
    once = {name: _together(plan, here) for name, here in found.items()}
    touched = sum(n * _itemsize(plan, found[name][0]) for name, n in once.items()) * resident
    read = written = 0
    for here in found.values():
        item = _itemsize(plan, here[0])
        reads = [s for s in here if (s.reads and not s.writes) or _first(s, here)]
        leaves = {s.leaf.id: s for s in reads}
        apart = len(leaves) > 1 and touched / max(1, _common(tuple(leaves.values()))) > (gpu.l2_bytes or 0)
        parts = [[s for s in reads if s.leaf.id == leaf] for leaf in leaves] if apart else [reads] if reads else []
        read += item * sum(_together(plan, part) for part in parts)
        written += item * _together(plan, [s for s in here if s.writes])
    return read, written


def _first(site: Site, here: list[Site]) -> bool:
    """Whether an update reads what no statement before it in its kernel has written."""
    return site.reads and site.writes and here[0] is site


def _common(several: tuple[Site, ...]) -> int:
    """Iterations of the loops in time around all of some sites."""
    shared = set.intersection(*({x.id for x in s.above} for s in several))
    return prod(x.extent for x in several[0].above if x.id in shared and not x.is_place and x.role != "launch")


def _together(plan: Plan, several: Iterable[Site]) -> int:
    """Elements that some accesses of one array touch, at most."""
    if not (each := [_distinct(plan, s) for s in several]):
        return 0
    axes = zip(*(box for _, box in each), strict=True)
    whole = tuple((min(low for low, _ in axis), max(high for _, high in axis)) for axis in axes)
    return min(sum(n for n, _ in each), _size(whole))
