"""Question three, *obligations*: updates that may run in any order still must not race.

Each place coordinate in which two updates of one element differ has to be collected (warp shuffles, shared memory,
atomics) or cut away.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.digits import follows
from ..ir.expr import Expr
from ..ir.finding import Finding
from ..ir.plan import Plan
from ..ir.program import Array, Statement
from ..ir.tree import Loop
from .decide import OPEN, Maybe, Question, decide
from .deduce import deduce, marked
from .linear import Cases, Condition, build_map, differ, equal
from .placed import Placed, place_leaves
from .plan_facts import run_set_of
from .relations import access, bounds, instance

TOGETHER = ("shuffle", "shared", "cluster")
"""Strategies that combine the values of a group of threads or blocks into one update."""


@dataclass(frozen=True)
class Obligation:
    """Updates of one element that differ in a bound loop, and whether a strategy collects them.

    Attributes
    ----------
    leaf, array, loop, role : str
    how : str
        The strategy, empty without one.
    mixed : bool
        Whether the threads that it would combine also update different elements, which a sum over them cannot do.
    """

    leaf: str
    array: str
    loop: str
    role: str
    how: str
    mixed: bool = False

    @property
    def open(self) -> bool:
        """Whether nothing collects these updates yet."""
        return not self.how or self.mixed


def obligations(plan: Plan, placed: dict[str, list[Placed]] | None = None) -> tuple[Obligation, ...]:
    """Every (update leaf, bound loop) in which two updates of one element differ, with its strategy if it has one."""
    found = []
    for parts in (placed or place_leaves(plan)).values():
        for p in parts:
            if p.statement.update:
                chosen = dict(p.leaf.collect)
                mixed = _mixes(plan, p)
                for x in (loop for loop in p.above if loop.is_place):
                    how = chosen.get(x.id, "")
                    if (wrong := mixed and how in TOGETHER) or _carries(plan, p, x):
                        found.append(Obligation(p.leaf.id, p.statement.target.array, x.id, x.role, how, wrong))
    return tuple(found)


def _carries(plan: Plan, p: Placed, loop: Loop) -> bool:
    """Whether two updates of one element that differ in `loop` can coincide: in one launch, for a thread loop at one time."""
    array = plan.array_of[p.statement.target.array]
    other = tuple(x.id for x in p.above if (x.role == "launch" if loop.is_block else not x.is_place))
    boxes = tuple((x.id, x.start, x.extent) for x in p.above)
    return decide(_Coincide(p.statement, array, loop.id, other, p.leaf.at, p.leaf.when, boxes))


@dataclass(frozen=True)
class _Coincide(Question[bool]):
    """Whether two updates of one element differ in `loop` and agree in the loops `same`."""

    statement: Statement
    array: Array
    loop: str
    same: tuple[str, ...]
    at: tuple[tuple[str, Expr], ...]
    when: tuple[tuple[str, Expr], ...]
    boxes: tuple[tuple[str, int, int], ...]

    @property
    def _index(self) -> list[Expr]:
        return [e for e in self.statement.target.index if isinstance(e, Expr)]

    def _cases(self) -> tuple[tuple[Condition, ...], Cases]:
        """What is equal in both updates, and how their loops differ."""
        when = dict(self.when)
        return (tuple(equal(when[x], "a", when[x], "b") for x in self.same),
                differ(when[self.loop], "a", when[self.loop], "b"))

    def by_intervals(self) -> Maybe[bool]:
        index, known = self._index, bounds(self.statement.domain)
        if follows(dict(self.when)[self.loop], index, known):  # one element, so one value of the loop
            return False
        level, cases = self._cases()
        facts = deduce((*level, *(equal(e, "a", e, "b") for e in index)), marked(known, "a") | marked(known, "b"))
        return False if facts is None or all(map(facts.refutes, cases)) else OPEN

    def by_points(self) -> Maybe[bool]:
        """The first point of the loops and the one a step of `loop` further: where they are a witness, no other is needed."""
        if not all(extent for _, _, extent in self.boxes):
            return OPEN
        when, first = dict(self.when), {x: start for x, start, _ in self.boxes}
        found = []
        for point in (first, first | {self.loop: first[self.loop] + 1}):
            dims = {name: e.evaluate(point) for name, e in self.at}
            if not all(c.holds(dims) for c in self.statement.domain):
                return OPEN
            if not all(x in when and when[x].evaluate(dims) == value for x, value in point.items()):
                return OPEN
            found.append([e.evaluate(dims) for e in self._index])
        return (any(x == self.loop and extent > 1 for x, _, extent in self.boxes) and found[0] == found[1]) or OPEN

    def by_isl(self) -> bool:
        s = self.statement
        touch = access(s, len(s.reads), self.array).intersect_domain(run_set_of(s, self.when, self.boxes))
        pairs = touch.apply_range(touch.reverse())
        level, cases = self._cases()
        return any(not pairs.is_disjoint(build_map(instance(s, "a"), instance(s, "b"), [*level, *case])) for case in cases)


def _mixes(plan: Plan, p: Placed) -> bool:
    """Whether threads whose updates are combined, because they differ in the collected loops alone, update different elements."""
    together = {loop for loop, how in p.leaf.collect if how in TOGETHER}
    if not together:
        return False
    boxes = tuple((x.id, x.start, x.extent) for x in p.above)
    rest = tuple(x.id for x in p.above if x.id not in together)
    return decide(_Mixed(p.statement, plan.array_of[p.statement.target.array], rest, p.leaf.when, boxes))


@dataclass(frozen=True)
class _Mixed(Question[bool]):
    """Whether updates that agree in the loops `rest` are of different elements."""

    statement: Statement
    array: Array
    rest: tuple[str, ...]
    when: tuple[tuple[str, Expr], ...]
    boxes: tuple[tuple[str, int, int], ...]

    def by_isl(self) -> bool:
        s, when = self.statement, dict(self.when)
        run = run_set_of(s, self.when, self.boxes)
        touch = access(s, len(s.reads), self.array).intersect_domain(run)
        group = build_map(instance(s, "a"), instance(s, "b"), [equal(when[x], "a", when[x], "b") for x in self.rest])
        return not group.intersect_domain(run).intersect_range(run).is_subset(touch.apply_range(touch.reverse()))


def check_obligations(plan: Plan, placed: dict[str, list[Placed]]) -> tuple[Finding, ...]:
    """A finding for every open obligation (a schedule may hold them; a kernel may not be emitted with one)."""
    out = []
    for o in obligations(plan, placed):
        if not o.open:
            continue
        statement = plan.statement_of[plan.resolve(o.leaf)[0].statement]  # type: ignore[index]
        thread = not o.role.startswith("block")
        hows = ("shuffle", "shared", "atomic") if thread else ("atomic", "kernel", "last_block")
        what = f"updates of {o.array} from different iterations of {o.loop} ({o.role}) would race"
        why = f"{o.leaf} updates one element of {o.array} in several {'threads' if thread else 'blocks'} at once"
        if o.mixed:
            what = f"{o.how} over {o.loop} ({o.role}) would combine updates of different elements of {o.array}"
            why, hows = f"{o.leaf} updates several elements of {o.array} in the threads that {o.how} combines", ("atomic",)
        out.append(Finding(
            "obligation", what, why,
            o.array, (), "reduction", None, None, (o.leaf, o.loop), (statement.line,) if statement.line else (),
            tuple(f"collect('{o.array}', '{how}')" for how in hows),
        ))
    return tuple(out)
