"""Inputs from a seed: what they are, and that the host and the CUDA text agree bit for bit."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from explorer.errors import DeviceError
from explorer.ir.dtype import DTYPES, bf16_to_f32
from explorer.kernel.module import Buffer
from explorer.run.inputs.seeded import CUDA_TEXT, CUDA_TYPES, KINDS, Seeded

SHIM = """
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
using std::max; using std::min; using std::fmin; using std::fabs; using std::ilogb; using std::rint; using std::ldexp;
#define __device__ static
#define __global__
struct Place { unsigned long long x; };
static Place blockIdx{0}, threadIdx{0};
static Place blockDim{1}, gridDim{1};
static double __dmul_rn(double a, double b) { return a * b; }
static double __dadd_rn(double a, double b) { return a + b; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fadd_rn(float a, float b) { return a + b; }
static unsigned __float_as_uint(float v) { unsigned bits; std::memcpy(&bits, &v, 4); return bits; }
static unsigned short half_of(float v) { _Float16 h = (_Float16)v; unsigned short bits; std::memcpy(&bits, &h, 2); return bits; }
"""
CASES = [Seeded(7), Seeded(2**63 + 5, "uniform"), Seeded(-3, "integers", -9, 100), Seeded(1, "normal", offset=1.0, scale=0.125),
         Seeded(2, "uniform", offset=0.3, scale=1.7), Seeded(4, "sparse", 1, 4, every=5, rest=-7),
         Seeded(5, "groups", inner=8, outer=50), Seeded(6, "groups"),
         Seeded(7, "peaks", -4, -2, every=9, rest=-32, inner=4, outer=10)]


def buffer(dtype: str, *shape: int) -> Buffer:
    return Buffer("x", DTYPES[dtype], shape, "in")


def test_a_normal_input_has_mean_zero_and_variance_one() -> None:
    x = Seeded(3).host(buffer("f32", 500, 400))
    assert x.shape == (500, 400)
    assert x.dtype == np.float32
    assert abs(x.mean()) < 0.01
    assert abs(x.var() - 1) < 0.01
    assert 3.0 < np.abs(x).max() < 3.47
    assert abs(np.corrcoef(x.ravel()[:-1], x.ravel()[1:])[0, 1]) < 0.01


def test_a_uniform_input_fills_its_range() -> None:
    for dtype in ("f32", "f64"):
        x = Seeded(3, "uniform").host(buffer(dtype, 200_000))
        assert (x >= -1).all()
        assert (x < 1).all()
        assert abs(x.mean()) < 0.01
        assert abs(x.var() - 1 / 3) < 0.01


def test_integers_take_every_value_of_their_range_and_no_other() -> None:
    for dtype in ("i32", "i64", "i8", "f32"):
        values, counts = np.unique(Seeded(0, "integers", -2, 3).host(buffer(dtype, 50_000)), return_counts=True)
        assert values.tolist() == [-2, -1, 0, 1, 2]
        assert counts.min() > 9500
    assert set(np.unique(Seeded(0, "integers").host(buffer("bool", 100)))) == {False, True}


def test_a_sparse_input_is_mostly_the_rest() -> None:
    values, counts = np.unique(Seeded(0, "sparse", 1, 3, every=10, rest=-9).host(buffer("f16", 50_000)), return_counts=True)
    assert values.tolist() == [-9, 1, 2]
    assert counts[0] > 44_000


def test_groups_are_constant_or_of_small_variance_or_scaled() -> None:
    for dtype in ("f32", "f64", "f16"):
        rows = Seeded(0, "groups", inner=100, outer=64).host(buffer(dtype, 64, 100)).astype(np.float64)
        variance = rows.var(axis=1)
        assert (variance == 0).sum() > 6
        assert ((variance > 1e-5) & (variance < 2e-4)).sum() > 8
        assert (variance > 1e-3).sum() > 12
        np.testing.assert_array_equal(rows, rows.astype(np.float16))
        pairs = [row for row in rows if np.unique(row).size == 3 and row.max() - row.min() == 16]
        assert len(pairs) > 6
        assert all(row.mean() == np.median(row) for row in pairs)
    assert np.unique(Seeded(3, "groups").host(buffer("f32", 100))).size == 3
    columns = Seeded(0, "groups", inner=1, outer=64).host(buffer("f32", 100, 64))
    assert (columns.var(axis=0) == 0).sum() > 6


def test_peaks_stand_at_both_ends_of_rows_and_within() -> None:
    for rows in (Seeded(0, "peaks", -8, -7, every=3, rest=-100, inner=30, outer=8).host(buffer("f32", 8, 30)),
                 Seeded(0, "peaks", -8, -7, every=3, rest=-100, outer=8).host(buffer("f32", 30, 8)).T):
        assert set(np.unique(rows)) <= {-8, -16, -24, -100}
        peaks = [np.flatnonzero(row > -100).tolist() for row in rows]
        assert peaks[0] == peaks[4] == [0]
        assert peaks[1] == peaks[5] == peaks[7] == [29], "the last row too ends with its peak"
        assert len(peaks[2]) == len(peaks[6]) == 1
        assert len(peaks[3]) > 2


def test_seeds_differ_and_repeat() -> None:
    one, two = Seeded(1).host(buffer("f32", 1000)), Seeded(2).host(buffer("f32", 1000))
    assert (one != two).mean() > 0.99
    np.testing.assert_array_equal(one, Seeded(1).host(buffer("f32", 1000)))


def test_an_element_depends_on_its_place_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Seeded(5).host(buffer("f32", 1000))
    monkeypatch.setattr("explorer.run.inputs.seeded._CHUNK", 7)
    np.testing.assert_array_equal(Seeded(5).host(buffer("f32", 1000)), whole)
    np.testing.assert_array_equal(Seeded(5).host(buffer("f32", 10, 50)).ravel(), whole[:500])


def test_the_narrow_types_are_the_wide_one_rounded() -> None:
    wide = Seeded(5).host(buffer("f32", 1000))
    np.testing.assert_array_equal(Seeded(5).host(buffer("f16", 1000)), wide.astype(np.float16))
    assert np.abs(bf16_to_f32(Seeded(5).host(buffer("bf16", 1000))) - wide).max() <= 2.0**-8 * 3.5


@pytest.mark.parametrize(("seeded", "dtype"), [(Seeded(0, "cauchy"), "f32"), (Seeded(0), "i32"), (Seeded(0, "uniform"), "bool"),
                                               (Seeded(0, "integers", 5, 5), "i32"), (Seeded(0, "integers", 0, 2**33), "i64")])
def test_what_cannot_be_made_is_refused(seeded: Seeded, dtype: str) -> None:
    with pytest.raises(DeviceError):
        seeded.host(buffer(dtype, 4))


@pytest.fixture(scope="module")
def cuda_text_on_the_host(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The CUDA text compiled as C++, the one PTX instruction in it (f32 to f16, to nearest) spelled as a cast."""
    folder: Path = tmp_path_factory.mktemp("seeded")
    conversion = 'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"((float)v));'
    assert conversion in CUDA_TEXT
    source = SHIM + CUDA_TEXT.replace(conversion, "half = half_of((float)v);")
    (folder / "fill.cpp").write_text(source)
    subprocess.run(["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC", "fill.cpp", "-o", "fill.so"],
                   cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "fill.so"))


@pytest.mark.parametrize("dtype", list(CUDA_TYPES))
@pytest.mark.parametrize("seeded", CASES, ids=lambda s: s.kind)
def test_the_cuda_text_makes_the_same_bits(cuda_text_on_the_host: ctypes.CDLL, dtype: str, seeded: Seeded) -> None:
    wanted = buffer(dtype, 5000)
    if wanted.dtype.kind != "float" and not seeded.whole:
        seeded = Seeded(seeded.seed, "integers", 0, 2)
    if dtype == "bool":
        seeded = Seeded(seeded.seed, "integers", 0, 2)
    out = np.empty(wanted.shape, wanted.dtype.numpy)
    cuda_text_on_the_host.fill(
        out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(out.size), ctypes.c_uint64(seeded.seed % 2**64),
        ctypes.c_int(KINDS.index(seeded.kind)), ctypes.c_int64(seeded.low), ctypes.c_uint64(seeded.high - seeded.low),
        ctypes.c_int(CUDA_TYPES[dtype]), ctypes.c_double(seeded.offset), ctypes.c_double(seeded.scale),
        ctypes.c_uint64(seeded.every), ctypes.c_int64(seeded.rest), ctypes.c_uint64(seeded.inner), ctypes.c_uint64(seeded.outer))
    np.testing.assert_array_equal(out.view(np.uint8), seeded.host(wanted).view(np.uint8))
