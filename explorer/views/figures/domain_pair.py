"""A violating pair in a window of an iteration space: both ends ringed and numbered, and an arrow to the later one.

Words stand above the cells and not among them.  Ends of two statements stand in two grids, side by side.
"""

from __future__ import annotations

from collections.abc import Callable

from .domain import Domain, Marked
from .palette import Theme
from .spec import Spec, lines, note, points

LINE = 17
"""Pixels from one line of words to the next."""
BADGE = 15
"""Pixels from a ring's middle to its number."""

At = tuple[float, float]


def ends_of(data: Domain) -> list[tuple[Marked, Domain]]:
    """Source and sink, each with the grid it stands in; the one that must run first is first."""
    found = [(mark, grid) for grid in (data, data.other) if grid for mark in grid.pair]
    return sorted(found, key=lambda end: not end[0].first)


def rings(data: Domain, theme: Theme, size: float, axes: tuple[str, str]) -> list[Spec]:
    """A ring around each end in this grid."""
    if not data.pair:
        return []
    x, y = zip(*(at_of(m) for m in data.pair), strict=True)
    return [points(x, y, None, color="rgba(0,0,0,0)", size=size + 6, symbol="circle", outline=(theme.bad, 3), axes=axes,
                   cliponaxis=False, meta={"more": 6})]


def at_of(mark: Marked) -> At:
    """Where an end stands on two axes."""
    x, y = (*mark.at, 0.0, 0.0)[:2]
    return x, y


def arrow(start: At, end: At, theme: Theme, axes: tuple[str, str] = ("x", "y"), bend: float = 0.22) -> list[Spec]:
    """A bent line with a head."""
    (a, b), (c, d) = start, end
    middle = ((a + c) / 2 + (b - d) * bend, (b + d) / 2 + (c - a) * bend)
    x, y = [], []
    for i in range(13):
        t = 0.06 + i / 12 * 0.84
        u = 1 - t
        x.append(u * u * a + 2 * u * t * middle[0] + t * t * c)
        y.append(u * u * b + 2 * u * t * middle[1] + t * t * d)
    head = points([x[-2], x[-1]], [y[-2], y[-1]], None, color=theme.bad, size=[0, 13], symbol="arrow", axes=axes)
    head["marker"]["angleref"] = "previous"
    return [lines(x, y, color=theme.bad, width=2.5, axes=axes), head]


def legend(data: Domain, theme: Theme) -> list[Spec]:
    """Which end must run first, in words above the cells; each begins with its end's number."""
    ends = ends_of(data)
    out = []
    for n, (mark, _) in enumerate(ends):
        say = "must run first" if mark.first else "must run later"
        out.append(note(f"<b>{n + 1}  {mark.name}</b> {say}", 0, 1, theme, valign="bottom", size=12, color=theme.bad,
                        yshift=6 + LINE * (len(ends) - 1 - n)))
    return out


def badges(data: Domain, theme: Theme, refs: Callable[[Domain], tuple[str, str]]) -> list[Spec]:
    """The number of each end beside its ring, on the side that looks away from the other end."""
    ends = ends_of(data)
    out = []
    for n, (mark, grid) in enumerate(ends):
        across, down = _away(mark, [m for m, g in ends if g is grid and m is not mark], n)
        x, y = at_of(mark)
        out.append(note(f"<b>{n + 1}</b>", x, y, theme, refs=refs(grid), anchor="center", size=12, color=theme.bad,
                        xshift=across * BADGE, yshift=-down * BADGE,
                        bgcolor=theme.paper if theme.name != "static" else "rgba(0,0,0,0)"))
    return out


def _away(mark: Marked, others: list[Marked], n: int) -> tuple[int, int]:
    """The corner (±1 across, ±1 down) that looks away from the other end."""
    side = -1 if n == 0 else 1
    if not others:
        return side, -1
    (a, b), (c, d) = at_of(mark), at_of(others[0])
    return (a > c) - (a < c) or side, (b > d) - (b < d) or -1


def room(data: Domain) -> int:
    """Pixels above the cells that the words take."""
    return 12 + LINE * len(ends_of(data)) if data.pair else 14
