"""Float types that NumPy lacks, held as their bits: bf16 and the 8-bit types.

The 8-bit types are those of the Open Compute Project ("OCP 8-bit Floating Point Specification", 2023): f8e4m3 has 4 bits of
exponent, no infinities and one NaN of either sign; f8e5m2 is the upper half of an f16.  Rounding to them is that of CUDA's
constructors (CUDA Math API, "FP8 conversion and data movement", ``__NV_SATFINITE``): to nearest even, and what is too large, the
infinities among it, becomes the largest finite number.  NaN stays NaN.  An infinity of
f8e5m2 that is moved from one element to another, and not computed with, stays too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .dtype import DType, bf16_to_f32, f32_to_bf16


@dataclass(frozen=True)
class Small:
    """The layout of an 8-bit float.

    Attributes
    ----------
    fraction : int
        Bits behind the point.
    lowest : int
        Exponent of the smallest normal number, and of the subnormal ones.
    top : int
        Code of the largest finite number.
    infinity : int
        Code of infinity, or 0 if there is none.
    """

    fraction: int
    lowest: int
    top: int
    infinity: int = 0

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The numbers of these codes, as float32."""
        size = codes.astype(np.int32) & 0x7F
        exponent, fraction = size >> self.fraction, size & ((1 << self.fraction) - 1)
        significand = fraction + np.where(exponent > 0, 1 << self.fraction, 0)
        value = np.ldexp(significand.astype(np.float32), np.maximum(exponent, 1) - 1 + self.lowest - self.fraction)
        value = np.where(size > self.top, np.float32(np.nan), value)
        value = np.where(size == self.infinity, np.float32(np.inf), value) if self.infinity else value
        return np.where(codes & 0x80, -value, value).astype(np.float32)

    def encode(self, values: np.ndarray, moved: bool = False) -> np.ndarray:
        """The codes of the nearest numbers, of the largest finite one for what is larger; infinities stay if `moved`."""
        wide = np.asarray(values, np.float64)
        size = np.minimum(np.where(np.isnan(wide), 0.0, np.abs(wide)), self.largest)
        exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, self.lowest), self.lowest)
        code = np.rint(np.ldexp(size, self.fraction - exponent)) + (exponent - self.lowest) * 2.0**self.fraction
        code = np.where(np.isnan(wide), 0x7F, np.minimum(code, self.top)).astype(np.uint8)
        code = np.where(np.isinf(wide), np.uint8(self.infinity), code) if moved and self.infinity else code
        return code | np.where(np.signbit(wide), 0x80, 0).astype(np.uint8)

    @property
    def limit(self) -> float:
        """The largest number that rounds to a finite one without being cut off: half of a last place above that."""
        return self.largest + 2.0 ** ((self.top >> self.fraction) - 1 + self.lowest - self.fraction - 1)

    @property
    def largest(self) -> float:
        """The largest finite number."""
        top = self.top & ((1 << self.fraction) - 1) | 1 << self.fraction
        return float(top) * 2.0 ** ((self.top >> self.fraction) - 1 + self.lowest - self.fraction)


SMALL: dict[str, Small] = {"f8e4m3": Small(3, -6, 0x7E), "f8e5m2": Small(2, -14, 0x7B, 0x7C)}
"""The 8-bit floats by their type's name."""


def coded(dtype: DType) -> bool:
    """Whether NumPy holds the type as its bits."""
    return dtype.kind == "float" and dtype.numpy.kind == "u"


def decoded(bits: Any, dtype: DType) -> np.ndarray:
    """The numbers that bits of a coded type are, as float32 of the same shape."""
    bits = np.asarray(bits)
    found = SMALL[dtype.name].decode(bits) if dtype.name in SMALL else bf16_to_f32(bits)
    return found.reshape(bits.shape)


def encoded(values: Any, dtype: DType, moved: bool = False) -> np.ndarray:
    """The bits of the numbers of a coded type that are nearest to these; infinities of the type stay if they are only `moved`."""
    values = np.asarray(values)
    found = SMALL[dtype.name].encode(values, moved) if dtype.name in SMALL else f32_to_bf16(values.astype(np.float32))
    return np.asarray(found).reshape(values.shape)
