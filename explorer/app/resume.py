"""Restoring a session from text after a kernel restart: the program's source and the steps, run again."""

from __future__ import annotations

import base64
import builtins
import itertools
import json
import linecache
import logging
from typing import TYPE_CHECKING, Any

from ..errors import ReplayError
from ..frontend.definition import Definition
from ..frontend.preamble import decorated, preamble
from ..schedule import Schedule
from .session import Session

if TYPE_CHECKING:
    from .widget import Explorer

log = logging.getLogger("explorer")

_numbers = itertools.count(1)
_opened: list[Explorer] = []
"""Explorers that were brought back: no variable of the notebook holds them."""


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


def brought_back(text: str, selected: str = "", target: str = "") -> Explorer:
    """The explorer that a text of :func:`whole_script` opens; the notebook's own names stay as they are.

    Raises
    ------
    ReplayError
        If the text opens none.
    """
    from .widget import Explorer

    place = f"<explorer {next(_numbers)}>"
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)  # where the decorator looks for it
    names: dict[str, Any] = {"__name__": "__main__"}
    *before, last = _statements(text, place)
    for code in before:
        builtins.exec(code, names)
    found = builtins.eval(last, names)
    if not isinstance(found, Explorer):
        raise ReplayError("the text does not open an explorer", hint="its last line is ex.explore(…)")
    if target:
        found.session.aim(target)
    if selected in found.session.schedule.plan.ids:
        found.session.select(selected)
    return found


def _statements(text: str, place: str) -> list[Any]:
    import ast

    body = ast.parse(text, place).body
    if not body or not isinstance(body[-1], ast.Expr):
        raise ReplayError("the text does not open an explorer", hint="its last line is ex.explore(…)")
    *before, last = body
    return [*(compile(ast.Module([one], []), place, "exec") for one in before),
            compile(ast.Expression(last.value), place, "eval")]  # type: ignore[attr-defined]


def opened(text: str, selected: str = "", target: str = "") -> str:
    """For the front end of a widget whose kernel has gone: a new widget, as ``base64(JSON)`` of its id and its static picture.

    The notebook holds the picture in the place of the old one, so the front end renews it there (`Explorer.adopted`).
    """
    found = brought_back(text, selected, target)
    found.adopted = True
    _opened.append(found)
    log.info("brought back: %r", found)
    data = {"widget": found.model_id, "view": found.view_bundle(), "still": found.still()}
    return base64.b64encode(json.dumps(data).encode()).decode()
