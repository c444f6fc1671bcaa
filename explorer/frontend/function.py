"""Functions of a program: ``@ex.function``, parsed where they are defined and written out where they are called."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ..errors import ProgramError, spoken
from .refuse import STATEMENTS, refuse, refuse_statement
from .scope import bound_names, capture
from .source import Source, source_of


@dataclass(frozen=True, eq=False)
class Function:
    """A function of numbers: one value from scalar arguments, without loops and arrays.

    Attributes
    ----------
    name : str
    parameters : tuple of str
    defaults : mapping of str to ast.expr
        Of the parameters that have one.
    text : Source
    captured : mapping of str to object
        What its outside names mean.
    """

    name: str
    parameters: tuple[str, ...]
    defaults: Mapping[str, ast.expr] = field(repr=False)
    text: Source = field(repr=False)
    captured: Mapping[str, Any] = field(repr=False)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refused: a function is parsed, never executed."""
        raise ProgramError(f"{self.name} is a function of programs", why="it is parsed, never executed",
                           hint=f"call it inside a function decorated with @ex.program: y[i] = {self.name}(…)")

    def __str__(self) -> str:
        return self.text.text


@spoken(ProgramError, "@ex.function above `def name(x): return …`")
def function(body: Callable[..., Any]) -> Any:
    """Decorator: a function that programs call, ``y[i] = gelu(x[i])``.

    Its arguments are numbers, its result is one number.  It may have names of its own, ``if`` and ``else``, and call other
    such functions; it is written out where it is called.  Annotations say nothing: a value keeps its type.

    Raises
    ------
    ProgramError
        At the line and column of what a function cannot have: loops, arrays, a path without a value.
    """
    source = source_of(body)
    arguments = source.tree.args
    for node, mark in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if node is not None:
            raise refuse(source, node, f"{mark}{node.arg} is not accepted", why="a function takes numbers, each by its name",
                         hint=f"{node.arg} without {mark}")
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    places = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    defaults = dict(zip(places[len(places) - len(arguments.defaults):], arguments.defaults, strict=True))
    defaults |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
    statements = _without_docstring(source.tree.body)
    _check(source, statements)
    if not _returns(statements):
        raise refuse(source, statements[-1] if statements else source.tree, f"{source.tree.name} has a path without a value",
                     why="a call of it stands for a number", hint="return … at the end")
    return Function(source.tree.name, tuple(names), defaults, source, capture(body, source.tree, sys._getframe(1)))


def body_of(function: Function) -> list[ast.stmt]:
    """Its statements, without the docstring."""
    return _without_docstring(function.text.tree.body)


def locals_of(function: Function) -> frozenset[str]:
    """Names that it binds: by Python's rule these are never the outside ones."""
    return bound_names(function.text.tree)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0].value if isinstance(body[0], ast.Expr) else None
    return body[1:] if isinstance(first, ast.Constant) and isinstance(first.value, str) else body


_NAMES = "a function has names for numbers, and changes no array"


def _check(source: Source, statements: list[ast.stmt]) -> None:
    """Refuse statements that are not assignments of names, ``if`` or ``return``."""
    for statement in statements:
        if isinstance(statement, ast.If):
            _check(source, [*statement.body, *statement.orelse])
        elif isinstance(statement, (ast.For, ast.While)):
            raise refuse(source, statement, "a loop in a function is not accepted",
                         why="a function is one expression of its arguments", hint="the loop in the program, around the call")
        elif isinstance(statement, ast.Return):
            if statement.value is None or isinstance(statement.value, (ast.Tuple, ast.List)):
                raise refuse(source, statement, "a function returns one number", why="a call of it stands for a number",
                             hint="one function for each value")
        elif isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if len(targets) > 1 or not isinstance(targets[0], ast.Name) or statement.value is None:
                raise refuse(source, statement, f"{ast.unparse(targets[0])} cannot be assigned in a function", why=_NAMES,
                             hint="t = …, or the assignment in the program")
        elif type(statement) in STATEMENTS:
            raise refuse_statement(source, statement)
        elif not isinstance(statement, ast.Pass):
            raise refuse(source, statement, "this line does nothing in a function", why=_NAMES, hint="t = …, or return …")


def _returns(statements: list[ast.stmt]) -> bool:
    """Whether every path through the statements ends in a return."""
    return any(isinstance(s, ast.Return) or (isinstance(s, ast.If) and _returns(s.body) and _returns(s.orelse))
               for s in statements)


def functions_of(captured: Mapping[str, Any]) -> tuple[Function, ...]:
    """The functions among captured values and their fields, and those that they call, each after what it calls."""
    out: list[Function] = []
    for value in captured.values():
        for part in (value, *(vars(value).values() if isinstance(value, SimpleNamespace) else ())):
            if isinstance(part, Function) and part not in out:
                out += [f for f in functions_of(part.captured) if f not in out]
                out.append(part)
    return tuple(out)
