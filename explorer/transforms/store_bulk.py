"""Store a box of shared memory to a global array by the engine for bulk copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Self

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop
from ..poly.bulk_store import BULK_STORE, bulk_store
from ..poly.pure_load import Never
from .base import Transform, no_leaf


@dataclass(frozen=True)
class StoreBulk(Transform):
    """Store a tile by bulk stores (TMA): one thread asks, and an engine reads shared memory while the threads go on.

    Threads that store a tile themselves load it from shared memory and wait for that.  A bulk store takes one thread an
    instruction; what lies beyond the array is left out, so that no guard is needed.  Threads wait for its reads where they next
    write the tile, or where the block ends.  The innermost loops over the tile become its box, as many as can.

    Before::

        for i in 0…128
            for j in 0…64
                S2_store: c[128*i.b + i, 64*j.b + j] = c_t[i, j]

    After ``store_bulk('S2_store')``::

        for i in 0…128  tensor
            for j in 0…64  tensor
                S2_store: bulk c[128*i.b + i, 64*j.b + j] = c_t[i, j]

    In the text::

        if (tx == 0) bulk_store_2d(c_map, 64 * j_b, 128 * i_b, &c_t[0]);

    References
    ----------
    NVIDIA, PTX ISA, "cp.async.bulk.tensor" (sm_90 and newer); CUDA C++ Programming Guide, "Tensor Memory Accelerator".
    """

    name = "store_bulk"
    group = "Memory"
    aliases = ("tma_store", "bulk_store")
    elsewhere = {"CUTLASS": "SM90_TMA_STORE", "TileLang": "T.copy"}

    leaf: str = field(metadata={"kind": "leaf", "help": "the copy from shared to global memory"})

    def check(self, plan: Plan) -> Verdict:
        hit = plan.resolve(self.leaf)
        if hit is None:
            return no_leaf(plan, self.leaf)
        leaf = hit[0]
        if leaf.mechanism == BULK_STORE:
            return no(f"{leaf.id} is a bulk store already")
        found = _made(plan, leaf.id)
        return no(found.what, found.why, found.hint) if isinstance(found, Never) else YES

    def rewrite(self, plan: Plan) -> Plan:
        hit = plan.resolve(self.leaf)
        assert hit is not None
        found = _made(plan, hit[0].id)
        assert isinstance(found, Plan)
        return found

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Self]:
        for leaf, above, _ in plan.leaves:
            if node_id in (leaf.id, *(x.id for x in above[-2:])) and (step := cls(leaf.id)).check(plan):
                yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        if next(cls.candidates(plan, node_id), None):
            return YES
        hit = plan.resolve(node_id)
        return cls(hit[0].id).check(plan) if hit else no(
            f"{node_id} stores no box of shared memory", hint="outline a result, and contract its temporary to shared memory")


def _made(plan: Plan, name: str) -> Plan | Never:
    """The plan with the most of the innermost loops around a leaf as a box, or why there is none."""
    hit = plan.resolve(name)
    assert hit is not None
    leaf, above, _ = hit
    loops = tuple(takewhile(lambda x: x.role in ("seq", "unroll") and not x.trimmed and len(x.body) == 1, reversed(above)))[::-1]
    why: Never | None = None
    for first in range(len(loops)):
        tried = _as_box(plan, leaf, loops[first:])
        at, around, _ = tried.resolve(name) or hit
        found = bulk_store(tried, at, around)
        if not isinstance(found, Never):
            return tried
        why = why or found
    return why or Never(f"{leaf.id} stands in no loops over a box alone", "a bulk store writes a box of neighbouring elements",
                        "distribute it from what else is in its loops, and undo unroll, vectorize and bind there")


def _as_box(plan: Plan, leaf: Leaf, loops: tuple[Loop, ...]) -> Plan:
    node: Leaf | Loop = replace(leaf, mechanism=BULK_STORE)
    for loop in reversed(loops):
        node = replace(loop, role="tensor", body=(node,))
    return plan.replace_node(loops[0].id, node)
