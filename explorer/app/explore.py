"""What ``ex.explore`` is given, made into a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..api import Definition, Schedule
from ..errors import ScheduleError
from ..frontend.definition import Definition as AnyDefinition
from ..schedule import Schedule as AnySchedule
from .script import Subject, read_script
from .session import Session

if TYPE_CHECKING:
    from .widget import Explorer


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
    session = session_of(what, text, **sizes)
    try:
        from .widget import Explorer
    except ImportError as error:
        raise ScheduleError("the explorer needs anywidget and ipywidgets, which are not installed", why=str(error),
                            hint='pip install "schedule-explorer[lab]"') from error
    return Explorer(session)


def session_of(what: Any, text: str = "", /, **sizes: int) -> Session:
    """The session that :func:`explore` would show."""
    if isinstance(what, AnySchedule):
        if text or sizes:
            raise ScheduleError("a schedule has its sizes and steps already", hint="explore(program, text) or schedule.at(…)")
        return Session(what if isinstance(what, Schedule) else Schedule(what.source, what.plan, what.steps))
    if not isinstance(what, AnyDefinition):
        raise ScheduleError(f"the explorer takes a schedule or a program, not {type(what).__name__}",
                            hint="ex.explore(program, M=64, N=64) or ex.explore(program.schedule(M=64, N=64))")
    definition = what if isinstance(what, Definition) else what.into(Definition)
    if not text:
        return Session(definition.schedule(**sizes))
    if sizes:
        raise ScheduleError("the text has its sizes already", hint="ex.explore(program, text)")
    if text.lstrip().startswith(("ex1:", "{")):
        return Session(definition.load(text))
    return _from_script(definition, text)


def _from_script(definition: Definition, text: str) -> Session:
    """The session of a script."""
    subject = Subject(definition.name, definition.source, tuple((name, 64) for name in definition.sizes))
    session = Session(definition.schedule(**read_script(text, subject).sizes))
    session.write(text)
    return session
