"""What an array holds at the start, and whether a program can see it: reads that no write precedes.

The question is asked of memory, not of values: instances that read an element, less those that an earlier write of the same
element reaches.  That is one subtraction for each pair of statements, and needs no dataflow.  Mostly one write is seen to come
before every read by substitution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import islpy as isl

from ..ir.expr import ZERO, Expr, const, var
from ..ir.program import Array, Program, Statement
from .decide import OPEN, Maybe, Question, decide
from .dependence import elements, original_times
from .isl import alone, smallest
from .relations import access, bounds, value_map

Times = tuple[Expr, ...]
"""When an instance runs in the program as written, over the statement's dimensions."""


@dataclass(frozen=True)
class _First(Question["isl.Set | None"]):
    """The instances of a read that no write of the element comes before, or None."""

    reader: Statement
    slot: int
    array: Array
    time: Times
    writers: tuple[tuple[Statement, Times], ...]

    def by_intervals(self) -> Maybe[isl.Set | None]:
        return None if any(self._precedes(writer, time) for writer, time in self.writers) else OPEN

    def _precedes(self, writer: Statement, time: Times) -> bool:
        """Whether the write at the same values of the dimensions, or of those that its index names, surely comes first."""
        read, known, own = self.reader.accesses[self.slot], bounds(self.reader.domain), bounds(writer.domain)
        at = {d: var(d) if d in self.reader.dims else const(own[d][0]) for d in writer.dims if d in own}
        pairs = zip(writer.target.index, read.index, strict=True)
        index = [(e, f) for e, f in pairs if isinstance(e, Expr) and isinstance(f, Expr)]
        at |= {d: f for e, f in index for d in e.variables() if e == var(d)}
        if len(index) < len(read.index) or len(at) < len(writer.dims) or any(e.substitute(at, known) != f for e, f in index):
            return False
        held = {(c.expr, c.equality) for c in self.reader.domain}
        there = {(c.expr.substitute(at, known), c.equality) for c in writer.domain} - held
        if not all(e == ZERO if equality else e.interval(known)[0] >= 0 for e, equality in there):
            return False
        later = (mine - theirs.substitute(at, known) for mine, theirs in zip(self.time, time, strict=True))
        return next((e for e in later if e != ZERO), ZERO).interval(known)[0] > 0

    def by_isl(self) -> isl.Set | None:
        use = access(self.reader, self.slot, self.array)
        missing, mine = use.domain(), value_map(self.reader, self.time)
        for writer, time in self.writers:
            pairs = access(writer, len(writer.reads), self.array).apply_range(use.reverse())
            missing = missing.subtract(pairs.intersect(value_map(writer, time).lex_lt_map(mine)).range())
            if missing.is_empty():
                return None
        return missing


def first_reads(program: Program, array: Array) -> Iterator[tuple[Statement, int, isl.Set]]:
    """Each use that reads `array`, with the instances at which no write of the element comes before: never an empty set.

    A reduction's own updates start nothing: the first of them reads what was there.
    """
    times = original_times(program)
    for reader in program.statements:
        writers = tuple((w, times[w.name]) for w in program.statements
                        if w.target.array == array.name and not (w.update and w.name == reader.name))
        for slot in [*range(len(reader.reads)), *([len(reader.reads)] if reader.update else [])]:
            if reader.accesses[slot].array == array.name:
                missing = decide(_First(reader, slot, array, times[reader.name], writers))
                if missing is not None:
                    yield reader, slot, missing


@alone
def uninitialised(program: Program) -> tuple[str, int, tuple[int, ...]] | None:
    """The first read of an output or temporary that no write precedes: (statement, slot, instance), or None."""
    found = [(reader.name, slot, smallest(missing)) for array in program.arrays if array.role in ("out", "temporary")
             for reader, slot, missing in first_reads(program, array)]
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
    roles = dict.fromkeys(declared, "inout")
    for array in written:
        if next(first_reads(program, array), None) is not None:
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
