"""Inputs made where they are used, from a seed: the same bits on the host (NumPy) and on the GPU (CUDA text).

Element ``i`` is a function of (seed, i) alone: SplitMix64's finaliser (G. Steele, D. Lea, C. Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014) applied to the i-th step of its counter.  Every later operation is exact or
rounds once, so that both sides agree bit for bit, the narrow floats included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import DeviceError
from ...ir.coding import coded, encoded
from ...kernel.module import Buffer

KINDS = ("normal", "uniform", "integers", "sparse", "groups", "peaks")
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
// Of a group of elements the first, the last, any or a few, and the rest.
__device__ double peaked(u64 i, u64 h, u64 seed, long long low, u64 turn, u64 every, long long rest, u64 inner, u64 outer,
                         u64 count) {
    u64 group = i / inner % outer, length = count / outer, place = i / (inner * outer) * inner + i % inner;
    u64 own = mix(group, seed), form = (group + 1 == outer ? 1 + turn : group + turn) & 3;
    bool peak = form == 0 ? place == 0 : form == 1 ? place == length - 1 : form == 2 ? place == (own >> 8) % length
                : (h & 0xFFFFFFFF) % every == 0;
    return (double)(peak ? low * (long long)(1 + own % 3) : rest);
}
// Of a group of elements: one number, all small, all near 1, scaled with the group, or one number but for a pair around it.
__device__ double grouped(u64 i, u64 h, u64 seed, u64 inner, u64 outer, u64 count) {
    u64 group = i / inner % outer, length = count / outer, place = i / (inner * outer) * inner + i % inner;
    u64 own = mix(group, seed), first = (own >> 8) % length;
    int d = (int)(h >> 32 & 7), form = outer > 1 ? (int)((mix(group, 0) >> 20) % 5) : 4;
    double one = (double)((int)(own & 3) + 1) * (own & 4 ? -1.0 : 1.0);
    if (form == 1) return (2 * d - 7) * 0x1p-9;
    if (form == 2) return 1.0 + (d % 3 - 1) * 0x1p-7;
    if (form == 3) return (d + 1) * (h >> 40 & 1 ? -1.0 : 1.0) / (double)(1 << (int)(group & 7));
    if (form == 4 && length > 1) return one + (place == first ? 8.0 : place == (first + length / 2) % length ? -8.0 : 0.0);
    return one;
}
// Every operation is exact or spelled with its rounding, so that none is contracted.
__device__ double value(u64 h, int kind, long long low, u64 span, int wide, double offset, double scale,
                        u64 every, long long rest) {
    if (kind == 2) return (double)(low + (long long)(((h >> 32) * span) >> 32));
    if (kind == 3) return (h & 0xFFFFFFFF) % every == 0 ? (double)(low + (long long)(((h >> 32) * span) >> 32)) : (double)rest;
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
// The code of the nearest 8-bit float: its layout as explorer/ir/coding.py has it.
__device__ unsigned char small(double v, int fraction, int lowest, int top, double largest) {
    double size = fmin(fabs(v), largest);
    int exponent = size > 0.0 ? max(ilogb(size), lowest) : lowest;
    int code = (int)rint(ldexp(size, fraction - exponent)) + ((exponent - lowest) << fraction);
    return (unsigned char)(min(code, top) | (v < 0.0 ? 0x80 : 0));
}
// what: 0 f16, 1 bf16, 2 f32, 3 f64, 4 i8, u8 or bool, 5 i32 or u32, 6 i64 or u64, 7 u16, 8 f8e4m3, 9 f8e5m2
extern "C" __global__ void fill(void* out, u64 count, u64 seed, int kind, long long low, u64 span, int what, double offset,
                                double scale, u64 every, long long rest, u64 inner, u64 outer) {
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        u64 h = mix(i, seed);
        double v = kind == 4 ? grouped(i, h, seed, inner, outer, count)
                   : kind == 5 ? peaked(i, h, seed, low, span - 1, every, rest, inner, outer, count)
                               : value(h, kind, low, span, what == 3, offset, scale, every, rest);
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
        else if (what == 4) ((signed char*)out)[i] = (signed char)(long long)v;
        else if (what == 5) ((int*)out)[i] = (int)(long long)v;
        else if (what == 7) ((u16*)out)[i] = (u16)v;
        else if (what >= 8) ((unsigned char*)out)[i] = what == 8 ? small(v, 3, -6, 0x7E, 448.0) : small(v, 2, -14, 0x7B, 57344.0);
        else ((long long*)out)[i] = (long long)v;
    }
}
""".replace("NORMAL_SCALE", repr(_NORMAL_SCALE))
CUDA_TYPES = {"f16": 0, "bf16": 1, "f32": 2, "f64": 3,
              "i8": 4, "u8": 4, "bool": 4, "i32": 5, "u32": 5, "i64": 6, "u64": 6, "u16": 7, "f8e4m3": 8, "f8e5m2": 9}


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
        ``"sparse"``: the same in one element of `every`, and `rest` in the others.
        ``"groups"``: element ``i`` is of group ``i // inner % outer``; the elements of a group are all one number, or all small
        (variance 8e-5), or all near 1 (variance 4e-5), or integers scaled by a power of two of the group's, or one number but
        for two elements that are as far above it as below (a mean that is exact); one group alone is of the last form.
        ``"peaks"``: of such a group the first element, the last, any one, or one in `every`, is `low`, twice or three times that,
        and the others are `rest`; the first group's form is the one of number ``high - low - 1``,
        the last one's the next.
    low, high, every, rest, inner, outer : int
        Of these kinds alone.
    offset, scale : float
        The real kinds give ``offset + scale * z``, computed in f32 (f64 for f64) and then rounded to the array's type.
    """

    seed: int = 0
    kind: str = "normal"
    low: int = 0
    high: int = 2
    offset: float = 0.0
    scale: float = 1.0
    every: int = 1
    rest: int = 0
    inner: int = 1
    outer: int = 1

    @property
    def whole(self) -> bool:
        """Whether all values are integers."""
        return self.kind in ("integers", "sparse", "peaks")

    def check(self, buffer: Buffer) -> None:
        """Refuse what cannot be made.

        Raises
        ------
        DeviceError
            For an unknown kind, an empty range, or real numbers in an integer array.
        """
        if self.kind not in KINDS:
            raise DeviceError(f"No seeded input of kind {self.kind!r}.", hint=f"one of {', '.join(KINDS)}")
        if self.whole and not 0 < self.high - self.low <= 2**32:
            raise DeviceError(f"The range [{self.low}, {self.high}) of a seeded input is empty or wider than 32 bits.")
        if not self.whole and buffer.dtype.kind != "float":
            raise DeviceError(f"{buffer.name} holds {buffer.dtype}, so a {self.kind} input does not fit it.",
                              hint='Seeded(seed, "integers", low, high)')

    def host(self, buffer: Buffer) -> np.ndarray:
        """The same values as a NumPy array of the buffer's shape and type (bf16 and 8-bit floats as their bits)."""
        self.check(buffer)
        out = np.empty(buffer.size, dtype=buffer.dtype.numpy)
        for start in range(0, buffer.size, _CHUNK):
            stop = min(start + _CHUNK, buffer.size)
            out[start:stop] = self._values(start, stop, buffer)
        return out.reshape(buffer.shape)

    def _values(self, start: int, stop: int, buffer: Buffer) -> np.ndarray:
        """Elements [start, stop) of the flattened array, in the type that rounds last."""
        h = _mix(np.arange(start, stop, dtype=np.uint64), self.seed)
        wide = buffer.dtype.name == "f64"
        if self.kind == "groups":
            index = np.arange(start, stop, dtype=np.uint64)
            values = self._grouped(index, h, buffer.size).astype(np.float64 if wide else np.float32)
        elif self.kind == "peaks":
            values = self._peaked(np.arange(start, stop, dtype=np.uint64), h, buffer.size)
        elif self.whole:
            drawn = ((h >> np.uint64(32)) * np.uint64(self.high - self.low)) >> np.uint64(32)
            values = drawn.astype(np.int64) + self.low
            if self.kind == "sparse":
                values = np.where((h & np.uint64(0xFFFFFFFF)) % np.uint64(self.every) == 0, values, self.rest)
        elif self.kind == "uniform":
            values = ((h >> np.uint64(11)).astype(np.float64) - 2.0**52) * 2.0**-52 if wide else \
                ((h >> np.uint64(40)).astype(np.float32) - np.float32(2.0**23)) * np.float32(2.0**-23)
        else:
            fields = [(h >> np.uint64(16 * k) & np.uint64(0xFFFF)).astype(np.int32) for k in range(4)]
            total = fields[0] + fields[1] + fields[2] + fields[3] - 131070
            values = total * _NORMAL_SCALE if wide else total.astype(np.float32) * np.float32(_NORMAL_SCALE)
        if self.kind in ("normal", "uniform") and (self.offset, self.scale) != (0.0, 1.0):
            values = values * values.dtype.type(self.scale) + values.dtype.type(self.offset)
        return encoded(values, buffer.dtype) if coded(buffer.dtype) else values

    def _places(self, index: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.uint64]:
        """Each element's group, the group's own random number, the place in it, and how many there are."""
        inner, outer, length = (np.uint64(v) for v in (self.inner, self.outer, max(count // self.outer, 1)))
        group = index // inner % outer
        return group, _mix(group, self.seed), index // (inner * outer) * inner + index % inner, length

    def _grouped(self, index: np.ndarray, h: np.ndarray, count: int) -> np.ndarray:
        group, own, place, length = self._places(index, count)
        d, first = (h >> np.uint64(32) & np.uint64(7)).astype(np.int64), (own >> np.uint64(8)) % length
        one = ((own & np.uint64(3)).astype(np.int64) + 1) * np.where(own & np.uint64(4), -1.0, 1.0)
        scaled = (d + 1) * np.where(h >> np.uint64(40) & np.uint64(1), -1.0, 1.0) / 2.0 ** (group & np.uint64(7)).astype(np.int64)
        second = (first + length // np.uint64(2)) % length
        pair = one + np.where(place == first, 8.0, np.where(place == second, -8.0, 0.0)) * (length > 1)
        form = (_mix(group, 0) >> np.uint64(20)) % np.uint64(5) if self.outer > 1 else np.full_like(index, 4)
        return np.choose(form.astype(np.int64), [one, (2 * d - 7) * 2.0**-9, 1.0 + (d % 3 - 1) * 2.0**-7, scaled, pair])

    def _peaked(self, index: np.ndarray, h: np.ndarray, count: int) -> np.ndarray:
        group, own, place, length = self._places(index, count)
        first = np.where(group + np.uint64(1) == np.uint64(self.outer), np.uint64(1), group)  # the last row ends with its peak
        form = ((first + np.uint64(self.high - self.low - 1)) & np.uint64(3)).astype(np.int64)
        few = (h & np.uint64(0xFFFFFFFF)) % np.uint64(self.every) == 0
        peak = np.choose(form, [place == 0, place == length - np.uint64(1), place == (own >> np.uint64(8)) % length, few])
        return np.where(peak, self.low * (1 + (own % np.uint64(3)).astype(np.int64)), self.rest)


def _mix(index: np.ndarray, seed: int) -> np.ndarray:
    """SplitMix64 at a counter."""
    z = (index + np.uint64(1)) * np.uint64(_STEP) + np.uint64(seed * _STREAM % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
