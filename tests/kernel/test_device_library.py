"""The device library: right on the CPU device for every shape of block, and accepted by NVRTC for every architecture."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from explorer.errors import ExplorerError
from explorer.ir.dtype import DTYPES, bf16_to_f32, f32_to_bf16
from explorer.ir.swizzle import MODES, swizzled
from explorer.kernel.device import library_names, library_text, reduce_lanes_scratch_elements, reduce_scratch_elements
from explorer.kernel.module import CudaModule
from explorer.run.cpu.device import CpuDevice
from explorer.run.nvrtc.compiler import compile_module
from tests.run.cpu.cpu_kernels import body, module

BLOCKS = [
    (256, 1, 1),
    (100, 1, 1),
    (20, 1, 1),
    (999, 1, 1),
    (33, 3, 1),
    (16, 16, 1),
    (32, 8, 1),
    (48, 2, 1),
    (4, 4, 4),
    (3, 5, 7),
    (64, 3, 2),
    (1, 1, 1),
    (1, 37, 1),
    (8, 6, 5),
    (2, 33, 2),
    (1024, 1, 1),
    (5, 1, 40),
    (49, 8, 1),
    (19, 5, 1),
]
AXES = ["".join(a) for k in (1, 2, 3) for a in itertools.combinations("xyz", k)]


def reduction(
    block: tuple[int, int, int], axes: str, function: str = "block_reduce", first: str = "sum", second: str = "max"
) -> CudaModule:
    """Each thread ends with its group's `first` of x plus its `second` of -x; the scratch array is reused at once."""
    size = block[0] * block[1] * block[2]
    flags = ", ".join(str(a in axes).lower() for a in "xyz")
    shape = f"{block[0]}, {block[1]}, {block[2]}, {flags}"
    scratch = reduce_scratch_elements(block, axes, function == "block_reduce_first")
    formula = f"{function}_scratch<{shape}>() == {scratch}" if function != "block_reduce_shared" else "true"
    scratch = scratch if function != "block_reduce_shared" else size
    code = f"""  static_assert({formula}, "one formula, twice");
  __shared__ float scratch[{max(scratch, 1)}];
  const int id = t + {block[0]} * (threadIdx.y + {block[1]} * threadIdx.z);
  float v = {function}<reduce_{first}, {shape}>(x[id], scratch);
  __syncthreads();
  v += {function}<reduce_{second}, {shape}>(-x[id], scratch);
  y[id] = v;"""
    return module(library_text(["reduce"]) + body(code), {"x": ("f32", size, "in"), "y": ("f32", size, "out")}, block)


@pytest.mark.parametrize("function", ["block_reduce", "block_reduce_first", "block_reduce_shared"])
def test_block_reductions(function: str) -> None:
    device = CpuDevice(seeds=3)
    cases = list(itertools.product(BLOCKS, AXES))
    for (block, axes), built in zip(cases, device.build_many([reduction(*case, function) for case in cases]), strict=True):
        x = np.random.default_rng(1).integers(-8, 8, block[0] * block[1] * block[2]).astype(np.float32)
        box, over = x.reshape(block[::-1]), tuple(i for i, a in enumerate("zyx") if a in axes)
        expected = np.broadcast_to(box.sum(over, keepdims=True) + (-box).max(over, keepdims=True), box.shape).reshape(-1)
        if function == "block_reduce_first":
            firsts = tuple(slice(0, 1) if a in axes else slice(None) for a in "zyx")
        else:
            firsts = (slice(None),) * 3
        wanted = expected.reshape(box.shape)[firsts]
        for results in device.run_seeds(built, {"x": x}):
            np.testing.assert_array_equal(results["y"].reshape(box.shape)[firsts], wanted, err_msg=f"{block} over {axes}")


def lanes(block: tuple[int, int, int], axes: str, count: int, function: str = "block_reduce_lanes") -> CudaModule:
    """Each thread ends with its group's sums of `count` values, and with their maxima; the scratch array is reused at once."""
    size = block[0] * block[1] * block[2]
    shape = ", ".join([*map(str, block), *(str(a in axes).lower() for a in "xyz")])
    scratch = reduce_lanes_scratch_elements(block, axes, count)
    code = f"""  static_assert(reduce_lanes_scratch<{shape}, {count}>() == {scratch}, "one formula, twice");
  __shared__ float scratch[{max(scratch, 1)}];
  const int id = t + {block[0]} * (threadIdx.y + {block[1]} * threadIdx.z);
  float a[{count}], b[{count}];
  for (int v = 0; v < {count}; ++v) b[v] = a[v] = x[id * {count} + v];
  {function}<reduce_sum, {shape}, {count}>(a, scratch);
  __syncthreads();
  {function}<reduce_max, {shape}, {count}>(b, scratch);
  for (int v = 0; v < {count}; ++v) y[id * {count} + v] = a[v] + 1000 * b[v];"""
    text = library_text(["reduce", "reduce_lanes"]) + body(code)
    return module(text, {"x": ("f32", size * count, "in"), "y": ("f32", size * count, "out")}, block)


@pytest.mark.parametrize("function", ["block_reduce_lanes", "block_reduce_lanes_first"])
def test_block_reductions_of_several_values(function: str) -> None:
    device = CpuDevice(seeds=3)
    cases = [(block, axes, 1 + 3 * (n % 2)) for n, (block, axes) in enumerate(itertools.product(BLOCKS, AXES))]
    for (block, axes, count), built in zip(cases, device.build_many([lanes(*case, function) for case in cases]), strict=True):
        x = np.random.default_rng(1).integers(-8, 8, block[0] * block[1] * block[2] * count).astype(np.float32)
        box, over = x.reshape(*block[::-1], count), tuple(i for i, a in enumerate("zyx") if a in axes)
        expected = np.broadcast_to(box.sum(over, keepdims=True) + 1000 * box.max(over, keepdims=True), box.shape)
        shown = tuple(slice(0, 1) if function.endswith("first") and a in axes else slice(None) for a in "zyx")
        for results in device.run_seeds(built, {"x": x}):
            found = results["y"].reshape(box.shape)[shown]
            np.testing.assert_array_equal(found, expected[shown], err_msg=f"{block} over {axes}, {count} values")


@pytest.mark.parametrize("barrier", [0, 1])
def test_every_barrier_of_several_values_is_needed(barrier: int) -> None:
    good = lanes((16, 16, 1), "y", 4)
    start = good.text.index("block_reduce_lanes(T (&value)[COUNT]")
    pieces = good.text[start:].split("        __syncthreads();\n")
    text = good.text[:start] + "        __syncthreads();\n".join(pieces[: barrier + 1]) + pieces[barrier + 1]
    rest = pieces[barrier + 2 :]
    text += "".join("        __syncthreads();\n" + piece for piece in rest)
    assert len(text) == len(good.text) - len("        __syncthreads();\n")
    x = {"x": np.arange(1024, dtype=np.float32)}
    device = CpuDevice(seeds=5)
    with pytest.raises(ExplorerError, match=r"race|barrier"):
        device.run(device.build(module(text, {"x": ("f32", 1024, "in"), "y": ("f32", 1024, "out")}, (16, 16, 1))), x)


def test_the_barrier_between_the_two_steps_of_many_partial_results_is_needed() -> None:
    good = reduction((49, 8, 1), "x", "block_reduce_first")
    start = good.text.index("T reduce_shares(T* scratch")
    rest = good.text[start:].replace("    __syncthreads();\n", "", 1)
    arrays = {"x": ("f32", 392, "in"), "y": ("f32", 392, "out")}
    x = {"x": np.arange(392, dtype=np.float32)}
    device = CpuDevice(seeds=5)
    device.run(device.build(good), x)
    with pytest.raises(ExplorerError, match=r"race|barrier"):
        device.run(device.build(module(good.text[:start] + rest, arrays, (49, 8, 1))), x)


def test_reductions_are_deterministic_and_a_missing_barrier_between_them_would_show() -> None:
    device = CpuDevice(seeds=5)
    x = {"x": np.random.default_rng(3).standard_normal(999).astype(np.float32)}
    good = reduction((999, 1, 1), "x")
    results = [r["y"] for r in device.run_seeds(device.build(good), x)]
    assert all((r == results[0]).all() for r in results)
    text = good.text.replace("  __syncthreads();\n  v +=", "  v +=")
    assert text != good.text
    with pytest.raises(ExplorerError, match="race"):
        device.run(device.build(module(text, {"x": ("f32", 999, "in"), "y": ("f32", 999, "out")}, 999)), x)


@pytest.mark.parametrize(("name", "expected"), [("sum", 36), ("prod", 40320), ("max", 8), ("min", 1)])
def test_warp_reductions(name: str, expected: int) -> None:
    code = f"  y[t] = warp_reduce<reduce_{name}, 8>(x[t]); y[t + 32] = warp_reduce<reduce_{name}, 1>((int)x[t]);"
    device = CpuDevice()
    built = device.build(module(library_text(["reduce"]) + body(code), {"x": ("f32", 32, "in"), "y": ("f32", 64, "out")}))
    x = np.tile(np.arange(1, 9, dtype=np.float32), 4)
    np.testing.assert_array_equal(device.run(built, {"x": x})["y"], [*[expected] * 32, *x])


def test_logical_reductions() -> None:
    code = "  y[t] = warp_reduce<reduce_and, 16>((bool)x[t]); y[t + 32] = warp_reduce<reduce_or, 16>((int)x[t]);"
    device = CpuDevice()
    built = device.build(module(library_text(["reduce"]) + body(code), {"x": ("f32", 32, "in"), "y": ("f32", 64, "out")}))
    for x in (np.zeros(32), np.ones(32), np.arange(32) == 20, np.arange(32) != 20):
        halves = x.astype(bool).reshape(2, 16)
        expected = np.repeat(np.concatenate([halves.all(1), halves.any(1)]), 16)
        np.testing.assert_array_equal(device.run(built, {"x": x.astype(np.float32)})["y"], expected)


FLOATS = {"f16": "__half", "bf16": "__nv_bfloat16", "f32": "float", "f64": "double"}
NUMBERS = {"i32": "int", "i64": "long long", **FLOATS}


def atomics(dtype: str, operation: str) -> CudaModule:
    c = {**NUMBERS, "i8": "signed char", "bool": "bool"}[dtype]
    return module(
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
        + library_text(["atomic"])
        + body(f"  atomic_{operation}(&y[t % 3], x[blockIdx.x * 64 + t]);", f"const {c}* x, {c}* y"),
        {"x": (dtype, 128, "in"), "y": (dtype, 3, "inout")},
        64,
        2,
    )


CASES = [
    *itertools.product(NUMBERS, ("add", "max", "min", "mul")),
    *itertools.product(("bool", "i32", "i8"), ("and", "or")),
    ("i8", "max"),
    ("i8", "add"),
]


def test_atomics() -> None:
    """Exact small numbers, so that any order gives one answer; for max and min -0, and NaN as an operand and as the start."""
    modules = [atomics(*case) for case in CASES]
    combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "and": np.logical_and,
               "or": np.logical_or}  # fmt: skip
    for device in (CpuDevice(seeds=3), CpuDevice(checked=False, threads=2)):
        for (dtype, operation), built in zip(CASES, device.build_many(modules), strict=True):
            starts = [np.array([0.0, 1.0, -1.0]) if operation not in ("and", "or", "mul") else np.array([1.0, 0.0, 1.0])]
            r = np.random.default_rng(5)
            values = r.choice([1.0, -1.0], 128) if operation == "mul" else r.integers(-3, 4, 128).astype(float)
            if operation in ("and", "or"):
                values = (r.random(128) < (0.97 if operation == "and" else 0.03)).astype(float)
            elif operation in ("max", "min") and dtype in FLOATS:
                values[:4] = -0.0, 0.0, np.inf, -np.inf
                values[99] = np.nan  # for the first element alone
                starts += [np.array([0.0, np.nan, -np.nan]), np.array([0.0, -np.inf, np.inf])]
            for start in starts:
                got = device.run(built, {"x": stored(values, dtype), "y": stored(start, dtype)})["y"]
                expected = start.copy()
                for b, t in itertools.product(range(2), range(64)):
                    expected[t % 3] = combine[operation](expected[t % 3], values[b * 64 + t])
                got = bf16_to_f32(got) if dtype == "bf16" else got
                np.testing.assert_array_equal(got, expected.astype(got.dtype), err_msg=f"{operation} on {dtype}")


def test_swizzled_places_are_those_of_the_plan() -> None:
    """For every pattern and size of an element: 4096 places by the text's function and by that of the layouts."""
    kinds = {"unsigned char": 1, "__half": 2, "float": 4, "double": 8}
    every = [(mode, kind) for mode in MODES for kind in kinds]
    code = "".join(f"  for (int p = 0; p < 4096; ++p) y[{n * 4096} + p] = swizzled<{mode}, {kind}>(p);\n"
                   for n, (mode, kind) in enumerate(every))
    text = "#include <cuda_fp16.h>\n" + library_text(["swizzle"]) + body(code, "int* __restrict__ y")
    (built,) = CpuDevice(seeds=1).build_many([module(text, {"y": ("i32", 4096 * len(every), "out")}, 1)])
    for results in CpuDevice(seeds=1).run_seeds(built, {}):
        for (mode, kind), found in zip(every, results["y"].reshape(-1, 4096), strict=True):
            np.testing.assert_array_equal(found, swizzled(np.arange(4096), mode, kinds[kind]), err_msg=f"{mode}, {kind}")


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    return f32_to_bf16(values.astype(np.float32)) if dtype == "bf16" else values.astype(DTYPES[dtype].numpy)


def test_library_text_is_verbatim_and_unknown_parts_are_refused() -> None:
    assert {"arg", "async_copy", "atomic", "extreme", "reduce", "vector"} <= set(library_names())
    text = library_text(["vector", "reduce", "vector", "extreme"])
    assert text.count("struct alignas(sizeof(T) * N) vec") == text.count("double max_nan(") == 1
    assert text.index("double max_nan(") < text.index("struct reduce_max")
    with pytest.raises(ExplorerError, match="no part called 'mma'"):
        library_text(["mma"])


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_nvrtc_accepts_all_of_it(arch: str) -> None:
    code = "\n".join(
        [
            "  __shared__ __align__(16) float s[1024]; async_copy<16>(&s[4 * t], &x[4 * t]);",
            "  async_copy<4>(&s[t], &x[t], t < 9 ? 4 : 0);",
            "  async_copy_between<4, true>(&s[4 * t], &x[4 * t], t - 9, 3);",
            "  async_copy_between<4, false>(&s[4 * t], &x[4 * t], 1, t);",
            "  async_commit(); async_wait<1>(); async_wait<0>(); __syncthreads(); float v = s[t];",
            *(
                f"  v += {f}<reduce_{op}, {shape}>(v, s);"
                for f in ("block_reduce", "block_reduce_shared")
                for op, shape in (
                    ("sum", "100, 1, 1, true, false, false"),
                    ("max", "16, 4, 3, false, true, true"),
                    ("prod", "999, 1, 1, true, true, true"),
                    ("min", "32, 8, 1, true, false, false"),
                )
            ),
            "  *(vec<float, 4>*)&y[4 * t] = *(const vec<float, 4>*)&s[4 * t]; v += warp_reduce<reduce_and, 8>(v > 2.0f);",
            "  y[t] = v;",
        ]
    )
    text = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + library_text(library_names()) + body(code)
    for number, (dtype, operation) in enumerate(CASES):
        made = atomics(dtype, operation)
        text += made.text[made.text.index('extern "C"') :].replace("kernel(", f"kernel{number}(")
    assert compile_module(module(text, {"x": ("f32", 4096, "in"), "y": ("f32", 4096, "out")}, 256), arch)
