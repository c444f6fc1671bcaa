"""Statements: an assignment as a target, a value and, for a reduction, its operation."""

from __future__ import annotations

import ast
from dataclasses import replace

from ..errors import shown
from ..ir.coding import SMALL
from ..ir.dtype import DType
from ..ir.program import Access, Statement
from ..ir.scalar import BITWISE, REDUCTIONS, Call, Literal, Scalar
from .literals import beyond, literal, settle
from .parse_names import check_type
from .parse_update import Update, augmented, mentions, recognise
from .parse_value import ValueParser
from .scope import Scope

_IN_ORDER = (ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)
"""Operators whose updates cannot be reordered."""


def assignment(node: ast.Assign | ast.AugAssign, name: str, scope: Scope) -> Statement:
    """The statement `name` that an assignment stands for; raises ProgramError for what is not accepted."""
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        raise scope.refuse(
            node, "a chained assignment is not accepted", why="a statement writes one element", hint="one line for each target"
        )
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if isinstance(node, ast.AugAssign) and isinstance(node.op, _IN_ORDER):
        value = ast.copy_location(ast.BinOp(_as_load(target), node.op, node.value), node)
        node = ast.copy_location(ast.Assign([target], value), node)
    written = _target(target, scope)
    dtype = _stored_in(written, scope)
    if isinstance(node, ast.AugAssign):
        update = augmented(node, dtype, scope)
        free = not mentions(written, update, scope)
    else:
        update = recognise(written, dtype, node.value, scope)
        free = True
    parser = ValueParser(scope)
    free = free and not any(_names(test, written.array, scope) for test, _ in scope.masks)
    if update is None:
        value = parser.parse(node.value)
    elif free:
        value = _combined(update, None, parser)
    else:
        value, update = _combined(update, parser.parse(_as_load(target)), parser), None
    return _statement(node, name, written, value, update, parser, target)


def _names(test: ast.expr, array: str, scope: Scope) -> bool:
    """Whether a test reads the array that a statement updates: then the order of its updates is not free."""
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    return any(scope.arrays[name].name == array for name in names & scope.arrays.keys())


def _masked(value: Scalar, dtype: DType, update: Update | None, target: ast.expr, parser: ValueParser) -> Scalar:
    """The value under the tests on data around: elsewhere an update adds nothing, and an element keeps its value.

    A temporary that was declared under a test is never used where the test fails: it is then computed for nothing, but not from
    elements whose place is data.
    """
    masks, base = parser.scope.masks, target.value if isinstance(target, ast.Subscript) else target
    depth = parser.scope.depths.get(base.id, 0) if isinstance(base, ast.Name) else 0
    for number, (node, wanted) in reversed([*enumerate(masks)]):
        inside = number >= depth
        if not inside and all(read.affine for read in parser.reads):
            continue
        test = parser.truth(node)
        test = test if wanted else Call("not", (test,))
        if update:
            other: Scalar = literal(REDUCTIONS[update.name].identity(dtype))
        else:
            other = parser.parse(_as_load(target)) if inside else literal({"float": 0.0, "int": 0, "bool": False}[dtype.kind])
        value = Call("where", (test, value, other))
    return value


def _target(node: ast.expr, scope: Scope) -> Access:
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
            raise scope.refuse(node, f"{node.id} is not declared", why="it has no value that could be updated",
                               hint=f"{node.id} = 0.0 (or another start) before this line, in this loop or one around it")
    return ValueParser(scope).access(node, "write")


def _combined(update: Update, total: Scalar | None, parser: ValueParser) -> Scalar:
    """The operands of an update other than its target, combined after `total`: the target's value where order matters."""
    op = REDUCTIONS[update.name].operation
    for term in sorted(update.terms, key=lambda t: t.negative):
        value = parser.parse(term.node)
        if total is None:
            total = parser.negated(value) if term.negative else value
        else:
            total = Call("sub" if term.negative else op, (total, value))
    assert total is not None
    return total


def _statement(
    node: ast.stmt, name: str, written: Access, value: Scalar, update: Update | None, parser: ValueParser, target: ast.expr
) -> Statement:
    scope = parser.scope
    dtype = _stored_in(written, scope)
    kind = update.name if update else None
    check_type(written.array, parser.type_of(value), scope)
    _check_type(node, dtype, value, kind, parser)
    value = settle(_masked(value, dtype, update, target, parser), dtype.wide, parser.types)
    if (number := beyond(value)) is not None:
        raise scope.refuse(node, f"{shown(number)} does not fit any integer type", why="the largest have 64 bits",
                           hint="a smaller number, or a float")
    return Statement(
        name,
        scope.dims,
        scope.domain,
        replace(written, kind="update" if update else "write"),
        value,
        tuple(parser.reads),
        kind,
        line=node.lineno,
        text=_wording(node, scope),
    )


def _stored_in(written: Access, scope: Scope) -> DType:
    return next(a.dtype for a in scope.arrays.values() if a.name == written.array)


def _wording(node: ast.stmt, scope: Scope) -> str:
    """The user's text, behind the tests on data around it."""
    tests = [ast.unparse(test if value else ast.UnaryOp(ast.Not(), test)) for test, value in scope.masks]
    text = scope.wording or scope.source.segment(node)
    return f"if {' and '.join(tests)}: {text}" if tests else text


def _check_type(node: ast.stmt, dtype: DType, value: Scalar, update: str | None, parser: ValueParser) -> None:
    scope, kind = parser.scope, parser.type_of(value).kind
    text = ast.unparse(getattr(node, "value", node))
    whole = isinstance(value, Literal) and kind == "float" and value.value == value.value // 1 and abs(value.value) < 2**63
    if update in ("and", "or", "xor") and (dtype.kind != "bool" or kind != "bool"):
        raise scope.refuse(
            node,
            f"`{update}` combines truth values, not {dtype if dtype.kind != 'bool' else parser.type_of(value)}",
            why="&= |= ^= combine the bits of integers in an array of integers, and truth values in a bool_ array",
            hint="a bool_ array, and a comparison as the value",
        )
    if dtype.kind == "bool" and (kind != "bool" or update in ("sum", "prod")):
        raise scope.refuse(
            node,
            f"a {parser.type_of(value)} cannot be stored in a bool array",
            why="numbers are not true or false by themselves",
            hint=f"{text} != 0",
        )
    if dtype.unsigned and isinstance(value, Literal) and value.value < 0:
        raise scope.refuse(node, f"{text} does not fit {dtype}", why=f"{dtype} has no negative numbers", hint="a signed type")
    if update and dtype.name in SMALL:
        raise scope.refuse(
            node,
            f"an element of {dtype} cannot be updated",
            why="it would round to a few bits, or to the largest number, after every update, so that their order counts",
            hint=f"an update of an f32 temporary, and one assignment of it to the {dtype}",
        )
    if update in BITWISE and kind == "float":
        raise scope.refuse(
            getattr(node, "value", node),
            f"`{REDUCTIONS[update].symbol}` combines the bits of integers, not {parser.type_of(value)}",
            why="other types have no bits",
            hint=f"ex.cast({text if isinstance(node, ast.AugAssign) else '…'}, ex.{dtype})",
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
