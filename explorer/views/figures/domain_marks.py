"""What stands in a window of an iteration space: colours and words of cells, borders of blocks, arrows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...poly.sample import EVERYWHERE
from .domain import Cell, Domain
from .palette import CYCLE, Theme, amount
from .spec import Spec, lines


def side_of(data: Domain, i: int) -> tuple[int, int, int]:
    """First value, count and stride of an axis; one cell where there is none."""
    return data.window[i] if i < len(data.window) else (0, 1, 1)


def place_of(data: Domain, cell: Cell) -> tuple[float, float]:
    """Where a cell stands on the two axes."""
    named = dict(zip(data.dims, cell.point, strict=True))
    x, y = (*(float(named[d]) for d in data.axes[:2]), 0.0, 0.0)[:2]
    return x, y


def _group(data: Domain) -> Callable[[Cell], tuple[int, ...]]:
    """What cells of one colour have in common."""
    order = {leaf: i for i, leaf in enumerate(dict.fromkeys(c.leaf for c in data.cells))}
    return {"thread": lambda c: (c.number, *c.thread), "block": lambda c: c.block, "time": lambda c: (c.step,),
            "leaf": lambda c: (order[c.leaf],)}[data.colour]


def fills_of(data: Domain, theme: Theme) -> list[str]:
    """The colour of each cell."""
    if data.colour == "time":
        return [amount(c.step / max(data.steps - 1, 1)) for c in data.cells]
    group = _group(data)
    out = []
    for cell in data.cells:
        key = group(cell)
        x, y, z = (*(key[1:] if data.colour == "thread" else key), 0, 0)[:3]
        out.append(theme.plain if EVERYWHERE in key else CYCLE[(x + 3 * y + 5 * z) % len(CYCLE)])
    return out


def labels_of(data: Domain) -> list[str]:
    """The word in each cell: so that no one has to tell colours apart."""
    if data.colour == "time":
        return [f"{c.step + 1}" for c in data.cells]
    if data.colour == "thread":
        return ["all" if c.number == EVERYWHERE else f"{c.number}" for c in data.cells]
    if data.colour == "block":
        used = [i for i in range(3) if any(c.block[i] for c in data.cells)] or [0]
        return ["all" if EVERYWHERE in c.block else ",".join(f"{c.block[i]}" for i in reversed(used)) for c in data.cells]
    order = {leaf: i for i, leaf in enumerate(dict.fromkeys(c.leaf for c in data.cells))}
    return [chr(ord("a") + order[c.leaf] % 26) for c in data.cells]


def borders(data: Domain, theme: Theme, axes: tuple[str, str] = ("x", "y")) -> list[Spec]:
    """Lines between neighbouring cells that run in different blocks (and, thin, in different threads)."""
    at = {place_of(data, c): c for c in data.cells}
    block = _edges(data, at, lambda c: c.block)
    thread = _edges(data, at, lambda c: (c.block, c.number))
    out = []
    if 0 < len(thread) < 1.2 * len(at) and len(thread) > len(block):
        out.append(lines(*_joined(thread - block), color=theme.soft, width=0.8, opacity=0.6, axes=axes))
    if block:
        out.append(lines(*_joined(block), color=theme.ink, width=2, axes=axes))
    return out


Edge = tuple[bool, float, float, float]
"""Upright, its fixed coordinate, and from where to where."""


def _edges(data: Domain, at: dict[tuple[float, float], Cell], group: Callable[[Cell], object]) -> set[Edge]:
    (_, _, dx), (_, _, dy) = side_of(data, 0), side_of(data, 1)
    found: set[Edge] = set()
    for (x, y), cell in at.items():
        right, below = at.get((x + dx, y)), at.get((x, y + dy))
        if right and group(right) != group(cell):
            found.add((True, x + dx / 2, y - dy / 2, y + dy / 2))
        if below and group(below) != group(cell):
            found.add((False, y + dy / 2, x - dx / 2, x + dx / 2))
    return found


def _joined(edges: set[Edge]) -> tuple[list[float | None], list[float | None]]:
    """Adjoining edges as one line each."""
    x: list[float | None] = []
    y: list[float | None] = []
    runs: list[list] = []
    for upright, fixed, start, end in sorted(edges):
        if runs and runs[-1][:2] == [upright, fixed] and runs[-1][3] == start:
            runs[-1][3] = end
        else:
            runs.append([upright, fixed, start, end])
    for upright, fixed, start, end in runs:
        x += [fixed, fixed, None] if upright else [start, end, None]
        y += [start, end, None] if upright else [fixed, fixed, None]
    return x, y


def arrows(data: Domain, theme: Theme, where: Sequence[tuple[float, float]], axes: tuple[str, str] = ("x", "y")) -> list[Spec]:
    """One trace for the ordered dependences, one (dotted) for those of a reduction."""
    out = []
    for kinds, dash, opacity in ((("flow", "anti", "output"), "solid", 0.75), (("reduction",), "dot", 0.75)):
        x: list[float | None] = []
        y: list[float | None] = []
        for link in data.arrows:
            if link.kind in kinds:
                (a, b), (c, d) = where[link.source], where[link.sink]
                x += [a + (c - a) * 0.22, c - (c - a) * 0.22, None]
                y += [b + (d - b) * 0.22, d - (d - b) * 0.22, None]
        if x:
            out.append(lines(x, y, color=theme.ink, width=1.1, dash=dash, arrow=True, opacity=opacity, axes=axes))
    return out
