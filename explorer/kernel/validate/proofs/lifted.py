"""Kernel IR whose commits, waits or uses differ from its plan, lifted back into a plan that the judge of plans can explain.

IR nodes that come from one node of the plan stand for it.  The lifted plan has the nodes in the order of the IR, without those
that the IR lacks, and its waits leave as many groups pending as those of the IR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....errors import ExplorerError
from ....ir.finding import Proof
from ....ir.plan import Plan
from ....ir.tree import Leaf, Loop, Node, Sync
from ....poly.judge import judge
from ....poly.ring_text import proof_of
from ...nodes import Arrive, Await, Commit, Wait, WaitProducts
from ..points import Coordinates
from ..steps import Step

COUNTED = (Arrive, Await, Commit, Wait, WaitProducts)
KINDS = ("commit", "wait", "wait_products")


def lifted(steps: Sequence[Step], coordinates: Coordinates) -> Plan:
    """The plan with its leaves, commits and waits as the text has them."""
    numbers: dict[str, int] = {}
    pending: dict[str, int] = {}
    for step in steps:
        name = step.leaf or (next(iter(step.node.ids), "") if isinstance(step.node, COUNTED) else "")
        if name:
            numbers.setdefault(name, step.number)
        if isinstance(step.node, (Wait, WaitProducts)):
            pending[name] = step.node.pending
    kernel, plan = coordinates.low.kernel, coordinates.low.plan
    new = replace(kernel, body=_body(kernel.body, numbers, pending))
    return replace(plan, kernels=tuple(new if k.id == kernel.id else k for k in plan.kernels))


def _body(nodes: Sequence[Node], numbers: Mapping[str, int], pending: Mapping[str, int]) -> tuple[Node, ...]:
    """Nodes in the order of the text; what the text does not count keeps its place behind the node before it."""
    found: list[tuple[int, int, Node]] = []
    last = -1
    for place, node in enumerate(nodes):
        if isinstance(node, Sync) and node.kind in KINDS and node.id not in numbers:
            continue
        new = node
        if isinstance(node, Loop):
            new = replace(node, body=_body(node.body, numbers, pending))
        elif isinstance(node, Sync) and node.id in pending:
            new = replace(node, pending=pending[node.id])
        last = _number(new, numbers, last)
        found.append((last, place, new))
    return tuple(node for _, _, node in sorted(found, key=lambda x: x[:2]))


def _number(node: Node, numbers: Mapping[str, int], otherwise: int) -> int:
    if isinstance(node, (Leaf, Sync)):
        return numbers.get(node.id, otherwise)
    return min((n for inner in node.body if (n := _number(inner, numbers, -1)) >= 0), default=otherwise)


def judged_as_plan(steps: Sequence[Step], coordinates: Coordinates) -> Proof | None:
    """What the judge of plans says of a text."""
    try:
        plan = lifted(steps, coordinates)
        for found in judge(plan).refusals:
            if (proof := proof_of(plan, found)) is not None:
                return proof
    except ExplorerError:
        return None
    return None
