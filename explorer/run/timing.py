"""Statistics of kernel times: median, confidence interval, spread, and whether a gain exceeds the noise.

Medians with order-statistics intervals, not means: times are skewed and not normal (T. Hoefler, R. Belli, "Scientific
benchmarking of parallel computing systems", SC 2015, rules 6 to 8).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb
from statistics import median, quantiles

from ..gpu.units import time_text, times_text

CONFIDENCE = 0.95


class Samples(tuple[float, ...]):
    """Times in microseconds, as a device hands them over, with how they were taken.

    Attributes
    ----------
    l2 : str
        ``"cold"`` or ``"warm"``: the state of the GPU's cache before each repeat; empty on the CPU.
    overhead_us : float
        What an empty kernel reads when timed the same way in the same run; 0 where there is no such thing.  It is *in* the
        samples: subtract it when reasoning about a kernel, keep it when comparing end to end.
    method : str
        How the clock was started and stopped.
    """

    l2: str
    overhead_us: float
    method: str

    def __new__(cls, values: Iterable[float] = (), *, l2: str = "warm", overhead_us: float = 0.0, method: str = "") -> Samples:
        """A tuple of the values, with the attributes."""
        self = super().__new__(cls, values)
        self.l2, self.overhead_us, self.method = l2, overhead_us, method
        return self


@dataclass(frozen=True)
class Timing:
    """What the samples say.

    Attributes
    ----------
    samples : tuple of float
        In the order taken, microseconds.
    median_us, low_us, high_us : float
        Median and the ends of its interval.
    confidence : float
        The interval's true coverage: at least 0.95 from six samples on, less below (then it is the whole range).
    min_us : float
    spread : float
        Interquartile range over the median (0 for fewer than four samples, where quartiles mean nothing).
    l2 : str
    overhead_us : float
    method : str
        As on `Samples`.
    """

    samples: tuple[float, ...]
    median_us: float
    low_us: float
    high_us: float
    confidence: float
    min_us: float
    spread: float
    l2: str = "warm"
    overhead_us: float = 0.0
    method: str = ""

    @classmethod
    def of(cls, samples: Iterable[float]) -> Timing:
        """Summarise samples (microseconds; at least one).

        Raises
        ------
        ValueError
            Without samples.
        """
        taken = samples if isinstance(samples, Samples) else Samples(samples)
        if not taken:
            raise ValueError("a timing needs at least one sample")
        low, high, confidence = median_interval(taken, CONFIDENCE)
        middle = median(taken)
        quartiles = quantiles(taken, n=4) if len(taken) >= 4 else [middle] * 3
        spread = (quartiles[2] - quartiles[0]) / middle if middle else 0.0
        return cls(tuple(taken), middle, low, high, confidence, min(taken), spread, taken.l2, taken.overhead_us, taken.method)

    @property
    def net_us(self) -> float:
        """Median without the empty kernel's time; never negative."""
        return max(self.median_us - self.overhead_us, 0.0)

    def __str__(self) -> str:
        state = f", {self.l2} L2" if self.l2 else ""
        median_us, low, high = times_text((self.median_us, self.low_us, self.high_us), 4)
        text = f"{median_us} ({low} to {high}, n={len(self.samples)}{state})"
        return f"{text}, of which an empty launch {time_text(self.overhead_us)}" if self.overhead_us else text


@dataclass(frozen=True)
class Comparison:
    """Two timings against each other.

    Attributes
    ----------
    ratio : float
        Median of the first over median of the second: above 1 the second is faster.
    low, high : float
        Interval of the ratio, of at least 95 % coverage from seven samples each on.
    noise : bool
        No difference is shown: the interval contains 1, or there are too few samples to say.
    few : bool
        Too few samples to say.
    """

    ratio: float
    low: float
    high: float
    noise: bool
    few: bool = False

    @property
    def verdict(self) -> str:
        """``"faster"`` or ``"slower"`` (the second), ``"smaller than noise"``, or that there are too few samples."""
        if self.few:
            return "too few samples to say"
        if self.noise:
            return "smaller than noise"
        return "faster" if self.ratio > 1 else "slower"

    def __str__(self) -> str:
        return f"{self.ratio:.3f}x ({self.low:.3f} to {self.high:.3f}), {self.verdict}"


def compare(before: Timing, after: Timing) -> Comparison:
    """How much faster `after` is than `before`.

    The interval divides the ends of two intervals of the medians, each of coverage (1 + 0.95) / 2, so that by Bonferroni
    both hold together with at least 95 %.  Timings taken one after the other can differ by the clock alone; take them
    interleaved (`CudaDevice.time_interleaved`) before believing a few percent.
    """
    each = (1 + CONFIDENCE) / 2
    first, second = (median_interval(t.samples, each) for t in (before, after))
    low, high = first[0] / second[1], first[1] / second[0]
    within = low <= 1 <= high
    few = not within and min(first[2], second[2]) < each and not _apart(before.samples, after.samples)
    return Comparison(before.median_us / after.median_us, low, high, noise=within or few, few=few)


def _apart(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    """Whether every sample of one is below every sample of the other, where chance alone does that in one case of 20 at most."""
    disjoint = max(first) < min(second) or max(second) < min(first)
    return disjoint and 2 / comb(len(first) + len(second), len(first)) <= 1 - CONFIDENCE


def median_interval(samples: Iterable[float], confidence: float) -> tuple[float, float, float]:
    """Distribution-free interval of the median: two order statistics and their true coverage.

    The number of samples below the median is binomial(n, 1/2), so the k-th smallest and the k-th largest enclose it with
    probability 1 - 2 P(B < k); the largest such k is taken (W. J. Conover, Practical Nonparametric Statistics, 3.2).
    """
    ordered = sorted(samples)
    n = len(ordered)
    best, tail, total = 1, 0, 2**n
    coverage = 1 - 2 / total if n > 1 else 0.0
    for k in range(1, (n + 1) // 2 + 1):
        tail += comb(n, k - 1)
        if 1 - 2 * tail / total < confidence:
            break
        best, coverage = k, 1 - 2 * tail / total
    return ordered[best - 1], ordered[n - best], coverage
