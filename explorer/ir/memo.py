"""Answers remembered with the program that they are about, and dropped with it.

What is asked about a program, or about a plan of it, is asked again and again: by the step, the palette, the picture.  Each
program has a table of answers; programs that are equal share one.  Nothing else holds it, so it goes when its programs go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from threading import Lock
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar
from weakref import ReferenceType, WeakKeyDictionary, ref

from .program import Program

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")
_Tables = dict["Remembered[Any, Any, Any]", Callable[..., Any]]
_first: WeakKeyDictionary[Program, ReferenceType[Program]] = WeakKeyDictionary()
"""Of programs that are equal, the one whose table the others share."""
_lock = Lock()


class Remembered(Generic[A, P, R]):
    """A function of a program, or of something that has one (:func:`program_of`), which remembers its answers there."""

    def __init__(self, function: Callable[Concatenate[A, P], R], most: int) -> None:
        self.function, self.most = function, most
        update_wrapper(self, function)

    def __call__(self, about: A, /, *more: P.args, **named: P.kwargs) -> R:
        """The answer, from the table of the program where it is there."""
        tables = _tables(program_of(about))
        found = tables.get(self)
        if found is None:
            found = tables.setdefault(self, lru_cache(maxsize=self.most)(self.function))
        return found(about, *more, **named)

    def cache_clear(self) -> None:
        """Forget the answers about all programs."""
        with _lock:
            programs = list(_first)
        for program in programs:
            _tables(program).pop(self, None)


def per_program(most: int) -> Callable[[Callable[Concatenate[A, P], R]], Remembered[A, P, R]]:
    """Let a function remember its answers about each program: `most` of them, the least recently asked for go first.

    The first argument is a program, or has one (:func:`program_of`); all arguments are hashable.
    """
    return lambda function: Remembered(function, most)


def program_of(about: Any) -> Program:
    """The program of a plan or a schedule, or of what has a plan; a program itself."""
    while not isinstance(about, Program):
        about = about.plan if hasattr(about, "plan") else about.program
    return about


def _tables(program: Program) -> _Tables:
    """The table of a program; made once for all that are equal and alive."""
    found: _Tables | None = program.__dict__.get("_memo")
    if found is not None:
        return found
    with _lock:
        first = _first.setdefault(program, ref(program))()
        table: _Tables = {} if first is None else first.__dict__.setdefault("_memo", {})
        return program.__dict__.setdefault("_memo", table)
