"""The wrapper around islpy: text to isl objects, points to integers, errors to sentences, operation budgets.

Expressions that people read never come back from isl.  They go there as rows (:mod:`~explorer.poly.linear`), or as text
for the schedule tree, statement dimensions renamed ``d0, d1, …`` so that no user's name is read as a keyword.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import islpy as isl

from ..errors import Undecided
from ..ir.expr import Expr, Quotient

CONTEXT = isl.DEFAULT_CONTEXT

Relation = isl.Map
"""Pairs of instances or elements."""

LIMIT = 20_000_000
"""Operations of isl for one call into the analysis (some ten seconds): a question that has no budget of its own ends here."""


P = ParamSpec("P")
R = TypeVar("R")


class _Turns:
    """A lock that one thread may take again, and that threads get in the order of asking."""

    def __init__(self) -> None:
        self._door, self._room, self._mine = threading.Lock(), threading.Lock(), threading.local()

    def __enter__(self) -> bool:
        """Whether the thread was outside: it begins a call into the analysis."""
        depth = getattr(self._mine, "depth", 0)
        if depth == 0:
            with self._door:  # who waits here goes before the thread that leaves the room and comes again
                self._room.acquire()
        self._mine.depth = depth + 1
        return depth == 0

    def __exit__(self, *_: object) -> None:
        self._mine.depth -= 1
        if self._mine.depth == 0:
            self._room.release()


_TURNS = _Turns()


def alone(function: Callable[P, R]) -> Callable[P, R]:
    """Let one thread at a time into the analysis: a budget of operations belongs to the context that all threads share.

    No call runs without bound: beyond :data:`LIMIT` it ends with :class:`~explorer.errors.Undecided`.
    """

    @wraps(function)
    def entered(*args: P.args, **kwargs: P.kwargs) -> R:
        with _TURNS as first:
            if not first:
                return function(*args, **kwargs)
            with budget(LIMIT):
                return function(*args, **kwargs)

    return entered


def text(expr: Expr, names: Mapping[str, str]) -> str:
    """`expr` in isl's notation, its variables renamed."""
    parts = [str(expr.const)]
    for atom, c in expr.terms:
        if isinstance(atom, str):
            body = names[atom]
        elif isinstance(atom, Quotient):
            body = f"floor(({text(atom.expr, names)})/{atom.by})"
        else:
            body = f"(({text(atom.expr, names)}) mod {atom.by})"
        parts.append(f"{c}*{body}")
    return " + ".join(parts)


def conjunction(conditions: list[str]) -> str:
    """``: a and b``, or nothing."""
    return " : " + " and ".join(conditions) if conditions else ""


def read_set(source: str) -> isl.Set:
    """An isl set from its text."""
    return isl.Set.read_from_str(CONTEXT, source)


def read_map(source: str) -> isl.Map:
    """An isl map from its text."""
    return isl.Map.read_from_str(CONTEXT, source)


def size_of(found: isl.Set) -> int:
    """How many points a set has.

    Raises
    ------
    Undecided
        If isl gives up: its answer is no number then, and no error.
    """
    if (number := found.count_val().to_str()) is None:
        raise Undecided("the points of a set could not be counted", why="isl gave up", hint="smaller sizes")
    return int(number)


MANY = 6
"""Parts of a set from which on its coordinates are minimised one by one: 20 instead of 1,293 ms of six, 182 instead of 2,060 of
of 25, but 24 instead of 11 of six others, and 0.8 instead of 0.3 of one."""


def smallest(found: isl.Map | isl.Set) -> tuple[int, ...]:
    """The lexicographically smallest point of a set or of a map (as a pair, flattened).

    Equalities are made explicit first: without, isl 0.27 follows quotients that are defined by each other until the stack ends
    (a composition with eight of them, tests/poly/test_circular_divs.py).
    """
    flat = found.wrap().flatten() if isinstance(found, isl.Map) else found.flatten() if found.is_wrapping() else found
    flat, dims = flat.detect_equalities(), range(flat.dim(isl.dim_type.set))
    if flat.n_basic_set() < MANY:
        point = flat.lexmin().sample_point()
        return tuple(int(point.get_coordinate_val(isl.dim_type.set, i).to_python()) for i in dims)
    out = list[int]()
    for i in dims:  # each least value, given those before: lexmin would take the parts from each other
        least = flat.dim_min_val(i)
        out.append(int(least.to_python()))
        flat = flat.fix_val(isl.dim_type.set, i, least)
    return tuple(out)


@contextmanager
def budget(operations: int) -> Iterator[None]:
    """Let isl do at most `operations` basic operations.

    Within another budget this one counts alone; the other starts anew behind it.

    Raises
    ------
    Undecided
        Beyond them, or where isl gives up for another reason.
    """
    outer = CONTEXT.get_max_operations()
    CONTEXT.reset_operations()
    CONTEXT.set_max_operations(operations)
    try:
        yield
    except isl.Error as error:
        raise Undecided("an exact question about this program could not be decided",
                        why=f"within {operations:,} operations: {error}"[:200],
                        hint="smaller sizes; fewer quotients and remainders of numbers without a common divisor") from error
    finally:
        CONTEXT.set_max_operations(outer)
        CONTEXT.reset_operations()
