"""What may be asked of a run: refused here, before anything is built, and not by whatever meets it first."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import DeviceError, ExplorerError, OutOfMemory
from ..ir.program import Program

L2_STATES = ("cold", "warm")


def check_names(function: Callable[..., Any], given: Mapping[str, Any], error: type[ExplorerError]) -> None:
    """Refuse options that a function does not take, with the nearest that it does take."""
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            raise error(f"{function.__name__} has no option {name!r}",
                        hint=", ".join(difflib.get_close_matches(name, known, 3)) or f"one of {', '.join(known)}")


def check_counts(**counts: Any) -> None:
    """Refuse what is no integer of at least 1."""
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise DeviceError(f"{name} is a number of at least 1, not {value!r}.")


def check_seed(seed: Any) -> None:
    """Refuse what is no integer."""
    if type(seed) is not int:
        raise DeviceError(f"seed is an integer, not {seed!r}.")


def check_functions(**functions: Any) -> None:
    """Refuse what cannot be called."""
    for name, value in functions.items():
        if value is not None and not callable(value):
            raise DeviceError(f"{name} is a function, not {value!r}."[:200])


def l2_states(asked: str | Sequence[str]) -> tuple[str, ...]:
    """The states of the cache to time in, each known."""
    states = (asked,) if isinstance(asked, str) else tuple(asked)
    if odd := [s for s in states if s not in L2_STATES]:
        raise DeviceError(f"There is no state {odd[0]!r} of the L2 cache to time in.", hint=f"one of {', '.join(L2_STATES)}")
    return states


def check_sizes(program: Program, sets: Any) -> None:
    """Refuse sets of sizes that are not one value for each size of the program."""
    names = dict(program.sizes).keys()
    for sizes in sets if isinstance(sets, Sequence) and not isinstance(sets, str) else [sets]:
        if not isinstance(sizes, Mapping) or not sizes.keys() <= names:
            example = ", ".join(f"{name!r}: {value}" for name, value in program.sizes)
            raise DeviceError("ragged_sizes is a list of sizes by name.", why=f"found {sizes!r}"[:200],
                              hint=f"[{{{example}}}]")


def require_memory(program: Program) -> None:
    """Refuse arrays that this machine's memory cannot hold.

    Raises
    ------
    OutOfMemory
        With what they take and what there is.
    """
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return
    need = sum(a.nbytes for a in program.arrays)
    if need > there:
        raise OutOfMemory(f"The arrays of {program.name} take {need / 2**30:,.0f} GiB at these sizes.",
                          why=f"this machine has {there / 2**30:,.0f} GiB", hint="run it at smaller sizes: schedule.at(...)")
