"""Plotly figures as plain data: the small vocabulary that all figures here are written in, and the layout they share.

A spec is what ``Plotly.newPlot`` takes, so drawing needs no Plotly in Python; :func:`figure` makes the Python object for
those who want to go on with it.  Axes always state their range and ticks, which is what lets :mod:`.svg` draw the same
spec as a static picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ...errors import FigureError
from .palette import FONT, MONO, Theme

Spec = dict[str, Any]
Numbers = Sequence[float | None]


FITTED: Spec = {"uniformtext": {"minsize": 10, "mode": "hide"}}
"""Of a layout whose bars have words (``constraintext="inside"``): one that does not fit its bar on this screen is not shown."""


def layout(theme: Theme, height: int, *, left: int = 64, right: int = 18, top: int = 34, bottom: int = 46, **more: Any) -> Spec:
    """The layout of every figure: transparent, calm, no legend box, fonts of the host."""
    return {"autosize": True, "height": height, "margin": {"l": left, "r": right, "t": top, "b": bottom},
            "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "showlegend": False, "hovermode": "closest",
            "dragmode": "pan", "font": {"family": FONT, "size": 12, "color": theme.ink},
            "hoverlabel": {"font": {"family": FONT, "size": 12}, "align": "left"}, "annotations": [], "shapes": [], **more}


def axis(
    theme: Theme,
    title: str,
    span: tuple[float, float],
    ticks: Sequence[tuple[float, str]] | None = None,
    *,
    grid: bool = False,
    domain: tuple[float, float] = (0.0, 1.0),
    anchor: str = "",
    log: bool = False,
    mono: bool = False,
    **more: Any,
) -> Spec:
    """An axis with an explicit range (reversed if `span` falls) and, where given, explicit ticks (value, words)."""
    out: Spec = {"title": {"text": title, "font": {"size": 12, "color": theme.ink}, "standoff": 8}, "range": list(span),
                 "domain": list(domain), "showgrid": grid, "gridcolor": theme.grid, "zeroline": False, "showline": False,
                 "color": theme.soft, "ticks": "", "tickfont": {"size": 11} | ({"family": MONO} if mono else {}), **more}
    if ticks is not None:
        out |= {"tickmode": "array", "tickvals": [v for v, _ in ticks], "ticktext": [t for _, t in ticks]}
    if anchor:
        out["anchor"] = anchor
    if log:
        out["type"] = "log"
    return out


def points(x: Numbers, y: Numbers, nodes: Sequence[str | None] | None, *, color: Any, size: Any = 9, symbol: Any = "square",
           hover: Sequence[str] | None = None, text: Sequence[str] | None = None, text_color: Any = None, text_size: int = 9,
           axes: tuple[str, str] = ("x", "y"), outline: tuple[str, float] | None = None, **more: Any) -> Spec:
    """Markers, with a word in each if `text` is given; without `nodes` they are decoration."""
    out: Spec = {"type": "scatter", "mode": "markers+text" if text else "markers", "x": list(x), "y": list(y),
                 "marker": {"color": color, "size": size, "symbol": symbol,
                            "line": {"color": outline[0], "width": outline[1]} if outline else {"width": 0}}}
    if text:
        out |= {"text": list(text), "textfont": {"size": text_size, "color": text_color}, "textposition": "middle center"}
    return _finish(out, nodes, hover, axes) | more


def lines(x: Numbers, y: Numbers, *, color: str, width: float = 1.5, dash: str = "solid", node: str | None = None,
          hover: str = "", axes: tuple[str, str] = ("x", "y"), arrow: bool = False, **more: Any) -> Spec:
    """Line segments (None ends one); with `arrow` each segment of two points ends in a head."""
    out: Spec = {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": list(y),
        "line": {"color": color, "width": width, "dash": dash},
    }
    if arrow:
        heads = [0 if i % 3 == 0 else 8 if i % 3 == 1 else 0 for i in range(len(out["x"]))]
        out |= {"mode": "lines+markers", "marker": {"symbol": "arrow", "angleref": "previous", "size": heads, "color": color,
                                                    "line": {"width": 0}}}
    named = [node] * len(out["x"]) if node else None
    return _finish(out, named, [hover] * len(out["x"]) if hover else None, axes) | more


def bars(
    base: Sequence[float],
    length: Sequence[float],
    y: Sequence[float],
    nodes: Sequence[str | None] | None,
    *,
    color: Any,
    width: float = 0.7,
    hover: Sequence[str] | None = None,
    text: Sequence[str] | None = None,
    text_color: Any = None,
    text_size: int = 10,
    axes: tuple[str, str] = ("x", "y"),
    outline: tuple[Any, Any] | None = None,
    **more: Any,
) -> Spec:
    """Horizontal bars from `base`, a word inside each if `text` is given."""
    out: Spec = {"type": "bar", "orientation": "h", "base": list(base), "x": list(length), "y": list(y), "width": width,
                 "marker": {"color": color, "line": {"color": outline[0], "width": outline[1]} if outline else {"width": 0}}}
    if text:
        out |= {
            "text": list(text),
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "constraintext": "none",
            "insidetextfont": {"size": text_size, "color": text_color},
            "cliponaxis": False,
        }
    return _finish(out, nodes, hover, axes) | more


def heat(
    x: Sequence[float],
    y: Sequence[float],
    z: Sequence[Sequence[float | None]],
    nodes: str | None,
    *,
    scale: list[list[Any]],
    top: float,
    hover: Sequence[Sequence[str]] | None = None,
    **more: Any,
) -> Spec:
    """Cells of a plane by amount (None stays empty), 0 to `top`."""
    out: Spec = {
        "type": "heatmap",
        "x": list(x),
        "y": list(y),
        "z": [list(row) for row in z],
        "zmin": 0,
        "zmax": top,
        "colorscale": scale,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "xaxis": "x",
        "yaxis": "y",
    }
    if nodes is not None:
        out["customdata"] = [[nodes] * len(row) for row in out["z"]]
    if hover is None:
        out["hoverinfo"] = "skip"
    else:
        out |= {"text": [list(row) for row in hover], "hovertemplate": "%{text}<extra></extra>"}
    return out | more


def note(text: str, x: float, y: float, theme: Theme, *, refs: tuple[str, str] = ("paper", "paper"), anchor: str = "left",
         valign: str = "middle", size: int = 11, color: str = "", **more: Any) -> Spec:
    """Words at a place, without an arrow."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": refs[0],
        "yref": refs[1],
        "xanchor": anchor,
        "yanchor": valign,
        "showarrow": False,
        "align": anchor,
        "font": {"size": size, "color": color or theme.soft},
        **more,
    }


def rule(x0: float, y0: float, x1: float, y1: float, color: str, *, width: float = 1.0, dash: str = "solid",
         refs: tuple[str, str] = ("x", "y"), **more: Any) -> Spec:
    """A straight line that is not data."""
    return {"type": "line", "x0": x0, "y0": y0, "x1": x1, "y1": y1, "xref": refs[0], "yref": refs[1],
            "line": {"color": color, "width": width, "dash": dash}, "layer": "below", **more}


def box(x0: float, y0: float, x1: float, y1: float, *, line: str = "", fill: str = "rgba(0,0,0,0)", width: float = 1.0,
        refs: tuple[str, str] = ("x", "y"), **more: Any) -> Spec:
    """A rectangle that is not data."""
    return {"type": "rect", "x0": x0, "y0": y0, "x1": x1, "y1": y1, "xref": refs[0], "yref": refs[1], "fillcolor": fill,
            "line": {"color": line or "rgba(0,0,0,0)", "width": width if line else 0}, **more}


def spec(data: Sequence[Spec], layout_: Spec, frames: Sequence[Spec] = ()) -> Spec:
    """A figure: traces, layout, frames, and the quiet configuration that all share."""
    solid = any(trace.get("type") == "scatter3d" for trace in data)
    return {"data": list(data), "layout": layout_, "frames": list(frames), "config": _config(solid)}


def _config(solid: bool = False) -> Spec:
    """The bar of buttons on a figure: moving and zooming, and no others.

    They are listed one by one: what Plotly adds by itself changes with its versions, and one of its buttons sends the figure to a
    server.
    """
    ways = [["orbitRotation", "pan3d", "zoom3d"], ["resetCameraDefault3d"]] if solid else [
        ["pan2d", "zoom2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]]  # fmt: skip
    return {"displaylogo": False, "modeBarButtons": ways, "showSendToCloud": False,
            "plotlyServerURL": "", "showTips": False}


def figure(spec_: Spec) -> Any:
    """A ``plotly.graph_objects.Figure`` of a spec, which shows the same buttons.

    Raises
    ------
    FigureError
        If Plotly is not installed.
    """
    try:
        return _quiet()({key: spec_[key] for key in ("data", "layout", "frames") if key in spec_}, spec_.get("config"))
    except ImportError:
        raise FigureError("interactive figures need Plotly, which is not installed", hint="pip install 'plotly>=5.24'") from None


@cache
def _quiet() -> type:
    """Plotly's figure with a configuration of its own: Plotly keeps none with a figure, and has buttons that nobody asked for."""
    import plotly.graph_objects as go

    class Figure(go.Figure):
        def __init__(self, made: Any = None, config: Spec | None = None, **more: Any) -> None:
            super().__init__(made, **more)
            self._explorer_config = config or _config()

        def __reduce__(self) -> Any:
            return figure, ({**self.to_dict(), "config": self._explorer_config},)

        def show(self, *args: Any, **more: Any) -> Any:
            return super().show(*args, **{"config": self._explorer_config, **more})

        def to_html(self, *args: Any, **more: Any) -> str:
            return super().to_html(*args, **(more if args else {"config": self._explorer_config, **more}))

        def write_html(self, *args: Any, **more: Any) -> Any:
            return super().write_html(*args, **(more if len(args) > 1 else {"config": self._explorer_config, **more}))

        def _ipython_display_(self) -> None:
            self.show()

        def _repr_mimebundle_(self, *args: Any, **more: Any) -> Any:
            return super()._repr_mimebundle_(*args, **{"config": self._explorer_config, **more})

    return Figure


def _finish(out: Spec, nodes: Sequence[str | None] | None, hover: Sequence[str] | None, axes: tuple[str, str]) -> Spec:
    if nodes is not None:
        out["customdata"] = list(nodes)
    out |= (
        {"hovertext": list(hover), "hovertemplate": "%{hovertext}<extra></extra>"} if hover is not None else {"hoverinfo": "skip"}
    )
    if axes != ("x", "y"):
        out |= {"xaxis": axes[0], "yaxis": axes[1]}
    return out
