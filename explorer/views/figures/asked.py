"""What a reader asks of a figure: the selected node, a finding, a run, and the options, each with its control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import FigureError, shown
from ...gpu.spec import Gpu, catalogue, default_gpu
from ...ir.finding import Finding
from ...run.result import Run
from ...run.stamps import Stamps

TARGET = "target"
"""The choice of a GPU that follows the one the reader plans for."""


@dataclass(frozen=True)
class Look:
    """What stands beside the schedule: the selected node, a refusal to show, a run with measurements, the GPU planned for, and
    what else has been measured of its program on that GPU: steps, with microseconds; and what its instrumented copy noted.
    """

    node: str | None = None
    finding: Finding | None = None
    run: Run | None = None
    target: Gpu | None = None
    measured: tuple[tuple[tuple[Any, ...], float], ...] = ()
    stamps: Stamps | None = None


@dataclass(frozen=True)
class Control:
    """One option of a figure as a form shows it: a choice with words, or a whole number between bounds."""

    name: str
    label: str
    value: Any
    choices: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    low: int = 0
    high: int = 0

    def data(self) -> dict[str, Any]:
        """As plain data; `kind` is ``choice`` or ``int``."""
        if not self.choices:
            return {"name": self.name, "label": self.label, "kind": "int", "choices": [], "labels": [], "value": self.value,
                    "min": self.low, "max": self.high}
        return {"name": self.name, "label": self.label, "kind": "choice", "choices": list(self.choices),
                "labels": list(self.labels or self.choices), "value": self.value}


@dataclass
class Asked:
    """The options a reader set, read one by one while the data is computed; every reading leaves its control.

    Parameters
    ----------
    options : mapping of str to Any
        Values by name.
    strict : bool
        Refuse values that do not fit (for people who write Python) rather than take the default (for a front end whose
        options may be older than the schedule).
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False
    controls: list[Control] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def one_of(self, name: str, label: str, choices: Sequence[str] | Mapping[str, str], default: str) -> str:
        """One of several words; a mapping gives each its label.  A single choice needs no control."""
        self.known.add(name)
        words = tuple(choices)
        value = self.options.get(name)
        value = str(value) if isinstance(value, str | int | float) else value
        if value is not None and not (isinstance(value, str) and value in words) and self.strict:
            raise FigureError(f"{name}={shown(value)} is not a choice here", hint=f"one of {', '.join(words)}")
        chosen = value if isinstance(value, str) and value in words else default
        if len(words) > 1:
            labels = tuple(choices.values()) if isinstance(choices, Mapping) else words
            self.controls.append(Control(name, label, chosen, words, labels))
        return chosen

    def number(self, name: str, label: str, low: int, high: int, default: int) -> int:
        """A whole number from `low` to `high`."""
        self.known.add(name)
        value = self.options.get(name)
        try:
            chosen = default if value is None else int(value)
        except (TypeError, ValueError, OverflowError):
            if self.strict:
                raise FigureError(f"{name}={shown(value)} is not a whole number", hint=f"{low} to {high}") from None
            chosen = default
        if self.strict and not low <= chosen <= high:
            raise FigureError(f"{name}={shown(chosen)} is outside its range", hint=f"{low} to {high}")
        chosen = min(max(chosen, low), high)
        if high > low:
            self.controls.append(Control(name, label, chosen, low=low, high=high))
        return chosen

    def gpu(self, look: Look) -> Gpu:
        """The GPU to draw for: the reader's choice, by default the one planned for, or that of the run, or the default."""
        known, run = catalogue(), look.run
        labels = {name: str(gpu) for name, gpu in known.items()}
        if look.target is None:
            here = run.device if run is not None and run.device in known else default_gpu().name
            return known[self.one_of("gpu", "GPU", labels, here)]
        chosen = self.one_of("gpu", "GPU", {TARGET: f"{TARGET}: {look.target.name}", **labels}, TARGET)
        return look.target if chosen == TARGET else known[chosen]

    def unread(self) -> list[str]:
        """Options that nothing asked about."""
        return [name for name in self.options if name not in self.known]
