"""From the syntax tree of a function to a :class:`~explorer.ir.program.Program` with concrete sizes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import ProgramError
from ..ir.dtype import DType
from ..ir.expr import const, var
from ..ir.program import Access, Array, Constraint, Program, Statement
from ..ir.scalar import Call, Literal, Scalar
from ..ir.tree import Leaf, Loop, Node
from .parse_condition import bounds, conjunction
from .parse_index import constant
from .parse_update import Update, augmented, mentions, recognise
from .parse_value import ValueParser, settle
from .refuse import STATEMENTS, refuse_expression, refuse_statement
from .roles import check_bounds, with_roles
from .scope import RESERVED, Scope, Surrounding, bound_names
from .signature import Parameter
from .source import Source
from .types import Element, SizeValue, local


def parse(source: Source, parameters: tuple[Parameter, ...], captured: Mapping[str, Any], sizes: Mapping[str, int],
          trial: bool = False) -> Program:
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
    parser = _Parser(source, scope)
    body = source.tree.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
        body = body[1:]
    nodes = parser.block(body, replace(scope, arrays=arrays))
    program = Program(
        source.tree.name, (*arrays.values(), *parser.temporaries), tuple(parser.statements), nodes, tuple(sizes.items()),
        source.text, source.file, source.first_line)
    program = with_roles(program, scope, {p.name: p.node for p in parameters} | parser.declared)
    check_bounds(program, scope, parser.nodes)
    return program


class _Parser:
    """Collects statements and temporaries in program order."""

    def __init__(self, source: Source, scope: Scope) -> None:
        self.source = source
        self.statements: list[Statement] = []
        self.nodes: dict[str, ast.stmt] = {}
        self.temporaries: list[Array] = []
        self.declared: dict[str, ast.AST] = {}
        self.taken: set[str] = set()
        self.words = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)} | set(scope.assigned)

    def block(self, nodes: list[ast.stmt], scope: Scope) -> tuple[Node, ...]:
        """The tree of a list of statements; a temporary lives to the end of the list that declares it."""
        out: list[Node] = []
        for node in nodes:
            if isinstance(node, ast.Assign) and self._is_local(node.value, scope):
                scope = self._declare(node, scope)
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

    # Loops -----------------------------------------------------------------------------------------------------------

    def _loop(self, node: ast.For, scope: Scope) -> list[Node]:
        if node.orelse:
            raise scope.refuse(node, "for … else is not accepted", why="there is no break", hint="put the lines after the loop")
        if not isinstance(node.target, ast.Name):
            raise scope.refuse(node.target, "a loop has one variable", why="it counts through a range", hint="for i in range(N):")
        name = node.target.id
        self._fresh(node.target, name, "a loop variable", scope)
        call = node.iter
        if not (isinstance(call, ast.Call) and scope.outside(call.func) is builtins.range):
            raise scope.refuse(call, f"{ast.unparse(call)} is not a range", why="loops are integer ranges", hint="for i in range(N):")
        if not 1 <= len(call.args) <= 3 or call.keywords:
            raise scope.refuse(call, "range takes one to three arguments", why="start, end and step", hint="range(N) or range(a, b, step)")
        identity = self._unique(name)
        surrounding = self._strided(call, name, identity, scope) if len(call.args) == 3 else self._plain(call, name, identity, scope)
        body = self.block(node.body, scope.inside(surrounding))
        return [replace(surrounding.loop, body=body)] if body else []

    def _plain(self, call: ast.Call, name: str, identity: str, scope: Scope) -> Surrounding:
        """``range(a, b)``: the dimension is the value; the box is the widest interval over the loops around."""
        lower = bounds(call.args[0], scope, upper=False) if len(call.args) == 2 else [(const(0), "0")]
        upper = bounds(call.args[-1], scope, upper=True)
        start = max(e.interval(scope.ranges)[0] for e, _ in lower)
        stop = min(e.interval(scope.ranges)[1] for e, _ in upper)
        constraints = [Constraint(var(identity) - e, text=f"{name} >= {text}") for e, text in lower]
        constraints += [Constraint(e - var(identity) - 1, text=f"{name} < {text}") for e, text in upper]
        return Surrounding(Loop(identity, max(0, stop - start), (), start=start), tuple(constraints), name, var(identity))

    def _strided(self, call: ast.Call, name: str, identity: str, scope: Scope) -> Surrounding:
        """``range(a, b, s)``: the dimension counts iterations from 0, and the user's variable is ``a + s*count``."""
        step = constant(call.args[2], scope, "the step of a range")
        if step == 0 and (not scope.trial or isinstance(call.args[2], ast.Constant)):
            raise scope.refuse(call.args[2], "the step of a range is 0", why="the loop would not advance", hint="1")
        step = step or 1
        if step == 1:
            return self._plain(ast.Call(call.func, call.args[:2], []), name, identity, scope)
        first, last = bounds(call.args[0], scope, upper=step < 0), bounds(call.args[1], scope, upper=step > 0)
        if len(first) > 1:
            raise scope.refuse(call.args[0], "a strided range starts at one value", why="its remainder would depend on which bound holds",
                               hint="step 1, or a start without min and max")
        (start, start_text), sign = first[0], 1 if step > 0 else -1
        value = start + var(identity) * step
        spans = [((e - start) * sign, text) for e, text in last]
        count = min(-(-span.interval(scope.ranges)[1] // abs(step)) for span, _ in spans)
        order = (">=", "<") if step > 0 else ("<=", ">")
        constraints = [Constraint(var(identity), text=f"{name} {order[0]} {start_text}")]
        constraints += [Constraint(span - var(identity) * abs(step) - 1, text=f"{name} {order[1]} {text}") for span, text in spans]
        return Surrounding(Loop(identity, max(0, count), ()), tuple(constraints), name, value)

    # Names -----------------------------------------------------------------------------------------------------------

    def _unique(self, name: str) -> str:
        """`name`, or ``name_2``, ``name_3``, …: unique in the program and not a word of the user's."""
        candidate, number = name, 1
        while candidate in self.taken or (number > 1 and candidate in self.words):
            number += 1
            candidate = f"{name}_{number}"
        self.taken.add(candidate)
        return candidate

    def _fresh(self, node: ast.AST, name: str, what: str, scope: Scope) -> None:
        if scope.variable(name) is not None:
            raise scope.refuse(node, f"{name} is already the variable of a loop around", why="inside, the name would mean two things",
                               hint=f"another name for {what}")
        if name in scope.arrays:
            raise scope.refuse(node, f"{name} is already an array", why="the name would mean two things", hint=f"another name for {what}")
        if isinstance(scope.captured.get(name), SizeValue):
            raise scope.refuse(node, f"{name} is already a size", why="the name would mean two things", hint=f"another name for {what}")
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
            raise scope.refuse(call, "a temporary needs an element type", why="its first argument is one of f16 bf16 f32 f64 i8 i32 i64 bool_",
                               hint="t = ex.local(ex.f32) or ex.local(ex.f32, N)")
        given = tuple(self._extent(a, scope) for a in call.args[1:])
        shape = (*(s.loop.extent for s in scope.loops), *given)
        array = Array(self._unique(target.id), dtype.dtype, shape, "temporary", len(given))
        self.temporaries.append(array)
        self.declared[array.name] = target
        return replace(scope, arrays={**scope.arrays, target.id: array})

    def _extent(self, node: ast.expr, scope: Scope) -> int:
        value = constant(node, scope, "an extent")
        if value < 0 and not scope.trial:
            raise scope.refuse(node, f"the extent {ast.unparse(node)} is {value}", why="an extent is at least 0", hint="larger sizes")
        return max(value, 0)

    # Statements ------------------------------------------------------------------------------------------------------

    def _assignment(self, node: ast.Assign | ast.AugAssign, scope: Scope) -> Leaf:
        if isinstance(node, ast.Assign) and len(node.targets) > 1:
            raise scope.refuse(node, "a chained assignment is not accepted", why="a statement writes one element", hint="one line for each target")
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        written = self._target(target, node.value, scope)
        if isinstance(node, ast.AugAssign):
            update = augmented(node, scope)
            free = not mentions(written, update, scope)
        else:
            update = recognise(written, node.value, scope)
            free = True
        parser = ValueParser(scope)
        if update is None:
            value = parser.parse(node.value)
        else:
            value = self._operand(update, parser)
            if not free:
                value, update = self._in_order(update, target, value, parser), None
        return self._statement(node, written, value, update, parser)

    def _target(self, node: ast.expr, value: ast.expr, scope: Scope) -> Access:
        if isinstance(node, (ast.Tuple, ast.List)):
            raise scope.refuse(node, "an assignment to several names is not accepted", why="a statement writes one element",
                               hint="one line for each target")
        if not isinstance(node, (ast.Name, ast.Subscript)):
            raise scope.refuse(node, f"{ast.unparse(node)} cannot be written", why="statements write array elements", hint="y[i] = …")
        if isinstance(node, ast.Name):
            if scope.variable(node.id) is not None:
                raise scope.refuse(node, f"{node.id} is a loop variable and cannot be written", why="its values are those of its range",
                                   hint="another range, or a temporary of another name")
            if node.id not in scope.arrays:
                raise scope.refuse(node, f"{node.id} is not declared", why="a temporary needs an element type",
                                   hint=f"{node.id} = ex.local(ex.f32) before this line, in this loop or one around it")
        return ValueParser(scope).access(node, "write")

    def _operand(self, update: Update, parser: ValueParser) -> Scalar:
        """The operands of an update other than its target, combined."""
        op = {"sum": "add", "prod": "mul"}.get(update.name, update.name)
        total: Scalar | None = None
        for term in sorted(update.terms, key=lambda t: t.negative):
            value = parser.parse(term.node)
            if total is None:
                total = parser.negated(value) if term.negative else value
            else:
                total = Call("sub" if term.negative else op, (total, value))
        assert total is not None
        return total

    def _in_order(self, update: Update, target: ast.expr, value: Scalar, parser: ValueParser) -> Scalar:
        """An update whose operands read its own target: an ordinary write that reads the target first."""
        op = {"sum": "add", "prod": "mul"}.get(update.name, update.name)
        load = ast.copy_location(_as_load(target), target)
        return Call(op, (parser.parse(load), value))

    def _statement(self, node: ast.stmt, written: Access, value: Scalar, update: Update | None, parser: ValueParser) -> Leaf:
        scope = parser.scope
        array = next(a for a in scope.arrays.values() if a.name == written.array)
        kind = update.name if update else None
        self._check_type(node, array.dtype, value, kind, parser)
        name = f"S{len(self.statements)}"
        self.statements.append(Statement(
            name, scope.dims, scope.domain, replace(written, kind="update" if update else "write"),
            settle(value, array.dtype.wide, parser.types), tuple(parser.reads), kind,
            line=node.lineno, text=self.source.segment(node)))
        self.nodes[name] = node
        return Leaf(name, name, tuple((d, var(d)) for d in scope.dims))

    def _check_type(self, node: ast.stmt, dtype: DType, value: Scalar, update: str | None, parser: ValueParser) -> None:
        scope, kind = parser.scope, parser.type_of(value).kind
        text = ast.unparse(getattr(node, "value", node))
        whole = isinstance(value, Literal) and kind == "float" and value.value == value.value // 1 and abs(value.value) < 2**63
        if update in ("and", "or") and (dtype.kind != "bool" or kind != "bool"):
            raise scope.refuse(node, f"`{update}` combines truth values, not {dtype}", why="& and | on integers are not operations of programs",
                               hint="a bool_ array, and a comparison as the value")
        if dtype.kind == "bool" and (kind != "bool" or update in ("sum", "prod")):
            raise scope.refuse(node, f"a {parser.type_of(value)} cannot be stored in a bool array", why="numbers are not true or false by themselves",
                               hint=f"{text} != 0")
        if dtype.kind == "int" and kind == "float" and not whole:
            raise scope.refuse(node, f"a {parser.type_of(value)} cannot be stored in an {dtype} array", why="it would lose its fraction silently",
                               hint=f"ex.cast({text}, ex.{dtype})")

    def _expression(self, node: ast.Expr, scope: Scope) -> ProgramError:
        if isinstance(node.value, ast.Call) and not self._is_local(node.value, scope):
            words = ast.unparse(node.value.func)
            return scope.refuse(node, f"a call of {words} does nothing here", why="the function is parsed, never executed",
                                hint="an assignment: y[i] = …")
        if isinstance(node.value, (ast.Yield, ast.YieldFrom, ast.Await, ast.ListComp, ast.NamedExpr)):
            return refuse_expression(self.source, node.value)
        return scope.refuse(node, "an expression that is not stored does nothing", why="statements write array elements", hint="y[i] = …")


def check_name(node: ast.AST, name: str, scope: Scope) -> None:
    """Refuse a name that a kernel could not carry, or that hides an operation."""
    if not name.isascii():
        raise scope.refuse(node, f"the name {name} is not ASCII", why="the kernel keeps your names", hint="letters a to z, digits and _")
    if name in RESERVED:
        raise scope.refuse(node, f"the name {name} is a word of CUDA C++", why="the kernel keeps your names", hint=f"{name}_")
    if name in ("range", "min", "max", "abs", "pow"):
        raise scope.refuse(node, f"the name {name} hides an operation", why="inside the function it would mean the array or variable",
                           hint=f"{name}_")


def _as_load(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Subscript):
        return ast.copy_location(ast.Subscript(node.value, node.slice, ast.Load()), node)
    assert isinstance(node, ast.Name)
    return ast.Name(node.id, ast.Load())


__all__ = ["STATEMENTS", "check_name", "parse"]
