"""The smallest arrival and wait on mbarriers that do not match, and the trip counts for which there are such.

The plan numbers the groups of copies.  For each execution of the pipelined loop, with the loops around it at one of their
iterations, the number of a group is affine in the iteration and in the symbolic trip count K.  The parity of a wait is
compared with that of its group's phase, and its mbarrier with its group's; an arrival is missing where a group has a wait and
no arrival.  Where parities alone are wrong, the number of mbarriers is symbolic, too (:mod:`~explorer.poly.phase_parity`).
If the pipelined loop is executed more than 64 times, no proof is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Literal

from ....errors import Undecided
from ....ir.expr import Expr, Quotient, Remainder, const, quotient, remainder, var
from ....ir.finding import Act, Proof
from ....ir.tree import Loop, Sync
from ....poly.linear import Case, Tuple, at_least, at_most, equal, less
from ....poly.linear import Condition as Row
from ....poly.phase_parity import MBARRIERS, parities
from ....poly.symbolic_trips import NEVER, SHOWN, TRIPS, Failing, condition, failing, least, moved
from ...conditions import Condition
from ..points import Cases, both, change, negated, none_of, rows
from ..steps import Step
from ..symbolic_loop import ahead, time_loops

if TYPE_CHECKING:
    from ..waits import Phases

MOST_RUNS = 64
"""Executions of the pipelined loop that are looked at one by one."""
What = Literal["missing", "again"]
Asked = tuple[tuple[Tuple, ...], Case]
"""Variables, and what holds of them where something is wrong."""


Along = tuple[tuple[str, int], ...]
"""From one node to a later one: for loops around both whether that is in the same iteration (0), the next, or a later one (2)."""


def rows_of(way: Along) -> tuple[Row, ...]:
    """What a way says of the loops of both."""
    return tuple(less(var(x), "a", var(x), "b", 2) if by > 1 else equal(var(x) + by, "a", var(x), "b") for x, by in way)


class _NotAffine(Exception):
    """A number that is not affine in the trip count."""


@dataclass(frozen=True)
class Run:
    """An execution of the pipelined loop, with a symbolic trip count.

    Attributes
    ----------
    loop : Loop
    at : mapping of str to int
        An iteration of each loop around it.
    every : int
        Groups in one of its iterations.
    ahead : frozenset of int
        See :func:`~explorer.poly.symbolic_trips.moved`.
    """

    loop: Loop
    at: Mapping[str, int]
    every: int
    ahead: frozenset[int]

    def told(self, e: Expr, count: int = 0) -> Expr:
        """A number in this run, over the trip count and the other loops; quotients by `count` are by :data:`MBARRIERS`."""
        total, whole = const(e.const), self.every * self.loop.extent
        for atom, c in e.terms:
            if isinstance(atom, Quotient):
                total += quotient(self.told(atom.expr, count), MBARRIERS if atom.by == count else atom.by) * c
            elif isinstance(atom, Remainder):
                total += remainder(self.told(atom.expr, count), atom.by) * c
            elif atom not in self.at:
                total += var(atom) * c
            elif self.at[atom]:
                if c % whole:
                    raise _NotAffine
                total += var(TRIPS) * (c // whole * self.every * self.at[atom])
        return total

    def moved(self, c: Condition) -> Condition:
        """A condition for any trip count."""
        last = self.loop.start + self.loop.extent - 1
        return c if c.equality else replace(c, expr=moved(c.expr, self.loop.id, self.loop.extent, last, {}, self.ahead))

    def box(self, loops: Sequence[Loop], side: str) -> Iterator[Row]:
        """The iterations of some loops in this run."""
        before = all(x.id != self.loop.id for x in loops)
        for x in loops:
            if x.id in self.at:
                yield equal(var(x.id), side, const(self.at[x.id]), side)
            else:
                yield at_least(var(x.id), side, x.start)
                if x.id != self.loop.id:
                    yield at_most(var(x.id), side, x.start + x.extent - 1)
                if x.id == self.loop.id or before:  # a prologue has no more iterations than its loop
                    yield at_least(var(TRIPS) - var(x.id), side, 1 - x.start)


class Numbered:
    """Proofs about the mbarriers of a kernel.

    Parameters
    ----------
    phases : Phases
    """

    CLOSING, WAITING = "commit", "wait"
    """Kinds of synchronisations that close what is numbered, and that wait for it."""

    def __init__(self, phases: Phases) -> None:
        self.phases, self.low = phases, phases.coordinates.low
        self.syncs = {name: (sync, time_loops(loops)) for name, (sync, loops) in phases.syncs.items()
                      if sync.kind == self.CLOSING or (sync.kind == self.WAITING and self.asked(sync))}
        self.planned = {self.low.variable[x.id]: var(x.id) for _, loops in self.syncs.values() for x in loops}

    def runs(self, wait: str) -> Iterator[Run]:
        """The runs of the innermost loop around a wait."""
        loops = self.syncs[wait][1]
        if not loops:
            return
        *outer, loop = loops
        group = self.group(wait)
        every = whole = group.coefficient(loop.id)
        if every < 1 or prod(x.extent for x in outer) > MOST_RUNS:
            return
        for x, inner in zip(outer[::-1], loops[::-1], strict=False):
            whole *= inner.extent
            if x.extent > 1 and group.coefficient(x.id) != whole:
                return  # others close groups in it, too
        known = ahead(self.phases.kernel, loop.id)
        for at in product(*(range(x.start, x.start + x.extent) for x in outer)):
            yield Run(loop, dict(zip((x.id for x in outer), at, strict=True)), every, known)

    def asked(self, wait: Sync) -> bool:
        """Whether a wait is for what is numbered."""
        return self.phases.groups.asked(wait)

    def group(self, name: str) -> Expr:
        """The group that a sync closes or waits for."""
        sync, groups = self.syncs[name][0], self.phases.groups
        return groups.awaited(sync) if sync.kind == self.WAITING else groups.group_of(name)

    def closes(self, name: str) -> tuple[Expr, ...]:
        """A commit closes a group where all of these are at least 0."""
        return self.phases.groups.closes(name)

    def waits(self) -> Iterator[str]:
        """The waits of the kernel."""
        return (name for name, (sync, _) in self.syncs.items() if sync.kind == self.WAITING)

    def named(self, number: int) -> str:
        """What has a number, in words."""
        return f"group {number}"

    def who(self, name: str) -> str:
        """Who closes or waits, in words."""
        return "every thread" if self.syncs[name][0].kind == self.WAITING else "the first thread"

    def closed(self, name: str, run: Run, side: str) -> Iterator[Row]:
        """The iterations in which a commit closes a group."""
        yield from run.box(self.syncs[name][1], side)
        for e in self.closes(name):
            yield Row(((run.moved(Condition(e)).expr, side, 1),), 0)

    def side(self, name: str, side: str, more: Sequence[str] = ()) -> Tuple:
        """The variables of a sync."""
        return Tuple("", side, (TRIPS, *(x.id for x in self.syncs[name][1]), *more))

    # -- a wait for another group ------------------------------------------------------------------------------------------

    def other(self, step: Step, parity: bool) -> Proof | None:
        """A wait or an arrival whose mbarrier, or whose parity, is not that of its group."""
        name = next(iter(step.node.ids), "")
        if name not in self.syncs or any(x.extent < 2 for x in self.syncs[name][1][-1:]):
            return None  # a loop of one iteration is none in the text, which does not say what it would be with more
        sync, loops = self.syncs[name]
        group, count = self.group(name), self.phases.count
        written, period = (step.node.parity, 2) if parity else (step.node.slot, count)
        text, (low, high) = written.substitute(self.planned), written.interval(step.ranges)
        reduced = low >= 0 and high < period  # a longer loop's text would have the remainder that this one does without

        def cases(run: Run) -> Iterator[Asked]:
            told = run.told(group)
            mine, right = run.told(text), quotient(told, count) if parity else told
            here = tuple(self.closed(name, run, "a") if sync.kind == self.CLOSING else run.box(loops, "a"))
            apart: Cases = ((Condition(remainder(mine - right, period) - 1),),) if reduced else negated(
                (Condition(mine - remainder(right, period), True),))
            for case in apart:
                yield (self.side(name, "a"),), (*here, *rows(case, "a"))

        wait = name if sync.kind == self.WAITING else next(self.waits(), "")
        found = self._least(wait, cases, [("a", x.id) for x in loops]) if wait else None
        if found is None:
            return None
        at, run, every = found
        mine = {x.id: at[f"a:{x.id}"] for x in loops}
        values = {**mine, TRIPS: at[SHOWN]}
        number = run.told(group).evaluate(values)
        said, slot, right = run.told(text).evaluate(values), number % count, number // count % 2
        said = said % period if reduced else said
        what = self.named(number)
        does = (f"waits for phase {said} of mbarrier {slot}, where {what} is counted in phase {right}" if parity
                else f"uses mbarrier {said} for {what}")
        own = self._act(name, mine, does)
        partner = self._partner(name, number, at[SHOWN])
        if partner is None:
            return None
        pair = (partner, own) if sync.kind == self.WAITING else (own, partner)
        says = "they are not of one phase" if parity else "they are not on one mbarrier"
        told = self._for_all_rings(name, text) if parity and reduced else ""
        return Proof(told or condition(every), self._sizes(at, mine), *pair, says)

    def _for_all_rings(self, wait: str, text: Expr) -> str:
        """The condition on the parity of a wait with the number S of mbarriers left open, too, where there is one."""
        differences = list[Expr]()
        for run in self.runs(wait):
            if run.every != 1 or run.loop.start:
                return ""
            right = quotient(run.told(self.group(wait)), MBARRIERS)
            differences.append(run.told(text, self.phases.count) - right)
        try:
            told = parities(differences, self.syncs[wait][1][-1].id)
        except Undecided:
            return ""
        return "" if told is None else NEVER if told == "never" else f"legal iff {told}"

    def _partner(self, name: str, group: int, trips: int) -> Act | None:
        """Who closes a group, or else waits for it."""
        closes = self.syncs[name][0].kind == self.WAITING
        for other, (sync, loops) in self.syncs.items():
            if (sync.kind == self.CLOSING) != closes:
                continue
            for wait in (name if closes else other,):
                for run in self.runs(wait):
                    told = run.told(self.group(other))
                    free = [x for x in loops if x.id not in run.at]
                    boxes = (range(x.start, x.start + (trips if x.id == run.loop.id else x.extent)) for x in free)
                    for point in product(*boxes):
                        at = {**run.at, **dict(zip((x.id for x in free), point, strict=True))}
                        closed = all(run.moved(Condition(e)).expr.evaluate({**at, TRIPS: trips}) >= 0
                                     for e in (self.closes(other) if closes else ()))
                        if closed and told.evaluate({**at, TRIPS: trips}) == group:
                            verb = "arrives" if closes else "waits"
                            return self._act(other, at, f"{verb} on mbarrier {group % self.phases.count} for "
                                                        f"{self.named(group)}")
        return None

    # -- arrivals that are missing, or too many ----------------------------------------------------------------------------

    def arrivals(self, name: str, what: What, step: Step | None = None) -> Proof | None:
        """A commit that does not arrive once for each of its groups.

        Parameters
        ----------
        name : str
        what : str
            It does not arrive, or does so twice.
        step : Step, optional
            The arrival, which not the threads make that should; else all of them are meant.
        """
        own, threads = self.syncs[name][1], [*self.phases.coordinates.ranges] if step else []
        for wait in self.waits():
            def cases(run: Run, wait: str = wait) -> Iterator[Asked]:
                same = equal(run.told(self.group(name)), "a", run.told(self.group(wait)), "b")
                tuples = (self.side(name, "a", threads), self.side(wait, "b"))
                fixed = (*self.closed(name, run, "a"), *run.box(self.syncs[wait][1], "b"), same)
                for wrong in self._wrong(step, run):
                    yield tuples, (*fixed, *wrong)

            order = [("a", x.id) for x in own] + [("b", x.id) for x in self.syncs[wait][1]] + [("a", n) for n in threads]
            if (found := self._least(wait, cases, order)) is None:
                continue
            at, run, every = found
            mine, theirs = ({x.id: at[f"{side}:{x.id}"] for x in loops}
                            for side, loops in (("a", own), ("b", self.syncs[wait][1])))
            group = run.told(self.group(name)).evaluate({**mine, TRIPS: at[SHOWN]})
            arrival = self._act(name, mine, f"{'arrives' if what == 'again' else 'does not arrive'} for {self.named(group)}")
            if what == "again":
                return Proof(condition(every), self._sizes(at, theirs), arrival, replace(arrival, does="arrives again"),
                             f"the second one ends the phase behind the one for which {wait} waits")
            waiting = self._act(wait, theirs, f"waits for {self.named(group)}")
            return Proof(condition(every), self._sizes(at, theirs), arrival, waiting, "the wait does not end")
        return None

    def _wrong(self, step: Step | None, run: Run) -> Iterator[tuple[Row, ...]]:
        """Where a step is run by other threads than the first one, or not by it."""
        if step is None:
            yield ()
            return
        first = (self.phases.first,)
        ran: Cases = tuple(tuple(map(run.moved, conj)) for conj in change(step.cases, self.planned))
        loops = {x.node.var for x in step.loops}
        bounds = [row for n, (low, high) in self.phases.coordinates.ranges.items() if n not in loops
                  for row in (at_least(var(n), "a", low), at_most(var(n), "a", high))]
        for case in (*both(first, none_of(ran)), *both(ran, negated(first[0]))):
            yield (*bounds, *rows(case, "a"))

    # -- an mbarrier that is used again too early --------------------------------------------------------------------------

    def reused(self, wait: str, name: str, ways: Sequence[Along]) -> Proof | None:
        """An arrival for the group that has a wait's mbarrier next, with no meeting of all threads behind the wait."""
        (_, own), (_, theirs) = self.syncs[wait], self.syncs[name]
        planned = [tuple((self.planned[x].terms[0][0], by) for x, by in way if x in self.planned) for way in ways]

        def cases(run: Run) -> Iterator[Asked]:
            next_one = equal(run.told(self.group(wait)) + self.phases.count, "a", run.told(self.group(name)), "b")
            for way in planned:
                if any(by and x in run.at for x, by in way):
                    continue  # in another run
                rows = rows_of(tuple((str(x), by) for x, by in way if x not in run.at))
                yield ((self.side(wait, "a"), self.side(name, "b")),
                       (*run.box(own, "a"), *self.closed(name, run, "b"), next_one, *rows))

        order = [("a", x.id) for x in own] + [("b", x.id) for x in theirs]
        if (found := self._least(wait, cases, order)) is None:
            return None
        at, run, every = found
        mine, other = ({x.id: at[f"{side}:{x.id}"] for x in loops} for side, loops in (("a", own), ("b", theirs)))
        group = run.told(self.group(wait)).evaluate({**mine, TRIPS: at[SHOWN]})
        waiting = self._act(wait, mine, f"waits on mbarrier {group % self.phases.count} for {self.named(group)}")
        again = self._act(name, other, f"arrives on it for {self.named(group + self.phases.count)}")
        return Proof(condition(every), self._sizes(at, mine), waiting, again,
                     "the second one may end a phase more, and the wait takes that for the one before")

    # -- answers -----------------------------------------------------------------------------------------------------------

    def _least(self, wait: str, cases: Callable[[Run], Iterator[Asked]],
               order: Sequence[tuple[str, str]]) -> tuple[dict[str, int], Run, list[Failing]] | None:
        """The least failing point over all runs of the loop around a wait, its run, and all that fails."""
        found: list[tuple[Failing, Run]] = []
        try:
            for run in self.runs(wait):
                asked = list(cases(run))
                if asked and (one := failing(asked[0][0], [case for _, case in asked], order)) is not None:
                    found.append((one, run))
            if not found:
                return None
            first, at = least([f for f, _ in found], [f"{side}:{n}" for side, n in order])
            return at, next(run for f, run in found if f is first), [f for f, _ in found]
        except (Undecided, _NotAffine):
            return None

    def _sizes(self, at: Mapping[str, int], iteration: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        return ((SHOWN, at[SHOWN]), ("S", self.phases.count), *((self.low.variable[n], v) for n, v in iteration.items()))

    def _act(self, name: str, at: Mapping[str, int], does: str) -> Act:
        sync: Sync = self.syncs[name][0]
        loops = tuple(self.low.variable[x.id] for x in self.syncs[name][1])
        return Act(sync.id, tuple(at[x.id] for x in self.syncs[name][1]), (), (), does, loops, self.who(name))
