"""Validation of instructions: what they say beside their operands, rows and descriptors, is what was judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.finding import Finding
from ...ir.plan import Plan
from ...poly.matrix_move import MatrixMove, matrix_move
from ...poly.shared_tile import tiles_of
from ..nodes import MoveMatrix, Multiply, Node
from ..sites import Lowered
from ..traverse import walk
from .leaves import finding


def check_instructions(plan: Plan, low: Lowered, body: Sequence[Node]) -> Iterator[Finding]:
    """A finding for each instruction that reads shared memory in another way than its leaf was judged to."""
    for node in walk(tuple(body)):
        if isinstance(node, MoveMatrix):
            leaf = node.site.leaf
            if (node.count, node.transposed, node.row.index, node.first.index[-1]) != _judged(plan, low, node):
                yield finding("flow", leaf.id, "moves other rows of shared memory than the schedule's fragments are", None)
        elif isinstance(node, Multiply):
            rows, columns, depth = (x.id for x in node.loops)
            if node.tiles != tiles_of(plan, node.site.leaf, node.instruction, (rows, columns, depth)):
                yield finding("flow", node.site.leaf.id, "reads shared memory as if its tiles lay in another way", None)


def _judged(plan: Plan, low: Lowered, node: MoveMatrix) -> tuple[object, ...]:
    """What the leaf was judged to move: matrices, where each lane's row begins, and its first register."""
    leaf, site = node.site.leaf, node.site
    move = matrix_move(plan, leaf, tuple(plan.loops[x.id] for x in site.loops), leaf.mechanism)
    if not isinstance(move, MatrixMove):
        return ()
    *row, first = (low.in_c(e, site.loops).simplify(site.ranges) for e in (*move.row, move.first))
    return move.count, move.transposed, tuple(row), first
