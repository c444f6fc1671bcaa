"""Bits, shifts and unsigned types: what is accepted, what it means, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import explorer as ex
from explorer.errors import ProgramError
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from tests.frontend.support import define

M, N = ex.sizes("M N")


@ex.program
def mixed(x: ex.u32[M, N], b: ex.u8[M, N], w: ex.u64[N], k: ex.i32[M, N], h: ex.u32[M, N], top: ex.u64, total: ex.u32[M],
          best: ex.i32[M], least: ex.u16[M], s: ex.i32[M, N]):
    for i in range(M):
        for j in range(N):
            h[i, j] = ((x[i, j] ^ (x[i, j] << 13)) * 2654435761 + 7) >> 3 | (x[i, j] & 0xFF)
            s[i, j] = (~k[i, j] & b[i, j]) << k[i, j] ^ (k[i, j] >> (j & 31))
    top = 0
    for j in range(N):
        top = max(top, w[j] ^ (w[j] >> 5))
    for i in range(M):
        total[i] = 0
        least[i] = 65535
        for j in range(N):
            total[i] += b[i, j] * 3
            least[i] = min(least[i], b[i, j])
    for i in range(M):
        best[i] = ex.argmax(x[i, c] for c in range(N))


def test_bits_and_unsigned_types_are_what_numpy_makes_of_them() -> None:
    draw = np.random.default_rng(0)
    schedule = mixed.schedule(M=5, N=37)
    x, w = draw.integers(0, 2**32, (5, 37), np.uint32), draw.integers(0, 2**64, 37, np.uint64, endpoint=False)
    b, k = draw.integers(0, 256, (5, 37), np.uint8), draw.integers(-5, 70, (5, 37), np.int32)
    found = schedule.run({"x": x, "b": b, "w": w, "k": k}, device="cpu")
    assert found.correct, found
    got = found.outputs
    hashed = ((x ^ x << np.uint32(13)) * np.uint32(2654435761) + np.uint32(7)) >> np.uint32(3)
    assert (got["h"] == hashed | x & np.uint32(255)).all()
    assert (got["s"] == np.left_shift(~k & b.astype(np.int32), k) ^ k >> (np.arange(37, dtype=np.int32) & 31)).all()
    assert got["top"] == (w ^ w >> np.uint64(5)).max()
    assert (got["total"] == 3 * b.sum(1)).all()
    assert (got["best"] == x.argmax(1)).all()
    assert (got["least"] == b.min(1)).all()
    assert compile_module(emit(schedule.plan), "sm_90").kernels


def body(line: str) -> None:
    kinds = {"u": "u32", "v": "u64", "i": "i32", "x": "f32", "y": "u32", "z": "f32"}
    used = ", ".join(f"{name}: ex.{kind}[8]" for name, kind in kinds.items() if f"{name}[" in line)
    define(f"@ex.program\ndef f({used}):\n    for n in range(8):\n        {line}\n")


@pytest.mark.parametrize(("line", "says"), [
    ("y[n] = u[n] << 32", "a shift by 32 bits"), ("y[n] = u[n] >> -1", "a shift by -1 bits"),
    ("y[n] = u[n] + i[n]", "may be negative"),
    ("y[n] = u[n] - (n - 4)", "may be negative"), ("z[n] = 1.0 if u[n] < -1 else 0.0", "may be negative"), ("y[n] = -1", "-1"),
    ("y[n] = u[n] & 4294967296", "does not fit u32"), ("z[n] = x[n] ^ 2", "takes integers, not f32"),
    ("z[n] = ~x[n]", "takes integers"), ("z[n] = ex.floor(i[n])", "floor takes floats, not i32"),
    ("z[n] = ex.fmod(i[n], 3)", "fmod takes floats"), ("y[n] = ex.argmax_key(u[n], n)", "does not fit a key"),
])
def test_refused(line: str, says: str) -> None:
    with pytest.raises(ProgramError, match=says.replace("(", r"\(")):
        body(line)


@pytest.mark.parametrize("line", [
    "y[n] = u[n] << 31", "y[n] = u[n] + ex.cast(i[n], ex.u32)", "y[n] = u[n] + n", "y[n] = u[n] * 4294967295", "y[n] = -u[n]",
    "y[n] = ex.cast(v[n] >> 63, ex.u32)", "z[n] = x[n] * u[n]", "y[n] = u[n] // 3 % 5", "y[n] = u[n] << i[n]",
    "z[n] = ex.clamp(x[n], 0, 1)", "z[n] = ex.sin(i[n])", "z[n] = 1.0 if ex.isnan(x[n]) else round(x[n])",
    "y[n] = max(u[n], 3) + ex.cast(ex.floor(x[n]), ex.u32)",
])
def test_accepted(line: str) -> None:
    body(line)
