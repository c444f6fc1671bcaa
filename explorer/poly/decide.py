"""How an exact question is answered: by intervals, else point by point, else by isl, in that order.

Most questions about two maps or two accesses follow from their equalities by substitution, within microseconds.  Small domains
are tried point by point.  What is left is asked of isl, which decides every question about sets of integers, given time.  A
question is a frozen value that says how each of the three would answer; equal questions have one answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar, cast

from .feasible import feasible
from .isl import LIMIT, budget
from .linear import Case, Cases, Tuple

R = TypeVar("R")
REMEMBERED = 1 << 15
"""Answers that are kept; a program of ten statements asks some hundreds, a session some thousands."""


class _Open(Enum):
    OPEN = "open"


OPEN = _Open.OPEN
"""What a way of answering says when it cannot tell."""
Maybe = R | Literal[_Open.OPEN]


class Question(Generic[R]):
    """A question with an exact answer; each class of them is a frozen dataclass."""

    def by_intervals(self) -> Maybe[R]:
        """The answer as it follows by substitution and intervals."""
        return OPEN

    def by_points(self) -> Maybe[R]:
        """The answer found point by point, where those that must be tried are few."""
        return OPEN

    def by_isl(self) -> R:
        """The answer of isl, always exact; it may cost more than its budget (:class:`~explorer.errors.Undecided`)."""
        raise NotImplementedError


def decide(question: Question[R]) -> R:
    """The exact answer, by the first way that can tell.

    Raises
    ------
    Undecided
        If the budget around the question ends before isl does; not remembered.
    """
    return cast(R, _answered(question))


@lru_cache(maxsize=REMEMBERED)
def _answered(question: Question[Any]) -> Any:
    for way in (question.by_intervals, question.by_points):
        if (answer := way()) is not OPEN:
            return answer
    return question.by_isl()


@dataclass(frozen=True)
class Meet(Question[bool]):
    """Whether some pair of points is alike and differs in one of the cases: two accesses of one cell that must be ordered.

    Attributes
    ----------
    a, b : Tuple
        The loops of the two.
    same : Case
        What holds on every pair in question.
    cases : Cases
        One of which must hold, too.
    operations : int
        Budget of isl.
    """

    a: Tuple
    b: Tuple
    same: Case
    cases: Cases = ((),)
    operations: int = LIMIT

    def by_isl(self) -> bool:
        """Case by case."""
        with budget(self.operations):
            if not feasible((self.a, self.b), self.same):
                return False
            return () in self.cases or any(feasible((self.a, self.b), (*self.same, *case)) for case in self.cases)
