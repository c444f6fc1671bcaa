"""One block's steps on the clock, by the terms of the model: when copies are issued and land, who waits for what, what computes.

Copies share what a multiprocessor takes in, and land a latency after their issue at the earliest.  A step computes when its tiles
have landed, the step before it has passed its waits and barriers, and the other resident blocks have had their turn.  Over many
steps this takes what :mod:`explorer.strategies.pipelines.terms` says.
"""

from __future__ import annotations

from dataclasses import dataclass

from .rates import RATES
from .terms import Step

Part = tuple[str, str, float]
"""What computes in a step: its leaf, ``"product"`` or ``"compute"``, and its share of the step's computation."""


@dataclass(frozen=True)
class Span:
    """Something that one block does, from one cycle to another.

    Attributes
    ----------
    kind : str
        ``"copy"``, from issue to landing; ``"held"``, a tile in its slot until its last use; ``"product"`` or ``"compute"``;
        ``"wait"``, for a copy; ``"turn"``, for other blocks' computation; ``"sync"``, waits and barriers of a step; ``"store"``.
    node : str or None
        The leaf.
    step : int
        Of which step; -1 of none.
    start, end : float
    """

    kind: str
    node: str | None
    step: int
    start: float
    end: float


@dataclass(frozen=True)
class Trace:
    """What one block does in the steps of a loop.

    Attributes
    ----------
    spans : tuple of Span
        Of the steps that were asked for.
    ends : tuple of float
        When each step has passed its waits and barriers.
    """

    spans: tuple[Span, ...]
    ends: tuple[float, ...]


def traced(step: Step, copies: tuple[tuple[str, float], ...], parts: tuple[Part, ...], threads: int, blocks: int,
           shown: frozenset[int]) -> Trace:
    """Follow one of so many resident blocks through all of its steps.

    Parameters
    ----------
    step : Step
    copies : tuple of (str, float)
        The leaves that copy, and the share of each in the bytes of a step.
    parts : tuple of Part
        What computes, in order.
    threads, blocks : int
        Of a block; resident on the multiprocessor.
    shown : frozenset of int
        Steps whose spans are kept.
    """
    rates, ahead = RATES[step.engine], step.stages - 1
    beside = rates.step + rates.waited * step.waited
    alone = step.alone(threads)
    computed = alone - beside if alone > rates.least_step else min(alone, max(step.tensor, step.banks, step.issue))
    apart = rates.apart / blocks**2
    turn = max(step.tensor * blocks + apart, step.banks * blocks, step.issue * blocks + apart)
    spans, begins, ends, landed = list[Span](), list[float](), list[float](), list[float]()

    def issue(tile: int, now: float) -> None:
        """A tile's copies, one after the other on the way that all share."""
        for number, (leaf, share) in enumerate(copies):
            free = landed[-1] if landed else 0.0
            behind = step.load * blocks * (1.0 - sum(s for _, s in copies[: number + 1]))
            at = max(now, now + step.landing - behind, free + step.load * share * blocks)
            landed.append(at)
            if tile in shown:
                spans.append(Span("copy", leaf, tile, now, at))

    for tile in range(min(ahead, step.count)):
        issue(tile, 0.0)
    now = 0.0
    for number in range(step.count):
        if not ahead:
            issue(number, now)
        here = landed[(number + 1) * len(copies) - 1]
        ready = max(now, here)
        begin = max(ready, begins[-1] + turn if begins else 0.0)
        if ahead and number + ahead < step.count:
            issue(number + ahead, begin)
        end = begin + computed
        now = begin + alone
        begins.append(begin)
        ends.append(now)
        if number not in shown:
            continue
        before = ends[-2] if number else 0.0
        spans += [Span("wait", None, number, before, ready)] * (ready > before)
        spans += [Span("turn", None, number, ready, begin)] * (begin > ready)
        at = begin
        for leaf, kind, share in parts:
            spans.append(Span(kind, leaf, number, at, at + share * computed))
            at += share * computed
        spans.append(Span("sync", None, number, end, now))
        for index, (leaf, _) in enumerate(copies):
            spans.append(Span("held", leaf, number, landed[number * len(copies) + index], end))
    return Trace(tuple(spans), tuple(ends))
