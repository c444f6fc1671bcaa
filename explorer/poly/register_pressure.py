"""Register pressure: plans whose register arrays cannot fit into the registers of a thread, by a lower bound.

A block's registers are divided among its threads, and a compiler that is left too few spills, or refuses the text.  Only what is
sure is counted, so that no kernel that fits is refused: sums that a loop carries from one iteration to the next (all of them are
live throughout it), and the operands of a tensor instruction.  What is loaded ahead may be loaded later by a compiler; addresses
and counters come on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..ir.finding import Finding
from ..ir.instructions import Wgmma, instruction
from ..ir.plan import Buffer, Plan
from ..ir.tree import Kernel, Leaf, Loop, leaves, ranges
from .roles import with_producer

PER_BLOCK, PER_THREAD, UNIT = 65536, 255, 8
"""32-bit registers of a block and of a thread, on every GPU of the catalogue, and what a thread's are a multiple of (CUDA C++
Programming Guide, "Technical Specifications per Compute Capability"; ``cuda_occupancy.h``: 256 for each warp)."""
WGMMA_RESERVE = 26
"""Registers beside its accumulator without which ptxas refuses a warpgroup's instruction ("Insufficient registers to compile
instruction"; NVRTC 13: with 3 to 8 warpgroups, it took accumulators of 26 fewer than there are and refused all larger ones)."""
FEW = 8
"""Iterations of a loop of plain arithmetic that a compiler may write out, and then order otherwise."""

Words = dict[str, int]
"""Registers by array."""


def pressures(plan: Plan) -> Iterator[Finding]:
    """A finding for each launch whose threads would need more registers than there are."""
    if not any(b.space == "register" for b in plan.buffers):
        return
    for group in plan.launched:
        blocks = (with_producer(kernel, plan.extents[kernel.id][3:]) for kernel in group)
        threads = prod(map(max, zip(*blocks, strict=True)))
        for kernel in group:
            if found := _pressure(plan, kernel, threads):
                yield found


def registers_of(threads: int) -> int:
    """How many registers each thread of a block can have."""
    return min(PER_THREAD, PER_BLOCK // (-(-threads // 32) * 32) // UNIT * UNIT)


def _pressure(plan: Plan, kernel: Kernel, threads: int) -> Finding | None:
    limit = kernel.registers or registers_of(threads)
    worst: tuple[Leaf, Words, tuple[int, bool]] | None = None
    carried: dict[str, Words] = {}
    for leaf, above in leaves(kernel.body):
        held, needed = _operands(plan, leaf), 0
        if held and isinstance(instruction(leaf.mechanism), Wgmma):
            needed = max(held.values()) + WGMMA_RESERVE  # by itself, and refused rather than spilled
        for loop in above:
            if loop.role == "seq":
                if loop.id not in carried:
                    carried[loop.id] = _carried(plan, loop, above[: above.index(loop) + 1])
                for name, words in carried[loop.id].items():
                    held[name] = max(held.get(name, 0), words)
        total = sum(held.values())
        over = max(needed - limit, total + 1 - limit), any(view.buffer in held for _, view in leaf.views)
        if over[0] > 0 and (worst is None or over > worst[2]):
            worst = leaf, held, over
    return _finding(plan, kernel, threads, limit, worst[0], worst[1]) if worst else None


def _operands(plan: Plan, leaf: Leaf) -> Words:
    """The registers that one tensor instruction takes at once, of each array."""
    row = instruction(leaf.mechanism)
    if row is None:
        return {}
    sizes = {2: row.accumulator.registers * row.c.bytes}
    if isinstance(row, Wgmma):
        sizes |= {0: row.left.registers * row.a.bytes} if row.left else {}
    else:
        sizes |= {0: row.left.registers * row.a.bytes, 1: row.right.registers * row.b.bytes}
    out: Words = {}
    for slot, size in sizes.items():
        if view := leaf.view(slot):
            out[view.buffer] = out.get(view.buffer, 0) + -(-size // 4)
    return out


def _carried(plan: Plan, loop: Loop, above: tuple[Loop, ...]) -> Words:
    """Arrays whose updates in a loop go on from what its iteration before has left, all cells of them that it touches."""
    ids = {x.id for x in above}
    boxes: dict[str, list[tuple[int, int]]] = {}
    begun: set[str] = set()
    tensor = False
    for leaf, inside in leaves(loop.body):
        statement = plan.statement_of[leaf.statement]
        view = leaf.view(len(statement.reads))
        tensor = tensor or instruction(leaf.mechanism) is not None
        if view is None or (buffer := plan.buffer_of[view.buffer]).space != "register":
            continue
        if statement.update is None:
            reads = {v.buffer for slot, v in leaf.views if slot < len(statement.reads)}
            begun |= {view.buffer} - reads
        elif not any(e.variables() & ids for e in view.index) and buffer.scope != loop.id and not _inside(loop, buffer.scope):
            box = [e.interval(ranges((*above, *inside))) for e in view.index]
            known = boxes.setdefault(view.buffer, box)
            boxes[view.buffer] = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(known, box, strict=True)]
    if loop.extent < (2 if tensor else FEW):
        return {}
    return {name: _words(plan.buffer_of[name], box) for name, box in boxes.items() if name not in begun}


def _inside(loop: Loop, scope: str) -> bool:
    """Whether a buffer lives in the body of a loop below this one."""
    return any(x.id == scope for _, inside in leaves(loop.body) for x in inside)


def _words(buffer: Buffer, box: list[tuple[int, int]]) -> int:
    """Registers of the cells of an array in a box."""
    cells = prod(min(n, high - low + 1) for n, (low, high) in zip(buffer.shape, box, strict=True))
    return -(-cells * buffer.dtype.bytes // 4)


def _finding(plan: Plan, kernel: Kernel, threads: int, limit: int, leaf: Leaf, held: Words) -> Finding:
    """Which arrays take how many registers, and what to shrink."""
    largest = sorted(held, key=lambda name: (-held[name], name))
    warpgroup = isinstance(instruction(leaf.mechanism), Wgmma)
    beside = f" and {WGMMA_RESERVE} beside them" if warpgroup else ", and addresses beside them"
    others = {b.name: -(-b.nbytes // 4) for b in _registers(plan, kernel) if b.name not in held}
    more = f"; further arrays of {kernel.id} in registers: {_listed(others)}" if others else ""
    share = (f"specialise gave them {limit}" if kernel.registers else f"a thread has at most {limit}" if limit == PER_THREAD else
             f"a block has {PER_BLOCK:,}, which is {limit} for each")
    line = plan.statement_of[leaf.statement].line
    return Finding(
        "obligation",
        f"{_listed(held)} {'take' if len(held) > 1 else 'takes'} {sum(held.values())} registers of each of {threads:,} "
        f"threads{beside}",
        f"all are live at {leaf.id}, and {share}: the compiler would refuse them or spill{more}", kind="kernel",
        nodes=(leaf.id, *largest), lines=(line,) if line else (),
        hints=(f"smaller tiles of {largest[0]}: split the loops that run over it by less", *(
            ("fewer threads: split the loops that are bound to threads by less",) if limit < PER_THREAD else ())))


def _registers(plan: Plan, kernel: Kernel) -> list[Buffer]:
    used = {view.buffer for leaf, _ in leaves(kernel.body) for _, view in leaf.views}
    return [b for b in plan.buffers if b.space == "register" and b.name in used]


def _listed(words: Words) -> str:
    return ", ".join(f"{name} ({n})" for name, n in sorted(words.items(), key=lambda x: (-x[1], x[0])))
