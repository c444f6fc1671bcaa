"""Parsing of ``if`` on data: predication, as selects in statements that run for all instances.

``if x[i] > 0: y[i] = a`` keeps the old value elsewhere: it is ``y[i] = a if x[i] > 0 else y[i]``.  An update adds its identity
elsewhere: ``s += x[i] if x[i] > 0 else 0.0``.  Where both branches assign one element, one statement chooses.  A test that
mixes loop variables and data is taken apart, so that what loop variables decide stays a condition on instances.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .parse_condition import reads_data, without_membership
from .scope import Scope


@dataclass(frozen=True)
class Branch:
    """An ``if`` whose test is wholly on data, or wholly not.

    Attributes
    ----------
    test : ast.expr
    body, orelse : list of ast.stmt
    data : bool
        Whether the test depends on what arrays hold.
    """

    test: ast.expr
    body: list[ast.stmt]
    orelse: list[ast.stmt]
    data: bool


def branch(node: ast.If, scope: Scope) -> Branch:
    """The ``if``, its test taken apart: where one side of an ``and`` or ``or`` is data, the other decides outside of it."""
    test, body, orelse = without_membership(node.test), node.body, node.orelse
    if not reads_data(test, scope):
        return Branch(test, body, orelse, False)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _mixed(test.operand, scope):
        return branch(_if(test.operand, orelse or [ast.copy_location(ast.Pass(), node)], body, node), scope)
    if isinstance(test, ast.Compare) and len(test.ops) > 1:
        sides = [test.left, *test.comparators]
        pairs = zip(sides, test.ops, sides[1:], strict=False)
        test = _joined(ast.And(), [ast.copy_location(ast.Compare(a, [op], [b]), test) for a, op, b in pairs], test)
    if isinstance(test, ast.BoolOp) and (known := [v for v in test.values if not _data(v, scope)]):
        rest = _joined(test.op, [v for v in test.values if _data(v, scope)], test)
        first = _joined(test.op, known, test)
        if isinstance(test.op, ast.And):
            return Branch(first, [_if(rest, body, orelse, node)], orelse, False)
        return Branch(first, body, [_if(rest, body, orelse, node)], False)
    return Branch(test, body, orelse, True)


def _data(node: ast.expr, scope: Scope) -> bool:
    return reads_data(node, scope)


def _mixed(node: ast.expr, scope: Scope) -> bool:
    if isinstance(node, ast.BoolOp):
        return any(not _data(v, scope) for v in node.values)
    return isinstance(node, ast.Compare) and len(node.ops) > 1


def _joined(op: ast.boolop, values: list[ast.expr], at: ast.expr) -> ast.expr:
    return values[0] if len(values) == 1 else ast.copy_location(ast.BoolOp(op, values), at)


def _if(test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], at: ast.stmt) -> ast.If:
    return ast.copy_location(ast.If(test, body, orelse), at)


def changes(statements: list[ast.stmt], test: ast.expr) -> bool:
    """Whether the statements write an array that the test reads: then the test must be kept before they run."""
    read = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    targets = [t for s in statements for n in ast.walk(s) if isinstance(n, (ast.Assign, ast.AugAssign))
               for t in (n.targets if isinstance(n, ast.Assign) else [n.target])]
    bases = [t.value if isinstance(t, ast.Subscript) else t for t in targets]
    return any(isinstance(b, ast.Name) and b.id in read for b in bases)


def chosen(test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> Iterator[tuple[ast.stmt, bool | None]]:
    """The statements of both branches in one order, each with the value of the test that it needs: None for both.

    Assignments of one element in both branches become one that chooses.  Only one branch runs, so that their statements may
    be mixed in any way that keeps the order of each.
    """
    rest = list(orelse)
    for statement in body:
        place = next((n for n, other in enumerate(rest) if _same_statement(statement, other)), None)
        if place is None:
            yield statement, True
            continue
        yield from ((other, False) for other in rest[:place])
        yield _merged(test, statement, rest[place]), None
        rest = rest[place + 1 :]
    yield from ((other, False) for other in rest)


def settled(statements: list[ast.stmt], scope: Scope) -> list[ast.stmt]:
    """The statements, each ``if`` on data whose branches assign the same elements replaced by assignments that choose."""
    out: list[ast.stmt] = []
    for statement in statements:
        found = branch(statement, scope) if isinstance(statement, ast.If) else None
        if found is None or not found.data:
            out.append(statement)
            continue
        items = list(chosen(found.test, settled(found.body, scope), settled(found.orelse, scope)))
        made = [s for s, _ in items]
        whole = all(value is None for _, value in items) and (len(made) == 1 or not changes(made, found.test))
        out += made if whole else [statement]
    return out


def _same_statement(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two assignments go to one element, in one way."""
    if isinstance(first, ast.AugAssign) and isinstance(second, ast.AugAssign):
        return ast.dump(first.target) == ast.dump(second.target) and type(first.op) is type(second.op)
    if not (isinstance(first, ast.Assign) and isinstance(second, ast.Assign)) or len(first.targets) + len(second.targets) > 2:
        return False
    same = ast.dump(first.targets[0]) == ast.dump(second.targets[0])
    return same and not any(isinstance(n, ast.GeneratorExp) or _names(n, first.targets[0])
                            for value in (first.value, second.value) for n in ast.walk(value))


def _names(node: ast.AST, target: ast.expr) -> bool:
    """Whether `node` is the target as a value: then the assignment may be a reduction."""
    return isinstance(node, (ast.Name, ast.Subscript)) and ast.unparse(node) == ast.unparse(target)


def _merged(test: ast.expr, first: ast.stmt, second: ast.stmt) -> ast.stmt:
    assert isinstance(first, (ast.Assign, ast.AugAssign))
    assert isinstance(second, (ast.Assign, ast.AugAssign))
    value = ast.copy_location(ast.IfExp(test, first.value, second.value), first)
    made = ast.Assign(first.targets, value) if isinstance(first, ast.Assign) else ast.AugAssign(first.target, first.op, value)
    return ast.copy_location(made, first)


def kept_test(node: ast.If, test: ast.expr, name: str) -> tuple[tuple[ast.Assign, ast.Assign], ast.expr]:
    """``name = ex.local(ex.bool_)`` and ``name = test``, and the name as the test: for branches that change what it reads."""
    store, load = ast.Name(name, ast.Store()), ast.copy_location(ast.Name(name, ast.Load()), test)
    call = ast.Call(ast.Name("ex:local", ast.Load()), [ast.Name("ex:bool", ast.Load())], [])
    made = ast.Assign([store], call), ast.Assign([store], test)
    for statement in made:
        for part in ast.walk(statement):
            if "lineno" in part._attributes and not hasattr(part, "lineno"):
                ast.copy_location(part, test)
    return made, load
