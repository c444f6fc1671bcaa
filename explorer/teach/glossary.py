"""Other systems' words for our moves: ``ex.help("Exo: mult_loops")``.  Each transformation lists those for itself."""

from __future__ import annotations

import difflib

from ..transforms.base import catalogue


def lookup(words: str = "") -> str:
    """What a move, or another system's word for it, means here.

    Parameters
    ----------
    words : str
        ``"coalesce"``, ``"Exo: mult_loops"``, ``"Halide: fuse"``; without any, all moves are listed.

    Returns
    -------
    str
        The move's documentation, with what other systems call it.
    """
    words = str(words)
    if not words.strip():
        return "moves, each a method of a schedule (help(\"split\") says what one does):\n" + "\n".join(map(_line, catalogue()))
    system, _, word = words.rpartition(":")
    system, word = system.strip().lower(), word.strip()
    rows = {kind.name: kind.elsewhere for kind in catalogue().values()}
    hits = [ours for ours, row in rows.items() for theirs, names in row.items()
            if (not system or theirs.lower() == system) and word in [n.strip() for n in names.split(",")]]
    if not system and word in catalogue():
        hits = [word]
    hits = list(dict.fromkeys(hits)) or [k.name for k in catalogue().values() if word in k.aliases]
    if not hits:
        known = [*catalogue(), *(f"{t}: {n.strip()}" for r in rows.values() for t, names in r.items() for n in names.split(","))]
        near = difflib.get_close_matches(words.strip(), known, 4, 0.4)
        return f"no move is called {words!r}; did you mean {', '.join(near) or 'one of ' + ', '.join(catalogue())}?"
    return "\n\n".join(_entry(name) for name in hits)


def _line(name: str) -> str:
    """A move and the first sentence of its documentation."""
    return f"  {name:<12s} {(catalogue()[name].__doc__ or '').strip().splitlines()[0]}"


def _entry(name: str) -> str:
    kind = catalogue()[name]
    called = ", ".join(f"{system}: {words}" for system, words in kind.elsewhere.items())
    lines = [f"{name} — {(kind.__doc__ or '').strip()}"]
    lines += [f"Called elsewhere: {called}."] if called else []
    lines += [f"Beware: {kind.beware}"] if kind.beware else []
    return "\n\n".join(lines)
