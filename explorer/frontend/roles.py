"""Checks on the whole program: whether arrays are inputs, outputs or both, and indices that are always out of bounds."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ..errors import ProgramWarning
from ..ir.expr import Expr
from ..ir.program import Access, Array, Program, Statement
from ..ir.tree import Loop, leaves
from .scope import Scope


def with_roles(program: Program, scope: Scope, declared: Mapping[str, ast.AST], nodes: Mapping[str, ast.stmt],
               inout: Collection[str] = ()) -> Program:
    """`program` with the role of each parameter: never written is "in"; written before it is read, in the order of
    the text, is "out"; any other, and what is declared `inout`, is "inout".  Temporaries that nothing uses are left out;
    the trial warns of them.

    The order of instances can say otherwise than the text: :func:`explorer.poly.initial.with_exact_roles` has the last word.

    Raises
    ------
    ProgramError
        For a parameter that is never used, a temporary that is read first, or a program that writes no parameter.
    """
    first: dict[str, tuple[Statement, Access]] = {}
    written: set[str] = set()
    for statement in program.statements:
        for access in statement.accesses:
            first.setdefault(access.array, (statement, access))
        written.add(statement.target.array)
    unused = [a for a in program.arrays if a.role == "temporary" and a.name not in first]
    if scope.trial:
        _warn_of(unused, scope, declared)
    program = replace(program, arrays=tuple(a for a in program.arrays if a not in unused))
    ordered = sorted(program.arrays, key=lambda a: a.role != "temporary")
    roles = {a.name: _role(a, first, written, scope, declared, program, nodes) for a in ordered} | dict.fromkeys(inout, "inout")
    if idle := next((name for name in inout if name not in written), None):
        raise scope.refuse(declared[idle], f"{idle} is declared in-out, and nothing writes it",
                           why="an input needs no word for it", hint=f"{idle}: ex.f32[…], or a statement that writes {idle}")
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


def _warn_of(unused: Iterable[Array], scope: Scope, declared: Mapping[str, ast.AST]) -> None:
    """A warning at the line that declares each of these temporaries."""
    for array in unused:
        line = scope.source.place(declared[array.name])[1]
        warnings.warn_explicit(f"the temporary {array.name} is never used, and left out", ProgramWarning, scope.source.file, line)


def _role(
    array: Array,
    first: Mapping[str, tuple[Statement, Access]],
    written: set[str],
    scope: Scope,
    declared: Mapping[str, ast.AST],
    program: Program,
    nodes: Mapping[str, ast.stmt],
) -> str:
    kind = "temporary" if array.role == "temporary" else "parameter"
    if array.name not in first:
        raise scope.refuse(
            declared[array.name],
            f"the parameter {array.name} is never used",
            why="it would be passed for nothing",
            hint="use it or leave it out",
        )
    statement, access = first[array.name]
    if kind == "temporary":
        if access.kind != "write" and not _may_be_written(array, statement, program):
            name, node = _named(declared[array.name], array), nodes[statement.name]
            if where := _only_where(node, statement):
                assert isinstance(node, ast.Assign)
                raise scope.refuse(node, f"{name} has a value only where {where}",
                                   why="elsewhere it keeps what it held before, and that is nothing",
                                   hint=f"{ast.unparse(node.targets[0])} = 0.0 (or another start) before the `if`")
            verb = "updated" if access.kind == "update" else "read"
            place = f"in {'a loop' if array.given == 1 else 'loops'} before this line" if array.given else "before this line"
            raise scope.refuse(
                node,
                f"{name} is {verb} before it is written",
                why="a temporary has no value until the program gives it one",
                hint=f"{_element(name, array, node, statement)} = 0.0 (or another start) {place}",
            )
        return "temporary"
    if array.name not in written:
        return "in"
    return "out" if access.kind == "write" else "inout"


def _named(declared: ast.AST, array: Array) -> str:
    """A temporary's name as the user wrote it: that of the array may be another, where several have it."""
    return declared.id if isinstance(declared, ast.Name) else array.name


def _element(name: str, array: Array, node: ast.AST, statement: Statement) -> str:
    """An element of a temporary as a loop before `node` would write it: with the indices it has there, if those are variables
    of loops inside of the temporary's own; else with letters that are free.
    """
    own = len(array.shape) - array.given
    for found in ast.walk(node):
        if isinstance(found, ast.Subscript) and isinstance(found.value, ast.Name) and found.value.id == name:
            parts = found.slice.elts if isinstance(found.slice, ast.Tuple) else [found.slice]
            words = [part.id for part in parts if isinstance(part, ast.Name) and part.id in statement.dims[own:]]
            if len(set(words)) == array.given == len(parts):
                return f"{name}[{', '.join(words)}]"
    around = {part for d in statement.dims[:own] for part in (d, d.partition("_")[0])}  # a second loop over i is i_2
    free = [letter for letter in "ijklmnopqrstuvw" if letter not in around and letter != name]
    return f"{name}[{', '.join(free[: array.given])}]" if array.given else name


def _only_where(node: ast.stmt, statement: Statement) -> str:
    """The test on data under which a statement gives its target a value that it does not read itself; else nothing."""
    if not isinstance(node, ast.Assign) or not statement.text.startswith("if "):
        return ""
    test, base = statement.text[3:].partition(": ")[0], node.targets[0]
    base = base.value if isinstance(base, ast.Subscript) else base
    read = {n.id for part in (node.value, ast.parse(test, mode="eval")) for n in ast.walk(part) if isinstance(n, ast.Name)}
    return "" if isinstance(base, ast.Name) and base.id in read else test


def _may_be_written(temporary: Array, reader: Statement, program: Program) -> bool:
    """Whether a statement further down may write a temporary before `reader` does read it: in an earlier iteration of a
    loop around both and inside of the temporary's own.  Then the exact analysis decides.
    """
    own = len(temporary.shape) - temporary.given
    inside = reader.dims[own : own + 1]
    writers = [s for s in program.statements if s.target.array == temporary.name and s.target.kind == "write"]
    return bool(inside) and any(s.dims[own : own + 1] == inside for s in writers)


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
