"""Exercise the CUDA device end to end on a machine with a GPU: a good kernel, every kind of bad one, and clocks.

    python benchmarks/gpu_smoke.py

Prints one row for each check and exits with the number of rows that went wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from explorer.errors import ExplorerError, KernelFault, KernelTimeout, OutOfMemory
from explorer.gpu.roofline import roofline
from explorer.ir.dtype import DTYPES
from explorer.kernel.module import Buffer, CudaModule, Launch
from explorer.run.cuda.device import CudaDevice, available
from explorer.run.inputs.seeded import Seeded
from explorer.run.timing import Timing, compare

N = 1 << 26
THREADS = 256
PLAIN = "for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) c[i] = a[i] + b[i];"
WIDE = """const float4* a4 = (const float4*)a; const float4* b4 = (const float4*)b; float4* c4 = (float4*)c;
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n / 4; i += gridDim.x * 256ll) {
        float4 x = a4[i], y = b4[i];
        c4[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }"""


def add(body: str, n: int = N, blocks: int = 1056) -> CudaModule:
    """Two vectors in, one out, with this body."""
    text = f"""extern "C" __global__ void add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {{
    const long long n = {n}ll;
    {body}
}}
"""
    buffers = tuple(Buffer(name, DTYPES["f32"], (n,), kind) for name, kind in (("a", "in"), ("b", "in"), ("c", "out")))
    return CudaModule("add", text, buffers, (Launch("add", (blocks, 1, 1), (THREADS, 1, 1), ("a", "b", "c")),))


class Table:
    """Rows of check, outcome and seconds; counts what went wrong."""

    def __init__(self) -> None:
        self.wrong = 0

    def row(self, name: str, work: Callable[[], str], expected: type[ExplorerError] | None = None) -> None:
        """Do one check; with `expected` it has to raise exactly that."""
        began = time.perf_counter()
        try:
            text, good = work(), expected is None
        except ExplorerError as error:
            good = type(error) is expected
            text = f"{type(error).__name__}: {error.what} | {error.where} | {error.why}"
        except Exception as error:  # a check must not stop the ones after it
            text, good = f"{type(error).__name__}: {error}", False
        self.wrong += not good
        print(f"{'ok ' if good else 'BAD'} {name:34s} {time.perf_counter() - began:7.2f} s  {text}", flush=True)


def main() -> int:
    reason = available()
    if reason is not None:
        print(f"no GPU to run on: {reason}")
        return 1
    device, table = CudaDevice(limit_s=30), Table()
    here = device.installed()
    print(f"{here.name} ({here.arch}), {here.multiprocessors} multiprocessors, {here.memory_bytes:,} bytes, "
          f"L2 {here.l2_bytes:,} bytes, driver {here.driver}, CuPy {here.cupy}; catalogue: {here.gpu}")
    random = np.random.default_rng(0)
    small = 1 << 20
    arrays = {name: random.standard_normal(small).astype(np.float32) for name in "ab"}

    def works() -> str:
        out = device.run(device.build(add(PLAIN, small)), arrays)["c"]
        np.testing.assert_array_equal(out, arrays["a"] + arrays["b"])
        return f"{small:,} elements equal"

    def seeded() -> str:
        module = add(PLAIN)
        given = {"a": Seeded(1), "b": Seeded(2, "uniform")}
        out = device.run(device.build(module), given)["c"]
        head = slice(0, 1 << 22)
        host = [value.host(replace(module.buffer(name), shape=(1 << 22,))) for name, value in given.items()]
        np.testing.assert_array_equal(out[head], host[0] + host[1])
        return f"{N:,} elements made on the GPU, the first {1 << 22:,} equal to the host's"

    def from_cupy() -> str:
        import cupy

        given = {name: cupy.asarray(value) for name, value in arrays.items()}
        np.testing.assert_array_equal(device.run(device.build(add(PLAIN, small)), given)["c"], arrays["a"] + arrays["b"])
        return "CuPy arrays taken"

    def poison() -> str:
        out = device.run(device.build(add("if (threadIdx.x == 0 && blockIdx.x == 0) c[0] = a[0];", small)), arrays)["c"]
        assert np.isnan(out[1:]).all()
        assert out[0] == arrays["a"][0]
        return "unwritten elements are NaN"

    timings: dict[str, Timing] = {}

    def clock(l2: str) -> str:
        given = {"a": Seeded(1), "b": Seeded(2)}
        work = [(device.build(add(body)), given) for body in (PLAIN, WIDE)]
        taken = device.time_interleaved(work, repeats=30, l2=l2)
        first, second = timings[f"plain {l2}"], timings[f"wide {l2}"] = tuple(Timing.of(samples) for samples in taken)
        floor = roofline(here.gpu, 12 * N, N, "f32")
        return (f"scalar {first}; float4 {second}; float4 against scalar {compare(first, second)}; "
                f"floor {floor.floor_us:.1f} µs, float4 net of launch at {floor.share(second.net_us):.0%} of it; {second.method}")

    def tiny() -> str:
        given = {"a": Seeded(1), "b": Seeded(2)}
        samples = device.time(device.build(add(PLAIN, 1024, 4)), given, repeats=50, l2="warm")
        return f"1024 elements: {Timing.of(samples)}"

    def hang() -> str:
        device.limit_s = 3
        try:
            device.run(device.build(add("volatile float* w = c; while (w[0] != 12345.0f) {}", small)), arrays)
        finally:
            device.limit_s = 30
        return "returned"

    def illegal() -> str:
        device.run(device.build(add("c[threadIdx.x + (1ll << 40)] = a[0];", small)), arrays)
        return "returned"

    def beside() -> str:
        device.run(device.build(add("if (threadIdx.x == 0 && blockIdx.x == 0) c[n] = a[0];", small)), arrays)
        return "returned"

    def memory() -> str:
        count = int(here.memory_bytes * 0.6) // 4
        device.run(device.build(add(PLAIN, count)), {"a": Seeded(1), "b": Seeded(2)}, fetch=())
        return "returned"

    def large() -> str:
        count = min(1 << 30, int(here.memory_bytes * 0.25) // 4)
        device.run(device.build(add(PLAIN, count)), {"a": Seeded(1), "b": Seeded(2)}, fetch=())
        return f"three arrays of {4 * count:,} bytes, none of them on the host"

    table.row("vector add", works)
    table.row("seeded inputs, same bits", seeded)
    table.row("arrays from CuPy", from_cupy)
    table.row("poisoned outputs", poison)
    table.row("cold L2, interleaved", lambda: clock("cold"))
    table.row("warm L2, interleaved", lambda: clock("warm"))
    table.row("launch-bound", tiny)
    table.row("large arrays stay on the GPU", large)
    table.row("hang", hang, KernelTimeout)
    table.row("after the hang", works)
    table.row("illegal address", illegal, KernelFault)
    table.row("after the fault", works)
    table.row("write beside an array", beside, KernelFault)
    table.row("after that", works)
    table.row("out of memory", memory, OutOfMemory)
    table.row("after that", works)
    device.close()
    print(f"{table.wrong} wrong; worker processes started: {device.worker.generation}")
    return table.wrong


if __name__ == "__main__":
    sys.exit(main())
