"""The time of a grid whose blocks compute in steps: loads and products overlap as far as stages and resident blocks allow.

A multiprocessor with `r` resident blocks takes three kinds of time for each step of their pipelines.  *Computing* is the longest
of four, as the same instructions need all of them:

- *tensor*: the products of all its blocks at the rate of their instruction;
- *issue*: their other instructions at what it issues;
- *banks*: their passes over the banks of shared memory;
- *step*: the products of one block, and its waits and barriers, in which other blocks go on.

The two others go on beside it:

- *load*: their tiles at what it takes in from the second-level cache;
- *latency*: a load's latency, over the steps that each block has in flight; with one, the load and the step one after the other.

The longest of the three counts, and the others as far as they come near it (:func:`together`): no pipeline overlaps them wholly.
To these a block adds the start of its pipeline (*fill*) and its results' way out (*store*).  The grid takes as many rounds as its
blocks need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isinf, sqrt

from ...ir.tree import WARP_SIZE
from .rates import CLUSTER_CYCLES, CLUSTERED, NARROW_APART, PAIR, RATES, TENSOR_CORES

PAIRED = 2
"""Stages of which one is read by the products in flight: the next copy waits for them, and nothing hides that."""
ROUNDS = 64
"""Rounds that are looked at one by one; the others take as long as these on average."""


@dataclass(frozen=True)
class Step:
    """What one step of one block takes, in cycles of a multiprocessor that has nothing else to do.

    Attributes
    ----------
    engine : str
        In :data:`~explorer.strategies.pipelines.rates.RATES`.
    count : int
        Steps of a block.
    stages : int
        Steps in flight, the computing one included.
    tensor, issue, banks, load : float
        Products; other instructions; passes over the banks of shared memory; copies.
    waited : bool
        Whether a warpgroup waits for its products at once.
    narrow : float
        Copies of one word that a thread of plain arithmetic issues, one behind the other.
    even : bool
        Whether large boxes of whole lines are loaded, in the only loop of a block.
    """

    engine: str
    count: int
    stages: int
    tensor: float
    issue: float
    banks: float
    load: float
    waited: bool = False
    narrow: float = 0.0
    even: bool = False

    def alone(self, threads: int) -> float:
        """Cycles in which a block of so many threads computes one step, with its waits and barriers."""
        rates = RATES[self.engine]
        few = max(1.0, TENSOR_CORES * WARP_SIZE / threads) if self.engine != "warpgroup" else 1.0
        computed = max(self.tensor * few, self.banks, self.issue if self.engine == "plain" else 0.0)
        others = self.narrow * NARROW_APART if self.engine == "plain" else self.issue
        return max(computed + others + rates.step + rates.waited * self.waited, rates.least_step)

    @property
    def landing(self) -> float:
        """Cycles from the issue of a step's copies to their landing."""
        rates, ahead = RATES[self.engine], self.stages - 1
        if not ahead:
            return rates.quiet + self.load
        later = rates.released * (not self.waited and self.stages == PAIRED)
        return (rates.latency + rates.behind * self.load) * ahead / max(0.5, self.stages - rates.late) + later

    def times(self, blocks: int, threads: int, whole: bool = False) -> Cycles:
        """Of all steps of so many resident blocks of each multiprocessor, where they are the whole grid or a part of it."""
        alone, rates = self.alone(threads), RATES[self.engine]
        waiting = self.landing / (self.stages - 1) if self.stages > 1 else self.landing + alone
        apart = rates.apart / blocks**2
        loading = self.load * blocks / (1.0 + rates.beside * (blocks - 1) * (whole and self.even))
        each = (self.tensor * blocks + apart, self.issue * blocks + apart, self.banks * blocks, loading, alone, waiting)
        return Cycles(*(x * self.count for x in each))


def together(computing: float, load: float, latency: float, norm: float) -> float:
    """What three times take that overlap, but not wholly: their longest, if `norm` is infinite.

    The `norm`-th root of the sum of their `norm`-th powers: by a norm of five, two that are equally long take 1.15 times as long
    as each; one that is half as long as the other makes it 0.6 % longer.
    """
    longest = max(computing, load, latency)
    if isinf(norm) or not longest:
        return longest
    return longest * sum((x / longest) ** norm for x in (computing, load, latency)) ** (1 / norm)


@dataclass(frozen=True)
class Cycles:
    """The six times of a step: in cycles, or in microseconds."""

    tensor: float = 0.0
    issue: float = 0.0
    banks: float = 0.0
    load: float = 0.0
    step: float = 0.0
    latency: float = 0.0

    @property
    def bound(self) -> str:
        """The longest."""
        return max((f.name for f in fields(self)), key=lambda name: getattr(self, name))

    @property
    def longest(self) -> float:
        """Its time."""
        return getattr(self, self.bound)

    @property
    def computing(self) -> float:
        """The longest of the four that the same instructions need."""
        return max(self.tensor, self.issue, self.banks, self.step)

    def together(self, norm: float) -> float:
        """What they take, as far as they do not overlap."""
        return together(self.computing, self.load, self.latency, norm)

    def stretch(self, norm: float) -> float:
        """How much longer they take than the longest of them."""
        return self.together(norm) / self.longest if self.longest else 1.0

    def plus(self, other: Cycles) -> Cycles:
        """Both one after the other."""
        return Cycles(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def scaled(self, factor: float) -> Cycles:
        """All of them so many times."""
        return Cycles(*(getattr(self, f.name) * factor for f in fields(self)))


@dataclass(frozen=True)
class Stepped:
    """The time of a grid whose blocks compute in steps.

    Attributes
    ----------
    fill, store : float
        Microseconds of the pipelines' starts, and of the results' way out.
    steps : tuple of (Step, Cycles)
        Each nest of steps with its times, in microseconds.
    resident, rounds : int
        Blocks of a multiprocessor at a time, where there are so many, and how often the grid fills the GPU.
    """

    fill: float
    store: float
    steps: tuple[tuple[Step, Cycles], ...]
    resident: int
    rounds: int

    @property
    def parts(self) -> tuple[tuple[str, float], ...]:
        """The terms that count, which add up to the total; of a nest of steps all of it is called by its longest time."""
        found: dict[str, float] = {"fill": self.fill}
        for step, us in self.steps:
            found[us.bound] = found.get(us.bound, 0.0) + us.together(RATES[step.engine].norm)
        return (*found.items(), ("store", self.store))

    @property
    def total_us(self) -> float:
        """Their sum."""
        return sum(us for _, us in self.parts)


def stepped(steps: Sequence[Step], stored: float, blocks: int, threads: int, resident: int, multiprocessors: int,
            clock: float, starts: int = 1, cluster: int = 1) -> Stepped:
    """The time of a grid.

    Parameters
    ----------
    steps : sequence of Step
        One after the other, of each block.
    stored : float
        Cycles in which a multiprocessor writes a block's results.
    blocks, threads : int
        Of the grid, and of a block.
    resident : int
        Blocks that a multiprocessor holds at most.
    multiprocessors : int
    clock : float
        Cycles of a microsecond.
    starts : int
        How often a block starts its pipeline: for each tile that it takes, where no producer carries it on.
    cluster : int
        Blocks that bring each other's boxes.
    """
    rates = RATES[steps[0].engine]
    if cluster > PAIR:
        multiprocessors = int(multiprocessors * CLUSTERED)
    begun = starts * rates.fill + CLUSTER_CYCLES * (cluster > 1)
    resident = max(1, min(resident, -(-blocks // multiprocessors)))
    fill = store = 0.0
    totals = [Cycles() for _ in steps]
    left, rounds = blocks, 0
    while left > 0 and rounds < ROUNDS:
        here = min(resident, -(-left // multiprocessors))
        left -= here * multiprocessors
        rounds += 1
        fill, store = fill + begun / sqrt(here), store + here * stored
        whole = rounds == 1 and left <= 0
        totals = [total.plus(s.times(here, threads, whole)) for total, s in zip(totals, steps, strict=True)]
    scale = (1.0 if left <= 0 else blocks / (blocks - left)) / clock
    times = tuple((s, total.scaled(scale)) for s, total in zip(steps, totals, strict=True))
    return Stepped(fill * scale, store * scale, times, resident, rounds)
