"""A piece of a kernel's body, before guards have found their places."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .guards import Condition
from .printer import Lines, Out, code


@dataclass(frozen=True)
class Item:
    """A piece of a body.

    Attributes
    ----------
    out : Out
        Its text.
    guards : tuple of Condition
        What must hold around it (or inside it, if it can `render` itself under guards).
    ranges : dict
        Intervals of the variables in the guards.
    barrier : bool
        It holds a barrier, a commit or a wait: guards move out of it only where that skips nothing that is needed.
    neutral : bool
        A barrier, a declaration or a commit or wait: it may run when nothing around it does, and wants no guard.
    counted : bool
        A commit or wait directly in this body.
    name : str
        The scalar that it declares.
    render : callable or None
        The text under guards that could not move outwards (collectives, which every thread must reach).
    """

    out: Out
    guards: tuple[Condition, ...] = ()
    ranges: dict | None = None
    barrier: bool = False
    neutral: bool = False
    counted: bool = False
    name: str = ""
    render: Callable[[tuple[Condition, ...]], Out] | None = None


def mentions(item: Item, name: str) -> bool:
    """Whether the text of a piece holds the word."""
    return name in re.findall(r"\w+", "\n".join(code((item.out,))))


BARRIER = Item(Lines(("__syncthreads();",)), barrier=True, neutral=True)
