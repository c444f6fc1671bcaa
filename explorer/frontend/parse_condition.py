"""Conditions and loop bounds: affine comparisons with `and`, `or` and `not`, as named constraints."""

from __future__ import annotations

import ast

from ..ir.expr import Expr
from ..ir.inequality import any_of
from ..ir.program import Constraint
from .parse_index import index
from .refuse import OPERATORS, refuse_expression
from .scope import Scope

_SYMBOLS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_AFFINE = "a statement's instances are known before the program runs"
_MOST = 64
"""Clauses that one condition may become."""

Clause = tuple[Expr, ...]
"""Expressions of which one is at least 0."""


def conjunction(node: ast.expr, scope: Scope, positive: bool = True) -> tuple[Constraint, ...]:
    """The constraints that hold exactly where `node` does (or does not, if not `positive`).

    Comparisons joined by ``and`` are constraints of their own, in the user's words; where there is an ``or``, each clause of
    the conjunctive normal form is one (:func:`explorer.ir.inequality.any_of`).

    Raises
    ------
    ProgramError
        For a comparison that is not affine.
    """
    node = without_membership(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return conjunction(node.operand, scope, not positive)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) == positive:
        return tuple(c for value in node.values for c in conjunction(value, scope, positive))
    if isinstance(node, ast.Compare) and (positive or len(node.ops) == 1):
        return tuple(c for pair in _pairs(node, scope) for c in _single(*pair, scope, positive))
    if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)) and (value := _truth(node, scope)) is not None:
        return () if value is positive else (Constraint(Expr((), -1), text=f"{ast.unparse(node)} is {value}"),)
    text = scope.source.segment(node)
    return _constraints(_clauses(node, scope, positive), text if positive else f"not ({text})", scope)


def without_membership(node: ast.expr) -> ast.expr:
    """``i in (1, 2)`` as ``i == 1 or i == 2``, and ``not in`` as its opposite; any other condition as it is."""
    if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn))
            and isinstance(node.comparators[0], (ast.Tuple, ast.List, ast.Set)) and node.comparators[0].elts):
        return node
    equal = [ast.copy_location(ast.Compare(node.left, [ast.Eq()], [e]), node) for e in node.comparators[0].elts]
    either = ast.copy_location(ast.BoolOp(ast.Or(), [*equal]), node) if len(equal) > 1 else equal[0]
    return either if isinstance(node.ops[0], ast.In) else ast.copy_location(ast.UnaryOp(ast.Not(), either), node)


def _truth(node: ast.expr, scope: Scope) -> bool | None:
    value = node.value if isinstance(node, ast.Constant) else scope.number(node)
    return value if isinstance(value, bool) else None


def _clauses(node: ast.expr, scope: Scope, positive: bool) -> list[Clause]:
    """The conjunctive normal form of a condition, without clauses that always hold."""
    node = without_membership(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _clauses(node.operand, scope, not positive)
    if isinstance(node, ast.BoolOp):
        parts = [_clauses(value, scope, positive) for value in node.values]
        return [c for part in parts for c in part] if isinstance(node.op, ast.And) == positive else _either(node, parts, scope)
    if isinstance(node, ast.Compare):
        parts = [_compared(left, symbol, right, scope, positive) for left, symbol, right in _pairs(node, scope)]
        return [c for part in parts for c in part] if positive else _either(node, parts, scope)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)) and (value := _truth(node, scope)) is not None:
        return [] if value is positive else [(Expr((), -1),)]
    raise scope.refuse(node, f"{ast.unparse(node)} is not a condition", why=_AFFINE,
                       hint="a comparison of loop variables, sizes or elements")


def _either(node: ast.expr, parts: list[list[Clause]], scope: Scope) -> list[Clause]:
    """The clauses of a disjunction: one for each choice of a clause from every part."""
    total: list[Clause] = [()]
    for part in parts:
        total = [clause for first in total for second in part if (clause := _simpler((*first, *second), scope)) is not None]
        total = [c for n, c in enumerate(total) if not any(set(o) <= set(c) and (set(o) < set(c) or m < n)
                                                           for m, o in enumerate(total))]
        if len(total) > _MOST:
            raise scope.refuse(node, "this condition has too many alternatives", why=f"it would be more than {_MOST} constraints",
                               hint="`if`s inside one another, with one part of the condition each")
    return total


def _simpler(clause: Clause, scope: Scope) -> Clause | None:
    """Without alternatives that another one includes; None if one always holds, or two between them."""
    low = {e: e.interval(scope.ranges)[0] for e in clause}
    if any(n >= 0 for n in low.values()):
        return None
    if any((a + b).interval(scope.ranges)[0] >= -1 for n, a in enumerate(clause) for b in clause[n + 1 :]):
        return None  # both negative, they would add up to -2 or less
    kept: list[Expr] = list(low)
    for e in low:
        if any(other != e and (other - e).interval(scope.ranges)[0] >= 0 for other in kept):
            kept.remove(e)
    return tuple(kept)


def _compared(left: ast.expr, symbol: str, right: ast.expr, scope: Scope, positive: bool) -> list[Clause]:
    symbol = symbol if positive else _OPPOSITE[symbol]
    e = index(left, scope) - index(right, scope)
    if symbol == "==":
        return [c for part in (e, -e) if (c := _simpler((part,), scope)) is not None]
    clause = {"<": (-e - 1,), "<=": (-e,), ">": (e - 1,), ">=": (e,), "!=": (e - 1, -e - 1)}[symbol]
    made = _simpler(clause, scope)
    return [] if made is None else [made]


def _constraints(clauses: list[Clause], text: str, scope: Scope) -> tuple[Constraint, ...]:
    possible = [tuple(e for e in c if e.interval(scope.ranges)[1] >= 0) or c[:1] for c in clauses]
    return tuple(Constraint(c[0] if len(c) == 1 else any_of(c, scope.ranges), text=text) for c in possible)


def _has(node: ast.expr, word: str) -> bool:
    """Whether an expression calls a function of this name."""
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == word for n in ast.walk(node))


def bounds(node: ast.expr, scope: Scope, upper: bool) -> list[tuple[Expr, str]]:
    """The bounds that ``range`` gets on one side, with their text: several for ``min(...)`` above or ``max(...)`` below."""
    word = "min" if upper else "max"
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == word
        and node.args
        and not node.keywords
    ):
        return [bound for arg in node.args for bound in bounds(arg, scope, upper)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):  # min(i, j) + 1 is min(i + 1, j + 1)
        swap = isinstance(node.op, ast.Add) and _has(node.right, word)
        several, other = (node.right, node.left) if swap else (node.left, node.right)
        if _has(several, word):
            by, text = index(other, scope), scope.source.segment(node)
            return [(e + by if isinstance(node.op, ast.Add) else e - by, text) for e, _ in bounds(several, scope, upper)]
    if isinstance(node, ast.Call):
        side = "end" if upper else "start"
        raise scope.refuse(
            node,
            f"a call is not accepted as the {side} of a range",
            why="bounds are affine in the loops around",
            hint=f"+ - * // % by constants; the {side} of a range may be {word}(…, …)",
        )
    if reads_data(node, scope):
        raise scope.refuse(
            node,
            "a bound that depends on data is not accepted",
            why="the iterations of a loop are known before the program runs",
            hint="loop over the largest range and choose values: e if condition else 0.0",
        )
    return [(index(node, scope), scope.source.segment(node))]


def _pairs(node: ast.Compare, scope: Scope) -> list[tuple[ast.expr, str, ast.expr]]:
    """A chain of comparisons as single ones."""
    out: list[tuple[ast.expr, str, ast.expr]] = []
    sides = [node.left, *node.comparators]
    for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
        if type(op) not in _SYMBOLS:
            symbol, hint = OPERATORS[type(op)]
            raise scope.refuse(node, f"`{symbol}` is not accepted in a condition", why=_AFFINE, hint=hint)
        out.append((left, _SYMBOLS[type(op)], right))
    return out


def _single(left: ast.expr, symbol: str, right: ast.expr, scope: Scope, positive: bool) -> tuple[Constraint, ...]:
    """One comparison, in the user's words; nothing where it always holds."""
    symbol = symbol if positive else _OPPOSITE[symbol]
    text = f"{scope.source.segment(left)} {symbol} {scope.source.segment(right)}"
    difference = index(left, scope) - index(right, scope)
    if symbol == "!=":
        return _constraints(_compared(left, "!=", right, scope, True), text, scope)
    made = {"==": Constraint(difference, equality=True, text=text), "<": Constraint(-difference - 1, text=text),
            "<=": Constraint(-difference, text=text), ">": Constraint(difference - 1, text=text),
            ">=": Constraint(difference, text=text)}[symbol]
    return () if made.expr.is_constant and made.holds({}) else (made,)


def reads_data(node: ast.AST, scope: Scope) -> bool:
    """Whether an expression depends on what arrays hold."""
    if isinstance(node, ast.expr) and (made := next((n for n in ast.walk(node) if isinstance(n, ast.NamedExpr)), None)):
        raise refuse_expression(scope.source, made)
    return any(isinstance(n, ast.Name) and n.id in scope.arrays for n in ast.walk(node))
