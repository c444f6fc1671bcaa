"""Analysis for batched loads: the loads of an unrolled loop that can be moved before its updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ...ir.expr import Expr, var
from ...poly.dead_cells import in_cells
from ..accesses import is_move
from ..conditions import Condition
from ..lanes import WORD, partial
from ..lower import Context
from ..nodes import Declare, Do, For, Get, Held, Local, Node, Number
from ..sites import Site
from .scalar_lanes import lane_statements

REGISTERS = 64
"""Values of 4 bytes of a thread that may be in flight together; a loop of more is left as it is."""


@dataclass(frozen=True)
class Batch:
    """Unrolled loops, one in the other, around updates of registers.

    Attributes
    ----------
    loops : tuple of For
    lanes : For or None
        The vector loop inside of them, whose lanes are loaded at once.
    statements : tuple of Do
        The updates, which share their conditions.
    some : tuple of Condition
        When an iteration loads.
    rest : tuple of Condition
        When its updates run, where that is not all: without what the lanes ask each for itself.
    each : tuple of Condition
        What a lane asks for itself.
    """

    context: Context
    loops: tuple[For, ...]
    lanes: For | None
    statements: tuple[Do, ...]
    some: tuple[Condition, ...]
    rest: tuple[Condition, ...]
    each: tuple[Condition, ...] = ()

    @property
    def sites(self) -> tuple[Site, ...]:
        """The statements' leaves."""
        return tuple(s.site for s in self.statements)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an array with an element for each iteration."""
        return tuple(x.extent for x in self.loops)

    @property
    def here(self) -> tuple[Expr, ...]:
        """The element of an iteration in such an array."""
        return tuple(var(x.var) - x.start for x in self.loops)

    def loaded(self, site: Site) -> list[int]:
        """The reads of global memory whose place is known without another."""
        low = self.context.low
        return [slot for slot in range(len(site.statement.reads)) if low.store(site.leaf, slot).space == "global"
                and all(isinstance(e, Expr) for e in low.index(site, slot))]

    def fits(self, nbytes: Sequence[int]) -> bool:
        """Whether the values of all iterations fit the registers."""
        return bool(nbytes) and prod(self.shape) * sum(-(-n // 4) for n in nbytes) <= REGISTERS

    def nest(self, body: Sequence[Node]) -> Node:
        """The loops around a body."""
        inside = tuple(body)
        for x in reversed(self.loops):
            inside = (replace(x, body=inside, settled=True),)
        return inside[0]


@dataclass(frozen=True)
class Early:
    """What is loaded early.

    Attributes
    ----------
    to : Held
    value : Get
    plain : Get
        The same where nothing lies beyond its array.
    otherwise : Number
        What it is where there is nothing to load.
    only : tuple of Condition
        Where it is loaded at all; elsewhere nobody asks for it.
    """

    to: Held
    value: Get
    plain: Get
    otherwise: Number
    only: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Parts:
    """Locals, loads and updates; and when nothing that all iterations load lies beyond its array, where they must ask."""

    declared: list[Local]
    loads: list[Early]
    updates: list[Node]
    inside: tuple[Condition, ...] = field(default=())


def batch_of(context: Context, loop: For) -> Batch | None:
    """The loops and updates, where they are of the kind."""
    loops: list[For] = []
    body: tuple[Node, ...] = (loop,)
    while len(body) == 1 and isinstance(node := body[0], For) and (not loops or loops[-1].loop.body == (node.loop,)):
        loops.append(node)
        body = node.body
    lanes = loops.pop() if loops[-1].role == "vector" else None
    if not loops or any(x.role != "unroll" or x.settled for x in loops):
        return None
    innermost = lanes or loops[-1]
    read = lane_statements(innermost)
    if read is None or any(isinstance(n, Declare) for n in innermost.body) or len(read[1]) != 1:
        return None
    statements, (kept,) = tuple(read[0]), read[1]
    if tuple(s.site.leaf for s in statements) != innermost.loop.body:
        return None
    if not all(_simple(context, s.site, lanes) for s in statements):
        return None
    if lanes and any(lanes.var in c.variables() for c in kept):
        site = statements[0].site
        apart = partial(context.low, site, lanes.loop) if len(statements) == 1 else None
        if apart is None:
            return None
        rest = tuple(c for c in site.conditions if lanes.var not in c.variables())
        return Batch(context, tuple(loops), lanes, statements, apart.some, rest, apart.each)
    return Batch(context, tuple(loops), lanes, statements, kept, kept)


def _simple(context: Context, site: Site, lanes: For | None) -> bool:
    """Whether a leaf updates or computes a register of one thread; or copies narrow elements there, where they are inside."""
    s, low = site.statement, context.low
    if site.leaf.mechanism != "plain" or low.keeps_more(site):
        return False
    if low.store(site.leaf, len(s.reads)).space != "register" or not in_cells(low.plan, site.leaf, site.loops):
        return False
    if not is_move(low, site):
        return not s.inside
    return bool(s.inside and lanes) and low.store(site.leaf, 0).dtype.bytes < WORD
