"""The script pane: the current line of the history as Python, or what was typed and not taken."""

from __future__ import annotations

from ..protocol import ScriptPane
from ..session import Session
from . import problems


def script(session: Session) -> ScriptPane:
    """The script with the line of each state; after a refused edit, the typed text and the error at its line."""
    written, rejected = session.written(), session.rejected
    steps = [(state, line) for state, line in written.lines]
    if rejected is None:
        return {"text": written.text, "steps": steps, "error": None}
    problem = problems.of_error(rejected.error, session.schedule)
    problem["line"] = rejected.line
    return {"text": rejected.text, "steps": steps, "error": {"line": rejected.line, "problem": problem}}
