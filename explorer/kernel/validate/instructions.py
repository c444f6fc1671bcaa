"""Validation of instructions: what they say beside their operands, rows and descriptors, is what was judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.finding import Finding
from ...ir.plan import Plan
from ...poly.matrix_load import MatrixLoad, matrix_load
from ...poly.shared_tile import tiles_of
from ..nodes import LoadMatrix, Multiply, Node
from ..sites import Lowered
from ..traverse import walk
from .leaves import finding


def check_instructions(plan: Plan, low: Lowered, body: Sequence[Node]) -> Iterator[Finding]:
    """A finding for each instruction that reads shared memory in another way than its leaf was judged to."""
    for node in walk(tuple(body)):
        if isinstance(node, LoadMatrix):
            leaf, (load, row) = node.site.leaf, _row(plan, low, node)
            if load is None or (node.count, node.transposed) != (load.count, load.transposed) or node.row.index != row:
                yield finding("flow", leaf.id, "loads other rows of shared memory than the schedule's fragments are", None)
        elif isinstance(node, Multiply):
            rows, columns, depth = (x.id for x in node.loops)
            if node.tiles != tiles_of(plan, node.site.leaf, node.instruction, (rows, columns, depth)):
                yield finding("flow", node.site.leaf.id, "reads shared memory as if its tiles lay in another way", None)


def _row(plan: Plan, low: Lowered, node: LoadMatrix) -> tuple[MatrixLoad | None, tuple[object, ...]]:
    """What the leaf was judged to load, and where each lane's row begins."""
    load = matrix_load(plan, node.site.leaf, tuple(plan.loops[x.id] for x in node.site.loops))
    if not isinstance(load, MatrixLoad):
        return None, ()
    return load, tuple(low.in_c(e, node.site.loops).simplify(node.site.ranges) for e in load.row)
