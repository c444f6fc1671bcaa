"""A program with symbolic sizes: what the decorator leaves in place of the function.

This is the one class for everybody: users' programs, workloads, tests.  ``schedule`` and ``load`` give a
:class:`explorer.schedule.Schedule`, which stands above the frontend and is imported when they are called.
"""

from __future__ import annotations

import ast
import html
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ProgramError, ReplayError, outspoken, shown, spoken
from ..ir.program import Program
from ..poly.initial import with_exact_roles
from ..poly.wellformed import require_wellformed
from .function import functions_of
from .parse import parse
from .scope import Scope, bound_names, capture
from .signature import Parameter, signature
from .size import SizeValue
from .source import Source, source_of

if TYPE_CHECKING:
    from ..schedule import Schedule
    from ..steps.replay import Reached

_TRIAL = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061)
"""Primes that stand in for sizes while only the form is checked; nothing refused then depends on them."""


_LARGEST_SIZE, _LARGEST_ARRAY = 2**40, 2**62
"""A size; bytes of an array.  Index arithmetic and the analysis' intervals stay exact within these."""


@outspoken(ProgramError, "@ex.program above `def name(x: ex.f32[N], …):`")
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
    def helpers(self) -> str:
        """The text of the functions that it calls."""
        return "\n\n\n".join(map(str, functions_of(self.captured)))

    @property
    def doc(self) -> str:
        """The function's docstring, or nothing."""
        return ast.get_docstring(self.text.tree) or ""

    @spoken(ProgramError, "sizes are given by name: program.at(N=64)")
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
        return self._program(sizes, ".at")

    def schedule(self, *values: Any, **sizes: int) -> Schedule:
        """The schedule that runs the program as written, at these sizes.

        Parameters
        ----------
        **sizes : int
            A value for every size of the program.

        Raises
        ------
        ProgramError
            If a size is missing, or at these sizes an access leaves its array or reads what nothing wrote.
        """
        if values:
            example = ", ".join(f"{name}={v}" for name, v in zip_longest(self.sizes, values[: len(self.sizes)], fillvalue="…"))
            raise ProgramError("sizes are given by name", where=f"{self.name} has the sizes {', '.join(self.sizes)}",
                               hint=f"{self.name}.schedule({example})")
        return self._scheduled(sizes, f"{self.name}.schedule")

    def _scheduled(self, sizes: dict[str, int], called: str) -> Schedule:
        from ..schedule import Schedule

        program = self._program(sizes, called)
        require_wellformed(program)
        return Schedule.of(program, self)

    @spoken(ReplayError, "program.load(text): a share string, JSON, or the path of a saved schedule")
    def load(self, text: str | Path, *, seconds: float | None = None, progress: Reached | None = None) -> Schedule:
        """A saved schedule of this program, from a share string, JSON text, or the path of a JSON file.

        Parameters
        ----------
        text : str or Path
        seconds : float
            How long its steps may take to judge; by default :data:`explorer.steps.replay.LOADING`.
        progress : callable, optional
            Called with the number of steps that are replayed and of all; by default a line on stderr says so, where it takes
            longer than a few seconds.

        Raises
        ------
        ReplayError
            If the text is damaged, or belongs to another program; or if its steps take longer: then ``error.schedule`` has those
            that were replayed, and ``error.left`` the others.
        TransformError, IllegalSchedule
            If a step does not apply; ``error.schedule`` has those before it.
        """
        from ..steps import saved
        from ..steps.replay import LOADING, progress_line

        name, source, sizes, steps = saved.read(text)
        if name != self.name:
            raise ReplayError(f"this schedule is of the program {shown(name)}, not {self.name!r}", hint=f"{name[:60]}.load(…)")
        if sizes.keys() != set(self.sizes):
            raise ReplayError(f"the saved sizes are not those of {name}",
                              why=f"found {', '.join(sizes) or 'none'}, expected {', '.join(self.sizes) or 'none'}"[:200])
        start = self.schedule(**sizes)
        if source != saved.source_hash(start.source):
            raise ReplayError(f"the text of {name} has changed since this schedule was saved",
                              hint="restore the program's text, or replay the steps one by one to see where they stop fitting")
        return start.replay(steps, seconds=LOADING if seconds is None else seconds,
                            progress=progress or progress_line(self.name))

    def _program(self, sizes: Mapping[str, Any], called: str) -> Program:
        """The program at sizes that were given to a method `called` so."""
        values = self._checked(sizes, called)
        key = tuple(values.values())
        if key not in self._programs:
            program = self._made(values)
            if large := next((a for a in program.arrays if a.nbytes > _LARGEST_ARRAY), None):
                shape = " × ".join(map(str, large.shape))
                raise ProgramError(f"the array {large.name} is too large: {shape} × {large.dtype}",
                                   why="its addresses do not fit 64 bits", hint="smaller sizes")
            self._programs[key] = program
        return self._programs[key]

    def _made(self, values: dict[str, int]) -> Program:
        """The program at checked sizes, with the roles that its instances have, not its text alone."""
        program = parse(self.text, self.parameters, self.captured, values)
        return with_exact_roles(program, [p.name for p in self.parameters if p.inout])

    def _checked(self, sizes: Mapping[str, Any], called: str) -> dict[str, int]:
        likely = {name: 64 >> i if i < 5 else 4 for i, name in enumerate(self.sizes)}
        likely |= {n: v for n, v in sizes.items() if n in likely and type(v) is int and 0 <= v <= _LARGEST_SIZE}
        example = f"{called}({', '.join(f'{name}={value}' for name, value in likely.items())})"
        wanted = f"{self.name} has the sizes {', '.join(self.sizes)}" if self.sizes else f"{self.name} has no sizes"
        for wrong, what in (
            (sorted(sizes.keys() - set(self.sizes)), "unknown"),
            ([n for n in self.sizes if n not in sizes], "missing"),
        ):
            if wrong:
                raise ProgramError(
                    f"{what} size{'s' * (len(wrong) > 1)} {', '.join(wrong)}", where=wanted, hint=example
                )
        out: dict[str, int] = {}
        for name in self.sizes:
            value = sizes[name]
            if isinstance(value, bool) or not hasattr(type(value), "__index__") or isinstance(value, SizeValue):
                raise ProgramError(f"the size {name} must be an integer, not {shown(value)}", where=wanted,
                                   hint=example)
            try:
                out[name] = operator.index(value)
            except TypeError as problem:  # an array of several
                raise ProgramError(f"the size {name} must be an integer, not {shown(value)}", where=wanted,
                                   hint=example) from problem
            if out[name] < 0:
                raise ProgramError(
                    f"the size {name} is {shown(out[name])}", where=wanted, why="a size is at least 0", hint=example
                )
            if out[name] > _LARGEST_SIZE:
                raise ProgramError(f"the size {name} is {shown(out[name])}", where=wanted,
                                   why="a size is at most 2**40: no memory holds more", hint=example)
        return out

    def __getattr__(self, name: str) -> Any:
        from ..schedule import Schedule
        from ..steps.calls import kind_of

        if not name.startswith("_") and (hasattr(Schedule, name) or kind_of(name)):
            sizes = ", ".join(f"{size}=…" for size in self.sizes)
            raise AttributeError(f"a program has no {name}: a schedule has; try {self.name}.schedule({sizes}).{name}")
        raise AttributeError(f"a program has no attribute {name!r}")

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


def define(function: Callable[..., Any]) -> Definition:
    """Parse a function into a definition: the work of the decorator.

    Parameters
    ----------
    function : function
        A plain ``def`` whose parameters are annotated with array types.

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
    for text, names in ((source, captured), *((f.text, f.captured) for f in functions_of(captured))):
        scope = Scope(text, names, bound_names(text.tree), {}, trial=True)
        used = [n for n in ast.walk(text.tree) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
        for node in sorted(used, key=lambda n: (n.lineno, n.col_offset)):
            value = scope.outside(node)
            found |= dict.fromkeys(value.names() if isinstance(value, SizeValue) else ())
    names = tuple(found)
    trial = {name: _TRIAL[i % len(_TRIAL)] + i // len(_TRIAL) for i, name in enumerate(names)}
    parse(source, parameters, captured, trial, trial=True)
    return Definition(source.tree.name, names, parameters, source, captured)


@spoken(ProgramError, "@ex.program above `def name(x: ex.f32[N], …):`")
def program(function: Callable[..., Any]) -> Definition:
    """Turn a Python function with nested affine loops into a program (a decorator; the function is parsed, never run).

    Raises
    ------
    ProgramError
        At the line and column that is not accepted, with the reason and the nearest accepted form.
    """
    return define(function)
