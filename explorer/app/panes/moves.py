"""The moves pane: every transformation at the selected node; legal ones ready to apply, the others with the reason."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any

from ...ir.finding import Verdict
from ...ir.plan import Plan
from ...ir.tree import Kernel, Leaf, Loop
from ...schedule import Schedule
from ...steps.calls import calls_in
from ...steps.moves import Move, in_order
from ...transforms.base import Transform, catalogue
from ..protocol import Problem
from ..protocol_moves import MoveData, MovesPane, WaysData
from . import problems
from .forms import form


def moves_pane(node: str | None, found: Iterable[MoveData], pending: bool, ways: Iterable[WaysData] = ()) -> MovesPane:
    """The pane: those that apply first, one entry for each distinct reason; each transformation's first entry has its form."""
    entries = list(found)
    shown: list[MoveData] = []
    reasons: set[tuple[str, str]] = set()
    formed: set[str] = set()
    for move in sorted(entries, key=lambda m: (not m["applies"], not m["concerns"], m["name"])):
        reason = (move["name"], _reason(move)) if not move["applies"] else ("", "")
        if not move["applies"] and reason in reasons:
            continue
        reasons.add(reason)
        shown.append(move if move["name"] not in formed else {**move, "form": []})
        formed.add(move["name"])
    applying = sum(m["applies"] for m in shown)
    never = sum(not m["concerns"] for m in shown)
    counts = f"{applying} apply · {len(shown) - applying - never} do not, and say why"
    return {"node": node, "title": "select a loop or a statement" if node is None else "judging …" if pending else counts,
            "pending": pending, "ways": list(ways), "moves": shown}


def move_data(schedule: Schedule, node: str, move: Move, said: dict[tuple[str, str], Problem] | None = None) -> MoveData:
    """One judged move; for a refused one this tries what its hints propose, once for each reason in `said`."""
    kind = catalogue()[move.name]
    call = str(move.step) if move.step is not None else None
    problem, said = None, {} if said is None else said
    if not move.applies:
        reason = (move.name, f"{move.verdict.what}{move.verdict.why}" if move.verdict.finding is None
                  else f"{move.verdict.finding.what}{move.verdict.finding.why}")
        problem = said.get(reason) or problems.of_verdict(move.verdict, schedule, move.step)
        said.setdefault(reason, problem)
    return {"key": call or move.name, "name": move.name, "title": title(kind), "help": help_text(kind), "applies": move.applies,
            "call": call, "form": form(kind, schedule, node, move.step), "values": values_of(move.step), "problem": problem,
            "concerns": move.step is not None or could_stand(kind, schedule.plan, node, move.verdict)}


def values_of(step: Transform | None) -> dict[str, Any]:
    """What every field of a step's form holds."""
    if step is None:
        return {}
    held = {f.name: getattr(step, f.name) for f in fields(step)}  # type: ignore[arg-type]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in held.items()}


def could_stand(kind: type[Transform], plan: Plan, node: str, verdict: Verdict) -> bool:
    """Whether something could make room for a move that cannot stand at a node: it is for such nodes, and there is a way."""
    hit = plan.find(node)
    if hit is None or not (verdict.finding or any(True for _ in calls_in(verdict.hint))):
        return False
    wanted = {f.metadata.get("kind", "name") for f in fields(kind) if f.default is MISSING}  # type: ignore[arg-type]
    if isinstance(hit[0], Leaf):
        return bool(wanted & {"leaf", "node", "array", "arrays"}) and not wanted & {"loop", "loops"}
    if isinstance(hit[0], Loop):
        return bool(wanted & {"loop", "loops", "node"}) and "leaf" not in wanted
    return isinstance(hit[0], Kernel) and "kernel" in wanted


def title(kind: type[Transform]) -> str:
    """The transformation in one short sentence: the first line of its file."""
    first = (sys.modules[kind.__module__].__doc__ or kind.name).strip().splitlines()[0].rstrip(".")
    plain = re.sub(r"``(.+?)``", r"\1", first.removeprefix(f"The move ``{kind.name}``: "))
    return plain[:1].upper() + plain[1:]


def help_text(kind: type[Transform]) -> str:
    """What it does: the first paragraph of its description."""
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())


def _reason(move: MoveData) -> str:
    problem = move["problem"]
    return "" if problem is None else problem["why"] if problem["finding"] else problem["what"]


__all__ = ["help_text", "in_order", "move_data", "moves_pane", "title"]
