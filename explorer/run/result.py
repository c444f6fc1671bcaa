"""What a run says: right or wrong, how fast, against what floor, and which evidence there is for it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..errors import DeviceError, outspoken
from ..gpu.roofline import Roofline
from ..gpu.units import time_text
from ..kernel.module import CudaModule
from .timing import Comparison as TimingComparison
from .timing import Timing, compare
from .verify.outputs import Check

WIDTH = 100
"""Characters of a line of text at most."""
THESE = "these sizes"
"""The sizes asked for, as the badge calls them."""
NO_VERDICT = "a time on the CPU says nothing about a GPU"


@dataclass(frozen=True)
class Tick:
    """One line of the badge.

    Attributes
    ----------
    name : str
        ``proved``, ``emulated``, ``compiled``, ``GPU-checked`` or ``timed``.
    earned : bool
    detail : str
        What was done, or why the tick is not earned.
    """

    name: str
    earned: bool
    detail: str

    @property
    def mark(self) -> str:
        """A tick; a cross where it was tried and failed; a dot where it was not tried."""
        return "✓" if self.earned else "✗" if self.detail == "failed" else "·"

    def __str__(self) -> str:
        return f"{self.mark} {self.name}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True)
class Evidence:
    """What was done to believe a schedule; each tick is earned by doing it, and only then.

    Attributes
    ----------
    proved : bool
        The four questions (cover, order, flow, obligations) are answered for every instance at these sizes, and the text
        is what they were asked of (:mod:`explorer.kernel.validate`).
    orders : int
        Adversarial thread orders in which the checked CPU device ran the text.
    emulated : tuple of str
        Sizes at which it did so and was right: ``"these sizes"``, or others in words.
    compiled : tuple of str
        Architectures that accepted the text.
    gpu : str
        The GPU on which the outputs were right.
    timed : str
        Where it was timed.
    exact : tuple of str
        Kinds of inputs with exact arithmetic on which it was right beside the seeded or given ones, in words.
    refuted : tuple of str
        Names of the ticks that were tried and failed.
    """

    proved: bool = False
    orders: int = 0
    emulated: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()
    gpu: str = ""
    timed: str = ""
    exact: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """The five ticks, in order."""
        sharp = f"; also on {', '.join(self.exact)}" if self.exact else ""
        where = "only at these sizes" if self.emulated == (THESE,) else f"at {'; '.join(self.emulated)}"
        emulated = f"{self.orders} thread orders, poisoned outputs and shared memory, {where}{sharp}"
        rows = (("proved", self.proved, "cover, order, flow, obligations, text"), ("emulated", bool(self.emulated), emulated),
                ("compiled", bool(self.compiled), ", ".join(self.compiled)),
                ("GPU-checked", bool(self.gpu), f"{self.gpu}{sharp}"),
                ("timed", bool(self.timed), self.timed))
        return tuple(Tick(name, False, "failed") if name in self.refuted else Tick(name, earned, detail if earned else "")
                     for name, earned, detail in rows)  # fmt: skip

    def __str__(self) -> str:
        return "   ".join(map(str, self.ticks))


@outspoken(DeviceError)
@dataclass(frozen=True)
class Run:
    """The result of running a schedule.

    Attributes
    ----------
    program : str
    device : str
        ``"cpu"``, or the GPU's name.
    sizes : tuple of (str, int)
    checks : tuple of Check
        One per output and reference.
    ragged : tuple of (str, tuple of Check)
        The same at further sizes, with those on exact inputs.
    exact : tuple of Check
        One per output and kind of inputs with exact arithmetic (:mod:`explorer.run.inputs.exact`).
    timings : mapping of str to Timing
        By the state of the L2 cache: ``"cold"``, ``"warm"``.  Empty when not timed.
    bytes, flops : int
        The least traffic (each input read once, each output written once) and the arithmetic of the program.
    roofline : Roofline or None
        The floor on `gpu`; None without a timing on a GPU.
    evidence : Evidence
    notes : tuple of str
        What was left out or replaced, and why.
    faults : tuple of str
        What went wrong at ragged sizes beyond a wrong value: the checks of the CPU device that fired.
    module : CudaModule
        The text that ran.
    outputs : mapping of str to ndarray
        What the device wrote.
    """

    program: str
    device: str
    sizes: tuple[tuple[str, int], ...]
    checks: tuple[Check, ...]
    ragged: tuple[tuple[str, tuple[Check, ...]], ...] = ()
    timings: Mapping[str, Timing] = field(default_factory=dict)
    bytes: int = 0
    flops: int = 0
    roofline: Roofline | None = None
    evidence: Evidence = field(default_factory=Evidence)
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    module: CudaModule | None = field(default=None, repr=False, compare=False)
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    exact: tuple[Check, ...] = ()

    @property
    def correct(self) -> bool | None:
        """Whether every check passed, the ragged ones too; None if nothing was checked."""
        if self.faults:
            return False
        checks = [*self.checks, *self.exact, *(c for _, several in self.ragged for c in several)]
        return all(checks) if self.checks else None

    def __bool__(self) -> bool:
        return self.correct is True

    @property
    def sharp(self) -> tuple[tuple[str, str], ...]:
        """The kinds of exact inputs on which it was right, and how sharply each output was compared, in words."""
        kinds = {c.inputs: [d for d in self.exact if d.inputs == c.inputs] for c in self.exact}
        words = {kind: ", ".join(dict.fromkeys(c.sharpness for c in checks)) for kind, checks in kinds.items() if all(checks)}
        return tuple(words.items())

    @property
    def max_error(self) -> float:
        """Largest |got - expected| of the checked cells."""
        return max((c.max_error for c in self.checks), default=0.0)

    @property
    def timing(self) -> Timing | None:
        """The timing to quote: cold L2 where there is one."""
        return self.timings.get("cold") or next(iter(self.timings.values()), None)

    @property
    def time_us(self) -> float | None:
        """Median of :attr:`timing`, microseconds."""
        return self.timing.median_us if self.timing else None

    @property
    def share(self) -> float | None:
        """Floor over the median without an empty launch: 1 is the limit.  None without a timing on a GPU."""
        return self.roofline.share(self.timing.net_us) if self.roofline and self.timing and self.timing.net_us else None

    def compare(self, after: Run) -> Comparison:
        """Compare the times of this run with those of a later one."""
        return Comparison.of(self, after)

    def __str__(self) -> str:
        sizes = ", ".join(f"{n}={v}" for n, v in self.sizes)
        verdict = {True: "right", False: "WRONG", None: "not checked"}[self.correct]
        lines = [f"{self.program}({sizes}) on {self.device}: {verdict}"]
        failed = [f"at {where}: {check}" for where, checks in self.ragged for check in checks if not check]
        wrong = [str(check) for check in self.exact if not check]
        for text in (*map(str, self.checks), *wrong, *failed, *(f"fault {fault}" for fault in self.faults)):
            first, *others = text.split("; ")
            lines += _wrapped("", first)
            lines += [line for other in others for line in _wrapped("  ", other)]
        for kind, words in self.sharp:
            lines += _wrapped("  ", f"on {kind}: {words}")
        lines += [f"  {timing}" for timing in self.timings.values()]
        if self.bytes or self.flops:
            intensity = f", {self.flops / self.bytes:.3g} flop/byte" if self.bytes else ""
            lines.append(f"  {_scaled(self.bytes)}B compulsory traffic, {_scaled(self.flops)}flop{intensity}")
        if self.roofline and self.share is not None:
            lines.append(f"  {self.share:.0%} of the floor {time_text(self.roofline.floor_us, 4)} ({self.roofline.bound}-bound)")
        for tick in self.evidence.ticks:
            lines += _wrapped(f"{tick.mark} {tick.name:<12s} ", tick.detail or "not done")
        for note in self.notes:
            lines += _wrapped("note: ", note)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Comparison:
    """Two runs against each other.

    Attributes
    ----------
    before, after : Run
    timing : explorer.run.timing.Comparison
        Ratio of the medians with its interval; above 1 the second is faster.
    l2 : str
        The state of the cache in both.
    """

    before: Run
    after: Run
    timing: TimingComparison
    l2: str

    @classmethod
    def of(cls, before: Run, after: Run) -> Comparison:
        """Compare the timings that both runs have, cold L2 first.

        Raises
        ------
        ValueError
            If they were not timed alike, or not on the same device.
        """
        if before.device != after.device:
            raise ValueError(f"one run is on {before.device}, the other on {after.device}: their times do not compare")
        both = [l2 for l2 in ("cold", "warm") if l2 in before.timings and l2 in after.timings]
        if not both:
            raise ValueError("the runs have no timing in common: run both with time=True and the same l2=")
        return cls(before, after, compare(before.timings[both[0]], after.timings[both[0]]), both[0])

    @property
    def ratio(self) -> float:
        """Median of the first over median of the second."""
        return self.timing.ratio

    @property
    def noise(self) -> bool:
        """Whether the difference is smaller than noise."""
        return self.timing.noise

    @property
    def verdict(self) -> str:
        """As of the timing; times of the CPU device are no verdict on a schedule for a GPU."""
        return NO_VERDICT if self.after.device == "cpu" else self.timing.verdict

    @property
    def _said(self) -> str:
        return f"{self.ratio:.3f}x, {self.verdict}" if self.after.device == "cpu" else str(self.timing)

    def __str__(self) -> str:
        first, second = self.before.timings[self.l2], self.after.timings[self.l2]
        wrong = [name for name, run in (("first", self.before), ("second", self.after)) if run.correct is False]
        state = f" ({first.l2} L2)" if first.l2 else ""
        text = f"{time_text(first.median_us, 4)} -> {time_text(second.median_us, 4)}{state}: {self._said}"
        return f"{text}; the {' and '.join(wrong)} result is WRONG" if wrong else text

    def __repr__(self) -> str:
        return str(self)


def _scaled(value: float) -> str:
    """A count with a metric prefix and a space: ``"1.07 G"``."""
    for prefix, unit in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= unit:
            return f"{value / unit:.3g} {prefix}"
    return f"{value:g} "


def _wrapped(head: str, text: str) -> list[str]:
    """Lines of at most `WIDTH` characters, those after the first indented to stand under the text behind `head`."""
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {head}", subsequent_indent=" " * (2 + max(len(head), 2)),
                         break_long_words=False, break_on_hyphens=False)
