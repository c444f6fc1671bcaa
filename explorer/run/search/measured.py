"""A measured search: the strategies' free choices built, checked and timed on the device, the best kept.

What `auto` takes comes first, then what the models favour and a few variants drawn at random, then neighbours of the best so
far (:mod:`~explorer.run.search.order`).  Each variant is checked against the reference before it is timed, with few repeats; the
fastest of them are then timed again, in turns with the start and with more repeats, and fewer of them each time (successive
halving, K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016), so
that noise does not decide.  A gain is only reported where it is larger than the noise of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import CompilerMissing, DeviceError, ExplorerError, TransformError, noun, shown
from ...gpu.spec import Gpu
from ...gpu.units import time_text
from ...schedule import Schedule
from ...strategies.choices import Variant, as_written, together
from ...strategies.price import price
from ...system.cancel import Cancel, Cancelled, cancellable
from ..options import check_counts, check_functions, check_seed
from ..timing import Timing, compare
from . import memory as search_memory
from .meter import Meter, meter
from .order import Order
from .result import SearchResult, Trial, fastest

Watch = Callable[[Sequence[Trial], int], None]
QUICK = 7
"""Repeats of a variant's first timing: the fewest that can tell two apart with 95 % (:func:`explorer.run.timing.compare`)."""
FINALS = ((8, 11), (3, 31))
"""Rounds in turns at the end: how many are in it, and repeats of each."""
NEAR = 1.02
"""A time within 2 % of the floor ends the search."""

forget = search_memory.forget


def search(schedule: Schedule, *, device: str = "cuda", trials: int = 40, arrays: Mapping[str, Any] | None = None,
           progress: Callable[[str], None] | None = None, watch: Watch | None = None, cancel: Cancel | None = None, seed: int = 0,
           remember: bool = True, renew: bool = False, candidates: Iterable[Variant] | None = None,
           gpu: Gpu | str | None = None) -> SearchResult:
    """Measure variants of the schedule that :func:`~explorer.strategies.auto.auto` makes, and keep the fastest.

    Parameters
    ----------
    schedule : Schedule
        Of the program; one with steps of its own is measured too.
    device : {"cuda", "cpu", "auto"}
        The CPU device's times say nothing about a GPU; the result says so.
    trials : int
        At most so many variants, the start included.
    arrays : mapping of str to array, optional
        Inputs to run on; by default made from `seed`.  With arrays nothing is remembered, as times may depend on values.
    progress : callable, optional
        Called with a line such as ``"12 of 40: best 31.2 µs"``.
    watch : callable, optional
        ``watch(trials, total)``, called after each variant and each round in turns with all trials so far, and how many there
        will be at most.
    cancel : Cancel, optional
        ``cancel.ask()`` from another thread ends the search with the best so far; so does interrupting the kernel.
    seed : int
        Of the inputs, and of the variants that are drawn at random.  With the same seed the same times lead to the same variants.
    remember : bool
        Whether to look up an earlier search of this program on this GPU, and keep this one; False does neither.
    renew : bool
        Measure even what is remembered, and keep this search in its place.
    candidates : iterable of Variant, optional
        What to measure instead of :func:`explorer.strategies.choices.variants`; the first is the start.
    gpu : Gpu or str, optional
        Where the times are of the CPU: the GPU that variants are made for and priced on; by default the H200.

    Returns
    -------
    SearchResult

    Raises
    ------
    DeviceError
        If no variant could be measured, or there is no such device.
    CompilerMissing
        If the machine lacks the compiler.
    Cancelled
        If the search ended before anything was measured.

    Examples
    --------
    >>> found = row_softmax.schedule(M=16384, N=1024).search()
    >>> print(found)
    >>> found.schedule.run()
    """
    if not isinstance(schedule, Schedule):
        raise TransformError(f"a search takes a schedule, not a {noun(schedule)}",
                             hint="program.schedule(M=…).search()")
    check_counts(trials=trials)
    check_seed(seed)
    check_functions(progress=progress, watch=watch)
    if cancel is not None and not isinstance(cancel, Cancel):
        raise DeviceError(f"cancel is an explorer.system.cancel.Cancel, not {shown(cancel)}.")
    measure = meter(schedule.source, device, arrays, seed, gpu)
    return searched(schedule, measure, trials=trials, progress=progress, watch=watch, cancel=cancel, seed=seed,
                    remember=remember and arrays is None, renew=renew, candidates=candidates)


def searched(schedule: Schedule, measure: Meter, *, trials: int, progress: Callable[[str], None] | None = None,
             watch: Watch | None = None, cancel: Cancel | None = None, seed: int = 0, remember: bool = False,
             renew: bool = False, candidates: Iterable[Variant] | None = None) -> SearchResult:
    """As :func:`search`, with any meter."""
    written = as_written(schedule)
    order = Order.of(schedule, measure.target, trials, seed) if candidates is None else Order(tuple(candidates)[:trials])
    if not order.first:
        raise DeviceError("There is nothing to search.", hint="candidates holds at least one variant")
    name = search_memory.key(written.source, measure.name, measure.target.name, trials, seed, *order.labels,
                             *map(str, schedule.steps))
    note = ""
    if remember and not renew:
        found, note = search_memory.load(name, written)
        if found is not None:
            return found
    work = _Work(written, measure, order.most, progress or _silent, watch or _unseen, cancel)
    with cancellable(cancel) if cancel is not None else nullcontext():
        result = work.run(order)
    result = replace(result, notes=(*([note] if note else []), *result.notes))
    if remember and not work.stopped:
        search_memory.store(name, result)
    return result


def _silent(line: str) -> None:
    """Tell nobody."""


def _unseen(trials: Sequence[Trial], total: int) -> None:
    """Show nobody."""


@dataclass
class _Work:
    """One search at work: what has been built and measured so far."""

    written: Schedule
    measure: Meter
    total: int
    tell: Callable[[str], None]
    show: Watch
    cancel: Cancel | None
    trials: list[Trial] = field(default_factory=list)
    made: list[tuple[Variant, Any]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    stopped: bool = False

    def run(self, order: Order) -> SearchResult:
        """Measure variant after variant, then the best again in turns."""
        ended = "all were measured"
        try:
            for variant in self._next(order):
                self._measure(variant)
                if self._near():
                    break
            self._finals()
        except (Cancelled, KeyboardInterrupt):
            self.stopped = True
            if not fastest(self.trials):
                raise
        if self.stopped:
            ended = "cancelled: the best so far"
        elif self._near():
            ended = f"the best is within {NEAR - 1:.0%} of the floor"
        return self._result(ended)

    def _next(self, order: Order) -> Iterator[Variant]:
        """Those that are given, the steps from the best so far, then those that combine the best of several kernels."""
        yield from order.first
        for _ in range(order.steps):
            if (beside := order.beside([(v, t.time_us) for (v, _), t in zip(self.made, self.trials, strict=True)])) is None:
                break
            yield beside
        for _ in range(order.combined):
            best = together(self.made[n][0] for n in self._better())
            if best is None or best.label in {t.label for t in self.trials}:
                break
            yield best

    def _measure(self, variant: Variant) -> None:
        """Build, check and time one variant; what goes wrong is its problem, not the search's."""
        self._check()
        trial, built = Trial(variant.label), None
        try:
            schedule = variant.schedule
            trial = replace(trial, steps=schedule.steps, estimate_us=price(schedule.plan, variant.gpu).total_us)
            built = self.measure.build(schedule)
            text = built.module.text + str(built.module.launches)
            if (same := self.texts.get(text)) is not None:
                trial = replace(trial, twin=same)
            elif problem := self.measure.wrong(schedule, built):
                trial = replace(trial, problem=problem)
            else:
                self.texts[text] = variant.label
                trial = replace(trial, timing=Timing.of(self.measure.time([built], QUICK)[0]), rounds=1)
        except (Cancelled, CompilerMissing):
            raise
        except ExplorerError as error:
            trial = replace(trial, problem=_line(f"{type(error).__name__}: {error.what}"))
        except Exception as error:  # a defect met by one variant must not cost the others
            trial = replace(trial, problem=_line(f"{type(error).__name__}: {error}"))
        self.trials.append(trial)
        self.made.append((variant, built))
        self._say(f"{len(self.trials)} of {self.total}")

    def _finals(self) -> None:
        """The fastest and the start again, in turns, fewer each round."""
        for count, repeats in FINALS:
            order = self._ahead()
            inside: list[int] = sorted(set(order[:count]) | ({0} if self.trials[0].timing else set()))
            if len(inside) < 2:
                return
            self._check()
            taken = self.measure.time([self.made[n][1] for n in inside], repeats)
            for n, samples in zip(inside, taken, strict=True):
                self.trials[n] = replace(self.trials[n], timing=Timing.of(samples), rounds=self.trials[n].rounds + 1)
            self._say(f"the best {len(inside)} again")

    def _ahead(self) -> list[int]:
        """Who stayed in longest, the fastest of them first: times of different rounds do not compare."""
        return sorted(fastest(self.trials), key=lambda n: -self.trials[n].rounds)

    def _better(self) -> list[int]:
        """Those that were faster than the start, the fastest first."""
        return [n for n in fastest(self.trials) if n and self.trials[n].time_us < self.trials[0].time_us]

    def _near(self) -> bool:
        """Whether the best is as good as at the floor; never where an empty launch takes longer than the floor."""
        floor, timed = self.measure.floor_us, [t.timing for t in self.trials if t.timing and not t.problem]
        return floor is not None and any(t.overhead_us < floor and t.net_us <= NEAR * floor for t in timed)

    def _check(self) -> None:
        if self.cancel is not None:
            self.cancel.check()

    def _say(self, head: str) -> None:
        order = self._ahead()
        self.tell(f"{head}: best {time_text(self.trials[order[0]].time_us, 4)}" if order else f"{head}: none is right yet")
        self.show(tuple(self.trials), self.total)

    def _result(self, ended: str) -> SearchResult:
        """The fastest by more than noise, else the start."""
        order = self._ahead()
        if not order:
            raise DeviceError("No variant could be measured.", why="; ".join(t.problem for t in self.trials[:3]),
                              hint="run the schedule: schedule.run() shows the whole problem")
        start, best, gain, notes = self.trials[0], order[0], None, tuple[str, ...]()
        if best and start.timing and not start.problem:
            gain = compare(start.timing, self.trials[best].timing)  # type: ignore[arg-type]
            if gain.noise or gain.ratio <= 1:
                best, gain = 0, None
                notes = ("no variant is faster than the first by more than the noise",)
        source = self.written.source
        return SearchResult(source.name, source.sizes, self.measure.name, self.measure.clock, self.made[best][0].schedule,
                            tuple(self.trials), best, gain, self.measure.floor_us, ended, notes=notes)


def _line(text: str) -> str:
    return text.splitlines()[0][:200] if text else text


__all__ = ["SearchResult", "Trial", "forget", "search", "searched"]
