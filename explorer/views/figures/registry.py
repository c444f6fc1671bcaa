"""The figures by name, and the one way to draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from ...errors import FigureError
from ...gpu.spec import Gpu
from ...ir.finding import Finding
from ...run.result import Run
from ...run.stamps import Stamps
from ...schedule import Schedule
from .asked import Asked, Look
from .palette import STATIC, THEMES
from .picture import Drawing, Picture
from .svg import render

Measured = tuple[tuple[tuple[Any, ...], float], ...]
"""Steps of schedules, and how long these took."""


@dataclass(frozen=True)
class Entry:
    """A figure: its name, its title, what it answers, and the module that makes it."""

    name: str
    title: str
    help: str
    module: str


FIGURES: dict[str, Entry] = {
    e.name: e
    for e in (
        Entry(
            "domain",
            "Domain",
            "which block and thread runs each instance of a statement, in which order, and what depends on what",
            "domain_draw",
        ),
        Entry("memory", "Memory", "what one access of a warp asks of memory, and which elements a block touches", "memory_draw"),
        Entry("fragments", "Fragments", "which lane and register, or which bank, holds each element of a tensor operand",
              "fragments_draw"),
        Entry("pipeline", "Pipeline", "copies and computation over time, and how long each buffer holds a tile", "pipeline_draw"),
        Entry("timeline", "Timeline", "copies, waits, products and stores of one block on the clock, as the price has them",
              "gantt_draw"),
        Entry("roles", "Roles", "what a producer and consumers do when, over several tiles: predicted, and measured by stamps",
              "roles_draw"),
        Entry("ablation", "Ablation", "the price of a pipeline with each number of stages, with and without its second level",
              "ablation_draw"),
        Entry("legality", "Legality", "for which stages, release distances and work in flight a pipeline is right, and why not",
              "legality"),
        Entry("roofline", "Roofline", "arithmetic intensity against the limits of a GPU, with the measured point", "roofline"),
        Entry("price", "Price", "each term of a kernel's price, its formula, and which terms count", "price"),
        Entry("occupancy", "Occupancy", "how many blocks fit on a multiprocessor, and what limits them", "occupancy"),
        Entry("partials", "Partials", "how many partial results a reduction has on its way, how they are joined, and idle lanes",
              "partials_draw"),
        Entry(
            "dependences",
            "Dependences",
            "which statement must come after which, at what distance, and how the schedule sees to it",
            "dependences",
        ),
    )
}
"""In the order of their tabs."""


def picture(schedule: Schedule, name: str, options: Mapping[str, Any] | None = None, *, node: str | None = None,
            finding: Finding | None = None, run: Run | None = None, target: Gpu | None = None, theme: str = "light",
            strict: bool = False, measured: Measured = (), stamps: Stamps | None = None) -> Picture:  # fmt: skip
    """One figure of a schedule.

    Parameters
    ----------
    schedule : Schedule
        For a refused step, the schedule with the plan that was refused.
    name : str
        A name in :data:`FIGURES`.
    options : mapping
        Values of the figure's controls; ``node`` and ``theme`` may stand here too.
    node : str, optional
        The loop, statement or buffer to open on.
    finding : Finding, optional
        A refusal to show in red.
    run : Run, optional
        Measurements to show.
    target : Gpu, optional
        The GPU that the reader plans for: what a figure is drawn for unless its own option says otherwise.
    theme : {"light", "dark"}
    strict : bool
        Refuse unknown options and values instead of taking the defaults.
    measured : tuple of (tuple of Transform, float)
        Other schedules of the program by their steps, with microseconds on `target`.
    stamps : Stamps, optional
        What an instrumented run of the schedule found.

    Raises
    ------
    FigureError
        If no figure has the name; with `strict`, if an option does not fit.
    """
    entry = FIGURES.get(name)
    if entry is None:
        near = get_close_matches(name, list(FIGURES), 1)
        raise FigureError(f"no figure is called {name!r}", hint=f"did you mean {near[0]!r}?" if near else ", ".join(FIGURES))
    given = {k: v for k, v in (options or {}).items() if v is not None}
    look = Look(given.pop("node", node), finding, run, target, measured, stamps)
    colours = THEMES.get(str(given.pop("theme", theme)), THEMES["light"])
    asked = Asked(given, strict)
    drawing: Drawing | str = import_module(f"{__package__}.{entry.module}").make(schedule, asked, look)
    if strict and (odd := asked.unread()):
        raise FigureError(
            f"the {name} figure has no option {odd[0]!r} here", hint=", ".join(sorted(asked.known)) or "it has none here"
        )
    controls = tuple(c.data() for c in asked.controls)
    if isinstance(drawing, str):
        return Picture(name, entry.title, {}, drawing, controls)
    rows = tuple(tuple(row) for row in drawing.table)
    if drawing.spec is None:
        return Picture(name, drawing.title, {}, drawing.note, controls, tuple(drawing.header), rows)
    return Picture(name, drawing.title, drawing.spec(colours), drawing.note, controls, tuple(drawing.header), rows,
                   render(drawing.spec(STATIC), drawing.title))


def figure_data(schedule: Schedule, name: str, options: Mapping[str, Any] | None = None, *, node: str | None = None,
                finding: Finding | None = None, run: Run | None = None, target: Gpu | None = None,
                theme: str = "light", measured: Measured = (), stamps: Stamps | None = None) -> dict[str, Any]:  # fmt: skip
    """:func:`picture` as the plain data that the front end is sent."""
    return picture(schedule, name, options, node=node, finding=finding, run=run, target=target, theme=theme,
                   measured=measured, stamps=stamps).data
