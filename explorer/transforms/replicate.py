"""Give a temporary several copies of each element, one for each iteration of the loops that read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Statement
from ..ir.tree import Leaf, Loop, rewrite
from ._domain import all_dims, bounds
from ._uses import Use, array_verdict, uses
from .base import Transform


@dataclass(frozen=True)
class Replicate(Transform):
    """Compute a temporary several times, so that each iteration of some loops reads a copy of its own.

    The array gets one axis more, behind the others.  Whatever writes it does so for each copy, in a new loop innermost.  A
    statement that reads it takes the copy whose number is the value of one of its loops.  All copies of an element get the same
    values in the same order, so it does not matter which one is read; but a thread that makes the copy it reads can keep it in a
    register, where one that another thread has made would have to be handed over.

    Before::

        for i in 0…8
            m[i] = exp(a[i])
        for i_2 in 0…8
            for j in 0…4
                y[i_2, j] = m[i_2] * x[i_2, j]

    After ``replicate('m', 'j')``::

        for i in 0…8
            for S0.z in 0…4
                m[i, S0.z] = exp(a[i])
        for i_2 in 0…8
            for j in 0…4
                y[i_2, j] = m[i_2, j] * x[i_2, j]
    """

    name = "replicate"
    group = "Producers"
    aliases = ("broadcast", "recompute", "duplicate")

    array: str = field(metadata={"kind": "array", "help": "the temporary"})
    loops: str | tuple[str, ...] = field(metadata={
        "kind": "loops", "help": "around each statement that reads it, the loop whose value is the number of the copy"})

    def check(self, plan: Plan) -> Verdict:
        found = self._found(plan)
        return found if isinstance(found, Verdict) else YES

    def rewrite(self, plan: Plan) -> Plan:
        found = self._found(plan)
        assert not isinstance(found, Verdict)
        count, loop_of = found
        program = plan.program
        taken = set(all_dims(program))
        writers = dict.fromkeys(u.statement.name for u in uses(plan, self.array) if u.writes)
        dims: dict[str, str] = {}
        for name in writers:
            dims[name] = plan.fresh(f"{name}.z", frozenset(taken))
            taken.add(dims[name])
        leaves = {leaf.statement: leaf for leaf, _, _ in plan.leaves}

        def changed(s: Statement) -> Statement:
            copy = var(dims[s.name]) if s.name in dims else None
            if copy is None and s.name in loop_of:
                copy = dict(leaves[s.name].when)[loop_of[s.name]] - plan.loops[loop_of[s.name]].start
            if copy is None:
                return s
            reads = tuple(Access(r.array, (*r.index, copy), r.kind) if r.array == self.array else r for r in s.reads)
            if s.name not in dims:
                return replace(s, reads=reads)
            target = replace(s.target, index=(*s.target.index, copy))
            return replace(s, dims=(*s.dims, dims[s.name]), domain=(*s.domain, *bounds(dims[s.name], 0, count)), reads=reads,
                           target=target)

        def in_loop(leaf: Leaf, when: bool) -> Loop:
            z = dims[leaf.statement]
            known = tuple(sorted((*leaf.when, (z, var(z))))) if when else leaf.when
            return Loop(z, count, (replace(leaf, at=(*leaf.at, (z, var(z))), when=known),))

        arrays = tuple(replace(a, shape=(*a.shape, count), pitch=0, given=a.given + (a.given >= 0)) if a.name == self.array else a
                       for a in program.arrays)
        body = program.body
        for name in writers:
            body = rewrite(body, name, lambda n: (in_loop(n, False),) if isinstance(n, Leaf) else (n,))
            plan = plan.map_bodies(lambda b, leaf=leaves[name].id: rewrite(  # type: ignore[misc]
                b, leaf, lambda n: (in_loop(n, True),) if isinstance(n, Leaf) else (n,)))
        statements = tuple(map(changed, program.statements))
        return replace(plan, program=replace(program, arrays=arrays, body=body, statements=statements))

    def _found(self, plan: Plan) -> tuple[int, dict[str, str]] | Verdict:
        """How many copies there are, and the loop that numbers them for each statement that reads one."""
        if (refusal := array_verdict(plan, self.array, temporary=True)) is not None:
            return refusal
        found = uses(plan, self.array)
        names = (self.loops,) if isinstance(self.loops, str) else tuple(self.loops)
        if any(u.view for u in found):
            return no(f"{self.array} has storage already", hint=f"replicate before {self.array} is contracted")
        if u := next((u for u in found if not u.access.affine or u.leaf.collect or u.leaf.mechanism != "plain"), None):
            return no(f"{u.leaf.id} uses {self.array} otherwise than by a plain statement",
                      hint="do this before collect or tensorize")
        if len({u.leaf.id for u in found}) > len({u.statement.name for u in found}):
            return no(f"a statement that uses {self.array} stands in several places", hint="do this before cut or pipeline")
        writers = {u.statement.name for u in found if u.writes}
        loop_of: dict[str, str] = {}
        for u in (u for u in found if u.statement.name not in writers):
            mine = [x for x in u.above if x.id in names]
            if len(mine) != 1:
                return no(f"{'no loop' if not mine else 'more than one loop'} around {u.leaf.id} numbers the copies",
                          f"it reads {self.array}, and is in the loops {', '.join(x.id for x in u.above)}",
                          "name one for each statement that reads the array")
            loop_of[u.statement.name] = mine[0].id
        counts = {plan.loops[x].extent for x in loop_of.values()}
        if len(counts) != 1:
            return no(f"the readers of {self.array} would have {', '.join(map(str, sorted(counts))) or 'no'} copies",
                      hint="loops of equal extent")
        return counts.pop(), loop_of

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Replicate]:
        hit = plan.find(node_id)
        if hit is None or not isinstance(hit[0], Loop):
            return
        for name in [a.name for a in plan.program.temporaries]:
            if _read_in(plan, name, node_id) and (step := cls(name, node_id)).check(plan):
                yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        found = next(cls.candidates(plan, node_id), None)
        names = [a.name for a in plan.program.temporaries]
        return YES if found else no(
            f"{node_id} is not the one loop in which a temporary is read",
            "replicate gives each iteration of a loop a copy of what it reads, where no index names the loop" if names else
            "there is no temporary to be computed several times")


def _read_in(plan: Plan, array: str, loop: str) -> bool:
    """Whether all statements that read an array, and do not write it, are in a loop that does not tell the element."""
    found = uses(plan, array)
    writers = {u.statement.name for u in found if u.writes}
    read: list[Use] = [u for u in found if u.statement.name not in writers]
    return bool(read) and all(
        loop in {x.id for x in u.above} and not any(loop in e.variables() for e in u.index()) for u in read)
