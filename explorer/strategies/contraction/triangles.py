"""Products of which each row, or each column, has its own part of the depth: triangular and banded matrices.

``y[i, j] = sum over k <= i of a[i, k] * b[k, j]`` is a product by a triangle ``a``.  Its tiles on the diagonal are whole, with
zeros behind it (`stage` with ``masked``), tiles behind them are left out (`trim`), and rows with more of the depth start first
(`reverse`).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Leaf, Loop, ranges
from ...poly.count import instances
from .._steps import Builder
from .accesses import written

if TYPE_CHECKING:
    from .form import ProductForm


def cut_factors(plan: Plan, update: Leaf, above: tuple[Loop, ...], rows: set[str], columns: set[str],
                depth: set[str]) -> tuple[bool, bool] | None:
    """Whether a condition leaves out elements of the left factor, and of the right one; None where it is about both at once.

    That an element lies in its array is none: copies have zeros there without being told.
    """
    statement, scope = plan.statement_of[update.statement], ranges(above)
    inside = [x for slot in (0, 1) for e, n in zip(written(plan, update, slot), plan.array_of[
        statement.accesses[slot].array].shape, strict=True) for x in (e, -e + (n - 1))]
    cut = [False, False]
    for c in statement.domain:
        e = c.expr.substitute(dict(update.at), scope)
        used = e.variables()
        if not used & depth or (not c.equality and e.interval(scope)[0] >= 0) or any((c.expr - x).is_constant for x in inside):
            continue
        if used & rows and used & columns:
            return None
        if used - depth:
            cut[bool(used & columns)] = True
    return cut[0], cut[1]


def zeros_first(plan: Plan, update: Leaf, above: tuple[Loop, ...], along: tuple[str, str]) -> tuple[bool, bool]:
    """For each factor whether what is left out of a run of its memory, `along` a loop, stands before what is not.

    An asynchronous copy brings the first elements of a vector: others are loaded, masked and stored at once.
    """
    scope, places = ranges(above), dict(update.at)
    kept = [c.expr.substitute(places, scope) for c in plan.statement_of[update.statement].domain if len(c.expr.variables()) > 1]
    left, right = (any(e.coefficient(loop) > 0 for e in kept) for loop in along)
    return left, right


def share_of_depth(plan: Plan, update: Leaf, above: tuple[Loop, ...]) -> float:
    """How much of its loops' iterations an update runs in."""
    return instances(plan)[update.statement] / max(1, prod(x.extent for x in above))


def longest_first(b: Builder, form: ProductForm) -> None:
    """Tiles of rows, or of columns, that have more of the depth than those before them start first."""
    for loop in (form.rows[0], form.columns[0]):
        if any(e.coefficient(loop) > 0 for e in _cuts(b, form.update, loop)):
            b.attempt("reverse", loop)


def shortened(b: Builder, form: ProductForm, steps: str) -> None:
    """Steps that begin late, as those of an upper triangle, run backwards, so that they end early."""
    cuts = _cuts(b, form.update, steps)
    if cuts and all(e.coefficient(steps) > 0 for e in cuts):
        b.attempt("reverse", steps)


def _cuts(b: Builder, update: str, loop: str) -> list[Expr]:
    """The conditions of an update about a loop and others of its own: those of a triangle, and not of an edge."""
    hit = b.plan.find(update)
    assert hit is not None
    leaf, above = hit
    assert isinstance(leaf, Leaf)
    scope, places = ranges(above), dict(leaf.at)
    kept = [c.expr for c in b.plan.statement_of[leaf.statement].domain if len(c.expr.variables()) > 1]
    return [e for e in (x.substitute(places, scope) for x in kept) if loop in e.variables() and e.interval(scope)[0] < 0]
