"""The resume pane: what the front end keeps, so that the explorer can come back when the kernel has gone."""

from __future__ import annotations

import json

from ..protocol import ResumePane
from ..session import Session
from ..whole_script import whole_script


def resume_pane(session: Session, widget: str) -> ResumePane:
    """The whole script, the GPU that is planned for, and which output of the notebook holds the widget."""
    return {"widget": widget, "text": whole_script(session), "target": session.target,
            "actions": json.dumps(session.history.actions()), "steps": len(session.schedule.steps),
            "program": session.schedule.source.name}
