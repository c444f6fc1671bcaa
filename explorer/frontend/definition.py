"""A program with symbolic sizes: what the decorator leaves in place of the function."""

from __future__ import annotations

import ast
import html
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..errors import ProgramError
from ..ir.program import Program
from .parse import parse
from .scope import Scope, bound_names, capture
from .signature import Parameter, signature
from .source import Source, source_of
from .types import SizeValue

D = TypeVar("D", bound="Definition")

_TRIAL = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061)
"""Primes that stand in for sizes while only the form is checked; nothing refused then depends on them."""


_LARGEST_SIZE, _LARGEST_ARRAY = 2**40, 2**62
"""A size; bytes of an array.  Index arithmetic and the analysis' intervals stay exact within these."""


@dataclass(frozen=True, eq=False)
class Definition:
    """A decorated function: checked, and ready to become a program at any sizes.

    Attributes
    ----------
    name : str
    sizes : tuple of str
        In the order of the signature, then of the body.
    parameters : tuple of Parameter
    text : Source
        The function's text with its place.
    """

    name: str
    sizes: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    text: Source = field(repr=False)
    captured: Mapping[str, Any] = field(repr=False)
    _programs: dict[tuple[int, ...], Program] = field(default_factory=dict, repr=False)

    @property
    def source(self) -> str:
        """The user's text, from the decorator on."""
        return self.text.text

    @property
    def doc(self) -> str:
        """The function's docstring, or nothing."""
        return ast.get_docstring(self.text.tree) or ""

    def at(self, **sizes: int) -> Program:
        """The program at concrete sizes.

        Parameters
        ----------
        **sizes : int
            One integer, at least 0, for each name in :attr:`sizes`.

        Returns
        -------
        Program
            The same value for the same sizes.

        Raises
        ------
        ProgramError
            For a missing, unknown, negative or fractional size, or if the program is not accepted at these sizes.
        """
        values = self._checked(sizes)
        key = tuple(values.values())
        if key not in self._programs:
            program = parse(self.text, self.parameters, self.captured, values)
            if large := next((a for a in program.arrays if a.nbytes > _LARGEST_ARRAY), None):
                shape = " × ".join(map(str, large.shape))
                raise ProgramError(f"the array {large.name} is too large: {shape} × {large.dtype}",
                                   why="its addresses do not fit 64 bits", hint="smaller sizes")
            self._programs[key] = program
        return self._programs[key]

    def into(self, cls: type[D]) -> D:
        """The same definition as a subclass with the same fields."""
        return cls(self.name, self.sizes, self.parameters, self.text, self.captured)

    def _checked(self, sizes: Mapping[str, Any]) -> dict[str, int]:
        example = ", ".join(f"{name}={64 >> i if i < 5 else 4}" for i, name in enumerate(self.sizes))
        wanted = f"{self.name} has the sizes {', '.join(self.sizes)}" if self.sizes else f"{self.name} has no sizes"
        for wrong, what in (
            (sorted(sizes.keys() - set(self.sizes)), "unknown"),
            ([n for n in self.sizes if n not in sizes], "missing"),
        ):
            if wrong:
                raise ProgramError(
                    f"{what} size{'s' * (len(wrong) > 1)} {', '.join(wrong)}", where=wanted, hint=f".at({example})"
                )
        out: dict[str, int] = {}
        for name in self.sizes:
            value = sizes[name]
            if isinstance(value, bool) or not hasattr(type(value), "__index__") or isinstance(value, SizeValue):
                raise ProgramError(f"the size {name} must be an integer, not {value!r}", where=wanted, hint=f".at({example})")
            out[name] = operator.index(value)
            if out[name] < 0:
                raise ProgramError(
                    f"the size {name} is {out[name]}", where=wanted, why="a size is at least 0", hint=f".at({example})"
                )
            if out[name] > _LARGEST_SIZE:
                raise ProgramError(f"the size {name} is {out[name]:.3g}", where=wanted,
                                   why="a size is at most 2**40: no memory holds more", hint=f".at({example})")
        return out

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refused: a program is parsed, never executed."""
        raise ProgramError(
            f"{self.name} is a program, not a function",
            why="it is parsed, never executed",
            hint=f"{self.name}.at({', '.join(f'{n}=…' for n in self.sizes)})",
        )

    def __str__(self) -> str:
        return self.source

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.source)}</pre>"


def define(function: Callable[..., Any], cls: type[D] = Definition) -> D:
    """Parse a function into a definition: the work of the decorator.

    Parameters
    ----------
    function : function
        A plain ``def`` whose parameters are annotated with array types.
    cls : type, optional
        :class:`Definition` or a subclass with the same fields.

    Raises
    ------
    ProgramError
        If the source is not available, or at the line and column of the first construct that is not accepted.
    """
    source = source_of(function)
    captured = capture(function, source.tree, sys._getframe(1))
    parameters = signature(function, source, captured)
    found: dict[str, None] = {}
    for parameter in parameters:
        for part in parameter.shape:
            found |= dict.fromkeys(part.names() if isinstance(part, SizeValue) else ())
    scope = Scope(source, captured, bound_names(source.tree), {}, trial=True)
    used = [n for n in ast.walk(source.tree) if isinstance(n, (ast.Name, ast.Attribute))]
    for node in sorted(used, key=lambda n: (n.lineno, n.col_offset)):
        value = scope.outside(node)
        found |= dict.fromkeys(value.names() if isinstance(value, SizeValue) else ())
    names = tuple(found)
    trial = {name: _TRIAL[i % len(_TRIAL)] + i // len(_TRIAL) for i, name in enumerate(names)}
    parse(source, parameters, captured, trial, trial=True)
    return cls(source.tree.name, names, parameters, source, captured)


def program(function: Callable[..., Any]) -> Definition:
    """Decorator: turn a Python loop nest into a :class:`Definition`.

    The function is parsed, never executed.  See :func:`define`.
    """
    return define(function)
