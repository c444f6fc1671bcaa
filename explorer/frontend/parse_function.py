"""Inlining of function calls: the function's body as an expression of the arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from ..errors import ProgramError
from ..ir.dtype import DType
from ..ir.expr import Expr, Ranges, const, quotient, remainder
from ..ir.scalar import Call, IndexValue, Literal, Scalar, walk
from .function import Function, body_of, locals_of
from .parse_value import ValueParser
from .scope import Scope

_MOST = 20_000
"""Operations of one value, its calls written out."""


def inlined(node: ast.Call, function: Function, caller: ValueParser) -> Scalar:
    """The value of a call.

    Raises
    ------
    ProgramError
        For wrong arguments, at the call; for what the body says, at its place in the body, and with the place of the call.
    """
    scope = caller.scope
    words = ast.unparse(node.func)
    again = any(words == function.name == f.name and f.text.file == function.text.file for f in caller.inside)
    if function in caller.inside or again:
        raise scope.refuse(node, f"{function.name} calls itself", why="a call is written out, which would never end",
                           hint="a loop in the program")
    values = _arguments(node, function, caller)
    own = replace(scope, source=function.text, captured=function.captured, assigned=locals_of(function), loops=(), arrays={},
                  masks=(), conditions=())
    body = _Body(own, caller, function)
    try:
        for name, default in function.defaults.items():
            if name not in values:
                values[name] = body.parse(default)
        made = body.run(body_of(function), values)
    except ProgramError as error:
        called = scope.source.place(node)
        place = f"{error.where}\n  called at {called[0]}" if error.where else called[0]
        raise ProgramError(error.what, where=place, why=error.why, hint=error.hint,
                           **{**error.details, "line": called[1], "column": called[2]}) from None
    if sum(1 for _ in walk(made)) > _MOST:
        raise scope.refuse(node, f"the call of {function.name} is too large when written out",
                           why=f"it would have more than {_MOST:,} operations",
                           hint="t = ex.local(ex.f32) for the argument, which is then computed once")
    return made


def index_of(node: ast.Call, function: Function, scope: Scope) -> Expr | None:
    """The index that a call stands for, where all that it computes is one."""
    value = inlined(node, function, ValueParser(scope))
    if isinstance(value, Literal) and type(value.value) is int:
        return const(value.value)
    return value.expr if isinstance(value, IndexValue) else None


def _arguments(node: ast.Call, function: Function, caller: ValueParser) -> dict[str, Scalar]:
    known = function.parameters
    shape = f"{function.name}({', '.join(known)})"
    if len(node.args) > len(known):
        raise caller.scope.refuse(node, f"{function.name} takes {len(known)} arguments, not {len(node.args)}", hint=shape,
                                  why=f"it is defined at {function.text.title}:{function.text.tree.lineno}")
    given: dict[str, ast.expr] = dict(zip(known, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg not in known or keyword.arg in given:
            what = f"has no argument {keyword.arg}" if keyword.arg not in known else f"got {keyword.arg} twice"
            raise caller.scope.refuse(node, f"{function.name} {what}", hint=shape,
                                      why=f"it is defined at {function.text.title}:{function.text.tree.lineno}")
        given[str(keyword.arg)] = keyword.value
    if missing := [name for name in known if name not in given and name not in function.defaults]:
        raise caller.scope.refuse(node, f"{function.name} needs {', '.join(missing)}", hint=shape,
                                  why=f"it is defined at {function.text.title}:{function.text.tree.lineno}")
    return {name: caller.parse(value) for name, value in given.items()}


class _Body(ValueParser):
    """Parses the values of a function: its names stand for values of the caller."""

    def __init__(self, scope: Scope, caller: ValueParser, function: Function) -> None:
        super().__init__(scope)
        self.caller, self.reads = caller, caller.reads
        self.inside = (*caller.inside, function)
        self.values: Mapping[str, Scalar] = {}

    @property
    def types(self) -> list[DType]:
        return self.caller.types

    def run(self, statements: list[ast.stmt], values: Mapping[str, Scalar]) -> Scalar:
        """What the statements return, where the names have these values."""
        values = dict(values)
        for number, statement in enumerate(statements):
            self.values = values
            if isinstance(statement, ast.Return):
                assert statement.value is not None
                return self.parse(statement.value)
            if isinstance(statement, ast.If):
                rest, test = statements[number + 1:], self.truth(statement.test)
                yes, no = self.run([*statement.body, *rest], values), self.run([*statement.orelse, *rest], values)
                if isinstance(test, Literal):
                    return yes if test.value else no
                return Call("where", (test, yes, no))
            if isinstance(statement, ast.AugAssign):
                assert isinstance(statement.target, ast.Name)
                load = ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement.target)
                changed = ast.copy_location(ast.BinOp(load, statement.op, statement.value), statement)
                values[statement.target.id] = self.parse(changed)
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                assert isinstance(target, ast.Name)
                values[target.id] = self.parse(statement.value)
        raise AssertionError("a function that was checked returns on every path")

    def parse(self, node: ast.expr) -> Scalar:
        if isinstance(node, ast.Name) and node.id in self.values:
            return self.values[node.id]
        if isinstance(node, ast.BinOp) and (made := self._index(node)) is not None:
            return self._index_value(made, self.caller.ranges)
        return super().parse(node)

    @property
    def ranges(self) -> Ranges:
        return self.caller.ranges

    def _index(self, node: ast.expr) -> Expr | None:
        """Integer arithmetic on values that are indices of the program, as an index."""
        if isinstance(node, ast.BinOp):
            left, right = self._index(node.left), self._index(node.right)
            if left is None or right is None:
                return None
            if isinstance(node.op, (ast.Add, ast.Sub)):
                return left + right if isinstance(node.op, ast.Add) else left - right
            if isinstance(node.op, ast.Mult) and (left.is_constant or right.is_constant):
                return right * left.const if left.is_constant else left * right.const
            if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right.is_constant and right.const > 0:
                return (quotient if isinstance(node.op, ast.FloorDiv) else remainder)(left, right.const, self.caller.ranges)
            return None
        if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
            value = self.parse(node)
            if isinstance(value, IndexValue):
                return value.expr
            if isinstance(value, Literal) and type(value.value) is int:
                return const(value.value)
        return None
