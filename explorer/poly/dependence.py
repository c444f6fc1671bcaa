"""Exact dependences of a program: flow, anti, output, and the reductions' own, memory-based; and its value flow.

A dependence relates two instances that touch one element, at least one of them writing, source before sink in
program order.  Two updates of one element by one operation, of the same statement or of two, may run in either order
(the operation is associative and commutative): such pairs are the *reduction* dependences and are left out of the
ordered ones.
References: Feautrier, "Dataflow analysis of array and scalar references" (IJPP 1991); Verdoolaege, "Presburger
Formulas and Polyhedral Compilation", chapter 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from ..errors import Undecided
from ..ir.expr import Expr, const, var
from ..ir.memo import per_program
from ..ir.program import Array, Program, Statement
from ..ir.tree import Kernel, Leaf, Loop, leaves
from .isl import LIMIT, alone, budget, smallest
from .linear import Tuple, box, build_set
from .relations import access, domain, position_path, time_depth, value_map


@dataclass(frozen=True, eq=False)
class Dependence:
    """All dependences of one kind between two statements through one array.

    Attributes
    ----------
    kind : str
        ``"flow"`` (write then read), ``"anti"`` (read then write), ``"output"`` (write then write), ``"reduction"``.
    source, sink : str
        Statement names.
    array : str
    relation : isl.Map
        ``{ source[i] -> sink[j] }``, every pair, transitively covered ones included.
    """

    kind: str
    source: str
    sink: str
    array: str
    relation: isl.Map

    def __str__(self) -> str:
        pairs = smallest(self.relation)
        n = self.relation.dim(isl.dim_type.in_)
        first = f"{self.source}[{', '.join(map(str, pairs[:n]))}] → {self.sink}[{', '.join(map(str, pairs[n:]))}]"
        return f"{self.kind:9s} {self.source} → {self.sink} on {self.array}, first {first}"


@dataclass(frozen=True, eq=False)
class Flow:
    """Which write a read gets its value from: ``{ writer[i] -> reader[j] }`` for one array and access slot.

    For an element that a reduction updates, every update since the last plain write is a supplier.
    """

    source: str
    sink: str
    slot: int
    array: str
    relation: isl.Map


@dataclass(frozen=True, eq=False)
class ProgramFacts:
    """Dependences of a program, computed once.

    Attributes
    ----------
    ordered : tuple of Dependence
        Flow, anti and output dependences that an order of execution must respect.
    reductions : tuple of Dependence
        Pairs of updates of one element by one operation.
    flow : tuple of Flow
        Value-based flow, that between two updates by one operation included.
    """

    program: Program
    ordered: tuple[Dependence, ...]
    reductions: tuple[Dependence, ...]
    flow: tuple[Flow, ...]

    def __str__(self) -> str:
        return "\n".join(str(d) for d in (*self.ordered, *self.reductions)) or "no dependences"


def original_order(program: Program) -> dict[str, isl.Map]:
    """Statement to its time in the program as written: ``{ S[d] -> T[…] }``."""
    times = ((program.statement_of[name], time) for name, time in original_times(program).items())
    return {s.name: value_map(s, time, "T").intersect_domain(domain(s)) for s, time in times}


def original_times(program: Program) -> dict[str, tuple[Expr, ...]]:
    """The time of each statement in the program as written, over its dimensions."""
    kernel = Kernel("", program.body)
    depth = time_depth(kernel)
    out: dict[str, tuple[Expr, ...]] = {}
    for leaf, path, loops in _paths(kernel):
        dims = [value_of(loop, leaf) for loop in loops]
        time = [part for position, dim in zip(path, dims, strict=False) for part in (const(position), dim)] + [const(path[-1])]
        out[leaf.statement] = (*time, *[const(0)] * (2 * depth + 1 - len(time)))
    return out


def value_of(loop: Loop, leaf: Leaf) -> Expr:
    """The loop's value over the statement's dimensions: its own dimension, or through the leaf's inverse."""
    return dict(leaf.when).get(loop.id, var(loop.id))


def _paths(kernel: Kernel) -> Iterator[tuple[Leaf, tuple[int, ...], tuple[Loop, ...]]]:
    for leaf, above in leaves(kernel.body):
        path = position_path(kernel.body, leaf.id)
        assert path is not None
        yield leaf, path, above


def _in_order(relation: isl.Map, before: isl.Map, after: isl.Map) -> isl.Map:
    """The pairs of `relation` whose source comes strictly first."""
    ordered = before.lex_lt_map(after)
    return relation.intersect(ordered).coalesce()


def same_element(program: Program, a: Statement, slot_a: int, b: Statement, slot_b: int) -> isl.Map:
    """All pairs of instances whose two accesses touch one element."""
    array = program.array_of[a.accesses[slot_a].array]
    return access(a, slot_a, array).apply_range(access(b, slot_b, array).reverse())


def are_peers(a: Statement, b: Statement) -> bool:
    """Whether the updates of two statements are by one operation, into one array: those of one element may change places.

    What the statements read of the array beside is another access, whose dependences keep their order.
    """
    return bool(a.update) and a.update == b.update and a.target.array == b.target.array


def analyse(program: Program) -> ProgramFacts:
    """Dependences and value flow of a program; cached by the program's value.

    Parameters
    ----------
    program : Program

    Returns
    -------
    ProgramFacts

    Raises
    ------
    Undecided
        If they take longer to find than the budget of the analysis; that is remembered, too.
    """
    found = _answer(program)
    if isinstance(found, Undecided):
        raise found.with_traceback(None)
    return found


@per_program(1)
@alone
def _answer(program: Program) -> ProgramFacts | Undecided:
    try:
        with budget(LIMIT):
            return _analysed(program)
    except Undecided as error:
        return error


def _analysed(program: Program) -> ProgramFacts:
    order = original_order(program)
    uses = [(s, slot) for s in program.statements for slot in range(len(s.accesses))]
    ordered: dict[tuple[str, str, str, str], isl.Map] = {}
    reductions: list[Dependence] = []
    written: dict[tuple[str, str, int], isl.Map] = {}
    for a, slot_a in uses:
        for b, slot_b in uses:
            if a.accesses[slot_a].array != b.accesses[slot_b].array:
                continue
            writes_a, writes_b = slot_a == len(a.reads), slot_b == len(b.reads)
            if not (writes_a or writes_b):
                continue
            pairs = _in_order(same_element(program, a, slot_a, b, slot_b), order[a.name], order[b.name])
            if pairs.is_empty():
                continue
            name = a.accesses[slot_a].array
            if writes_a:
                written[a.name, b.name, slot_b] = pairs
            if writes_a and writes_b and are_peers(a, b):
                reductions.append(Dependence("reduction", a.name, b.name, name, pairs))
                continue
            reads_b = not writes_b or b.update
            kind = ("flow" if reads_b else "output") if writes_a else "anti"
            key = (kind, a.name, b.name, name)
            ordered[key] = ordered[key].union(pairs) if key in ordered else pairs
    found = tuple(Dependence(*key, relation.coalesce()) for key, relation in ordered.items())
    return ProgramFacts(program, found, tuple(reductions), tuple(_value_flow(program, written)))


Written = dict[tuple[str, str, int], isl.Map]
"""Writer, user and the user's slot to the pairs of instances on one element, the write first."""


def _value_flow(program: Program, written: Written) -> Iterator[Flow]:
    """Suppliers of each read: the last plain write of the element and all updates after it."""
    for reader in program.statements:
        slots = [*range(len(reader.reads)), *([len(reader.reads)] if reader.update else [])]
        for slot in slots:
            array = reader.accesses[slot].array
            writers = [w for w in program.statements if w.target.array == array]
            plain = [] if _written_once(writers, written) else [w for w in writers if not w.update]
            for w in writers:
                pairs = written.get((w.name, reader.name, slot))
                if pairs is None or (w.name == reader.name and slot == len(reader.reads)):
                    continue
                left = _last(written, w, plain, reader, slot)
                if not left.is_empty():
                    yield Flow(w.name, reader.name, slot, array, left.coalesce())


def _written_once(writers: list[Statement], written: Written) -> bool:
    """Whether nothing ever overwrites an element: then every write before a read supplies it."""
    plain = [w for w in writers if not w.update]
    return len(plain) <= 1 and not any((w.name, p.name, len(p.reads)) in written for p in plain for w in writers)


def _last(written: Written, writer: Statement, plain: list[Statement], reader: Statement, slot: int) -> isl.Map:
    """The pairs of a write and a read of its element with no plain write of that element in between.

    A write touches one element, so that "the write comes before another write of its element, and that one before the
    read" is one relation after the other.  isl's own dataflow analysis looks for a parametric maximum instead, and
    writes outside its arrays where two quotients of a bound become one.
    """
    pairs = written[writer.name, reader.name, slot]
    for p in plain:
        before, after = written.get((writer.name, p.name, len(p.reads))), written.get((p.name, reader.name, slot))
        if before is not None and after is not None:
            pairs = pairs.subtract(before.apply_range(after))
    return pairs


def elements(array: Array) -> isl.Set:
    """All elements of an array."""
    element = Tuple(array.name, "a", tuple(map(str, range(len(array.shape)))))
    return build_set(element, box(((var(n), 0, size) for n, size in zip(element.variables, array.shape, strict=True)), "a"))


def out_of_bounds(program: Program) -> tuple[str, int, tuple[int, ...]] | None:
    """The first affine access outside its array: (statement, slot, instance), or None."""
    for statement in program.statements:
        for slot, use in enumerate(statement.accesses):
            array = program.array_of[use.array]
            outside = access(statement, slot, array).subtract_range(elements(array))
            if not outside.is_empty():
                return statement.name, slot, smallest(outside.domain())
    return None
