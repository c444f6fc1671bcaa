"""Hardware limits of a legal plan: what still prevents a kernel for it.

They are obligations, since a later step can meet them: bind another loop, contract a sum to registers, join in another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod

from ..ir.finding import Finding
from ..ir.plan import Plan
from ..ir.rounding import SUMS
from ..ir.tree import MOST_CLUSTER, Kernel, Leaf, Loop, walk
from .arrivals import miscounts
from .tensor import is_product

MOST_THREADS = 1024
"""Threads of a block (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
REGISTER_BYTES = 255 * 4
"""Registers of a thread, on every GPU of compute capability 3.5 or more (CUDA C++ Programming Guide, "Technical Specifications
per Compute Capability"); what is more lies in local memory, which is global memory."""
MOST_COUNTERS = 1 << 24
"""Counters of one launch (64 MiB of a module's own memory)."""
MOST_WORDS = 1 << 23
"""Words of one launch that blocks hand over (64 MiB)."""


def check_expressible(plan: Plan) -> tuple[Finding, ...]:
    """A finding for everything that no kernel can say as it stands."""
    return (*_leaves(plan), *_registers(plan), *_launches(plan), *_groups(plan))


def _open(plan: Plan, node: str, what: str, why: str, *hints: str, leaf: Leaf | None = None) -> Finding:
    line = plan.statement_of[leaf.statement].line if leaf else 0
    return Finding("obligation", what, why, kind="kernel", nodes=(node,), lines=(line,) if line else (), hints=hints)


def _leaves(plan: Plan) -> Iterator[Finding]:
    for leaf, above, kernel in plan.leaves:
        if leaf.mechanism in SUMS:
            yield from _sum(plan, leaf)
        if leaf.collect:
            yield from _lanes(plan, leaf, above, kernel)


def _registers(plan: Plan) -> Iterator[Finding]:
    """A register array for a tensor instruction, which is more than a thread has until it is spread over lanes."""
    for b in plan.buffers:
        if b.space == "register" and b.nbytes > REGISTER_BYTES:
            user = next((leaf for leaf, _, _ in plan.leaves if leaf.mechanism == "plain"
                         and is_product(plan.statement_of[leaf.statement])
                         and any(v.buffer == b.name for _, v in leaf.views)), None)
            hints = (f"tensorize('{user.id}') spreads it over the lanes of a warp or a warpgroup",) if user else ()
            yield _open(plan, b.scope or plan.kernels[0].id, f"{b.name} would take {b.nbytes:,} bytes of registers a thread",
                        f"a thread has 255 registers of 4 bytes, {REGISTER_BYTES:,} in all", *hints, "smaller tiles", leaf=user)


def _sum(plan: Plan, leaf: Leaf) -> Iterator[Finding]:
    """A sum that keeps more than its value does so in a thread's registers."""
    statement = plan.statement_of[leaf.statement]
    view = leaf.view(len(statement.reads))
    buffer = plan.buffer_of[view.buffer] if view else None
    if buffer is None or buffer.space != "register" or buffer.dtype.name != buffer.dtype.wide.name:
        space = buffer.space if buffer else "global"
        yield _open(plan, leaf.id, f"{leaf.id} adds with method={leaf.mechanism!r} into {space} memory",
                    "what such a sum keeps beside its value belongs to one thread, in the type that it adds in",
                    f"contract('{statement.target.array}', 'register')", leaf=leaf)


def _lanes(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], kernel: Kernel) -> Iterator[Finding]:
    """Warps or lanes alone are combined in blocks with one dimension."""
    ways = dict(leaf.collect)
    roles = {x.role for x in above if x.is_thread and ways.get(x.id, "atomic") != "atomic"}
    x, y, z = plan.extents[kernel.id][3:]
    if roles & {"warp", "lane"} and roles & {"warp", "lane"} != {"warp", "lane"} and y * z > 1:
        others = [n.id for n in above if n.role in ("thread.y", "thread.z")]
        yield _open(plan, leaf.id, f"{leaf.id} combines {', '.join(sorted(roles))} in a block of {x}×{y}×{z} threads",
                    "warps or lanes alone are combined in blocks with one dimension",
                    *(f"bind('{name}', '{role}')" for name in others for role in ("warp", "block.y", "seq")), leaf=leaf)


def _groups(plan: Plan) -> Iterator[Finding]:
    """Groups of bulk copies are waited for one by one, since they land in any order."""
    for m in miscounts(plan):
        line = plan.statement_of[m.leaf.statement].line
        yield Finding("obligation", m.what, m.why, kind="kernel", nodes=m.nodes, lines=(line,) if line else (), hints=(m.hint,))


def _hosted(plan: Plan, kernel: Kernel) -> Iterator[Finding]:
    """A loop that the host runs, beside which its kernel holds something else: every launch would do that too."""
    body, holder = kernel.body, kernel.id
    while len(body) == 1 and isinstance(only := body[0], Loop) and only.role == "launch":
        body, holder = only.body, only.id
    for loop in (n for n in walk(body) if isinstance(n, Loop) and n.role == "launch"):
        outer = holder == kernel.id
        here = [n.id for n in body]
        where = here.index(loop.id) if outer and loop.id in here else -1
        after = ([loop.id] if 0 <= where < len(here) - 1 else []) + ([here[where - 1]] if where > 0 else [])
        hints = (f"launch('{kernel.id}', after='{x}')" for x in after)
        yield _open(plan, loop.id, f"the host runs {loop.id}, but {holder} holds more than this loop",
                    "each of its iterations is a launch of the whole kernel", *hints, f"bind('{loop.id}', 'seq')")


def _launches(plan: Plan) -> Iterator[Finding]:
    for kernel in plan.kernels:
        yield from _hosted(plan, kernel)
    for group in plan.launched:
        kernel = group[0]
        block = plan.extents[kernel.id][3:]
        if prod(block) > MOST_THREADS:
            yield _open(plan, kernel.id, f"{', '.join(k.id for k in group)} would need blocks of "
                        f"{' x '.join(map(str, block))} = {prod(block)} threads", f"a block has at most {MOST_THREADS}",
                        "split the loops bound to threads")
        cluster = plan.clusters[kernel.id]
        if prod(cluster) > MOST_CLUSTER:
            extents = " x ".join(map(str, cluster))
            yield _open(plan, kernel.id, f"{kernel.id} would need clusters of {extents} = {prod(cluster)} blocks",
                        f"a cluster has at most 8 blocks, {MOST_CLUSTER} where the GPU allows it; it is the whole grid along the "
                        "axes that it combines", "divide the loop before it is bound, and combine the outer part by atomics")
        for before, after in pairwise(group):
            if after.join in ("last_block", "handoff"):
                yield from _counters(plan, before, after)


def _counters(plan: Plan, before: Kernel, after: Kernel) -> Iterator[Finding]:
    """What blocks count with, and hand to each other, has its limits."""
    axes, every = plan.joined_axes(after), plan.extents[before.id]
    turns = prod(every[axis] for axis in axes)
    if after.join == "last_block":
        if turns > MOST_COUNTERS and prod(every[axis] for axis in range(3) if axis not in axes) > 1:
            yield _open(plan, after.id, f"{after.id} would need {turns:,} counters of finished blocks, {4 * turns:,} bytes",
                        f"at most {MOST_COUNTERS:,} are kept", f"join('{after.id}', 'launch')")
        return
    handed = (key for key, kernel in plan.handed_off.items() if kernel == after.id)
    words = sum(prod(plan.buffer_of[name].padded_shape if kind == "buffer" else plan.array_of[name].stored)
                for kind, name in handed)
    if max(words, turns) > MOST_WORDS:
        yield _open(plan, after.id, f"{after.id} would be handed {words:,} words, {8 * words:,} bytes",
                    f"at most {MOST_WORDS:,} are kept", f"join('{after.id}', 'last_block')")
