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

if TYPE_CHECKING:
    from .widget import Explorer

log = logging.getLogger("explorer")

_numbers = itertools.count(1)
_opened: list[Explorer] = []
"""Explorers that were brought back: no variable of the notebook holds them."""


def brought_back(text: str, selected: str = "", target: str = "", actions: str = "[]") -> Explorer:
    """The explorer that a session's text (:mod:`~explorer.app.whole_script`) opens; the notebook's own names stay as they are.

    Its steps are the `actions` again that they were, as JSON (:meth:`~explorer.app.history.History.actions`).

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
    found.session.history.regroup([(int(start), int(end), str(title)) for start, end, title in json.loads(actions)])
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


def opened(text: str, selected: str = "", target: str = "", actions: str = "[]") -> str:
    """For the front end of a widget whose kernel has gone: a new widget, as ``base64(JSON)`` of its id and its static picture.

    The notebook holds the picture in the place of the old one, so the front end renews it there (`Explorer.adopted`).
    """
    found = brought_back(text, selected, target, actions)
    found.adopted = True
    _opened.append(found)
    log.info("brought back: %r", found)
    data = {"widget": found.model_id, "view": found.view_bundle(), "still": found.still()}
    return base64.b64encode(json.dumps(data).encode()).decode()
