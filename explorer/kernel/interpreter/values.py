"""Scalar expressions of many threads at once, in the types that the language prescribes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.dtype import DType
from ...ir.expr import Expr
from ...ir.operations import OPERATIONS
from ...ir.scalar import Call, Cast, IndexValue, Literal, Read, Scalar, argument_types
from .lanes import Numbers
from .memory import held_as, rounded


def evaluate(value: Scalar, types: Sequence[DType], read: Callable[[int], Any], index: Callable[[Expr], Any],
             exact: bool) -> Numbers:
    """The value of an expression for each thread.

    Parameters
    ----------
    value : Scalar
    types : sequence of DType
        Of the statement's reads, as stored.
    read : callable
        Slot to the values read.
    index : callable
        Index expression over the statement's dimensions to its values.
    exact : bool
        Whether floats are float64 and are not rounded.
    """
    if isinstance(value, Literal):
        return np.asarray(value.value).astype(held_as(value.dtype, exact))
    if isinstance(value, Read):
        return read(value.slot)
    if isinstance(value, IndexValue):
        return np.asarray(index(value.expr), np.int64)
    if isinstance(value, Cast):
        return rounded(evaluate(value.arg, types, read, index, exact), value.dtype, exact)
    assert isinstance(value, Call)
    kinds = [held_as(t, exact) for t in argument_types(value, types)]
    parts = [evaluate(a, types, read, index, exact).astype(kind, copy=False) for kind, a in zip(kinds, value.args, strict=True)]
    return np.asarray(OPERATIONS[value.op].numpy(*parts))
