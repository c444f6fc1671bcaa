"""Reductions: which assignments are ``x = x (op) e`` with an associative and commutative operation."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..ir.dtype import DType
from ..ir.program import Access
from ..ir.scalar import REDUCTIONS
from .parse_value import ValueParser, operation_of
from .refuse import OPERATORS
from .scope import Scope

_AUGMENTED: dict[type[ast.operator], str] = {ast.Add: "sum", ast.Sub: "sum", ast.Mult: "prod", ast.BitAnd: "bitand",
                                             ast.BitOr: "bitor", ast.BitXor: "bitxor"}
_TRUTH = {"bitand": "and", "bitor": "or", "bitxor": "xor"}
"""What the operators on bits are where the target is no integer."""
_REDUCTION_OF = {r.operation: r.name for r in REDUCTIONS.values()}


@dataclass(frozen=True)
class Term:
    """One operand of an update, negated where the user subtracts it."""

    node: ast.expr
    negative: bool = False


@dataclass(frozen=True)
class Update:
    """``target (op)= terms[0] (op) terms[1] …``."""

    name: str
    terms: tuple[Term, ...]


def augmented(node: ast.AugAssign, dtype: DType, scope: Scope) -> Update:
    """The update that ``x += e`` and its like stand for on a target of this type; raises ProgramError for other operators."""
    if type(node.op) not in _AUGMENTED:
        symbol, hint = OPERATORS[type(node.op)]
        raise scope.refuse(node, f"`{symbol}=` is not accepted", why="updates are += -= *= /= //= %= **= &= |= and ^=", hint=hint)
    return Update(_named(_AUGMENTED[type(node.op)], dtype), (Term(node.value, isinstance(node.op, ast.Sub)),))


def recognise(target: Access, dtype: DType, value: ast.expr, scope: Scope) -> Update | None:
    """The update that ``target = value`` is, if `target` stands exactly once in `value`, as an operand of one reduction."""
    found = _operands(value, scope)
    if found is None:
        return None
    name, terms = found
    own = [t for t in terms if _is_target(t, target, scope)]
    rest = tuple(t for t in terms if t not in own)
    if len(own) != 1 or own[0].negative or not rest or any(_mentions(t.node, target, scope) for t in rest):
        return None
    return Update(_named(name, dtype), rest)


def _named(name: str, dtype: DType) -> str:
    """The reduction on a target of this type: ``&=`` combines the bits of an integer, and truth values."""
    return name if dtype.kind == "int" else _TRUTH.get(name, name)


def mentions(target: Access, update: Update, scope: Scope) -> bool:
    """Whether the operands read the target's own element (then the order is not free)."""
    return any(_mentions(t.node, target, scope) for t in update.terms)


def _operands(node: ast.expr, scope: Scope) -> tuple[str, list[Term]] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return "sum", _sum(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)):
        return _AUGMENTED[type(node.op)], _chain(node, type(node.op))
    if isinstance(node, ast.BoolOp):
        return ("and" if isinstance(node.op, ast.And) else "or"), [Term(v) for v in node.values]
    if isinstance(node, ast.Call) and operation_of(node, scope) in ("max", "min") and not node.keywords:
        return _REDUCTION_OF[operation_of(node, scope) or ""], [Term(a) for a in node.args]
    return None


def _sum(node: ast.expr, negative: bool = False) -> list[Term]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _sum(node.left, negative) + _sum(node.right, negative != isinstance(node.op, ast.Sub))
    return [Term(node, negative)]


def _chain(node: ast.expr, op: type[ast.operator]) -> list[Term]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, op):
        return _chain(node.left, op) + _chain(node.right, op)
    return [Term(node)]


def _is_target(term: Term, target: Access, scope: Scope) -> bool:
    if not isinstance(term.node, (ast.Name, ast.Subscript)):
        return False
    base = term.node.value if isinstance(term.node, ast.Subscript) else term.node
    if not isinstance(base, ast.Name) or base.id not in scope.arrays or scope.arrays[base.id].name != target.array:
        return False
    read = ValueParser(scope).access(term.node)
    return read.index == target.index


def _mentions(node: ast.expr, target: Access, scope: Scope) -> bool:
    return any(
        _is_target(Term(n), target, scope)
        for n in ast.walk(node)
        if isinstance(n, (ast.Name, ast.Subscript)) and not _is_base(n, node)
    )


def _is_base(name: ast.AST, root: ast.expr) -> bool:
    """Whether `name` is the array part of an access, which is judged with its index."""
    return any(isinstance(n, ast.Subscript) and n.value is name for n in ast.walk(root))
