"""``ex.help``: moves and other systems' words for them, and beside them what a schedule, a program and the strategies have."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

from ..errors import shown, spoken
from ..frontend.definition import Definition
from ..schedule import Schedule
from ..transforms.base import catalogue
from . import glossary

_HANDED_ON = re.compile(r"[Ss]ee :(?:func|meth):`([\w.]+)\.(\w+)`")


@spoken(hint='ex.help("split"), or without anything all moves', name="help")
def lookup(words: str = "") -> str:
    """What a move, another system's word for one, a method of a schedule or a program, a figure, or a strategy means.

    Parameters
    ----------
    words : str
        ``"coalesce"``, ``"Exo: mult_loops"``, ``"run"``, ``"auto"``, ``"plot.memory"``; without any, all moves and methods are
        listed.

    Returns
    -------
    str
        Its documentation; for a move with what other systems call it.
    """
    words = words if isinstance(words, str) else shown(words)
    word = words.strip()
    if not word:
        return "\n".join((glossary.lookup(), f"a schedule also has: {', '.join(_public(Schedule))}",
                          f"a program has: {', '.join(_public(Definition))}",
                          f"figures, s.plot.…: {', '.join(_public(_plots()))}",
                          f"strategies: {', '.join(_strategies())}"))
    owner = None if word in catalogue() else next((o for o in (Schedule, Definition) if word in _public(o)), None)
    if owner is None and word in _strategies():
        owner = import_module("..strategies", __package__)
    if word.startswith("plot.") or (owner is None and word not in catalogue()):
        word, owner = next(((name, _plots()) for name in _public(_plots()) if name == word.removeprefix("plot.")), (word, owner))
    if owner is None:
        return glossary.lookup(words)
    return f"{word} — {_documentation(getattr(owner, word))}"


def _plots() -> type:
    """The figures of a schedule, which need what draws them."""
    return import_module("..views.figures.plots", __package__).Plots


def _public(owner: type) -> list[str]:
    """What a class has for its users, its fields aside."""
    return [name for name in sorted(vars(owner)) if not name.startswith("_") and inspect.getdoc(vars(owner)[name])]


def _strategies() -> list[str]:
    strategies = import_module("..strategies", __package__)
    return [name for name in strategies.__all__ if inspect.isfunction(getattr(strategies, name))]


def _documentation(value: object) -> str:
    """A docstring, and that of the function that it hands on to, where the options are."""
    text = inspect.getdoc(value) or ""
    if not (further := _HANDED_ON.search(text)):
        return text
    place, name = further.groups()
    outer, _, last = place.rpartition(".")
    owner = import_module(place) if last.islower() else getattr(import_module(outer), last)
    return f"{text}\n\n{inspect.getdoc(getattr(owner, name))}"
