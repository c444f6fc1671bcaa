"""Other spellings of an attention, in the one that :mod:`~explorer.strategies.attention.form` knows.

Scores, softmax and values may be nests of their own; weights may be divided by their sum before they multiply the values; an
exponential may be written twice.  Moves bring all of it into one nest over rows, with each weight computed once and results
that are divided at the end.  Before::

    for j: total += exp(s[j] - peak)
    for j: p[j] = exp(s[j] - peak) / total
    for d:
        for j: out += p[j] * v[j, d]
        y[d] = out

After ``inline``, ``factor_out``, ``precompute`` and ``fuse``::

    for j:
        e[j] = exp(s[j] - peak)
        total += e[j]
        p[j] = e[j]
    for d:
        for j: out += p[j] * v[j, d]
        y[d] = out / total
"""

from __future__ import annotations

from itertools import pairwise

from ...ir.plan import Plan
from ...ir.program import Statement
from ...ir.scalar import Call, walk
from ...ir.tree import Leaf, Loop
from ...poly.tensor import is_product
from .._steps import Builder

HALVES = ("f16", "bf16")


def respelled(b: Builder, kernel: str) -> bool:
    """Bring a kernel's attention into the form that is known, as far as its moves are legal; whether it has something of one."""
    found = _updates(b.plan, kernel)
    if found is None:
        return False
    scores, maximum, total, output = found
    hit = b.plan.find(maximum.id)
    assert hit is not None
    depth = len(hit[1]) - 1
    if depth < 1:
        return False
    for name in [r.array for r in _said(b, output).reads if b.plan.array_of[r.array].role == "temporary"]:
        if any(_divides(s) for s in b.plan.program.statements if s.target.array == name):
            b.attempt("inline", name)
    b.attempt("factor_out", output.id)
    for s in b.plan.program.statements:  # what divides the sum before it is stored
        if s.update is None and _said(b, output).target.array in {r.array for r in s.reads}:
            b.attempt("inline", s.target.array)
    if _exponential(_said(b, total)):
        b.attempt("precompute", total.id, _first(b.plan, total), at=_row(b.plan, total, depth))
    if not is_product(_said(b, output)) or len({b.plan.array_of[r.array].dtype for r in _said(b, output).reads}) > 1:
        kind = next((b.plan.array_of[r.array].dtype.name for r in _said(b, output).reads
                     if b.plan.array_of[r.array].dtype.name in HALVES), "")
        b.attempt("precompute", output.id, _first(b.plan, output), kind, _row(b.plan, output, depth))
    _together(b, kernel, depth)
    _fused(b, _row(b.plan, maximum, depth), {scores.id, maximum.id, output.id})
    return True


def _updates(plan: Plan, kernel: str) -> tuple[Leaf, Leaf, Leaf, Leaf] | None:
    """The first product, the maximum, the sum of exponentials and the second product."""
    mine = [leaf for leaf, _, k in plan.leaves if k.id == kernel]
    said = {leaf.id: plan.statement_of[leaf.statement] for leaf in mine}
    if not any(_exponential(s) for s in said.values()):
        return None
    sums = [leaf for leaf in mine if said[leaf.id].update == "sum"]
    maxima = [leaf for leaf in mine if said[leaf.id].update == "max"]
    first = [leaf for leaf in sums if is_product(said[leaf.id]) and _roles(plan, said[leaf.id]) == {"in"}]
    last = [leaf for leaf in sums if _roles(plan, said[leaf.id]) == {"in", "temporary"}]
    between = [leaf for leaf in sums if _roles(plan, said[leaf.id]) == {"temporary"}]
    if (len(first), len(maxima), len(between), len(last)) != (1, 1, 1, 1):
        return None
    return first[0], maxima[0], between[0], last[0]


def _roles(plan: Plan, s: Statement) -> set[str]:
    return {plan.array_of[r.array].role for r in s.reads}


def _row(plan: Plan, leaf: Leaf, depth: int) -> str:
    """The loop over rows around a statement."""
    hit = plan.find(leaf.id)
    assert hit is not None
    return hit[1][depth - 1].id


def _said(b: Builder, leaf: Leaf) -> Statement:
    return b.plan.statement_of[leaf.statement]


def _exponential(s: Statement) -> bool:
    return any(isinstance(n, Call) and n.op == "exp" for n in walk(s.value))


def _divides(s: Statement) -> bool:
    return any(isinstance(n, Call) and n.op == "div" for n in walk(s.value))


def _first(plan: Plan, leaf: Leaf) -> str:
    """The temporary with most axes that a statement reads: one element for each key."""
    reads = [r for r in plan.statement_of[leaf.statement].reads if plan.array_of[r.array].role == "temporary"]
    return max(reads, key=lambda r: len(plan.array_of[r.array].shape)).array


def _together(b: Builder, kernel: str, depth: int) -> None:
    """Fuse the nests of a kernel, as deep as the loops around a row's are."""
    inside = ""
    for _ in range(depth):
        body = b.plan.loops[inside].body if inside else next(k.body for k in b.plan.kernels if k.id == kernel)
        loops = [n for n in body if isinstance(n, Loop)]
        if len(loops) < len(body):
            return
        for x in loops[1:]:
            if not b.attempt("fuse", loops[0].id, x.id):
                return
        inside = loops[0].id


def _fused(b: Builder, row: str, but: set[str]) -> None:
    """Fuse the loops over keys between the products, once what starts a sum stands before them."""
    while True:
        body = b.plan.loops[row].body
        alone = [n for n in body if isinstance(n, Loop) and all(isinstance(x, Leaf) for x in n.body)
                 and not but & {x.id for x in n.body}]
        for first, second in pairwise(alone):
            if between := body[body.index(first) + 1:body.index(second)]:
                b.attempt("sequence", first.id, after=between[-1].id)
            if b.attempt("fuse", first.id, second.id):
                break
        else:
            return
