"""What ``ex.explore`` is given, made into a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ScheduleError, noun, shown, spoken
from ..frontend.definition import Definition
from ..schedule import Schedule
from .script import Subject, read_script
from .session import Session

if TYPE_CHECKING:
    from .widget import Explorer


@spoken(ScheduleError, "ex.explore(schedule), or ex.explore(program, N=1024)")
def explore(what: Any, text: str = "", /, **sizes: int) -> Explorer:
    """Open the interactive explorer on a schedule or a program.

    Parameters
    ----------
    what : Schedule or Definition
        A schedule, whose steps become the history; or a program, with its sizes or with `text`.
    text : str, optional
        For a program: a share string (``"ex1:…"``), JSON, or a script, as :meth:`explorer.Schedule.share`, ``to_json`` and
        ``script`` write them.  So one call brings a session back after a restart.
    **sizes : int
        For a program.

    Returns
    -------
    Explorer
        Show it as the last line of a cell.  Its ``.schedule`` and ``.script`` are those on the screen, at any time.

    Raises
    ------
    ScheduleError
        If it is something else, or anywidget is not installed.
    """
    if not isinstance(text, str):
        raise ScheduleError(f"a saved schedule is text, not {shown(text)}", hint="sizes are named: ex.explore(program, M=64)")
    session = session_of(what, text, **sizes)
    try:
        from .widget import Explorer
    except ImportError as error:
        raise ScheduleError("the explorer needs anywidget and ipywidgets, which are not installed", why=str(error),
                            hint='pip install "schedule-explorer[lab]"') from error
    return Explorer(session)


def session_of(what: Any, text: str = "", /, **sizes: int) -> Session:
    """The session that :func:`explore` would show."""
    if isinstance(what, Schedule):
        if text or sizes:
            raise ScheduleError("a schedule has its sizes and steps already", hint="explore(program, text) or schedule.at(…)")
        return Session(what)
    if not isinstance(what, Definition):
        raise ScheduleError(f"the explorer takes a schedule or a program, not {noun(what)}",
                            hint="ex.explore(program, M=64, N=64) or ex.explore(program.schedule(M=64, N=64))")
    if not text:
        return Session(what.schedule(**sizes))
    if sizes:
        raise ScheduleError("the text has its sizes already", hint="ex.explore(program, text)")
    if text.lstrip().startswith(("ex1:", "{")):
        return Session(what.load(text))
    return _from_script(what, text)


def _from_script(definition: Definition, text: str) -> Session:
    """The session of a script."""
    text_of = f"{definition.helpers}\n{definition.source}"
    subject = Subject(definition.name, text_of, tuple((name, 64) for name in definition.sizes))
    session = Session(definition.schedule(**read_script(text, subject).sizes))
    session.write(text)
    return session
