"""Take what does not change out of a sum of products, or a positive constant out of a maximum of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf

from ..ir.expr import Expr
from ..ir.finding import Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Statement
from ..ir.scalar import Call, Cast, IndexValue, Literal, Read, Scalar, rebuild, walk
from ..ir.tree import Leaf
from ._domain import below
from ._reduction import Side, Updates, side, update_verdict
from .accumulate import starts
from .base import Transform
from .rfactor import factor_verdict, factored

IDENTITY = {"sum": 0.0, "max": -inf, "min": inf}
"""What changes nothing where it is added, or compared: a positive multiple of it is the same."""


@dataclass(frozen=True)
class FactorOut(Transform):
    """Multiply a sum by a factor once, instead of each of its terms (by distributivity).

    A factor that all terms of an element share, a constant or an element that the loops of the sum do not tell apart, leaves the
    sum: a new temporary holds the sum of the rest, and a last statement adds its multiple to the target.  What is left may be
    a sum of products of two, which `tensorize` has instructions for.  Sums of floats round elsewhere then, as those of
    other orders do, and a factor that is infinite meets the sum, not each term.

    A sign is a factor of -1: ``total -= a[i, k] * b[k, j]`` subtracts the sum of the products.  A divisor leaves as a factor
    does, and so does what stands in a conversion to another type of floats, which then converts the rest: weights of an attention
    that are divided by their sum and then rounded are rounded before, and each result is divided once.

    Where a statement starts the sum with 0, it starts that of the rest, and the target is written once.

    A positive constant leaves a maximum or a minimum of floats: it keeps their order, and so does rounding.  The largest of its
    multiples is the multiple of the largest.

    Before::

        total = 0.0
        for k in 0…1024
            S1: total += alpha[0] * a[i, k] * b[k, j]

    After ``factor_out('S1')``::

        total_p = 0.0
        for k in 0…1024
            S1: total_p += a[i, k] * b[k, j]
        total = alpha[0] * total_p
    """

    name = "factor_out"
    group = "Reductions"
    aliases = ("hoist_factor",)

    statement: str = field(metadata={"kind": "leaf", "help": "the sum: its statement, or the array it updates"})

    def check(self, plan: Plan) -> Verdict:
        u = update_verdict(plan, self.statement)
        if isinstance(u, Verdict):
            return u
        s = u.statement
        if s.update not in IDENTITY:
            return no(f"{u.leaf.id} is no sum", f"a factor does not leave a {s.update}")
        if s.fill or not all(x.affine for x in s.reads):
            return no(f"{u.leaf.id} reads data-dependent elements, or other values than 0 outside of arrays")
        if not u.carrying:
            return no(f"each element of {s.target.array} is updated once")
        parts = _parts(u)
        stays = (*parts.factors, *parts.divisors)
        if not stays:
            return no(f"all terms of {u.leaf.id} share no factor", f"its term is {s.text or s.value}")
        if parts.rest is None:
            return no(f"all terms of {u.leaf.id} are the same", "nothing would be left to add up")
        floats = plan.array_of[s.target.array].dtype.kind == "float"
        if parts.divisors and not floats:
            return no(f"a divisor does not leave the {s.update} of {u.leaf.id}", "quotients of integers are cut off")
        if s.update != "sum" and not (floats and all(isinstance(f, Literal) and 0 < f.value < inf for f in stays)):
            return no(f"a factor does not leave the {s.update} of {u.leaf.id}",
                      "it may be negative, zero, or no number" if floats else "integers overflow",
                      "a positive constant leaves a maximum of floats")
        anchor, _ = u.program_anchor
        names = {s.reads[n.slot].array for f in stays for n in walk(f) if isinstance(n, Read)}
        written = {plan.program.statement_of[x].target.array for x in below(plan.program, anchor)}
        if changed := sorted(names & written):
            return no(f"{changed[0]} is written in the loops of the sum", "the factor would be another one behind them",
                      "a temporary that keeps the value before")
        return factor_verdict(u)

    def rewrite(self, plan: Plan) -> Plan:
        u = update_verdict(plan, self.statement)
        assert isinstance(u, Updates)
        made, finish, s = factored(u, starts=_zero_starts(u)), side(u, "c"), u.statement
        assert isinstance(finish, Side)
        parts, first = _parts(u), made.plan.statement_of[s.name]
        assert parts.rest is not None
        kept, (value,), own = _moved(s, [parts.rest], 0, {})
        rest, last = replace(first, value=value, reads=own), made.plan.statement_of[made.combine]
        _, stays, reads = _moved(s, [*parts.factors, *parts.divisors], 1, finish.to_new)
        factors, divisors = stays[:len(parts.factors)], stays[len(parts.factors):]
        value = reduce(lambda a, b: Call("mul", (a, b)), [*factors, Read(0)])
        if len(factors) == 1 and isinstance(factors[0], Literal) and factors[0].value == -1:
            value = Call("neg", (Read(0),))
        value = reduce(lambda a, b: Call("div", (a, b)), [value, *divisors])
        new = {s.name: rest, made.combine: replace(last, value=value, reads=(*last.reads, *reads))}
        program = replace(made.plan.program, statements=tuple(new.get(x.name, x) for x in made.plan.program.statements))

        def here(leaf: Leaf) -> Leaf:
            if leaf.statement == made.combine:
                return replace(leaf, views=tuple((slot + len(reads) * (slot > 0), v) for slot, v in leaf.views))
            if leaf.statement != s.name:
                return leaf
            return replace(leaf, views=tuple((kept.index(slot), v) for slot, v in leaf.views if slot in kept))

        return replace(made.plan, program=program).map_leaves(here)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        return cls(node_id).check(plan)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[FactorOut]:
        if cls(node_id).check(plan):
            yield cls(node_id)


def _zero_starts(u: Updates) -> tuple[str, ...]:
    """The statement that starts the sums with 0: it starts those of the rest, and their multiples are the results.

    A maximum starts with the infinity that is less than all, and so does the one of the rest.
    """
    values, least = {name: u.plan.statement_of[name].value for name in starts(u)}, IDENTITY[u.statement.update or ""]
    return tuple(name for name, value in values.items() if isinstance(value, Literal) and value.value == least)


@dataclass(frozen=True)
class _Parts:
    """A sum's terms: what all terms of an element are multiplied with and divided by, and the rest."""

    factors: tuple[Scalar, ...] = ()
    divisors: tuple[Scalar, ...] = ()
    rest: Scalar | None = None


def _parts(u: Updates) -> _Parts:
    """Factors and divisors that all terms of an element share, and what is left of a term."""
    return _of(u.statement.value, u)


def _of(node: Scalar, u: Updates) -> _Parts:
    if _shared(node, u):
        return _Parts((node,))
    if isinstance(node, Call) and node.op == "mul":
        a, b = (_of(x, u) for x in node.args)
        rest = Call("mul", (a.rest, b.rest)) if a.rest is not None and b.rest is not None else a.rest or b.rest
        return _Parts((*a.factors, *b.factors), (*a.divisors, *b.divisors), rest)
    if isinstance(node, Call) and node.op == "neg":
        dtype, a = u.plan.array_of[u.statement.target.array].dtype, _of(node.args[0], u)
        return replace(a, factors=(Literal(-1.0 if dtype.kind == "float" else -1, dtype), *a.factors))
    if isinstance(node, Call) and node.op == "div" and _shared(node.args[1], u):
        a = _of(node.args[0], u)
        return replace(a, divisors=(*a.divisors, node.args[1]))
    if isinstance(node, Cast) and node.dtype.kind == "float":
        a = _of(node.arg, u)
        if a.rest is not None and (a.factors or a.divisors):
            return replace(a, rest=Cast(node.dtype, a.rest))
    return _Parts(rest=node)


def _shared(factor: Scalar, u: Updates) -> bool:
    """Whether the element alone tells the factor."""
    return all(
        n.expr.variables() <= u.dims if isinstance(n, IndexValue) else
        all(isinstance(e, Expr) and e.variables() <= u.dims for e in u.statement.reads[n.slot].index)
        for n in walk(factor) if isinstance(n, (IndexValue, Read)))


def _slots(parts: list[Scalar]) -> list[int]:
    return list(dict.fromkeys(n.slot for f in parts for n in walk(f) if isinstance(n, Read)))


def _moved(s: Statement, parts: list[Scalar], first: int, to_new: Mapping[str, Expr]
           ) -> tuple[list[int], list[Scalar], tuple[Access, ...]]:
    """Parts of a statement's value over other dimensions: the slots they had, and what they read, from slot `first` on."""
    kept = _slots(parts)

    def moved(node: Scalar) -> Scalar | None:
        if isinstance(node, IndexValue):
            return IndexValue(node.expr.substitute(to_new))
        return Read(first + kept.index(node.slot)) if isinstance(node, Read) else None

    def there(access: Access) -> Access:
        return replace(access, index=tuple(e.substitute(to_new) if isinstance(e, Expr) else e for e in access.index))

    return kept, [rebuild(f, moved) for f in parts], tuple(there(s.reads[slot]) for slot in kept)
