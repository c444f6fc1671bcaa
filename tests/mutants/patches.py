"""How a defect gets into the product: attributes replaced for a while, with every cache forgotten before and after."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Patch:
    """``module.attribute`` (``Class.method`` too) becomes ``change(original)``."""

    module: str
    attribute: str
    change: Callable[[Any], Any]

    def holder(self) -> tuple[Any, str]:
        """The object that has the attribute, and its name there."""
        *path, name = self.attribute.split(".")
        holder = importlib.import_module(self.module)
        for part in path:
            holder = getattr(holder, part)
        return holder, name


@contextmanager
def patched(*patches: Patch) -> Iterator[None]:
    """The product with these defects."""
    undo: list[tuple[Any, str, Any]] = []
    forget()
    try:
        for p in patches:
            holder, name = p.holder()
            original = getattr(holder, name)
            undo.append((holder, name, original))
            setattr(holder, name, p.change(original))
        yield
    finally:
        for holder, name, original in reversed(undo):
            setattr(holder, name, original)
        forget()


def forget() -> None:
    """Empty every cache of the product, so that no answer outlives a defect."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "explorer":
            for value in list(vars(module).values()):
                if not isinstance(value, type) and callable(clear := getattr(value, "cache_clear", None)):
                    clear()


def returning(value: Any) -> Callable[[Any], Any]:
    """A function that answers this, whatever it is asked."""
    return lambda original: lambda *args, **named: value


def after(change: Callable[..., Any]) -> Callable[[Any], Any]:
    """The original's answer, changed: ``change(answer, *arguments)``."""
    return lambda original: lambda *args, **named: change(original(*args, **named), *args)
