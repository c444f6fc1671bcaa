"""Random schedules of random programs, put to the test: accepted ones run and compared, refused ones enumerated.

A *pair* is a program and a schedule that the four questions judged.  An accepted pair is emitted, compiled, run on the checked
CPU device in adversarial thread orders, and compared with the interpreter.  A refused pair's witness is held against the
enumerated instances of the refused plan.
"""

from __future__ import annotations

import hashlib
import random
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from explorer.api import Schedule
from explorer.codegen.emit import emit
from explorer.codegen.module import CudaModule
from explorer.errors import CompileError, ExplorerError
from explorer.ir.dtype import bf16_to_f32
from explorer.ir.interpret import interpret
from explorer.ir.program import Program
from explorer.poly.judge import judge
from explorer.run.cpu import CpuBuilt, CpuDevice
from explorer.run.inputs import seeded_arrays
from explorer.run.reference import Reference, compiled
from explorer.run.verify import check_outputs
from explorer.transforms.base import Transform

from .moves import random_step, repairs
from .programs import random_case, workload_case
from .witness import ENUMERATION, UNDECIDED, doubt

TRIES = 36
"""Moves drawn for one chain at most."""
BATCH = 64
"""Kernels that are compiled together."""


@dataclass(frozen=True)
class Counterexample:
    """Something that should not happen, with the script that makes it."""

    seed: str
    kind: str
    what: str
    script: str

    def __str__(self) -> str:
        bar = "-" * 100
        return f"{bar}\n{self.kind} (chain {self.seed})\n{self.what}\n\n{self.script}"


@dataclass
class Tally:
    """What a run has seen."""

    counts: Counter = field(default_factory=Counter)
    accepted_moves: Counter = field(default_factory=Counter)
    refused_by: Counter = field(default_factory=Counter)
    found: list[Counterexample] = field(default_factory=list)
    seconds: Counter = field(default_factory=Counter)
    pairs: set[bytes] = field(default_factory=set)

    def merge(self, other: Tally) -> None:
        """Add another run."""
        self.counts += other.counts
        self.accepted_moves += other.accepted_moves
        self.refused_by += other.refused_by
        self.seconds += other.seconds
        self.found += other.found
        self.pairs |= other.pairs

    @property
    def total(self) -> int:
        """Distinct pairs that were put to the test."""
        return self.counts["accepted"] + sum(n for k, n in self.counts.items() if k.startswith("refused: "))

    def __str__(self) -> str:
        rows = [f"{self.total:,} pairs: {self.counts['accepted']:,} accepted, run and equal to the reference; "
                f"{self.total - self.counts['accepted']:,} refused, each witness confirmed by enumeration"]
        rows += [f"  {n:7,} {k}" for k, n in sorted(self.counts.items()) if k != "accepted"]
        rows += ["accepted moves: " + ", ".join(f"{k} {n}" for k, n in self.accepted_moves.most_common())]
        rows += ["refused moves: " + ", ".join(f"{k} {n}" for k, n in self.refused_by.most_common())]
        rows += ["seconds: " + ", ".join(f"{k} {n:.1f}" for k, n in self.seconds.most_common())]
        rows += [f"counterexamples: {len(self.found)}"]
        return "\n".join(rows)


@dataclass(frozen=True)
class Accepted:
    """A legal schedule without open obligations, and its text."""

    seed: str
    schedule: Schedule
    module: CudaModule


class Trial:
    """Runs chains and keeps the tally."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.waiting: list[Accepted] = []

    def run(self, seeds: Iterable[str]) -> Tally:
        """All chains of these seeds."""
        for seed in seeds:
            self.chain(seed)
            if len(self.waiting) >= BATCH:
                self.flush()
        self.flush()
        return self.tally

    # -- one chain -----------------------------------------------------------------------------------------------

    def chain(self, seed: str) -> None:
        """A program, and moves until enough are accepted."""
        pick = random.Random(seed)
        schedule = self._start(seed, pick)
        if schedule is None:
            return
        wanted = pick.choice((1, 2, 3, 4, 5, 6, 7, 8))
        for _ in range(TRIES):
            if len(schedule.steps) >= wanted:
                break
            schedule = self._move(seed, schedule, pick)
        schedule = self._repaired(seed, schedule)
        if schedule is not None and self._is_new(schedule):
            self._emit(seed, schedule)

    def _start(self, seed: str, pick: random.Random) -> Schedule | None:
        begin = time.perf_counter()
        try:
            case = workload_case(pick) if pick.random() < 0.3 else random_case(pick, "chain" + seed.replace(":", "_"))
            return case.schedule
        except ExplorerError as error:
            self.tally.counts[f"no program: {error.what.split(' ')[-1]}"] += 0
            self.tally.counts["programs refused by the front end"] += 1
        except Exception:
            self._problem(seed, "an exception in the front end", traceback.format_exc(), "")
        finally:
            self.tally.seconds["programs"] += time.perf_counter() - begin
        return None

    def _move(self, seed: str, schedule: Schedule, pick: random.Random) -> Schedule:
        """The schedule after one drawn move, or as it was."""
        step, begin = None, time.perf_counter()
        try:
            step = random_step(schedule.plan, pick)
            return schedule if step is None else self._applied(seed, schedule, step)
        except Exception:
            self._problem(seed, f"an exception in {step}", traceback.format_exc(), schedule.script() + f"s = s.{step}\n")
            return schedule
        finally:
            self.tally.seconds["moves"] += time.perf_counter() - begin

    def _applied(self, seed: str, schedule: Schedule, step: Transform) -> Schedule:
        verdict, plan = schedule.try_step(step)
        if plan is None:
            self.tally.counts["moves whose own precondition failed"] += 1
            return schedule
        if verdict:
            self.tally.accepted_moves[step.name] += 1
            return schedule.apply(step)
        self.tally.refused_by[step.name] += 1
        if self._is_new(schedule, step):
            begin = time.perf_counter()
            for finding in judge(plan).refusals[:3]:
                self._confirm(seed, plan, finding, schedule.script() + f"s = s.{step}\n")
            self.tally.counts[f"refused: {judge(plan).refusals[0].question}"] += 1
            self.tally.seconds["witnesses"] += time.perf_counter() - begin
            self.tally.seconds["moves"] -= time.perf_counter() - begin
        return schedule

    def _confirm(self, seed, plan, finding, script) -> None:  # noqa: ANN001
        why = doubt(plan, finding)
        if why in (ENUMERATION, UNDECIDED):
            self.tally.counts[f"witnesses: {why}"] += 1
        elif why:
            self._problem(seed, f"a witness of question {finding.question} that does not hold", f"{finding}\nbut {why}", script)
        else:
            self.tally.counts["witnesses confirmed"] += 1

    def _repaired(self, seed: str, schedule: Schedule) -> Schedule | None:
        """The schedule with every obligation discharged, or None; each obligation is a refusal to be confirmed."""
        begin = time.perf_counter()
        try:
            for _ in range(4):
                if not schedule.obligations:
                    return schedule
                if self._is_new(schedule):
                    for finding in schedule.obligations:
                        self._confirm(seed, schedule.plan, finding, schedule.script())
                    self.tally.counts["refused: obligation"] += 1
                better = next((s for step in repairs(schedule.plan, schedule.obligations[0].nodes[0])
                               if (s := self._tried(schedule, step))), None)
                if better is None:
                    return None
                schedule = better
            return None
        except Exception:
            self._problem(seed, "an exception while collecting", traceback.format_exc(), schedule.script())
            return None
        finally:
            self.tally.seconds["repairs"] += time.perf_counter() - begin

    def _tried(self, schedule: Schedule, step: Transform) -> Schedule | None:
        verdict, plan = schedule.try_step(step)
        if not verdict or plan is None or len(judge(plan).obligations) >= len(schedule.obligations):
            return None
        self.tally.accepted_moves[step.name] += 1
        return schedule.apply(step)

    def _is_new(self, schedule: Schedule, step: Transform | None = None) -> bool:
        text = "\n".join([schedule.source.source, str(schedule.source.sizes), *map(str, schedule.steps), str(step)])
        key = hashlib.sha1(text.encode()).digest()
        if key in self.tally.pairs:
            return False
        self.tally.pairs.add(key)
        return True

    # -- running -------------------------------------------------------------------------------------------------

    def _emit(self, seed: str, schedule: Schedule) -> None:
        begin = time.perf_counter()
        try:
            self.waiting.append(Accepted(seed, schedule, emit(schedule.plan)))
        except ExplorerError as error:
            self.tally.counts[f"accepted, not emitted: {error.what[:60]}"] += 1
        except Exception:
            self._problem(seed, "an exception while emitting", traceback.format_exc(), schedule.script())
        self.tally.seconds["text"] += time.perf_counter() - begin

    def flush(self) -> None:
        """Compile what waits, run it, compare it."""
        begin = time.perf_counter()
        built = list(self._built(self.waiting))
        self.waiting = []
        self.tally.seconds["compiling"] += time.perf_counter() - begin
        begin = time.perf_counter()
        for accepted, program in built:
            self._compare(accepted, program)
        self.tally.seconds["running"] += time.perf_counter() - begin

    def _built(self, waiting: list[Accepted]) -> Iterator[tuple[Accepted, CpuBuilt]]:
        left = list(waiting)
        while left:
            try:
                yield from zip(left, CpuDevice().build_many([a.module for a in left]), strict=True)
                return
            except CompileError as error:
                bad = left.pop(error.index)
                self._problem(bad.seed, "text that does not compile", f"{error}\n{bad.module.text}", bad.schedule.script())

    def _compare(self, accepted: Accepted, built: CpuBuilt) -> None:
        program = accepted.schedule.source
        orders = (1, 2 + random.Random(accepted.seed).randrange(1000))
        try:
            arrays = seeded_arrays(program, len(accepted.seed))
            results = CpuDevice(seeds=orders, time_limit_s=20.0).run_seeds(built, arrays)
        except ExplorerError as error:
            self._problem(accepted.seed, f"a fault ({getattr(error, 'kind', type(error).__name__)})",
                          f"{error}\n{accepted.module.text}", accepted.schedule.script())
            return
        for outputs in results:
            if wrong := difference(program, arrays, outputs):
                self._problem(accepted.seed, "a wrong result", f"{wrong}\n{accepted.module.text}", accepted.schedule.script())
                return
        self.tally.counts["accepted"] += 1

    def _problem(self, seed: str, kind: str, what: str, script: str) -> None:
        self.tally.counts["counterexamples"] += 1
        self.tally.found.append(Counterexample(seed, kind, what, script))


# -- reference ---------------------------------------------------------------------------------------------------


def difference(program: Program, arrays: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> str:
    """The first output that differs from the reference by more than rounding, or nothing.

    The interpreter decides; where it disagrees, the compiled float64 loops with the error bound of each cell have the
    last word (the interpreter's tolerance is one for the whole array).
    """
    wrong = [c for c in check_outputs(program, outputs, expected(program, arrays)) if not c]
    if not wrong:
        return ""
    again = [c for c in check_outputs(program, outputs, compiled(program, arrays)) if not c]
    return "\n".join(map(str, again))


def expected(program: Program, arrays: dict[str, np.ndarray]) -> Reference:
    """The interpreter's result: floats in float64 without rounding, integers as their types hold them."""
    floats = any(a.dtype.kind == "float" for a in program.arrays)
    found = interpret(program, arrays, exact=floats, rounded=not floats)
    values = {}
    for a in program.parameters:
        if a.role != "in":
            value = np.asarray(found[a.name])
            if a.dtype.name == "bf16" and value.dtype == a.dtype.numpy:
                value = bf16_to_f32(value)
            values[a.name] = value.astype({"float": np.float64, "int": np.int64, "bool": np.uint8}[a.dtype.kind]).reshape(a.shape)
    return Reference(values, {}, {}, "the interpreter")
