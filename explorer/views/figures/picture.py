"""A figure of a schedule as a value: interactive where JavaScript runs, a static picture and a table where it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ..style import page, table
from .palette import Theme
from .spec import figure

PLOTLY_MIME = "application/vnd.plotly.v1+json"
ROWS = 40
"""Rows of the table in the text form."""


@dataclass(frozen=True)
class Drawing:
    """What a figure's module makes of a schedule: the parts of a picture, the spec still to be given its colours."""

    title: str
    note: str
    spec: Callable[[Theme], dict[str, Any]] | None
    header: list[str]
    table: list[list[Any]]


@dataclass(frozen=True)
class Picture:
    """One figure.

    Attributes
    ----------
    name, title : str
    spec : dict
        A Plotly figure as plain data (traces, layout, frames); empty where there is nothing to draw.
    note : str
        How to read it, and what was sampled or left out; the whole answer where there is nothing to draw.
    options : tuple of dict
        The controls: name, label, kind, choices, value.
    header : tuple of str
    table : tuple of tuple
        The content as text: a node (or None) and as many cells as the header has names.
    svg : str
        A static picture of the same data, or empty.
    """

    name: str
    title: str
    spec: dict[str, Any] = field(repr=False)
    note: str = ""
    options: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    header: tuple[str, ...] = field(default=(), repr=False)
    table: tuple[tuple[Any, ...], ...] = field(default=(), repr=False)
    svg: str = field(default="", repr=False)

    @property
    def data(self) -> dict[str, Any]:
        """Everything as plain data, for a front end."""
        return {"name": self.name, "title": self.title, "spec": self.spec, "note": self.note, "options": list(self.options),
                "header": list(self.header), "table": [list(row) for row in self.table], "svg": self.svg}

    @property
    def figure(self) -> Any:
        """A ``plotly.graph_objects.Figure`` to change or to save.

        Raises
        ------
        FigureError
            If Plotly is not installed.
        """
        return figure(self.spec)

    def __str__(self) -> str:
        lines = [self.title, *([f"  {self.note}"] if self.note else [])]
        shown = [tuple(map(str, row[1:])) for row in self.table[:ROWS]]
        wide = [max(len(r[i]) for r in (self.header, *shown)) for i in range(len(self.header))]
        for row in (self.header, *shown) if shown else ():
            lines.append("  " + "  ".join(cell.ljust(n) for cell, n in zip(row, wide, strict=True)).rstrip())
        more = len(self.table) - ROWS
        return "\n".join([*lines, *([f"  … {more} more rows"] if more > 0 else [])])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The picture and, where a viewer shows no SVG inside HTML (GitHub), the same as a table."""
        shown = self.table[:ROWS] if self.svg else ()
        more = f"<p>… {len(self.table) - ROWS} more rows</p>" if len(self.table) > ROWS else ""
        rows = [tuple(escape(str(cell)) for cell in row[1:]) for row in shown]
        as_table = f'<details><summary>as a table</summary><div class="body">{table(self.header, rows)}{more}</div></details>'
        return page(self.title, "", self.svg, escape(self.note), as_table if rows else "")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": str(self), "text/html": self._repr_html_()}
        if self.spec:
            bundle[PLOTLY_MIME] = self.spec
        return bundle
