"""The static picture of an exploration: what a notebook shows without a kernel, and how to get the session back."""

from __future__ import annotations

from html import escape

from ..api import Schedule
from ..views.code import code_html
from ..views.reprs import html as picture_of
from ..views.schedules import schedule_html
from ..views.style import page
from .assets import STATIC_RULES
from .session import Session

LIMIT = 120_000
"""Characters of the picture of the loops; a larger one is left out, for the script says it all."""


def static_html(session: Session) -> str:
    """The loops, the last run, the script, and the line that rebuilds the session."""
    state = session.history.state
    loops = schedule_html(state.schedule)
    loops = loops if len(loops) <= LIMIT else ""
    run = (picture_of(state.run) or "") if state.run is not None else ""
    code = code_html(session.script, numbers=False, python=True)
    script = f'<details><summary>the script</summary><div class="body">{code}</div></details>'
    back = page("to go on after a restart", "run the cell with the program, then this line",
                code_html(rebuild(state.schedule), numbers=False, python=True), script)
    return f'<style>{STATIC_RULES}</style><div class="ex-static">{loops}{run}{back}</div>'


def static_text(session: Session) -> str:
    """The same for a reader of text."""
    return f"{session.schedule!r}\n\n{session.script}\n# {rebuild(session.schedule)}"


def rebuild(schedule: Schedule) -> str:
    """The call that opens the explorer on this very schedule."""
    return f'ex.explore({schedule.source.name}, "{schedule.share()}")'


def caption(session: Session) -> str:
    """One line in place of a widget that is not alive."""
    return f"<span>{escape(session.schedule.source.name)}: the explorer itself comes back when its cell is run again</span>"
