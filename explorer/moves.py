"""All moves at a node: those that apply, with concrete arguments, and those that do not, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from .ir.finding import Verdict
from .schedule import Schedule
from .transforms.base import Transform, catalogue


@dataclass(frozen=True)
class Move:
    """One transformation at one node.

    Attributes
    ----------
    name : str
        The transformation's name.
    step : Transform or None
        With its arguments; None where the transformation cannot stand at the node at all.
    verdict : Verdict
        True when it applies; otherwise the reason, the witness and what to try.
    """

    name: str
    step: Transform | None
    verdict: Verdict

    @property
    def applies(self) -> bool:
        return bool(self.verdict) and self.step is not None

    def __str__(self) -> str:
        mark = "✓" if self.applies else "✗"
        text = str(self.step) if self.step is not None else self.name
        return f"{mark} {text}" if self.applies else f"{mark} {text}: {self.verdict.what}"


def moves(schedule: Schedule, node: str) -> tuple[Move, ...]:
    """Every transformation at a node, judged.

    Parameters
    ----------
    schedule : Schedule
    node : str
        Id of a loop, leaf or kernel.

    Returns
    -------
    tuple of Move
        Those that apply first, each group in alphabetical order of the transformations.
    """
    found: list[Move] = []
    for name, kind in catalogue().items():
        offer = kind.offers(schedule.plan, node)
        if not offer:
            found.append(Move(name, None, offer))
            continue
        steps = list(kind.candidates(schedule.plan, node))
        for step in steps:
            verdict, _ = schedule.try_step(step)
            found.append(Move(name, step, verdict))
        if not steps:
            found.append(Move(name, None, Verdict(f"{name} has nothing to do at {node}")))
    return tuple(sorted(found, key=lambda m: (not m.applies, m.name)))
