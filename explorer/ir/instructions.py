"""Tensor instructions as data: shape, element types, the layouts of the operands, and where they exist.

``C += A * B`` on a tile of M x K times K x N elements, by the 32 lanes of one warp (PTX ISA, "mma.sync").  A row of the table is
all that the package knows about an instruction: layouts say which lane holds what, `ptx` is how it is written, and the device
function is made from the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from .dtype import DTYPES, DType
from .layout import Layout, fragment


@dataclass(frozen=True)
class Mma:
    """One shape of ``mma.sync`` for some types of its operands.

    Attributes
    ----------
    m, n, k : int
        Extents of the tile.
    a, b, c : DType
        Element types in the registers of the left and right factor and of the accumulator.
    arch : int
        The first architecture that has it, as 75 for ``sm_75``.
    types : str
        Types as PTX names them, in the order of D, A, B, C.
    significand : int
        Bits that a factor keeps of its significand, 0 for all: tf32 ignores the low 13 of an f32 (PTX ISA, "Alternate
        Floating-Point Data Formats").
    """

    m: int
    n: int
    k: int
    a: DType
    b: DType
    c: DType
    arch: int
    types: str
    significand: int = 0

    @property
    def shape(self) -> str:
        """``m16n8k16``."""
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def name(self) -> str:
        """``m16n8k16_f16_f16_f32``: the shape, and the types of A, B and the accumulator (tf32 is an f32 here)."""
        a, b = ("tf32" if self.significand else str(d) for d in (self.a, self.b))
        return f"{self.shape}_{a}_{b}_{self.c}"

    @property
    def ptx(self) -> str:
        """The instruction without its operands; the left factor is row-major, the right one column-major."""
        return f"mma.sync.aligned.{self.shape}.row.col.{self.types}"

    @property
    def left(self) -> Layout:
        """Rows and columns of A, of M x K elements."""
        return fragment(self.m, self.k, packed(self.a))

    @property
    def right(self) -> Layout:
        """Rows and columns of B, of K x N elements."""
        return fragment(self.n, self.k, packed(self.b)).transposed

    @property
    def accumulator(self) -> Layout:
        """Rows and columns of C and D, of M x N elements: pairs of neighbours, whatever the type."""
        return fragment(self.m, self.n, 2)


def packed(dtype: DType) -> int:
    """Elements of a factor in one register of 32 bits, 1 for wider ones."""
    return max(4 // dtype.bytes, 1)


def _rows() -> tuple[Mma, ...]:
    f16, bf16, f32, f64, i32 = (DTYPES[name] for name in ("f16", "bf16", "f32", "f64", "i32"))
    out = [Mma(16, 8, k, f16, f16, c, arch, f"{c}.f16.f16.{c}") for k, arch in ((8, 75), (16, 80)) for c in (f32, f16)]
    out += [Mma(16, 8, k, bf16, bf16, f32, 80, "f32.bf16.bf16.f32") for k in (8, 16)]
    out += [Mma(16, 8, k, f32, f32, f32, 80, "f32.tf32.tf32.f32", significand=11) for k in (4, 8)]
    out += [Mma(8, 8, 4, f64, f64, f64, 80, "f64.f64.f64.f64")]
    signs = (("i8", "s8"), ("u8", "u8"))
    for m, k, arch in ((8, 16, 75), (16, 16, 80), (16, 32, 80)):
        out += [Mma(m, 8, k, DTYPES[a], DTYPES[b], i32, arch, f"s32.{x}.{y}.s32") for a, x in signs for b, y in signs]
    return tuple(out)


INSTRUCTIONS: dict[str, Mma] = {row.name: row for row in _rows()}
"""Every instruction, by its name."""
