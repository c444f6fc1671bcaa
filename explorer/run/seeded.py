"""Inputs made where they are used, from a seed: the same bits on the host (NumPy) and on the GPU (CUDA text).

Element ``i`` is a function of (seed, i) alone: SplitMix64's finaliser (G. Steele, D. Lea, C. Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014) applied to the i-th step of its counter.  Every later operation is exact or
rounds once, so that both sides agree bit for bit, f16 and bf16 included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..codegen.module import Buffer
from ..errors import DeviceError
from ..ir.dtype import f32_to_bf16

KINDS = ("normal", "uniform", "integers")
_STEP, _STREAM = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
_CHUNK = 1 << 15  # elements made at a time: their counters and fields stay in a processor's cache
_NORMAL_SCALE = (4 * (65536.0**2 - 1) / 12) ** -0.5  # one over the standard deviation of a sum of four 16-bit numbers

CUDA_TEXT = """
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

__device__ u64 mix(u64 i, u64 seed) {
    u64 z = (i + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
// Every operation is exact or spelled with its rounding, so that none is contracted.
__device__ double value(u64 h, int kind, long long low, u64 span, int wide, double offset, double scale) {
    if (kind == 2) return (double)(low + (long long)(((h >> 32) * span) >> 32));
    double z;
    if (kind == 1) {
        z = wide ? ((double)(h >> 11) - 4503599627370496.0) * 0x1p-52 : ((double)(h >> 40) - 8388608.0) * 0x1p-23;
    } else {
        int sum = (int)(h & 0xFFFF) + (int)(h >> 16 & 0xFFFF) + (int)(h >> 32 & 0xFFFF) + (int)(h >> 48) - 131070;
        z = wide ? __dmul_rn(sum, NORMAL_SCALE) : __fmul_rn(sum, (float)NORMAL_SCALE);
    }
    if (wide) return __dadd_rn(__dmul_rn(z, scale), offset);
    return __fadd_rn(__fmul_rn((float)z, (float)scale), (float)offset);
}
// what: 0 f16, 1 bf16, 2 f32, 3 f64, 4 i8 or bool, 5 i32, 6 i64
extern "C" __global__ void fill(void* out, u64 count, u64 seed, int kind, long long low, u64 span, int what, double offset,
                                double scale) {
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        double v = value(mix(i, seed), kind, low, span, what == 3, offset, scale);
        if (what == 0) {
            u16 half;
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"((float)v));
            ((u16*)out)[i] = half;
        } else if (what == 1) {
            u32 bits = __float_as_uint((float)v);
            ((u16*)out)[i] = (u16)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
        }
        else if (what == 2) ((float*)out)[i] = (float)v;
        else if (what == 3) ((double*)out)[i] = v;
        else if (what == 4) ((signed char*)out)[i] = (signed char)v;
        else if (what == 5) ((int*)out)[i] = (int)v;
        else ((long long*)out)[i] = (long long)v;
    }
}
""".replace("NORMAL_SCALE", repr(_NORMAL_SCALE))
CUDA_TYPES = {"f16": 0, "bf16": 1, "f32": 2, "f64": 3, "i8": 4, "bool": 4, "i32": 5, "i64": 6}


@dataclass(frozen=True)
class Seeded:
    """An input described instead of held: give it to a device in place of an array.

    Attributes
    ----------
    seed : int
        Give each input its own.
    kind : str
        ``"normal"``: mean 0, variance 1 (a sum of four uniform numbers, so within ±3.47).
        ``"uniform"``: in [-1, 1).  ``"integers"``: in [low, high), for every type (exact while it can hold them).
    low, high : int
        Of ``"integers"`` alone.
    offset, scale : float
        The real kinds give ``offset + scale * z``, computed in f32 (f64 for f64) and then rounded to the array's type.
    """

    seed: int = 0
    kind: str = "normal"
    low: int = 0
    high: int = 2
    offset: float = 0.0
    scale: float = 1.0

    def check(self, buffer: Buffer) -> None:
        """Refuse what cannot be made.

        Raises
        ------
        DeviceError
            For an unknown kind, an empty range, or real numbers in an integer array.
        """
        if self.kind not in KINDS:
            raise DeviceError(f"No seeded input of kind {self.kind!r}.", hint=f"one of {', '.join(KINDS)}")
        if self.kind == "integers" and not 0 < self.high - self.low <= 2**32:
            raise DeviceError(f"The range [{self.low}, {self.high}) of a seeded input is empty or wider than 32 bits.")
        if self.kind != "integers" and buffer.dtype.kind != "float":
            raise DeviceError(f"{buffer.name} holds {buffer.dtype}, so a {self.kind} input does not fit it.",
                              hint='Seeded(seed, "integers", low, high)')

    def host(self, buffer: Buffer) -> np.ndarray:
        """The same values as a NumPy array of the buffer's shape and type (bf16 as its bits)."""
        self.check(buffer)
        out = np.empty(buffer.size, dtype=buffer.dtype.numpy)
        for start in range(0, buffer.size, _CHUNK):
            stop = min(start + _CHUNK, buffer.size)
            out[start:stop] = self._values(start, stop, buffer.dtype.name)
        return out.reshape(buffer.shape)

    def _values(self, start: int, stop: int, dtype: str) -> np.ndarray:
        """Elements [start, stop) of the flattened array, in the type that rounds last."""
        h = _mix(np.arange(start, stop, dtype=np.uint64), self.seed)
        wide = dtype == "f64"
        if self.kind == "integers":
            drawn = ((h >> np.uint64(32)) * np.uint64(self.high - self.low)) >> np.uint64(32)
            values = drawn.astype(np.int64) + self.low
        elif self.kind == "uniform":
            values = ((h >> np.uint64(11)).astype(np.float64) - 2.0**52) * 2.0**-52 if wide else \
                ((h >> np.uint64(40)).astype(np.float32) - np.float32(2.0**23)) * np.float32(2.0**-23)
        else:
            fields = [(h >> np.uint64(16 * k) & np.uint64(0xFFFF)).astype(np.int32) for k in range(4)]
            total = fields[0] + fields[1] + fields[2] + fields[3] - 131070
            values = total * _NORMAL_SCALE if wide else total.astype(np.float32) * np.float32(_NORMAL_SCALE)
        if self.kind != "integers" and (self.offset, self.scale) != (0.0, 1.0):
            values = values * values.dtype.type(self.scale) + values.dtype.type(self.offset)
        return f32_to_bf16(values) if dtype == "bf16" else values


def _mix(index: np.ndarray, seed: int) -> np.ndarray:
    """SplitMix64 at a counter."""
    z = (index + np.uint64(1)) * np.uint64(_STEP) + np.uint64(seed * _STREAM % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
