"""The moves pane: every transformation at the selected node; legal ones ready to apply, the others with the reason."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable

from ...api import Schedule
from ...moves import Move, in_order
from ...transforms.base import Transform, catalogue
from ..protocol_moves import MoveData, MovesPane, WaysData
from . import problems
from .forms import form


def moves_pane(node: str | None, found: Iterable[MoveData], pending: bool, ways: Iterable[WaysData] = ()) -> MovesPane:
    """The pane: those that apply first, one entry for each distinct reason; each transformation's first entry has its form."""
    entries = list(found)
    shown: list[MoveData] = []
    reasons: set[tuple[str, str]] = set()
    formed: set[str] = set()
    for move in sorted(entries, key=lambda m: (not m["applies"], m["name"])):
        reason = (move["name"], _reason(move)) if not move["applies"] else ("", "")
        if not move["applies"] and reason in reasons:
            continue
        reasons.add(reason)
        shown.append(move if move["name"] not in formed else {**move, "form": []})
        formed.add(move["name"])
    applying = sum(m["applies"] for m in shown)
    counts = f"{applying} apply · {len(shown) - applying} do not, and say why"
    return {"node": node, "title": "select a loop or a statement" if node is None else "judging …" if pending else counts,
            "pending": pending, "ways": list(ways), "moves": shown}


def move_data(schedule: Schedule, node: str, move: Move) -> MoveData:
    """One judged move; for a refused one this looks for the steps that its hints name and that apply."""
    kind = catalogue()[move.name]
    call = str(move.step) if move.step is not None else None
    problem = None if move.applies else problems.of_verdict(move.verdict, schedule, move.step)
    return {"key": call or move.name, "name": move.name, "title": title(kind), "help": help_text(kind), "applies": move.applies,
            "call": call, "form": form(kind, schedule, node, move.step), "problem": problem}


def title(kind: type[Transform]) -> str:
    """The transformation in one short sentence: the first line of its file."""
    return (sys.modules[kind.__module__].__doc__ or kind.name).strip().splitlines()[0].rstrip(".")


def help_text(kind: type[Transform]) -> str:
    """What it does: the first paragraph of its description."""
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())


def _reason(move: MoveData) -> str:
    problem = move["problem"]
    return "" if problem is None else problem["why"] if problem["finding"] else problem["what"]


__all__ = ["help_text", "in_order", "move_data", "moves_pane", "title"]
