"""Exact counts on a program: instances, operations, and the bytes that any schedule has to move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce

import islpy as isl

from ..ir.expr import const, var
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.program import Array, Program, Statement
from ..ir.scalar import common
from ..ir.scalar import flops as scalar_flops
from ..ir.tree import Loop, ranges
from .dependence import analyse
from .isl import Undecided, alone, budget, size_of
from .linear import Tuple, box, build_set, equal, function, holds
from .points import count_points
from .relations import access
from .sites import Site
from .tensor import is_product, significand_of

NARROW = 4
"""Bytes of a number below which tensor instructions take it as it is."""
BUDGET = 20_000_000
"""Operations of isl for one count; beyond, an upper bound is given and marked."""


@dataclass(frozen=True)
class Elements:
    """How many elements of a parameter have to be read and written at least once.

    Attributes
    ----------
    array : str
    read, written : int
        Distinct elements.  `read` counts those whose first value comes from outside.
    element_bytes : int
    exact : bool
        False where a count is an upper bound (the operation budget ended, or the index is data-dependent).
    """

    array: str
    read: int
    written: int
    element_bytes: int
    exact: bool

    @property
    def bytes(self) -> int:
        """Bytes moved when each element moves once in each direction."""
        return (self.read + self.written) * self.element_bytes


@alone
def instances(of: Plan | Program) -> dict[str, int]:
    """How often each statement runs.

    Parameters
    ----------
    of : Plan or Program
        For a plan, the statements that the schedule added are counted too.

    Returns
    -------
    dict
        Statement name to number of instances, exact.
    """
    statements = (*of.program.statements, *of.copies) if isinstance(of, Plan) else of.statements
    return {s.name: _count_domain(s) for s in statements}


@lru_cache(maxsize=4096)
def _count_domain(statement: Statement) -> int:
    """Product over groups of dimensions that no constraint ties together."""
    groups: list[set[str]] = [{d} for d in statement.dims]
    for c in statement.domain:
        tied = [g for g in groups if g & c.expr.variables()]
        groups = [g for g in groups if g not in tied] + ([set().union(*tied)] if tied else [])
    if any(not c.holds({}) for c in statement.domain if not c.expr.variables()):
        return 0
    total = 1
    for group in groups:
        held = [c for c in statement.domain if c.expr.variables() and c.expr.variables() <= group]
        names = tuple(sorted(group))
        points = build_set(Tuple("", "d", names), [holds(c, "d") for c in held])
        if points.is_empty():
            return 0
        total *= count_points(held, {name: (int(points.dim_min_val(n).to_python()), int(points.dim_max_val(n).to_python()))
                                     for n, name in enumerate(names)})
    return total


@alone
def flops(program: Program) -> int:
    """Arithmetic operations of one run: each instance's operations by the table's costs, one more for an update."""
    return sum(n * (scalar_flops(s.value) + bool(s.update)) for s, n in
               ((s, _count_domain(s)) for s in program.statements))


def arithmetic_type(program: Program) -> str:
    """The type of the fastest arithmetic that a program has a use for, by whose peak rate nothing is faster.

    A product that is summed counts with the type of its factors, because tensor instructions take those whatever they sum in;
    other arithmetic counts with the common type of the results.
    """
    products = [s for s in program.statements if is_product(s)]
    for s in products:
        left, right = (program.array_of[r.array].dtype for r in s.reads)
        if significand_of(s):
            return "tf32"
        if max(left.bytes, right.bytes) < NARROW:
            return left.name if left == right else f"{left.name}, {right.name}"
    types = [program.array_of[s.target.array].dtype for s in program.statements]
    return common(types).name if types else "f32"


def compulsory_bytes(program: Program) -> int:
    """Bytes to and from memory that no schedule avoids: each input element read once, each result written once.

    Parameters
    ----------
    program : Program

    Returns
    -------
    int
        Exact, or an upper bound where `compulsory` says so.
    """
    return sum(e.bytes for e in compulsory(program))


@per_program(1)
@alone
def compulsory(program: Program) -> tuple[Elements, ...]:
    """Distinct elements read and written, for each parameter."""
    return tuple(_elements(program, a) for a in program.parameters)


def _elements(program: Program, array: Array) -> Elements:
    reads, affine = [], True
    for s in program.statements:
        slots = [i for i, use in enumerate(s.reads) if use.array == array.name]
        slots += [len(s.reads)] if s.update and s.target.array == array.name else []
        for slot in slots:
            relation = access(s, slot, array)
            for f in analyse(program).flow if array.role != "in" else ():
                if (f.sink, f.slot, f.array) == (s.name, slot, array.name):
                    relation = relation.subtract_domain(f.relation.range())
            reads.append(relation)
            affine &= s.accesses[slot].affine
    writes = [access(s, len(s.reads), array) for s in program.statements if s.target.array == array.name]
    read, one = (0, True) if array.role == "out" else _count_images(reads, array)
    written, two = _count_images(writes, array)
    return Elements(array.name, read, written, array.dtype.bytes, one and two and affine)


def _count_images(relations: list[isl.Map], array: Array) -> tuple[int, bool]:
    """How many elements the relations reach; for a data-dependent index no more than there are instances."""
    if not relations:
        return 0, True
    try:
        with budget(BUDGET):
            image = reduce(isl.Set.union, (r.range() for r in relations)).coalesce()
            count = array.size if _whole(array).is_subset(image) else size_of(image)
            if all(r.is_single_valued() for r in relations):
                return count, True
            return min(count, sum(size_of(r.domain()) for r in relations)), False
    except Undecided:
        return array.size, False


def _whole(array: Array) -> isl.Set:
    """All elements of an array: counting them one by one takes isl long, and most programs reach them all."""
    element = Tuple(array.name, "=", tuple(map(str, range(len(array.shape)))))
    return build_set(element, box(((var(v), 0, n) for v, n in zip(element.variables, array.shape, strict=True)), "="))


@alone
def footprint(site: Site, loop: str = "") -> tuple[int, bool]:
    """Distinct cells that an access touches in one iteration of a loop (its first; all loops outside at their start).

    Parameters
    ----------
    site : Site
    loop : str
        One of the site's loops; ``""`` for the whole kernel.

    Returns
    -------
    cells : int
    exact : bool
        False where the count is the number of cells of the bounding box.
    """
    outer: list[Loop] = []
    for x in site.above if loop else ():
        outer.append(x)
        if x.id == loop:
            break
    fixed = [equal(var(x.id), "a", const(x.start), "a") for x in outer]
    cell = [e for e in site.cell if e is not None]
    try:
        with budget(BUDGET):
            reached = function(site.loops("a"), "", cell, [*site.conditions("a"), *fixed])
            return size_of(reached.range()), True
    except Undecided:
        scope = {**ranges(site.above), **{x.id: (x.start, x.start) for x in outer}}
        extents = [e.interval(scope) for e in site.cell if e is not None]
        return reduce(lambda n, b: n * (b[1] - b[0] + 1), extents, 1), False
