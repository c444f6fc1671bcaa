"""Hashes that are computed once: the caches of the analysis ask for the same large values again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

C = TypeVar("C", bound=type[Any])


def cached_hash(cls: C) -> C:
    """Let a frozen dataclass (without slots) remember its hash.

    Pickles leave it out, since strings hash differently elsewhere, and what :mod:`explorer.ir.memo` keeps with a value.
    """
    compute = cast(Callable[[object], int], cls.__hash__)

    def remembered(self: object) -> int:
        known = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = compute(self)
        return known

    def state(self: object) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_hash", "_memo")}

    changed: Any = cls
    changed.__hash__, changed.__getstate__ = remembered, state
    return cls
