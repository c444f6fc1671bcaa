"""The top line: what is explored, which evidence there is, and what undo and redo would do."""

from __future__ import annotations

from dataclasses import replace

from ...kernel.reference.slices import cost
from ...run.facts import scaled
from ...run.result import Evidence
from ..protocol import Badge, Head
from ..session import Session
from . import problems

LARGE = 10**9
"""Operations from which on pictures show samples, and the CPU takes its time."""


def head(session: Session, busy: str = "") -> Head:
    """The head of a session; `busy` says what runs in the background."""
    schedule, history = session.schedule, session.history
    program = schedule.source
    types = dict.fromkeys(str(a.dtype) for a in program.parameters)
    sizes = [f"{name} = {value}" for name, value in program.sizes]
    before, after = history.before(history.current), history.after(history.current)
    work, held = cost(program), sum(a.nbytes for a in program.parameters)
    large = [f"{scaled(work)}operations: figures show a sample, and so does a check".replace("  ", " ")] if work > LARGE else []
    if held > (room := session.gpu.memory_bytes):
        large.append(f"the arrays take {scaled(held, 'B')}, and the {session.gpu.name} has {scaled(room, 'B')}")
    return {
        "program": program.name, "signature": " · ".join([", ".join(types), *sizes]), "badges": badges(session),
        "undo": history.action(history.current) if before else None, "redo": history.action(after) if after else None,
        "obligations": [problems.of_finding(f, schedule) for f in schedule.obligations], "busy": busy, "large": "; ".join(large),
    }


def badges(session: Session) -> list[Badge]:
    """The five ticks of the evidence badge for the schedule that is shown."""
    judgement, run, known = session.schedule.judgement, session.history.state.run, session.history.state.compiled
    proved = "cover, order, flow and obligations hold for every instance at these sizes"
    todo = "legal, but a reduction's updates still have to be collected"
    done = judgement.emittable
    out: list[Badge] = [{"name": "proved", "state": "earned" if done else "open", "detail": proved if done else todo}]
    for tick in (Evidence() if run is None else run.evidence).ticks[1:]:
        if tick.name == "compiled" and known:
            tick = replace(tick, earned=True, detail=", ".join(dict.fromkeys((*known, *filter(None, tick.detail.split(", "))))))
        refuted = not tick.earned and tick.detail == "failed"
        out.append({"name": tick.name, "state": "refuted" if refuted else "earned" if tick.earned else "open",
                    "detail": tick.detail or f"not done: {_HOW[tick.name]}"})
    return out


_HOW = {"emulated": "run it on the CPU device at sizes that can be checked", "compiled": "open the PTX, or run it on a GPU",
        "GPU-checked": "run it on a GPU", "timed": "run it with timing"}
