"""The CUDA device on a real GPU: results, poison, guards, every way of failing, and clocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import KernelFault, KernelTimeout, OutOfMemory, ResourceError
from explorer.ir.dtype import DTYPES
from explorer.kernel.module import Buffer, CudaModule, Launch
from explorer.run.cuda.device import CudaDevice, available
from explorer.run.inputs.seeded import CUDA_TYPES, Seeded
from explorer.run.timing import Timing

pytestmark = pytest.mark.gpu

N = 1 << 20
ADD = 'extern "C" __global__ void add(const float* a, const float* b, float* c) { int i = blockIdx.x * 256 + threadIdx.x; BODY }'


def module(body: str, n: int = N) -> CudaModule:
    buffers = tuple(Buffer(name, DTYPES["f32"], (n,), kind) for name, kind in (("a", "in"), ("b", "in"), ("c", "out")))
    return CudaModule("add", ADD.replace("BODY", body), buffers, (Launch("add", (N // 256, 1, 1), (256, 1, 1), ("a", "b", "c")),))


GOOD = module("c[i] = a[i] + b[i];")


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    assert available() is None
    made = CudaDevice(limit_s=10)
    yield made
    made.close()


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    return {name: random.standard_normal(N).astype(np.float32) for name in "ab"}


def check(device: CudaDevice) -> None:
    given = arrays()
    np.testing.assert_array_equal(device.run(device.build(GOOD), given)["c"], given["a"] + given["b"])


def test_it_adds(device: CudaDevice) -> None:
    check(device)


def test_unwritten_elements_are_poison(device: CudaDevice) -> None:
    c = device.run(device.build(module("if (i % 2) c[i] = a[i];")), arrays())["c"]
    assert np.isnan(c[::2]).all()
    assert not np.isnan(c[1::2]).any()


@pytest.mark.parametrize("dtype", list(CUDA_TYPES))
def test_seeded_inputs_have_the_same_bits_here_and_there(device: CudaDevice, dtype: str) -> None:
    kind = DTYPES[dtype]
    text = f"""#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    #include <cuda_fp8.h>
    extern "C" __global__ void copy(const {kind.cuda}* a, {kind.cuda}* c) {{
        int i = blockIdx.x * 256 + threadIdx.x;
        c[i] = a[i];
    }}"""
    buffers = (Buffer("a", kind, (N,), "in"), Buffer("c", kind, (N,), "out"))
    built = device.build(CudaModule("copy", text, buffers, (Launch("copy", (N // 256, 1, 1), (256, 1, 1), ("a", "c")),)))
    cases = [Seeded(4, "integers", 0, 2)]
    if kind.kind == "float":
        cases += [Seeded(1), Seeded(2, "uniform"), Seeded(3, "normal", offset=0.3, scale=1.7)]
    for seeded in cases:
        out = device.run(built, {"a": seeded})["c"]
        np.testing.assert_array_equal(out.view(np.uint8), seeded.host(buffers[0]).view(np.uint8))


def test_scalars_and_several_launches(device: CudaDevice) -> None:
    text = 'extern "C" __global__ void put(int* c, int start, int value) { c[start + threadIdx.x] = value; }'
    launch = Launch("put", (1, 1, 1), (256, 1, 1), ("c",))
    launches = tuple(replace(launch, scalars=(256 * k, k)) for k in range(8))
    built = device.build(CudaModule("put", text, (Buffer("c", DTYPES["i32"], (2048,), "out"),), launches))
    np.testing.assert_array_equal(device.run(built, {})["c"], np.repeat(np.arange(8), 256))
    assert len(device.time(built, {}, repeats=5, warmup=1)) == 5


def test_large_dynamic_shared_memory(device: CudaDevice) -> None:
    text = """extern "C" __global__ void turn(float* c) {
        extern __shared__ float s[];
        for (int i = threadIdx.x; i < 12800; i += 256) s[i] = i;
        __syncthreads();
        for (int i = threadIdx.x; i < 12800; i += 256) c[i] = s[12799 - i];
    }"""
    launch = Launch("turn", (1, 1, 1), (256, 1, 1), ("c",), dynamic_shared_bytes=51200)
    built = device.build(CudaModule("turn", text, (Buffer("c", DTYPES["f32"], (12800,), "out"),), (launch,)))
    np.testing.assert_array_equal(device.run(built, {})["c"], np.arange(12800)[::-1])


def test_a_hang_a_fault_and_too_much_memory_leave_a_working_device(device: CudaDevice) -> None:
    endless = device.build(module("volatile float* w = c; while (w[0] != 12345.0f) {} c[i] = 1;"))
    slow = CudaDevice(limit_s=10)
    check(slow)
    slow.limit_s = 2
    with pytest.raises(KernelTimeout) as late:
        slow.run(endless, arrays())
    assert "launch 1 of 1: add" in late.value.where
    slow.limit_s = 10
    check(slow)
    with pytest.raises(KernelFault) as fault:
        slow.run(slow.build(module("c[i + (1ll << 40)] = 1;")), arrays())
    assert fault.value.status == 700
    check(slow)
    memory = int(slow.installed().memory_bytes)
    with pytest.raises(ResourceError, match="do not fit the memory"):
        copied(slow, memory * 0.6)
    import cupy

    held = cupy.cuda.alloc(memory // 2)  # by somebody else
    with pytest.raises(OutOfMemory):
        copied(slow, memory * 0.3)
    del held
    check(slow)
    slow.close()


def copied(device: CudaDevice, nbytes: float) -> None:
    """Run a kernel on three arrays of so many bytes each."""
    device.run(device.build(module("c[i] = a[i];", int(nbytes) // 4)), {"a": Seeded(1), "b": Seeded(2)}, fetch=())


def test_a_write_just_beside_an_array_is_caught(device: CudaDevice) -> None:
    with pytest.raises(KernelFault, match="outside of c"):
        device.run(device.build(module(f"c[i] = 0; if (i == 0) c[{N}] = 1;")), arrays())


def test_clocks_are_plausible(device: CudaDevice) -> None:
    n = 1 << 26
    big = replace(module("for (long long k = i; k < (1ll << 26); k += 1 << 20) c[k] = a[k] + b[k];", n))
    built = device.build(big)
    cold, warm = (Timing.of(device.time(built, {"a": Seeded(1), "b": Seeded(2)}, repeats=15, l2=l2)) for l2 in ("cold", "warm"))
    floor_us = 3 * 4 * n / built.gpu.memory_bandwidth_bytes_per_s * 1e6
    for timing in (cold, warm):
        assert timing.median_us > 0.8 * floor_us
        assert timing.median_us < 20 * floor_us
        assert 0.5 < timing.overhead_us < 50
        assert "graph" in timing.method


def test_interleaved_timing_restores_inout_arrays(device: CudaDevice) -> None:
    text = """extern "C" __global__ void inc(float* c) {
        int i = blockIdx.x * 256 + threadIdx.x;
        if (c[i] != 0.0f) __trap();
        c[i] += 1;
    }"""
    built = device.build(CudaModule("inc", text, (Buffer("c", DTYPES["f32"], (N,), "inout"),),
                                    (Launch("inc", (N // 256, 1, 1), (256, 1, 1), ("c",)),)))
    zeros = np.zeros(N, np.float32)
    first, second = device.time_interleaved([(built, {"c": zeros}), (device.build(GOOD), arrays())], repeats=9, l2="cold")
    assert len(first) == len(second) == 9
    with pytest.raises(KernelFault):  # the trap works: the restoring above was real
        device.run(built, {"c": zeros + 1})
