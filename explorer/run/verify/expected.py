"""Expected outputs, computed once for each program and seed: all schedules of a program are held against the same values.

What a program computes from seeded inputs does not depend on its schedule, and computing it on the processor takes longer than
anything a GPU does, most of all where it cannot be sampled: the sum of half a billion numbers needs them all.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from ...ir.program import Program
from ..inputs.arguments import Inputs
from .reference import BUDGET, NumpyReference, Reference, references, with_numpy

KEPT_BYTES = 1 << 27
"""Bytes of expected values and bounds that are kept; of those asked for longest ago the first go first."""

_Key = tuple[Program, int, int, str]
_kept: OrderedDict[_Key, Reference] = OrderedDict()
_lock = Lock()


def expected(inputs: Inputs, function: NumpyReference | None = None, *,
             budget: int = BUDGET) -> tuple[list[Reference], tuple[str, ...]]:  # fmt: skip
    """Every reference there is for a program's outputs, as :func:`~explorer.run.verify.reference.references` says.

    Values that a caller gave are computed with every time; those of a seed only if they are not known from before.

    Parameters
    ----------
    inputs : Inputs
    function : callable, optional
        A NumPy reference; always called.
    budget : int
        Operations for which all cells are computed; a sample takes about as many.

    Returns
    -------
    list of Reference, tuple of str
        And what was not checked, in words.

    Raises
    ------
    KernelFault
        If a data-dependent index leaves its array.
    DeviceError
        If the NumPy reference returns something else than the outputs.
    """
    found, notes = _loops(inputs, budget)
    if function is not None:
        found.append(with_numpy(inputs.program, function, inputs.arrays, found[0] if found else None))
    return found, notes


def _loops(inputs: Inputs, budget: int) -> tuple[list[Reference], tuple[str, ...]]:
    """The program's own loops."""
    key = (inputs.program, inputs.seed, budget, inputs.kind)
    if inputs.own:
        with _lock:
            if key in _kept:
                _kept.move_to_end(key)
                return [_kept[key]], ()
    found, notes = references(inputs.program, inputs.arrays, budget=budget, seed=inputs.seed, random=inputs.random)
    if inputs.own and found:
        _keep(key, found[0])
    return found, notes


def _keep(key: _Key, found: Reference) -> None:
    for values in (*found.values.values(), *found.bounds.values()):
        values.setflags(write=False)
    with _lock:
        _kept[key] = found
        while sum(map(_bytes, _kept.values())) > KEPT_BYTES:
            _kept.popitem(last=False)


def _bytes(found: Reference) -> int:
    """What is held on to: a view keeps the whole array it is of."""
    several = (*found.values.values(), *found.bounds.values())
    return sum((v.base if v.base is not None else v).nbytes for v in several)
