"""Gives every public value its notebook picture: the one place where the lower layers' classes meet the views.

The classes get a ``_repr_html_`` that imports its view when a notebook first asks, so that importing the package stays
quick and the layers below know nothing of pictures.  A picture that cannot be drawn must not hide the value: then the
notebook falls back to the text.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..errors import ExplorerError
from ..frontend.definition import Definition
from ..ir.finding import Finding, Verdict
from ..ir.program import Program
from ..kernel.stages import Stage
from ..poly.dependence import ProgramFacts
from ..run.facts import Facts
from ..run.kernel import Compiled, Kernel
from ..run.result import Comparison, Evidence, Run
from ..run.search.result import SearchResult
from ..schedule import Schedule
from ..steps.moves import Move, Moves

LIMIT = 30_000
"""Characters of one picture; larger ones are replaced by the text."""

VIEWS: dict[type, tuple[str, str]] = {
    Definition: ("schedules", "definition_html"),
    Program: ("schedules", "program_html"),
    Schedule: ("schedules", "schedule_html"),
    Moves: ("schedules", "moves_html"),
    Move: ("schedules", "move_html"),
    ProgramFacts: ("schedules", "dependences_html"),
    Finding: ("findings", "finding_html"),
    Verdict: ("findings", "verdict_html"),
    ExplorerError: ("findings", "error_html"),
    Kernel: ("kernels", "kernel_html"),
    Stage: ("kernels", "stage_html"),
    Compiled: ("kernels", "compiled_html"),
    Facts: ("kernels", "facts_html"),
    Run: ("runs", "run_html"),
    Evidence: ("runs", "evidence_html"),
    Comparison: ("runs", "comparison_html"),
    SearchResult: ("search", "search_html"),
}
"""Class to (module of this package, function from the value to HTML)."""


def html(value: Any) -> str | None:
    """The picture of a value, or None where there is none or it would be too large."""
    kind = next((k for k in type(value).__mro__ if k in VIEWS), None)
    if kind is None:
        return None
    module, function = VIEWS[kind]
    draw: Callable[[Any], str] = getattr(import_module(f"{__package__}.{module}"), function)
    picture = draw(value)
    return picture if len(picture) <= LIMIT else None


def attach() -> None:
    """Give the classes their pictures; and their text to the terminal, where the generated one is unreadable."""
    for kind in VIEWS:
        kind._repr_html_ = html  # type: ignore[attr-defined]
    Program.__str__ = _program_text  # type: ignore[method-assign]
    for kind in (Program, Definition, ProgramFacts, Finding, Move, Verdict, Evidence):
        kind.__repr__ = kind.__str__  # type: ignore[method-assign]


def _program_text(program: Program) -> str:
    sizes = ", ".join(f"{name}={value}" for name, value in program.sizes)
    return f"{program.name}({sizes})\n{program.source.rstrip()}"
