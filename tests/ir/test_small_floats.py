"""The 8-bit floats: every code, and rounding to the nearest of them, against a definition by exact fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from explorer.ir.coding import SMALL, decoded, encoded
from explorer.ir.dtype import DTYPES
from explorer.run.cpu.device import CpuDevice
from tests.kernel.test_device_library import module

LAYOUT = {"f8e4m3": (4, 3, 7), "f8e5m2": (5, 2, 15)}
"""Bits of exponent and of fraction, and the bias."""


def number(name: str, code: int) -> Fraction | str:
    """What a code means, by the formula of the OCP specification, table 1."""
    bits, fraction, bias = LAYOUT[name]
    exponent, rest = code >> fraction & (1 << bits) - 1, code & (1 << fraction) - 1
    last = exponent == (1 << bits) - 1
    if name == "f8e4m3" and last and rest == 7:
        return "nan"
    if name == "f8e5m2" and last:
        return "nan" if rest else "inf"
    value = Fraction(rest, 1 << fraction) * Fraction(2) ** (1 - bias) if exponent == 0 else \
        (1 + Fraction(rest, 1 << fraction)) * Fraction(2) ** (exponent - bias)  # fmt: skip
    return -value if code >> 7 else value


def nearest(name: str, value: float) -> int:
    """The code of a number that is no NaN: the nearest finite one, of two the even one."""
    finite = [c for c in range(128) if isinstance(number(name, c), Fraction)]
    size = Fraction(abs(value)) if np.isfinite(value) else Fraction(10) ** 400
    top = max(finite)
    size = min(size, number(name, top))
    best = min(finite, key=lambda c: (abs(number(name, c) - size), c & 1))
    return best | (0x80 if np.signbit(value) else 0)


def samples(name: str) -> np.ndarray:
    """Every number, what lies between two neighbours and beside that, overflow, subnormals, and random bits."""
    codes = [c for c in range(128) if isinstance(number(name, c), Fraction)]
    values = [float(number(name, c)) for c in codes]
    middles = [(a + b) / 2 for a, b in itertools.pairwise(values)]
    near = [float(np.nextafter(np.float32(m), np.float32(to))) for m in middles for to in (-np.inf, np.inf)]
    step = values[-1] - values[-2]
    ends = [values[-1] + step / 2, values[-1] + step, values[-1] + step * 3 / 4, 1e6, 3e38, np.inf, 1e-45, 1e-38, values[1] / 4]
    r = np.random.default_rng(0)
    random = np.concatenate([r.standard_normal(500) * 10.0 ** r.integers(-7, 6, 500),
                             r.integers(0, 0x7F800000, 500, dtype=np.uint32).view(np.float32).astype(np.float64)])
    out = np.array([*values, *middles, *near, *ends, *random]).astype(np.float32)
    return np.concatenate([out, -out])


@pytest.mark.parametrize("name", LAYOUT)
def test_codes_and_rounding_in_numpy(name: str) -> None:
    dtype = DTYPES[name]
    codes = np.arange(256, dtype=np.uint8)
    wide = decoded(codes, dtype)
    for code in range(256):
        want = number(name, code)
        special = {"nan": np.isnan(wide[code]), "inf": np.isinf(wide[code])}
        assert special[want] if isinstance(want, str) else wide[code] == float(want)
        assert np.signbit(wide[code]) == bool(code >> 7) or want == "nan"
    finite = np.isfinite(wide)
    np.testing.assert_array_equal(encoded(wide, dtype)[finite], codes[finite], err_msg="every number is itself")
    x = samples(name)
    np.testing.assert_array_equal(encoded(x, dtype), [nearest(name, float(v)) for v in x])
    np.testing.assert_array_equal(encoded(x.astype(np.float64), dtype), encoded(x, dtype))
    assert np.isnan(decoded(encoded(np.array([np.nan, -np.nan]), dtype), dtype)).all()
    assert SMALL[name].largest == {"f8e4m3": 448.0, "f8e5m2": 57344.0}[name]
    assert SMALL[name].limit == {"f8e4m3": 464.0, "f8e5m2": 61440.0}[name]


@pytest.mark.parametrize("name", LAYOUT)
def test_the_hosts_header_has_the_same_codes(name: str) -> None:
    c, device = DTYPES[name].cuda, CpuDevice()
    x = samples(name)
    text = f"""#include <cuda_fp8.h>
extern "C" __global__ void kernel(const float* x, const {c}* k, {c}* y, {c}* z, float* w) {{
  const int t = blockIdx.x * 64 + threadIdx.x;
  if (t < {len(x)}) {{ y[t] = {c}(x[t]); z[t] = {c}((double)x[t]); }}
  if (t < 256) w[t] = float(k[t]);
}}
"""
    arrays = {"x": ("f32", len(x), "in"), "k": (name, 256, "in"), "y": (name, len(x), "out"), "z": (name, len(x), "out"),
              "w": ("f32", 256, "out")}  # fmt: skip
    made = module(text, arrays, 64, -(-len(x) // 64))
    codes = np.arange(256, dtype=np.uint8)
    got = device.run(device.build(made), {"x": x, "k": codes})
    np.testing.assert_array_equal(got["y"], encoded(x, DTYPES[name]))
    np.testing.assert_array_equal(got["z"], got["y"])
    np.testing.assert_array_equal(got["w"], decoded(codes, DTYPES[name]))
