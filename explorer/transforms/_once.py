"""What a move makes of a plan, remembered: its check asks for it, its rewrite, and whoever looks for moves to propose."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ..ir.memo import per_program
from ..ir.plan import Plan

M = TypeVar("M")
R = TypeVar("R")
REMEMBERED = 512
"""Plans that are kept for a program, as many as steps are."""


def once(method: Callable[[M, Plan], R]) -> Callable[[M, Plan], R]:
    """Let a frozen move remember what this method makes of a plan.

    Moves whose fields cannot be hashed (lists) are asked each time; the text of a move tells apart those that are equal, as
    those of numbers and of truth values are.
    """

    @per_program(REMEMBERED)
    def answer(plan: Plan, move: Any, text: str) -> R:
        del text
        return method(move, plan)

    @wraps(method)
    def asked(self: M, plan: Plan) -> R:
        try:
            hash(self)
        except TypeError:
            return method(self, plan)
        return answer(plan, self, repr(self))

    return asked
