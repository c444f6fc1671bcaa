"""Checks on the whole program: which arrays go in and out, and indices that are certainly outside."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from ..ir.expr import Expr
from ..ir.program import Access, Array, Program, Statement
from ..ir.tree import Loop, leaves
from .scope import Scope


def with_roles(program: Program, scope: Scope, declared: Mapping[str, ast.AST], nodes: Mapping[str, ast.stmt]) -> Program:
    """`program` with the role of each parameter: never written is "in"; written before it is read, in the order of
    the text, is "out"; any other is "inout".

    Raises
    ------
    ProgramError
        For an array that is never used, a temporary that is read first, or a program that writes no parameter.
    """
    first: dict[str, tuple[Statement, Access]] = {}
    written: set[str] = set()
    for statement in program.statements:
        for access in statement.accesses:
            first.setdefault(access.array, (statement, access))
        written.add(statement.target.array)
    ordered = sorted(program.arrays, key=lambda a: a.role != "temporary")
    roles = {a.name: _role(a, first, written, scope, declared, nodes) for a in ordered}
    arrays = tuple(replace(a, role=roles[a.name]) for a in program.arrays)
    outputs = [a for a in arrays if a.role in ("out", "inout")]
    if not outputs:
        raise scope.refuse(
            scope.source.tree,
            f"{program.name} writes nothing",
            why="results are what it writes to its array parameters",
            hint="y[i] = … for some parameter y",
        )
    return replace(program, arrays=arrays)


def _role(
    array: Array,
    first: Mapping[str, tuple[Statement, Access]],
    written: set[str],
    scope: Scope,
    declared: Mapping[str, ast.AST],
    nodes: Mapping[str, ast.stmt],
) -> str:
    kind = "temporary" if array.role == "temporary" else "parameter"
    if array.name not in first:
        raise scope.refuse(
            declared[array.name],
            f"the {kind} {array.name} is never used",
            why="it would be stored for nothing",
            hint="use it or leave it out",
        )
    statement, access = first[array.name]
    if kind == "temporary":
        if access.kind != "write":
            verb = "updated" if access.kind == "update" else "read"
            raise scope.refuse(
                nodes[statement.name],
                f"{array.name} is {verb} before it is written",
                why="a temporary has no value until the program gives it one",
                hint=f"{array.name} = 0.0 (or another start) before this line",
            )
        return "temporary"
    if array.name not in written:
        return "in"
    return "out" if access.kind == "write" else "inout"


def check_bounds(program: Program, scope: Scope, nodes: Mapping[str, ast.stmt]) -> None:
    """Refuse an index that certainly leaves its array: one that is plain affine in loops without any condition.

    Intervals are exact there; triangles, conditions and quotients are left to the exact analysis.
    """
    if scope.trial:
        return
    for leaf, loops in leaves(program.body):
        statement = program.statement_of[leaf.statement]
        if not _is_box(statement, loops):
            continue
        ranges = {loop.id: loop.range for loop in loops}
        for access in statement.accesses:
            array = program.array_of[access.array]
            for position, (index, extent) in enumerate(zip(access.index, array.shape, strict=True)):
                if not isinstance(index, Expr) or any(not isinstance(atom, str) for atom, _ in index.terms):
                    continue
                low, high = index.interval(ranges)
                if low < 0 or high >= extent:
                    worst = low if low < 0 else high
                    raise scope.refuse(
                        nodes[statement.name],
                        f"the index {index} of {array.name} leaves the array: it reaches {worst}",
                        why=f"dimension {position} of {array.name} has the elements 0 … {extent - 1}"
                        if extent
                        else f"{array.name} is empty",
                        hint="a tighter range, or an `if` around the statement",
                    )


def _is_box(statement: Statement, loops: tuple[Loop, ...]) -> bool:
    """Whether every point of the (non-empty) box of loops is an instance."""
    ranges = {loop.id: loop.range for loop in loops}
    if any(loop.extent == 0 for loop in loops):
        return False
    return all(not c.equality and c.expr.interval(ranges)[0] >= 0 for c in statement.domain)
