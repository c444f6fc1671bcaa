"""The protocol's messages by name: the data of each pane, the fields of each request, the data of each answer.

The table in :mod:`~explorer.app.protocol` says what each of them is for.  ``static/protocol.d.ts`` says the same to the type
checker of the front end; :mod:`~explorer.app.typescript` writes it.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from .protocol import AfterPass, Cuda, Head, History, ResumePane, Row, ScriptPane, Selection
from .protocol_moves import Counterexample, MovesPane, Preview
from .protocol_plans import SearchPane, StitchPane, StitchPrice, StrategyPane, TargetPane
from .protocol_results import Compared, FigureData, MeasurePane, RunPane, SameFigure


class Panes(TypedDict):
    """The data of each pane."""

    head: Head
    loops: list[Row]
    tree: list[Row]
    moves: MovesPane
    selection: Selection
    cuda: Cuda
    history: History
    run: RunPane
    script: ScriptPane
    strategy: StrategyPane
    search: SearchPane
    measure: MeasurePane
    stitching: StitchPane
    target: TargetPane
    resume: ResumePane


class Ptx(TypedDict):
    """The PTX for an architecture, or why it is not there."""

    arch: str
    text: NotRequired[str]
    why: NotRequired[str]


class Exported(TypedDict):
    """A file to save, or a text for the clipboard."""

    filename: str
    text: str


class Nothing(TypedDict):
    """No fields."""


class Answers(TypedDict):
    """The data of the answer to each question."""

    preview: Preview
    check: Preview
    compare: Compared
    stitch_price: StitchPrice
    counterexample: Counterexample
    figure: FigureData | SameFigure
    ir: AfterPass
    ptx: Ptx
    export: Exported
    plotly: Nothing


class OfNode(TypedDict):
    """A node by its id, or None for none."""

    node: str | None


class OfCall(TypedDict):
    """One step, as Python."""

    call: str


class OfForm(TypedDict):
    """One step, as its form has it."""

    name: str
    arguments: dict[str, Any]


class OfCalls(TypedDict):
    """Several steps, and what they are called as one action."""

    calls: list[str]
    title: str


class OfState(TypedDict):
    """A state of the history."""

    state: str


class OfTitle(TypedDict):
    """A state of the history and its new title."""

    state: str
    title: str


class OfPair(TypedDict):
    """Two states of the history."""

    a: str
    b: str


class OfText(TypedDict):
    """The script as typed."""

    text: str


class OfSizes(TypedDict):
    """The program's sizes."""

    sizes: dict[str, int]


class OfDevice(TypedDict):
    """A device by its name."""

    device: str


class OfRun(TypedDict):
    """Whether to measure, too."""

    time: bool


class OfGpu(TypedDict):
    """A GPU of the catalogue."""

    gpu: str


class OfName(TypedDict):
    """A strategy by its name."""

    name: str


class OfStep(TypedDict):
    """Steps from the start; with `whole`, as one action."""

    to: int
    whole: NotRequired[bool]


class OfSearch(TypedDict):
    """How many variants (what was typed, where that is no number); `again` measures those that are remembered, too."""

    trials: int | str
    again: NotRequired[bool]


class OfTrial(TypedDict):
    """A variant by its number."""

    trial: int


class OfChoices(TypedDict):
    """The scheme of each edge that was chosen."""

    choices: dict[str, str]


class OfFigure(TypedDict):
    """A figure with the values of its options; of what `call` would make; `have` is the sign of the one that is shown."""

    name: str
    options: dict[str, Any]
    call: NotRequired[str]
    have: NotRequired[str]


class OfPass(TypedDict):
    """A pass of the code generator."""

    after: str


class OfArch(TypedDict):
    """An architecture, such as ``sm_90``."""

    arch: str


class OfExport(TypedDict):
    """What to export."""

    what: Literal["cu", "json", "script", "share"]


class Requests(TypedDict):
    """The fields of each request."""

    ready: Nothing
    select: OfNode
    preview: OfCall
    check: OfForm
    apply: OfCall | OfForm
    take: OfCalls
    undo: Nothing
    redo: Nothing
    goto: OfState
    rename: OfTitle
    compare: OfPair
    script: OfText
    sizes: OfSizes
    device: OfDevice
    measure: OfDevice
    run: OfRun
    cancel: Nothing
    target: OfGpu
    strategy: OfName
    strategy_stop: Nothing
    strategy_step: OfStep
    search: OfSearch
    search_stop: Nothing
    search_apply: OfTrial
    stitching: Nothing
    stitch_stop: Nothing
    stitch_price: OfChoices
    stitch_apply: OfChoices
    counterexample: OfCall
    figure: OfFigure
    ir: OfPass
    ptx: OfArch
    export: OfExport
    plotly: Nothing
