"""Compute a part of a statement's value once for each element that it is made of, in a nest of its own before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from ..ir.dtype import DType
from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Program, Statement
from ..ir.scalar import Call, Cast, IndexValue, Read, Scalar, children, rebuild, type_of, walk
from ..ir.tree import Leaf, Loop
from ._domain import around, identity_leaf, program_leaf, with_statements, wrapped
from ._value_parts import ORIGIN, Part, factors_of, part_of
from .base import Transform, no_leaf
from .inline import Inline

TYPES = ("", "f16", "bf16", "f32", "f64", "i8", "i32")
"""Of the temporary; "" is that of the value."""


@dataclass(frozen=True)
class Precompute(Transform):
    """Compute what a statement makes of an array's element in a nest of its own, and read it where it was computed.

    The part is as large as the array's index tells: with ``a[i, k]`` all that depends on `i` and `k` alone, and of a product
    all such factors.  A product of two elements may be left, which `tensorize` has instructions for; or a value that each
    element needs once is not computed again in every iteration of another loop.  `inline` is the way back, and says whether the
    step is legal: nothing may write what the part reads between the nest and the statement.

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

    def check(self, plan: Plan) -> Verdict:
        part = self._part(plan)
        if isinstance(part, Verdict):
            return part
        made = self.rewrite(plan)
        if refusal := Inline(part.temporary.name).check(made):
            return YES
        return replace(refusal, hint=f"let a temporary keep {self.array} as it is then")

    def rewrite(self, plan: Plan) -> Plan:
        part = self._part(plan)
        assert isinstance(part, Part)
        user, own = part.user, part.statement
        program = with_statements(plan.program, user.name, before=(own,))
        written, above = program_leaf(program, user.name)
        nest = wrapped([Loop(d, n, ()) for d, n in zip(own.dims, part.temporary.shape, strict=True)], identity_leaf(own))
        top = (above[0] if above else written).id
        statements = tuple(part.rest if s.name == user.name else s for s in program.statements)
        program = replace(program, arrays=(*program.arrays, part.temporary), statements=statements,
                          body=around(program.body, top, before=(nest,)))
        ids = [plan.fresh(d) for d in own.dims]
        here = Leaf(own.name, own.name, tuple((d, var(x)) for d, x in zip(own.dims, ids, strict=True)),
                    tuple((x, var(d)) for d, x in zip(own.dims, ids, strict=True)))
        inner = wrapped([Loop(x, n, ()) for x, n in zip(ids, part.temporary.shape, strict=True)], here)
        first = next((x[0].id if x else leaf.id) for leaf, x, _ in plan.leaves if leaf.statement == user.name)
        kernel = next(k for leaf, _, k in plan.leaves if leaf.statement == user.name)
        kernels = tuple(replace(k, body=around(k.body, first, before=(inner,))) if k is kernel else k
                        for k in plan.kernels)

        def moved(leaf: Leaf) -> Leaf:
            if leaf.statement != user.name:
                return leaf
            return replace(leaf, views=tuple((part.kept[slot], v) for slot, v in leaf.views if slot in part.kept))

        return replace(plan, program=program, kernels=kernels).map_leaves(moved)

    def _part(self, plan: Plan) -> Part | Verdict:
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
        return part_of(plan, leaf, s, slot, self.dtype)

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
        part, dtype = self._part(plan), plan.array_of[self.array].dtype
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


def stored_narrower(source: Statement, now: Statement, program: Program) -> Statement:
    """A statement of the source that rounds where the one that a schedule has made of it reads a narrower temporary.

    Parameters
    ----------
    source, now : Statement
    program : Program
        Of the schedule.
    """
    for read in now.reads:
        own = next((s for s in program.statements if s.origin == ORIGIN and s.target.array == read.array), None)
        if own is None:
            continue
        at = dict(zip(own.dims, read.index, strict=True))
        types, kind = [program.array_of[r.array].dtype for r in own.reads], program.array_of[read.array].dtype
        if type_of(own.value, types) != kind:
            source = _rounded(source, [_spelled(f, own.reads, at) for f in factors_of(own.value)], kind)
    return source


def _rounded(s: Statement, part: list[object], kind: DType) -> Statement:
    """The statement with the factors of a part, as they are spelled over its dimensions, multiplied first and rounded."""

    def change(node: Scalar) -> Scalar | None:
        factors = factors_of(node)
        mine = [f for f in factors if _spelled(f, s.reads, {}) in part]
        if len(mine) < len(part):
            return None
        whole = Cast(kind, reduce(lambda a, b: Call("mul", (a, b)), mine))
        left = [whole if f is mine[0] else f for f in factors if f is mine[0] or f not in mine]
        return reduce(lambda a, b: Call("mul", (a, b)), left)

    return replace(s, value=rebuild(s.value, change))


def _spelled(node: Scalar, reads: tuple[Access, ...], at: Mapping[str, object]) -> object:
    """An expression with the elements that it reads, by other dimensions."""
    values = {d: e for d, e in at.items() if isinstance(e, Expr)}
    if isinstance(node, Read):
        return reads[node.slot].array, tuple(e.substitute(values) if isinstance(e, Expr) else e for e in reads[node.slot].index)
    if isinstance(node, IndexValue):
        return node.expr.substitute(values)
    if isinstance(node, (Call, Cast)):
        name = node.op if isinstance(node, Call) else node.dtype
        return name, tuple(_spelled(c, reads, at) for c in children(node))
    return node
