"""The protocol's types for moves: what can be done at a node, what it would do, and an illegal order as it would run."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from .protocol import Problem


class Field(TypedDict):
    """One argument of a transformation, for its form; `value` stands in the form now."""

    name: str
    kind: Literal["loop", "loops", "leaf", "array", "arrays", "node", "kernel", "int", "ints", "choice", "bool", "name"]
    help: str
    required: bool
    value: Any
    choices: NotRequired[list[str]]
    min: NotRequired[int]
    max: NotRequired[int]


class MoveData(TypedDict):
    """One transformation at the selected node.

    ``call`` is the step as Python, ready to apply; None where the transformation cannot stand here at all.  A refused move
    has `problem`; several concrete calls of one transformation are several entries, the first of a name has its form, and each
    has the `values` of its own call for it.  A refused move that nothing at this node could ever make room for does not
    concern it.
    """

    key: str
    name: str
    title: str
    help: str
    applies: bool
    call: str | None
    form: list[Field]
    values: dict[str, Any]
    concerns: bool
    problem: Problem | None


class WayData(TypedDict):
    """One way to combine a reduction's updates, as it would be: `calls` are the steps it takes, `label` is the row in words.

    `errors` gives for each method of adding in one thread the bound of the error against the exact sum; empty where nothing is
    rounded.
    """

    how: str
    words: str
    calls: list[str]
    applies: bool
    problem: Problem | None
    deterministic: bool
    launches: int
    parts: int
    workspace: str
    initial: str
    atomics: int
    barriers: int
    errors: list[tuple[str, float]]
    label: str


class WaysData(TypedDict):
    """The choice for one reduction whose updates run at several places; `unit` says what the errors are relative to."""

    target: str
    array: str
    over: Literal["blocks", "threads"]
    loops: list[str]
    unit: str
    ways: list[WayData]


class MovesPane(TypedDict):
    """``pending`` while the moves are still being judged (then another pane follows)."""

    node: str | None
    title: str
    pending: bool
    ways: list[WaysData]
    moves: list[MoveData]


class DiffLine(TypedDict):
    """``sign`` is " ", "+" or "-"."""

    sign: str
    text: str


class Preview(TypedDict):
    """What a step would do.  `errors` are the form's: field to sentence."""

    call: str
    applies: bool
    diff: list[DiffLine]
    problem: Problem | None
    errors: dict[str, str]
    effects: list[str]


class Counterexample(TypedDict):
    """The illegal order, executed: whether an output cell is wrong, and the fragment with what was computed and how."""

    call: str
    caught: bool
    html: str
