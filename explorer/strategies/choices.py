"""Other schedules than the one that :func:`~explorer.strategies.auto.auto` takes: its free choices, listed and built.

Every strategy has parameters that a rule or a model sets: threads, accesses in flight, parts, where a row lies.  Here they are
laid out alike, one *decision* for each kernel whose turn comes, and one *variant* for each schedule that differs from `auto`'s
in a decision, or in several.  What is chosen is data, too, so that a search knows which ones are neighbours
(:mod:`~explorer.strategies.neighbours`).  Which is fastest is not known here; :func:`explorer.run.search.measured.search`
measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice, zip_longest
from math import log

from ..errors import ScheduleError, TransformError
from ..gpu.spec import Gpu, target_gpu
from ..ir.plan import initial
from ..schedule import Schedule
from .attention_choices import attention_choices
from .auto import auto
from .kernel_choices import SAME, Choice, rest_choices, ride_choices, spread_choices

Place = tuple[str, str]
"""Stage and kernel of a decision."""
KNOWN_FIRST = 2
"""So many choices that a model prices come before one that none does."""


@dataclass(frozen=True)
class Decision:
    """A turn of :func:`~explorer.strategies.auto.auto` with several ways to take it.

    Attributes
    ----------
    stage, kernel : str
    choices : tuple of Choice
        The first is `auto`'s, the others follow by the models' estimates.
    """

    stage: str
    kernel: str
    choices: tuple[Choice, ...]

    @property
    def place(self) -> Place:
        """What names it."""
        return self.stage, self.kernel


@dataclass(frozen=True)
class Variant:
    """A schedule that is built when it is asked for.

    Attributes
    ----------
    label : str
        What is different, in words.
    written : Schedule
        The program as written.
    gpu : Gpu
    changes : tuple of Choice
        What differs from `auto`; nothing for `auto` itself.
    rank_us : float or None
        Microseconds by the models of the families, all kernels together, by which variants are ordered; None where a kernel is
        not known to any.  What is shown of a variant is the price of its schedule (:mod:`explorer.strategies.price`).
    approximate : bool
        As `auto` takes it.
    """

    label: str
    written: Schedule
    gpu: Gpu
    changes: tuple[Choice, ...] = ()
    rank_us: float | None = None
    approximate: bool = True

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule: legal, without open obligations, its steps replayable.

        Raises
        ------
        TransformError, IllegalSchedule
            If the choices do not fit the program, or not each other.
        """
        left = {(c.stage, c.kernel): c for c in self.changes}

        def decide(stage: str, schedule: Schedule, kernel: str) -> Schedule | None:
            choice = left.pop((stage, kernel), None)
            return choice(schedule) if choice else None

        made = auto(self.written, self.gpu, self.approximate, decide if left else None)
        if left:
            raise TransformError(f"{next(iter(left.values())).label} does not go with the other choices")
        if not made.judgement.emittable:
            raise TransformError(f"{self.label} leaves a question open", why=str((*made.judgement.refusals,
                                                                                *made.judgement.obligations)[0]))
        return made

    def __str__(self) -> str:
        return self.label


def decisions(schedule: Schedule, gpu: Gpu | str | None = None, approximate: bool = True) -> tuple[Decision, ...]:
    """Where `auto` could go another way, and which.

    Parameters
    ----------
    schedule : Schedule
        Of any form: the program as written counts.
    gpu : Gpu or str, optional
        By default the H200.
    approximate : bool
        As `auto` takes it.

    Returns
    -------
    tuple of Decision
        In the order in which `auto` takes them.
    """
    target, found, left_over = target_gpu(gpu), [], []

    def look(stage: str, now: Schedule, kernel: str) -> Schedule | None:
        if stage == "attention":
            choices = attention_choices(schedule, now, target, approximate)
        elif stage == "row_column":
            choices = ride_choices(now, kernel, target)
        elif stage == "spread":
            choices = spread_choices(now, kernel, target)
            left_over.extend([] if choices or _bound(now, kernel) else [kernel])
        elif stage == "left":
            choices = []
            left_over.append(kernel)
        else:
            choices = rest_choices(now) if left_over else []
        if len(choices) > 1:
            found.append(Decision(stage, kernel, tuple(choices)))
        whole = stage == "attention" and choices  # then there are no other turns
        return now if whole or stage in ("spread", "left", "rest") else None

    auto(as_written(schedule), target, approximate, look)
    return tuple(found)


def variants(schedule: Schedule, gpu: Gpu | str | None = None, approximate: bool = True,
             each: int | None = None, found: Sequence[Decision] | None = None) -> Iterator[Variant]:
    """The schedules that differ in the strategies' free choices.

    Parameters
    ----------
    schedule : Schedule
        Of any form: the program as written counts.
    gpu : Gpu or str, optional
        By default the H200.
    approximate : bool
        As :func:`~explorer.strategies.auto.auto` takes it.
    each : int, optional
        At most so many other choices of each decision, the cheapest by the models; by default all.
    found : sequence of Decision, optional
        What :func:`decisions` says, where that is known.

    Yields
    ------
    Variant
        First `auto`'s own; then one decision changed at a time, the least extra cost by the models first; then the best changes
        of several decisions together.
    """
    written, target = as_written(schedule), target_gpu(gpu)
    found = decisions(written, target, approximate) if found is None else found
    whole = _sum(d.choices[0].rank_us for d in found)
    auto_s = Variant("auto", written, target, (), whole, approximate)
    own = tuple(d.choices[0] for d in found)
    if own and _is_made_by(own, auto_s):
        auto_s = replace(auto_s, label="auto: " + "; ".join(c.label for c in own))
    yield auto_s
    singles = list(_merged([list(d.choices[1:][:each]) for d in found], {d.place: d.choices[0] for d in found}))

    def variant(changes: tuple[Choice, ...]) -> Variant:
        taken = {(c.stage, c.kernel): c for c in changes}
        estimate = _sum(taken.get(d.place, d.choices[0]).rank_us for d in found)
        return Variant(_label(changes, len(found)), written, target, changes, estimate, approximate)

    yield from (variant((c,)) for c in singles)
    best = list({(c.stage, c.kernel): c for c in reversed(singles)}.values())[::-1]
    for size in range(len(best), 1, -1):
        yield from (variant(changes) for changes in islice(combinations(best, size), len(best)))


def _is_made_by(changes: tuple[Choice, ...], variant: Variant) -> bool:
    """Whether a variant is what these choices make: not where its first tiling cannot be built, or the default costs less."""
    try:
        return replace(variant, changes=changes).schedule.plan == variant.schedule.plan
    except ScheduleError:
        return False


def together(several: Iterable[Variant]) -> Variant | None:
    """One variant with the changes of several, the first of each decision; None where that is none of two."""
    several = list(several)
    taken: dict[Place, Choice] = {}
    for variant in several:
        for change in variant.changes:
            taken.setdefault((change.stage, change.kernel), change)
    if len(taken) < 2 or any(len(v.changes) == len(taken) for v in several):
        return None
    return replace(several[0], label=_label(tuple(taken.values()), len(taken)), changes=tuple(taken.values()), rank_us=None)


def as_written(schedule: Schedule) -> Schedule:
    """The schedule that runs the program as the user wrote it."""
    return replace(schedule, plan=initial(schedule.source), steps=()) if schedule.steps else schedule


def _bound(schedule: Schedule, kernel: str) -> bool:
    """Whether a loop of a kernel has a place."""
    return any(x.is_place for leaf, above, k in schedule.plan.leaves if k.id == kernel for x in above)


def _label(changes: tuple[Choice, ...], among: int) -> str:
    """What changes; with the kernel's name where there are several decisions."""
    return "; ".join((f"{c.kernel}: " if among > 1 and c.kernel else "") + c.label for c in changes)


def _sum(parts: Iterable[float | None]) -> float | None:
    """The sum; None where there is nothing to add, or a part is not known."""
    known = list(parts)
    return sum(p for p in known if p is not None) if known and all(p is not None for p in known) else None


def _merged(lists: list[list[Choice]], base: dict[Place, Choice]) -> Iterator[Choice]:
    """The choices of all decisions by how many times `auto`'s cost; those that no model prices in turn between them."""
    known: list[tuple[int, Choice]] = []
    unknown: list[list[Choice]] = []
    for choices in lists:
        rest = []
        for c in choices:
            least = base[c.stage, c.kernel].rank_us
            if c.rank_us is None or least is None:
                rest.append(c)
            else:
                known.append((int(log(max(c.rank_us, least) / least) / SAME), c))
        unknown.append(rest)
    priced = iter([c for _, c in sorted(known, key=lambda k: k[0])])
    free = iter([c for row in zip_longest(*unknown) for c in row if c is not None])
    while batch := [*islice(priced, KNOWN_FIRST), *islice(free, 1)]:
        yield from batch
