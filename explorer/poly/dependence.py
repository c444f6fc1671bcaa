"""Exact dependences of a program: flow, anti, output, and the reductions' own, memory-based; and its value flow.

A dependence relates two instances that touch one element, at least one of them writing, source before sink in
program order.  Two updates of one element by the same reduction statement may run in either order (the operation is
associative and commutative): such pairs are the *reduction* dependences and are left out of the ordered ones.
References: Feautrier, "Dataflow analysis of array and scalar references" (IJPP 1991); Verdoolaege, "Presburger
Formulas and Polyhedral Compilation", chapter 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr, const, var
from ..ir.program import Program, Statement
from ..ir.tree import Kernel, Leaf, Loop, leaves
from .isl import alone, smallest
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
        Pairs of updates of one element by one reduction.
    flow : tuple of Flow
        Value-based flow.
    """

    program: Program
    ordered: tuple[Dependence, ...]
    reductions: tuple[Dependence, ...]
    flow: tuple[Flow, ...]

    def __str__(self) -> str:
        return "\n".join(str(d) for d in (*self.ordered, *self.reductions)) or "no dependences"


def original_order(program: Program) -> dict[str, isl.Map]:
    """Statement to its time in the program as written: ``{ S[d] -> T[…] }``."""
    kernel = Kernel("", program.body)
    depth = time_depth(kernel)
    out: dict[str, isl.Map] = {}
    for leaf, path, loops in _paths(kernel):
        statement = program.statement_of[leaf.statement]
        dims = [value_of(loop, leaf) for loop in loops]
        time = [part for position, dim in zip(path, dims, strict=False) for part in (const(position), dim)] + [const(path[-1])]
        time += [const(0)] * (2 * depth + 1 - len(time))
        out[statement.name] = value_map(statement, tuple(time), "T").intersect_domain(domain(statement))
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


@lru_cache(maxsize=256)
@alone
def analyse(program: Program) -> ProgramFacts:
    """Dependences and value flow of a program; cached by the program's value.

    Parameters
    ----------
    program : Program

    Returns
    -------
    ProgramFacts
    """
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
            if a.name == b.name and writes_a and writes_b and a.update:
                reductions.append(Dependence("reduction", a.name, b.name, name, pairs))
                continue
            reads_b = not writes_b or b.update
            kind = ("flow" if reads_b else "output") if writes_a else "anti"
            key = (kind, a.name, b.name, name)
            ordered[key] = ordered[key].union(pairs) if key in ordered else pairs
    found = tuple(Dependence(*key, relation.coalesce()) for key, relation in ordered.items())
    return ProgramFacts(program, found, tuple(reductions), tuple(_value_flow(program, order, written)))


Written = dict[tuple[str, str, int], isl.Map]
"""Writer, user and the user's slot to the pairs of instances on one element, the write first."""


def _value_flow(program: Program, order: dict[str, isl.Map], written: Written) -> Iterator[Flow]:
    """Suppliers of each read: the last plain write of the element and all updates after it."""
    for reader in program.statements:
        slots = [*range(len(reader.reads)), *([len(reader.reads)] if reader.update else [])]
        for slot in slots:
            array = program.array_of[reader.accesses[slot].array]
            writers = [w for w in program.statements if w.target.array == array.name]
            if not writers:
                continue
            found = (((w.name, pairs) for w in writers if (pairs := written.get((w.name, reader.name, slot))) is not None)
                     if _written_once(writers, written) else _last_writes(program, order, reader, slot, writers))
            for source, pairs in found:
                if source != reader.name or slot < len(reader.reads):
                    yield Flow(source, reader.name, slot, array.name, pairs.coalesce())


def _written_once(writers: list[Statement], written: Written) -> bool:
    """Whether nothing ever overwrites an element: then every write before a read supplies it."""
    plain = [w for w in writers if not w.update]
    return len(plain) <= 1 and not any((w.name, p.name, len(p.reads)) in written for p in plain for w in writers)


def _last_writes(program: Program, order: dict[str, isl.Map], reader: Statement, slot: int,
                 writers: list[Statement]) -> Iterator[tuple[str, isl.Map]]:
    """Each supplier of a read with its pairs, by isl's dataflow analysis."""
    array = program.array_of[reader.accesses[slot].array]
    info = isl.UnionAccessInfo.from_sink(isl.UnionMap.from_map(access(reader, slot, array)))
    must, may, schedule = isl.UnionMap("{ }"), isl.UnionMap("{ }"), isl.UnionMap("{ }")
    for w in writers:
        relation = isl.UnionMap.from_map(access(w, len(w.reads), array))
        must, may = (must, may.union(relation)) if w.update else (must.union(relation), may)
    for name in {reader.name, *(w.name for w in writers)}:
        schedule = schedule.union(isl.UnionMap.from_map(order[name]))
    info = info.set_must_source(must).set_may_source(may).set_schedule_map(schedule)
    pairs = info.compute_flow().get_may_dependence()
    for part in (pairs.get_map_list().get_at(i) for i in range(pairs.n_map())):
        yield part.get_tuple_name(isl.dim_type.in_), part


def uninitialised(program: Program) -> tuple[str, int, tuple[int, ...]] | None:
    """The first read of an output or temporary that no write precedes: (statement, slot, instance), or None."""
    facts = analyse(program)
    for reader in program.statements:
        for slot in [*range(len(reader.reads)), *([len(reader.reads)] if reader.update else [])]:
            array = program.array_of[reader.accesses[slot].array]
            if array.role not in ("out", "temporary"):
                continue
            missing = access(reader, slot, array).domain()
            writes = [f for f in facts.flow if f.sink == reader.name and f.slot == slot]
            for f in writes:
                if not program.statement_of[f.source].update or f.source != reader.name:
                    missing = missing.subtract(f.relation.range())
            if not missing.is_empty():
                return reader.name, slot, smallest(missing)
    return None


def out_of_bounds(program: Program) -> tuple[str, int, tuple[int, ...]] | None:
    """The first affine access outside its array: (statement, slot, instance), or None."""
    for statement in program.statements:
        for slot, use in enumerate(statement.accesses):
            array = program.array_of[use.array]
            element = Tuple(array.name, "a", tuple(map(str, range(len(array.shape)))))
            axes = ((var(n), 0, size) for n, size in zip(element.variables, array.shape, strict=True))
            inside = build_set(element, box(axes, "a"))
            outside = access(statement, slot, array).subtract_range(inside)
            if not outside.is_empty():
                return statement.name, slot, smallest(outside.domain())
    return None
