"""Validation of barriers: a barrier separates each two conflicting accesses of different threads in the emitted text.

The questions are those of :mod:`explorer.poly.barriers`, asked of the IR's own loads and stores with its own barriers: in one
iteration of the loops around both; from one iteration of a loop to the next; and further on.  What an asynchronous copy does
ends at a wait, so that a barrier has to stand behind the last wait as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from ...ir.expr import var
from ...ir.finding import Finding, Proving
from ...ir.instructions import Wgmma, instruction
from ...poly.linear import Condition as Row
from ...poly.linear import differ, equal, less
from ...poly.slots import meets_whole_block
from ..conditions import Condition
from ..nodes import Barrier, Collect, Combine, Do, For, Wait, WaitProducts
from .boxes import Boxed, BoxStored
from .leaves import finding
from .points import Coordinates
from .proofs.races import Way, raced
from .steps import Around, Branch, Round, Step, common
from .touches import Touch, conflict, touches, wait_for
from .wanted import Wanted


@dataclass(frozen=True)
class Meeting:
    """A place where all threads of a block wait for each other.

    Attributes
    ----------
    number : int
    step : Step
    """

    number: int
    step: Step


def check_barriers(wanted: Mapping[str, Wanted], steps: Sequence[Step], coordinates: Coordinates,
                   used: frozenset[str] = frozenset()) -> Iterator[Finding]:
    """A finding for every pair of touches that no barrier orders, and for barriers that some threads may miss.

    The phases before this one have worked in the shared arrays `used`.
    """
    if not coordinates.threads:
        return
    meeting = tuple(meetings(steps, wanted, coordinates))
    for m in meeting:
        if _diverges(m.step, coordinates):
            leaf = m.step.leaf or coordinates.low.kernel.id
            yield finding("race", leaf, "has a barrier that some threads may not reach", m.step)
    text = Text(steps, meeting)
    fenced = Text(steps, [m for m in meeting if isinstance(m.step.node, Barrier) and m.step.node.proxy])
    by_store: dict[Any, list[Touch]] = {}
    for touch in touches(steps):
        if touch.store.space != "register" and not touch.store.handed:
            by_store.setdefault(touch.store, []).append(touch)
    for group in by_store.values():
        if any(t.writes for t in group):
            for a, b in combinations_with_replacement(group, 2):
                if coordinates.low.kernel.has_roles and (isinstance(a.step.node, Boxed) or isinstance(b.step.node, Boxed)):
                    continue  # mbarriers order the producer and consumers: see `poly.roles`, and `waits`
                if not (a.writes or b.writes) or (a.atomic and a.atomic == b.atomic):
                    continue
                if ways := _races(text, a, b, coordinates):
                    what = f"races with {b.step.leaf} for {a.store.name}: no barrier stands between them"
                    yield finding("race", a.step.leaf, what, a.step, wanted.get(a.step.leaf),
                                  _proof(ways, steps, coordinates, "no barrier stands between them"))
                elif (_unseen(a, b) or _unseen(b, a)) and (ways := _races(fenced, a, b, coordinates, unseen=True)):
                    w, r = (a, b) if a.writes else (b, a)
                    missing = "no barrier with a fence of the asynchronous proxy stands between them"
                    what = f"writes {a.store.name} for {r.step.leaf}, which reads it by itself: {missing}"
                    yield finding("race", w.step.leaf, what, w.step, wanted.get(w.step.leaf),
                                  _proof(ways, steps, coordinates, missing))
    yield from _scratch(text, steps, used)


def meetings(steps: Sequence[Step], wanted: Mapping[str, Wanted], coordinates: Coordinates) -> Iterator[Meeting]:
    """Barriers, and collectives of whole blocks."""
    low = coordinates.low
    for step in steps:
        node = step.node
        if isinstance(node, Barrier):
            yield Meeting(step.number, step)
        elif isinstance(node, (Collect, Combine)):
            if node.first_waits:
                yield Meeting(step.number - 1, step)
            leaf = next((w for name, w in wanted.items() if name in node.ids), None)
            extents = low.plan.extents[low.kernel.id]
            digits = _digits(extents[3]) if leaf and any(x.role in ("warp", "lane") for x in low.loops) else (extents[3], 1)
            if leaf and meets_whole_block(leaf.accesses[-1].leaf, leaf.above, (*extents[:3], *digits, *extents[4:])):
                yield Meeting(step.number + 1, step)


def _digits(threads: int) -> tuple[int, int]:
    return -(-threads // 32), min(threads, 32)


def _diverges(step: Step, coordinates: Coordinates) -> bool:
    """Whether a condition around a barrier depends on the thread."""
    names = set(coordinates.threads)
    conditions = [c for a in step.around for c in (a.conditions if isinstance(a, Branch) else a.node.limits)]
    return any(c.expr.variables() & names for c in conditions)


class Text:
    """Where meetings and waits stand.

    Parameters
    ----------
    steps : sequence of Step
    meetings : sequence of Meeting
    """

    def __init__(self, steps: Sequence[Step], meetings: Sequence[Meeting]) -> None:
        self.steps, self.meetings = steps, meetings
        self.waits = {kind: tuple(s for s in steps if isinstance(s.node, kind)) for kind in (Wait, WaitProducts)}

    def between(self, first: int, last: int, around: Sequence[Around]) -> bool:
        """Whether a meeting surely stands between two numbers, for whoever is inside of these loops and branches."""
        return any(first < m.number < last and _surely(m, around) for m in self.meetings)

    def round(self, loop: Round, a: Touch | Step, b: Touch | Step) -> bool:
        """Whether one surely stands between `a` in one iteration of a loop and `b` in the next."""
        behind, before = (x.around if isinstance(x, Step) else x.step.around for x in (a, b))
        for m in self.meetings:
            if loop in m.step.around and ((m.number > a.number and _surely(m, behind)) or
                                          (m.number < b.number and _surely(m, before))):
                return True
        return False

    def anywhere(self, loop: Round, around: Sequence[Around]) -> bool:
        """Whether one surely stands in every iteration of a loop."""
        here = around[: list(around).index(loop) + 1]
        return any(loop in m.step.around and _surely(m, here) for m in self.meetings)

    def behind_waits(self, b: Touch, kind: type) -> bool:
        """Whether a meeting stands between the last wait of a kind before `b`, on any way to it, and `b`."""
        loops: list[Round | None] = [*b.step.loops[::-1], None]
        for loop in loops:
            inside = [w for w in self.waits[kind] if loop is None or loop in w.loops]
            if earlier := [w.number for w in inside if w.number < b.number]:
                return self.between(max(earlier), b.number, b.step.around)
            if inside and loop is not None:
                last = max(w.number for w in inside)
                if not any(loop in m.step.around and (m.number > last or m.number < b.number) and _surely(m, b.step.around)
                           for m in self.meetings):
                    return False
        return True


def _surely(m: Meeting, around: Sequence[Around]) -> bool:
    """Whether whoever is inside of these loops and branches comes by a meeting: further ones around it always run."""
    for a in m.step.around:
        if a in around:
            continue
        if isinstance(a, Branch) or any(not _holds_first(c, a.node, m.step) for c in a.node.limits):
            return False
    return True


def _holds_first(c: Condition, loop: For, step: Step) -> bool:
    """Whether a loop's limit holds in some iteration, wherever it stands: in its first or in its last one."""
    ends = ({**step.ranges, loop.var: (n, n)} for n in (loop.start, loop.start + loop.extent - 1))
    return any(c.expr.interval(ranges)[0] >= 0 for ranges in ends)


def _unseen(x: Touch, y: Touch) -> bool:
    """Whether a thread writes what an instruction reads by itself: behind a fence of the thread alone it sees that."""
    node = y.step.node
    engine = isinstance(node, BoxStored) or (isinstance(node, Do) and isinstance(instruction(node.site.leaf.mechanism), Wgmma))
    return x.writes and not isinstance(x.step.node, Boxed) and engine and not y.writes


def _proof(ways: Sequence[Way], steps: Sequence[Step], coordinates: Coordinates, why: str) -> Proving:
    return Proving(lambda: raced(ways, _in_one_block(coordinates), _in_two_threads(coordinates), steps, coordinates, why))


def _in_one_block(coordinates: Coordinates) -> tuple[Row, ...]:
    return tuple(equal(var(n), "a", var(n), "b") for n in coordinates.shared)


def _in_two_threads(coordinates: Coordinates) -> tuple[tuple[Row, ...], ...]:
    return differ(coordinates.thread, "a", coordinates.thread, "b")


def _races(text: Text, a: Touch, b: Touch, coordinates: Coordinates, unseen: bool = False) -> tuple[Way, ...]:
    """The ways in which two touches may meet in different threads of a block with no barrier between them, if they ever do; or
    just those that are `unseen`.
    """
    first, second = (a, b) if a.number <= b.number else (b, a)
    shared = common(a.step, b.step)
    loops = a.step.loops[:shared]
    inner = (*first.step.around, *second.step.around)

    def open_(x: Touch, y: Touch, ordered: bool) -> bool:
        if isinstance(x.step.node, Boxed):
            return False  # every thread waits for it itself: see `waits`
        if unseen and not _unseen(x, y):
            return False
        kind = wait_for(x)
        return not ordered or (kind is not None and not text.behind_waits(y, kind))

    asked: list[Way] = []
    if open_(first, second, text.between(first.number, second.number, inner)):
        asked.append((first, second, lambda: tuple(_same(x) for x in loops)))
    for depth, loop in enumerate(loops):
        if loop.node.extent < 2:
            continue
        for x, y in ((a, b),) if a is b else ((a, b), (b, a)):
            outer = tuple(_same(o) for o in loops[:depth])
            v = var(loop.node.var)
            if open_(x, y, text.round(loop, x, y)):
                asked.append((x, y, lambda outer=outer, v=v: (*outer, equal(v + 1, "a", v, "b"))))
            if open_(x, y, text.anywhere(loop, x.step.around)):
                asked.append((x, y, lambda outer=outer, v=v: (*outer, less(v, "a", v, "b", 2))))
    block, threads = _in_one_block(coordinates), _in_two_threads(coordinates)
    return tuple(asked) if any(conflict(x, y, (*block, *rows()), threads) for x, y, rows in asked) else ()


def _same(loop: Round) -> Row:
    v = var(loop.node.var)
    return equal(v, "a", v, "b")


def _scratch(text: Text, steps: Sequence[Step], used: frozenset[str]) -> Iterator[Finding]:
    """Shared arrays of collectives: between two that use one, and from one iteration to the next, all threads meet."""
    using = [s for s in steps if isinstance(s.node, (Collect, Combine)) and s.node.way.scratch]
    for a in using:
        if a.node.way.scratch in used and not a.node.first_waits and not text.between(0, a.number, a.around):
            yield finding("race", _named(a), f"uses {a.node.way.scratch} while threads of an earlier phase still read it", a)
    for i, a in enumerate(using):
        for b in using[i:]:
            if a.node.way.scratch != b.node.way.scratch or (b.node.first_waits and a.node.first_waits):
                continue
            loops = [x for x in a.loops[: common(a, b)] if x.node.extent > 1]
            late = a is not b and not b.node.first_waits and not text.between(a.number + 2, b.number, (*a.around, *b.around))
            again = any(not any(x in m.step.around and (m.number > b.number + 2 or m.number < a.number) and
                                _surely(m, (*a.around, *b.around)) for m in text.meetings) for x in loops)
            if late or (again and not a.node.first_waits):
                yield finding("race", _named(a), f"uses {a.node.way.scratch} while other threads still read it", a)


def _named(step: Step) -> str:
    return step.leaf or next(iter(step.node.ids), "")


