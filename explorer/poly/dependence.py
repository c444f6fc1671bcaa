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
from functools import lru_cache, reduce

import islpy as isl

from ..errors import Undecided
from ..ir.expr import Expr, const, var
from ..ir.memo import per_program
from ..ir.program import Array, Program, Statement
from ..ir.tree import Kernel, Leaf, Loop, leaves
from .isl import LIMIT, alone, budget, smallest
from .linear import Tuple, box, build_set
from .relations import access, accessing, domain, position_path, time_depth, value_map


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
    index : tuple of Expr
        Of a staged copy, its instance over the sink's dimensions, as the sink's view has it; else nothing.
    """

    kind: str
    source: str
    sink: str
    array: str
    relation: isl.Map
    index: tuple[Expr, ...] = ()

    def __str__(self) -> str:
        pairs = smallest(self.relation)
        n = self.relation.dim(isl.dim_type.in_)
        first = f"{self.source}[{', '.join(map(str, pairs[:n]))}] → {self.sink}[{', '.join(map(str, pairs[n:]))}]"
        return f"{self.kind:9s} {self.source} → {self.sink} on {self.array}, first {first}"


@dataclass(frozen=True, eq=False)
class Flow:
    """Which write a read gets its value from: ``{ writer[i] -> reader[j] }`` for one array and access slot.

    For an element that a reduction updates, every update since the last plain write is a supplier.  `index` is that of
    :class:`Dependence`.
    """

    source: str
    sink: str
    slot: int
    array: str
    relation: isl.Map
    index: tuple[Expr, ...] = ()


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
    times = original_times(program)
    uses = [(s, slot) for s in program.statements for slot in range(len(s.accesses))]
    ordered: dict[tuple[str, str, str, str], list[_Touch]] = {}
    reductions: list[Dependence] = []
    written: Written = {}
    for a, slot_a in uses:
        for b, slot_b in uses:
            if a.accesses[slot_a].array != b.accesses[slot_b].array:
                continue
            writes_a, writes_b = slot_a == len(a.reads), slot_b == len(b.reads)
            if not (writes_a or writes_b):
                continue
            name = a.accesses[slot_a].array
            touch = _Touch(accessing(a, slot_a), accessing(b, slot_b), program.array_of[name],
                           *_compared(times[a.name], times[b.name]))
            if _pairs(touch).is_empty():
                continue
            if writes_a:
                written[a.name, b.name, slot_b] = touch
            if writes_a and writes_b and are_peers(a, b):
                reductions.append(_dependence("reduction", a.name, b.name, name, (touch,)))
                continue
            reads_b = not writes_b or b.update
            kind = ("flow" if reads_b else "output") if writes_a else "anti"
            ordered.setdefault((kind, a.name, b.name, name), []).append(touch)
    found = tuple(_dependence(*key, tuple(touches)) for key, touches in ordered.items())
    return ProgramFacts(program, found, tuple(reductions), tuple(_value_flow(program, written)))


Times = tuple[Expr, ...]


@dataclass(frozen=True)
class _Touch:
    """Two accesses of one array, each by a statement without others, and the times of these: what their pairs depend on."""

    source: Statement
    sink: Statement
    array: Array
    before: Times
    after: Times


def _compared(a: Times, b: Times) -> tuple[Times, Times]:
    """Two times, so that those compare alike that do: positions in the text by which stands first, without what cannot matter."""
    first, second = list[Expr](), list[Expr]()
    for e, f in zip(a, b, strict=True):
        if e.is_constant and f.is_constant:
            if e == f:
                continue
            first.append(const(int(e.const > f.const)))
            second.append(const(int(e.const < f.const)))
            break
        first.append(e)
        second.append(f)
    return tuple(first), tuple(second)


@lru_cache(maxsize=4096)
def _pairs(of: _Touch) -> isl.Map:
    """The pairs of instances whose accesses touch one element, the source strictly first."""
    before, after = (value_map(s, time, "T").intersect_domain(domain(s))
                     for s, time in ((of.source, of.before), (of.sink, of.after)))
    touching = access(of.source, 0, of.array).apply_range(access(of.sink, 0, of.array).reverse())
    return touching.intersect(before.lex_lt_map(after)).coalesce()


@lru_cache(maxsize=4096)
def _dependence(kind: str, source: str, sink: str, array: str, touches: tuple[_Touch, ...]) -> Dependence:
    """One object for one dependence, whichever program it is of: what is known of it stays where a step changes others."""
    pairs = reduce(isl.Map.union, map(_pairs, touches))
    return Dependence(kind, source, sink, array, pairs if kind == "reduction" else pairs.coalesce())


Written = dict[tuple[str, str, int], _Touch]
"""Writer, user and the user's slot to their accesses of one element, the write first."""


def _value_flow(program: Program, written: Written) -> Iterator[Flow]:
    """Suppliers of each read: the last plain write of the element and all updates after it."""
    for reader in program.statements:
        slots = [*range(len(reader.reads)), *([len(reader.reads)] if reader.update else [])]
        for slot in slots:
            array = reader.accesses[slot].array
            writers = [w for w in program.statements if w.target.array == array]
            plain = [] if _written_once(writers, written) else [w for w in writers if not w.update]
            for w in writers:
                touch = written.get((w.name, reader.name, slot))
                if touch is None or (w.name == reader.name and slot == len(reader.reads)):
                    continue
                over = ((written.get((w.name, p.name, len(p.reads))), written.get((p.name, reader.name, slot))) for p in plain)
                if flow := _flow(w.name, reader.name, slot, array, touch, tuple((x, y) for x, y in over if x and y)):
                    yield flow


def _written_once(writers: list[Statement], written: Written) -> bool:
    """Whether nothing ever overwrites an element: then every write before a read supplies it."""
    plain = [w for w in writers if not w.update]
    return len(plain) <= 1 and not any((w.name, p.name, len(p.reads)) in written for p in plain for w in writers)


@lru_cache(maxsize=4096)
def _flow(source: str, sink: str, slot: int, array: str, touch: _Touch, over: tuple[tuple[_Touch, _Touch], ...]) -> Flow | None:
    """The pairs of a write and a read of its element with no plain write of that element in between; None if there are none.

    A write touches one element, so that "the write comes before another write of its element, and that one before the
    read" is one relation after the other.  isl's own dataflow analysis looks for a parametric maximum instead, and
    writes outside its arrays where two quotients of a bound become one.
    """
    pairs = _pairs(touch)
    for before, after in over:
        pairs = pairs.subtract(_pairs(before).apply_range(_pairs(after)))
    return None if pairs.is_empty() else Flow(source, sink, slot, array, pairs.coalesce())


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
