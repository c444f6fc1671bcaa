"""Indices and bounds: the user's integer arithmetic as quasi-affine expressions of the loop dimensions."""

from __future__ import annotations

import ast

from ..errors import ProgramError
from ..ir.expr import Expr, const, quotient, remainder
from .function import Function
from .refuse import EXPRESSIONS, refuse_expression
from .scope import Scope

_AFFINE = "an index is a sum of loop variables times constants, with // and % by constants, so that dependences are exact"


def is_index(node: ast.expr, scope: Scope) -> bool:
    """Whether `node` is an index expression as accepted (its constants are not judged here)."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Name):
        return scope.variable(node.id) is not None or _integer(node, scope) is not None
    if isinstance(node, ast.Attribute):
        return _integer(node, scope) is not None
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.USub, ast.UAdd)) and is_index(node.operand, scope)
    if isinstance(node, ast.Call):
        return _called(node, scope) is not None
    if isinstance(node, ast.BinOp) and (made := _bits(node)) is not None:
        return is_index(made, scope)
    if not isinstance(node, ast.BinOp) or not (is_index(node.left, scope) and is_index(node.right, scope)):
        return False
    if isinstance(node.op, (ast.Add, ast.Sub)):
        return True
    if isinstance(node.op, ast.Mult):
        return not (_varies(node.left, scope) and _varies(node.right, scope))
    return isinstance(node.op, (ast.FloorDiv, ast.Mod)) and not _varies(node.right, scope)


def index(node: ast.expr, scope: Scope) -> Expr:
    """Parse an index or a loop bound.

    Raises
    ------
    ProgramError
        For anything that is not quasi-affine in the loop variables around it.
    """
    if isinstance(node, ast.Constant):
        if type(node.value) is int:
            return const(node.value)
        raise scope.refuse(node, f"{ast.unparse(node)} is not an integer", why=_AFFINE, hint="an integer")
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _name(node, scope)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = index(node.operand, scope)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        made = _bits(node)
        return _arithmetic(node, scope) if made is None else index(made, scope)
    if isinstance(node, (ast.Compare, ast.BoolOp)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        raise scope.refuse(node, "a comparison is not accepted in an index", why=_AFFINE, hint="an `if` around the statement")
    if isinstance(node, ast.IfExp):
        raise scope.refuse(
            node, "a conditional is not accepted in an index", why=_AFFINE, hint="an `if` around each of two statements"
        )
    if isinstance(node, ast.Subscript):
        raise scope.refuse(
            node,
            "a value read from an array is not accepted here",
            why="it depends on data; " + _AFFINE,
            hint="loop variables and sizes; only a read x[i, target[i]] may use an element as a whole index",
        )
    if isinstance(node, ast.Call):
        if (made := _called(node, scope)) is not None:
            return made
        raise scope.refuse(node, "a call is not accepted in an index", why=_AFFINE, hint="+ - * // % by constants")
    if type(node) in EXPRESSIONS:
        raise refuse_expression(scope.source, node)
    raise scope.refuse(node, f"{ast.unparse(node)} is not an index", why=_AFFINE, hint="loop variables, sizes and integers")


def _bits(node: ast.BinOp) -> ast.BinOp | None:
    """``i << 3``, ``i >> 3`` and ``i & 7`` as ``i * 8``, ``i // 8`` and ``i % 8``, which they are for all integers."""
    number = node.right.value if isinstance(node.right, ast.Constant) else None
    if type(number) is not int or number < 0:
        return None
    if isinstance(node.op, (ast.LShift, ast.RShift)) and number < 63:
        op, by = (ast.Mult() if isinstance(node.op, ast.LShift) else ast.FloorDiv()), 1 << number
    elif isinstance(node.op, ast.BitAnd) and number & (number + 1) == 0:
        op, by = ast.Mod(), number + 1
    else:
        return None
    return ast.copy_location(ast.BinOp(node.left, op, ast.copy_location(ast.Constant(by), node.right)), node)


def _called(node: ast.Call, scope: Scope) -> Expr | None:
    """The index that a call of a function stands for, if it does."""
    function = scope.outside(node.func)
    if not isinstance(function, Function) or not all(is_index(a, scope) for a in (*node.args, *(k.value for k in node.keywords))):
        return None
    from .parse_function import index_of

    return index_of(node, function, scope)


def constant(node: ast.expr, scope: Scope, what: str) -> int:
    """An index expression without loop variables."""
    expr = index(node, scope)
    if not expr.is_constant:
        raise scope.refuse(
            node,
            f"{what} must not depend on a loop variable",
            why="it has to be one number for the whole program",
            hint="sizes and integers",
        )
    return expr.const


def _name(node: ast.Name | ast.Attribute, scope: Scope) -> Expr:
    if isinstance(node, ast.Name):
        if (value := scope.variable(node.id)) is not None:
            return value
        if node.id in scope.arrays:
            raise scope.refuse(
                node,
                f"{node.id} is an array, not an index",
                why="it depends on data; " + _AFFINE,
                hint="loop variables and sizes; only a read x[i, target[i]] may use an element as a whole index",
            )
    number = scope.number(node)
    if number is None and isinstance(node, ast.Name):
        raise scope.unknown(node)
    if type(number) is not int:
        raise scope.refuse(node, f"{ast.unparse(node)} is not an integer", why=_AFFINE, hint="loop variables, sizes and integers")
    return const(number)


def _arithmetic(node: ast.BinOp, scope: Scope) -> Expr:
    left, right = index(node.left, scope), index(node.right, scope)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return _product(node, left, right, scope)
    if not isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        hint = "//" if isinstance(node.op, ast.Div) else "+ - * // % by constants"
        raise scope.refuse(node, f"{ast.unparse(node)} is not affine", why=_AFFINE, hint=hint)
    return _division(node, left, right, scope)


def _product(node: ast.BinOp, left: Expr, right: Expr, scope: Scope) -> Expr:
    if left.is_constant:
        return right * left.const
    if right.is_constant:
        return left * right.const
    raise scope.refuse(
        node,
        f"{ast.unparse(node)} is not affine",
        why=f"it multiplies loop variables; {_AFFINE}",
        hint="products with constants only; an array can have one dimension per loop variable",
    )


def _division(node: ast.BinOp, left: Expr, right: Expr, scope: Scope) -> Expr:
    symbol = "//" if isinstance(node.op, ast.FloorDiv) else "%"
    if _varies(node.right, scope) or not right.is_constant:
        raise scope.refuse(
            node,
            f"{ast.unparse(node)} is not affine",
            why=f"{symbol} divides by a loop variable; {_AFFINE}",
            hint=f"{symbol} by an integer or a size",
        )
    by = right.const
    never = any(around.loop.extent == 0 for around in scope.loops)
    if by <= 0 and (never or (scope.trial and not isinstance(node.right, (ast.Constant, ast.UnaryOp)))):
        by = 1
    if by <= 0:
        raise scope.refuse(
            node,
            f"{ast.unparse(node)} divides by {by}",
            why="the divisor of an index must be a positive integer",
            hint=f"{symbol} by a positive integer or size",
        )
    divide = quotient if isinstance(node.op, ast.FloorDiv) else remainder
    return divide(left, by, scope.ranges)


def _integer(node: ast.Name | ast.Attribute, scope: Scope) -> int | None:
    if isinstance(node, ast.Name) and (node.id in scope.arrays or node.id in scope.assigned):
        return None
    try:
        number = scope.number(node)
    except ProgramError:
        return 1  # a size that divides by zero: an index, whose parse says so
    return number if type(number) is int else None


def _varies(node: ast.expr, scope: Scope) -> bool:
    values = [scope.variable(n.id) for n in ast.walk(node) if isinstance(n, ast.Name)]
    return any(value is not None and not value.is_constant for value in values)
