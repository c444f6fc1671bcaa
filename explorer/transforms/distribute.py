"""Make two loops of one, each with a part of the body."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop, Node, Sync, leaves, ranges, retime, walk
from ..poly.parting import parted_behind
from ._nest import enclosing, numbered, rename_collect
from .base import Transform, get_loop


@dataclass(frozen=True)
class Distribute(Transform):
    """Run the first part of a loop's body for all iterations, then the rest for all iterations (fission).

    The first loop keeps its name, the second gets a new one.  ``S2(v)`` then runs after all of ``S1`` instead of
    right after ``S1(v)``; a temporary that carries values between them needs an element for each iteration.

    Before::

        for i in 0…64
            S1(i)
            S2(i)

    After ``distribute('i', after='S1')``::

        for i in 0…64
            S1(i)
        for i.2 in 0…64
            S2(i.2)
    """

    name = "distribute"
    group = "Loops"
    aliases = ("fission", "loop_fission", "duplicate_inames")
    elsewhere = {"Exo": "fission", "loopy": "duplicate_inames", "isl": "order_before", "Clay": "split"}

    loop: str = field(metadata={"kind": "loop", "help": "the loop to distribute"})
    after: str = field(metadata={"kind": "node", "help": "the last node of its body that stays in the first loop"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if len(loop.body) < 2:
            return no(f"the body of {loop.id} has one part only", "distribute parts a body between two of its nodes",
                      _inside_out(plan, loop, self.after))
        place = child(plan, loop.body, self.after)
        parts = ", ".join(n.id for n in loop.body[:-1])
        if place is None:
            return no(f"{self.after!r} is not in the body of {loop.id}", hint=f"after one of {parts}")
        if place + 1 == len(loop.body):
            return no(f"nothing stands behind {self.after} in {loop.id}", hint=f"after one of {parts}")
        if loop.role == "launch":
            return no(f"{loop.id} is run by the host", hint=f"bind('{loop.id}', 'seq') first")
        if any(isinstance(n, Sync) for n in walk(loop.body)):
            return no(f"{loop.id} waits for asynchronous copies",
                      why="the groups it waits for are counted in the order of its body", hint="distribute before pipelining")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        loop, above = plan.loops[self.loop], enclosing(plan, self.loop)
        place = child(plan, loop.body, self.after)
        assert place is not None
        first, rest = loop.body[: place + 1], loop.body[place + 1 :]
        new = numbered(plan, loop.id, set())
        body = retime(rest, {loop.id: var(new)}, {new: var(loop.id)}, {**ranges(above), new: loop.range})
        second = replace(loop, id=new, body=rename_collect(body, {loop.id: new}))
        changed = plan.replace_node(loop.id, replace(loop, body=first), second)
        here, there = _buffers(first), _buffers(rest)
        outside = above[-1].id if above else ""
        mine = {b.name for b in plan.buffers if b.scope == loop.id}
        return replace(changed, buffers=tuple(
            replace(b, scope=loop.id if b.name not in there else new if b.name not in here else outside) if b.name in mine else b
            for b in changed.buffers
        ))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        inside = next((x.id for x in walk(loop.body) if isinstance(x, Loop) and len(x.body) > 1), "")
        return YES if len(loop.body) > 1 else no(
            f"the body of {loop.id} has one part only", "distribute parts a body between two of its nodes",
            f"select {inside}, whose body has several" if inside else "")

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Distribute]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop):
            for node in loop.body[:-1][:8]:
                yield cls(loop.id, node.id)


def _inside_out(plan: Plan, loop: Loop, after: str) -> str:
    """The calls that give a body of one part several: of the loops inside of it, from the first one that has several outwards."""
    chain = [loop]
    while len(chain[-1].body) == 1 and isinstance(inner := chain[-1].body[0], Loop):
        chain.append(inner)
    several = chain[-1].body
    if len(several) < 2:
        return ""
    place = child(plan, several, after)
    whole = after in {x.id for x in chain[1:]}
    if not whole and (place is None or place + 1 == len(several)):
        return f"after one of {', '.join(n.id for n in several[:-1])}"
    return f"{' and '.join(parted_behind(chain[1:], '…' if whole or place is None else several[place].id))} first"


def child(plan: Plan, body: tuple[Node, ...], name: str) -> int | None:
    """Position of the node of `body` that is, or holds, what `name` means (an id, a statement, or what writes an array)."""
    hit = plan.resolve(name)
    for wanted in [name] + ([hit[0].id] if hit else []):
        for place, node in enumerate(body):
            if any(n.id == wanted for n in walk((node,))):
                return place
    return None


def _buffers(nodes: tuple[Node, ...]) -> set[str]:
    return {view.buffer for leaf, _ in leaves(nodes) for _, view in leaf.views}
