"""The operations that programs call, made of the rows of :mod:`explorer.ir.operations`: ``ex.exp(x)``, ``np.exp(x)``."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from ..errors import ProgramError, spoken
from ..ir.operation import Operation
from ..ir.operations import OPERATIONS
from .types import outside


def _word(row: Operation) -> Callable[..., Any]:
    """The function of an operation's name: for the reader alone, since a program is parsed and never run."""

    def word(*values: Any, **named: Any) -> Any:
        taken.bind(*values, **named)
        return outside(word=row.name)

    names = [("values", Parameter.VAR_POSITIONAL)] if row.many else [(n, Parameter.POSITIONAL_OR_KEYWORD)
                                                                     for n in row.arguments.split()]
    word.__name__ = word.__qualname__ = row.name
    word.__module__, word.__doc__ = __name__, row.help
    word.__annotations__ = {name: Any for name, _ in names} | {"return": Any}
    taken = Signature([Parameter(name, kind, annotation=Any) for name, kind in names], return_annotation=Any)
    word.__signature__ = taken  # type: ignore[attr-defined]
    return spoken(ProgramError)(word)


WORDS: dict[str, Callable[..., Any]] = {row.name: _word(row) for row in OPERATIONS.values() if row.help}
"""By name."""

OPERATION_OF: dict[Any, str] = {word: name for name, word in WORDS.items()} | {
    function: row.name for row in OPERATIONS.values() for function in row.same}
"""The operation each callable stands for, by the callable itself, so that any import spelling works; those of `math` and NumPy
mean the same."""


def __getattr__(name: str) -> Callable[..., Any]:
    """A word by its name, so that what holds one can be pickled."""
    if name in WORDS:
        return WORDS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
