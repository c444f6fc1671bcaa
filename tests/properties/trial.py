"""Random schedules of random programs, put to the test: accepted ones run and compared, refused ones enumerated.

A *pair* is a program and a schedule that the four questions judged.  An accepted pair is emitted, compiled, run on the checked
CPU device in adversarial thread orders (which looks for races, bounds, uninitialised reads, diverging barriers), and compared
with the interpreter.  A refused pair's witness is held against the enumerated instances of the refused plan.
"""

from __future__ import annotations

import hashlib
import random
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from explorer.errors import CompileError, ExplorerError, IllegalSchedule, ResourceError
from explorer.ir.finding import Finding
from explorer.ir.plan import Plan
from explorer.ir.tree import walk
from explorer.kernel.emit import emit
from explorer.kernel.module import CudaModule
from explorer.poly.judge import judge
from explorer.run.cpu.device import CpuBuilt, CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.transforms.approximate import as_computed
from explorer.transforms.base import Transform, catalogue

from .equal import difference
from .moves import offered, random_step, repairs
from .prepared import PREPARED
from .programs import random_case, workload_case
from .tally import ACCEPTED, Counterexample, Tally
from .witness import ENUMERATION, UNDECIDED, doubt

FEWEST, LONGEST = 6, 20
"""Moves of a chain."""
TRIES = 100
"""Moves drawn for one chain at most."""
WITNESSED = 6
"""Refusals of one chain that are held against an enumeration; the ones behind are not counted as pairs."""
BATCH = 96
"""Kernels that are compiled together."""
SHRUNK = 3
"""Counterexamples of a run whose scripts are made shorter."""


@dataclass(frozen=True)
class Accepted:
    """A legal schedule without open obligations, and its text."""

    seed: str
    schedule: Schedule
    module: CudaModule


class Trial:
    """Runs chains and keeps the tally."""

    def __init__(self, shrinks: int = SHRUNK) -> None:
        self.tally = Tally()
        self.waiting: list[Accepted] = []
        self.shrinks = shrinks
        self.witnessed = 0

    def run(self, seed: int, chains: Iterable[int]) -> Tally:
        """Chains of a seed, by their numbers."""
        for number in chains:
            self.chain(f"{seed}:{number}")
            if len(self.waiting) >= BATCH:
                self.flush()
        self.flush()
        return self.tally

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.tally.seconds[what] += time.perf_counter() - begin

    # -- one chain -----------------------------------------------------------------------------------------------

    def chain(self, seed: str) -> None:
        """A program, and moves until enough are made; the transformations take turns at being favoured."""
        pick, known = random.Random(seed), list(catalogue())
        focus = known[int(seed.split(":")[1]) % len(known)]
        with self._timed("programs"):
            schedule = self._start(seed, pick, focus)
        if schedule is None:
            return
        start, wanted, self.witnessed = len(schedule.steps), pick.randint(FEWEST, LONGEST), 0
        early, found = pick.randint(1, wanted), len(self.tally.found)
        for _ in range(TRIES):
            if len(schedule.steps) - start >= wanted:
                break
            new = self._move(seed, schedule, pick, focus)
            if new is not schedule and len(new.steps) - start == early:
                self.conclude(seed, new)
            schedule = new
            if len(self.tally.found) > found:  # what is wrong stays wrong behind it
                break
        self.tally.chains += 1
        self.tally.steps += len(schedule.steps) - start
        self.conclude(seed, schedule)

    def _start(self, seed: str, pick: random.Random, focus: str) -> Schedule | None:
        """A program, if three tries find one in which the focus has something to do then such a one."""
        found = None
        for attempt in range(3):
            try:
                ready = pick.random() < 0.25
                label = f"chain{seed}_{attempt}".replace(":", "_")
                if focus in PREPARED:
                    found = PREPARED[focus](pick, label).schedule
                else:
                    found = (workload_case(pick) if ready else random_case(pick, label)).schedule
                if offered(catalogue()[focus], found.plan, pick) is not None:
                    return found
            except ExplorerError:
                self.tally.counts["programs refused by the front end"] += 1
            except Exception:
                self._problem(seed, "an exception in the front end", traceback.format_exc(), found)
        return found

    def _move(self, seed: str, schedule: Schedule, pick: random.Random, focus: str) -> Schedule:
        """The schedule after one drawn move, or as it was."""
        with self._timed("moves"):
            try:
                step = random_step(schedule.plan, pick, focus)
            except Exception:
                self._problem(seed, "an exception while listing candidates", traceback.format_exc(), schedule)
                return schedule
        return schedule if step is None else self.attempt(seed, schedule, step)

    def attempt(self, seed: str, schedule: Schedule, step: Transform) -> Schedule:
        """The schedule with a step, or as it was if the step does not apply; a refusal is a pair to confirm."""
        with self._timed("moves"):
            try:
                verdict, plan = schedule.try_step(step)
                new = schedule.apply(step) if verdict else schedule
            except Exception:
                self._problem(seed, f"an exception in {step.name}", traceback.format_exc(), schedule, step)
                return schedule
        if plan is None:
            self.tally.counts["moves whose own precondition failed"] += 1
        elif verdict:
            self.tally.made[step.name] += 1
            if twice := _twice(new.plan):
                self._problem(seed, f"two nodes of one name after {step.name}", twice, schedule, step)
            if gone := unbound(new.plan):
                self._problem(seed, f"loops that are named, and not there, after {step.name}", gone, schedule, step)
        else:
            self.tally.refused[step.name] += 1
            self._refused(seed, plan, judge(plan).refusals, schedule, step)
        return new

    def _refused(self, seed: str, plan: Plan, findings: tuple[Finding, ...], schedule: Schedule, step: Transform | None) -> None:
        """A refused pair: its witnesses are held against the enumerated instances."""
        key = _digest(schedule, step)
        if key in self.tally.pairs or self.witnessed >= WITNESSED:
            return
        self.witnessed += 1
        with self._timed("witnesses"):
            for finding in findings[:3]:
                why = doubt(plan, finding)
                if why in (ENUMERATION, UNDECIDED):
                    self.tally.counts[f"not counted: {finding.question} refusal {why}"] += 1
                    return
                if why:
                    kind = f"a witness of {finding.question} that does not hold"
                    self._problem(seed, kind, f"{finding}\nbut {why}", schedule, step)
                    return
                self.tally.counts["witnesses confirmed"] += 1
        self.tally.pairs[key] = findings[0].question

    # -- the end of a chain --------------------------------------------------------------------------------------

    def conclude(self, seed: str, schedule: Schedule) -> None:
        """Discharge what is open, and line the schedule up for a run."""
        with self._timed("repairs"):
            done = self._repaired(seed, schedule)
        if done is None or _digest(done) in self.tally.pairs:
            return
        with self._timed("text"):
            try:
                self.waiting.append(Accepted(seed, done, emit(done.plan)))
            except IllegalSchedule as error:
                self._refused(seed, done.plan, (error.finding,), done, None)
            except ResourceError as error:
                self.tally.counts[f"not counted: no text, {error.why}"[:80]] += 1
            except Exception:
                self._problem(seed, "an exception while emitting", traceback.format_exc(), done)

    def _repaired(self, seed: str, schedule: Schedule) -> Schedule | None:
        """The schedule with every obligation discharged, or None; each obligation is a refusal to be confirmed."""
        for _ in range(4):
            if not schedule.obligations:
                return schedule
            self._refused(seed, schedule.plan, schedule.obligations, schedule, None)
            better = next((s for step in repairs(schedule.plan, schedule.obligations[0].nodes[0])
                           if (s := self._better(seed, schedule, step))), None)
            if better is None:
                return None
            schedule = better
        return None

    def _better(self, seed: str, schedule: Schedule, step: Transform) -> Schedule | None:
        new = self.attempt(seed, schedule, step)
        return new if new is not schedule and len(new.obligations) < len(schedule.obligations) else None

    # -- running -------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Compile what waits, run it, compare it."""
        with self._timed("compiling"):
            built = list(self._built(self.waiting))
        self.waiting = []
        with self._timed("running"):
            for accepted, program in built:
                self._compare(accepted, program)

    def _built(self, waiting: list[Accepted]) -> Iterator[tuple[Accepted, CpuBuilt]]:
        left = list(waiting)
        while left:
            try:
                yield from zip(left, CpuDevice().build_many([a.module for a in left]), strict=True)
                return
            except CompileError as error:
                bad = left.pop(error.index)
                self._problem(bad.seed, "text that does not compile", f"{error}\n{bad.module.text}", bad.schedule)

    def _compare(self, accepted: Accepted, built: CpuBuilt) -> None:
        """Run in two thread orders, on inputs of the chain's own."""
        schedule, number = accepted.schedule, int.from_bytes(hashlib.sha1(accepted.seed.encode()).digest()[:2])
        try:
            arrays, wanted = seeded_arrays(schedule.source, number), as_computed(schedule.source, schedule.plan)
            results = CpuDevice(seeds=(1, 2 + number), time_limit_s=20.0).run_seeds(built, arrays)
            wrong = next((w for outputs in results if (w := difference(wanted, arrays, outputs))), "")
        except ResourceError as error:
            self.tally.counts[f"not counted: too large for the CPU device, {error.why}"[:80]] += 1
            return
        except ExplorerError as error:
            kind = f"a fault ({getattr(error, 'kind', type(error).__name__)})"
            self._problem(accepted.seed, kind, f"{error}\n{accepted.module.text}", schedule)
            return
        except Exception:
            self._problem(accepted.seed, "an exception while running", traceback.format_exc(), schedule)
            return
        if wrong:
            self._problem(accepted.seed, "a wrong result", f"{wrong}\n{accepted.module.text}", schedule)
            return
        self.tally.pairs[_digest(schedule)] = ACCEPTED
        self.tally.ran.update({step.name for step in schedule.steps})  # type: ignore[attr-defined]

    # -- problems ------------------------------------------------------------------------------------------------

    def _problem(self, seed: str, kind: str, what: str, schedule: Schedule | None, step: Transform | None = None) -> None:
        shorter = schedule
        if schedule is not None and self.shrinks > 0:
            self.shrinks -= 1
            shorter = _shrunk(kind, schedule, step)
        script = "" if shorter is None else shorter.script() + (f"s = s.{step}\n" if step else "")
        self.tally.found.append(Counterexample(seed, kind, what, script))


def _shrunk(kind: str, schedule: Schedule, step: Transform | None) -> Schedule:
    """The schedule without the steps that the problem does not need."""
    position = 0
    while position < len(schedule.steps):
        steps = schedule.steps[:position] + schedule.steps[position + 1 :]
        shorter = _replayed(schedule, steps)
        if shorter is not None and kind in _kinds(shorter, step):
            schedule = shorter
        else:
            position += 1
    return schedule


def _replayed(schedule: Schedule, steps: tuple) -> Schedule | None:
    try:
        return schedule.replay(steps)
    except Exception:
        return None


def _kinds(schedule: Schedule, step: Transform | None) -> set[str]:
    """The kinds of problems that one pair has."""
    trial = Trial(shrinks=0)
    if step is not None:
        trial.attempt("again", schedule, step)
    else:
        trial.conclude("again", schedule)
        trial.flush()
    return {c.kind for c in trial.tally.found}


def _twice(plan: Plan) -> str:
    """A name that two loops or two leaves have, or nothing."""
    names = Counter(node.id for kernel in plan.kernels for node in walk(kernel.body))
    return ", ".join(name for name, count in names.items() if count > 1)


def unbound(plan: Plan) -> str:
    """Loops that a leaf names where it runs or what it uses, and that are not around it, or nothing."""
    gone: list[str] = []
    for leaf, above, _ in plan.leaves:
        named = [e for _, e in leaf.at]
        for _, v in leaf.views:
            named += [*v.index, *v.element, *([v.lane] if v.lane is not None else [])]
        around = {x.id for x in above}
        gone += [f"{leaf.id}: {name}" for name in sorted(frozenset[str]().union(*(e.variables() for e in named)) - around)]
        gone += [f"{leaf.id}: {name}" for name, _ in leaf.when if name not in around]
    return ", ".join(gone)


def _digest(schedule: Schedule, step: Transform | None = None) -> bytes:
    """What tells this pair from others: the program's text and sizes, and the steps."""
    text = "\n".join([schedule.source.source, str(schedule.source.sizes), *map(str, schedule.steps), str(step)])
    return hashlib.sha1(text.encode()).digest()
