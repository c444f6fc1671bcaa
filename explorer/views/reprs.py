"""Gives every public value its notebook picture: the one place where the lower layers' classes meet the views.

A function of this folder that is marked with :func:`picture_of` draws a class.  The marks are read from the text of the
files, and a file is imported when a notebook first asks for one of its pictures: so importing the package stays quick, and the
layers below know nothing of pictures.  A picture that cannot be drawn must not hide the value: then the notebook falls back to
the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from ..frontend.definition import Definition
from ..ir.finding import Finding, Verdict
from ..ir.program import Program
from ..poly.dependence import ProgramFacts
from ..run.result import Evidence
from ..steps.moves import Move

F = TypeVar("F", bound=Callable[..., str])

LIMIT = 30_000
"""Characters of one picture; larger ones are replaced by the text."""

_MARK = re.compile(r'^@picture_of\("([\w.]+)\.(\w+)"\)\ndef (\w+)\(', re.MULTILINE)


def picture_of(name: str) -> Callable[[F], F]:
    """Mark a function from a value to HTML as the picture of a class, named from this package on: ``"run.result.Run"``."""
    return lambda function: function


@cache
def views() -> dict[type, tuple[str, str]]:
    """Every class that has a picture, with the module of this folder and the function that draws it."""
    return {getattr(import_module(f"..{module}", __package__), name): (path.stem, function)
            for path in sorted(Path(__file__).parent.glob("*.py"))
            for module, name, function in _MARK.findall(path.read_text(encoding="utf-8"))}


def html(value: Any) -> str | None:
    """The picture of a value, or None where there is none or it would be too large."""
    kind = next((k for k in type(value).__mro__ if k in views()), None)
    if kind is None:
        return None
    module, function = views()[kind]
    draw: Callable[[Any], str] = getattr(import_module(f"{__package__}.{module}"), function)
    picture = draw(value)
    return picture if len(picture) <= LIMIT else None


def attach() -> None:
    """Give the classes their pictures; and their text to the terminal, where the generated one is unreadable."""
    for kind in views():
        kind._repr_html_ = html  # type: ignore[attr-defined]
    Program.__str__ = _program_text  # type: ignore[method-assign]
    for kind in (Program, Definition, ProgramFacts, Finding, Move, Verdict, Evidence):
        kind.__repr__ = kind.__str__  # type: ignore[method-assign]


def _program_text(program: Program) -> str:
    sizes = ", ".join(f"{name}={value}" for name, value in program.sizes)
    return f"{program.name}({sizes})\n{program.source.rstrip()}"
