"""From the syntax tree of a function to a :class:`~explorer.ir.program.Program` with concrete sizes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import ProgramError
from ..ir.expr import var
from ..ir.program import Array, Program, Statement
from ..ir.tree import Leaf, Node
from .parse_arg import arg_of, expanded
from .parse_condition import conjunction
from .parse_index import constant
from .parse_loop import range_of, surrounding
from .parse_statement import assignment
from .refuse import refuse_expression, refuse_statement
from .roles import check_bounds, with_roles
from .scope import Scope, bound_names, check_name
from .signature import Parameter
from .source import Source
from .types import Element, SizeValue, local


def parse(
    source: Source, parameters: tuple[Parameter, ...], captured: Mapping[str, Any], sizes: Mapping[str, int], trial: bool = False
) -> Program:
    """The program that `source` says, at `sizes`.

    Parameters
    ----------
    source : Source
    parameters : tuple of Parameter
        The signature.
    captured : mapping of str to object
        What the function's outside names mean.
    sizes : mapping of str to int
    trial : bool
        True to check the form alone: nothing that depends on the values of `sizes` is refused.

    Raises
    ------
    ProgramError
        At the line and column of the first construct that is not accepted.
    """
    scope = Scope(source, captured, bound_names(source.tree), sizes, trial)
    arrays = {p.name: Array(p.name, p.dtype, p.extents(scope), "in") for p in parameters}
    for parameter in parameters:
        if isinstance(captured.get(parameter.name), SizeValue):
            raise scope.refuse(
                parameter.node,
                f"{parameter.name} is already a size",
                why="the name would mean two things",
                hint="another name for the parameter",
            )
        check_name(parameter.node, parameter.name, scope)
    parser = _Parser(source, scope, arrays)
    body = source.tree.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
        body = body[1:]
    nodes = parser.block(body, replace(scope, arrays=arrays, declared={p.name: p.declared for p in parameters}))
    program = Program(
        source.tree.name,
        (*arrays.values(), *parser.temporaries),
        tuple(parser.statements),
        nodes,
        tuple(sizes.items()),
        source.text,
        source.title,
        source.first_line,
    )
    program = with_roles(program, scope, {p.name: p.node for p in parameters} | parser.declared, parser.nodes)
    check_bounds(program, scope, parser.nodes)
    return program


class _Parser:
    """Collects statements and temporaries in program order."""

    def __init__(self, source: Source, scope: Scope, arrays: Mapping[str, Array]) -> None:
        self.source = source
        self.statements: list[Statement] = []
        self.nodes: dict[str, ast.stmt] = {}
        self.temporaries: list[Array] = []
        self.declared: dict[str, ast.AST] = {}
        self.taken = set(arrays)
        self.words = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)} | set(scope.assigned)

    def block(self, nodes: list[ast.stmt], scope: Scope) -> tuple[Node, ...]:
        """The tree of a list of statements; a temporary lives to the end of the list that declares it."""
        out: list[Node] = []
        for node in nodes:
            if isinstance(node, ast.Assign) and self._is_local(node.value, scope):
                scope = self._declare(node, scope)
            elif isinstance(node, ast.Assign) and arg_of(node.value, scope):
                out += self.block(*expanded(node, scope, self._free))
            elif isinstance(node, ast.For):
                out += self._loop(node, scope)
            elif isinstance(node, ast.If):
                out += self.block(node.body, scope.under(conjunction(node.test, scope)))
                if node.orelse:
                    out += self.block(node.orelse, scope.under(conjunction(node.test, scope, positive=False)))
            elif isinstance(node, (ast.Assign, ast.AugAssign)):
                out.append(self._assignment(node, scope))
            elif isinstance(node, ast.Expr):
                raise self._expression(node, scope)
            elif not isinstance(node, ast.Pass):
                raise refuse_statement(self.source, node)
        return tuple(out)

    def _loop(self, node: ast.For, scope: Scope) -> list[Node]:
        call = range_of(node, scope)
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        self._fresh(node.target, name, "a loop variable", scope)
        around = surrounding(call, name, self._unique(name), scope)
        body = self.block(node.body, scope.inside(around))
        return [replace(around.loop, body=body)] if body else []

    def _unique(self, name: str) -> str:
        """`name`, or ``name_2``, ``name_3``, …: unique in the program and not a word of the user's."""
        candidate, number = name, 1
        while candidate in self.taken or (number > 1 and candidate in self.words):
            number += 1
            candidate = f"{name}_{number}"
        self.taken.add(candidate)
        return candidate

    def _free(self, name: str) -> str:
        """`name`, or with a number: no word of the user's and no array of the program's."""
        candidate, number = name, 1
        while candidate in self.taken or candidate in self.words:
            number += 1
            candidate = f"{name}_{number}"
        return candidate

    def _fresh(self, node: ast.AST, name: str, what: str, scope: Scope) -> None:
        if scope.variable(name) is not None:
            raise scope.refuse(
                node,
                f"{name} is already the variable of a loop around",
                why="inside, the name would mean two things",
                hint=f"another name for {what}",
            )
        if name in scope.arrays:
            raise scope.refuse(
                node, f"{name} is already an array", why="the name would mean two things", hint=f"another name for {what}"
            )
        if isinstance(scope.captured.get(name), SizeValue):
            raise scope.refuse(
                node, f"{name} is already a size", why="the name would mean two things", hint=f"another name for {what}"
            )
        check_name(node, name, scope)

    def _is_local(self, node: ast.expr, scope: Scope) -> bool:
        return isinstance(node, ast.Call) and scope.outside(node.func) is local

    def _declare(self, node: ast.Assign, scope: Scope) -> Scope:
        """``t = ex.local(dtype, *shape)``: one dimension per loop around, then the user's."""
        call, target = node.value, node.targets[0]
        assert isinstance(call, ast.Call)
        if len(node.targets) > 1 or not isinstance(target, ast.Name):
            raise scope.refuse(target, "a temporary has one plain name", hint="t = ex.local(ex.f32)")
        self._fresh(target, target.id, "the temporary", scope)
        dtype = scope.outside(call.args[0]) if call.args else None
        if not (isinstance(dtype, type) and issubclass(dtype, Element)) or dtype is Element or call.keywords:
            raise scope.refuse(
                call,
                "a temporary needs an element type",
                why="its first argument is one of f16 bf16 f32 f64 i8 i32 i64 bool_",
                hint="t = ex.local(ex.f32) or ex.local(ex.f32, N)",
            )
        given = tuple(self._extent(a, scope) for a in call.args[1:])
        shape = (*(s.loop.extent for s in scope.loops), *given)
        array = Array(self._unique(target.id), dtype.dtype, shape, "temporary", len(given))
        self.temporaries.append(array)
        self.declared[array.name] = target
        words = f"declared as {self.source.segment(call)}"
        return replace(scope, arrays={**scope.arrays, target.id: array}, declared={**scope.declared, target.id: words})

    def _extent(self, node: ast.expr, scope: Scope) -> int:
        value = constant(node, scope, "an extent")
        if value < 0 and not scope.trial:
            raise scope.refuse(
                node, f"the extent {ast.unparse(node)} is {value}", why="an extent is at least 0", hint="larger sizes"
            )
        return max(value, 0)

    def _assignment(self, node: ast.Assign | ast.AugAssign, scope: Scope) -> Leaf:
        statement = assignment(node, f"S{len(self.statements)}", scope)
        self.statements.append(statement)
        self.nodes[statement.name] = node
        return Leaf(statement.name, statement.name, tuple((d, var(d)) for d in statement.dims))

    def _expression(self, node: ast.Expr, scope: Scope) -> ProgramError:
        if isinstance(node.value, ast.Call) and not self._is_local(node.value, scope):
            words = ast.unparse(node.value.func)
            return scope.refuse(
                node,
                f"a call of {words} does nothing here",
                why="the function is parsed, never executed",
                hint="an assignment: y[i] = …",
            )
        if isinstance(node.value, (ast.Yield, ast.YieldFrom, ast.Await, ast.ListComp, ast.NamedExpr)):
            return refuse_expression(self.source, node.value)
        return scope.refuse(
            node, "an expression that is not stored does nothing", why="statements write array elements", hint="y[i] = …"
        )
