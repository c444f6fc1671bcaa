"""What loads and stores of matrices share as steps: a copy in two loops becomes one instruction of a warp."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..poly.matrix_move import MOVES, NoMove, matrix_move
from .base import Transform, no_leaf


@dataclass(frozen=True)
class MatrixStep(Transform):
    """A copy between the fragments of a warp and shared memory becomes an instruction.

    ``mechanism`` is the instruction, ``wanted`` what a node lacks where there is no such copy, and what helps.
    """

    mechanism: ClassVar[str]
    wanted: ClassVar[tuple[str, str]]

    leaf: str = field(metadata={"kind": "leaf", "help": "the copy between fragments and shared memory"})

    def check(self, plan: Plan) -> Verdict:
        hit = plan.resolve(self.leaf)
        if hit is None:
            return no_leaf(plan, self.leaf)
        leaf, above, _ = hit
        if leaf.mechanism in MOVES:
            return no(f"{leaf.id} is {leaf.mechanism} already")
        found = matrix_move(plan, leaf, above, self.mechanism)
        return no(found.what, found.why, found.hint) if isinstance(found, NoMove) else YES

    def rewrite(self, plan: Plan) -> Plan:
        hit = plan.resolve(self.leaf)
        assert hit is not None
        leaf, above, _ = hit
        lanes = replace(above[-1], body=(replace(leaf, mechanism=self.mechanism),))
        return plan.replace_node(above[-2].id, replace(above[-2], role="tensor", body=(lanes,)))

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Self]:
        for leaf, above, _ in plan.leaves:
            if node_id in (leaf.id, *(x.id for x in above[-2:])) and (step := cls(leaf.id)).check(plan):
                yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        if next(cls.candidates(plan, node_id), None):
            return YES
        hit, (what, hint) = plan.resolve(node_id), cls.wanted
        return cls(hit[0].id).check(plan) if hit else no(f"{node_id} {what}", hint=hint)
