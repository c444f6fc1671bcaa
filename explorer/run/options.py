"""Validation of the options of a run, before anything is built."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import DeviceError, ExplorerError, OutOfMemory, shown
from ..ir.program import Program

L2_STATES = ("cold", "warm")
DEVICES = ("auto", "cpu", "cuda")


def check_names(function: Callable[..., Any], given: Mapping[str, Any], error: type[ExplorerError], *,
                called: str = "", arrays: Collection[str] = ()) -> None:  # fmt: skip
    """Refuse options that a function, called so, does not take, with the nearest that it does take; arrays go in together."""
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            what = called or function.__name__
            option = "arrays=" * ("arrays" in known)
            together = f"arrays are passed together: {what}({option}{{{name!r}: …}})" if name in arrays else ""
            raise error(f"{what} has no option {name!r}", hint=together or
                        ", ".join(difflib.get_close_matches(name, known, 3)) or f"one of {', '.join(known)}")


def check_counts(**counts: Any) -> None:
    """Refuse what is no integer of at least 1."""
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise DeviceError(f"{name} is a number of at least 1, not {shown(value)}.")


def check_seed(seed: Any) -> None:
    """Refuse what is no integer."""
    if type(seed) is not int:
        raise DeviceError(f"seed is an integer, not {shown(seed)}.")


def check_flags(**flags: Any) -> None:
    """Refuse what is neither true nor false."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_) and not (type(value) is int and value in (0, 1)):
            raise DeviceError(f"{name} is True or False, not {shown(value)}.")


def check_functions(**functions: Any) -> None:
    """Refuse what cannot be called."""
    for name, value in functions.items():
        if value is not None and not callable(value):
            raise DeviceError(f"{name} is a function, not {shown(value)}.")


def check_reference(reference: Any) -> None:
    """Refuse what is no function of the arrays and the sizes."""
    check_functions(reference=reference)
    if reference is None:
        return
    try:
        inspect.signature(reference).bind({}, {})
    except TypeError as problem:
        raise DeviceError("A reference is a function of the arrays and the sizes.", why=str(problem),
                          hint="def reference(arrays, sizes): return arrays['x'].sum()") from None
    except ValueError:  # a function that does not say what it takes
        return


def check_device(device: Any) -> None:
    """Refuse what is no kind of device."""
    if not isinstance(device, str) or device not in DEVICES:
        raise DeviceError(f"There is no device {shown(device)}.", hint=' or '.join(f'"{d}"' for d in DEVICES))


def l2_states(asked: str | Sequence[str]) -> tuple[str, ...]:
    """The states of the cache to time in, each known."""
    states = (asked,) if isinstance(asked, str) else asked
    if not isinstance(states, Sequence):
        raise DeviceError(f"l2 is a sequence of states of the L2 cache, not {shown(asked)}.", hint=f"l2={L2_STATES!r}")
    if odd := [s for s in states if not isinstance(s, str) or s not in L2_STATES]:
        raise DeviceError(f"There is no state {shown(odd[0])} of the L2 cache to time in.",
                          hint=f"one of {', '.join(L2_STATES)}")
    return tuple(states)


def check_sizes(program: Program, sets: Any) -> None:
    """Refuse sets of sizes that are not one value for each size of the program; None is none."""
    if sets is None:
        return
    names = dict(program.sizes).keys()
    for sizes in sets if isinstance(sets, Sequence) and not isinstance(sets, str) else [sets]:
        if not isinstance(sizes, Mapping) or not sizes.keys() <= names:
            example = ", ".join(f"{name!r}: {value}" for name, value in program.sizes)
            raise DeviceError("ragged_sizes is a list of sizes by name.", why=f"found {shown(sizes, 200)}",
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
