"""Sums over a product's rows, from the registers that hold its results: these are stored only if the program says so.

Each lane of the four that hold a row together sums its own columns in a register (`rfactor`), and adds that to the row's element
by an atomic operation: four atomics a row for each warp, in each block, that holds columns of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.tree import Loop
from .._steps import Builder
from .epilogue_facts import walked
from .form import ProductForm
from .lanes import quads, rows_over_group, rows_over_warp


@dataclass(frozen=True)
class Parts:
    """A sum in parts: the statements that start a part, and that join it, and its array."""

    start: str
    join: str
    array: str


def in_parts(b: Builder, form: ProductForm) -> list[Parts]:
    """A part for each lane of a quad, its loops as those of the product's results.

    Before::

        for i in 0…64
            for j in 0…256
                S3: s[i] += z[i, j] * z[i, j]

    After::

        for i in 0…64
            for j.q.z in 0…4
                S3_init: s_p[i, j.q.z] = 0
        for i in 0…64
            for j in 0…256
                S3: s_p[i, (j % 8) // 2] += z[i, j] * z[i, j]
        for i in 0…64
            for j.q.c in 0…4
                S3_combine: s[i] += s_p[i, j.q.c]
    """
    return [_in_parts(b, leaf) for leaf in form.sums]


def _in_parts(b: Builder, leaf: str) -> Parts:
    above = _above(b, leaf)
    row, column = (x.id for x in above[-2:])
    node = next(x for x, _, _ in b.plan.leaves if x.id == leaf)
    places = tuple(x.id for x in above if x.is_place and x.extent > 1 and x.id not in walked(b.plan, node))
    known = {x.id for x, _, _ in b.plan.leaves}
    _, lane, pair = quads(b, column)
    b.do("rfactor", leaf, (*places, lane)).do("coalesce", (column, lane, pair))
    for n in reversed(b.plan.loops[row].body[:-1]):
        b.do("distribute", row, after=n.id)
    new = {b.plan.statement_of[x.statement].origin: x.id for x, _, _ in b.plan.leaves if x.id not in known}
    return Parts(new["init"], new["combine"], b.plan.statement_of[node.statement].target.array)


def joined(b: Builder, parts: list[Parts], groups: bool) -> None:
    """The parts in registers of the lanes that have their rows in accumulators, and added to memory by atomic operations."""
    for part in parts:
        for leaf in (part.start, part.join):
            row, lane = (x.id for x in _above(b, leaf)[-2:])
            (rows_over_group if groups else rows_over_warp)(b, row, lane)
        b.do("contract", part.array, "register")
        b.do("collect", part.join, "atomic")  # of blocks, if several hold a row's columns
        b.attempt("collect", part.join, "atomic")  # and of lanes


def _above(b: Builder, leaf: str) -> tuple[Loop, ...]:
    hit = b.plan.resolve(leaf)
    assert hit is not None
    return hit[1]
