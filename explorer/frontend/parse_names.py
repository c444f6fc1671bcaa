"""Names that a program gives to values without declaring them: ``j = 2*i + 1``, ``s = 0.0``, ``t = x[i] - mean``.

A name for an index stands for that index.  Any other is a temporary in the list of statements where it is first assigned, one for
each iteration of the loops around, of the type that holds all that is assigned to it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..ir.dtype import DTYPES, DType
from ..ir.scalar import Call, Literal, type_of
from .scope import Scope

Key = tuple[str, int, int]
"""A name with the place of its first assignment."""


class Retype(Exception):
    """A name needs a wider type than was taken: the program is parsed once more."""

    def __init__(self, key: Key, dtype: DType) -> None:
        super().__init__(f"{key[0]}: {dtype}")
        self.key, self.dtype = key, dtype


def widened(known: DType | None, value: DType) -> DType:
    """The type that holds values of both; `known` where one is a truth value and the other is not."""
    if known is None or known == value:
        return value
    if "bool" in (known.kind, value.kind):
        return known
    return type_of(Call("add", (Literal(0, known), Literal(0, value))), [])


def check_type(array: str, value: DType, scope: Scope) -> None:
    """Ask for another type where a value that is assigned to an undeclared name does not fit the one taken."""
    if array in scope.inferred:
        key, known = scope.inferred[array]
        if (wanted := widened(known, value)) != known:
            raise Retype(key, wanted)


def key_of(target: ast.Name) -> Key:
    """The key of a name that is first assigned here."""
    return target.id, target.lineno, target.col_offset


def is_new(name: str, scope: Scope) -> bool:
    """Whether nothing has this name here, so that assigning it makes something."""
    return name not in scope.arrays and scope.variable(name) is None


def stored(nodes: list[ast.stmt]) -> Iterator[ast.Name]:
    """The names that statements assign, those of nested ones included."""
    for node in nodes:
        yield from (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def needed_behind(node: ast.If, rest: list[ast.stmt], scope: Scope) -> list[ast.Name]:
    """New names that the branches of an ``if`` assign, outside of loops, and that the statements behind it read."""
    read = {n.id for s in rest for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    found: dict[str, ast.Name] = {}
    for target in _assigned(node):
        if target.id in read and is_new(target.id, scope):
            found.setdefault(target.id, target)
    return list(found.values())


def _assigned(node: ast.If) -> Iterator[ast.Name]:
    for statement in (*node.body, *node.orelse):
        if isinstance(statement, ast.If):
            yield from _assigned(statement)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            yield statement.targets[0]


PLACEHOLDER = DTYPES["f32"]
"""The type of a name until its first value is known."""
