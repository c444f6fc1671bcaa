"""Conditions and loop bounds: conjunctions of affine comparisons, as named constraints."""

from __future__ import annotations

import ast

from ..ir.expr import Expr
from ..ir.program import Constraint
from .parse_index import index, is_index
from .refuse import OPERATORS
from .scope import Scope

_SYMBOLS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_CONVEX = "a statement's instances are one set of affine inequalities"
_DATA_HINT = "a value that chooses: y[i] = a if x[i] > 0 else b"


def conjunction(node: ast.expr, scope: Scope, positive: bool = True) -> tuple[Constraint, ...]:
    """The constraints that hold exactly where `node` does (or does not, if not `positive`).

    Raises
    ------
    ProgramError
        For a condition on data, a disjunction, or a comparison that is not affine.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return conjunction(node.operand, scope, not positive)
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And) != positive:
            raise _disjunction(node, scope, positive)
        return tuple(c for value in node.values for c in conjunction(value, scope, positive))
    if isinstance(node, ast.Compare):
        return _comparison(node, scope, positive)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
        value = node.value if isinstance(node, ast.Constant) else scope.number(node)
        if isinstance(value, bool):
            return () if value is positive else (Constraint(Expr((), -1), text=f"{ast.unparse(node)} is {value}"),)
    if _reads(node, scope):
        raise scope.refuse(
            node, "a condition on data is not accepted", why=_CONVEX + ", known before the program runs", hint=_DATA_HINT
        )
    raise scope.refuse(node, f"{ast.unparse(node)} is not a condition", why=_CONVEX, hint="comparisons joined by `and`")


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
    if isinstance(node, ast.Call):
        side = "end" if upper else "start"
        raise scope.refuse(
            node,
            f"a call is not accepted as the {side} of a range",
            why="bounds are affine in the loops around",
            hint=f"+ - * // % by constants; the {side} of a range may be {word}(…, …)",
        )
    if _reads(node, scope):
        raise scope.refuse(
            node,
            "a bound that depends on data is not accepted",
            why=_CONVEX + ", known before the program runs",
            hint="loop over the largest range and choose values: e if condition else 0.0",
        )
    return [(index(node, scope), scope.source.segment(node))]


def _comparison(node: ast.Compare, scope: Scope, positive: bool) -> tuple[Constraint, ...]:
    sides = [node.left, *node.comparators]
    if len(node.ops) > 1 and not positive:
        raise _disjunction(node, scope, positive)
    for side in sides:
        if not is_index(side, scope) and _reads(side, scope):
            raise scope.refuse(
                node, "a condition on data is not accepted", why=_CONVEX + ", known before the program runs", hint=_DATA_HINT
            )
    out: list[Constraint] = []
    for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
        if type(op) not in _SYMBOLS:
            symbol, hint = OPERATORS[type(op)]
            raise scope.refuse(node, f"`{symbol}` is not accepted in a condition", why=_CONVEX, hint=hint)
        symbol = _SYMBOLS[type(op)] if positive else _OPPOSITE[_SYMBOLS[type(op)]]
        text = f"{scope.source.segment(left)} {symbol} {scope.source.segment(right)}"
        made = _constraint(node, index(left, scope) - index(right, scope), symbol, text, scope)
        out += [made] if made is not None and not _always(made) else []
    return tuple(out)


def _constraint(node: ast.expr, difference: Expr, symbol: str, text: str, scope: Scope) -> Constraint | None:
    """``difference symbol 0`` as a constraint; None if it holds everywhere."""
    if symbol == "==":
        return Constraint(difference, equality=True, text=text)
    if symbol in ("<", "<="):
        return Constraint(-difference - (symbol == "<"), text=text)
    if symbol in (">", ">="):
        return Constraint(difference - (symbol == ">"), text=text)
    low, high = difference.interval(scope.ranges)
    if low >= 0:
        return Constraint(difference - 1, text=text)
    if high <= 0:
        return Constraint(-difference - 1, text=text)
    raise scope.refuse(
        node,
        f"{text} is not a convex condition",
        why=f"it leaves instances on both sides; {_CONVEX}",
        hint="two `if`s, one with < and one with >",
    )


def _always(constraint: Constraint) -> bool:
    return constraint.expr.is_constant and constraint.holds({})


def _disjunction(node: ast.expr, scope: Scope, positive: bool) -> Exception:
    if positive:
        return scope.refuse(node, "`or` in a condition is not accepted", why=_CONVEX, hint="one `if` for each alternative")
    return scope.refuse(
        node,
        "the opposite of this condition cannot be expressed",
        why=f"it is an `or`; {_CONVEX}",
        hint="nested `if`s with one comparison each, or write the else part first, without a condition",
    )


def _reads(node: ast.AST, scope: Scope) -> bool:
    return any(isinstance(n, ast.Name) and n.id in scope.arrays for n in ast.walk(node))
