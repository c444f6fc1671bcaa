"""Two states of the history side by side."""

from __future__ import annotations

from ...codegen.emit import emit
from ...errors import ExplorerError
from ...ir.text import loops_text
from ...run.facts import scaled
from ...run.ragged import require_emittable
from ..history import State
from ..protocol import Compared
from .preview import diff


def compared(a: State, b: State) -> Compared:
    """The differences of loops and CUDA, and a table of both: steps, launches, traffic, evidence, times."""
    cuda = [_cuda(s) for s in (a, b)]
    return {"a": a.id, "b": b.id, "loops": diff(loops_text(a.schedule.plan), loops_text(b.schedule.plan)), "cuda": diff(*cuda),
            "rows": _rows(a, b)}


def _cuda(state: State) -> str:
    try:
        require_emittable(state.schedule)
        return emit(state.schedule.plan).text
    except ExplorerError as error:
        return f"// {error.what}"


def _rows(a: State, b: State) -> list[list[str]]:
    """Rows (name, first, second); the header row first."""
    sides = [_facts(s) for s in (a, b)]
    return [["", a.title, b.title], *([name, first, sides[1][name]] for name, first in sides[0].items())]


def _facts(state: State) -> dict[str, str]:
    schedule, run = state.schedule, state.run
    facts = schedule.facts
    out = {"steps": str(len(schedule.steps)), "sizes": ", ".join(f"{n}={v}" for n, v in schedule.source.sizes),
           "kernels": str(len(schedule.plan.kernels)),
           "grid": "; ".join("×".join(map(str, r.grid)) for r in facts.resources),
           "block": "; ".join("×".join(map(str, r.block)) for r in facts.resources),
           "shared memory": "; ".join(scaled(r.shared_bytes, "B") for r in facts.resources)}
    try:
        out["requested traffic"] = scaled(facts.requested_bytes, "B")
    except ExplorerError as error:
        out["requested traffic"] = error.what
    out["open obligations"] = str(len(schedule.obligations))
    out["correct"] = {True: "right", False: "WRONG", None: "not run"}[run.correct if run else None]
    out["time"] = f"{run.time_us:.4g} µs on {run.device}" if run and run.time_us is not None else "not timed"
    out["share of the floor"] = f"{run.share:.0%}" if run and run.share is not None else ""
    return out
