"""Tensor instructions as data: shape, element types, the layouts of the operands, and where they exist.

``C += A * B`` on a tile of M x K times K x N elements: by the 32 lanes of one warp with all operands in registers (PTX ISA,
"mma.sync"), or by the 128 threads of a warpgroup with the factors in shared memory, the left one there or in registers
("wgmma.mma_async").  A row of a table is all that the package knows about an instruction: layouts say which lane holds what,
`ptx` is how it is written, and the device function is made from the row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from .dtype import DTYPES, DType
from .layout import GROUP, LANES, Layout, fragment, group_fragment

_HELD, _ASYNC = "_rs", "_async"
TF32 = 11
"""Bits of a tf32's significand."""
SUMS_OF_BYTES = 2.0**-13
"""Relative rounding error of sums of products of 8-bit floats, whatever the accumulator's type: Hopper's tensor cores keep about
14 bits of them (DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv:2412.19437, section 3.3.2)."""


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
    rounding : float
        Largest relative rounding error of one of its additions, where that is more than the accumulator's type has.
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
    rounding: float = 0.0

    lanes = LANES
    role = "lane"

    @property
    def shape(self) -> str:
        """``m16n8k16``."""
        return f"m{self.m}n{self.n}k{self.k}"

    def runs_on(self, arch: int) -> bool:
        """Whether GPUs of this compute capability, times ten, have it."""
        return arch >= self.arch

    @property
    def name(self) -> str:
        """``m16n8k16_f16_f16_f32``: the shape, and the types of A, B and the accumulator (tf32 is an f32 here)."""
        return f"{self.shape}_{_types_of(self)}"

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


def _types_of(row: Mma | Wgmma) -> str:
    """``f16_f16_f32``, as names have it."""
    a, b = ("tf32" if row.significand else str(d) for d in (row.a, row.b))
    return f"{a}_{b}_{row.c}"


def packed(dtype: DType) -> int:
    """Elements of a factor in one register of 32 bits, 1 for wider ones."""
    return max(4 // dtype.bytes, 1)


_BYTES = (("f8e4m3", "e4m3"), ("f8e5m2", "e5m2"))


def _rows() -> tuple[Mma, ...]:
    f16, bf16, f32, f64, i32 = (DTYPES[name] for name in ("f16", "bf16", "f32", "f64", "i32"))
    out = [Mma(16, 8, k, f16, f16, c, arch, f"{c}.f16.f16.{c}") for k, arch in ((8, 75), (16, 80)) for c in (f32, f16)]
    out += [Mma(16, 8, k, bf16, bf16, f32, 80, "f32.bf16.bf16.f32") for k in (8, 16)]
    out += [Mma(16, 8, k, f32, f32, f32, 80, "f32.tf32.tf32.f32", significand=TF32) for k in (4, 8)]
    out += [Mma(8, 8, 4, f64, f64, f64, 80, "f64.f64.f64.f64")]
    signs = (("i8", "s8"), ("u8", "u8"))
    for m, k, arch in ((8, 16, 75), (16, 16, 80), (16, 32, 80)):
        out += [Mma(m, 8, k, DTYPES[a], DTYPES[b], i32, arch, f"s32.{x}.{y}.s32") for a, x in signs for b, y in signs]
    out += [Mma(16, 8, 32, DTYPES[a], DTYPES[b], f32, 89, f"f32.{x}.{y}.f32", rounding=SUMS_OF_BYTES)
            for a, x in _BYTES for b, y in _BYTES]
    return tuple(out)


INSTRUCTIONS: dict[str, Mma] = {row.name: row for row in _rows()}
"""Every instruction, by its name."""


STEP_BYTES, MOST_STEPS = 32, 16
"""Bytes of a factor's row that one wgmma multiplies, and such steps at most that a text issues one behind the other."""


@dataclass(frozen=True)
class Wgmma:
    """Some ``wgmma.mma_async`` in a row: a tile of 64 x N x (steps times what 32 bytes hold).

    They are issued together and are one group.  It is waited for at once, so that to the threads it is one synchronous
    instruction; or it stays in flight up to a wait further on: until then nobody may use its accumulator, except for another one
    of this shape, nor write what it reads.

    Attributes
    ----------
    n, steps : int
        Columns, and how many instructions follow each other along the depth.
    a, b, c : DType
        Element types of the factors, in shared memory, and of the accumulator, in registers.
    types : str
        Types as PTX names them, in the order of D, A, B.
    transposable : bool
        Whether a factor may have its depth along the rows: elements of 16 bits can.
    in_flight : bool
        Whether it is not waited for at once.
    held : bool
        Whether the left factor is in registers (the form ``RS``, "registers and shared", of CUTLASS): as an accumulator lies, so
        that what one product leaves can be the left factor of the next one.
    significand : int
        Bits that a factor keeps of its significand, 0 for all.
    """

    n: int
    steps: int
    a: DType
    b: DType
    c: DType
    types: str
    transposable: bool
    in_flight: bool = False
    held: bool = False
    significand: int = 0

    m = 64
    arch = 90
    lanes = GROUP
    role = "thread.x"

    @property
    def rounding(self) -> float:
        """Largest relative rounding error of an addition, where that is more than the accumulator's type has."""
        return SUMS_OF_BYTES if self.a.bytes == 1 and self.c.kind == "float" else 0.0

    @property
    def k(self) -> int:
        """Depth of the tile."""
        return self.steps * STEP_BYTES // self.a.bytes

    @property
    def shape(self) -> str:
        """``m64n256k64``."""
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def name(self) -> str:
        """``m64n256k64_f16_f16_f32``; behind it ``_rs`` for a left factor in registers, ``_async`` for what stays in flight."""
        return f"{self.shape}_{_types_of(self)}{self.form}"

    @property
    def form(self) -> str:
        """What stands behind the types in its name."""
        return f"{_HELD if self.held else ''}{_ASYNC if self.in_flight else ''}"

    @property
    def ptx(self) -> str:
        """One of the instructions without its operands."""
        return f"wgmma.mma_async.sync.aligned.m{self.m}n{self.n}k{STEP_BYTES // self.a.bytes}.{self.types}"

    @property
    def accumulator(self) -> Layout:
        """Rows and columns of C and D."""
        return group_fragment(self.n)

    @property
    def left(self) -> Layout | None:
        """Rows and columns of A in registers; None where it is in shared memory."""
        return group_fragment(self.k, packed(self.a)) if self.held else None

    @property
    def shared(self) -> tuple[int, ...]:
        """Which factors are in shared memory, 0 the left one."""
        return (1,) if self.held else (0, 1)

    def runs_on(self, arch: int) -> bool:
        """Whether GPUs of this compute capability, times ten, have it: Hopper's alone do (``sm_90a``)."""
        return arch == self.arch


@cache
def _group_types() -> dict[tuple[DType, DType, DType], str]:
    f16, bf16, f32, i32, i8, u8 = (DTYPES[name] for name in ("f16", "bf16", "f32", "i32", "i8", "u8"))
    signs = ((i8, "s8"), (u8, "u8"))
    return {(f16, f16, f32): "f32.f16.f16", (f16, f16, f16): "f16.f16.f16", (bf16, bf16, f32): "f32.bf16.bf16",
            **{(DTYPES[a], DTYPES[b], f32): f"f32.{x}.{y}" for a, x in _BYTES for b, y in _BYTES},
            **{(a, b, i32): f"s32.{x}.{y}" for a, x in signs for b, y in signs}}


def group_types() -> tuple[tuple[DType, DType, DType], ...]:
    """The element types of A, B and C that a warpgroup multiplies."""
    return tuple(_group_types())


@cache
def wgmma(m: int, n: int, k: int, a: DType, b: DType, c: DType, significand: int = 0) -> Wgmma | None:
    """The instructions of a warpgroup for a tile, or None where there are none of this shape."""
    types = _group_types().get((a, b, c)) if not significand else "f32.tf32.tf32" if {a.name, b.name, c.name} == {"f32"} else None
    step = STEP_BYTES // a.bytes
    if types is None or m != Wgmma.m or k % step or not 1 <= k // step <= MOST_STEPS:
        return None
    if n % 8 or not 8 <= n <= 256 or (c.kind == "int" and n > 32 and n % 16):
        return None
    return Wgmma(n, k // step, a, b, c, types, a.bytes == 2, significand=significand)


Instruction = Mma | Wgmma


@cache
def instruction(mechanism: str) -> Instruction | None:
    """The instruction that a leaf's mechanism names, or None."""
    if mechanism in INSTRUCTIONS:
        return INSTRUCTIONS[mechanism]
    plain = mechanism.removesuffix(_ASYNC)
    shape, _, types = plain.removesuffix(_HELD).partition("_")
    found, names = _SHAPE.fullmatch(shape), types.split("_")
    significand = TF32 if names[:2] == ["tf32", "tf32"] else 0
    names = ["f32", "f32", *names[2:]] if significand else names
    if not found or len(names) != 3 or not set(names) <= DTYPES.keys():
        return None
    m, n, k = map(int, found.groups())
    a, b, c = (DTYPES[name] for name in names)
    row = wgmma(m, n, k, a, b, c, significand)
    if row and plain.endswith(_HELD):
        row = with_left_held(row)
    return row if row is None or not mechanism.endswith(_ASYNC) else flying(row)


def with_left_held(row: Wgmma) -> Wgmma:
    """The same instructions with the left factor in registers."""
    return replace(row, held=True)


def flying(row: Wgmma) -> Wgmma | None:
    """The same instructions, left in flight; None for accumulators that are packed for them, and unpacked behind."""
    return replace(row, in_flight=True) if row.c.bytes >= 4 else None


def stays_in_flight(mechanism: str) -> bool:
    """Whether a mechanism is that of products that are not waited for at once."""
    return mechanism.endswith(_ASYNC)


_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
