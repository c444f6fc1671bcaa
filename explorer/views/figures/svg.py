"""A figure's spec as a static SVG, for readers without JavaScript: saved notebooks, printed pages, untrusted files.

Understands the vocabulary of :mod:`.spec` (markers, lines, bars, heat maps, rules, boxes, words; linear and logarithmic
axes with explicit ranges) and nothing more.  Marks of one colour are one path, so that a picture stays small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from math import atan2, cos, log10, pi, sin
from typing import Any

from .palette import FONT, MONO

WIDTH = 680
_DASH = {"dot": "1.5 2.5", "dash": "6 4", "dashdot": "6 3 1.5 3"}
HALO = (
    ' style="paint-order:stroke" stroke-width="4" stroke-linejoin="round" '
    'stroke="var(--jp-layout-color0,var(--vscode-editor-background,Canvas))"'
)
"""Behind words that stand over marks."""
Place = Callable[[float], float]


def render(spec: dict[str, Any], title: str) -> str:
    """The picture, or an empty string for a spec without traces in the plane."""
    traces = [t for t in spec.get("data", []) if t["type"] in ("scatter", "bar", "heatmap")]
    if not traces:
        return ""
    page = _Page(spec["layout"])
    kept = [_shape(page, s) for s in spec["layout"]["shapes"] if s.get("layer") == "below"]
    body = [part for t in traces for part in _trace(page, t)]
    over = [_shape(page, s) for s in spec["layout"]["shapes"] if s.get("layer") != "below"]
    words = [_words(page, a) for a in spec["layout"]["annotations"]]
    inside = "".join((*page.axes(), *kept, *body, *over, *words))
    height = round(page.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(title)}" style="max-width:100%;height:auto;color-scheme:light dark;'
        f'color:var(--jp-content-font-color0,var(--vscode-editor-foreground,light-dark(#1d2430,#e6e9ee)))" '
        f'font-family="{escape(FONT)}" font-size="11" fill="currentColor"><title>{escape(title)}</title>{inside}</svg>'
    )


class _Page:
    """The plotting area and its axes."""

    def __init__(self, layout: dict[str, Any]) -> None:
        margin = layout["margin"]
        bottom = margin["b"] - (78 if layout.get("sliders") else 0)
        self.layout, self.left, self.top = layout, margin["l"], margin["t"]
        self.wide = WIDTH - margin["l"] - margin["r"]
        self.height = layout["height"] - (margin["b"] - bottom)
        self.high = self.height - margin["t"] - bottom

    def axis(self, name: str) -> dict[str, Any]:
        """The axis that a trace or shape names ``x2``."""
        return self.layout[f"{name[0]}axis{name[1:]}"]

    def place(self, ref: str, exponent: bool = False) -> Place:
        """Data coordinate to pixels; words on a logarithmic axis stand at an exponent, as Plotly has it."""
        across = ref.startswith("x")
        if ref.endswith("domain"):
            low, high = self.axis(ref.split()[0])["domain"]
            return lambda v: self._pixel(low + v * (high - low), across)
        axis = self.axis(ref)
        (a, b), (low, high), log = axis["range"], axis["domain"], axis.get("type") == "log" and not exponent

        def at(value: float) -> float:
            v = log10(value) if log else value
            return self._pixel(low + (v - a) / (b - a) * (high - low), across)

        return at

    def paper(self, across: bool) -> Place:
        """Paper coordinates, 0 to 1, to pixels."""
        return lambda v: self._pixel(v, across)

    def _pixel(self, share: float, across: bool) -> float:
        return self.left + share * self.wide if across else self.top + (1 - share) * self.high

    def axes(self) -> Sequence[str]:
        """Titles, ticks and grid lines of every axis."""
        out = []
        for key, axis in self.layout.items():
            if re.fullmatch(r"[xy]axis\d*", key) and axis.get("visible", True):
                out += self._axis(key.replace("axis", ""), axis)
        return out

    def _axis(self, name: str, axis: dict[str, Any]) -> list[str]:
        at, across = self.place(name), name[0] == "x"
        partner = axis.get("anchor") or ("y" if across else "x") + name[1:]
        other = self.layout.get(f"{partner[0]}axis{partner[1:]}", {"domain": [0, 1]})["domain"]
        near, far = self._pixel(other[0], not across), self._pixel(other[1], not across)
        family = f' font-family="{escape(MONO)}"' if "family" in axis["tickfont"] else ""
        out, grid = [], ""
        for value, text in zip(axis.get("tickvals", ()), axis.get("ticktext", ()), strict=True):
            p = at(value)
            grid += f"M{p:.1f} {near:.1f}V{far:.1f}" if across else f"M{near:.1f} {p:.1f}H{far:.1f}"
            where = (f'x="{p:.1f}" y="{near + 15:.1f}" text-anchor="middle"' if across else
                     f'x="{near - 7:.1f}" y="{p + 4:.1f}" text-anchor="end"')
            out.append(f'<text {where} opacity=".72"{family}>{_rich(text)}</text>')
        if axis["showgrid"]:
            out.insert(0, f'<path d="{grid}" stroke="currentColor" opacity=".14" fill="none"/>')
        middle = (self._pixel(axis["domain"][0], across) + self._pixel(axis["domain"][1], across)) / 2
        if text := axis["title"]["text"]:
            out.append(
                f'<text x="{middle:.1f}" y="{near + 33:.1f}" text-anchor="middle" font-size="12">{_rich(text)}</text>'
                if across
                else f'<text transform="translate({max(near - 42, 11):.1f} {middle:.1f}) rotate(-90)" text-anchor="middle" '
                f'font-size="12">{_rich(text)}</text>'
            )
        return out


def _trace(page: _Page, t: dict[str, Any]) -> list[str]:
    x, y = page.place(t.get("xaxis", "x")), page.place(t.get("yaxis", "y"))
    fade = f' opacity="{t["opacity"]}"' if t.get("opacity", 1) != 1 else ""
    parts = {"scatter": _scatter, "bar": _bars, "heatmap": _heat}[t["type"]](t, x, y)
    return [f"<g{fade}>{''.join(parts)}</g>"] if fade else parts


def _scatter(t: dict[str, Any], x: Place, y: Place) -> list[str]:
    out, mode = [], t["mode"]
    at = [None if a is None or b is None else (x(a), y(b)) for a, b in zip(t["x"], t["y"], strict=True)]
    if "lines" in mode:
        path, pen = "", "M"
        for p in at:
            path += f"{pen}{_n(p[0])} {_n(p[1])}" if p else ""
            pen = "L" if p else "M"
        line = t["line"]
        dash = f' stroke-dasharray="{_DASH[line["dash"]]}"' if line.get("dash") in _DASH else ""
        fill = f'fill="{t["fillcolor"]}"' if t.get("fill") == "toself" else 'fill="none"'
        out.append(f'<path d="{path}" {fill} stroke="{line["color"]}" stroke-width="{line["width"]}"{dash}/>')
    if "markers" in mode:
        out += _markers(t, at)
    if "text" in mode:
        out += _labels(t, at)
    return out


def _labels(t: dict[str, Any], at: list[tuple[float, float] | None]) -> list[str]:
    """Words at points, grouped by colour."""
    font, groups = t["textfont"], {}
    dx, anchor, dy = _beside(t.get("textposition", "middle center"))
    for i, (p, text) in enumerate(zip(at, t["text"], strict=True)):
        if p and text:
            colour = _item(font.get("color") or "currentColor", i)
            groups[colour] = (
                groups.get(colour, "")
                + f'<text x="{p[0] + dx:.0f}" y="{p[1] + dy + font["size"] * 0.36:.0f}">{_rich(text)}</text>'
            )
    return [
        f'<g text-anchor="{anchor}" font-size="{font["size"]}" fill="{colour}">{inner}</g>' for colour, inner in groups.items()
    ]


def _beside(position: str) -> tuple[float, str, float]:
    """Offset and anchor of a word beside its point."""
    vertical, across = position.split()
    return ({"left": -9, "right": 9, "center": 0}[across], {"left": "end", "right": "start", "center": "middle"}[across],
            {"top": -13, "bottom": 13, "middle": 0}[vertical])


def _markers(t: dict[str, Any], at: list[tuple[float, float] | None]) -> list[str]:
    """Markers of one look are one path."""
    marker, looks = t["marker"], {}
    for i, p in enumerate(at):
        size = _item(marker["size"], i)
        if p and size:
            before = at[i - 1] if i and marker.get("angleref") else None
            angle = atan2(p[1] - before[1], p[0] - before[0]) if before else 0.0
            key = (
                _item(marker["color"], i),
                str(_item(marker.get("line", {}).get("color", ""), i)),
                _item(marker.get("line", {}).get("width", 0), i),
            )
            looks[key] = looks.get(key, "") + _mark(_item(marker["symbol"], i), p[0], p[1], size, angle)
    out = []
    for (fill, stroke, width), path in looks.items():
        line = f' stroke="{stroke}" stroke-width="{width}"' if width else ""
        out.append(f'<path d="{path}" fill="{_paint(fill)}"{line}/>')
    return out


def _mark(symbol: str, x: float, y: float, size: float, angle: float) -> str:
    r, s = _n(size / 2), _n(size)
    if symbol == "circle":
        return f"M{_n(x - size / 2)} {_n(y)}a{r} {r} 0 1 0 {s} 0a{r} {r} 0 1 0-{s} 0z"
    if symbol == "diamond":
        return f"M{_n(x)} {_n(y - size / 2)}l{r} {r}l-{r} {r}l-{r}-{r}z"
    if symbol == "triangle-up":
        return f"M{_n(x)} {_n(y - size / 2)}l{r} {s}h-{s}z"
    if symbol == "triangle-down":
        return f"M{_n(x)} {_n(y + size / 2)}l{r}-{s}h-{s}z"
    if symbol == "arrow":
        wings = [(x - size * cos(angle + turn), y - size * sin(angle + turn)) for turn in (pi / 7, -pi / 7)]
        return f"M{_n(x)} {_n(y)}" + "".join(f"L{_n(a)} {_n(b)}" for a, b in wings) + "z"
    return f"M{_n(x - size / 2)} {_n(y - size / 2)}h{s}v{s}h-{s}z"


def _n(value: float) -> str:
    """A coordinate with one digit, if it needs one."""
    return f"{value:.1f}".removesuffix(".0")


def _bars(t: dict[str, Any], x: Place, y: Place) -> list[str]:
    looks: dict[tuple[str, str, float], str] = {}
    texts = []
    for i, (base, length, row) in enumerate(zip(t["base"], t["x"], t["y"], strict=True)):
        a, b, top, low = x(base), x(base + length), y(row - t["width"] / 2), y(row + t["width"] / 2)
        top, low = min(top, low), max(top, low)
        line = t["marker"]["line"]
        key = (_item(t["marker"]["color"], i), _item(line.get("color", "none"), i), _item(line["width"], i))
        looks[key] = looks.get(key, "") + f"M{a:.1f} {top:.1f}H{b:.1f}V{low:.1f}H{a:.1f}z"
        if t.get("text") and t["text"][i]:
            font, outside = t.get("insidetextfont", {}), t.get("textposition") == "outside"
            fill = _item(font.get("color") or "currentColor", i) if not outside else "currentColor"
            where = f'x="{b + 5:.1f}" text-anchor="start"' if outside else f'x="{(a + b) / 2:.1f}" text-anchor="middle"'
            texts.append(
                f'<text {where} y="{(top + low) / 2 + 3.6:.1f}" font-size="{font.get("size", 10)}" fill="{fill}">'
                f"{_rich(t['text'][i])}</text>"
            )
    paths = [
        f'<path d="{d}" fill="{_paint(f)}"' + (f' stroke="{_paint(s)}" stroke-width="{w}"' if w else "") + "/>"
        for (f, s, w), d in looks.items()
    ]
    return [*paths, *texts]


def _heat(t: dict[str, Any], x: Place, y: Place) -> list[str]:
    (xs, ys), looks, top = (t["x"], t["y"]), {}, t["zmax"] or 1
    dx = abs(x(xs[1]) - x(xs[0])) if len(xs) > 1 else 14.0
    dy = abs(y(ys[1]) - y(ys[0])) if len(ys) > 1 else abs(y(ys[0] + t["dy"]) - y(ys[0])) if "dy" in t else 14.0
    stops = t["colorscale"]
    for row, cells in zip(ys, t["z"], strict=True):
        for column, z in zip(xs, cells, strict=True):
            if z is not None:
                colour = stops[min(int(z / top * len(stops)), len(stops) - 1)][1]
                looks[colour] = looks.get(colour, "") + (f"M{x(column) - dx / 2 + 0.5:.1f} {y(row) - dy / 2 + 0.5:.1f}"
                                                         f"h{dx - 1:.1f}v{dy - 1:.1f}h{1 - dx:.1f}z")
    return [f'<path d="{path}" fill="{colour}"/>' for colour, path in looks.items()]


def _shape(page: _Page, s: dict[str, Any]) -> str:
    x = page.paper(True) if s["xref"] == "paper" else page.place(s["xref"])
    y = page.paper(False) if s["yref"] == "paper" else page.place(s["yref"])
    line = s["line"]
    dash = f' stroke-dasharray="{_DASH[line["dash"]]}"' if line.get("dash") in _DASH else ""
    stroke = f'stroke="{_paint(line["color"])}" stroke-width="{line["width"]}"{dash}' if line["width"] else 'stroke="none"'
    fade = f' opacity="{s["opacity"]}"' if "opacity" in s else ""
    a, b, c, d = x(s["x0"]), y(s["y0"]), x(s["x1"]), y(s["y1"])
    if s["type"] == "line":
        return f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" {stroke}{fade} fill="none"/>'
    return f'<path d="M{a:.1f} {b:.1f}H{c:.1f}V{d:.1f}H{a:.1f}z" {stroke}{fade} fill="{_paint(s["fillcolor"])}"/>'


def _words(page: _Page, a: dict[str, Any]) -> str:
    x = page.paper(True) if a["xref"] == "paper" else page.place(a["xref"], True)
    y = page.paper(False) if a["yref"] == "paper" else page.place(a["yref"], True)
    size, lines = a["font"]["size"], re.split(r"<br>", a["text"])
    drop = {"top": size, "middle": size * 0.36 - (len(lines) - 1) * size * 0.65, "bottom": -3 - (len(lines) - 1) * size * 1.3}[
        a["yanchor"]
    ]
    left, top = x(a["x"]) + a.get("xshift", 0), y(a["y"]) - a.get("yshift", 0) + drop
    anchor = {"left": "start", "center": "middle", "right": "end"}[a["xanchor"]]
    fade = ' opacity=".72"' if a["font"]["color"] == "currentColor" else ""
    rows = "".join(
        f'<tspan x="{left:.1f}" dy="{size * 1.3 if i else 0:.1f}">{_rich(line)}</tspan>' for i, line in enumerate(lines)
    )
    halo = HALO if "bgcolor" in a else ""
    return f'<text y="{top:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{a["font"]["color"]}"{fade}{halo}>{rows}</text>'


def _rich(text: str) -> str:
    """Plotly's bold as SVG's."""
    plain = escape(str(text).replace("<b>", "\x01").replace("</b>", "\x02"), quote=False)
    return plain.replace("\x01", '<tspan font-weight="600">').replace("\x02", "</tspan>").replace("&amp;nbsp;", " ")


def _paint(colour: str) -> str:
    return "none" if colour.startswith("rgba") and colour.endswith(",0)") else colour


def _item(value: Any, i: int) -> Any:
    return value[i] if isinstance(value, (list, tuple)) else value
