"""From the syntax tree of a function to a :class:`~explorer.ir.program.Program` with concrete sizes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import ProgramError
from ..ir.dtype import DType
from ..ir.expr import var
from ..ir.program import Array, Program, Statement
from ..ir.tree import Leaf, Node
from .elements import ELEMENTS, nearest_element
from .function import functions_of
from .parse_arg import WORDS, arg_of, expanded
from .parse_branch import branch, changes, chosen, kept_test, settled
from .parse_condition import conjunction
from .parse_index import constant, index, is_index
from .parse_loop import range_of, surrounding
from .parse_names import PLACEHOLDER, Key, Retype, is_new, key_of, needed_behind, stored
from .parse_spelling import masked_read, plain, without_continue
from .parse_statement import assignment
from .refuse import refuse_expression, refuse_statement
from .roles import check_bounds, with_roles
from .scope import Scope, bound_names, check_length, check_name
from .signature import Parameter
from .size import SizeValue
from .source import Source
from .types import Element, local


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
    check_length(source.tree, source.tree.name, scope)
    for parameter in parameters:
        if isinstance(captured.get(parameter.name), SizeValue):
            raise scope.refuse(
                parameter.node,
                f"{parameter.name} is already a size",
                why="the name would mean two things",
                hint="another name for the parameter",
            )
        check_name(parameter.node, parameter.name, scope)
    body = source.tree.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
        body = body[1:]
    scope = replace(scope, arrays=arrays, declared={p.name: p.declared for p in parameters})
    parser, nodes = _settled(source, scope, plain(body, scope))
    program = Program(
        source.tree.name,
        (*arrays.values(), *parser.temporaries),
        tuple(parser.statements),
        nodes,
        tuple(sizes.items()),
        source.text,
        source.title,
        source.first_line,
        "\n\n\n".join(f.text.text for f in functions_of(captured)),
    )
    program = with_roles(program, scope, {p.name: p.node for p in parameters} | parser.declared, parser.nodes,
                         [p.name for p in parameters if p.inout])
    check_bounds(program, scope, parser.nodes)
    return program


def _settled(source: Source, scope: Scope, body: list[ast.stmt]) -> tuple[_Parser, tuple[Node, ...]]:
    """The parsed body, once all names have the types that hold what is assigned to them: each is widened a few times at most."""
    types: dict[Key, DType] = {}
    while True:
        parser = _Parser(source, scope, types)
        try:
            return parser, parser.block(body, scope)
        except Retype as wanted:
            types[wanted.key] = wanted.dtype


class _Parser:
    """Collects statements and temporaries in program order."""

    def __init__(self, source: Source, scope: Scope, types: Mapping[Key, DType]) -> None:
        self.source, self.types = source, types
        self.statements: list[Statement] = []
        self.nodes: dict[str, ast.stmt] = {}
        self.temporaries: list[Array] = []
        self.declared: dict[str, ast.AST] = {}
        self.taken = set(scope.arrays)
        self.words = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)} | set(scope.assigned)

    def block(self, nodes: list[ast.stmt], scope: Scope, loop: bool = False) -> tuple[Node, ...]:
        """The tree of a list of statements; a temporary lives to the end of the list that declares it.

        `loop` says that it is the whole body of a loop: there, ``continue`` leaves out the rest of the list.
        """
        out: list[Node] = []
        for number, node in enumerate(nodes):
            rest = nodes[number + 1 :]
            if loop and isinstance(node, ast.If) and (choice := without_continue(node, rest)):
                return (*out, *self._branch(choice, scope))
            if isinstance(node, ast.If):
                for name in needed_behind(node, rest, scope):
                    scope = self._named(name, scope)
            elif isinstance(node, ast.AnnAssign) and (declared := self._annotated(node, scope)):
                scope, node = self._declare(declared[0], scope), declared[1]
            elif isinstance(node, ast.Assign) and (target := self._new(node, scope)):
                if is_index(node.value, scope) and target.id not in {n.id for n in stored(rest)}:
                    self._fresh(target, target.id, "the index", scope)
                    scope = replace(scope, aliases={**scope.aliases, target.id: index(node.value, scope)})
                    continue
                scope = self._named(target, scope)
            if isinstance(node, ast.Assign) and self._is_local(node.value, scope):
                scope = self._declare(node, scope)
            elif isinstance(node, ast.Assign) and arg_of(node.value, scope):
                out += self.block(*expanded(node, scope, self._free))
            elif isinstance(node, ast.For):
                out += self._loop(node, scope)
            elif isinstance(node, ast.If):
                out += self._branch(node, scope)
            elif isinstance(node, (ast.Assign, ast.AugAssign)):
                choice = masked_read(node, scope)
                out += self._branch(choice, scope) if choice else [self._assignment(node, scope)]
            elif isinstance(node, ast.Expr):
                raise self._expression(node, scope)
            elif not isinstance(node, ast.Pass):
                raise refuse_statement(self.source, node)
        return tuple(out)

    def _branch(self, node: ast.If, scope: Scope) -> list[Node]:
        """Both branches of an ``if``, under conditions on instances, or as statements that choose."""
        found = branch(node, scope)
        if not found.data:
            out = [*self.block(found.body, scope.under(conjunction(found.test, scope)))]
            if found.orelse:
                out += self.block(found.orelse, scope.under(conjunction(found.test, scope, positive=False)))
            return out
        out, test = [], found.test
        body, orelse = settled(found.body, scope), settled(found.orelse, scope)
        local = any(isinstance(s, ast.Assign) and self._is_local(s.value, scope) for s in (*body, *orelse))
        items = [(s, True) for s in body] + [(s, False) for s in orelse] if local else list(chosen(test, body, orelse))
        alone = len(items) == 1 and isinstance(items[0][0], (ast.Assign, ast.AugAssign))
        if not alone and changes([*body, *orelse], test):
            made, test = kept_test(node, test, self._free("test"))
            scope, first = self._declare(made[0], replace(scope, captured={**scope.captured, **WORDS})), made[1]
            out.append(self._assignment(first, scope))
            items = items if local else list(chosen(test, body, orelse))
        if local:
            return [*out, *self.block(body, scope.masked(test, True)), *self.block(orelse, scope.masked(test, False))]
        for statement, value in items:
            wording = ast.unparse(statement) if value is None else ""
            out += self.block([statement], replace(scope, wording=wording) if value is None else scope.masked(test, value))
        return out

    def _loop(self, node: ast.For, scope: Scope) -> list[Node]:
        call = range_of(node, scope)
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        self._fresh(node.target, name, "a loop variable", scope)
        around = surrounding(call, name, self._unique(name), scope)
        body = self.block(node.body, scope.inside(around), loop=True)
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

    def _next(self) -> str:
        """The next statement's name: ``S0``, ``S1``, … without those that are the user's own words or arrays."""
        number, used = len(self.statements), self.taken | self.words | {s.name for s in self.statements}
        while f"S{number}" in used:
            number += 1
        return f"S{number}"

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
            near = f"ex.{nearest_element(ast.unparse(call.args[0])) or 'f32'}" if call.args else "ex.f32"
            raise scope.refuse(
                call,
                "a temporary needs an element type",
                why=f"its first argument is one of {ELEMENTS}",
                hint=f"{target.id} = ex.local({near}) or ex.local({near}, N)",
            )
        parts = call.args[1:]
        if len(parts) == 1 and isinstance(parts[0], (ast.Tuple, ast.List)):  # a shape as NumPy takes it
            parts = parts[0].elts
        given = tuple(self._extent(a, scope) for a in parts)
        shape = (*(s.loop.extent for s in scope.loops), *given)
        array = Array(self._unique(target.id), dtype.dtype, shape, "temporary", len(given))
        self.temporaries.append(array)
        self.declared[array.name] = target
        words = f"declared as {self.source.segment(call)}"
        return replace(scope, arrays={**scope.arrays, target.id: array}, declared={**scope.declared, target.id: words},
                       depths={**scope.depths, target.id: len(scope.masks)})

    def _new(self, node: ast.Assign, scope: Scope) -> ast.Name | None:
        """The name that an assignment introduces, if it does."""
        target = node.targets[0]
        plain = len(node.targets) == 1 and isinstance(target, ast.Name) and not self._is_local(node.value, scope)
        return target if plain and isinstance(target, ast.Name) and is_new(target.id, scope) else None

    def _named(self, target: ast.Name, scope: Scope) -> Scope:
        """The scope with an undeclared temporary: a scalar, of the type that holds all that is assigned to it."""
        self._fresh(target, target.id, "the temporary", scope)
        dtype, name = self.types.get(key_of(target)), self._unique(target.id)
        array = Array(name, dtype or PLACEHOLDER, tuple(s.loop.extent for s in scope.loops), "temporary", 0)
        self.temporaries.append(array)
        self.declared[name] = target
        return replace(scope, arrays={**scope.arrays, target.id: array}, depths={**scope.depths, target.id: len(scope.masks)},
                       declared={**scope.declared, target.id: "a name for one number"},
                       inferred={**scope.inferred, name: (key_of(target), dtype)})

    def _annotated(self, node: ast.AnnAssign, scope: Scope) -> tuple[ast.Assign, ast.Assign] | None:
        """``t: ex.f32 = 0.0`` as its declaration and its assignment."""
        kind = scope.outside(node.annotation)
        typed = isinstance(kind, type) and issubclass(kind, Element)
        if node.value is None or not isinstance(node.target, ast.Name) or not typed:
            return None
        call = ast.copy_location(ast.Call(ast.Name("ex:local", ast.Load()), [node.annotation], []), node)
        made = ast.Assign([node.target], call), ast.Assign([node.target], node.value)
        return ast.copy_location(made[0], node), ast.copy_location(made[1], node)

    def _extent(self, node: ast.expr, scope: Scope) -> int:
        value = constant(node, scope, "an extent")
        if value < 0 and not scope.trial:
            raise scope.refuse(
                node, f"the extent {ast.unparse(node)} is {value}", why="an extent is at least 0", hint="larger sizes"
            )
        return max(value, 0)

    def _assignment(self, node: ast.Assign | ast.AugAssign, scope: Scope) -> Leaf:
        statement = assignment(node, self._next(), scope)
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
