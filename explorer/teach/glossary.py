"""Other systems' words for our moves: ``ex.help("Exo: mult_loops")``.  Each transformation lists those for itself."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

from ..transforms.base import catalogue
from . import field
from .field import key


def lookup(words: str = "") -> str:
    """What a move, or another system's word for it, means here.

    Parameters
    ----------
    words : str
        ``"coalesce"``, ``"Exo: mult_loops"``, ``"Halide: fuse"``; without any, all moves are listed.  Case, spaces, dashes, dots
        and underscores do not matter.

    Returns
    -------
    str
        The move's documentation, with what other systems call it; of several moves a line each.
    """
    words = str(words)
    if not words.strip():
        return "moves, each a method of a schedule (help(\"split\") says what one does):\n" + "\n".join(map(_line, catalogue()))
    hits = moves_called(words)
    if not hits:
        near = _near(words)
        return f"no move is called {words!r}; " + (f"did you mean {', '.join(near)}?" if near else "print(ex.help()) lists all")
    return _entry(hits[0]) if len(hits) == 1 else f"{words.strip()} stands for several moves:\n\n{listed(hits, summary)}"


def moves_called(words: str) -> list[str]:
    """The move of this name; else those that have the word among their aliases, or among a system's words for them."""
    system, _, word = words.rpartition(":")
    system, word = system.strip().lower(), key(word)
    kinds = catalogue()
    if not word:
        return []
    if not system and (own := [name for name in kinds if key(name) == word]):
        return own
    theirs = [name for name, kind in kinds.items() for who, names in kind.elsewhere.items()
              if (not system or who.lower() == system) and word in map(key, names.split(","))]
    aliases = [name for name, kind in kinds.items() if word in map(key, (*kind.aliases, *kind.formerly))]
    return list(dict.fromkeys(theirs or aliases if system else (*theirs, *aliases)))


def listed(names: list[str], says: Callable[[str], str]) -> str:
    """Names with what each one says in a line, what to beware of, and how to read on."""
    lines: list[str] = []
    for name in names:
        kind = catalogue().get(name)
        lines += [f"  {name} — {says(name)}", *([f"    Beware: {kind.beware}"] if kind and kind.beware else [])]
    return "\n".join([*lines, "", f"ex.help({names[0]!r}) says more."])


def summary(name: str) -> str:
    """The first line of a move's documentation."""
    return (catalogue()[name].__doc__ or "").strip().splitlines()[0]


def _near(words: str) -> list[str]:
    """At most three known words that are spelled like these, the nearest first, one for each answer."""
    known: dict[str, str] = {}
    for word in (*catalogue(), *_known()):
        known.setdefault(word.casefold(), word)
    found = [known[n] for n in difflib.get_close_matches(words.strip().casefold(), known, 12, 0.6)]
    answers: dict[object, str] = {}
    for word in found:
        moves = tuple(moves_called(word))
        answers.setdefault(moves if word in catalogue() else field.find(word) or moves, word)
    return list(answers.values())[:3]


def _known() -> Iterator[str]:
    """Aliases, words of the field and our own, and other systems' words with the system."""
    for kind in catalogue().values():
        yield from kind.aliases
    yield from field.spellings(field.WORDS)
    for kind in catalogue().values():
        yield from (f"{system}: {name.strip()}" for system, names in kind.elsewhere.items() for name in names.split(","))


def _line(name: str) -> str:
    """A move and the first line of its documentation."""
    return f"  {name:<12s} {summary(name)}"


def _entry(name: str) -> str:
    kind = catalogue()[name]
    called = ", ".join(f"{system}: {words}" for system, words in kind.elsewhere.items())
    lines = [f"{name} — {(kind.__doc__ or '').strip()}"]
    lines += [f"Called elsewhere: {called}."] if called else []
    lines += [f"Beware: {kind.beware}"] if kind.beware else []
    return "\n\n".join(lines)
