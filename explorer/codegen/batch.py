"""What of an unrolled loop can be loaded early: loops, updates of registers, and the elements that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from ..ir.expr import Expr
from ..ir.tree import Leaf, Loop, Node
from . import vector
from .access import is_move
from .guards import NEVER, Condition
from .lower import Lowered, Site
from .overrun import Overrun
from .printer import Out

REGISTERS = 64
"""Values of 4 bytes of a thread that may be in flight together; a loop of more is left as it is."""


class Writer(Protocol):
    """What is needed of the builder of a kernel's body."""

    low: Lowered
    sites: dict[str, Site]
    overrun: Overrun
    before: frozenset[tuple[str, int]]
    register_loops: frozenset[str]
    library: set[str]
    aligned: set[str]
    asynchronous: bool

    def plain(self, site: Site, element: Callable[[int], str] | None = None, target: str | None = None) -> list[str]:
        """The statement itself."""
        ...


@dataclass(frozen=True)
class Batch:
    """Unrolled loops, one in the other, around updates of registers.

    Attributes
    ----------
    loops : tuple of Loop
    lanes : Loop or None
        The vector loop inside of them, whose lanes are loaded at once.
    sites : tuple of Site
        The updates, which share their conditions.
    some : tuple of Condition
        When an iteration loads.
    rest : tuple of Condition
        When its updates run, where that is not all: without what the lanes ask each for itself.
    each : tuple of Condition
        What a lane asks for itself.
    """

    loops: tuple[Loop, ...]
    lanes: Loop | None
    sites: tuple[Site, ...]
    some: tuple[Condition, ...]
    rest: tuple[Condition, ...]
    each: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Load:
    """What is loaded early.

    Attributes
    ----------
    local : str
        The element of a local array.
    value, otherwise : str
        What it is, and what where there is nothing to load.
    first : mapping of str to Expr or None
        The first lane, of a vector.
    only : str
        Where it is loaded at all; elsewhere nobody asks for it.
    plain : str
        What it is where nothing lies beyond its array.
    """

    local: str
    value: str
    otherwise: str
    first: Mapping[str, Expr] | None = None
    only: str = ""
    plain: str = ""


@dataclass(frozen=True)
class Parts:
    """Declarations, loads and updates; and when nothing that all iterations load lies beyond its array, where they must ask."""

    declared: list[str]
    loads: list[Load]
    updates: list[Out]
    inside: tuple[Condition, ...] = ()


def batch_of(w: Writer, loop: Loop) -> Batch | None:
    """The loops and updates, where they are of the kind."""
    loops: list[Loop] = []
    nodes: Sequence[Node] = (loop,)
    while len(nodes) == 1 and isinstance(nodes[0], Loop):
        loops.append(nodes[0])
        nodes = nodes[0].body
    lanes = loops.pop() if loops[-1].role == "vector" else None
    around = (*loops, *((lanes,) if lanes else ()))
    if not loops or any(not unrolled(w, x) or x.extent < 1 for x in loops):
        return None
    ids = {x.id for x in around}
    sites = tuple(w.sites[n.id] for n in nodes if isinstance(n, Leaf))
    if len(sites) < len(nodes) or not all(_simple(w, s, lanes) for s in sites) or any(parent in ids for parent, _ in w.before):
        return None
    if any(b.scope in ids for b in w.low.plan.buffers) or len({w.overrun.kept(s) for s in sites}) != 1:
        return None
    kept = w.overrun.kept(sites[0])
    if lanes and any(w.low.variable[lanes.id] in c.variables() for c in kept):
        apart = vector.partial(w.low, sites[0], lanes) if len(sites) == 1 else None
        if apart is None:
            return None
        rest = tuple(c for c in sites[0].conditions if w.low.variable[lanes.id] not in c.variables())
        return Batch(tuple(loops), lanes, sites, apart.some, rest, apart.each)
    return Batch(tuple(loops), lanes, sites, kept, kept)


def unrolled(w: Writer, loop: Loop) -> bool:
    """Whether a loop is written with ``#pragma unroll``."""
    return loop.role == "unroll" or loop.id in w.register_loops


def _simple(w: Writer, site: Site, lanes: Loop | None) -> bool:
    """Whether a leaf updates or computes a register of one thread; or copies narrow elements there, where they are inside."""
    s, low = site.statement, w.low
    if site.conditions == (NEVER,) or site.leaf.collect or site.leaf.mechanism != "plain" or low.keeps_more(site):
        return False
    if low.store(site.leaf, len(s.reads)).space != "register" or not w.overrun.in_cells(site):
        return False
    if not is_move(low, site):
        return not s.inside
    return bool(s.inside and lanes) and low.store(site.leaf, 0).dtype.bytes < vector.WORD


def loaded(w: Writer, site: Site) -> list[int]:
    """The reads of global memory whose place is known without another."""
    return [slot for slot in range(len(site.statement.reads)) if w.low.store(site.leaf, slot).space == "global"
            and all(isinstance(e, Expr) for e in w.low.index(site, slot))]


def fits(batch: Batch, nbytes: Sequence[int]) -> bool:
    """Whether the values of all iterations fit the registers."""
    return bool(nbytes) and prod(x.extent for x in batch.loops) * sum(-(-n // 4) for n in nbytes) <= REGISTERS


def _at(w: Writer, loop: Loop) -> str:
    """A loop's iteration, counted from none."""
    name = w.low.variable[loop.id]
    return f"{name} - {loop.start}" if loop.start else name


def extents(batch: Batch) -> str:
    """The extents of an array with an element for each iteration."""
    return "".join(f"[{x.extent}]" for x in batch.loops if x.extent > 1)


def here(w: Writer, batch: Batch) -> str:
    """The subscripts of this iteration's element in such an array."""
    return "".join(f"[{_at(w, x)}]" for x in batch.loops if x.extent > 1)
