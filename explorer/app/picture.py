"""The static picture of an exploration: what a notebook shows without a kernel, and how to get the session back."""

from __future__ import annotations

from html import escape

from ..schedule import Schedule
from ..views.code import code_html
from ..views.reprs import html as picture_of
from ..views.schedules import schedule_html
from ..views.style import page
from .assets import STATIC_RULES
from .session import Session
from .whole_script import whole_script

LIMIT = 120_000
"""Characters of the picture of the loops; a larger one is left out, for the script says it all."""


def static_html(session: Session) -> str:
    """The loops, the last run, the script, and the line that rebuilds the session."""
    state = session.history.state
    loops = schedule_html(state.schedule)
    loops = loops if len(loops) <= LIMIT else ""
    run = (picture_of(state.run) or "") if state.run is not None else ""
    return f'<style>{STATIC_RULES}</style><div class="ex-static">{loops}{run}{_back(session)}</div>'


def _back(session: Session) -> str:
    """How to go on after a restart: text that needs no other cell, since a cell that runs again takes this output away."""
    line, whole = _copied(rebuild(session.schedule)), whole_script(session)
    if not whole:
        return page("to go on after a restart", "run the cell with the program, and this line in a cell of its own", line,
                    _copied(session.script))
    short = f'<details><summary>where the program is defined already</summary><div class="body">{line}</div></details>'
    return page("to go on after a restart", "copy this into a new cell: a click selects all of it", _copied(whole), short)


def _copied(text: str) -> str:
    """Code that one click selects, and that is never cut."""
    code = code_html(text, numbers=False, python=True, budget=len(text) * 50)
    return f'<div style="user-select:all;-webkit-user-select:all">{code}</div>'


def static_text(session: Session) -> str:
    """The same for a reader of text."""
    return f"{session.schedule!r}\n\n{whole_script(session) or session.script}\n# {rebuild(session.schedule)}"


def rebuild(schedule: Schedule) -> str:
    """The call that opens the explorer on this very schedule."""
    return f'ex.explore({schedule.source.name}, "{schedule.share()}")'


def caption(session: Session) -> str:
    """One line in place of a widget that is not alive."""
    return f"<span>{escape(session.schedule.source.name)}: the explorer itself comes back when its cell is run again</span>"
