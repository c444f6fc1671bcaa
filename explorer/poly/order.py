"""Question two, *order*: every dependence's source runs before its sink.

"Before" means an earlier launch, or the same block at an earlier time.  Two blocks of one launch have no order; two
threads at one time have none either (barriers make an earlier time visible; they are derived from the order).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import islpy as isl

from ..errors import Undecided
from ..ir.expr import Expr
from ..ir.finding import Finding, Findings, Instance, Proving
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.program import Statement
from ..ir.scalar import Call, Read, Scalar
from ..ir.text import written_text
from .decide import OPEN, Maybe, Question, decide
from .deduce import Facts, over
from .dependence import Dependence
from .dependence_hull import dimension_facts, least
from .isl import alone, smallest
from .order_trips import lost
from .parting import cut_between
from .placed import Placed, place_exprs, place_leaves
from .plan_facts import facts
from .relations import FAR, idle, value_map
from .undivided import undivided

Values = tuple[tuple[Expr, ...], tuple[Expr, ...]]
"""The same coordinates of source and sink, over their statements' dimensions."""


def check_order(plan: Plan, placed: dict[str, list[Placed]]) -> Sequence[Finding]:
    """Every dependence is respected; each finding has the smallest violating pair.

    That of the first is found here, those of the others when they are read: a pair costs more than the verdict.
    """
    whole = undivided(plan)
    lost, here = broken(whole), {p.leaf.id: p for found in placed.values() for p in found}
    if lost and len(here) != len(whole.leaves):  # leaves of parts of a loop were one
        lost = broken(plan)
    lost = (*(x._replace(source=here[x.source.leaf.id], sink=here[x.sink.leaf.id]) for x in lost), *_apart(plan, placed))
    if not lost:
        return ()
    first = _order_finding(plan, lost[0])
    return Findings(first, tuple(partial(_other_finding, plan, x) for x in lost[1:]))


@per_program(512)
def broken(plan: Plan) -> tuple[Broken, ...]:
    """The dependences that a plan does not respect, with the leaves in which the pairs run."""
    placed = place_leaves(plan)
    lost: list[Broken] = []
    for d in facts(plan).ordered:
        for a in placed.get(d.source, []):
            for b in placed.get(d.sink, []):
                if a.launch >= b.launch and (found := _order_pair(plan, d, a, b)) is not None:
                    lost.append(Broken(d, a, b, *found))
    return tuple(lost)


def _apart(plan: Plan, placed: dict[str, list[Placed]]) -> Iterator[Broken]:
    """Updates of one element in two leaves that different blocks of one launch would make."""
    for d in facts(plan).reductions:
        for a in placed.get(d.source, []):
            for b in placed.get(d.sink, []):
                if _separate(a, b) and (across := _across(plan, d, a, b)) is not None:
                    yield Broken(d, a, b, across, "another block of the same launch")


class Broken(NamedTuple):
    """A dependence between two leaves that is not respected: the pairs of instances, and when the sink runs instead."""

    dependence: Dependence
    source: Placed
    sink: Placed
    pairs: isl.Map
    when: str


def _separate(a: Placed, b: Placed) -> bool:
    """Whether two leaves update in one launch, not both by atomics: updates of one leaf are for *obligations* to judge."""
    atomics = all("atomic" in dict(x.leaf.collect).values() for x in (a, b))
    return a.leaf.id != b.leaf.id and a.launch == b.launch and not atomics


def _order_pair(plan: Plan, d: Dependence, a: Placed, b: Placed) -> tuple[isl.Map, str] | None:
    """The pairs that would run in another order, and when; None where there are none."""
    if a.launch > b.launch:
        pairs = decide(Pairs.of(d, a, b))
        return None if pairs.is_empty() else (pairs, "a later launch")
    if (across := _across(plan, d, a, b)) is not None:
        return across, "another block of the same launch"
    late = decide(_Late(Pairs.of(d, a, b), _times(a, b), _turn(a, b)))
    if late is None:
        return None
    same = _equal(a.statement, b.statement, _times(a, b))
    only_same = late.is_subset(same) if a.leaf.id == b.leaf.id else False
    return late, "another thread at the same time" if only_same else "a later time"


@dataclass(frozen=True)
class Pairs(Question[isl.Map]):
    """The pairs of a dependence between the instances of two leaves.

    Attributes
    ----------
    dependence : Dependence
    source, sink : Statement
    leaves : tuple
        What determines the instances of both leaves.
    runs : tuple of isl.Set
        These instances.
    """

    dependence: Dependence
    source: Statement
    sink: Statement
    leaves: tuple
    runs: tuple[isl.Set, isl.Set] = field(compare=False)

    @staticmethod
    def of(d: Dependence, a: Placed, b: Placed) -> Pairs:
        """The question about two placed leaves."""
        return Pairs(d, idle(a.statement), idle(b.statement), (a.leaf.when, a.boxes, b.leaf.when, b.boxes), (a.run, b.run))

    @property
    def facts(self) -> Facts | None:
        """What follows from the equalities that hold on the dependence; None where it has no pairs."""
        return dimension_facts(self.dependence, self.source, self.sink)

    def by_isl(self) -> isl.Map:
        """The dependence, restricted on both sides."""
        return self.dependence.relation.intersect_domain(self.runs[0]).intersect_range(self.runs[1])


def _times(a: Placed, b: Placed) -> Values:
    """Values of the common loops that run in order, outermost first."""
    when_a, when_b = dict(a.leaf.when), dict(b.leaf.when)
    names = [x.id for x, y in zip(a.above, b.above, strict=False) if x.id == y.id and not x.is_place]
    return tuple(when_a[n] for n in names), tuple(when_b[n] for n in names)


def _turn(a: Placed, b: Placed) -> int:
    """-1 if the first leaf stands before the second, 1 if behind it, 0 if they are one."""
    return -1 if a.path < b.path else 1 if a.path > b.path else 0


def _equal(a: Statement, b: Statement, values: Values) -> isl.Map:
    return value_map(a, values[0]).apply_range(value_map(b, values[1]).reverse())


def _in_order(pairs: Pairs, times: Values, turn: int) -> bool:
    """Whether substitution shows that every source comes first: the first times that differ, or else the text, say so."""
    known = pairs.facts
    if known is None:
        return True
    for mine, theirs in zip(*times, strict=True):
        later = known.reduced(over(theirs, "b") - over(mine, "a"))
        low = max(later.interval(known.ranges)[0], _least(pairs, later))
        if low > 0:
            return True
        if low < 0:
            return False
    return turn < 0


def _least(pairs: Pairs, later: Expr) -> int:
    """The least value of ``second - first + const``, two plain dimensions of sink and source."""
    found = {c: a for a, c in later.terms if isinstance(a, str)}
    first, second = found.get(-1, ""), found.get(1, "")
    if len(later.terms) != 2 or not (first.startswith("a:") and second.startswith("b:")):
        return -FAR
    distance = least(pairs.dependence, pairs.source.dims.index(first[2:]), pairs.sink.dims.index(second[2:]))
    return -FAR if distance is None else distance + later.const


@dataclass(frozen=True)
class _Late(Question["isl.Map | None"]):
    """The pairs whose source does not come first in time, or None.

    Attributes
    ----------
    pairs : Pairs
    times : Values
        Of the common loops that run in order.
    turn : int
        Which leaf stands first where all these are equal.
    """

    pairs: Pairs
    times: Values
    turn: int

    def by_intervals(self) -> Maybe[isl.Map | None]:
        return None if _in_order(self.pairs, self.times, self.turn) else OPEN

    def by_isl(self) -> isl.Map | None:
        pairs = decide(self.pairs)
        if not self.times[0]:
            return None if self.turn < 0 or pairs.is_empty() else pairs
        source, sink = value_map(self.pairs.source, self.times[0]), value_map(self.pairs.sink, self.times[1])
        late = pairs.intersect(source.lex_gt_map(sink) if self.turn < 0 else source.lex_ge_map(sink))
        return None if late.is_empty() else late


def _across(plan: Plan, d: Dependence, a: Placed, b: Placed) -> isl.Map | None:
    """The pairs that run in different blocks of one launch, or None: of a loop that the host runs each iteration is a launch, and
    what stands beside it has one of its own before there is a text.
    """
    if _hosted(a) != _hosted(b):
        return None
    axes = [i for i in range(3) if not (_own_copy(plan, d, a, i) or _own_copy(plan, d, b, i))]
    everywhere = any(_replicated(plan, p) and p.free[i] for i in axes for p in (a, b))
    where_a, where_b = place_exprs(a), place_exprs(b)
    used = [i for i in axes if where_a[i] != Expr() or where_b[i] != Expr()]
    if not used and not everywhere:
        return None
    places: Values = (tuple(where_a[i] for i in used), tuple(where_b[i] for i in used))
    launches = _launches(a, b)
    return decide(_Apart(Pairs.of(d, a, b), places, launches, everywhere))


def _hosted(p: Placed) -> set[str]:
    return {x.id for x in p.above if x.role == "launch"}


def _launches(a: Placed, b: Placed) -> Values:
    """Values of the loops that the host runs (always outermost and common)."""
    when_a, when_b = dict(a.leaf.when), dict(b.leaf.when)
    names = [x.id for x, y in zip(a.above, b.above, strict=False) if x.id == y.id and x.role == "launch"]
    return tuple(when_a[n] for n in names), tuple(when_b[n] for n in names)


@dataclass(frozen=True)
class _Apart(Question["isl.Map | None"]):
    """The pairs of one launch whose places differ (all of them, if one side runs everywhere), or None."""

    pairs: Pairs
    places: Values
    launches: Values
    everywhere: bool

    def by_intervals(self) -> Maybe[isl.Map | None]:
        known = self.pairs.facts
        if known is None:
            return None
        together = not self.everywhere and all(known.zero(over(e, "a") - over(f, "b")) for e, f in zip(*self.places, strict=True))
        return None if together else OPEN

    def by_isl(self) -> isl.Map | None:
        pairs = decide(self.pairs)
        if self.launches[0]:
            pairs = pairs.intersect(_equal(self.pairs.source, self.pairs.sink, self.launches))
        if not self.everywhere:
            pairs = pairs.subtract(_equal(self.pairs.source, self.pairs.sink, self.places))
        return None if pairs.is_empty() else pairs


def _replicated(plan: Plan, p: Placed) -> bool:
    """Whether every place runs the leaf along unbound coordinates: its target is in registers or shared memory."""
    view = p.leaf.view(len(p.statement.reads))
    return view is not None and plan.buffer_of[view.buffer].space in ("register", "shared")


def _own_copy(plan: Plan, d: Dependence, p: Placed, axis: int) -> bool:
    """Whether each block along an unbound axis runs the leaf on its own copy of the dependence's array."""
    if not (p.free[axis] and _replicated(plan, p)):
        return False
    slots = [slot for slot, use in enumerate(p.statement.accesses) if use.array == d.array]
    views = [p.leaf.view(slot) for slot in slots]
    return bool(views) and all(v is not None and plan.buffer_of[v.buffer].space in ("register", "shared") for v in views)


_WORDS = {"flow": ("writes", "reads"), "anti": ("reads", "overwrites"), "output": ("writes", "overwrites"),
          "reduction": ("updates", "updates too")}


@alone
def _other_finding(plan: Plan, broken: Broken) -> Finding:
    """That of a dependence behind the first, in a time of its own."""
    try:
        return _order_finding(plan, broken)
    except Undecided as error:
        return Finding("order", error.what, error.why, hints=(error.hint,))


def _order_finding(plan: Plan, broken: Broken) -> Finding:
    d, a, b, pairs, when = broken
    point = smallest(pairs)
    n = len(a.statement.dims)
    source, sink = _instance(a, point[:n]), _instance(b, point[n:])
    element = _element(plan, a.statement, d.array, source.point)
    cell = f"{d.array}[{', '.join(map(str, element))}]" if element else d.array
    first, second = _WORDS[d.kind]
    what = f"{source} {first} {cell}, which {sink} {second}: this order would be lost"
    why = {
        "a later launch": f"in the program {source} runs first; now it would run in a later launch than {sink}",
        "another block of the same launch":
            f"now they would run in different blocks of one launch ({_where_text(source, sink)}), which have no order",
        "another thread at the same time":
            f"now they would run at the same time in different threads ({_where_text(source, sink)})",
        "a later time": f"in the program {source} runs first; now {sink} would run before it",
    }[when]
    carrying = _carrier(a, b, source, sink)
    staged = any(plan.buffer_of[view.buffer].space == "shared" for p in (a, b) for _, view in p.leaf.views)
    sized = Proving(lambda: lost(a, b, pairs, (source, sink))) if staged and when == "a later time" else None
    return Finding("order", what, why, d.array, element, d.kind, source, sink, (a.leaf.id, b.leaf.id, *carrying),
                   tuple(sorted({s.line for s in (a.statement, b.statement) if s.line})),
                   (*_as_extremum(a, b), *_hints(a, b, when, carrying)), sized)


def _carrier(a: Placed, b: Placed, source: Instance, sink: Instance) -> tuple[str, ...]:
    """The outermost common loop in which the two instances differ."""
    when_a, when_b = dict(a.leaf.when), dict(b.leaf.when)
    for x, y in zip(a.above, b.above, strict=False):
        if x.id != y.id:
            break
        at_a = when_a[x.id].evaluate(dict(zip(a.statement.dims, source.point, strict=True)))
        at_b = when_b[x.id].evaluate(dict(zip(b.statement.dims, sink.point, strict=True)))
        if at_a != at_b:
            return (x.id,)
    return ()


def _hints(a: Placed, b: Placed, when: str, carrying: tuple[str, ...]) -> tuple[str, ...]:
    if when == "another block of the same launch":
        calls = cut_between(a.kernel, (a.above, a.leaf), (b.above, b.leaf)) if a.kernel.id == b.kernel.id else ()
        cuts = (f"{' and '.join(calls)} first",) if calls else ()
        return (*cuts, *(f"bind('{name}', '{role}') instead" for name in carrying for role in ("thread.x", "seq")))
    if when == "another thread at the same time":
        return tuple(f"bind('{name}', 'seq') first" for name in carrying)
    if carrying and a.leaf.id == b.leaf.id:
        return (f"skew('{carrying[0]}', by='…', factor=1) first", f"skew('…', by='{carrying[0]}', factor=1) first")
    return tuple(f"distribute('{name}', after='…') first" for name in carrying)


def _as_extremum(a: Placed, b: Placed) -> tuple[str, ...]:
    """Where an ``if`` keeps the larger or the smaller of two values: the same as a reduction, whose updates have no order."""
    s = a.statement
    match s.value:
        case Call("where", (Call("gt" | "ge" | "lt" | "le" as test, (one, other)), *values)) if s is b.statement:
            kept = [_named(s, v) for v in values]
            if _named(s, Read(len(s.reads))) in kept and sorted(kept) == sorted((_named(s, one), _named(s, other))):
                op = "max" if (test[0] == "g") == (kept[0] == _named(s, one)) else "min"
                mine = [v for v in values if _named(s, v) == _named(s, Read(len(s.reads)))]
                operands = (*mine, *(v for v in values if v not in mine))
                text = written_text(replace(s, value=Call(op, operands)), {})
                return (f"{text} in the program, whose updates may be reordered (NaN stays, there)",)
    return ()


def _named(statement: Statement, value: Scalar) -> str:
    """A value's text, equal for reads of one element."""
    if isinstance(value, Read):
        use = statement.accesses[value.slot]
        return f"{use.array}{list(map(str, use.index))}"
    return str(value)


def _instance(p: Placed, point: tuple[int, ...]) -> Instance:
    values = dict(zip(p.statement.dims, point, strict=True))
    when = dict(p.leaf.when)
    place = tuple((x.role, int(when[x.id].evaluate(values))) for x in p.above if x.is_place)
    time = tuple(int(when[x.id].evaluate(values)) for x in p.above if not x.is_place)
    return Instance(p.statement.name, point, place, time)


def _where_text(source: Instance, sink: Instance) -> str:
    def one(x: Instance) -> str:
        return ", ".join(f"{role} {value}" for role, value in x.place) or "no bound loop"

    return f"{source}: {one(source)}; {sink}: {one(sink)}"


def _element(plan: Plan, statement: Statement, array: str, point: tuple[int, ...]) -> tuple[int, ...]:
    values = dict(zip(statement.dims, point, strict=True))
    uses = [u for u in (statement.target, *statement.reads) if u.array == array]
    if not uses:
        return ()
    return tuple(int(e.evaluate(values)) if isinstance(e, Expr) else 0 for e in uses[0].index)
