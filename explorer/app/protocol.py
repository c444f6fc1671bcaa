"""What the explorer's front end and its kernel say to each other: the one description both sides follow.

The front end holds no truth.  It shows panes, each of which is plain data computed from the session, and sends requests; the
kernel answers with the panes that changed.  Everything travels as custom messages of the widget, which a notebook does not
store, so that a saved cell holds the static picture and the script alone.

Request (front end to kernel)
    ``{"kind": <name of a request below>, "serial": int, ...fields}``; serial counts up, the kernel echoes it in every answer
    that the request causes, and the front end drops an answer to a question (preview, check, figure, ir, ptx, compare) that it
    has asked anew since.

Answer (kernel to front end)
    ``{"kind": "panes", "serial": int, "panes": {name: data}}`` for whatever changed, or
    ``{"kind": "answer", "serial": int, "to": <request kind>, "data": ...}``, or
    ``{"kind": "problem", "serial": int, "to": <request kind>, "problem": Problem}`` when a request failed: nothing changed; and
    ``{"kind": "still", "data": {mime: text}}``, unasked: the static picture, for an output that only the front end can renew.

=================  ===================================================  ====================================================
request            fields                                               answer
=================  ===================================================  ====================================================
``ready``          —                                                    every pane
``select``         node: str or None                                    panes ``selection`` and ``moves``
``preview``        call: str (one step, as Python)                      answer: Preview
``check``          name: str, arguments: {field: value}                 answer: Preview (also says which field is wrong)
``apply``          call: str, or name and arguments                     panes; a refusal is a ``problem`` with its finding
``take``           calls: [str], title: str                             panes: several steps as one action
``undo, redo``     —                                                    panes
``goto``           state: str                                           panes
``rename``         state: str, title: str                               pane ``history``
``compare``        a: str, b: str (states)                              answer: Compared
``script``         text: str                                            panes; an error is in pane ``script``, at its line
``sizes``          sizes: {name: int}                                   panes
``device``         device: str                                          pane ``run``
``run``            time: bool                                           pane ``run``, again and again while it runs
``cancel``         —                                                    pane ``run``
``measure``        device: "cuda" | "cpu"                               pane ``measure``, again when it has ended
``target``         gpu: str (a name in the catalogue)                   panes: what is planned is made again for that GPU
``strategy``       name: str                                            pane ``strategy``, again and again while it is made
``strategy_stop``  —                                                    pane ``strategy``
``strategy_step``  to: int (steps from the start), whole: bool          panes
``search``         trials: int, again: bool (optional)                  pane ``search``, again and again while it measures
``search_stop``    —                                                    pane ``search``
``search_apply``   trial: int (its number)                              pane ``search``, then panes
``stitching``      —                                                    pane ``stitching``, again and again while edges are tried
``stitch_stop``    —                                                    pane ``stitching``
``stitch_price``   choices: {edge: scheme}                              answer: StitchPrice
``stitch_apply``   choices: {edge: scheme}                              pane ``strategy`` while the steps are made, then panes
``counterexample`` call: str                                            answer: Counterexample
``figure``         name, options: {name: value}, call, have (optional)  answer: FigureData, SameFigure
``ir``             after: str (a pass of the code generator)            answer: AfterPass
``ptx``            arch: str                                            answer: {"text": str} (or "why" it is not there)
``export``         what: "cu" | "json" | "script" | "share"             answer: {"filename": str, "text": str}
``plotly``         —                                                    answer with one binary buffer: the plotly.js source
=================  ===================================================  ====================================================

With `call`, a figure shows what that step would make, with the pair of instances that refuses it; `have` is the sign of the
figure that the front end has.

Here stand the types of what is always there: the program, its loops, its text, its history.  Those of moves and of what they
would do stand in :mod:`~explorer.app.protocol_moves`, those of runs, figures and comparisons in
:mod:`~explorer.app.protocol_results`, those of plans of many steps (``target``, ``strategy``, ``search``, ``stitching``,
``stitch_price``) in :mod:`~explorer.app.protocol_plans`.

Node ids are those of the schedule (``i``, ``k.i``, ``S0``, ``a_s``): the same string selects a loop row, CUDA lines, points
of the domain, bars of the pipeline and rows of the traffic table (brushing).
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from .protocol_walks import Walk

PANES = ("head", "loops", "tree", "moves", "selection", "cuda", "history", "run", "script", "strategy", "search", "measure",
         "stitching", "target", "resume")

class Row(TypedDict):
    """One line of the loops or of the schedule tree; a selectable item of an ARIA tree.

    ``kind`` is kernel, loop, statement, sync, buffer, or (schedule tree) domain, sequence, filter, band, mark.  `label` is what a
    screen reader says; `html` is the fragment of the row.
    """

    key: str
    node: str | None
    kind: str
    depth: int
    label: str
    html: str
    walk: NotRequired[Walk]


class Problem(TypedDict):
    """An error or a refusal in words: what, where, why, and what to try; `html` is its box."""

    what: str
    where: str
    why: str
    hints: list[Hint]
    finding: Witness | None
    html: str
    line: NotRequired[int]


class Hint(TypedDict):
    """Something to try; `call` is the step that a button applies, or None where it is only words."""

    text: str
    call: str | None


class Witness(TypedDict):
    """The smallest pair of instances against a move; `source` runs first in the program."""

    question: str
    kind: str
    array: str
    element: list[int]
    source: str
    sink: str
    source_order: str
    sink_order: str
    nodes: list[str]
    lines: list[int]


class Selection(TypedDict):
    """The selected node in words: `title` is its text, `facts` are (name, text), `related` the nodes around and below it."""

    node: str | None
    kind: str
    title: str
    facts: list[tuple[str, str]]
    related: list[str]


class Badge(TypedDict):
    """One tick of the evidence badge; `state` is earned, open or refuted."""

    name: str
    state: Literal["earned", "open", "refuted"]
    detail: str


class Head(TypedDict):
    """The top line; `undo` and `redo` name the action, None where there is none."""

    program: str
    signature: str
    badges: list[Badge]
    undo: str | None
    redo: str | None
    obligations: list[Problem]
    busy: str
    large: str


class Cuda(TypedDict):
    """The text for the target GPU, each line a fragment.  ``nodes`` maps a node to its 1-based lines, ``passes`` are
    in their order.

    With an open obligation there is no text but `problem`; a launch that exceeds that GPU's limits has both.
    """

    lines: list[str]
    nodes: dict[str, list[int]]
    arch: str
    problem: Problem | None
    truncated: str
    passes: list[Pass]


class Pass(TypedDict):
    """A pass of the code generator, and what it does in a sentence."""

    name: str
    what: str


class AfterPass(TypedDict):
    """The kernels as one pass leaves them, from the first kernel on, each line a fragment; `changed` are those
    that it wrote or rewrote.
    """

    name: str
    lines: list[str]
    nodes: dict[str, list[int]]
    changed: list[int]
    change: str
    truncated: str


class State(TypedDict):
    """One schedule of the history tree, in order of birth; `call` is the step from its parent.

    A time on the CPU has the priced time on `gpu` beside it.
    """

    id: str
    parent: str | None
    title: str
    call: str
    legal: bool
    obligations: int
    correct: bool | None
    time_us: float | None
    share: float | None
    device: str
    gpu: str
    priced_us: float | None


class History(TypedDict):
    """``path`` is the line from the root to the current state and on to the redo's end."""

    states: list[State]
    current: str
    path: list[str]


class ScriptError(TypedDict):
    """At a 1-based line of the text the user sent."""

    line: int
    problem: Problem


class ScriptPane(TypedDict):
    """``steps`` gives for each state of the path its 1-based line.  `text` is what was typed while there is an error."""

    text: str
    steps: list[tuple[str, int]]
    error: ScriptError | None


class ResumePane(TypedDict):
    """What the front end keeps for the time when the kernel has gone.

    `text` is Python that needs nothing but this package (empty where the program's text is not known); `widget` is the id by
    which the notebook knows the output; `target` is the GPU that was chosen; `actions` are steps that were taken as one, as JSON.
    """

    widget: str
    text: str
    target: str
    actions: str
    steps: int
    program: str
