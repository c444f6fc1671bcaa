"""All moves at a node: those that apply, with concrete arguments, and those that do not, with the reason."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..errors import TransformError, shown
from ..ir.finding import Verdict
from ..schedule import Schedule
from ..transforms.base import Transform, catalogue
from .hints import advised


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
        """Whether it has concrete arguments that are legal here."""
        return bool(self.verdict) and self.step is not None

    def __str__(self) -> str:
        mark = "✓" if self.applies else "✗"
        text = str(self.step) if self.step is not None else self.name
        return f"{mark} {text}" if self.applies else f"{mark} {text}: {self.verdict.what}"


class Moves(tuple[Move, ...]):
    """All moves at a node, those that apply first.

    Attributes
    ----------
    node : str
    """

    node: str

    def __new__(cls, found: Iterable[Move] = (), node: str = "") -> Moves:
        """A tuple of the moves, with the node."""
        self = super().__new__(cls, found)
        self.node = node
        return self

    def __str__(self) -> str:
        applying = sum(m.applies for m in self)
        return "\n".join([f"moves at {self.node}: {applying} apply, {len(self) - applying} do not", *map(str, self)])

    def __repr__(self) -> str:
        return str(self)


def moves(schedule: Schedule, node: str) -> Moves:
    """Every transformation at a node, judged.

    Parameters
    ----------
    schedule : Schedule
    node : str
        Id of a loop, leaf or kernel.

    Returns
    -------
    Moves
        Those that apply first, each group in alphabetical order of the transformations.

    Raises
    ------
    TransformError
        If no node has this id.
    """
    return Moves(in_order(judged(schedule, node)), node)


def in_order(found: Iterable[Move]) -> list[Move]:
    """Moves that apply first, each group in alphabetical order of the transformations."""
    return sorted(found, key=lambda m: (not m.applies, m.name))


def judged(schedule: Schedule, node: str) -> Iterator[Move]:
    """The moves of :func:`moves` one by one, as they are judged: a caller may stop, or do something else in between."""
    if not isinstance(node, str) or node not in schedule.plan.ids:
        known = sorted(schedule.plan.ids)
        near = difflib.get_close_matches(node[:200], known, 3) if isinstance(node, str) else []
        near = near or known
        raise TransformError(f"there is no node {shown(node)}", hint=f"one of {', '.join(near)}")
    for name, kind in catalogue().items():
        offer = kind.offers(schedule.plan, node)
        if not offer:
            yield Move(name, None, advised(schedule, None, offer))
            continue
        steps = list(kind.candidates(schedule.plan, node))
        for step in steps:
            verdict, _ = schedule.try_step(step)
            yield Move(name, step, verdict)
        if not steps:
            yield Move(name, None, Verdict(f"{name} has nothing to do at {node}"))
