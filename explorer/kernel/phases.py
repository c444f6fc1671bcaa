"""CUDA text of a launch with several phases: each in a scope of its own, behind the counter, flags or barrier it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ..ir.plan import Plan
from ..ir.tree import Kernel
from .lines import Block, Lines, Out
from .sites import Lowered, Store


@dataclass(frozen=True)
class Phase:
    """A kernel of the launch, and its text with the declarations of its roles."""

    low: Lowered
    body: tuple[Out, ...]


@dataclass(frozen=True)
class Joined:
    """The text of a launch of several phases.

    Attributes
    ----------
    body : tuple of Out
    library : frozenset of str
        Parts of the device library that the phases are joined by.
    counters : tuple of str
        Declarations, outside of the kernel, of what its blocks count with and hand to each other.
    head : tuple of str
        Declarations in front of the phases.
    """

    body: tuple[Out, ...]
    library: frozenset[str]
    counters: tuple[str, ...]
    head: tuple[str, ...] = ()


def joined(plan: Plan, phases: Sequence[Phase], name: Callable[[Kernel, str], str]) -> Joined:
    """The phases of one launch behind each other.

    A phase joined by ``last_block`` is the body of an ``if (last_block(...))``.  The next such phase is nested in it: only the
    blocks that ran the phase before it count.  A phase joined by ``handoff`` follows one that all blocks run.

    Parameters
    ----------
    plan : Plan
    phases : sequence of Phase
        In order, two or more.
    name : callable
        From a kernel and the kind of its counters to a free name for them.
    """
    out: list[Out] = []
    library: set[str] = set()
    counters: list[str] = []
    head: list[str] = []
    position, barrier = 0, ""
    while position < len(phases):
        end = next((i for i in range(position + 1, len(phases)) if not phases[i].low.kernel.by_one), len(phases))
        if position:
            if not barrier:
                barrier = name(phases[0].low.kernel, "barrier")
                counters.append(f"__device__ unsigned int {barrier}[1];  // blocks that came to the barrier: see grid_barrier")
            library.add("grid")
            out.append(Lines(("", f"grid_barrier({barrier});  // all blocks of the grid wait here")))
        first, rest = phases[position], phases[position + 1 : end]
        out.append(Block("", first.body, _ids(first), comment=first.low.kernel.id))
        if rest and rest[0].low.kernel.join == "cluster":
            out += _cluster_join(plan, out.pop(), first.low, rest[0], library, head)
        elif rest and rest[0].low.kernel.join == "handoff":
            out += _handed_off(plan, first.low, rest[0], name, library, counters, head)
        else:
            out += _behind(plan, first.low.kernel, rest, name, library, counters)
        position = end
    return Joined(tuple(out), frozenset(library), tuple(counters), tuple(head))


def _behind(plan: Plan, before: Kernel, phases: Sequence[Phase], name: Callable[[Kernel, str], str], library: set[str],
            counters: list[str]) -> list[Out]:
    if not phases:
        return []
    phase, rest = phases[0], phases[1:]
    kernel = phase.low.kernel
    axes, every = plan.joined_axes(kernel), plan.extents[before.id]
    parts = prod(every[axis] for axis in range(3) if axis not in axes)
    counted = prod(every[axis] for axis in axes)
    body = (*phase.body, *_behind(plan, kernel, rest, name, library, counters))
    if goes_on(plan, before, kernel):
        return _going_on(kernel, body)
    library.add("last_block")
    counter = name(kernel, "finished")
    counters.append(f"__device__ unsigned int {counter}[{counted}];  // blocks that have finished; 0 between launches")
    header = f"if (last_block({_at(counter, axes, every)}, {parts}))"
    return [Lines(("",)), Block(header, body, (kernel.id,), comment=f"{kernel.id}: the last of {parts} blocks goes on")]


def goes_on(plan: Plan, before: Kernel, kernel: Kernel) -> bool:
    """Whether every block that ran one phase goes on with the next, and waits for nobody but itself."""
    if kernel.join == "cluster":
        return prod(plan.clusters[before.id]) == 1
    axes = plan.joined_axes(kernel)
    return kernel.join == "last_block" and prod(plan.extents[before.id][axis] for axis in range(3) if axis not in axes) == 1


def _going_on(kernel: Kernel, body: tuple[Out, ...]) -> list[Out]:
    """A phase of a block that needs nothing of others."""
    return [Lines(("", "__syncthreads();  // the block goes on with what it wrote itself")),
            Block("", body, (kernel.id,), comment=kernel.id)]


def _handed_off(plan: Plan, before: Lowered, phase: Phase, name: Callable[[Kernel, str], str], library: set[str],
                counters: list[str], head: list[str]) -> list[Out]:
    """A phase run by the last block, in order, of those that it takes parts from; every part is a word of its own."""
    kernel = phase.low.kernel
    axes, every = plan.joined_axes(kernel), plan.extents[before.kernel.id]
    others = [axis for axis in range(3) if axis not in axes and every[axis] > 1]
    parts, counted = prod(every[axis] for axis in others), prod(every[axis] for axis in axes)
    stores = [s for key, s in before.stores.items() if plan.handed_off.get(key) == kernel.id]
    library.add("handoff")
    counter = name(kernel, "launches")
    counters.append(f"__device__ unsigned int {counter}[{counted}];  // launches so far")
    at = _at(counter, axes, every)
    for s in stores:
        held = name(kernel, f"{s.name}_words")
        counters.append(f"__device__ unsigned long long {held}[{prod(s.shape)}];  // parts: a value and the number of its launch")
        head.append(f"const handed_off<{s.dtype.cuda}> {s.name} = {{{held}, handoff_flag({at}, {parts})}};")
    last = " && ".join(f"blockIdx.{'xyz'[axis]} == {every[axis] - 1}" for axis in others) or "true"
    end = Lines((f"handoff_end({at}, {stores[0].name}.flag);",))
    return [Lines(("",)), Block(f"if (handoff_joins({at}, {parts}, {last}))", (*phase.body, end), (kernel.id,),
                                comment=f"{kernel.id}: the last block waits for the parts of all {parts}")]


def _cluster_join(plan: Plan, begin: Out, before: Lowered, phase: Phase, library: set[str], head: list[str]) -> list[Out]:
    """A phase run by the last block of each cluster; parts that have slots are written to its shared memory."""
    kernel, grid = phase.low.kernel, plan.extents[before.kernel.id]
    cluster = plan.clusters[before.kernel.id]
    blocks, along = prod(cluster), [axis for axis in range(3) if cluster[axis] > 1]
    if goes_on(plan, before.kernel, kernel):
        return [begin, *_going_on(kernel, phase.body)]
    stores = [s for s in before.stores.values() if s.slots]
    library.add("cluster_parts")
    for s in stores:
        head.append(f"const cluster_parts<{s.dtype.cuda}> {s.name} = {{{slots_store(s).name}, {blocks - 1}}};")
    writers = frozenset[str]().union(*(s.slots.writers for s in stores if s.slots))
    if stores:
        head.append("cluster_begin();")
        assert isinstance(begin, Block)
        first = next((n for n, out in enumerate(begin.body) if writers & {*all_ids(out)}), len(begin.body))
        wait = Lines(("cluster_begun();",))
        begin = replace(begin, body=(*begin.body[:first], wait, *begin.body[first:]))
    last = " && ".join(f"blockIdx.{'xyz'[axis]} == {grid[axis] - 1}" for axis in along) or "true"
    return [begin, Lines(("",)), Block(f"if (cluster_joins({last}))", phase.body, (kernel.id,),
                                       comment=f"{kernel.id}: one of the {blocks} blocks of a cluster joins their parts")]


def slots_store(store: Store) -> Store:
    """The shared array in which a cluster's parts of an array lie."""
    assert store.slots
    return Store(store.slots_name, store.dtype, (store.slots.size,), "shared")


def all_ids(out: Out) -> Iterator[str]:
    """The nodes that a text and everything in it belong to."""
    yield from out.ids
    for child in (*out.body, *out.otherwise) if isinstance(out, Block) else ():
        yield from all_ids(child)


def _at(counter: str, axes: Sequence[int], grid: Sequence[int]) -> str:
    """The counter of this block's coordinates along the axes."""
    terms, stride = list[str](), 1
    for axis in axes:
        terms.append(f"blockIdx.{'xyz'[axis]}" if stride == 1 else f"{stride} * blockIdx.{'xyz'[axis]}")
        stride *= grid[axis]
    return f"&{counter}[{' + '.join(terms)}]" if terms else counter


def _ids(phase: Phase) -> tuple[str, ...]:
    return (phase.low.kernel.id,)
