"""Names for quotients and remainders that a statement's indices repeat (common subexpressions of coalesced loops).

Before::

    y[t / 1000][t % 1000] = x[t / 1000] …;

After::

    const int i = t / 1000;
    y[i][t % 1000] = x[i] …;
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...ir.dtype import DType
from ...ir.expr import Atom, Expr
from ...ir.scalar import Read
from ...ir.scalar import walk as scalars
from ...ir.swizzle import cells
from ..index import atom_text
from ..lower import Context
from ..nodes import Copy, Do, Let, Load, Node, Operand, Put, Ref
from ..scalar import updates_in_place
from ..sites import Site
from ..traverse import exprs, map_bodies, map_exprs, parts

WORTH = 12
"""Characters from which a repeated part gets a name."""


def name_divisions(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with such parts named in front of the statements."""
    out: list[Node] = []
    for node in body:
        if isinstance(node, (Do, Load, Put, Copy)):
            out += _named(node, node.site, context)
        else:
            out.append(map_bodies(node, lambda inner: name_divisions(inner, context)))
    return tuple(out)


def _named(node: Do | Load | Put | Copy, site: Site, context: Context) -> list[Node]:
    counts = Counter(atom for e in _written(node, site) for atom in _atoms(e))
    lets: list[Let] = []
    for atom in sorted(counts, key=lambda a: (-len(atom_text(a, site.ranges)[0]), repr(a))):
        text, _, shift = atom_text(atom, site.ranges)
        if len(text) < WORTH or shift:
            continue
        if sum(_count(e, atom) for e in _written(node, site)) < 2 or not any(_count(e, atom) for e in exprs(node)):
            continue
        name = context.low.taken.take(_wanted(site, atom))
        known = {name: Expr(((atom, 1),)).interval(site.ranges)}
        site = replace(site, ranges={**site.ranges, **known}, around={**site.around, **known})
        node = map_exprs(node, lambda e, atom=atom, name=name: _replaced(e, atom, name))
        lets = [map_exprs(let, lambda e, atom=atom, name=name: _replaced(e, atom, name)) for let in lets]
        lets.insert(0, Let(name, Expr(((atom, 1),)), site, node.ids))
    return [*(replace(let, site=site) for let in lets), replace(node, site=site) if lets else node]


def _written(node: Do | Load | Put | Copy, site: Site) -> Iterator[Expr]:
    """The expressions as often as the text has them: an operand for each time that the value reads it."""
    yield from _spelled(node, site)
    if isinstance(node, Do):
        again = Counter(part.slot for part in scalars(node.site.statement.value) if isinstance(part, Read))
        for slot, times in again.items():
            for _ in range(times - 1):
                yield from _spelled(node.operands[slot], site)
        if node.site.statement.update and not updates_in_place(node.site.statement.update, _type(node.target)):
            yield from _spelled(node.target, site)


def _spelled(value: Any, site: Site) -> Iterator[Expr]:
    """Every expression of a node or operand: of an element of an array in panels the place, which has more of them."""
    found = Counter(exprs(value))
    for part in parts(value):
        if isinstance(part, Ref) and (buffer := part.store.placed):
            index = [e for e in part.index if isinstance(e, Expr)]
            found += Counter(cells(buffer, index, site.ranges)[0])
            found -= Counter(index)
    yield from found.elements()


def _type(target: Operand) -> DType:
    return target.store.dtype if isinstance(target, Ref) else target.local.dtype


def _atoms(e: Expr) -> Iterator[Atom]:
    for atom, _ in e.terms:
        if not isinstance(atom, str):
            yield atom
            yield from _atoms(atom.expr)


def _count(e: Expr, wanted: Atom) -> int:
    return sum(1 for atom in _atoms(e) if atom == wanted)


def _replaced(e: Expr, old: Atom, name: str) -> Expr:
    """The expression with a variable for a part of it; its terms keep their places."""
    if not any(atom == old for atom in _atoms(e)):
        return e
    terms: list[tuple[Atom, int]] = []
    for atom, c in e.terms:
        if atom == old:
            terms.append((name, c))
        else:
            terms.append((atom if isinstance(atom, str) else type(atom)(_replaced(atom.expr, old, name), atom.by), c))
    return Expr(tuple(terms), e.const)


def _wanted(site: Site, atom: Atom) -> str:
    """The dimension that the atom is the value of, or a name after the statement."""
    value = Expr(((atom, 1),))
    dim = next((d for d, e in site.at.items() if e == value), None)
    return re.sub(r"\W+", "_", dim).strip("_") if dim else f"{site.statement.name}_at"
