"""Shared arrays that the collectives of a launch work in."""

from __future__ import annotations

from .names import Names
from .sites import Store

OWN = 512
"""Elements of a scratch array that are few enough for a reduction to have one of its own, which saves a barrier."""


class Scratch(dict[str, Store]):
    """Shared arrays that the reductions of one launch work in, by what they hold, and which of them have been used so far."""

    def __init__(self) -> None:
        super().__init__()
        self._used: set[str] = set()

    def take(self, names: Names) -> str:
        """A name that none of the arrays has: every phase of a launch has names of its own."""
        held = {store.name for store in self.values()}
        return next(name for name in iter(lambda: names.take("scratch"), "") if name not in held)

    def use(self, key: str) -> bool:
        """Whether this is the first use in the text."""
        first = key not in self._used
        self._used.add(key)
        return first
