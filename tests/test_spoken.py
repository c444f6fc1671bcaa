"""Every public callable, called with nothing or with a misspelt argument: an error of ours with what to pass, no TypeError."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import explorer as ex
from explorer.errors import ExplorerError
from explorer.transforms.base import catalogue

N = ex.sizes("N")


@ex.program
def doubled(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = 2 * x[i]


def values() -> list[Any]:
    """What a user holds: the modules of `ex`, and what their calls return."""
    s = doubled.schedule(N=64)
    spread = s.split("i", 32).bind("i", "block.x").bind("i.i", "thread.x")
    return [ex, ex.strategies, ex.workloads, ex.gpu, doubled, s, s.moves("i"), s.source, s.plot, s.facts, s.judgement, s.kernel(),
            spread.module(), s.run(device="cpu"), s.compile(), ex.gpu("H100"), ex.workloads.get("softmax"), ex.compare(s, spread),
            ex.strategies.stitching(s), ex.explore(s), s.counterexample("bind", "i", "thread.x")]


def callables(owner: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public callables of a value, by what a user writes; errors are raised, not called."""
    title = getattr(owner, "__name__", type(owner).__name__).removeprefix("explorer.")
    for name in getattr(owner, "__all__", None) or dir(owner):
        if name.startswith("_") or name in catalogue() or not is_ours(owner, name):
            continue
        yield f"{title}.{name}", getattr(owner, name)


def is_ours(owner: Any, name: str) -> bool:
    """Whether it is a function or class of this package (a property or a field is none)."""
    static = inspect.getattr_static(type(owner), name, None)
    if not inspect.ismodule(owner) and not isinstance(static, (classmethod, staticmethod)) and not inspect.isfunction(static):
        return False
    found = getattr(owner, name)
    error = isinstance(found, type) and issubclass(found, BaseException)
    return callable(found) and (getattr(found, "__module__", "") or "").startswith("explorer") and not error


def needs(call: Callable[..., Any]) -> bool:
    """Whether a call has an argument without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(p.default is p.empty and p.kind in kinds for p in inspect.signature(call).parameters.values())


EVERY = {name: call for owner in values() for name, call in callables(owner)}


@pytest.mark.parametrize("name", sorted(EVERY))
def test_a_misspelt_argument_is_named(name: str) -> None:
    with pytest.raises(ExplorerError) as caught:
        EVERY[name](quixotic=1)
    assert caught.value.hint


@pytest.mark.parametrize("name", sorted(name for name, call in EVERY.items() if needs(call)))
def test_what_is_needed_is_asked_for(name: str) -> None:
    with pytest.raises(ExplorerError) as caught:
        EVERY[name]()
    assert caught.value.hint
    assert "__" not in str(caught.value)
