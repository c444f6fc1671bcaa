"""All moves at a node: those that apply, with concrete arguments, and those that do not, with the reason."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from textwrap import fill

from ..errors import TransformError, shown
from ..ir.finding import Verdict
from ..schedule import Schedule
from ..transforms.base import Transform, catalogue
from .hints import advised

WIDTH = 120
"""Characters of a line of the text."""


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
        text = str(self.step) if self.step is not None else self.name
        return f"✓ {text}" if self.applies else f"✗ {text}: {self.reason}"

    @property
    def reason(self) -> str:
        """Why it does not apply, and behind an arrow what to try; where nothing is proposed, the reason behind that."""
        what = self.verdict.what.removeprefix(f"{self.step} is not legal: ").removeprefix(f"{self.step} does not apply: ")
        hint = self.verdict.hint or str(self.verdict.finding.hints if self.verdict.finding else "")
        why = self.verdict.why
        return what.rstrip(".") + (f" → {hint}" if hint else f" ({why})" if why and not self.verdict.finding else "")


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
        applying = [m for m in self if m.applies]
        alike: dict[str, list[str]] = {}
        for m in self[len(applying):]:
            alike.setdefault(m.reason, []).append(str(m.step) if m.step is not None else m.name)
        refused = (_wrapped(f"✗ {', '.join(dict.fromkeys(names))}: {reason}") for reason, names in alike.items())
        return "\n".join([f"moves at {self.node}: {len(applying)} apply, {len(self) - len(applying)} do not; → what to try",
                          *map(str, applying), *refused])

    def __repr__(self) -> str:
        return str(self)


def _wrapped(line: str) -> str:
    """A line in lines that can be read, those behind the first one indented."""
    return fill(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


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
            given = ", ".join(f.name for f in fields(kind))  # type: ignore[arg-type]
            yield Move(name, None, Verdict(f"no arguments of {name} are proposed at {node}",
                                           hint=f"others may apply: {name}({given})"))
