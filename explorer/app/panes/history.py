"""The history pane: the tree of schedules with their evidence and times."""

from __future__ import annotations

from ..history import State as Entry
from ..protocol import History, State
from ..session import Session


def history(session: Session) -> History:
    """Every state, in order of birth; the current one, and the line that undo and redo walk."""
    tree = session.history
    return {"states": [_state(s) for s in tree.states.values()], "current": tree.current, "path": tree.path()}


def _state(entry: Entry) -> State:
    run, judgement = entry.run, entry.schedule.judgement
    return {
        "id": entry.id, "parent": entry.parent, "title": entry.title, "call": entry.call, "legal": judgement.legal,
        "obligations": len(judgement.obligations), "correct": None if run is None else run.correct,
        "time_us": None if run is None else run.time_us, "share": None if run is None else run.share,
        "device": "" if run is None else run.device,
    }
