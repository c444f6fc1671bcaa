"""The device library in pieces: of each part, the definitions that some code needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

_COMMENT = re.compile(r"//[^\n]*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINED = re.compile(r"(?:\bstruct\s+(?:\w+\(.*?\)\s+)?|#\s*define\s+)(\w+)|\b(\w+)\s*\((?!&)")
_NOT_NAMES = frozenset(("alignas", "sizeof", "defined", "static_assert", "asm"))
"""What the library never defines; nor does it define a name of the compiler's, which begin with two underscores."""


@dataclass(frozen=True)
class Piece:
    """A definition with the comment above it; or a comment that stands alone, about what follows.

    Attributes
    ----------
    lines : tuple of str
    apart : bool
        Whether a blank line stands before it.
    """

    lines: tuple[str, ...]
    apart: bool

    @cached_property
    def code(self) -> str:
        """The lines without comments."""
        return _COMMENT.sub("", "\n".join(self.lines))

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name in it."""
        return frozenset(_WORD.findall(self.code))

    @cached_property
    def names(self) -> frozenset[str]:
        """What it defines; empty for a comment."""
        outside, depth = list[str](), 0
        for character in self.code:
            depth += (character == "{") - (character == "}")
            outside.append(character if depth == 0 else " ")
        found = _DEFINED.findall("".join(outside))
        return frozenset(n for pair in found for n in pair if n and not n.startswith("__")) - _NOT_NAMES


def needed(parts: Sequence[str], code: str) -> list[str]:
    """The parts, each without the definitions that neither the code nor another needed definition names.

    Parameters
    ----------
    parts : sequence of str
    code : str
    """
    found = [pieces(part) for part in parts]
    words, kept = set(_WORD.findall(code)), set[Piece]()
    while new := {p for part in found for p in part if p not in kept and p.names & words}:
        kept |= new
        words |= {w for p in new for w in p.words}
    return [text for part in found if (text := _text([p for p in part if p in kept or not p.names]))]


def _text(part: Sequence[Piece]) -> str:
    """Pieces as text; nothing where only comments are left."""
    if not any(p.names for p in part):
        return ""
    used = [p for n, p in enumerate(part) if p.names or any(q.names for q in part[n + 1 :])]
    lines = [line for n, p in enumerate(used) for line in (("",) if n and p.apart else ()) + p.lines]
    return "\n".join(lines) + "\n"


@cache
def pieces(text: str) -> tuple[Piece, ...]:
    """The definitions of a part of the library, in order."""
    return tuple(_pieces(text))


def _pieces(text: str) -> Iterator[Piece]:
    lines: list[str] = []
    depth = conditional = 0
    apart = False
    for line in (*text.rstrip("\n").split("\n"), ""):
        if not line.strip() and not depth and not conditional:
            if lines:
                yield Piece(tuple(lines), apart)
            lines, apart = [], True
            continue
        code = _COMMENT.sub("", line)
        lines.append(line)
        conditional += bool(re.match(r"\s*#\s*if", code)) - bool(re.match(r"\s*#\s*endif", code))
        depth += code.count("{") - code.count("}")
        ended = not depth and not conditional and code.rstrip().endswith(("}", "};", "#endif"))
        if ended:
            yield Piece(tuple(lines), apart)
            lines, apart = [], False
