"""Names for long parts of an index that a statement's text would repeat: quotients and remainders of coalesced loops."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..ir.expr import Atom, Expr
from .index import atom_text
from .lower import Lowered, Site

WORTH = 12
"""Characters from which a repeated part gets a name."""


def shortened(low: Lowered, site: Site, lines: Sequence[str], lane: Mapping[str, Expr] | None = None) -> list[str]:
    """The lines with every long quotient or remainder that occurs twice declared above them.

    Parameters
    ----------
    low : Lowered
    site : Site
        The leaf that `lines` are the text of.
    lines : sequence of str
    lane : mapping, optional
        What the text has in place of a vector loop's variable.
    """
    declared: list[str] = []
    text = list(lines)
    for atom in sorted(set(_atoms(low, site, lane or {})), key=lambda a: (-len(atom_text(a, site.ranges)[0]), repr(a))):
        part = atom_text(atom, site.ranges)[0]
        pattern = re.compile(rf"(?<![\w)]){re.escape(part)}(?!\w)")
        code = [line.split("//")[0] for line in text]
        if len(part) < WORTH or sum(len(pattern.findall(line)) for line in code) < 2:
            continue
        name = low.taken.take(_wanted(site, atom))
        text = [pattern.sub(name, line.split("//")[0]) + line[len(line.split("//")[0]):] for line in text]
        declared = [pattern.sub(name, line) for line in declared]
        declared.insert(0, f"const int {name} = {part};")
    return [*declared, *text]


def _atoms(low: Lowered, site: Site, lane: Mapping[str, Expr]) -> Iterator[Atom]:
    for slot in range(len(site.statement.accesses)):
        for e in (*low.index(site, slot, lane), low.offset(site, slot, lane)):
            if isinstance(e, Expr):
                yield from _inner(e)


def _inner(expr: Expr) -> Iterator[Atom]:
    for atom, _ in expr.terms:
        if not isinstance(atom, str):
            yield atom
            yield from _inner(atom.expr)


def _wanted(site: Site, atom: Atom) -> str:
    """The dimension that the atom is the value of, or a name after the statement."""
    value = Expr(((atom, 1),))
    dim = next((d for d, e in site.at.items() if e == value), None)
    return re.sub(r"\W+", "_", dim).strip("_") if dim else f"{site.statement.name}_at"
