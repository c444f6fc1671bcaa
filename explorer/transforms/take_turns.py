"""Let the warpgroups of a block take turns with the tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Verdict, no
from ..ir.instructions import Wgmma, instruction
from ..ir.layout import GROUP
from ..ir.plan import Plan
from ..ir.tree import Loop, Node, Sync, leaves, walk
from .base import Transform, get_loop

MOST_GROUPS = 7
"""Warpgroups of a block that take turns: each has a barrier of its own, and a block has 16 (PTX ISA, "bar"), of which 1 is the
consumers'; a block has 1,024 threads."""


@dataclass(frozen=True)
class TakeTurns(Transform):
    """Order the products of a block's warpgroups: while one multiplies, the others do what stands between their products.

    In attention a step multiplies, takes exponentials, and multiplies again.  Warpgroups that run such steps side by side come to
    multiply at one time, and take exponentials at one time: tensor cores and the other units wait for each other.  Here each
    warpgroup waits for its turn before the last products of a step, and passes it behind the first ones of the next step; the
    others have theirs while it computes what stands between the two.  This is known as ping-pong scheduling.

    Turns change no order in which a thread runs, and no place of a value: what is legal stays so.  Nobody may wait for others
    while it has its turn; the loop has a producer with two slots or more, so that the copies that it waits for never wait for
    the others' turns.

    Before::

        for j in 0…16
            wait 0
            m64n128k64: scores = q_s * k_s[j % 2, …]
            weights = exp(scores …)
            m64n128k64: y += weights * v_s[j % 2, …]
            release

    After ``take_turns('j')``::

        wait for one's turn
        for j in 0…16
            wait 0
            m64n128k64: scores = q_s * k_s[j % 2, …]
            pass the turn
            weights = exp(scores …)
            wait for one's turn
            m64n128k64: y += weights * v_s[j % 2, …]
            release
        pass the turn

    References
    ----------
    Shah et al., "FlashAttention-3: fast and accurate attention with asynchrony and low-precision", NeurIPS 2024, section 3.1.
    NVIDIA, PTX ISA, "bar": ``bar.sync``, ``bar.arrive``.
    """

    name = "take_turns"
    group = "Hardware"
    aliases = ("pingpong", "ping_pong", "warpgroup_turns")

    loop: str = field(metadata={"kind": "loop", "help": "the loop in whose steps the products stand, with a producer"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        kernel = plan.kernel_of(loop.id)
        assert kernel is not None
        syncs = [n for n in walk(kernel.body) if isinstance(n, Sync)]
        if any(n.kind == "turn" for n in syncs):
            return no(f"warpgroups of {kernel.id} take turns already")
        if not any(isinstance(n, Sync) and n.kind == "acquire" for n in loop.body):
            return no(f"{loop.id} has no producer", "a warpgroup that has its turn may wait for copies, but not for the others",
                      f"specialise({loop.id!r}, 2), which gives bulk copies a warp of their own; or stage with engine='bulk', "
                      "and specialise the loop first")
        across, groups, _ = plan.extents[kernel.id][3:]
        if across != GROUP or not 1 < groups <= MOST_GROUPS:
            return no(f"a block of {kernel.id} has rows of {across} threads, {groups} of them",
                      f"2 to {MOST_GROUPS} warpgroups take turns, of {GROUP} threads along x, one behind the other along y",
                      "tiles of twice as many rows, bound to thread.y")
        hit = plan.find(loop.id)
        if hit and (around := next((x.id for x in hit[1] if not x.is_place and x.role != "launch"), "")):
            return no(f"{around}, in time, is around {loop.id}", "turns are counted once for each block",
                      "no tiles in turn (persist)")
        places = _products(loop)
        if len(places) < 2:
            return no(f"{len(places)} part{'s' * (len(places) != 1)} of the body of {loop.id} multiplies",
                      "turns divide a step between its first and its last products",
                      "a loop with two products of warpgroups, as in attention")
        first, last = _ends(places)
        if first >= last:
            return no(f"nothing stands between the products of {loop.id}",
                      "while one warpgroup multiplies, the others do what stands between their products",
                      "a loop that computes between two products, as attention does; or leave them side by side")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        loop = get_loop(plan, self.loop)
        assert isinstance(loop, Loop)
        first, last = _ends(_products(loop))
        begin, end = Sync(plan.fresh(f"{loop.id}.begin"), "turn", 1), Sync(plan.fresh(f"{loop.id}.end"), "pass", 1)
        turn, over = Sync(plan.fresh(f"{loop.id}.turn"), "turn"), Sync(plan.fresh(f"{loop.id}.pass"), "pass")
        body = (*loop.body[: first + 1], over, *loop.body[first + 1 : last], turn, *loop.body[last:])
        return plan.replace_node(loop.id, begin, replace(loop, body=body), end)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[TakeTurns]:
        if (step := cls(node_id)).check(plan):
            yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        return cls(node_id).check(plan)


def _products(loop: Loop) -> list[int]:
    """Where in a loop's body warpgroups multiply."""
    return [n for n, node in enumerate(loop.body) if _multiplies(node)]


def _ends(places: list[int]) -> tuple[int, int]:
    """Where the first products of a body end, and the last ones begin; the same products where all are side by side."""
    first = next(n for n in places if n + 1 not in places)
    return first, next(n for n in reversed(places) if n - 1 not in places)


def _multiplies(node: Node) -> bool:
    return any(isinstance(instruction(leaf.mechanism), Wgmma) for leaf, _ in leaves((node,)))
