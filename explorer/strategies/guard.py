"""The guard of `auto`: its plan is compared with the default's price, and divided into kernels where that is cheaper.

A plan that the rules of `auto` make is *admissible* if

- its price (:mod:`explorer.strategies.price`) is at most :data:`WORSE` times that of the default, so that it has fewer threads
  than the default only where it moves or computes so much less;
- it computes at most :data:`~explorer.strategies.producers.GROWTH` times the operations of the program as written.

Where it is not, or costs so much more than the program has to that nests in one kernel may stand in each other's way, the
program is taken apart: nests that read their elements again and again get kernels of their own, the chains between them are
stitched or cut, each kernel gets the family that fits it or the default, whatever costs least.  The cheapest admissible plan
wins; the default of the whole program is the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from ..errors import ScheduleError
from ..gpu.spec import Gpu
from ..ir.memo import per_program
from ..ir.plan import Plan, initial
from ..ir.tree import Loop, walk
from ..schedule import Schedule
from ._steps import Builder
from .contraction import used_by_products
from .counts import reuses, work
from .default import THREADS, default, rest
from .kernel_turns import Decide, cut, prepared, ridden, spread
from .price import alone_us, computed_us, floor_us, price
from .producers import GROWTH, chained, produced_in_place
from .stitching.search import Search

Together = Callable[[Schedule, Gpu, bool, Decide | None], Schedule]
"""The rules of `auto`."""
WORSE = 1.05
"""So many times the default's price a plan may have."""
FAR = 4.0
"""So many times what a program of several nests has to cost, and other plans are looked at."""
KNOWN = 256
"""Programs whose route is kept."""


@dataclass(frozen=True)
class Route:
    """How a program is planned: by the rules together, by the default, or taken apart.

    Attributes
    ----------
    how : str
        ``"together"``, ``"default"``, or ``"apart"``.
    gathered : bool
        Whether starts and ends of results come to their updates first.
    picks : mapping of str to str
        Kernel to what was cheapest for it, where the program is taken apart: ``"stitched"`` or ``"cut"`` where it has several
        nests, ``"family"``, ``"whole"`` (not cut by it) or ``"default"``.
    """

    how: str
    gathered: bool = True
    picks: Mapping[str, str] = field(default_factory=dict)


@per_program(KNOWN)
def _known(plan: Plan, target: Gpu, approximate: bool) -> list[Route]:
    """The route of a plan, once it has been found."""
    return []


def guarded(schedule: Schedule, target: Gpu, approximate: bool, decide: Decide | None, together: Together) -> Schedule:
    """The schedule by the rules together where that is admissible, else the cheapest other.

    `decide` takes turns of the route that the rules alone would take.
    """
    known = _known(schedule.plan, target, approximate)
    if decide is None or not known:
        route, made = _cheapest(schedule, target, approximate, together)
        known[:] = [route]
        if decide is None:
            return made
    (route,) = known
    if route.how == "together":
        return together(schedule, target, approximate, decide)
    if route.how == "default":
        own = decide("rest", schedule, "")
        return default(schedule) if own is None else own
    return _Apart(target, approximate, decide, dict(route.picks)).made(schedule, route.gathered)


def _cheapest(schedule: Schedule, target: Gpu, approximate: bool, together: Together) -> tuple[Route, Schedule]:
    """The cheapest admissible schedule and its route; that of the rules together if none is cheaper by more than a little."""
    written = initial(schedule.source)
    made, route = together(schedule, target, approximate, None), Route("together")
    us, least, fits = _us(made, target), floor_us(schedule.source, target), _admissible(made, written)
    several = sum(isinstance(n, Loop) for k in written.kernels for n in k.body) > 1
    far = several and us > FAR * max(least, computed_us(schedule.source, target))
    if fits and not far and us <= WORSE * max(least, alone_us(schedule.source, target, THREADS)):
        return route, made
    plain = default(schedule)
    bound = _us(plain, target)
    fits = fits and us <= WORSE * bound
    if fits and not far:
        return route, made
    found = [(us / WORSE, 0, route, made)] if fits else []
    found.append((bound, 3, Route("default"), plain))
    begun: list[Plan] = []
    for number, gathered in enumerate((True, False)[: 1 + several], 1):
        begun.append(prepared(schedule, approximate, gathered).schedule.plan)
        if begun[-1] in begun[:-1]:
            continue  # nothing was gathered: it would be taken apart in the same way
        parts = _Apart(target, approximate, None, {})
        with suppress(ScheduleError):
            other = parts.made(schedule, gathered)
            if _admissible(other, written):
                found.append((_us(other, target), number, Route("apart", gathered, parts.picks), other))
    return min(found, key=lambda f: f[:2])[2:]


def _us(schedule: Schedule, target: Gpu) -> float:
    return price(schedule.plan, target).total_us


def _admissible(made: Schedule, written: Plan) -> bool:
    """Whether a schedule can be emitted, and computes no more than it may."""
    return made.judgement.emittable and work(made.plan) <= GROWTH * work(written)


@dataclass
class _Apart:
    """A program taken apart; `picks` are taken where they are known, else found and kept."""

    target: Gpu
    approximate: bool
    decide: Decide | None
    picks: dict[str, str]

    def made(self, schedule: Schedule, gathered: bool) -> Schedule:
        """The schedule."""
        b = prepared(schedule, self.approximate, gathered)
        ridden(b, self.target, self.decide)
        if chained(b.schedule):
            b.schedule = produced_in_place(b.schedule, 1.0, used_by_products(b.schedule))
        _alone(b)
        for kernel in [k.id for k in b.plan.kernels if _open(b.plan, k.id)]:
            b.schedule = self._chain(b.schedule, kernel)
        own = self.decide("rest", b.schedule, "") if self.decide else None
        return default(b.schedule) if own is None else own

    def _chain(self, schedule: Schedule, kernel: str) -> Schedule:
        """One kernel, of one nest or of several, in the cheapest way."""
        if sum(isinstance(n, Loop) for n in _body(schedule.plan, kernel)) < 2:
            return self._nest(schedule, kernel)
        ways: dict[str, Callable[[], Schedule]] = {"stitched": lambda: self._stitched(schedule, kernel),
                                            "cut": lambda: self._cut(schedule, kernel)}
        return self._pick(schedule, kernel, ways)

    def _stitched(self, schedule: Schedule, kernel: str) -> Schedule:
        made = Search(schedule, self.target, kernel).made({}).schedule
        return schedule if made is None else made

    def _cut(self, schedule: Schedule, kernel: str) -> Schedule:
        b, others = Builder(schedule), _names(schedule.plan) - {kernel}
        cut(b, others)
        for k in [k.id for k in b.plan.kernels if k.id not in others]:
            b.schedule = self._nest(b.schedule, k)
        return b.schedule

    def _nest(self, schedule: Schedule, kernel: str) -> Schedule:
        def family() -> Schedule:
            own = self.decide("spread", schedule, kernel) if self.decide else None
            return spread(schedule, kernel, self.target) if own is None else own

        if self.decide and self.picks.get(f"{kernel}:") == "default":
            self.decide("left", schedule, kernel)
        whole = partial(spread, schedule, kernel, self.target, whole=True)
        return self._pick(schedule, f"{kernel}:", {"family": family, "whole": whole, "default": lambda: schedule})

    def _pick(self, schedule: Schedule, name: str, ways: Mapping[str, Callable[[], Schedule]]) -> Schedule:
        """The cheapest way, with the default for what it leaves."""
        if name in self.picks:
            return ways[self.picks[name]]()
        others, found = _names(schedule.plan) - {name.rstrip(":")}, []
        for way, take in ways.items():
            with suppress(ScheduleError):
                made = take()
                whole = rest(made, but=others)
                if not {f.nodes[0] for f in whole.judgement.obligations} - {f.nodes[0] for f in schedule.judgement.obligations}:
                    found.append((price(whole.plan, self.target, others).total_us, len(found), way, made))
        _, _, self.picks[name], best = min(found, key=lambda f: f[:2]) if found else (0.0, 0, [*ways][-1], schedule)
        return best


def _alone(b: Builder) -> None:
    """Nests that read their elements again and again as kernels of their own; a statement beside goes with the nest behind it."""
    number = 0
    while number < len(b.plan.kernels):
        kernel = b.plan.kernels[number]
        nests = [n for n in kernel.body if isinstance(n, Loop)] if _open(b.plan, kernel.id) else []
        again = {n.id for n in nests if reuses(b.plan, n)}
        for first, then in pairwise(kernel.body):
            behind = next((n.id for n in kernel.body[kernel.body.index(then) :] if isinstance(n, Loop)), "")
            if isinstance(first, Loop) and {first.id, behind} & again and b.attempt("launch", kernel.id, after=first.id):
                break
        number += 1


def _open(plan: Plan, kernel: str) -> bool:
    """Whether nothing of a kernel is spread."""
    return not any(isinstance(n, Loop) and n.role != "seq" for n in walk(_body(plan, kernel)))


def _body(plan: Plan, kernel: str) -> tuple:
    return next(k.body for k in plan.kernels if k.id == kernel)


def _names(plan: Plan) -> frozenset[str]:
    return frozenset(k.id for k in plan.kernels)
