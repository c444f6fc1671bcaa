"""Question three, *obligations*: updates that may run in any order still must not race.

Each place coordinate in which two updates of one element differ has to be collected (warp shuffles, shared memory,
atomics) or cut away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..ir.digits import follows
from ..ir.expr import Expr
from ..ir.finding import Finding
from ..ir.plan import Plan
from ..ir.program import Array, Statement
from ..ir.tree import Loop
from .deduce import deduce, marked
from .linear import build_map, differ, equal
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
    other = tuple(x for x in p.above if (x.role == "launch" if loop.is_block else not x.is_place))
    boxes = tuple((x.id, x.start, x.extent) for x in p.above)
    return _seen(p, loop) or _carried(p.statement, array, loop.id, tuple(x.id for x in other), p.leaf.when, boxes)


def _seen(p: Placed, loop: Loop) -> bool:
    """Whether the first point of the loops and the one a step of `loop` further are two updates of one element: a witness, which
    is found faster than isl finds that there is one.
    """
    if not all(x.extent for x in p.above):
        return False
    when, first = dict(p.leaf.when), {x.id: x.start for x in p.above}
    found = []
    for point in (first, first | {loop.id: loop.start + 1}):
        dims = {name: e.evaluate(point) for name, e in p.leaf.at}
        if not all(c.holds(dims) for c in p.statement.domain):
            return False
        if not all(x in when and when[x].evaluate(dims) == value for x, value in point.items()):
            return False
        found.append([e.evaluate(dims) for e in p.statement.target.index if isinstance(e, Expr)])
    return loop.extent > 1 and found[0] == found[1]


@lru_cache(maxsize=4096)
def _carried(statement: Statement, array: Array, loop: str, same: tuple[str, ...], inverse: tuple[tuple[str, Expr], ...],
             boxes: tuple[tuple[str, int, int], ...]) -> bool:
    when, index = dict(inverse), [e for e in statement.target.index if isinstance(e, Expr)]
    known = bounds(statement.domain)
    if follows(when[loop], index, known):  # one element, so one value of the loop
        return False
    cases = differ(when[loop], "a", when[loop], "b")
    level = tuple(equal(when[x], "a", when[x], "b") for x in same)
    facts = deduce((*level, *(equal(e, "a", e, "b") for e in index)), marked(known, "a") | marked(known, "b"))
    if facts is None or all(map(facts.refutes, cases)):
        return False
    touch = access(statement, len(statement.reads), array).intersect_domain(run_set_of(statement, inverse, boxes))
    pairs = touch.apply_range(touch.reverse())
    first, second = instance(statement, "a"), instance(statement, "b")
    return any(not pairs.is_disjoint(build_map(first, second, [*level, *case])) for case in cases)


def _mixes(plan: Plan, p: Placed) -> bool:
    """Whether threads whose updates are combined, because they differ in the collected loops alone, update different elements."""
    together = {loop for loop, how in p.leaf.collect if how in TOGETHER}
    if not together:
        return False
    boxes = tuple((x.id, x.start, x.extent) for x in p.above)
    rest = tuple(x.id for x in p.above if x.id not in together)
    return _mixed(p.statement, plan.array_of[p.statement.target.array], rest, p.leaf.when, boxes)


@lru_cache(maxsize=4096)
def _mixed(statement: Statement, array: Array, rest: tuple[str, ...], inverse: tuple[tuple[str, Expr], ...],
           boxes: tuple[tuple[str, int, int], ...]) -> bool:
    when, run = dict(inverse), run_set_of(statement, inverse, boxes)
    touch = access(statement, len(statement.reads), array).intersect_domain(run)
    group = build_map(instance(statement, "a"), instance(statement, "b"), [equal(when[x], "a", when[x], "b") for x in rest])
    return not group.intersect_domain(run).intersect_range(run).is_subset(touch.apply_range(touch.reverse()))


def check_obligations(plan: Plan, placed: dict[str, list[Placed]]) -> tuple[Finding, ...]:
    """A finding for every open obligation (a schedule may hold them; a kernel may not be emitted with one)."""
    out = []
    for o in obligations(plan, placed):
        if not o.open:
            continue
        statement = plan.statement_of[plan.resolve(o.leaf)[0].statement]  # type: ignore[index]
        thread = not o.role.startswith("block")
        hows = ("shuffle", "shared", "atomic") if thread else ("atomic", "kernel", "ticket")
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
