"""NumPy implementations of scalar operations that NumPy has no function for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _by_element(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python's floats, element by element, in the type of the argument."""
    each = np.vectorize(function, otypes=[np.float64])
    return lambda x: each(x).astype(np.result_type(x, np.float32))


erf = _by_element(math.erf)
erfc = _by_element(math.erfc)


def gelu(x: Any) -> Any:
    """``0.5 * x * (1 + erf(x / sqrt 2))``."""
    return 0.5 * x * (1.0 + erf(x * math.sqrt(0.5)))


def quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that does not warn of what IEEE 754 defines."""

    def call(*values: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*values)

    return call


def rsqrt(x: Any) -> Any:
    """One over the root."""
    return 1 / np.sqrt(x)


@quietly
def tf32(x: Any) -> Any:
    """An f32 without the low 13 bits of its significand."""
    bits = np.asarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return bits.view(np.float32).astype(np.result_type(x, np.float32))


@quietly
def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, as it is computed."""
    return 1 / (1 + np.exp(-x))


def clamp(x: Any, low: Any, high: Any) -> Any:
    """NumPy's ``clip``: `high` where `low` is above it, NaN where an operand is."""
    return np.minimum(np.maximum(x, low), high)


@quietly
def fma(x: Any, y: Any, z: Any) -> Any:
    """``x * y + z`` rounded once: the product in two parts (T. J. Dekker, "A floating-point technique for extending the available
    precision", Numerische Mathematik 18, 1971), the sum's error by D. E. Knuth's TwoSum.
    """
    own = np.result_type(x, y, z)
    a, b, c = (np.asarray(v, np.float64) for v in (x, y, z))
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    product = a * b
    product_error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    shared = total - product
    error = (product - (total - shared)) + (c - shared) + product_error
    return np.where(np.isfinite(error), total + error, total).astype(own)[()]


def _halves(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A float64 as the sum of two of 26 digits."""
    scaled = value * (2.0**27 + 1)
    high = scaled - (scaled - value)
    return high, value - high


def fused_exp(x: Any, scale: Any, m: Any) -> Any:
    """``exp(x * scale - m)``."""
    return np.exp(x * scale - m)


def rank(value: Any, zero: float, nan: int) -> Any:
    """An integer of 32 bits, as int64, in the order of the values: of floats, -0 and 0 are `zero`, and a NaN is `nan`."""
    value = np.asarray(value)
    if value.dtype.kind != "f":
        return value.astype(np.int64)
    with np.errstate(over="ignore"):
        bits = np.asarray(np.where(value == 0, zero, value).astype(np.float32)).view(np.int32)
    ordered = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).astype(np.int64)
    return np.where(np.isnan(value), np.int64(nan), ordered)


def argmax_key(value: Any, index: Any) -> Any:
    """See :data:`~.operations.OPERATIONS`."""
    return rank(value, 0.0, 0x7FFFFFFF) * 2**32 + (0xFFFFFFFF - np.asarray(index, np.int64))


def argmin_key(value: Any, index: Any) -> Any:
    """See :data:`~.operations.OPERATIONS`."""
    return rank(value, -0.0, -0x80000000) * 2**32 + np.asarray(index, np.int64)


def argmax_index(key: Any) -> Any:
    """The index in an `argmax_key`."""
    return np.asarray(~np.asarray(key, np.int64)).astype(np.int32)


def argmin_index(key: Any) -> Any:
    """The index in an `argmin_key`."""
    return np.asarray(key, np.int64).astype(np.int32)
