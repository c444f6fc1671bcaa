"""The history pane: the tree of schedules with their evidence and times."""

from __future__ import annotations

from ...gpu.spec import Gpu
from ..history import History as Tree
from ..history import State as Entry
from ..priced import priced_us
from ..protocol import History, State
from ..session import Session


def history(session: Session) -> History:
    """The states, in order of birth; the current one, and the line that undo and redo walk.

    Of an action of several steps the last state is shown, until one of those between is looked at.
    """
    tree = session.history
    hidden = tree.folded()
    shown = [_state(s, tree, hidden, session.gpu) for s in tree.states.values() if s.id not in hidden]
    return {"states": shown, "current": tree.current, "path": [i for i in tree.path() if i not in hidden]}


def _state(entry: Entry, tree: Tree, hidden: frozenset[str], gpu: Gpu) -> State:
    run, judgement = entry.run, entry.schedule.judgement
    parent = entry.parent
    while parent in hidden:
        parent = tree.states[parent].parent
    return {
        "id": entry.id, "parent": parent, "title": tree.action(entry.id), "call": entry.call, "legal": judgement.legal,
        "obligations": len(judgement.obligations), "correct": None if run is None else run.correct,
        "time_us": None if run is None else run.time_us, "share": None if run is None else run.share,
        "device": "" if run is None else run.device, "gpu": gpu.name,
        "priced_us": priced_us(entry.schedule, gpu) if run is not None and run.device == "cpu" and run.time_us else None,
    }
