"""Exercises: a schedule to go on from, and goals that the engine itself measures.

What a learner hands in is judged like any other schedule: it must be proved, it must compute the right values on the CPU device
with every access checked, and each goal is measured on it.  Nothing is compared with a model solution, so any schedule that
reaches the goals is right.  A goal is a sentence and a function; teachers write their own with :class:`Goal`.

Examples
--------
>>> from explorer.teach.exercises import Exercise, lanes, sectors
>>> task = Exercise(scale.schedule(M=96, N=100), sectors("x", 4), lanes(0.95))
>>> task.check(task.start.bind("i", "block.x").bind("j", "thread.x"))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from math import prod
from typing import Any

from ..errors import CompilerMissing, ExplorerError, ScheduleError
from ..gpu.spec import catalogue
from ..gpu.units import time_text
from ..kernel.launches import plan_ir
from ..poly.mechanism import ASYNCHRONOUS
from ..poly.traffic import AccessFacts
from ..schedule import Schedule
from ..strategies.price import price
from ..views.style import mark, page, table
from .tables import moved

Measured = tuple[bool, str]
"""Whether a goal is reached, and what was found, in words."""


@dataclass(frozen=True)
class Goal:
    """A property that is asked of a schedule.

    Attributes
    ----------
    text : str
        The property in words: ``"a request for x moves at most 8 sectors"``.
    measure : callable
        From a schedule (legal, but perhaps with reductions still to collect) to (reached, what was found).
    """

    text: str
    measure: Callable[[Schedule], Measured]


@dataclass(frozen=True)
class Line:
    """One line of a report: what is asked, whether it holds (None: could not be asked), what was found."""

    text: str
    passed: bool | None
    found: str


@dataclass(frozen=True, repr=False)
class Report:
    """What a check has found; true when everything that is asked holds.

    Attributes
    ----------
    title : str
    lines : tuple of Line
    """

    title: str
    lines: tuple[Line, ...]

    def __bool__(self) -> bool:
        return all(line.passed for line in self.lines)

    def __str__(self) -> str:
        marks = {True: "✓", False: "✗", None: "·"}
        return "\n".join([self.title, *(f"  {marks[x.passed]} {x.text}: {x.found}" for x in self.lines)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [(mark(x.passed, x.text), escape(x.found)) for x in self.lines]
        return page(self.title, "", table(("asked", "found"), rows, wide=("asked", "found")), bar="good" if self else "bad")


class Exercise:
    """A schedule to go on from and what is asked of the result.

    Parameters
    ----------
    start : Schedule
    *goals : Goal
        Beside what is always asked: a proof with nothing left to collect, and right values.
    """

    def __init__(self, start: Schedule, *goals: Goal) -> None:
        self.start, self.goals = start, goals

    def __str__(self) -> str:
        asked = ("proved, nothing left to collect", "right values on the CPU", *(goal.text for goal in self.goals))
        return "\n".join([f"Exercise on {self.start.source.name}. Asked:", *(f"  · {text}" for text in asked)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        title, *asked = str(self).splitlines()
        items = "<br>".join(mark(None, text.strip(" ·")) for text in asked)
        return page(title.split(".")[0], "what is asked", items)

    def check(self, schedule: Any) -> Report:
        """Judge, run and measure a schedule.

        Parameters
        ----------
        schedule : Schedule
            Of the same program at the same sizes.  Anything else (the start itself, too) gets a report that says so.

        Returns
        -------
        Report
            Never raises for what a learner can get wrong; an illegal step raises where it is taken.
        """
        if not isinstance(schedule, Schedule) or schedule.source != self.start.source:
            found = repr(schedule.source.name) if isinstance(schedule, Schedule) else type(schedule).__name__
            wanted = f"a schedule of {self.start.source.name}, at the sizes of the exercise"
            return Report("not yet", (Line(wanted, False, f"this is {found}"),))
        untouched = schedule.plan == self.start.plan
        proved = _proved(schedule)
        goals = tuple(_line(goal, schedule) for goal in self.goals)
        right = (_right(schedule),) if proved.passed and not untouched else ()
        if untouched:
            return Report("nothing done yet", (Line("a step of your own", False, "this is the start"), *goals))
        report = Report("reached", (proved, *right, *goals))
        return report if report else Report("not yet", report.lines)


def _proved(schedule: Schedule) -> Line:
    """Whether nothing speaks against emitting it."""
    judgement = schedule.judgement
    to_do = [f.what for f in judgement.obligations]
    return Line("proved, nothing left to collect", judgement.emittable, "; ".join(to_do) or "cover, order, flow, obligations")


def _right(schedule: Schedule) -> Line:
    """Whether the CPU device, every access checked, computes what the loops say; at ragged sizes, too."""
    text = "right values on the CPU"
    try:
        run = schedule.run(device="cpu", time=False)
    except CompilerMissing as missing:
        return Line(text, None, f"could not be asked: {missing.what}")
    except ExplorerError as error:
        return Line(text, False, error.what)
    if run:
        return Line(text, True, f"{run.evidence.orders} thread orders, at {'; '.join(run.evidence.emulated)}")
    wrong = [str(c) for c in run.checks if not c] or [*run.faults] or ["wrong at other sizes"]
    return Line(text, False, wrong[0])


def _line(goal: Goal, schedule: Schedule) -> Line:
    try:
        passed, found = goal.measure(schedule)
    except ExplorerError as error:
        return Line(goal.text, False, f"cannot be measured: {error.what}")
    return Line(goal.text, passed, found)


# ---- goals ----


def sectors(array: str, at_most: float) -> Goal:
    """A warp's request for the array moves at most so many 32-byte sectors, in every access and on average over its requests."""
    def measure(schedule: Schedule) -> Measured:
        costs = [a.sectors_per_request for a in _accesses(schedule, "global", array)]
        return bool(costs) and max(costs) <= at_most, f"{max(costs):.3g}" if costs else f"no access of {array}"

    return Goal(f"a request for {array} moves at most {at_most:g} sector{'s' * (at_most != 1)}", measure)


def lanes(at_least: float) -> Goal:
    """So large a share of the lanes takes part in the requests to global memory."""
    def measure(schedule: Schedule) -> Measured:
        found = _accesses(schedule, "global")
        requests = sum(a.requests for a in found)
        share = sum(a.active * a.requests for a in found) / requests if requests else 0.0
        return share >= at_least, f"{share:.0%}"

    return Goal(f"at least {at_least:.0%} of the lanes take part in global requests", measure)


def wide(array: str, bytes_wide: int) -> Goal:
    """Each thread moves so many bytes in one request for the array."""
    def measure(schedule: Schedule) -> Measured:
        widths = [a.width_bytes for a in _accesses(schedule, "global", array)]
        return bool(widths) and min(widths) >= bytes_wide, f"{min(widths)} bytes" if widths else f"no access of {array}"

    return Goal(f"a thread moves {bytes_wide} bytes of {array} in one request", measure)


def bank_passes(at_most: float) -> Goal:
    """Shared memory is used, and no access of it takes more passes over the banks."""
    def measure(schedule: Schedule) -> Measured:
        passes = [a.conflicts for a in _accesses(schedule, "shared")]
        return bool(passes) and max(passes) <= at_most, f"at worst {max(passes):.3g}" if passes else "no shared memory is used"

    return Goal(f"a request to shared memory takes at most {at_most:g} pass{'es' * (at_most != 1)} over the banks", measure)


def traffic(at_most: float) -> Goal:
    """The warps request at most so many times the bytes that no schedule avoids."""
    def measure(schedule: Schedule) -> Measured:
        ratio = schedule.facts.requested_bytes / max(schedule.facts.compulsory_bytes, 1)
        return ratio <= at_most, f"{ratio:.3g} times"

    return Goal(f"warps request at most {at_most:g} times the compulsory bytes", measure)


def moves(at_most: float) -> Goal:
    """The kernels move at most so many times the bytes that no schedule avoids, if what an access repeats comes from a cache."""
    def measure(schedule: Schedule) -> Measured:
        ratio = moved(schedule).bytes / max(schedule.facts.compulsory_bytes, 1)
        return ratio <= at_most, f"{ratio:.3g} times"

    return Goal(f"the kernels move at most {at_most:g} times the compulsory bytes", measure)


def priced(at_most_us: float, gpu: str = "H200", **sizes: int) -> Goal:
    """The price of its plan on a GPU is at most so many microseconds; with sizes, of the same steps at these."""
    at = f" at {', '.join(f'{n}={v}' for n, v in sizes.items())}" if sizes else ""

    def measure(schedule: Schedule) -> Measured:
        found = price((schedule.at(**sizes) if sizes else schedule).plan, catalogue()[gpu]).total_us
        return found <= at_most_us, time_text(found)

    return Goal(f"a price on the {gpu} of at most {time_text(at_most_us)}{at}", measure)


def launched(at_most: int) -> Goal:
    """So many launches at most; kernels that join one (in the last block, behind a barrier of the grid) do not count."""
    def measure(schedule: Schedule) -> Measured:
        count = len(schedule.plan.launched)
        return count <= at_most, str(count)

    return Goal(f"at most {at_most} launch{'es' * (at_most != 1)}", measure)


def kernels(at_most: int) -> Goal:
    """So many launches at most."""
    def measure(schedule: Schedule) -> Measured:
        count = len(schedule.plan.kernels)
        return count <= at_most, str(count)

    return Goal(f"at most {at_most} kernel{'s' * (at_most != 1)}", measure)


def blocks(at_least: int) -> Goal:
    """The launch with the most blocks has at least so many."""
    def measure(schedule: Schedule) -> Measured:
        most = max(prod(r.grid) for r in schedule.facts.resources)
        return most >= at_least, str(most)

    return Goal(f"at least {at_least} block{'s' * (at_least != 1)}", measure)


def threads(at_least: int) -> Goal:
    """The blocks of that launch have at least so many threads."""
    def measure(schedule: Schedule) -> Measured:
        most = max(r.threads_per_block for r in schedule.facts.resources)
        return most >= at_least, str(most)

    return Goal(f"at least {at_least} thread{'s' * (at_least != 1)} in a block", measure)


def off_global(temporary: str) -> Goal:
    """The temporary is never read from or written to global memory."""
    def measure(schedule: Schedule) -> Measured:
        found = len(_accesses(schedule, "global", temporary))
        return not found, f"{found} accesses" if found else "never there"

    return Goal(f"{temporary} does not travel through global memory", measure)


def unstored(temporary: str) -> Goal:
    """The temporary is stored nowhere: its value is computed again wherever it is used."""
    def measure(schedule: Schedule) -> Measured:
        plan = schedule.plan
        kept = [leaf.id for leaf, _, _ in plan.leaves if plan.statement_of[leaf.statement].target.array == temporary]
        return not kept, f"stored by {', '.join(kept)}" if kept else "computed again"

    return Goal(f"{temporary} is stored nowhere", measure)


def deterministic() -> Goal:
    """No atomic updates: equal inputs give equal bits."""
    def measure(schedule: Schedule) -> Measured:
        atomic = [leaf.id for leaf, _, _ in schedule.plan.leaves if any(how == "atomic" for _, how in leaf.collect)]
        return not atomic, f"atomic: {', '.join(atomic)}" if atomic else "none"

    return Goal("no atomic updates", measure)


def slots(buffer: str, exactly: int) -> Goal:
    """The shared copy has exactly so many slots (1 for a copy that is not pipelined)."""
    def measure(schedule: Schedule) -> Measured:
        from ..views.figures.timeline import slotted

        if buffer not in schedule.plan.buffer_of:
            return False, f"there is no copy {buffer}"
        found = schedule.plan.buffer_of[buffer].shape[0] if slotted(schedule.plan, buffer) else 1
        return found == exactly, str(found)

    return Goal(f"{buffer} has exactly {exactly} slot{'s' * (exactly != 1)}", measure)


def asynchronous(buffer: str, bytes_wide: int = 4) -> Goal:
    """The copy is filled by asynchronous copies alone, each of at least so many bytes."""
    def measure(schedule: Schedule) -> Measured:
        statements = schedule.plan.statement_of
        filling = [leaf for leaf, _, _ in schedule.plan.leaves if statements[leaf.statement].target.array == buffer]
        if not filling or any(leaf.mechanism not in ASYNCHRONOUS for leaf in filling):
            return False, "plain copies" if filling else f"there is no copy {buffer}"
        widths = [a.width_bytes for a in schedule.facts.accesses if a.storage == buffer and a.writes]
        return min(widths) >= bytes_wide, f"asynchronous, {min(widths)} bytes each"

    return Goal(f"{buffer} is filled by asynchronous copies of {bytes_wide} bytes or more", measure)


def barriers(at_most: int) -> Goal:
    """The text of the kernels has at most so many barriers of a block."""
    def measure(schedule: Schedule) -> Measured:
        if not schedule.judgement.emittable:
            raise ScheduleError("there is no CUDA text while updates wait to be collected")
        count = sum(launch.barriers for launch in plan_ir(schedule.plan).launches)
        return count <= at_most, str(count)

    return Goal(f"at most {at_most} barrier{'s' * (at_most != 1)} in the text", measure)


def _accesses(schedule: Schedule, space: str, array: str = "") -> list[AccessFacts]:
    """Accesses to a kind of memory, of one array or of all, with at least one request."""
    found = [a for a in schedule.facts.accesses if a.space == space and a.requests]
    return [a for a in found if not array or array in (a.array, a.storage)]


__all__ = ["Exercise", "Goal", "Line", "Report", "asynchronous", "bank_passes", "barriers", "blocks", "deterministic", "kernels",
           "lanes", "launched", "moves", "off_global", "priced", "sectors", "slots", "threads", "traffic", "unstored", "wide"]
