"""Drawing of a window of an iteration space: a plane or a cube of cells, and the order of execution as frames."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from ...schedule import Schedule
from .asked import Asked, Look
from .domain import Cell, Domain, domain, remark, table, words
from .domain_marks import arrows, borders, fills_of, labels_of, place_of, side_of
from .domain_pair import arrow, at_of, badges, ends_of, legend, rings, room
from .palette import Theme, on
from .picture import Drawing
from .spec import Spec, axis, layout, note, points, spec

SMALLEST = 7
"""Of the digits in cells, in pixels; smaller ones are left out."""
WIDE, NARROW = 600, 260
"""Pixels across that a grid by itself, or one of two, is made for."""
TOP = 0.85
"""Share of the height that two grids take; the arrow between them bends through the rest."""
TITLE = 36
"""Most characters of a grid's title."""
FRAMES = 24
"""Pictures of the order of execution at most; each shows several steps where there are more."""


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = domain(schedule, asked, look)
    if isinstance(data, str):
        return data
    return Drawing(title(data), remark(data), lambda theme: draw(data, theme), *table(data))


def draw(data: Domain, theme: Theme) -> Spec:
    """The figure's spec: two axes, or three, or two grids."""
    if len(data.axes) == 3:
        return _cube(data, theme)
    return _beside(data, theme) if data.other else _plane(data, theme)


def title(data: Domain) -> str:
    """What is shown."""
    fixed = ", ".join(f"{d} = {v}" for d, v in data.fixed)
    what = {"time": "in order of execution", "leaf": "by place in the loops"}.get(data.colour, f"by {data.colour}")
    if data.other:
        return f"Instances of {' and '.join(grid.statement for _, grid in ends_of(data))} {what}"
    return f"Instances of {data.statement} {what}" + (f" · {fixed}" if fixed else "")


@dataclass(frozen=True)
class Grid:
    """Traces of one window: those below, the instances, those above; its cells' places and colours, its axes' settings."""

    below: list[Spec]
    instances: Spec
    above: list[Spec]
    where: dict[Cell, tuple[float, float]]
    fills: list[str]
    size: float
    pitch: float
    axes: tuple[Spec, Spec]


def _grid(data: Domain, theme: Theme, wide: float = WIDE, names: tuple[str, str] = ("x", "y"), **placed: Any) -> Grid:
    """The cells of a window with all that stands in it but words."""
    where = {cell: place_of(data, cell) for cell in data.cells}
    (x0, nx, dx), (y0, ny, dy) = side_of(data, 0), side_of(data, 1)
    fills, labels = fills_of(data, theme), labels_of(data)
    pitch = min(max(wide / max(nx, 1), 19.0), 36.0)
    linked = arrows(data, theme, [*where.values()], names) if wide > NARROW else []
    share = 0.62 if linked else 0.78
    size = round(pitch * share, 1)
    longest = max((len(t) for t in labels), default=0)
    text_size = min(11, int(size / (0.62 * max(longest, 1))) + 1)
    cells = points(
        [w[0] for w in where.values()],
        [w[1] for w in where.values()],
        [c.leaf for c in data.cells],
        color=fills,
        size=size,
        hover=[f"<b>{data.statement}[{', '.join(map(str, c.point))}]</b><br>{words(data, c)}" for c in data.cells],
        text=labels if text_size >= SMALLEST and nx <= 40 else None,
        text_color=[on(f) if f[0] == "#" else f for f in fills],
        text_size=text_size,
        name="instances",
        axes=names,
        meta={"cell": [dx, dy], "share": share, "longest": longest, **_runs(data)},
    )
    across = axis(theme, _name(data, 0), (x0 - dx * 0.7, x0 + (nx - 0.3) * dx), _ticks(x0, nx, dx), **placed.get("x", {}))
    down = axis(theme, _name(data, 1), (y0 + (ny - 0.3) * dy, y0 - dy * 0.7),
                _ticks(y0, ny, dy) if len(data.axes) > 1 else [], **placed.get("y", {}))
    over = [*linked, *rings(data, theme, size, names)]
    return Grid(borders(data, theme, names), cells, over, where, fills, size, pitch, (across, down))


def _runs(data: Domain) -> Spec:
    """What tells the runs of a node apart: the nodes around each leaf, the innermost first, and each cell's loop values so."""
    return {"around": {leaf: list(reversed(nodes)) for leaf, nodes in data.above},
            "loops": [list(reversed(c.loops)) for c in data.cells]}


def _plane(data: Domain, theme: Theme) -> Spec:
    """One grid, and the order of execution as frames."""
    grid = _grid(data, theme)
    pointer = arrow(at_of(data.pair[0]), at_of(data.pair[1]), theme) if len(data.pair) > 1 else []
    traces = [*grid.below, grid.instances, *grid.above, *pointer]
    bottom, top = 50 + (78 if data.steps > 1 else 0), room(data)
    height = round(max(side_of(data, 1)[1], 1) * min(grid.pitch, 30) + 14 + bottom + top)
    page = layout(theme, height, left=58, top=top, bottom=bottom, xaxis=grid.axes[0], yaxis=grid.axes[1])
    page["annotations"] += [*legend(data, theme), *badges(data, theme, lambda _: ("x", "y"))]
    frames, controls = _play(data, theme, grid.where, grid.fills, len(traces), len(grid.below))
    if frames:
        traces.append(points([], [], None, color=[], size=grid.size + 2, outline=(theme.ink, 2), name="now", meta={"more": 2}))
        page |= controls
    return spec(traces, page, frames)


def _beside(data: Domain, theme: Theme) -> Spec:
    """The grids of two statements, the one that must run first on the left, and an arrow from grid to grid."""
    shown = [grid for _, grid in ends_of(data)]
    rows = [max(side_of(g, 1)[1], 1) for g in shown]
    sides, drops = ((0.0, 0.44), (0.56, 1.0)), [(TOP * (1 - n / max(rows)), TOP) for n in rows]
    names = (("x", "y"), ("x2", "y2"))
    grids = [
        _grid(g, theme, NARROW, name, x={"domain": side, "anchor": name[1]}, y={"domain": drop, "anchor": name[0]})
        for g, name, side, drop in zip(shown, names, sides, drops, strict=True)
    ]
    ends = [_on_paper(g, mark.at, side, drop) for (mark, g), side, drop in zip(ends_of(data), sides, drops, strict=True)]
    traces = [t for g in grids for t in (*g.below, g.instances, *g.above)]
    traces += arrow(ends[0], ends[1], theme, ("x3", "y3"), bend=min(0.6, 0.3 / (ends[1][0] - ends[0][0])))
    top = room(data) + 24
    page = layout(
        theme, round(max(rows) * min(max(g.pitch for g in grids), 30) / TOP + 64 + top), left=58, top=top, bottom=50,
        xaxis={**grids[0].axes[0], "fixedrange": True}, yaxis={**grids[0].axes[1], "fixedrange": True},
        xaxis2={**grids[1].axes[0], "fixedrange": True}, yaxis2={**grids[1].axes[1], "fixedrange": True},
        xaxis3=axis(theme, "", (0, 1), [], anchor="y3", visible=False, fixedrange=True),
        yaxis3=axis(theme, "", (0, 1), [], anchor="x3", visible=False, fixedrange=True),
    )  # fmt: skip
    for g, side in zip(shown, sides, strict=True):
        text = f"{g.statement}: {g.text}"
        text = text if len(text) <= TITLE else text[: TITLE - 1] + "…"
        page["annotations"].append(note(f"<b>{text}</b>", side[0], 1, theme, valign="bottom", yshift=2, color=theme.ink))
    page["annotations"] += [{**w, "yshift": w["yshift"] + 22} for w in legend(data, theme)]
    page["annotations"] += badges(data, theme, lambda g: names[shown.index(g)])
    return spec(traces, page)


def _on_paper(data: Domain, at: tuple[float, ...], side: tuple[float, float], drop: tuple[float, float]) -> tuple[float, float]:
    """Where a point of a grid stands in the plotting area: shares of its width and height."""
    x, y = (*at, 0.0, 0.0)[:2]
    (x0, nx, dx), (y0, ny, dy) = side_of(data, 0), side_of(data, 1)
    across = (x - (x0 - dx * 0.7)) / ((nx + 0.4) * dx)
    down = (y0 + (ny - 0.3) * dy - y) / ((ny + 0.4) * dy)
    return side[0] + across * (side[1] - side[0]), drop[0] + down * (drop[1] - drop[0])


def _name(data: Domain, i: int) -> str:
    """The dimension of an axis, with what it is spread over."""
    if i >= len(data.axes):
        return ""
    return f"<b>{data.axes[i]}</b>" + (f"  ({data.roles[i]})" if data.roles[i] else "")


def _ticks(start: int, count: int, step: int) -> list[tuple[float, str]]:
    stride = next(s for s in (1, 2, 4, 8, 16, 32, 64) if ceil(count / s) <= 10)
    return [(start + i * step, f"{start + i * step}") for i in range(0, count, stride)]


BUTTONS = 116
"""Pixels of the two buttons, which the slider leaves to them: a share of the width would be too little on a narrow screen."""


def _play(data: Domain, theme: Theme, where: dict[Cell, tuple[float, float]], fills: list[str], now: int,
          base: int) -> tuple[list[Spec], Spec]:
    """Frames that light up what runs at each step, and the buttons and slider for them."""
    if data.steps < 2:
        return [], {}
    each = ceil(data.steps / FRAMES)
    frames = [{"name": "all steps", "data": [{"x": [], "y": [], "marker": {"color": []}}, {"opacity": 1}], "traces": [now, base]}]
    cells = list(zip(data.cells, where.values(), fills, strict=True))
    for start in range(0, data.steps, each):
        here = [(at, fill) for c, at, fill in cells if start <= c.step < start + each]
        last = min(start + each, data.steps)
        name = f"step {last}" if each == 1 else f"steps {start + 1} to {last}"
        now_data = {"x": [at[0] for at, _ in here], "y": [at[1] for at, _ in here], "marker": {"color": [f for _, f in here]}}
        frames.append({"name": name, "data": [now_data, {"opacity": 0.28}], "traces": [now, base]})
    still = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    run = {"fromcurrent": True, "frame": {"duration": 420, "redraw": True}, "transition": {"duration": 0}, "mode": "immediate"}
    style = {"bgcolor": "rgba(0,0,0,0)", "bordercolor": theme.grid, "font": {"size": 12, "color": theme.ink}}
    buttons = [{"label": "▶ play", "method": "animate", "args": [[f["name"] for f in frames[1:]], run]},
               {"label": "❚❚", "method": "animate", "args": [[None], still]}]
    menu = {"type": "buttons", "direction": "left", "x": 0, "y": 0, "xanchor": "left", "yanchor": "top", "showactive": False,
            "pad": {"t": 52, "l": 0, "r": 8}, "buttons": buttons, **style}
    slider = {
        "active": 0,
        "x": 0,
        "y": 0,
        "len": 1,
        "xanchor": "left",
        "yanchor": "top",
        "pad": {"t": 38, "b": 0, "l": BUTTONS},
        "currentvalue": {"prefix": "", "font": {"size": 12, "color": theme.ink}, "xanchor": "left"},
        "minorticklen": 0,
        "ticklen": 0,
        "font": {"size": 1, "color": "rgba(0,0,0,0)"},
        "bgcolor": theme.grid,
        "bordercolor": theme.grid,
        "activebgcolor": theme.block,
        "steps": [{"label": f["name"], "method": "animate", "args": [[f["name"]], still]} for f in frames],
    }
    return frames, {"updatemenus": [menu], "sliders": [slider]}


def _cube(data: Domain, theme: Theme) -> Spec:
    """Three axes: cells as cubes to turn around; as a static picture, looked at from one side."""
    if theme.name == "static":
        return _projected(data, theme)
    named = [dict(zip(data.dims, c.point, strict=True)) for c in data.cells]
    x, y, z = ([n[d] for n in named] for d in data.axes)
    marker = {"symbol": "square", "size": 7, "color": fills_of(data, theme), "line": {"width": 0}}
    hover = [f"<b>{data.statement}[{', '.join(map(str, c.point))}]</b><br>{words(data, c)}" for c in data.cells]
    traces: list[Spec] = [{"type": "scatter3d", "mode": "markers", "x": x, "y": y, "z": z, "marker": marker, "hovertext": hover,
                           "hovertemplate": "%{hovertext}<extra></extra>",
                           "customdata": [c.leaf for c in data.cells], "meta": _runs(data)}]
    ends = [(float(a), float(b), float(c)) for a, b, c in zip(x, y, z, strict=True)]
    coordinates: tuple[list[float | None], ...] = ([], [], [])
    for link in data.arrows:
        for i in range(3):
            coordinates[i].extend((ends[link.source][i], ends[link.sink][i], None))
    if data.arrows:
        traces.append(
            {
                "type": "scatter3d",
                "mode": "lines",
                "x": coordinates[0],
                "y": coordinates[1],
                "z": coordinates[2],
                "line": {"color": theme.ink if theme.ink[0] == "#" else "#888888", "width": 2},
                "opacity": 0.5,
                "hoverinfo": "skip",
            }
        )
    if len(data.pair) == 2:
        a, b = (m.at for m in data.pair)
        traces.append({"type": "scatter3d", "mode": "lines+markers+text", "x": [a[0], b[0]], "y": [a[1], b[1]], "z": [a[2], b[2]],
                       "line": {"color": theme.bad, "width": 6}, "marker": {"color": theme.bad, "size": 9, "symbol": "circle"},
                       "text": [m.name for m in data.pair], "textfont": {"color": theme.bad}, "hoverinfo": "skip"})
    sides = {
        key: {
            "title": {"text": d},
            "color": theme.soft,
            "gridcolor": theme.grid,
            "backgroundcolor": "rgba(0,0,0,0)",
            "zeroline": False,
        }
        for key, d in zip(("xaxis", "yaxis", "zaxis"), data.axes, strict=True)
    }
    sides["zaxis"]["autorange"] = "reversed"
    return spec(
        traces,
        layout(
            theme,
            520,
            left=0,
            right=0,
            top=0,
            bottom=0,
            scene={**sides, "aspectmode": "cube", "camera": {"eye": {"x": 1.5, "y": -1.6, "z": 1.0}}},
        ),
    )


def _projected(data: Domain, theme: Theme) -> Spec:
    """The cube in cabinet projection: the third axis runs up to the right, at half length; far cells first."""
    (x0, nx, dx), (y0, ny, dy), (z0, nz, _) = data.window
    ends: list[tuple[float, float, float]] = []
    for cell in data.cells:
        named = dict(zip(data.dims, cell.point, strict=True))
        x, y, z = ((named[d] - first) / step for d, (first, _, step) in zip(data.axes, data.window, strict=True))
        ends.append((z, x + 0.45 * z, y - 0.45 * z))
    order = sorted(range(len(ends)), key=lambda i: -ends[i][0])
    fills, labels = fills_of(data, theme), labels_of(data)
    cells = points(
        [ends[i][1] for i in order],
        [ends[i][2] for i in order],
        [data.cells[i].leaf for i in order],
        color=[fills[i] for i in order],
        size=17,
        text=[labels[i] if len(labels[i]) < 4 else "" for i in order],
        text_color=[on(fills[i]) if fills[i][0] == "#" else fills[i] for i in order],
        outline=("#8d97a5", 0.6),
    )
    page = layout(
        theme,
        420,
        left=58,
        top=16,
        bottom=50,
        xaxis=axis(
            theme,
            f"{_name(data, 0)}, and {data.axes[2]} from {z0} up to the right",
            (-0.7, nx + 0.45 * nz),
            [((v - x0) / dx, t) for v, t in _ticks(x0, nx, dx)],
        ),
        yaxis=axis(theme, _name(data, 1), (ny - 0.3, -0.45 * nz - 0.7), [((v - y0) / dy, t) for v, t in _ticks(y0, ny, dy)]),
    )
    return spec([cells], page)
