"""A session as Python that stands alone: what is kept with a notebook, and what a restarted kernel runs again."""

from __future__ import annotations

from ..frontend.definition import Definition
from ..frontend.preamble import decorated, preamble
from ..schedule import Schedule
from .session import Session


def whole_script(session: Session) -> str:
    """Python that needs nothing but this package: the program's text, and the explorer on it with every step and comment.

    Empty where the text of the program is not known.
    """
    start = session.history.line()[0].schedule
    if start.definition is None or not start.source.source:
        return ""
    return f"{defining(start.definition, start)}\n\nex.explore({start.source.name}, {_quoted(session.script)})\n"


def defining(definition: Definition, start: Schedule) -> str:
    """Imports, sizes, constants and the text of a program."""
    return "\n".join([*preamble(definition), "", decorated(start.source.source)])


def _quoted(script: str) -> str:
    """A script as a literal that is read as lines."""
    return repr(script) if '"""' in script or "\\" in script else f'"""\n{script}"""'
