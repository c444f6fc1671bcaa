"""What a strategy does, step by step: its moves replayed on the program as written, each with what it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ExplorerError, ReplayError, ScheduleError
from ..gpu.spec import Gpu
from ..run.facts import scaled
from ..schedule import Schedule
from ..strategies.auto import auto
from ..strategies.choices import variants
from ..strategies.default import default
from ..strategies.price import price
from ..strategies.stitch import Stitching, stitching
from ..transforms.base import Transform
from .panes.preview import effects
from .tasks import Tell

KINDS: dict[str, tuple[str, str]] = {
    "auto": ("Auto", "the right strategy for each kernel, by what the kernel is: fast without tuning"),
    "default": ("Default", "a legal parallel schedule for any program: the point to start from"),
    "stitch": ("Stitch", "fuses the program's values into kernels, by a model of what each edge between them costs"),
}
"""Name to title and what it does."""


@dataclass(frozen=True)
class Step:
    """One step of a strategy.

    Attributes
    ----------
    step : Transform
    schedule : Schedule
        After it.
    effects : tuple of str
        What changes for the machine, in words.
    estimate_us : float or None
        The price of the schedule after it (:mod:`explorer.strategies.price`); None while a reduction stands open.
    """

    step: Transform
    schedule: Schedule
    effects: tuple[str, ...]
    estimate_us: float | None


@dataclass(frozen=True)
class Recipe:
    """A strategy's way from the program as written.

    Attributes
    ----------
    name : str
        In :data:`KINDS`.
    gpu : Gpu
        What it is made for, and what the estimates are of.
    start : Schedule
    start_us : float
        The price of the program as written.
    steps : tuple of Step
    summary : str
        What the strategy chose, in words.
    total_us : float
        The price of what the strategy made: that of its last step.
    terms : tuple of (str, float)
        What it is for.
    """

    name: str
    gpu: Gpu
    start: Schedule
    start_us: float
    steps: tuple[Step, ...]
    summary: str = ""
    total_us: float = 0.0
    terms: tuple[tuple[str, float], ...] = ()

    @property
    def done(self) -> list[tuple[Transform, Schedule]]:
        """Each step with the schedule after it."""
        return [(s.step, s.schedule) for s in self.steps]


@dataclass(frozen=True)
class Made:
    """What a strategy returned: its schedule, and what it says of it."""

    schedule: Schedule
    summary: str = ""


def recipe(start: Schedule, name: str, gpu: Gpu, tell: Tell) -> Recipe:
    """Let a strategy schedule a program, and replay its steps.

    Parameters
    ----------
    start : Schedule
        The program as written.
    name : str
    gpu : Gpu
    tell : callable
        Hears how far it is; may raise to stop.

    Raises
    ------
    ScheduleError
        If no strategy has the name, it has none for this program, or its steps cannot be replayed.
    """
    if name not in MAKERS:
        raise ScheduleError(f"there is no strategy {name!r}", hint=" or ".join(MAKERS))
    tell(f"{name}: choosing")
    return recipe_of(start, name, MAKERS[name](start, gpu, tell), gpu, tell)


def recipe_of(start: Schedule, name: str, made: Made, gpu: Gpu, tell: Tell) -> Recipe:
    """The steps of what a strategy has made."""
    steps, whole = replayed(start, made.schedule.steps, gpu, tell), price(made.schedule.plan, gpu)
    return Recipe(name, gpu, start, price(start.plan, gpu).total_us, steps, made.summary, whole.total_us, whole.terms)


def replayed(start: Schedule, made: Sequence[Any], gpu: Gpu, tell: Tell) -> tuple[Step, ...]:
    """Every step (a Transform) taken and judged, from the program as written."""
    out: list[Step] = []
    steps: list[Transform] = list(made)
    now, last = start, price(start.plan, gpu).requested_bytes
    for number, step in enumerate(steps, 1):
        tell(f"step {number} of {len(steps)}: {step.name}", number / len(steps))
        try:
            after = now.apply(step)
        except ExplorerError as error:
            raise ReplayError(f"step {number}, {step}, does not apply by itself: {error.what}", why=error.why,
                              **error.details) from error
        words = effects(now, after.plan)
        known = None
        if after.judgement.emittable:
            known = price(after.plan, gpu)
            if f"{known.requested_bytes:.3g}" != f"{last:.3g}":
                words.append(f"requested {scaled(last, 'B')} → {scaled(known.requested_bytes, 'B')}")
            last = known.requested_bytes
        out.append(Step(step, after, tuple(words), known.total_us if known else None))
        now = after
    return tuple(out)


def _auto(start: Schedule, gpu: Gpu, tell: Tell) -> Made:
    """The schedule by the rules, kernel by kernel, and in words what was chosen."""
    def decide(stage: str, schedule: Schedule, kernel: str) -> None:
        tell(f"auto: {stage} {kernel}".rstrip())

    made = auto(start, gpu, decide=decide)
    own = next(iter(variants(start, gpu, each=0)))
    return Made(made, own.label.removeprefix("auto: ").removeprefix("auto"))


def _default(start: Schedule, gpu: Gpu, tell: Tell) -> Made:
    return Made(default(start))


def _stitch(start: Schedule, gpu: Gpu, tell: Tell) -> Made:
    return stitched(stitching(start, gpu=gpu))


def stitched(found: Stitching) -> Made:
    """What a stitching has made."""
    groups = "; ".join(f"kernel {n}: {', '.join(group)}" for n, group in enumerate(found.groups, 1))
    return Made(found.schedule, groups)


MAKERS: dict[str, Callable[[Schedule, Gpu, Tell], Made]] = {"auto": _auto, "default": _default, "stitch": _stitch}
