"""Statements: an assignment as a target, a value and, for a reduction, its operation."""

from __future__ import annotations

import ast
from dataclasses import replace

from ..ir.dtype import DType
from ..ir.program import Access, Statement
from ..ir.scalar import Call, Literal, Scalar
from .parse_index import index, is_index
from .parse_update import Update, augmented, mentions, recognise
from .parse_value import ValueParser, settle
from .scope import Scope


def assignment(node: ast.Assign | ast.AugAssign, name: str, scope: Scope) -> Statement:
    """The statement `name` that an assignment stands for; raises ProgramError for what is not accepted."""
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        raise scope.refuse(
            node, "a chained assignment is not accepted", why="a statement writes one element", hint="one line for each target"
        )
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    written = _target(target, node.value, scope)
    if isinstance(node, ast.AugAssign):
        update = augmented(node, scope)
        free = not mentions(written, update, scope)
    else:
        update = recognise(written, node.value, scope)
        free = True
    parser = ValueParser(scope)
    if update is None:
        value = parser.parse(node.value)
    elif free:
        value = _combined(update, None, parser)
    else:
        value, update = _combined(update, parser.parse(_as_load(target)), parser), None
    return _statement(node, name, written, value, update, parser)


def _target(node: ast.expr, value: ast.expr, scope: Scope) -> Access:
    if isinstance(node, (ast.Tuple, ast.List)):
        raise scope.refuse(
            node,
            "an assignment to several names is not accepted",
            why="a statement writes one element",
            hint="one line for each target",
        )
    if not isinstance(node, (ast.Name, ast.Subscript)):
        raise scope.refuse(node, f"{ast.unparse(node)} cannot be written", why="statements write array elements", hint="y[i] = …")
    if isinstance(node, ast.Name):
        if scope.variable(node.id) is not None:
            raise scope.refuse(
                node,
                f"{node.id} is a loop variable and cannot be written",
                why="its values are those of its range",
                hint="another range, or a temporary of another name",
            )
        if node.id not in scope.arrays:
            if is_index(value, scope) and not index(value, scope).is_constant:
                why, hint = (
                    "an index has no name of its own",
                    f"{scope.source.segment(value)} in each index where {node.id} stands",
                )
            else:
                why = "a temporary needs an element type"
                hint = f"{node.id} = ex.local(ex.f32) before this line, in this loop or one around it"
            raise scope.refuse(node, f"{node.id} is not declared", why=why, hint=hint)
    return ValueParser(scope).access(node, "write")


def _combined(update: Update, total: Scalar | None, parser: ValueParser) -> Scalar:
    """The operands of an update other than its target, combined after `total`: the target's value where order matters."""
    op = {"sum": "add", "prod": "mul"}.get(update.name, update.name)
    for term in sorted(update.terms, key=lambda t: t.negative):
        value = parser.parse(term.node)
        if total is None:
            total = parser.negated(value) if term.negative else value
        else:
            total = Call("sub" if term.negative else op, (total, value))
    assert total is not None
    return total


def _statement(
    node: ast.stmt, name: str, written: Access, value: Scalar, update: Update | None, parser: ValueParser
) -> Statement:
    scope = parser.scope
    dtype = next(a.dtype for a in scope.arrays.values() if a.name == written.array)
    kind = update.name if update else None
    _check_type(node, dtype, value, kind, parser)
    return Statement(
        name,
        scope.dims,
        scope.domain,
        replace(written, kind="update" if update else "write"),
        settle(value, dtype.wide, parser.types),
        tuple(parser.reads),
        kind,
        line=node.lineno,
        text=scope.source.segment(node),
    )


def _check_type(node: ast.stmt, dtype: DType, value: Scalar, update: str | None, parser: ValueParser) -> None:
    scope, kind = parser.scope, parser.type_of(value).kind
    text = ast.unparse(getattr(node, "value", node))
    whole = isinstance(value, Literal) and kind == "float" and value.value == value.value // 1 and abs(value.value) < 2**63
    if update in ("and", "or") and (dtype.kind != "bool" or kind != "bool"):
        raise scope.refuse(
            node,
            f"`{update}` combines truth values, not {dtype}",
            why="& and | on integers are not operations of programs",
            hint="a bool_ array, and a comparison as the value",
        )
    if dtype.kind == "bool" and (kind != "bool" or update in ("sum", "prod")):
        raise scope.refuse(
            node,
            f"a {parser.type_of(value)} cannot be stored in a bool array",
            why="numbers are not true or false by themselves",
            hint=f"{text} != 0",
        )
    if dtype.kind == "int" and kind == "float" and not whole:
        raise scope.refuse(
            node,
            f"a {parser.type_of(value)} cannot be stored in an {dtype} array",
            why="it would lose its fraction silently",
            hint=f"ex.cast({text}, ex.{dtype})",
        )


def _as_load(node: ast.expr) -> ast.expr:
    """The target of an assignment, as a value."""
    if isinstance(node, ast.Subscript):
        return ast.copy_location(ast.Subscript(node.value, node.slice, ast.Load()), node)
    return ast.copy_location(ast.Name(getattr(node, "id", ""), ast.Load()), node)
