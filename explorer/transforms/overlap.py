"""Let products of a warpgroup run on behind the next steps of their loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Finding, Verdict, no
from ..ir.instructions import Wgmma, flying, instruction, stays_in_flight
from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, Node, Sync, leaves, walk
from ..poly.groups import PRODUCTS, closed_in
from ..poly.mechanism import ASYNCHRONOUS
from .base import Transform, get_loop


@dataclass(frozen=True)
class Overlap(Transform):
    """Leave a warpgroup's products in flight while its next steps begin.

    As `tensorize` makes it, a product is waited for at once, and the tensor cores idle while threads wait for the next copies and
    for each other.  Here a step issues its products, and then waits until at most those of the last `steps` steps are in flight;
    behind the loop all are waited for.  Copies that run ahead in the loop go behind that wait, since they overwrite what the
    oldest products have read; copies of a producer (`specialise`) stay, and slots are released `steps` later.

    Legal where nobody uses the accumulator in between, and where what the products read is overwritten behind such a wait and a
    barrier alone: *flow* and *races* ask.  With ``steps=1`` the pipeline needs no
    more stages than it has.

    Before::

        for k in 0…64
            wait 2
            bulk A_s[(k + 3) % 4, …] = A[…]             # where k < 61
            commit
            m64n256k64: acc += A_s[k % 4, …] * B_s[k % 4, …]

    After ``overlap('k')``::

        for k in 0…64
            wait 2
            m64n256k64, in flight: acc += A_s[k % 4, …] * B_s[k % 4, …]
            wait for products 1
            bulk A_s[(k + 3) % 4, …] = A[…]             # where k < 61
            commit
        wait for products 0

    References
    ----------
    NVIDIA, PTX ISA, "Asynchronous warpgroup-level matrix instructions": wgmma.commit_group, wgmma.wait_group (sm_90a).
    """

    name = "overlap"
    group = "Hardware"
    aliases = ("wgmma_wait", "warpgroup_wait", "async_products")

    loop: str = field(metadata={"kind": "loop", "help": "the loop in whose steps the products stand"})
    steps: int = field(default=1, metadata={"kind": "int", "min": 0, "max": 4, "help": "steps whose products may be in flight"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if loop.role not in ("seq", "unroll"):
            return no(f"{loop.id} is bound or vectorised ({loop.role}), so its iterations are not one after the other",
                      hint="overlap a sequential loop around the products")
        if self.steps < 0:
            return no("the number of steps is not negative", hint="steps=1")
        if any(stays_in_flight(leaf.mechanism) for leaf, _ in leaves((loop,))):
            return no(f"products in {loop.id} are in flight already", hint="nothing: it has been done")
        products = _products(loop)
        if not products:
            return no(f"no product of a warpgroup stands in {loop.id}", "only these are asynchronous (wgmma, sm_90a)",
                      "stage both factors into shared memory and tensorize their product in tiles of 64 rows")
        if early := next((n for n in loop.body if isinstance(n, Sync) and n.kind == "acquire" and n.pending < self.steps), None):
            return no(f"{early.id} leaves {early.pending} slots that are not released, and {self.steps} steps hold theirs",
                      "a slot is released when its product is complete", "specialise with more stages")
        for leaf, row in products:
            if flying(row) is None:
                return no(f"{leaf.id} adds into {row.c}, which is packed before it and unpacked behind",
                          "registers of a product in flight cannot be touched", "a temporary of type f32 for the sums")
        return YES

    def eases(self, plan: Plan, finding: Finding) -> Iterator[str]:
        """Stages, where the next tile would be written while products in flight read this one."""
        yield f"pipeline('{self.loop}', {self.steps + 2}) first"

    def rewrite(self, plan: Plan) -> Plan:
        loop = get_loop(plan, self.loop)
        assert isinstance(loop, Loop)
        last = max(n for n, node in enumerate(loop.body) if _products(node))
        ahead = [] if _has_producer(loop) else [n for n, node in enumerate(loop.body[:last]) if _runs_ahead(node)]
        stays = tuple(map(_in_flight, (node for n, node in enumerate(loop.body[: last + 1]) if n not in ahead)))
        pending = self.steps * closed_in(stays, PRODUCTS)
        wait = Sync(plan.fresh(f"{loop.id}.products"), PRODUCTS.wait, pending)
        end = Sync(plan.fresh(f"{loop.id}.done"), PRODUCTS.wait)
        body = tuple(replace(n, pending=n.pending - self.steps) if isinstance(n, Sync) and n.kind == "acquire" else n
                     for n in (*stays, wait, *(loop.body[n] for n in ahead), *loop.body[last + 1:]))
        return plan.replace_node(loop.id, replace(loop, body=body), *((end,) if pending else ()))

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Overlap]:
        if (step := cls(node_id)).check(plan):
            yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        return cls(node_id).check(plan)


def _products(node: Node) -> list[tuple[Leaf, Wgmma]]:
    """Products of a warpgroup that are waited for at once."""
    found = ((leaf, instruction(leaf.mechanism)) for leaf, _ in leaves((node,)))
    return [(leaf, row) for leaf, row in found if isinstance(row, Wgmma) and not row.in_flight]


def _has_producer(loop: Loop) -> bool:
    """Whether the loop's copies are a producer's, which runs ahead by itself."""
    return any(isinstance(n, Sync) and n.kind == "acquire" for n in loop.body)


def _in_flight(node: Node) -> Node:
    if isinstance(node, Loop):
        return replace(node, body=tuple(map(_in_flight, node.body)))
    row = instruction(node.mechanism) if isinstance(node, Leaf) else None
    if not isinstance(row, Wgmma) or not isinstance(node, Leaf):
        return node
    later = flying(row)
    return replace(node, mechanism=later.name) if later else node


def _runs_ahead(node: Node) -> bool:
    """Whether a node is nothing but asynchronous copies, or their commit."""
    if isinstance(node, Sync):
        return node.kind == "commit"
    inside = [n for n in walk((node,)) if not isinstance(n, Loop)]
    return bool(inside) and all(isinstance(n, Leaf) and n.mechanism in ASYNCHRONOUS for n in inside)
