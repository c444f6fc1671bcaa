"""Domains of the statements that a transformation adds: intervals, projections, and their place in the program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from ..ir.expr import Expr, Ranges, var
from ..ir.program import Constraint, Program, Statement
from ..ir.tree import Leaf, Loop, Node, find, leaves, rewrite

_FAR = 1 << 40


def bounds(dim: str, start: int, extent: int) -> tuple[Constraint, Constraint]:
    """``start <= dim < start + extent``."""
    return Constraint(var(dim) - start), Constraint(-var(dim) + (start + extent - 1))


def dim_ranges(statement: Statement) -> Ranges:
    """An interval for every dimension of the statement, from its constraints (exact for rectangular domains)."""
    return dict(_dim_ranges(statement.dims, statement.domain))


@lru_cache(maxsize=4096)
def _dim_ranges(dims: tuple[str, ...], domain: tuple[Constraint, ...]) -> Ranges:
    known: dict[str, tuple[int, int]] = {d: (-_FAR, _FAR) for d in dims}
    for _ in dims:
        before = dict(known)
        for c in domain:
            for d in c.expr.variables() & known.keys():
                for sign in (1, -1) if c.equality else (1,):
                    known[d] = _tightened(c.expr * sign, d, known)
        if known == before:
            break
    return known


def _tightened(e: Expr, d: str, known: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    low, high = known[d]
    c = e.coefficient(d)
    rest = e - var(d) * c
    if not c or d in rest.variables():
        return low, high
    top = rest.interval(known)[1]
    return (max(low, -(top // c)), high) if c > 0 else (low, min(high, top // -c))


def project(domain: Iterable[Constraint], gone: Iterable[str]) -> tuple[Constraint, ...]:
    """Constraints on the remaining dimensions (Fourier-Motzkin): exact where one of two coefficients is 1, else a superset."""
    kept = list(domain)
    for d in gone:
        plain = [c for c in kept if d not in c.expr.variables()]
        with_d = [x for c in kept if d in c.expr.variables() for x in _halves(c)]
        usable = [e for e in with_d if d not in (e - var(d) * e.coefficient(d)).variables()]
        lower = [e for e in usable if e.coefficient(d) > 0]
        upper = [e for e in usable if e.coefficient(d) < 0]
        joined = [Constraint(low * -high.coefficient(d) + high * low.coefficient(d)) for low in lower for high in upper]
        kept = plain + [c for c in joined if not (c.expr.is_constant and c.expr.const >= 0)]
    return tuple(dict.fromkeys(kept))


def _halves(c: Constraint) -> tuple[Expr, ...]:
    return (c.expr, -c.expr) if c.equality else (c.expr,)


def renamed(domain: Iterable[Constraint], names: Mapping[str, Expr]) -> tuple[Constraint, ...]:
    """The constraints over other dimensions."""
    return tuple(replace(c, expr=c.expr.substitute(names)) if c.expr.variables() & names.keys() else c for c in domain)


def all_dims(program: Program) -> frozenset[str]:
    """Every dimension name in use."""
    return frozenset(d for s in program.statements for d in s.dims)


def program_leaf(program: Program, statement: str) -> tuple[Leaf, tuple[Loop, ...]]:
    """Where the program as written has a statement: its leaf, and the loops around it."""
    return next((leaf, above) for leaf, above in leaves(program.body) if leaf.statement == statement)


def plain(e: Expr) -> tuple[str, int] | None:
    """The dimension that an expression is, and the constant added to it."""
    single = len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1
    return (str(e.terms[0][0]), e.const) if single else None


def identity_leaf(s: Statement) -> Leaf:
    """The leaf of a statement in a program's own tree, whose loops are the statement's dimensions."""
    return Leaf(s.name, s.name, tuple((d, var(d)) for d in s.dims))


def wrapped(loops: Iterable[Loop], leaf: Node) -> Node:
    """A perfect nest of these loops (their bodies are replaced), outermost first."""
    node = leaf
    for loop in reversed(tuple(loops)):
        node = replace(loop, body=(node,))
    return node


def around(nodes: tuple[Node, ...], node_id: str, before: tuple[Node, ...] = (),
           after: tuple[Node, ...] = ()) -> tuple[Node, ...]:
    """The tree with further nodes beside one of its nodes."""
    return rewrite(nodes, node_id, lambda n: (*before, n, *after))


def with_statements(program: Program, beside: str, before: tuple[Statement, ...] = (),
                    after: tuple[Statement, ...] = ()) -> Program:
    """The list of statements with further ones next to the one named `beside`."""
    place = [s.name for s in program.statements].index(beside)
    listed = program.statements
    return replace(program, statements=(*listed[:place], *before, listed[place], *after, *listed[place + 1 :]))


def below(program: Program, node_id: str) -> tuple[str, ...]:
    """Names of the statements under a node of the program as written."""
    hit = find(program.body, node_id)
    assert hit is not None
    return tuple(dict.fromkeys(leaf.statement for leaf, _ in leaves((hit[0],))))
