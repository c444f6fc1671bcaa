"""Load fragments from shared memory by one instruction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..poly.matrix_load import MECHANISM, NoLoad, matrix_load
from .base import Transform


@dataclass(frozen=True)
class LoadMatrix(Transform):
    """Fill the fragments of a tensor instruction by ``ldmatrix`` instead of by single loads.

    A copy from shared memory into the fragments of a warp, as `tensorize` leaves it, loads some halves of 4 bytes in each lane.
    One instruction loads up to four of these registers in all lanes: each lane names one row of 16 bytes, and gets its part of
    other lanes' rows.  Which lane holds which element stays as it is.  A row that runs across the fragment (the right factor of a
    product, whose array has the depth along its rows) is transposed on the way, which elements of 16 bits can be.

    Before::

        for a_r.i in 0…8                              # registers
            for a_r.1 in 0…32  lane
                a_r[a_r.i] = a_s[8*((a_r.i // 2) % 2) + a_r.1 // 4, 8*(a_r.i // 4) + 2*(a_r.1 % 4) + a_r.i % 2]

    After ``load_matrix('a_r')``::

        ldmatrix x4: a_r = a_s                        # in all lanes at once

    References
    ----------
    NVIDIA, PTX ISA, "Warp-level matrix load instruction: ldmatrix" (sm_75 and newer).
    """

    name = "load_matrix"
    group = "Hardware"
    aliases = ("ldmatrix",)
    elsewhere = {"TVM": "tensorize"}

    leaf: str = field(metadata={"kind": "leaf", "help": "the copy that fills the fragments"})

    def check(self, plan: Plan) -> Verdict:
        hit = plan.resolve(self.leaf)
        if hit is None:
            return no(f"there is no statement {self.leaf!r}")
        leaf, above, _ = hit
        if leaf.mechanism == MECHANISM:
            return no(f"{leaf.id} is {leaf.mechanism} already")
        found = matrix_load(plan, leaf, above)
        return no(found.what, found.why, found.hint) if isinstance(found, NoLoad) else YES

    def rewrite(self, plan: Plan) -> Plan:
        hit = plan.resolve(self.leaf)
        assert hit is not None
        leaf, above, _ = hit
        lanes = replace(above[-1], body=(replace(leaf, mechanism=MECHANISM),))
        return plan.replace_node(above[-2].id, replace(above[-2], role="tensor", body=(lanes,)))

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[LoadMatrix]:
        for leaf, above, _ in plan.leaves:
            if node_id in (leaf.id, *(x.id for x in above[-2:])) and (step := cls(leaf.id)).check(plan):
                yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        if next(cls.candidates(plan, node_id), None):
            return YES
        hit = plan.resolve(node_id)
        return cls(hit[0].id).check(plan) if hit else no(f"{node_id} copies no fragment from shared memory",
                                                         hint="tensorize the product first")
