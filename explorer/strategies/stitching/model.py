"""What a stitching costs: the model by which schemes are chosen, every term of it in microseconds.

Memory is what the kernels move at the GPU's bandwidth; a value that stays in a kernel moves nothing, an array that several
passes of a kernel read moves once where its row fits the threads' registers.  To that come what too few or too long rows lose
against that bandwidth (*spread*, :mod:`~explorer.strategies.stitching.rates`), launches and the latency
of each, barriers of a whole grid, exchanges between threads, computing again, and, with a minus, what a later kernel finds in the
cache.  Phases of one launch share its grid: of blocks as wide as the widest, as many as are resident at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set

from ...gpu.occupancy import occupancy
from ...gpu.spec import Gpu
from ..elementwise import THREADS as ELEMENTS
from .cost import KernelCost
from .graph import Graph, name_of
from .group import Block, Group, statements_of

PHASES = 24
"""Registers that a launch of several phases takes beyond them (an estimate)."""


def kernel_costs(graph: Graph, groups: tuple[tuple[str, ...], ...], schemes: Mapping[str, str], free: Mapping[int, bool | None],
                 gpu: Gpu, barriers: Set[int] = frozenset(), whole: Set[int] = frozenset(),
                 known: dict[Hashable, KernelCost] | None = None) -> tuple[KernelCost, ...]:
    """The cost of each group's kernel.

    Parameters
    ----------
    graph : Graph
    groups : tuple of tuple of str
        Values of each kernel, in the order in which the kernels run.
    schemes : mapping of str to str
        Edge to scheme.
    free : mapping of int to bool or None
        Group to whether its results may be reduced in parts (None: as the model says).
    gpu : Gpu
    barriers : set of int
        Groups that are a phase of the launch before them.
    whole : set of int
        Groups whose parts are joined in their launch.
    known : dict, optional
        Costs of the same graph and GPU so far: other plans have some of the groups too.
    """
    def cost(n: int, block: Block | None = None) -> KernelCost:
        return Group(graph, groups[n], schemes, gpu, free.get(n, False)).cost(earlier[n], block)

    known = {} if known is None else known
    read = [frozenset(r.array for _, s, _ in statements_of(graph, group) for r in s.reads) for group in groups]
    earlier = [frozenset[str]().union(*read[:n]) for n in range(len(groups))]
    out, first = [], 0
    for n, group in enumerate(groups):
        near = tuple(schemes[name_of(e)] for e in graph.edges if e.array in group or e.into in group)
        key = group, near, free.get(n, False), earlier[n]
        if key not in known:
            known[key] = cost(n)
        out.append(known[key])
    for end in range(1, len(groups) + 1):
        if end in barriers:
            continue
        launch, first = range(first, end), end
        together = len(launch) > 1 or (launch[0] in whole and out[launch[0]].parts)
        if together:
            block = _block(gpu, [out[n] for n in launch])
            for n in launch:
                out[n] = cost(n, block).phase(n in barriers, n in whole)
    return tuple(out)


def _block(gpu: Gpu, phases: Sequence[KernelCost]) -> Block:
    """A block of a launch of several phases: as many threads and registers as the most, shared memory for all."""
    threads = max((k.threads for k in phases if not k.flat), default=ELEMENTS)
    registers = min(max(k.registers for k in phases) + PHASES, gpu.registers_per_sm // threads)
    return Block(threads, occupancy(gpu, threads, registers, sum(k.shared_bytes for k in phases)))
