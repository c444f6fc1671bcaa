"""Compute a part of a statement's value once for each element that it is made of, in a nest of its own before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.program import Statement
from ..ir.scalar import Read, walk
from ..ir.tree import Leaf, Loop
from ..poly.dependence import analyse
from ..poly.relations import domain
from ._domain import around, identity_leaf, program_leaf, with_statements, wrapped
from ._value_parts import Part, part_of, spelled
from .base import Transform, no_leaf
from .inline import Inline, substituted

TYPES = ("", "f16", "bf16", "f32", "f64", "i8", "i32")
"""Of the temporary; "" is that of the value."""


@dataclass(frozen=True)
class Precompute(Transform):
    """Compute a part of a statement's value in a nest before it, once for each element of an array.

    The part is all of the value that depends on no other loops than the array's index: with ``a[i, k]`` what depends on `i` and
    `k` alone; of a product, all such factors.  Statements behind it that compute the same part read it, too.  What is left may be
    a product of two elements, which `tensorize` has instructions for; or a value is no longer computed again in every iteration
    of another loop.

    `inline` is the way back, and the step is legal if that would be: nothing writes what the part reads between the nest and its
    readers, and every reader reads an element that was computed.

    A `dtype` narrower than the value rounds it, as a program does that stores it; results are checked against a program that
    rounds there, too.

    Before::

        for i in 0…M
            for j in 0…N
                for k in 0…K
                    S1: total += max(a[i, k], 0.0) * b[k, j]

    After ``precompute('S1', 'a', dtype='f16')``::

        for i.p in 0…M
            for k.p in 0…K
                S1_p: a_p[i.p, k.p] = max(a[i.p, k.p], 0.0)
        for i in 0…M
            for j in 0…N
                for k in 0…K
                    S1: total += a_p[i, k] * b[k, j]

    References
    ----------
    Ragan-Kelley et al., "Halide: A Language and Compiler for Optimizing Parallelism, Locality, and Recomputation in Image
    Processing Pipelines", PLDI 2013 (``compute_root``).
    """

    name = "precompute"
    group = "Producers"
    aliases = ("compute_root", "hoist", "materialize")
    elsewhere = {"Halide": "compute_root"}

    statement: str = field(metadata={"kind": "leaf", "help": "the statement whose value has the part"})
    array: str = field(metadata={"kind": "array", "help": "the array whose elements the part is made of"})
    dtype: str = field(default="", metadata={"kind": "choice", "choices": TYPES,
                                             "help": "type of the temporary; \"\" is that of the value"})

    at: str = field(default="", metadata={"kind": "loop", "help": "a loop in whose body it is computed (default: before all)"})

    def check(self, plan: Plan) -> Verdict:
        made = _made(plan, self)
        return made if isinstance(made, Verdict) else YES

    def rewrite(self, plan: Plan) -> Plan:
        made = _made(plan, self)
        assert isinstance(made, Plan)
        return made

    def part(self, plan: Plan) -> Part | Verdict:
        """The part of the value, or why there is none."""
        hit = plan.resolve(self.statement)
        if hit is None:
            return no_leaf(plan, self.statement)
        leaf, above, _ = hit
        s = plan.statement_of[leaf.statement]
        if self.dtype not in TYPES:
            return no(f"a temporary has no type {self.dtype!r}", hint=f"one of {', '.join(map(repr, TYPES))}")
        values = {n.slot for n in walk(s.value) if isinstance(n, Read)}
        if (slot := next((n for n, r in enumerate(s.reads) if r.array == self.array and n in values), None)) is None:
            names = ", ".join(dict.fromkeys(s.reads[n].array for n in sorted(values)))
            return no(f"the value of {leaf.id} does not read {self.array}", hint=f"one of {names}" if names else "")
        if s.name in {c.name for c in plan.copies}:
            return no(f"{s.name} is a copy", "it computes nothing", "precompute in the statement that it serves")
        if s.inside:
            return no(f"{leaf.id} has {s.fill} where a condition does not hold", "the part would be computed there, too")
        if any(x.is_place for x in above):
            return no(f"{leaf.id} is spread over the GPU already", "the part has a nest of its own before it",
                      "precompute before bind")
        if not s.reads[slot].affine:
            return no(f"{leaf.id} reads {self.array} at a data-dependent element", "its index does not tell which")
        if not s.reads[slot].index:
            return no(f"{self.array} has one element", hint=f"factor_out('{s.name}') takes it out of a sum")
        around = self._around(plan, leaf, above)
        return around if isinstance(around, Verdict) else part_of(plan, leaf, slot, self.dtype, around)

    def _around(self, plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> tuple[Loop, ...] | Verdict:
        """The loops around the part: those of the program, which are to be those of the plan."""
        if not self.at:
            return ()
        _, written = program_leaf(plan.program, leaf.statement)
        same = [x.id == y.id and x.range == y.range for x, y in zip(written, above, strict=False)]
        both = written[:same.index(False) if False in same else len(same)]
        depth = next((n + 1 for n, x in enumerate(both) if x.id == self.at), 0)
        if not depth:
            names = ", ".join(x.id for x in both)
            return no(f"{self.at} is no loop of the program around {leaf.id}",
                      hint=f"one of {names}" if names else "leave `at` out")
        return written[:depth]

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Precompute]:
        hit = plan.resolve(node_id)
        if hit is None or hit[0].id != node_id:
            return
        reads = plan.statement_of[hit[0].statement].reads
        for array in dict.fromkeys(r.array for r in reads):
            for step in (cls(node_id, array), cls(node_id, array, plan.array_of[array].dtype.name)):
                if step.dtype in TYPES and not (step.dtype and cls(node_id, array)._narrow(plan) is None) and step.check(plan):
                    yield step

    def _narrow(self, plan: Plan) -> str | None:
        """The type of the array's elements, where the value of the part is wider."""
        part, dtype = self.part(plan), plan.array_of[self.array].dtype
        return dtype.name if isinstance(part, Part) and part.temporary.dtype != dtype else None

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        hit = plan.resolve(node_id)
        if hit is None or hit[0].id != node_id:
            return no_leaf(plan, node_id)
        if next(cls.candidates(plan, node_id), None):
            return YES
        reads = plan.statement_of[hit[0].statement].reads
        if not reads:
            return no(f"{node_id} reads no array", "there is nothing to compute before")
        return cls(node_id, reads[0].array).check(plan)


@per_program(64)
def _made(plan: Plan, step: Precompute) -> Plan | Verdict:
    """The plan with the part computed before; for all that have it, or else for the statement alone."""
    part = step.part(plan)
    if isinstance(part, Verdict):
        return part
    hit = plan.resolve(step.statement)
    assert hit is not None
    part = replace(part, users={name: user for name, user in part.users.items() if _is_same(plan, name, user.statement, part)})
    if hit[0].statement not in part.users:
        return no(f"the part of {hit[0].id} is not what it computes", hint="precompute with another array")
    alone = replace(part, users={hit[0].statement: part.users[hit[0].statement]})
    verdict = YES
    for found in (part, alone) if len(part.users) > 1 else (part,):
        made = _with(plan, step.at, hit[0].statement, found)
        if not _covers(made, found):
            verdict = no(f"{part.statement.name} would not have run for all who read it",
                         f"they stand before {hit[0].id}, or beside it")
        elif verdict := Inline(part.temporary.name).check(made):
            return made
    return replace(verdict, hint=f"let a temporary keep {step.array} as it is then")


def _is_same(plan: Plan, name: str, changed: Statement, part: Part) -> bool:
    """Whether a changed statement computes what it did, once the part is written out again."""
    own, old = part.statement, plan.statement_of[name]
    program = replace(plan.program, arrays=(*plan.program.arrays, part.temporary))
    back = substituted(changed, own, part.temporary.name, program).statement
    return spelled(back.value, back.reads) == spelled(old.value, old.reads)


def _covers(plan: Plan, part: Part) -> bool:
    """Whether each instance that reads the temporary reads what was computed before."""
    flows = [f for f in analyse(plan.program).flow if f.array == part.temporary.name]
    for name in part.users:
        read = [f.relation.range() for f in flows if f.sink == name]
        if not read or not domain(plan.program.statement_of[name]).is_subset(reduce(lambda a, b: a.union(b), read)):
            return False
    return True


def _with(plan: Plan, at: str, user: str, part: Part) -> Plan:
    """The plan with a part in a nest in front of what has its user, in a loop's body or before all."""
    own, program = part.statement, with_statements(plan.program, user, before=(part.statement,))
    leaf, above = program_leaf(program, user)
    new = [(d, plan.fresh(d), n) for d, n in zip(own.dims, part.temporary.shape, strict=True) if d not in {x.id for x in above}]
    nest = wrapped([Loop(d, n, ()) for d, _, n in new], identity_leaf(own))
    loops = {d: x for d, x, _ in new}
    here = Leaf(own.name, own.name, tuple((d, var(loops.get(d, d))) for d in own.dims),
                tuple(sorted((loops.get(d, d), var(d)) for d in own.dims)))
    inner = wrapped([Loop(x, n, ()) for _, x, n in new], here)
    statements = tuple(part.users[s.name].statement if s.name in part.users else s for s in program.statements)
    program = replace(program, arrays=(*program.arrays, part.temporary), statements=statements,
                      body=around(program.body, _below(at, leaf, above), before=(nest,)))
    placed, outside, kernel = next(x for x in plan.leaves if x[0].statement == user)
    kernels = tuple(replace(k, body=around(k.body, _below(at, placed, outside), before=(inner,))) if k is kernel else k
                    for k in plan.kernels)

    def moved(leaf: Leaf) -> Leaf:
        if leaf.statement not in part.users:
            return leaf
        kept = part.users[leaf.statement].kept
        return replace(leaf, views=tuple((kept[slot], v) for slot, v in leaf.views if slot in kept))

    return replace(plan, program=program, kernels=kernels).map_leaves(moved)


def _below(at: str, leaf: Leaf, above: tuple[Loop, ...]) -> str:
    """The node around a leaf, or the leaf, that stands in the body of a loop, or at the top."""
    nodes = [*(x.id for x in above), leaf.id]
    return nodes[nodes.index(at) + 1 if at else 0]
