"""Let a statement compute less exactly than its types can: by special-function units, or on short factors (tf32)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Verdict, no
from ..ir.instructions import instruction
from ..ir.operations import APPROXIMATE, FUSED, LESS_EXACT
from ..ir.plan import Plan
from ..ir.program import Access, Program, Statement
from ..ir.scalar import Call, Read, Scalar, approximated, rebuild, walk
from ..ir.tree import Leaf
from ..poly.tensor import SHORT, WHOLE, is_product
from ._rounded_parts import is_rounded, stored_narrower, written_out
from ._value_parts import ORIGIN as PRECOMPUTED
from .base import Transform, get_leaf


@dataclass(frozen=True)
class Approximate(Transform):
    """Compute exponentials, logarithms, quotients, erf, tanh and sigmoid in f32 by few instructions, or products on tf32.

    ``exp`` becomes ``__expf`` (at most 2 + 1.173 |x| ulp), ``log`` becomes ``__logf`` (3 ulp, 2^-21.4 near 1) and ``/`` becomes
    ``__fdividef`` (2 ulp for divisors below 2^126): CUDA C++ Programming Guide, "Intrinsic Functions".  ``erf`` becomes
    ``fast_erf``, 1 less a power of two of a polynomial (absolute error at most 2.7e-7, relative error at most 6e-6; 15
    instructions instead of about 25), ``tanh`` becomes ``fast_tanh``, 1 less a quotient by a power of two (4.6e-7, 9e-6), and
    ``sigmoid`` becomes ``fast_sigmoid``, one power of two and one reciprocal (relative error at most 5e-7 + 8e-8 |x|; 4
    instructions).  The GELU, ``0.5 * x * (1 + erf(x / sqrt 2))`` with its factors in any order, becomes ``fast_gelu(x)``: `x`
    times a power of two of a polynomial, or times the rest of it above 0 (absolute error at most 1.9e-7 of `x`; 13 instructions
    instead of about 22 with ``fast_erf``).  That with ``tanh``, ``0.5 * x * (1 + tanh(z))``, becomes ``x * fast_sigmoid(2 * z)``.
    The order of instances stays; the tolerance that a run is checked against grows by these bounds, and says so.

    Before::

        for k in 0…1024
            y[k] = exp(x[k] - peak) / total

    After ``approximate('S4')``::

        for k in 0…1024
            y[k] = fast_div(fast_exp(x[k] - peak), total)

    With `fused`, the exponential of ``x * scale - m`` (the scale a constant, 1 where there is none; `m` 0 where there is none)
    is ``fused_exp(x, scale, m)``: one fused multiply-add with factors that log2 e is in already, and one ``ex2.approx.ftz``,
    which gives 0 below the normal numbers (PTX ISA, "ex2").  `scale` and `m` times log2 e are rounded first, which adds a
    relative error of about ``1.4e-7 * (|x * scale| + |m|)``: ``exp(x - x)`` need not be exactly 1.

    Before::

        for k in 0…1024
            y[k] = exp(0.125 * x[k] - peak)

    After ``approximate('S4', fused=True)``::

        for k in 0…1024
            y[k] = fused_exp(x[k], 0.125, peak)

    With `factors`, each factor of a sum of products in f32 keeps the first 11 bits of its significand, and `tensorize` has
    instructions for the product (PTX ISA, "Alternate Floating-Point Data Formats").

    Before::

        S1: acc += a[i, k] * b[k, j]

    After ``approximate('S1', factors='tf32')``::

        S1: acc += tf32(a[i, k]) * tf32(b[k, j])
    """

    name = "approximate"
    group = "Arithmetic"
    aliases = ("fast_math", "use_fast_math", "intrinsics")

    statement: str = field(metadata={"kind": "leaf", "help": "the statement: its name, or the array it writes"})
    factors: str = field(default="", metadata={"kind": "choice", "choices": ("", "tf32"),
                                               "help": "what a product's factors keep"})
    fused: bool = field(default=False, metadata={"kind": "bool", "help": "take x * scale - m into its exponential"})

    def check(self, plan: Plan) -> Verdict:
        leaf = get_leaf(plan, self.statement)
        if isinstance(leaf, Verdict):
            return leaf
        statement = plan.statement_of[leaf.statement]
        if statement in plan.copies:
            return no(f"{leaf.id} copies, it computes nothing")
        if self.factors and self.fused:
            return no("factors and fused are of different statements", "a sum of products has no exponential",
                      "approximate with one of them")
        if self.factors:
            return self._check_factors(plan, leaf)
        if leaf.statement not in plan.program.statement_of or (
                changed(plan.program, statement, self.fused) == statement):
            names = ", ".join("/" if op == "div" else op for op in APPROXIMATE)
            return no(f"{leaf.id} computes nothing in f32 that has an approximate form", f"these have one: {names}")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        leaf = get_leaf(plan, self.statement)
        assert isinstance(leaf, Leaf)
        program = replace(plan.program, statements=tuple(
            s if s.name != leaf.statement else replace(s, value=SHORT) if self.factors else changed(plan.program, s, self.fused)
            for s in plan.program.statements))
        return replace(plan, program=program)

    def _check_factors(self, plan: Plan, leaf: Leaf) -> Verdict:
        if self.factors != "tf32":
            return no(f"factors={self.factors!r} is no type of factors", hint="factors='tf32'")
        statement = plan.statement_of[leaf.statement]
        types = {plan.array_of[a.array].dtype.name for a in (*statement.reads, statement.target)}
        known = leaf.statement in plan.program.statement_of
        if not known or statement.value != WHOLE or not is_product(statement) or types != {"f32"}:
            return no(f"{leaf.id} is no sum of products of two elements in f32", "tf32 is what tensor cores read of an f32",
                      "approximate without factors, for exponentials, logarithms and quotients")
        if leaf.mechanism != "plain":
            return no(f"{leaf.id} is {leaf.mechanism} already", hint="approximate before tensorize")
        return YES

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        leaf = get_leaf(plan, node_id)
        if isinstance(leaf, Verdict):
            return leaf
        return YES if next(cls.candidates(plan, node_id), None) else cls(node_id).check(plan)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Approximate]:
        for step in (cls(node_id), cls(node_id, fused=True), cls(node_id, "tf32")):
            if step.check(plan) and not (step.fused and step.rewrite(plan) == cls(node_id).rewrite(plan)):
                yield step


def changed(program: Program, statement: Statement, fused: bool = False) -> Statement:
    """The statement with approximate operations wherever there are any, `fused` ones for exponentials."""
    types = [program.array_of[a.array].dtype for a in statement.reads]
    return replace(statement, value=approximated(statement.value, types, fused))


def as_computed(source: Program, plan: Plan) -> Program:
    """The user's program with what a schedule has chosen to compute less exactly: what its results have to be checked against.

    These are approximate operations, sums by tensor instructions that round them more than their type does, and parts of values
    that are stored in a narrower type before (`precompute`).  A statement of
    the source counts where it is one of the plan, or is inlined in one.
    """
    stored = {s.name: s for s in plan.program.statements}
    now = {name: written_out(s, plan.program) for name, s in stored.items()}
    called = {name: {n.op for n in walk(s.value) if isinstance(n, Call)} for name, s in now.items()}
    for s in reversed(source.statements):
        if s.name not in now:  # inlined in what reads it
            called[s.name] = {op for r in source.statements for op in called.get(r.name, ())
                              if any(a.array == s.target.array for a in r.reads)}
    fast = {name for name, ops in called.items() if ops & LESS_EXACT}
    coarse = {leaf.statement: row.rounding for leaf, _, _ in plan.leaves if (row := instruction(leaf.mechanism)) and row.rounding}
    short = {s.name for s in source.statements if s.value != SHORT and s.name in now and _is_short(now[s.name].value)}
    precomputed = {s.target.array for s in plan.program.statements if s.origin == PRECOMPUTED}
    narrow = {s.name for s in stored.values() if any(r.array in precomputed for r in s.reads) or is_rounded(s, plan.program)}
    narrow &= source.statement_of.keys()
    if not fast and not coarse and not short and not narrow:
        return source
    parts = coarse.keys() - source.statement_of.keys()  # partial sums of some statement
    worst = max((coarse[name] for name in parts), default=0.0)
    copied = _copied(source, plan.program) if short or narrow else {}

    def computed(s: Statement) -> Statement:
        fewer = changed(source, s, FUSED in called[s.name]) if s.name in fast else s
        made = _cut_off(s, _left(s.reads, now[s.name].reads, copied)) if s.name in short else fewer
        made = stored_narrower(made, stored[s.name], source, plan.program, copied) if s.name in narrow else made
        return replace(made, rounding=max(coarse.get(s.name, 0.0), worst if s.update == "sum" else 0.0))

    return replace(source, statements=tuple(map(computed, source.statements)))


def _copied(source: Program, program: Program) -> dict[str, str]:
    """Of arrays that moves have made as copies of others, the array of the source that is copied."""
    found = dict[str, str]()
    for s in program.statements:
        if s.value == Read(0) and s.target.array not in source.array_of:
            found[s.target.array] = found.get(s.reads[0].array, s.reads[0].array)
    return found


def _left(reads: tuple[Access, ...], now: tuple[Access, ...], copied: Mapping[str, str]) -> tuple[int, ...]:
    """Which reads of a statement are still its own: moves take some out of it, exchange them, and change arrays and indices."""
    found, names = list[int](), [copied.get(a.array, a.array) for a in now]
    for access, name in zip(now, names, strict=True):
        free = [slot for slot in range(len(reads)) if slot not in found]
        alike = [slot for slot in free if reads[slot] == access] or [slot for slot in free if reads[slot].array == name] or free
        found += alike[:1]
    return tuple(found)


def _is_short(value: Scalar) -> bool:
    """Whether a value multiplies two elements cut off to tf32, in any order."""
    return isinstance(value, Call) and value.op == "mul" and all(
        isinstance(x, Call) and x.op == "tf32" and isinstance(x.args[0], Read) for x in value.args)


def _cut_off(s: Statement, slots: tuple[int, ...]) -> Statement:
    """The statement with some of what it multiplies cut off, if it is not already."""

    def cut(node: Scalar) -> Scalar | None:
        if isinstance(node, Call) and node.op == "tf32":
            return node
        return Call("tf32", (node,)) if isinstance(node, Read) and node.slot in slots else None

    return replace(s, value=rebuild(s.value, cut))
