"""Other spellings of what programs say, put into the one that the parser reads: ``x.shape[0]``, ``len(x)``, ``x[i][j]``,
``WEIGHTS[1]`` of a tuple from outside, ``continue``, and a choice by loop variables around a read that would leave its array.
"""

from __future__ import annotations

import ast
import builtins
import copy

import numpy as np

from ..ir.expr import Expr
from .parse_condition import reads_data
from .parse_index import index, is_index
from .scope import Scope


def plain(body: list[ast.stmt], scope: Scope) -> list[ast.stmt]:
    """A copy of the statements without shapes of parameters, and with all indices of an element in one pair of brackets."""
    speller = _Speller(scope)
    return [speller.visit(copy.deepcopy(node)) for node in body]


class _Speller(ast.NodeTransformer):
    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        base, arrays = node.value, self.scope.arrays
        if isinstance(node.ctx, ast.Load) and (value := self.scope.number(node)) is not None:
            return ast.copy_location(ast.Constant(value), node)
        shape = isinstance(base, ast.Attribute) and base.attr == "shape"
        if shape and isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name) and base.value.id in arrays:
            return self._extent(node, base.value.id, node.slice)
        if isinstance(base, ast.Subscript) and isinstance(base.value, ast.Name):
            parts = [p for s in (base.slice, node.slice) for p in (s.elts if isinstance(s, ast.Tuple) else [s])]
            together = ast.copy_location(ast.Tuple(parts, ast.Load()), node.slice)
            return ast.copy_location(ast.Subscript(base.value, together, node.ctx), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        argument = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if isinstance(argument, ast.Name) and argument.id in self.scope.arrays and self.scope.outside(node.func) is builtins.len:
            return self._extent(node, argument.id, ast.Constant(0))
        if argument is not None and self.scope.outside(node.func) is builtins.len and (
                isinstance(value := self.scope.outside(argument), (tuple, list, dict, str, range))
                or (isinstance(value, np.ndarray) and value.ndim)):
            return ast.copy_location(ast.Constant(len(value)), node)
        return node

    def _extent(self, node: ast.expr, name: str, axis: ast.expr) -> ast.expr:
        shape = self.scope.arrays[name].shape
        if not isinstance(axis, ast.Constant) or type(axis.value) is not int or not 0 <= axis.value < len(shape):
            raise self.scope.refuse(node, f"{ast.unparse(node)} is not an extent", why=f"{name} is {self.scope.declared[name]}",
                                    hint=f"{name}.shape[0]" if shape else "a size")
        return ast.copy_location(ast.Constant(shape[axis.value]), node)


def without_continue(node: ast.If, rest: list[ast.stmt]) -> ast.If | None:
    """``if c: …; continue`` with the statements behind it as the other branch; None where it does not end in ``continue``."""
    if node.orelse or not isinstance(node.body[-1], ast.Continue):
        return None
    body = node.body[:-1] or [ast.copy_location(ast.Pass(), node)]
    for number, other in enumerate(rest):
        if isinstance(other, ast.If) and (inner := without_continue(other, rest[number + 1:])):
            rest = [*rest[:number], inner]
            break
    return ast.copy_location(ast.If(node.test, body, rest), node)


def masked_read(node: ast.Assign | ast.AugAssign, scope: Scope) -> ast.If | None:
    """An assignment of ``… (x[i - 1] if i > 0 else 0.0) …`` as two, each under its condition, where a read may be outside.

    What would add a product with a zero is left out: ``t += (x[i - 1] if i > 0 else 0.0) * f[r]`` adds where ``i > 0``, as a
    convolution does that is written with an ``if``.
    """
    for choice in ast.walk(node.value):
        if isinstance(choice, ast.IfExp) and not reads_data(choice.test, scope) and _may_leave(choice, scope):
            first, second = ([] if _adds_zero(made) else [made] for made in
                             (_with(node, choice, part) for part in (choice.body, choice.orelse)))
            return ast.copy_location(ast.If(choice.test, first or [ast.copy_location(ast.Pass(), node)], second), node)
    return None


def _adds_zero(node: ast.stmt) -> bool:
    """Whether a statement is ``t += 0 * …`` or ``t -= …``, however many factors there are."""
    if not isinstance(node, ast.AugAssign) or not isinstance(node.op, (ast.Add, ast.Sub)):
        return False
    factors = [node.value]
    while product := next((f for f in factors if isinstance(f, ast.BinOp) and isinstance(f.op, ast.Mult)), None):
        factors.remove(product)
        factors += [product.left, product.right]
    return len(factors) > 1 and any(isinstance(f, ast.Constant) and f.value == 0 for f in factors)


def _with(node: ast.Assign | ast.AugAssign, choice: ast.IfExp, part: ast.expr) -> ast.stmt:
    class Put(ast.NodeTransformer):
        def visit_IfExp(self, found: ast.IfExp) -> ast.AST:
            return part if found is choice else self.generic_visit(found)

    made = copy.copy(node)
    made.value = Put().visit(_copied(node.value, choice))
    return made


def _copied(node: ast.expr, keep: ast.AST) -> ast.expr:
    """A copy in which one node is the same object."""
    return copy.deepcopy(node, {id(keep): keep})


def _may_leave(choice: ast.IfExp, scope: Scope) -> bool:
    """Whether a read in either branch is outside of its array somewhere in the loops around."""
    for read in (n for part in (choice.body, choice.orelse) for n in ast.walk(part) if isinstance(n, ast.Subscript)):
        array = scope.arrays.get(read.value.id) if isinstance(read.value, ast.Name) else None
        parts = read.slice.elts if isinstance(read.slice, ast.Tuple) else [read.slice]
        if array is None or len(parts) > len(array.shape):
            continue
        for part, extent in zip(parts, array.shape[len(array.shape) - len(parts):], strict=True):
            if is_index(part, scope) and not _within(index(part, scope), extent, scope):
                return True
    return False


def _within(expr: Expr, extent: int, scope: Scope) -> bool:
    low, high = expr.interval(scope.ranges)
    return low >= 0 and high < extent
