"""``ex.help``: moves, other words for them, and beside them what a schedule, a program and the strategies have."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from ..errors import shown, spoken
from ..frontend.definition import Definition
from ..schedule import Schedule
from ..transforms.base import catalogue
from . import field, glossary
from .words import Word

_HANDED_ON = re.compile(r"[Ss]ee :(?:func|meth):`([\w.]+)\.(\w+)`")


@spoken(hint='ex.help("split"), or without anything all moves', name="help")
def lookup(words: str = "") -> str:
    """What a move, another system's word for one, a word of the field or of this tool, a method, a figure, or a strategy means.

    Parameters
    ----------
    words : str
        ``"coalesce"``, ``"Exo: mult_loops"``, ``"tensor core"``, ``"witness"``, ``"run"``, ``"auto"``, ``"plot.memory"``; without
        any, all moves, methods and words are listed.  In words, and in names of moves, case, spaces, dashes, dots and underscores
        do not matter.

    Returns
    -------
    str
        Its documentation; for a move with what other systems call it.  For a word that stands for several, a line of each.
    """
    words = words if isinstance(words, str) else shown(words)
    word = words.strip()
    if not word:
        return "\n".join((glossary.lookup(), f"a schedule also has: {', '.join(_public(Schedule))}",
                          f"a program has: {', '.join(_public(Definition))}",
                          f"figures, s.plot.…: {', '.join(_public(_plots()))}",
                          f"strategies: {', '.join(_strategies())}",
                          f"words of the field: {', '.join(field.spellings(field.FIELD))}",
                          f"words of this tool: {', '.join(field.spellings(field.OWN))}"))
    row = field.find(word)
    if word in catalogue() or (row is not None and row.said[0] in catalogue()):
        return _move(word if row is None else row.said[0])
    moves = glossary.moves_called(words)
    owner, name = _owner(word)
    if row is None and not moves and owner is None:  # another system's word: "CUTLASS: epilogue"
        row = field.find(word.rpartition(":")[2], own=False)
    see = list(dict.fromkeys((*(row.see if row else ()), *moves)))
    if owner is not None:
        return f"{name} — {_documentation(getattr(owner, name))}{_word(row, see, name)}"
    if row is None:
        return _move(moves[0]) if len(moves) == 1 else glossary.lookup(words)
    return f"{row.said[0]} — {row.means}\n\n{glossary.listed(see, _summary) if len(see) > 1 else lookup(see[0])}"


def _move(name: str) -> str:
    """A move's documentation, and behind it what its name means as a word."""
    row = field.find(name)
    return glossary.lookup(name) + _word(row, row.see if row else (), name)


def _word(row: Word | None, see: Iterable[str], name: str) -> str:
    """What stands behind the documentation of a name: what it means as a word, and what else to see."""
    more = [other for other in see if other not in (name, f"plot.{name}")]
    means = f"\n\nThe word: {row.means}" if row else ""
    return means + (f"\n\nSee also:\n\n{glossary.listed(more, _summary)}" if more else "")


def _owner(word: str) -> tuple[Any, str]:
    """Where the name of a method, a strategy or a figure is found, and the name there; else None."""
    figures, figure = _plots(), word.removeprefix("plot.")
    places = ((Schedule, _public(Schedule)), (Definition, _public(Definition)),
              (import_module("..strategies", __package__), _strategies()))
    owner = next((place for place, names in places if word in names), None)
    return (figures, figure) if owner is None and figure in _public(figures) else (owner, word)


def _summary(name: str) -> str:
    """The first line of the documentation of a move, a method, a strategy or a figure."""
    if name in catalogue():
        return glossary.summary(name)
    owner, own = _owner(name)
    return (inspect.getdoc(getattr(owner, own)) or "").partition("\n")[0]


def _plots() -> type:
    """The figures of a schedule, which need what draws them."""
    return import_module("..views.figures.plots", __package__).Plots


def _public(owner: type) -> list[str]:
    """What a class has for its users, its fields aside."""
    own = {f.name for f in fields(owner)} if is_dataclass(owner) else set()
    return [name for name in sorted(vars(owner).keys() - own) if not name.startswith("_") and inspect.getdoc(vars(owner)[name])]


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
