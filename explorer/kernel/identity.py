"""Identities of the reductions: the value that replaces an element that is not loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.coding import SMALL, decoded, encoded
from ..ir.dtype import DType
from ..ir.operations import OPERATIONS
from ..ir.scalar import REDUCTIONS, Call, Cast, Literal, Read, Scalar, argument_types
from .sites import Lowered, Site


def masked_load_value(low: Lowered, sites: Sequence[Site]) -> Any:
    """What every read of these updates may give so that they change nothing; None where there is no such number.

    It is tried with the identity of the first update's reduction: 0 for a sum, minus infinity for a maximum.
    """
    found = None
    for site in sites:
        s, types = site.statement, low.dtypes(site)
        if s.update is None:
            return None
        identity = REDUCTIONS[s.update].identity(low.store(site.leaf, len(s.reads)).dtype)
        found = identity if found is None else found
        if not all(_holds(t, found) for t in types) or _folded(s.value, types, found) != identity:
            return None
    return found


def _holds(dtype: DType, value: Any) -> bool:
    """Whether an element can be the value."""
    if dtype.name in SMALL:
        return bool(decoded(encoded(value, dtype), dtype) == value)
    if dtype.kind != "int":
        return dtype.kind == "float" or value in (0, 1)
    info = np.iinfo(dtype.numpy)
    return not np.isinf(value) and info.min <= value <= info.max


def _folded(value: Scalar, types: Sequence[DType], fill: Any) -> Any:
    """The value of an expression all of whose reads give `fill`; None where it is not known."""
    if isinstance(value, Literal):
        return value.dtype.wide.numpy.type(value.value)
    if isinstance(value, Read):
        return types[value.slot].wide.numpy.type(fill)
    if isinstance(value, Cast):
        arg = _folded(value.arg, types, fill)
        if arg is None or not (np.isfinite(arg) or value.dtype.kind == "float"):
            return None
        return value.dtype.wide.numpy.type(arg)
    if not isinstance(value, Call):
        return None
    args = [_folded(a, types, fill) for a in value.args]
    if any(a is None for a in args):
        return None
    with np.errstate(all="ignore"):
        return OPERATIONS[value.op].numpy(*(k.numpy.type(a) for k, a in zip(argument_types(value, types), args, strict=True)))
