"""The protocol's types for plans of many steps: a strategy's steps, a measured search of its choices, and the statement graph
with a scheme for every edge.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from .protocol import Problem


class GpuChoice(TypedDict):
    """A GPU of the catalogue; `words` are its numbers in short, `here` says that the machine has it."""

    name: str
    here: bool
    words: str


class TargetPane(TypedDict):
    """The GPU that plans, estimates and the CUDA text are made for, by name, and those there are."""

    gpu: str
    gpus: list[GpuChoice]


class StrategyKind(TypedDict):
    """A strategy that can be asked for."""

    name: str
    title: str
    help: str


class StrategyStep(TypedDict):
    """One step: `words` is what the move does, `effects` what it changes here; no estimate while a reduction stands open."""

    call: str
    name: str
    words: str
    effects: list[str]
    estimate_us: float | None
    open: int


class StrategyPane(TypedDict):
    """A strategy's steps from the program as written; `at` is how many of them the schedule has, None where it has others.

    `start_us`, the steps' estimates and `total_us`, which is that of the last step, with its `terms`, are prices by one rule,
    stated in `rule`, for the GPU of this name.
    """

    kinds: list[StrategyKind]
    status: Literal["idle", "running", "done", "failed", "cancelled"]
    doing: str
    fraction: float | None
    name: str
    gpu: str
    at: int | None
    summary: str
    start_us: float | None
    total_us: float | None
    terms: list[tuple[str, float]]
    steps: list[StrategyStep]
    rule: str
    problem: Problem | None


class SearchTrial(TypedDict):
    """A variant: `number` in the order measured, what `label` says is different, its median where it counts, its price.

    ``here`` says that the schedule shown has its steps; `html` is the fragment of its row.
    """

    number: int
    label: str
    best: bool
    here: bool
    time_us: float | None
    estimate_us: float | None
    html: str


class SearchPane(TypedDict):
    """A search on the run pane's device; of `usual` variants unless told otherwise, at most `most`.

    ``total`` is how many there will be at most, once that is known; `html` is the fragment of what it came to, empty before its
    end; `remembered` says that all is from an earlier search.  Where times are of the CPU, `gpu` is the one that the estimates
    are of; it is empty otherwise.
    """

    status: Literal["idle", "running", "done", "failed", "cancelled"]
    doing: str
    fraction: float | None
    usual: int
    most: int
    total: int
    gpu: str
    remembered: bool
    html: str
    trials: list[SearchTrial]
    problem: Problem | None


class OptionData(TypedDict):
    """One scheme on one edge, the other edges as is then best: `words` has its costs and savings, or why it is not legal."""

    scheme: str
    applies: bool
    problem: Problem | None
    total_us: float | None
    saved_bytes: int
    saved_launches: int
    registers: int
    shared_bytes: int
    occupancy: float
    recomputed: int
    terms: list[tuple[str, float]]
    words: str


class EdgeData(TypedDict):
    """A value (`array`) read by what makes another (`into`); `options` is empty while its schemes are being tried."""

    id: str
    array: str
    into: str
    producer: str
    consumer: str
    kind: str
    lines: list[int]
    options: list[OptionData]


class StitchPrice(TypedDict):
    """What a choice of schemes comes to: `chosen` has every edge, those that were not chosen by the model."""

    chosen: dict[str, str]
    groups: list[list[str]]
    terms: list[tuple[str, float]]
    total_us: float
    launches: int
    steps: int


class StitchPane(TypedDict):
    """The statement graph; `schemes` are (name, what it means), `model` is what the model chooses for all edges, on that GPU;
    `shown_us` is the price of the schedule that is shown, None before it has a step.
    """

    program: str
    gpu: str
    status: Literal["idle", "running", "done", "failed", "cancelled"]
    doing: str
    fraction: float | None
    schemes: list[tuple[str, str]]
    edges: list[EdgeData]
    model: StitchPrice | None
    shown_us: float | None
    problem: Problem | None
