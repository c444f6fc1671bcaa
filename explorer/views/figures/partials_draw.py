"""The figure of a reduction's partial results: counts as bars on a logarithmic axis, and beside it what the lanes do."""

from __future__ import annotations

from math import ceil, log10
from typing import Any

from ...gpu.units import counted
from ...schedule import Schedule
from .asked import Asked, Look
from .palette import Theme, on
from .partials import Partials, partials
from .picture import Drawing
from .spec import Spec, axis, bars, layout, note, spec

LONGEST = 58
"""Characters of a level's words over its bar."""
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Digits of an exponent, which a static picture shows, too."""


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = partials(schedule, asked, look)
    if isinstance(data, str):
        return data
    rows: list[list[Any]] = [[v.leaf, v.leaf, v.words, _count(v.count, v.exact), ""] for v in data.levels]
    rows += [[a.leaf, a.leaf, f"lanes of kernel {a.kernel}", _count(a.active, a.exact) + f" of {a.slots:,} slots add a term",
              f"{a.idle:.1%} idle"] for a in data.lanes]
    rows += [[w.kernel, w.kernel, f"blocks on the {data.gpu}", f"{w.blocks:,} of {w.threads} threads, {w.at_once:,} at a time",
              f"{counted(ceil(w.rounds), 'wave')}, the last {w.last:.0%} full"] for w in data.waves]
    state = ", still open" if data.open else ""
    first, last = data.levels[0].count, data.levels[-1].count
    return Drawing(f"Partial results of {data.array}: {first:,} terms, {counted(last, 'value')}{state}", remark(data),
                   lambda theme: draw(data, theme), ["node", "what", "how many", "idle"], rows)


def draw(data: Partials, theme: Theme) -> Spec:
    """Above, one bar for each level; below, one stacked bar for the lanes of each update."""
    levels, lanes = data.levels, data.lanes
    top = max(log10(max(v.count, 1)) for v in levels) + 0.02
    height = 120 + 42 * len(levels) + 40 * len(lanes)
    cut = min(max((40 * len(lanes) + 34) / (height - 70), 0.2), 0.55)
    ys = [float(i) for i in range(len(levels))]
    fills = [theme.plain if v.words == "terms" else theme.bad if "not joined" in v.words else
             theme.block if v.words.startswith("blocks") else theme.thread if v.words.startswith("threads") else theme.vector
             for v in levels]
    length = [max(log10(max(v.count, 1)), top * 0.006) for v in levels]
    traces = [bars([0.0] * len(levels), length, ys, [v.leaf for v in levels], color=fills, width=0.42,
                   hover=[f"<b>{v.leaf}</b>: {_count(v.count, v.exact)} values; {v.words}" for v in levels])]
    step = 1 if top < 8 else 2
    ticks = [(float(n), "1" if n == 0 else f"10{str(n).translate(RAISED)}") for n in range(0, ceil(top) + 1, step)]
    page = layout(theme, height, left=18, right=30, top=14, bottom=44, barmode="overlay",
                  xaxis=axis(theme, f"values (each gridline is {10**step} times more)", (0, top),
                             [t for t in ticks if t[0] <= top], grid=True, domain=(0.0, 1.0), anchor="y"),
                  yaxis=axis(theme, "", (len(levels) - 0.4, -0.75), [], domain=(cut + 0.1, 1.0)))
    for y, v in zip(ys, levels, strict=True):
        words = v.words if len(v.words) <= LONGEST else v.words[: LONGEST - 1] + "…"
        page["annotations"].append(note(f"<b>{_count(v.count, v.exact)}</b>  {words}", 0, y - 0.42, theme, refs=("x", "y"),
                                        color=theme.ink, valign="middle"))
    _lane_bars(data, theme, traces, page, cut)
    return spec(traces, page)


def _lane_bars(data: Partials, theme: Theme, traces: list[Spec], page: Spec, cut: float) -> None:
    """Active, guarded off, not reached: shares of all slots, in words and in bars."""
    ys = [float(i) for i in range(len(data.lanes))]
    base = [0.0] * len(ys)
    for name, fill, part in (("add a term", theme.vector, "active"), ("turned off by a condition", theme.bad, "guarded"),
                             ("not reached by the update's loops", theme.plain, "outside")):
        share = [getattr(a, part) / a.slots if a.slots else 0.0 for a in data.lanes]
        text = [f"{s:.0%}" if s >= 0.06 else "" for s in share]
        traces.append(bars(list(base), share, ys, [a.leaf for a in data.lanes], color=fill, width=0.42, axes=("x2", "y2"),
                           hover=[f"<b>{a.leaf}</b>: {getattr(a, part):,} of {a.slots:,} slots {name} ({s:.1%})"
                                  for a, s in zip(data.lanes, share, strict=True)],
                           text=text, text_color=on(fill) if fill[0] == "#" else theme.ink))
        base = [b + s for b, s in zip(base, share, strict=True)]
    page["xaxis2"] = axis(theme, "share of lanes × iterations", (0, 1.005), [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")],
                          domain=(0.0, 1.0), anchor="y2")
    page["yaxis2"] = axis(theme, "", (len(ys) - 0.4, -0.75), [], domain=(0.0, cut - 0.04), anchor="x2")
    for y, a in zip(ys, data.lanes, strict=True):
        parts = [f"{a.active / a.slots:.1%} add a term"] if a.slots else []
        parts += [f"{a.guarded / a.slots:.1%} turned off"] if a.guarded else []
        parts += [f"{a.outside / a.slots:.1%} not reached"] if a.outside else []
        page["annotations"].append(note(f"<b>{a.leaf}</b>  {', '.join(parts)}", 0, y - 0.42, theme, refs=("x2", "y2"),
                                        color=theme.ink))


def remark(data: Partials) -> str:
    """The figure in sentences."""
    out = []
    joined = [v for v in data.levels if v.words.startswith(("threads", "blocks"))]
    blocks = {w.kernel: w.blocks for w in data.waves}
    for a in data.lanes:
        idle = "no lane is idle" if a.idle < 0.0005 else f"{a.idle:.1%} of the lanes' slots are idle"
        out.append(f"{a.leaf} in {counted(blocks[a.kernel], 'block')}: {idle}")
    for w in data.waves:
        if w.rounds:
            out.append(f"kernel {w.kernel} takes {counted(ceil(w.rounds), 'wave')} on the {data.gpu}, "
                       f"{w.at_once:,} blocks at a time at most, the last {w.last:.0%} full")
    if not joined:
        out.append("no partial results: each element is added up in one place")
    if any(not v.exact for v in data.levels) or any(not a.exact for a in data.lanes):
        out.append("counts marked ≤ are of the loops' boxes")
    return ". ".join(s[0].upper() + s[1:] if not s[0].isupper() else s for s in out) + "."


def _count(number: int, exact: bool) -> str:
    return f"{'' if exact else '≤ '}{number:,}"
