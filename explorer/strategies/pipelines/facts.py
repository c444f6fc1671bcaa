"""The steps of a kernel, read off its plan: which loop steps, what a step of a block copies and computes, and its stages.

A loop steps if a copy below it brings another tile from global memory to shared memory in each of its iterations, for statements
below it too.  Nothing is known here of how the plan came about.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from ...gpu.spec import Gpu
from ...ir.instructions import Instruction, Wgmma, instruction
from ...ir.plan import Plan
from ...ir.program import Statement
from ...ir.tree import WARP_SIZE, Kernel, Leaf, Loop
from ...poly.bulk import bulk
from ...poly.bulk_store import IN_BOXES
from ...poly.matrix_move import MOVES as MATRIX_MOVES
from ...poly.mechanism import ASYNCHRONOUS
from ...poly.multicast import is_shared
from ...poly.pure_load import Never
from ...poly.roles import with_producer
from ...poly.sites import Site, launch_extents, sites
from ...poly.tensor import is_product
from ...poly.traffic import WORD_BYTES, AccessFacts, traffic
from ..counts import additions
from ..kernel_counts import KernelCounts
from ..tensor_rates import tensor_flops_per_s
from ..trips import share_run
from .rates import (
    BANKED,
    COPY_ISSUED,
    LEAST_BOX,
    NARROW_CYCLES,
    RATES,
    RESERVED,
    STEP_ISSUED,
    TURN_ISSUED,
    WARPS_PER_CYCLE,
    copy_cycles,
    of_lines,
    of_sectors,
    results_cycles,
    taken_in,
)
from .shared_reads import Read, shared_loads
from .terms import Step, Stepped, stepped

ALIGNMENT_BYTES = 1024
"""Of shared memory that a block loses to where its tiles begin."""
GRANULE = 8
"""Registers are given to threads by as many (CUDA occupancy calculator)."""
WHOLE = 0.9
"""Share of the sectors of a store that is filled, from which on results go out as whole lines."""
Nest = tuple[Leaf, tuple[Loop, ...]]


@dataclass(frozen=True)
class Use:
    """A leaf below a stepping loop.

    Attributes
    ----------
    leaf : Leaf
    statement : Statement
    inside : tuple of Loop
        Its loops that are not steps of the block: of places within a block, and of time within a step.
    repeats : int
        Places of a block that do the same.
    used : tuple of Site
        Its accesses.
    """

    leaf: Leaf
    statement: Statement
    inside: tuple[Loop, ...]
    repeats: int
    used: tuple[Site, ...]

    @property
    def times(self) -> int:
        """How often a block runs it in a step."""
        return prod(x.extent for x in self.inside) * self.repeats

    @property
    def turns(self) -> int:
        """How often one thread runs it in a step."""
        return prod(x.extent for x in self.inside if not x.is_place)


@dataclass(frozen=True)
class Stepping:
    """A loop that steps.

    Attributes
    ----------
    loop : str
    count : int
        Steps of a block: iterations of this loop and of those in time around it, on average where it ends early.
    most, starts : int
        Steps of a block that ends nothing early; how often a block begins this loop.
    stages : int
        Slots of its copies, of which the fewest count.
    copies, uses : tuple of Use
        What brings tiles, and what else is below.
    ahead, in_flight : bool
        Whether the fragments of a warp's product are loaded during the one before it; whether a warpgroup's products stay in
        flight while its next steps begin.
    """

    loop: str
    count: int
    most: int
    starts: int
    stages: int
    copies: tuple[Use, ...]
    uses: tuple[Use, ...]
    ahead: bool = False
    in_flight: bool = False

    @property
    def instructions(self) -> tuple[tuple[Use, Instruction], ...]:
        """The tensor instructions below it."""
        return tuple((use, row) for use in self.uses if (row := instruction(use.leaf.mechanism)))

    @property
    def panels(self) -> int:
        """Texts of a warpgroup's product one behind the other, at least: each takes one row of the swizzle."""
        rows = [(use, row) for use, row in self.instructions if isinstance(row, Wgmma)]
        return min((prod(x.extent for x in use.inside if not x.is_place and x.role != "tensor") for use, _ in rows), default=1)

    @property
    def engine(self) -> str:
        """Whose products it makes: ``"warpgroup"``, ``"warp"`` or ``"plain"``."""
        rows = [row for _, row in self.instructions]
        return "plain" if not rows else "warpgroup" if any(isinstance(r, Wgmma) for r in rows) else "warp"


def steppings(plan: Plan, kernel: Kernel) -> tuple[Stepping, ...]:
    """The loops of a kernel that step, in order of the text; of nested ones each has the leaves that no inner one has."""
    here = [(leaf, above) for leaf, above, k in plan.leaves if k.id == kernel.id]
    loop_of = {leaf.id: loop for leaf, above in here if (loop := _steps_of(plan, leaf, above, here))}
    first = _prologues(here, loop_of)
    stepping = {loop for leaf, loop in loop_of.items() if leaf not in first}
    below: dict[str, list[Nest]] = {}
    for leaf, above in here:
        if leaf.id in first:
            continue
        loop = loop_of.get(leaf.id) or next((x.id for x in reversed(above) if x.id in stepping), "")
        if loop:
            below.setdefault(loop, []).append((leaf, above))
    return tuple(_stepping(plan, kernel, loop, nests, loop_of) for loop, nests in below.items())


def _prologues(here: list[Nest], loop_of: dict[str, str]) -> set[str]:
    """Copies that start a pipeline in each iteration of a loop around it: others of their statement step further inside."""
    deep = {x.id: n for _, above in here for n, x in enumerate(above)}
    most: dict[str, int] = {}
    for leaf, _ in here:
        if leaf.id in loop_of:
            most[leaf.statement] = max(most.get(leaf.statement, 0), deep[loop_of[leaf.id]])
    return {leaf.id for leaf, _ in here if leaf.id in loop_of and deep[loop_of[leaf.id]] < most[leaf.statement]}


def stepped_time(plan: Plan, kernel: Kernel, found: tuple[Stepping, ...], counts: KernelCounts, gpu: Gpu,
                 clock: float) -> Stepped:
    """The time of a launch of a kernel with loops that step.

    Parameters
    ----------
    plan : Plan
    kernel : Kernel
    found : tuple of Stepping
        At least one.
    counts : KernelCounts
    gpu : Gpu
    clock : float
        Cycles of a microsecond.
    """
    facts = {(a.leaf, a.slot): a for a in traffic(plan, kernel.id)}
    steps = tuple(_step(plan, s, facts, counts, gpu, clock) for s in found)
    resident = resident_blocks(plan, kernel, counts, gpu)
    held = min(resident, -(-counts.blocks // gpu.multiprocessors))
    stored = _stored(plan, kernel, found, facts, counts, held * counts.threads)
    return stepped(steps, stored, counts.blocks, counts.threads, resident, gpu.multiprocessors, clock,
                   _starts(plan, kernel, found), prod(plan.clusters[kernel.id]) if is_shared(kernel, plan) else 1)


def _starts(plan: Plan, kernel: Kernel, found: tuple[Stepping, ...]) -> int:
    """How often a block starts its pipelines: in each iteration around them, where no producer runs ahead of these too."""
    return 1 if kernel.has_roles else max(s.starts if s.stages > 1 else 1 for s in found)


def resident_blocks(plan: Plan, kernel: Kernel, counts: KernelCounts, gpu: Gpu) -> int:
    """Blocks that a multiprocessor holds at a time, by threads, shared memory, and the registers that plans know of.

    Fragments that are loaded ahead count once: they take the place of what compilers load early by themselves (in tiles of 128 x
    128 x 32 two blocks were resident with them, as without, on an H200).
    """
    used = {view.buffer for leaf, _, k in plan.leaves if k.id == kernel.id for _, view in leaf.views}
    held = sum(-(-plan.buffer_of[name].nbytes // (WORD_BYTES * _slots(plan, name))) for name in used
               if plan.buffer_of[name].space == "register")
    words = min(-(-(held + RESERVED) // GRANULE) * GRANULE, gpu.max_registers_per_thread)
    threads = prod(with_producer(kernel, plan.extents[kernel.id][3:])) if kernel.has_roles else counts.threads
    room = counts.shared_bytes + gpu.reserved_shared_bytes_per_block + ALIGNMENT_BYTES
    by_registers = kernel.resident or (1 if kernel.registers else gpu.registers_per_sm // (words * threads))
    return max(1, min(by_registers, gpu.shared_bytes_per_sm // room,
                      gpu.max_threads_per_sm // threads, gpu.max_blocks_per_sm))


def _steps_of(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], here: list[Nest]) -> str:
    """The loop in whose iterations a leaf copies tiles from global memory to shared memory; "" where it is no such copy."""
    statement = plan.statement_of[leaf.statement]
    view = leaf.view(len(statement.reads))
    if view is None or plan.buffer_of[view.buffer].space != "shared" or len(statement.reads) != 1 or leaf.view(0):
        return ""
    used = frozenset[str]().union(*(e.variables() for _, e in leaf.at))
    readers = [{x.id for x in loops} for other, loops in here if other.id != leaf.id and any(
        v.buffer == view.buffer and slot < len(plan.statement_of[other.statement].reads) for slot, v in other.views)]
    return next((x.id for x in reversed(above) if x.role == "seq" and x.id in used and any(x.id in r for r in readers)), "")


def _stepping(plan: Plan, kernel: Kernel, loop: str, nests: list[Nest], loop_of: dict[str, str]) -> Stepping:
    around = next(above for _, above in nests if any(x.id == loop for x in above))
    place = [x.id for x in around].index(loop)
    steps = [x for x in around[: place + 1] if not x.is_place and x.role != "launch"]
    launch, outer = launch_extents(plan, kernel), {x.id for x in steps}
    copies, uses = list[Use](), list[Use]()
    for leaf, above in nests:
        used = tuple(s for s in sites(plan)[kernel.id] if s.leaf.id == leaf.id)
        whole = leaf.mechanism in IN_BOXES  # by one thread, wherever it stands
        inside = tuple(x for x in above if x.id not in outer and x.role != "launch" and not (x.is_place if whole else x.is_block))
        shared = used[-1] if leaf.mechanism else used[0]
        repeats = prod(n for n, at in zip(launch[3:], shared.place[3:], strict=True) if at is None)
        alone = repeats if instruction(leaf.mechanism) is None and leaf.mechanism not in (*MATRIX_MOVES, *IN_BOXES) else 1
        use = Use(leaf, plan.statement_of[leaf.statement], inside, alone, used)
        (copies if loop_of.get(leaf.id) == loop else uses).append(use)
    slots = [_slots(plan, use.used[-1].storage) for use in copies]
    rows = [(use, row) for use in uses if (row := instruction(use.leaf.mechanism))]
    most, starts = prod(x.extent for x in steps), prod(x.extent for x in steps[:-1])
    return Stepping(loop, max(1, round(most * share_run(plan, steps))), most, starts, min(slots), tuple(copies), tuple(uses),
                    _ahead(plan, rows), any(isinstance(row, Wgmma) and row.in_flight for _, row in rows))


def _slots(plan: Plan, name: str) -> int:
    """Slots of a buffer: 1 where it has no dimension for them."""
    shape = plan.buffer_of[name].shape
    return shape[0] if any(c.name == name for c in plan.copies) and len(shape) > plan.array_of[name].given else 1


def _step(plan: Plan, s: Stepping, facts: dict[tuple[str, int], AccessFacts], counts: KernelCounts, gpu: Gpu,
          clock: float) -> Step:
    """What one step of one block takes."""
    engine, warps = s.engine, counts.threads / WARP_SIZE
    cycles = gpu.multiprocessors * clock * 1e6  # of a second, on all multiprocessors
    tensor = sum(2 * use.times / tensor_flops_per_s(row, gpu) * cycles for use, row in s.instructions)
    issue, banks, reads = 0.0, 0.0, list[Read]()
    for use in s.uses:
        if instruction(use.leaf.mechanism):
            continue
        to_registers = use.used[-1].space == "register" and use.statement in plan.copies
        if not to_registers:
            wide = gpu.f32_flops_per_s / gpu.f64_flops_per_s if _bytes(plan, use.used[-1]) == 8 else 1.0
            issue += use.times * _operations(use.statement) * wide * _banked(use) / WARP_SIZE / WARPS_PER_CYCLE
        for site in use.used:
            if site.space == "shared" and to_registers and (known := facts.get((use.leaf.id, site.slot))):
                banks += known.requests * _words(known, use.leaf) * known.conflicts / (counts.blocks * s.count)
            elif site.space == "shared":
                reads.append(Read(site, use.inside, facts.get((use.leaf.id, site.slot))))
    for loads, passes in shared_loads(plan, reads):
        banks += passes * warps
        issue += loads * warps / WARPS_PER_CYCLE * (engine == "plain")
    if engine == "plain":
        issue += _beside(s, counts.threads) * warps / WARPS_PER_CYCLE
    waited = engine == "warpgroup" and not s.in_flight
    narrow = sum(use.times / counts.threads for use in s.copies if _is_narrow(plan, s, use))
    load = _load(plan, s, facts, counts)
    return Step(engine, s.count, s.stages, tensor / RATES[engine].share, issue, banks, load, waited, narrow, _is_even(plan, s))


def _banked(use: Use) -> float:
    """Issues of a product of registers in a tile of results (:data:`~.rates.BANKED`), 1 elsewhere."""
    target = use.leaf.view(len(use.statement.reads))
    if not is_product(use.statement) or target is None:
        return 1.0
    tile = {v for e in target.index for v in e.variables()}
    written_out = [x.id for x in use.inside if x.role in ("unroll", "vector")]
    last = [e for site in use.used if site.space == "shared" for e in site.cell[-1:] if e is not None]
    along = any(e.coefficient(x) == 1 for e in last for x in written_out if x not in tile)
    return BANKED[along] if tile.intersection(written_out) else 1.0


def _beside(s: Stepping, threads: int) -> float:
    """Instructions of a warp in a step beside arithmetic and loads: copies, turns around what is written out, its own."""
    copied = sum(use.times / _vector(use) / threads * COPY_ISSUED[use.leaf.mechanism in ASYNCHRONOUS] for use in s.copies)
    written_out = (use.inside for use in s.uses if any(x.role == "unroll" for x in use.inside))
    loops = {x.id: x.extent for inside in written_out for x in inside if not x.is_place and x.role == "seq"}
    return STEP_ISSUED + copied + TURN_ISSUED * prod(loops.values()) * bool(loops)


def _vector(use: Use) -> int:
    """Elements of one access."""
    return prod(x.extent for x in use.inside if x.role == "vector")


def _is_narrow(plan: Plan, s: Stepping, use: Use) -> bool:
    """Whether threads of plain arithmetic copy one word at a time, asynchronously."""
    word = _vector(use) * _bytes(plan, use.used[-1]) == WORD_BYTES
    return s.engine == "plain" and use.leaf.mechanism == "async" and word


def _words(known: AccessFacts, leaf: Leaf) -> float:
    """Words of a lane that a request takes: a share of one where a warp moves matrices, several requests' elements together."""
    words = known.width_bytes / WORD_BYTES
    return words if leaf.mechanism in MATRIX_MOVES else max(1.0, words)


def _ahead(plan: Plan, rows: list[tuple[Use, Instruction]]) -> bool:
    """Whether the fragments of a product are loaded during the one before it: their registers have slots."""
    named = {view.buffer for use, _ in rows for slot, view in use.leaf.views if slot < len(use.statement.reads)}
    return any(plan.buffer_of[name].space == "register" and _slots(plan, name) > 1 for name in named)


@lru_cache(maxsize=4096)
def _operations(statement: Statement) -> int:
    """Instructions of one execution: a product that is added is one."""
    return 1 if is_product(statement) else additions(statement.value) + bool(statement.update)


def _bytes(plan: Plan, site: Site) -> int:
    """Of an element of what a site accesses."""
    staged = site.leaf.view(site.slot) is not None
    return (plan.buffer_of if staged else plan.array_of)[site.storage].dtype.bytes


def _load(plan: Plan, s: Stepping, facts: dict[tuple[str, int], AccessFacts], counts: KernelCounts) -> float:
    """Cycles in which a multiprocessor takes in the tiles of a step: their bytes, and the instructions that copy them.

    A warp issues one for all its lanes, and as many where few of them copy.
    """
    taken = issued = 0.0
    for use in s.copies:
        item = _bytes(plan, use.used[-1])
        shared = use.leaf.multicast[1] if use.leaf.multicast else 1  # each neighbour fetches a part
        taken += use.times * item * _lines(plan, use, s.engine) / shared
        if use.leaf.mechanism != "bulk":
            cycles = NARROW_CYCLES if _is_narrow(plan, s, use) else copy_cycles(
                s.engine, use.leaf.mechanism in ASYNCHRONOUS, _vector(use) * item)
            known = facts.get((use.leaf.id, use.used[0].slot))
            requests = known.requests / (counts.blocks * s.count) if known else 0.0
            issued += max(use.times / _vector(use) / WARP_SIZE, requests) * cycles
    return max(taken / taken_in(RATES[s.engine], s.panels, (_pitch(plan, use) for use in s.copies)), issued)


def _pitch(plan: Plan, use: Use) -> int:
    """Bytes from one row to the next of the array that is copied."""
    return plan.array_of[use.used[0].storage].stored[-1] * _bytes(plan, use.used[-1])


def _lines(plan: Plan, use: Use, engine: str) -> float:
    """How much longer a copy takes than one of whole lines of the cache, or of whole sectors where threads copy."""
    item = _bytes(plan, use.used[-1])
    row, pitch = plan.buffer_of[use.used[-1].storage].shape[-1] * item, _pitch(plan, use)
    if use.leaf.mechanism == "bulk":
        found = bulk(plan, use.leaf, use.used[-1].above)
        there = () if isinstance(found, Never) else (
            (n, min(n, prod(axes))) for n, axes in zip(found.box[:-1], found.axes[:-1], strict=True))
        rows = [*there] or [(1, 1)]
        return of_lines(row, pitch, prod(n for n, _ in rows), prod(n for _, n in rows))
    return of_sectors(row, pitch) if engine == "warp" else 1.0


def _is_even(plan: Plan, s: Stepping) -> bool:
    """Whether large boxes of whole lines are loaded, in one loop of a block (:attr:`~.terms.Step.even`)."""
    whole = all(use.leaf.mechanism == "bulk" and _lines(plan, use, s.engine) == 1.0
                and use.times * _bytes(plan, use.used[-1]) >= LEAST_BOX for use in s.copies)
    return whole and s.panels == 1 and s.starts == 1


def _stored(plan: Plan, kernel: Kernel, found: tuple[Stepping, ...], facts: dict[tuple[str, int], AccessFacts],
            counts: KernelCounts, threads: int) -> float:
    """Cycles in which a multiprocessor computes a block's results, while so many threads do so, and writes them."""
    inside = {use.leaf.id for s in found for use in (*s.copies, *s.uses)}
    rates = RATES[found[0].engine]
    cycles = results_cycles(sum(x.operations for x in counts.leaves if x.leaf not in inside) / counts.blocks, threads)
    for (leaf, _, _), known in zip([x for x in plan.leaves if x[2].id == kernel.id], counts.leaves, strict=True):
        used = [s for s in sites(plan)[kernel.id] if s.leaf.id == leaf.id]
        if leaf.id in inside or used[-1].space != "global":
            continue
        item = _bytes(plan, used[-1])
        write = facts.get((leaf.id, used[-1].slot))
        rate = min(rates.stored * item, rates.through)
        if write is not None and any(s.space == "shared" for s in used[:-1]):
            whole = 1.0 if leaf.mechanism in IN_BOXES else min(1.0, write.efficiency / WHOLE)
            rate = max(rate, rates.through * whole)
        cycles += known.executions * item / counts.blocks / rate
    return cycles
