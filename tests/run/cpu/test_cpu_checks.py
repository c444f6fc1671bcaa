"""What the checked build must catch: each test is a kernel with one mistake, next to the same kernel without it."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import KernelFault, KernelTimeout
from explorer.kernel.device import library_text
from explorer.kernel.module import SharedArray
from explorer.run.cpu.compiler import find_compiler
from explorer.run.cpu.device import CpuDevice
from tests.run.cpu.cpu_kernels import F32, ROW_SUM, body, edited, module, row_sum

DEVICE = CpuDevice(seeds=4)
X = {"x": np.random.default_rng(0).standard_normal((5, 1000)).astype(np.float16)}


def fault(mod, arrays=None, device: CpuDevice = DEVICE) -> KernelFault:
    with pytest.raises(KernelFault) as caught:
        device.run(device.build(mod), arrays or {})
    return caught.value


def y(
    code: str,
    size: int = 32,
    block: int = 32,
    grid: int = 1,
    parameters: str = "float* y",
    kind: str = "out",
    dtype: str = "f32",
    dynamic: int = 0,
):
    return module(body(code, parameters), {"y": (dtype, size, kind)}, block, grid, dynamic=dynamic)


def clean(mod, arrays=None) -> dict[str, np.ndarray]:
    return DEVICE.run(DEVICE.build(mod), arrays or {})


# ---- the two mutations of a real kernel ----


def test_a_removed_barrier_is_found() -> None:
    error = fault(row_sum(edited(ROW_SUM, "  __syncthreads();\n", "\n")), X)
    assert error.kind in ("uninitialised", "race")
    assert error.array == "red"
    assert error.line == 18
    assert error.nodes[0] == "L0"


def test_one_iteration_too_many_is_found() -> None:
    error = fault(row_sum(edited(ROW_SUM, "k < 1000", "k <= 1000")), X)
    assert (error.kind, error.array, error.index, error.line, error.nodes[0]) == ("out-of-bounds", "x", (5, 0), 8, "S2")
    assert error.block == (4, 0, 0)
    assert error.thread == (232, 0, 0)
    assert error.write is False
    assert "total += __half2float(x[i * 1000 + k]);" in str(error)


def test_a_thread_order_finds_what_order_zero_hides() -> None:
    """Both builds of a kernel whose race happens to be benign in order: values are right there, and the race is still named."""
    code = "  __shared__ float s[32]; s[t] = t; y[t] = t ? s[t - 1] : 0.0f;"
    fast = CpuDevice(checked=False, threads=1)
    np.testing.assert_array_equal(fast.run(fast.build(y(code)), {})["y"], np.maximum(np.arange(32) - 1, 0))
    error = fault(y(code), device=CpuDevice(seeds=(0,)))
    assert error.kind == "race"
    assert "thread (0, 0, 0) of the same block wrote it at line 2" in str(error)
    clean(y(code.replace("= t;", "= t; __syncthreads();", 1)))
    clean(y(code.replace("= t;", "= t; __syncwarp();", 1)))


# ---- bounds ----


@pytest.mark.parametrize(
    ("code", "index"), [("  y[t + 1] = 0;", (32,)), ("  y[t - 1] = 0;", (-1,)), ("  y[100000 * t] = 0;", (100000,))]
)
def test_global_bounds(code: str, index: tuple[int, ...]) -> None:
    error = fault(y(code), device=CpuDevice(seeds=1))
    assert (error.kind, error.array, error.index, error.write) == ("out-of-bounds", "y", index, True)


def test_a_vector_access_may_not_leave_the_array() -> None:
    code = library_text(["vector"]) + body("  if (t < 8) *(vec<float, 4>*)&y[t * 4] = vec<float, 4>{{1, 2, 3, 4}};", "float* y")
    clean(module(code, {"y": ("f32", 32, "out")}))
    assert fault(module(code, {"y": ("f32", 30, "out")})).index in ((28,), (30,))


@pytest.mark.parametrize(
    "code",
    [
        "  __shared__ float s[32]; s[t + 1] = t;",
        "  __shared__ float s[4][8]; s[t / 8][t % 8 + (t == 15)] = t;",
        "  float r[4]; for (int k = 0; k <= t / 8 + 1; ++k) r[k] = t; y[t] = r[0];",
    ],
)
def test_bounds_of_shared_and_register_arrays(code: str) -> None:
    error = fault(y(code), device=CpuDevice(seeds=1))
    assert error.kind in ("array-bounds", "out-of-bounds")
    assert error.line == 2


def test_dynamic_shared_memory_ends_where_the_launch_says() -> None:
    code = "  extern __shared__ __align__(16) unsigned char shared_memory[]; float* s = (float*)shared_memory;\n"
    code += "  s[t] = t; y[t] = s[t];"
    clean(y(code, dynamic=128))
    assert fault(y(code, dynamic=124), device=CpuDevice(seeds=1)).thread == (31, 0, 0)


def test_null_and_wild_pointers() -> None:
    assert fault(y("  volatile size_t nowhere = 0; y[t] = *(float*)nowhere;")).kind == "wild-access"
    assert fault(y("  float* p = y + (1ll << 40); *p = t;")).kind == "wild-access"


def test_division_by_zero() -> None:
    assert fault(y("  volatile int zero = 0; y[t] = 7 / zero;")).kind == "division"


# ---- initialisation, inputs ----


def test_uninitialised_reads() -> None:
    code = "  __shared__ float s[32]; if (t < 31) s[t] = t; __syncthreads(); y[t] = s[t];"
    assert fault(y(code)).what == "kernel reads byte 124 of s before anything was written there."
    shared = (SharedArray("other", "s", F32, (2,)), SharedArray("kernel", "s", F32, (4, 8)))
    known = fault(replace(y(code), shared=shared))
    assert (known.index, known.what) == ((3, 7), "kernel reads s[3, 7] before anything was written there.")
    assert fault(y("  y[t] += 1;")).kind == "uninitialised"
    clean(y("  y[t] += 1;", kind="inout"), {"y": np.zeros(32, np.float32)})
    previous_block = (
        "  __shared__ float s[1]; if (blockIdx.x == 0 && t == 0) s[0] = 1; __syncthreads(); if (t == 0) y[blockIdx.x] = s[0];"
    )
    assert fault(y(previous_block, 2, grid=2)).kind == "uninitialised"


def test_inputs_are_read_only() -> None:
    assert fault(y("  y[t] = 0;", kind="in"), {"y": np.zeros(32, np.float32)}).kind == "read-only"


def test_misaligned_vectors() -> None:
    code = library_text(["vector"]) + body("  if (t < 4) *(vec<float, 4>*)&y[4 * t] = *(const vec<float, 4>*)&x[4 * t + SHIFT];")
    shapes = {"x": ("f32", 32, "in"), "y": ("f32", 32, "out")}
    arrays = {"x": np.arange(32, dtype=np.float32)}
    np.testing.assert_array_equal(clean(module(code.replace("SHIFT", "0"), shapes), arrays)["y"][:16], np.arange(16))
    assert fault(y("  *(double*)&y[t | 1] = 0;", 64)).kind == "misaligned"
    if find_compiler().kind == "gcc":  # clang turns an assignment of whole vectors into a copy without an alignment
        assert fault(module(code.replace("SHIFT", "2"), shapes), arrays).kind == "misaligned"


# ---- races ----

RACES = {
    "write-write": ("  y[0] = t;", 1, 32, 1),
    "write-write in another warp": ("  y[t % 32] = t;", 32, 64, 1),
    "blocks": ("  y[t] = blockIdx.x;", 32, 32, 2),
    "read-write between warps after __syncwarp": (
        "  __shared__ float s[64]; s[t] = t; __syncwarp(); y[t] = s[63 - t];",
        64,
        64,
        1,
    ),
    "second half of a loop": (
        "  __shared__ float s[32]; float v = 0;\n"
        "  for (int k = 0; k < 3; ++k) { s[t] = k; __syncthreads(); v += s[31 - t]; }\n  y[t] = v;",
        32,
        32,
        1,
    ),
    "a shuffle orders nothing": (
        "  __shared__ float s[32]; s[t] = t; __shfl_sync(0xffffffffu, t, 0); y[t] = s[31 - t];",
        32,
        32,
        1,
    ),
    "atomic against plain": ("  if (t == 0) y[0] = 0; else atomicAdd(&y[0], 1.0f);", 1, 32, 1),
    "half warps": (
        "  __shared__ float s[32]; s[t] = t; __syncwarp(t < 16 ? 0xffffu : 0xffff0000u); y[t] = s[31 - t];",
        32,
        32,
        1,
    ),
    "bytes of one word": ("  __shared__ signed char s[32]; s[t] = t; s[t ^ 1] = t; y[t] = t;", 32, 32, 1),
}
ORDERED = {
    "barrier": ("  __shared__ float s[64]; s[t] = t; __syncthreads(); y[t] = s[63 - t];", 64, 64, 1),
    "loop with two barriers": (
        "  __shared__ float s[32]; float v = 0;\n"
        "  for (int k = 0; k < 3; ++k) { __syncthreads(); s[t] = k; __syncthreads(); v += s[31 - t]; }\n  y[t] = v;",
        32,
        32,
        1,
    ),
    "half warps": (
        "  __shared__ float s[32]; s[t] = t; __syncwarp(t < 16 ? 0xffffu : 0xffff0000u); y[t] = s[t ^ 15];",
        32,
        32,
        1,
    ),
    "chain of half warps": (
        "  __shared__ float s[32]; s[t] = t; if (t < 16) __syncwarp(0xffffu); __syncwarp(); y[t] = s[31 - t];",
        32,
        32,
        1,
    ),
    "bytes of one word": ("  __shared__ signed char s[32]; s[t] = t; __syncthreads(); y[t] = s[t ^ 1];", 32, 32, 1),
    "readers": ("  __shared__ float s[1]; if (t == 3) s[0] = 1; __syncthreads(); y[t] = s[0];", 64, 64, 1),
}


@pytest.mark.parametrize("name", RACES)
def test_races_are_found_in_every_order(name: str) -> None:
    code, size, block, grid = RACES[name]
    for seed in range(4):
        assert fault(y(code, size, block, grid), device=CpuDevice(seeds=(seed,))).kind in ("race", "uninitialised")


@pytest.mark.parametrize("name", ORDERED)
def test_ordered_accesses_are_no_race(name: str) -> None:
    code, size, block, grid = ORDERED[name]
    clean(y(code, size, block, grid))


def test_atomics_do_not_race_with_atomics() -> None:
    got = clean(y("  atomicAdd(&y[t % 2], 1.0f);", 2, 64, 3, kind="inout"), {"y": np.zeros(2, np.float32)})
    np.testing.assert_array_equal(got["y"], [96, 96])


TICKET = """extern "C" __global__ void kernel(const float* x, float* partial, unsigned* ticket, float* y) {
  __shared__ bool last;
  partial[blockIdx.x * 32 + threadIdx.x] = 2 * x[blockIdx.x * 32 + threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  __syncthreads();
  if (last) {
    __threadfence();  // acquires
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += partial[b * 32 + threadIdx.x];
    y[threadIdx.x] = sum;
  }
}
"""


def test_the_last_block_may_read_what_fence_and_ticket_published() -> None:
    shapes = {
        "x": ("f32", 160, "in"),
        "partial": ("f32", 160, "workspace"),
        "ticket": ("i32", 1, "inout"),
        "y": ("f32", 32, "out"),
    }
    arrays = {"x": np.arange(160, dtype=np.float32), "ticket": np.zeros(1, np.int32)}
    got = clean(module(TICKET, shapes, 32, 5), arrays)["y"]
    np.testing.assert_array_equal(got, 2 * arrays["x"].reshape(5, 32).sum(0))
    for fence in ("  __threadfence();\n", "    __threadfence();  // acquires\n", "  __threadfence();\n  __syncthreads();\n"):
        error = fault(module(edited(TICKET, fence, "__threadfence();\n" if "sync" in fence else ""), shapes, 32, 5), arrays)
        assert error.kind == "race"
        assert error.array == "partial"


# ---- synchronisation ----


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("  if (t < 40) __syncthreads();\n  y[t % 32] = 0;", "barrier-divergence"),
        ("  if (t >= 40) return;\n  __syncthreads();", "barrier-divergence"),
        ("  if (t < 40) __syncthreads();\n  else __syncthreads();", "barrier-divergence"),
        ("  if (t < 16) __syncwarp();\n  else if (t < 32) __syncthreads();", "warp-divergence"),
        ("  if (t < 8) y[t] = __shfl_sync(0xffffu, t, 0);\n  else if (t < 16) __syncwarp(0xffffu);", "warp-divergence"),
        ("  y[t] = __shfl_sync(0xffffu, t, 0);", "warp-mask"),
        ("  assert(t < 40);", "trap"),
    ],
)
def test_threads_that_do_not_meet(code: str, kind: str) -> None:
    assert fault(y(code, 64, 64)).kind == kind


def test_a_shuffle_from_a_lane_that_does_not_take_part_gives_poison() -> None:
    got = clean(y("  if (t < 16) y[t] = __shfl_down_sync(0xffffu, (float)t, 8); else y[t] = 0;"))["y"]
    assert np.isnan(got[8:16]).all()
    assert (got[:8] == np.arange(8, 16)).all()


# ---- asynchronous copies ----

ASYNC = library_text(["async_copy"]) + body("""  __shared__ __align__(16) float s[2][32];
  async_copy<4>(&s[0][t], &x[t]);
  async_commit();
  async_copy<4>(&s[1][t], &x[t + 32], t < 30 ? 4 : 0);
  async_commit();
  async_wait<1>();
  __syncthreads();
  y[t] = s[0][31 - t];
  async_wait<0>();
  __syncthreads();
  y[t + 32] = s[1][31 - t];""")
SHAPES = {"x": ("f32", 62, "in"), "y": ("f32", 64, "out")}
ARRAYS = {"x": np.arange(62, dtype=np.float32)}


def test_asynchronous_copies_arrive_after_the_wait() -> None:
    expected = np.concatenate([np.arange(32)[::-1], np.append(np.arange(32, 62), [0, 0])[::-1]])
    for device in (DEVICE, CpuDevice(checked=False)):
        np.testing.assert_array_equal(device.run(device.build(module(ASYNC, SHAPES)), ARRAYS)["y"], expected)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("async_wait<1>();", "", "async-pending"),
        ("async_wait<1>();", "async_wait<2>();", "async-pending"),
        ("async_wait<0>();", "async_wait<1>();", "async-pending"),
        ("  async_wait<1>();\n  __syncthreads();", "  async_wait<1>();", ("async-pending", "race", "uninitialised")),
        ("t < 30 ? 4 : 0", "4", "out-of-bounds"),
        ("  y[t] = s[0]", "  async_copy<4>(&s[1][t], &x[t]); y[t] = s[0]", "async-pending"),
    ],
)
def test_mistakes_with_asynchronous_copies(old: str, new: str, kind: str | tuple[str, ...]) -> None:
    library = library_text(["async_copy"])
    mutated = library + edited(ASYNC.removeprefix(library), old, new)
    assert fault(module(mutated, SHAPES), ARRAYS).kind in ((kind,) if isinstance(kind, str) else kind)


@pytest.mark.parametrize("whole", ["true", "false"])
def test_a_copy_of_lanes_in_the_middle(whole: str) -> None:
    """Every first and last lane of four, bounds beyond them, and none: what is not read is zero."""
    code = library_text(["async_copy_between"]) + body(f"""  __shared__ __align__(16) float s[32][4];
  for (int last = -2; last < 7; ++last) {{
    async_copy_between<4, {whole}>(&s[t][0], &x[4 * t], t % 8 - 2, last);
    async_commit();
    async_wait<0>();
    for (int i = 0; i < 4; ++i) y[(4 * t + i) * 9 + last + 2] = s[t][i];
  }}""")
    shapes = {"x": ("f32", 128, "in"), "y": ("f32", 9 * 128, "out")}
    x = np.arange(1, 129, dtype=np.float32)
    lane, first, last = np.arange(4)[:, None], (np.arange(32) % 8 - 2)[:, None, None], np.arange(-2, 7)
    expected = np.where((lane >= first) & (lane < last), x.reshape(32, 4, 1), 0).ravel()
    for device in (DEVICE, CpuDevice(checked=False)):
        np.testing.assert_array_equal(device.run(device.build(module(code, shapes)), {"x": x})["y"], expected)


def test_a_missing_commit_is_found() -> None:
    library = library_text(["async_copy"])
    code = ASYNC.removeprefix(library)
    at = code.rindex("  async_commit();\n")
    error = fault(module(library + code[:at] + code[at + len("  async_commit();\n") :], SHAPES), ARRAYS)
    assert error.kind == "async-pending"


def test_without_a_symbolizer_a_fault_still_says_what_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.run.cpu.report.shutil.which", lambda name: None)
    error = fault(row_sum(edited(ROW_SUM, "k < 1000", "k <= 1000")), X)
    assert (error.kind, error.index, error.line, error.nodes) == ("out-of-bounds", (5, 0), None, ())
    assert "thread (232,0,0) of block (4,0,0)" in str(error)


# ---- crashes and hangs leave the caller alive ----


def test_an_endless_loop_is_stopped_and_the_next_kernel_runs() -> None:
    spin = y("  volatile int forever = 1;\n  while (forever) {}\n  y[t] = 0;")
    for device in (CpuDevice(time_limit_s=0.5), CpuDevice(checked=False, threads=2, time_limit_s=0.5)):
        start = time.monotonic()
        with pytest.raises(KernelTimeout, match=r"longer than 0\.5 s") as caught:
            device.run(device.build(spin), {})
        assert time.monotonic() - start < 30
        assert device.run(device.build(row_sum()), X)["y"].shape == (5,)
        if device.checked:
            assert caught.value.line in (1, 2, 3)


def test_crashes_of_the_fast_build_are_faults() -> None:
    device = CpuDevice(checked=False, threads=2)
    assert fault(y("  float* p = (float*)16; y[t] = *p;"), device=device).kind == "signal"
    assert fault(y("  if (t == 5) __builtin_trap();"), device=device).kind == "signal"


def test_a_stack_that_overflows_is_named() -> None:
    text = "__device__ __noinline__ float deep(volatile float* p, int n) { volatile float a[1000]; a[n % 1000] = *p;\n"
    text += "  return n ? deep(a, n - 1) + a[n % 7] : a[0]; }\n"
    text += body("  volatile float one = 1; y[t] = deep(&one, 1000);", "float* y")
    error = fault(module(text, {"y": ("f32", 32, "out")}))
    assert error.kind == "signal"
    assert "stack overflowed" in str(error)
