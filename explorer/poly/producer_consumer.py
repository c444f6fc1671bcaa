"""Edges between the values of a program: which array is made from which, and how its elements spread, exactly.

An *edge* leads from an array that the program computes to an array computed from it.  Its kind is a property of two
relations, ``reach: element -> instance that reads it`` and ``give: element -> element it goes into``:

========== =============================== ==================
kind       holds                           in words
========== =============================== ==================
1:1        reach is a function, give too   element by element
1:many     reach is no function            broadcast
many:1     give is not injective           reduction
many:many  both                            stencil, product
========== =============================== ==================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import islpy as isl

from ..ir.memo import per_program
from ..ir.program import Program
from .dependence import Flow, analyse
from .isl import alone
from .relations import access


@dataclass(frozen=True)
class ValueEdge:
    """One array read by the statements that make another.

    Attributes
    ----------
    array, into : str
        The array that is read, and the array that is made from it.
    producer, consumer : str
        Statements: the last that writes `array`, the first that reads it for `into`.
    kind : str
        ``"1:1"``, ``"1:many"``, ``"many:1"`` or ``"many:many"``.
    """

    array: str
    into: str
    producer: str
    consumer: str
    kind: str


@per_program(1)
@alone
def value_edges(program: Program) -> tuple[ValueEdge, ...]:
    """The edges of a program, in order of their consumers.

    Parameters
    ----------
    program : Program

    Returns
    -------
    tuple of ValueEdge
        One for each pair of different arrays between which a value flows.
    """
    target = {s.name: s.target.array for s in program.statements}
    order = [s.name for s in program.statements]
    found: dict[tuple[str, str], list[Flow]] = {}
    for f in analyse(program).flow:
        if target[f.source] != target[f.sink]:
            found.setdefault((f.array, target[f.sink]), []).append(f)
    edges = [ValueEdge(array, into, max((f.source for f in flows), key=order.index),
                       min((f.sink for f in flows), key=order.index), _kind(program, flows))
             for (array, into), flows in found.items()]
    return tuple(sorted(edges, key=lambda e: (order.index(e.consumer), order.index(e.producer))))


def _kind(program: Program, flows: list[Flow]) -> str:
    reach, give = [], []
    for sink in dict.fromkeys(f.sink for f in flows):
        statement = program.statement_of[sink]
        reads = reduce(isl.Map.union, (_reads(program, flows, sink, slot) for slot in {f.slot for f in flows if f.sink == sink}))
        reach.append(reads)
        give.append(reads.apply_range(access(statement, len(statement.reads), program.array_of[statement.target.array])))
    spread = not all(r.is_single_valued() for r in reach)
    merged = not all(g.is_injective() for g in give)
    return f"{'many' if merged else '1'}:{'many' if spread else '1'}"


def _reads(program: Program, flows: list[Flow], sink: str, slot: int) -> isl.Map:
    """Element to the instances that read it through one slot."""
    statement = program.statement_of[sink]
    readers = reduce(isl.Set.union, (f.relation.range() for f in flows if (f.sink, f.slot) == (sink, slot)))
    return access(statement, slot, program.array_of[statement.accesses[slot].array]).reverse().intersect_range(readers)
