"""Element types: one row each, with the NumPy, CUDA and memory facts everything else asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DType:
    """An element type.

    Attributes
    ----------
    name : str
        The name users write: ``f32``.
    bytes : int
        Size in memory.
    cuda : str
        Spelling in CUDA C++.
    kind : str
        ``"float"``, ``"int"`` or ``"bool"``.
    compute : str
        Name of the type that expressions on it are evaluated in (f16, bf16 and the 8-bit floats widen to f32).
    stored : str
        Name of the NumPy dtype of the same bytes.
    digits : float
        Unit roundoff: 2**-p for a float with p significand bits, 0 for the exact types.
    """

    name: str
    bytes: int
    cuda: str
    kind: str
    compute: str
    stored: str
    digits: float = 0.0

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype of the same bytes; bf16 and the 8-bit floats have none and are held as their bits."""
        return np.dtype(self.stored)

    @property
    def unsigned(self) -> bool:
        """Whether it is an integer type without negative numbers."""
        return self.kind == "int" and self.stored.startswith("u")

    @property
    def wide(self) -> DType:
        """The type that expressions are evaluated in."""
        return DTYPES[self.compute]


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("f16", 2, "__half", "float", "f32", "float16", 2.0**-11),
        DType("bf16", 2, "__nv_bfloat16", "float", "f32", "uint16", 2.0**-8),
        DType("f8e4m3", 1, "__nv_fp8_e4m3", "float", "f32", "uint8", 2.0**-4),
        DType("f8e5m2", 1, "__nv_fp8_e5m2", "float", "f32", "uint8", 2.0**-3),
        DType("f32", 4, "float", "float", "f32", "float32", 2.0**-24),
        DType("f64", 8, "double", "float", "f64", "float64", 2.0**-53),
        DType("i8", 1, "signed char", "int", "i32", "int8"),
        DType("i32", 4, "int", "int", "i32", "int32"),
        DType("i64", 8, "long long", "int", "i64", "int64"),
        DType("u8", 1, "unsigned char", "int", "i32", "uint8"),
        DType("u16", 2, "unsigned short", "int", "i32", "uint16"),
        DType("u32", 4, "unsigned int", "int", "u32", "uint32"),
        DType("u64", 8, "unsigned long long", "int", "u64", "uint64"),
        DType("bool", 1, "bool", "bool", "bool", "bool"),
    )
}


def bf16_to_f32(bits: np.ndarray) -> np.ndarray:
    """Widen bf16 bit patterns (``uint16``) to float32, exactly."""
    return (np.asarray(bits, order="C").astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(values: np.ndarray) -> np.ndarray:
    """Round float32 to bf16 bit patterns (``uint16``), to nearest even; NaN stays NaN."""
    bits = np.asarray(values, dtype=np.float32, order="C").view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)
