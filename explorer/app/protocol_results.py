"""The protocol's types for results: a run with its times, figures, and two states side by side."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .protocol import Problem
from .protocol_moves import DiffLine


class DeviceChoice(TypedDict):
    """A device of the run pane; `why` says what is missing and how to get it."""

    name: str
    label: str
    available: bool
    why: str


class RunPane(TypedDict):
    """``status`` idle, running, done, failed or cancelled; ``fraction`` None where it is unknown.

    `html` is the fragment of what the run has shown; `samples` are the times to draw, `priced_us` what the schedule is priced at
    on `gpu` where the times are of the CPU.
    """

    status: Literal["idle", "running", "done", "failed", "cancelled"]
    doing: str
    fraction: float | None
    device: str
    devices: list[DeviceChoice]
    sizes: dict[str, int]
    correct: bool | None
    verdict: str
    samples: dict[str, list[float]]
    gpu: str
    priced_us: float | None
    html: str
    problem: Problem | None


class MeasurePane(TypedDict):
    """What an instrumented copy of the schedule that is shown has noted: on which `device`, empty where nothing has.

    `number` is another one for each time that something has been noted.
    """

    status: Literal["idle", "running", "done", "failed", "cancelled"]
    doing: str
    device: str
    number: int
    problem: Problem | None


class FigureData(TypedDict):
    """A Plotly figure as data; points carry their node as ``customdata``.  `svg` is its static picture or empty.

    `options` are the controls above it: (name, label, choices, value); `note` says what was sampled or left out; `table`
    (header, rows; first cell of a row is its node or None) is the same content as text for readers who do not see the plot.
    """

    name: str
    title: str
    spec: dict[str, Any]
    note: str
    options: list[dict[str, Any]]
    header: list[str]
    table: list[list[Any]]
    svg: str
    sign: str


class SameFigure(TypedDict):
    """The figure is the one that the front end has, by its `sign`."""

    sign: str


class Compared(TypedDict):
    """Two states side by side."""

    a: str
    b: str
    loops: list[DiffLine]
    cuda: list[DiffLine]
    rows: list[list[str]]
