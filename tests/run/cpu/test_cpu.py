"""The CPU device computes what the CUDA text says, in both builds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import CompileError, DeviceError
from explorer.ir.dtype import DTYPES, bf16_to_f32, f32_to_bf16
from explorer.kernel.module import Buffer, Launch
from explorer.run.cpu.device import CpuDevice
from tests.run.cpu.cpu_kernels import ROW_SUM, body, edited, module, row_sum

BOTH = pytest.mark.parametrize("device", [CpuDevice(seeds=4), CpuDevice(checked=False, threads=3)], ids=["checked", "fast"])


@BOTH
def test_row_sum(device: CpuDevice) -> None:
    x = np.random.default_rng(0).standard_normal((5, 1000)).astype(np.float16)
    before = x.copy()
    y = device.run(device.build(row_sum()), {"x": x})["y"]
    np.testing.assert_allclose(y, x.astype(np.float64).sum(1), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(x, before)


@BOTH
def test_grid_and_block_have_three_axes(device: CpuDevice) -> None:
    text = body(
        "  const int g = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);\n"
        "  const int l = t + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);\n  y[g * 30 + l] = g * 30 + l;",
        "float* y",
    )
    built = device.build(module(text, {"y": ("f32", 30 * 24, "out")}, (5, 3, 2), (4, 3, 2)))
    np.testing.assert_array_equal(device.run(built, {})["y"], np.arange(720, dtype=np.float32))


@BOTH
def test_every_type_travels(device: CpuDevice) -> None:
    text = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + body(
        "  h[t] = __float2half_rn(__half2float(h[t]) * 2.0f); b[t] = __float2bfloat16_rn(__bfloat162float(b[t]) / 3.0f);\n"
        "  d[t] = d[t] / 3.0; c[t] = c[t] + 1; i[t] += 1; l[t] *= 3; q[t] = !q[t];",
        "__half* h, __nv_bfloat16* b, double* d, signed char* c, int* i, long long* l, bool* q",
    )
    kinds = {"h": "f16", "b": "bf16", "d": "f64", "c": "i8", "i": "i32", "l": "i64", "q": "bool"}
    built = device.build(module(text, {name: (kind, 32, "inout") for name, kind in kinds.items()}))
    r = np.random.default_rng(1)
    f = r.standard_normal(32).astype(np.float32)
    arrays = {
        "h": f.astype(np.float16),
        "b": f32_to_bf16(f),
        "d": r.standard_normal(32),
        "c": r.integers(-99, 99, 32).astype(np.int8),
        "i": r.integers(-9, 9, 32).astype(np.int32),
        "l": r.integers(-(2**40), 2**40, 32),
        "q": r.random(32) < 0.5,
    }
    got = device.run(built, arrays)
    np.testing.assert_array_equal(got["h"], arrays["h"] * np.float16(2))
    np.testing.assert_array_equal(got["b"], f32_to_bf16(bf16_to_f32(arrays["b"]) / np.float32(3)))
    np.testing.assert_array_equal(got["d"], arrays["d"] / 3)
    for name, expected in (("c", arrays["c"] + 1), ("i", arrays["i"] + 1), ("l", arrays["l"] * 3), ("q", ~arrays["q"])):
        np.testing.assert_array_equal(got[name], expected)


@pytest.mark.parametrize("fast", [False, True], ids=["software", "native"])
def test_half_conversions_agree_with_numpy_everywhere(fast: bool) -> None:
    text = "#include <cuda_fp16.h>\n" + body(
        "  const int i = blockIdx.x * 256 + t; f[i] = __half2float(h[i]); g[i] = __float2half_rn(x[i]);",
        "const __half* h, const float* x, float* f, __half* g",
    )
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    r = np.random.default_rng(2)
    exact = halves.astype(np.float32)
    with np.errstate(all="ignore"):
        near = [exact, np.nextafter(exact, np.float32(np.inf)), r.integers(0, 2**32, 65536, dtype=np.uint32).view(np.float32)]
        ordered = np.sort(halves[np.isfinite(halves)]).astype(np.float32)
        ties = np.resize((ordered[1:] + ordered[:-1]) / 2, 65536)
    device = CpuDevice(checked=not fast, seeds=1)
    shapes = {"h": ("f16", 65536, "in"), "x": ("f32", 65536, "in"), "f": ("f32", 65536, "out"), "g": ("f16", 65536, "out")}
    built = device.build(module(text, shapes, 256, 256))
    for x in (*near, ties.astype(np.float32)):
        got = device.run(built, {"h": halves, "x": x})
        np.testing.assert_array_equal(got["f"], exact)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got["g"], x.astype(np.float16))


@BOTH
def test_shuffles_and_votes(device: CpuDevice) -> None:
    text = body(
        """  int* o = y + t * 8;
  o[0] = __shfl_sync(0xffffffffu, t, 5, 8);
  o[1] = __shfl_up_sync(0xffffffffu, t, 3); o[2] = __shfl_down_sync(0xffffffffu, t, 4, 16);
  o[3] = __shfl_xor_sync(0xffffffffu, t, 6);
  o[4] = __ballot_sync(0xffffffffu, t % 3 == 0); o[5] = __any_sync(0xffffffffu, t == 40);
  o[6] = __all_sync(0xffffffffu, t < 32); o[7] = __syncthreads_count(t % 5 == 0);""",
        "int* y",
    )
    got = device.run(device.build(module(text, {"y": ("i32", (64, 8), "out")}, 64)), {})["y"].T
    t = np.arange(64)
    lane, first = t % 32, t // 32 * 32
    np.testing.assert_array_equal(got[0], t // 8 * 8 + 5)
    np.testing.assert_array_equal(got[1], np.where(lane >= 3, t - 3, t))
    np.testing.assert_array_equal(got[2], np.where(t % 16 + 4 < 16, t + 4, t))
    np.testing.assert_array_equal(got[3], t ^ 6)
    ballot = [sum(1 << i for i in range(32) if (w + i) % 3 == 0) for w in (0, 32)]
    np.testing.assert_array_equal(got[4].view(np.uint32), np.repeat(np.array(ballot, np.uint32), 32))
    np.testing.assert_array_equal(got[5], first == 32)
    np.testing.assert_array_equal(got[6], first == 0)
    np.testing.assert_array_equal(got[7], 13)


@BOTH
def test_half_warps_may_synchronise_apart(device: CpuDevice) -> None:
    text = body(
        """  const unsigned mask = t < 16 ? 0xffffu : 0xffff0000u;
  float v = t;
  if (t < 16) { for (int d = 8; d; d /= 2) v += __shfl_xor_sync(mask, v, d); __syncwarp(mask); }
  else for (int d = 8; d; d /= 2) v = fmaxf(v, __shfl_xor_sync(mask, v, d));
  y[t] = v;""",
        "float* y",
    )
    got = device.run(device.build(module(text, {"y": ("f32", 32, "out")})), {})["y"]
    np.testing.assert_array_equal(got, np.where(np.arange(32) < 16, 120, 31))


@BOTH
def test_dynamic_shared_memory_and_scalars(device: CpuDevice) -> None:
    text = (
        'extern "C" __global__ void kernel(const float* x, float* y, int shift, int scale) {\n'
        "  extern __shared__ __align__(16) unsigned char shared_memory[];\n  float* s = (float*)shared_memory;\n"
        "  s[threadIdx.x] = x[threadIdx.x];\n  __syncthreads();\n  y[threadIdx.x] = s[(threadIdx.x + shift) % 64] * scale;\n}\n"
    )
    built = device.build(module(text, {"x": ("f32", 64, "in"), "y": ("f32", 64, "out")}, 64, dynamic=256, scalars=(3, -2)))
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(device.run(built, {"x": x})["y"], -2 * np.roll(x, -3))


@BOTH
def test_a_recursive_block_keeps_its_locals(device: CpuDevice) -> None:
    """Threads that block many times have stacks of their own."""
    text = body(
        "  __shared__ float s[96]; float mine[20]; for (int k = 0; k < 20; ++k) { s[t] = t + k; __syncthreads();\n"
        "  mine[k] = s[(t + 1) % 96]; __syncthreads(); } float v = 0; for (int k = 0; k < 20; ++k) v += mine[k]; y[t] = v;",
        "float* y",
    )
    got = device.run(device.build(module(text, {"y": ("f32", 96, "out")}, 96)), {})["y"]
    np.testing.assert_array_equal(got, 20.0 * ((np.arange(96) + 1) % 96) + 190)


@BOTH
def test_launches_run_in_order_and_workspaces_carry(device: CpuDevice) -> None:
    text = (
        'extern "C" __global__ void first(const float* x, float* w) { w[threadIdx.x] = 2 * x[threadIdx.x]; }\n'
        'extern "C" __global__ void second(const float* w, float* y) { y[threadIdx.x] = w[31 - threadIdx.x] + 1; }\n'
    )
    base = module(text, {"x": ("f32", 32, "in"), "y": ("f32", 32, "out")})
    both = replace(
        base,
        buffers=(*base.buffers, Buffer("w", DTYPES["f32"], (32,), "workspace")),
        launches=(Launch("first", (1, 1, 1), (32, 1, 1), ("x", "w")), Launch("second", (1, 1, 1), (32, 1, 1), ("w", "y"))),
    )
    x = np.arange(32, dtype=np.float32)
    got = device.run(device.build(both), {"x": x})
    np.testing.assert_array_equal(got["y"], 2 * x[::-1] + 1)
    assert set(got) == {"y"}


def test_outputs_start_poisoned() -> None:
    text = body("  if (t < 16) y[t] = 1.0f;", "float* y")
    for device in (CpuDevice(), CpuDevice(checked=False)):
        got = device.run(device.build(module(text, {"y": ("f32", 32, "out")})), {})["y"]
        assert np.isnan(got[16:]).all()
        assert (got[:16] == 1).all()


def test_time_gives_a_sample_per_repeat_and_changes_nothing() -> None:
    device = CpuDevice(checked=False)
    x = np.ones((5, 1000), np.float16)
    for built in (device.build(row_sum()), CpuDevice().build(row_sum())):
        samples = device.time(built, {"x": x}, repeats=7, warmup=1)
        assert len(samples) == 7
        assert all(s > 0 for s in samples)
    assert (x == 1).all()


def test_arrays_are_checked_before_anything_runs() -> None:
    device = CpuDevice()
    built = device.build(row_sum())
    with pytest.raises(DeviceError, match="no array was given for x"):
        device.run(built, {})
    with pytest.raises(DeviceError, match="does not fit"):
        device.run(built, {"x": np.ones((5, 999), np.float16)})
    with pytest.raises(DeviceError, match="does not fit"):
        device.run(built, {"x": np.ones((5, 1000), np.float32)})


def test_many_modules_in_one_program_keep_their_names_and_memory_apart() -> None:
    device = CpuDevice(seeds=2)
    texts = [
        body(
            f"  extern __shared__ unsigned char shared_memory[]; __shared__ int s[32]; s[31 - t] = {k}; shared_memory[t] = {k};\n"
            "  __syncthreads(); y[t] = s[t] + shared_memory[31 - t];",
            "int* y",
        )
        for k in range(40)
    ]
    built = device.build_many([module(text, {"y": ("i32", 32, "out")}, dynamic=32) for text in texts])
    assert len({b.program for b in built}) == 2
    for k, b in enumerate(built):
        np.testing.assert_array_equal(device.run(b, {})["y"], np.full(32, 2 * k))


def test_compile_error_names_line_nodes_and_module() -> None:
    bad = row_sum(edited(ROW_SUM, "x[i * 1000 + k]", "x[i * 1000 + q]"))
    with pytest.raises(CompileError, match=r"'q' was not declared|undeclared identifier 'q'") as caught:
        CpuDevice().build(bad)
    assert caught.value.line == 8
    assert caught.value.nodes[0] == "S2"
    with pytest.raises(CompileError) as caught:
        CpuDevice().build_many([row_sum(), row_sum(rows=7), bad])
    assert caught.value.index == 2
    assert caught.value.line == 8
    assert "m2_" not in str(caught.value)


def test_wrong_number_of_arguments_is_named() -> None:
    good = row_sum()
    bad = replace(good, launches=(replace(good.launches[0], arguments=("x", "y", "y")),))
    device = CpuDevice()
    with pytest.raises(DeviceError, match="2 parameters but is launched with 3"):
        device.run(device.build(bad), {"x": np.ones((5, 1000), np.float16)})
