"""What an array holds at the start, and whether a program can see it: reads that no write precedes.

The question is asked of memory, not of values: instances that read an element, less those that an earlier write of the same
element reaches.  That is one subtraction for each pair of statements, and needs no dataflow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import islpy as isl

from ..ir.program import Array, Program, Statement
from .dependence import elements, original_order
from .isl import alone, smallest
from .relations import access


def first_reads(program: Program, array: Array, order: dict[str, isl.Map]) -> Iterator[tuple[Statement, int, isl.Set]]:
    """Each use that reads `array`, with the instances at which no write of the element comes before: never an empty set.

    A reduction's own updates start nothing: the first of them reads what was there.
    """
    for reader in program.statements:
        for slot in [*range(len(reader.reads)), *([len(reader.reads)] if reader.update else [])]:
            if reader.accesses[slot].array != array.name:
                continue
            use = access(reader, slot, array)
            missing = use.domain()
            for writer in program.statements:
                if missing.is_empty():
                    break
                if writer.target.array != array.name or (writer.update and writer.name == reader.name):
                    continue
                pairs = access(writer, len(writer.reads), array).apply_range(use.reverse())
                missing = missing.subtract(pairs.intersect(order[writer.name].lex_lt_map(order[reader.name])).range())
            if not missing.is_empty():
                yield reader, slot, missing


@alone
def uninitialised(program: Program) -> tuple[str, int, tuple[int, ...]] | None:
    """The first read of an output or temporary that no write precedes: (statement, slot, instance), or None."""
    order = original_order(program)
    found = [(reader.name, slot, smallest(missing)) for array in program.arrays if array.role in ("out", "temporary")
             for reader, slot, missing in first_reads(program, array, order)]
    place = {s.name: n for n, s in enumerate(program.statements)}
    return min(found, key=lambda f: (place[f[0]], f[1]), default=None)


@alone
def with_exact_roles(program: Program, declared: Collection[str] = ()) -> Program:
    """The program, each written parameter in-out exactly where what the caller gave can matter.

    Parameters
    ----------
    program : Program
        With the roles that the order of the text suggests.
    declared : collection of str
        Parameters that were declared in-out.

    Returns
    -------
    Program
        An array with an element that some instance reads before any instance wrote it is ``"inout"``.  One that the text
        reads first is an output only if, besides, all of it is written.
    """
    written = [a for a in program.arrays if a.role in ("out", "inout") and a.name not in declared and _is_read(program, a)]
    order = original_order(program) if written else {}
    roles = dict.fromkeys(declared, "inout")
    for array in written:
        if next(first_reads(program, array, order), None) is not None:
            roles[array.name] = "inout"
        elif array.role == "inout" and _all_written(program, array):
            roles[array.name] = "out"
    if all(roles.get(a.name, a.role) == a.role for a in program.arrays):
        return program
    return replace(program, arrays=tuple(replace(a, role=roles.get(a.name, a.role)) for a in program.arrays))


def _is_read(program: Program, array: Array) -> bool:
    return any(r.array == array.name for s in program.statements for r in s.reads) \
        or any(s.update and s.target.array == array.name for s in program.statements)


def _all_written(program: Program, array: Array) -> bool:
    missing = elements(array)
    for s in program.statements:
        if s.target.array == array.name:
            missing = missing.subtract(access(s, len(s.reads), array).range())
    return missing.is_empty()
