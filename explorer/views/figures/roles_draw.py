"""Drawing of a kernel's roles: two bars for each, measured over predicted, on one axis."""

from __future__ import annotations

from collections import defaultdict
from math import floor, log10

from ...gpu.units import time_text
from ...run.stamps import WORDS
from ...schedule import Schedule
from ...strategies.pipelines.acting import Piece
from .asked import Asked, Look
from .palette import Theme, on
from .picture import Drawing
from .roles import PARTS, RolesData, Row, roles
from .spec import FITTED, Spec, axis, bars, layout, spec

ROW, ALONE = 54, 30
"""Pixels of a row with two bars, and with one."""
WIDTH, LETTER = 470, 7
"""Pixels of a narrow figure, whose bars have words that fit, and of a letter."""
SHORT = {"acquire": ("wait for slot", "wait"), "issue": ("copies", "copy"), "wait": ("wait for copies", "wait"),
         "product": ("product",), "drain": ("products",), "release": ("release",), "barrier": ("barrier",),
         "combine": ("combine",), "load": ("load",), "compute": ("compute",), "through": ("to shared",), "store": ("store",)}
"""What stands in a bar, the longest that fits."""
BAR, THIN = 0.38, 0.003
"""Height of one bar of two, and the share of the axis that a piece has at least: the model has no time for an issue of copies."""


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = roles(schedule, asked, look)
    if isinstance(data, str):
        return data
    how = {"": f"on the {data.gpu}, predicted", "cpu": "on the CPU device, in their order"}.get(
        data.device, f"on the {data.gpu}, measured over predicted" if _both(data) else f"on the {data.gpu}, measured")
    title = f"Roles of {data.kernel} {how} · {PARTS[data.part]}"
    return Drawing(title, _note(data), lambda theme: draw(data, theme), *_table(data))


def draw(data: RolesData, theme: Theme) -> Spec:
    """A row for each role; clipped to the window."""
    both, (begin, end) = _both(data), data.window
    fills = {"acquire": theme.thread, "wait": theme.thread, "issue": theme.copy, "product": theme.block, "drain": theme.block,
             "load": theme.block, "compute": theme.block, "through": theme.vector, "store": theme.vector}
    left = 22 + round(6.6 * max(len(text) for _, text in _labels(data)))
    room = (WIDTH - left - 18) / LETTER / (end - begin)
    drawn: dict[tuple[str, bool], list[tuple[float, Row, Piece]]] = defaultdict(list)
    others = {told: {(row.name, p.mark, p.iteration): p for row in data.rows for p in (row.measured if told else row.predicted)}
              for told in (False, True)}
    for n, row in enumerate(data.rows):
        for pieces, told in ((row.measured, False), (row.predicted, True)):
            at = n + (0.2 if told else -0.2) * both
            for p in pieces:
                if _inside(p, begin, end) and (p.end > p.start or p.kind == "issue"):
                    drawn[fills.get(p.kind, theme.plain), told].append((at, row, p))
    traces = []
    for (fill, told), some in drawn.items():
        starts = [max(p.start, begin) for _, _, p in some]
        hover = [_words(data, row, p, told, others[told].get((row.name, p.mark, p.iteration))) for _, row, p in some]
        lengths = [max(min(p.end, end) - start, THIN * (end - begin)) for (_, _, p), start in zip(some, starts, strict=True)]
        traces.append(bars(
            starts, lengths, [at for at, _, _ in some], [p.ids[0] if p.ids else None for _, _, p in some], color=fill,
            width=BAR if both else 0.72, hover=hover,
            opacity=0.62 if told and both else 1.0,
            constraintext="inside",
            text=[_label(p, length * room) for (_, _, p), length in zip(some, lengths, strict=True)], text_color=on(fill)))
    ticks = [(t, f"{t:g}") for t in _ticks(begin, end)]
    unit = "µs from the block's first stamp" if data.stamps and data.timed else (
        "µs from the block's begin" if data.timed else "turns of the block's threads: an order, and no time")
    height = (ROW if both else ALONE) * len(data.rows) + 80
    page = layout(theme, height, left=left, top=14, bottom=46, barmode="overlay", **FITTED,
                  xaxis=axis(theme, unit, (begin, end), ticks, grid=True),
                  yaxis=axis(theme, "", (len(data.rows) - 0.4, -0.6), _labels(data)))
    return spec(traces, page)


def _both(data: RolesData) -> bool:
    """Whether some row has both bars."""
    return any(r.predicted and r.measured for r in data.rows)


def _labels(data: RolesData) -> list[tuple[float, str]]:
    """Names of rows; where there are two bars, of both."""
    if not _both(data):
        return [(float(n), r.name) for n, r in enumerate(data.rows)]
    return [x for n, r in enumerate(data.rows) for x in ((n - 0.2, r.name), (n + 0.2, "predicted"))]


def _label(p: Piece, room: float) -> str:
    """As much of the piece's name as fits."""
    step = f" {p.iteration[-1][0]}={p.iteration[-1][1]}" if p.iteration else ""
    return next((t for t in (*(name + step for name in SHORT[p.kind]), *SHORT[p.kind]) if len(t) <= room), "")


def _where(p: Piece) -> str:
    return ", ".join(f"{name}={n}" for name, n in p.iteration)


def _time(data: RolesData, value: float) -> str:
    return time_text(value) if data.timed else f"{value:.0f} turns"


def _words(data: RolesData, row: Row, p: Piece, told: bool, other: Piece | None) -> str:
    """What a piece is, how long it takes, and what the other one says."""
    where = f" in {_where(p)}" if p.iteration else ""
    took = _time(data, p.end - p.start) + (", predicted" if told else ", measured" if data.timed else "")
    beside = f"<br>{time_text(other.end - other.start)} {'measured' if told else 'predicted'}" if other else ""
    return f"{row.name}: {WORDS[p.kind]}{where}<br>{took}{beside}"


def _inside(p: Piece, begin: float, end: float) -> bool:
    """Whether a piece, which may take no time, is in the window."""
    return (p.start < end and p.end > begin) or begin <= p.start == p.end <= end


def _ticks(begin: float, end: float) -> list[float]:
    """Round numbers in the window."""
    rough = (end - begin) / 7
    size = 10 ** floor(log10(rough))
    step = next(n * size for n in (1, 2, 5, 10) if n * size >= rough)
    return [round(n * step, 9) for n in range(-floor(-begin / step), floor(end / step) + 1)]


def _note(data: RolesData) -> str:
    parts = ["orange: waits, of a producer for a slot that is free, of the others for copies", "purple: copies are issued",
             "blue: products and what computes, and the wait for products in flight", "green: results on their way out",
             "grey: barriers and releases"]
    if data.stamps is not None and not data.timed:
        parts.append("the CPU device runs one thread after the other, and says in which order things happen: no time is measured")
    elif data.stamps is not None:
        first = next(k for k in data.stamps.kept if k.log.kernel == data.kernel)
        parts.append(f"measured in block {first.log.block} on multiprocessor {first.multiprocessor}, by one thread of each role, "
                     "in a copy of the kernel with stamps")
        if data.stamps.plain_us and data.stamps.stamped_us:
            slower = data.stamps.stamped_us / data.stamps.plain_us - 1
            parts.append(f"{time_text(data.stamps.plain_us)} without stamps, {time_text(data.stamps.stamped_us)} with them "
                         f"({slower:+.1%})")
    else:
        parts.append("all of it is predicted, by the terms of the plan's price; what these leave out takes no time here"
                     + (f"; measured was another GPU, {data.other}" if data.other else ""))
    return ". ".join(p[0].upper() + p[1:] for p in parts) + "."


def _table(data: RolesData) -> tuple[list[str], list[list[str | None]]]:
    """The pieces in the window, in order of time, each with both times."""
    begin, end = data.window
    rows: list[tuple[float, list[str | None]]] = []
    for r in data.rows:
        told = {(p.mark, p.iteration): p for p in r.predicted}
        for p in r.measured or r.predicted:
            if not _inside(p, begin, end):
                continue
            other = told.get((p.mark, p.iteration)) if data.timed else None
            cells = [f"{p.start:.2f}", f"{p.end - p.start:.3f}" if r.measured else "",
                     f"{other.end - other.start:.3f}" if other else ""]
            rows.append((p.start, [p.ids[0] if p.ids else None, r.name, WORDS[p.kind], _where(p), *cells]))
    unit = "µs" if data.timed else "turns"
    return ["role", "does", "in", f"from {unit}", f"measured {unit}" if data.timed else "turns", "predicted µs"], [
        cells for _, cells in sorted(rows, key=lambda x: x[0])]
