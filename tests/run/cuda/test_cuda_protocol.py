"""The CUDA device's rules, run without a GPU: the engine is played by NumPy, everything above it is the real thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer.errors import DeviceError, KernelFault, KernelTimeout, OutOfMemory, ResourceError
from explorer.gpu.spec import gpu
from explorer.ir.dtype import DTYPES
from explorer.kernel.module import Buffer, CudaModule, Launch
from explorer.run.cuda import device as cuda
from explorer.run.cuda.device import CudaBuilt, CudaDevice, Installed
from explorer.run.device import as_numpy
from explorer.run.inputs.seeded import Seeded
from explorer.run.nvrtc.compiler import Cubin

N = 1000
ADD = """
def add(a, b, c):
    a, b, c = (v.view(np.float32) for v in (a, b, c))
    c[:1000] = a[:1000] + b[:1000]
"""
VECTORS = (("a", "in"), ("b", "in"), ("c", "out"))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaDevice]:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    made = CudaDevice(limit_s=5, backend="fake_cuda_engine:FakeBackend")
    yield made
    made.close()


def built(text: str, buffers: tuple[tuple[str, str], ...] = VECTORS, kernels: tuple[str, ...] = ("add",), size: int = N,
          dtype: str = "f32") -> CudaBuilt:
    """A module whose machine code is Python text."""
    arrays = tuple(Buffer(name, DTYPES[dtype], (size,), kind) for name, kind in buffers)
    launches = tuple(Launch(kernel, (4, 1, 1), (256, 1, 1), tuple(name for name, _ in buffers)) for kernel in kernels)
    module = CudaModule("test", text, arrays, launches)
    return CudaBuilt(module, Cubin("sm_90", text.encode(), "", "", {}), gpu("H200"), str(hash((text, buffers, size))))


def vectors() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {name: random.standard_normal(N).astype(np.float32) for name in "ab"}


def test_it_computes_and_leaves_the_inputs_alone(device: CudaDevice) -> None:
    arrays = vectors()
    kept = {name: value.copy() for name, value in arrays.items()}
    out = device.run(built(ADD), arrays)
    assert list(out) == ["c"]
    np.testing.assert_array_equal(out["c"], kept["a"] + kept["b"])
    for name in kept:
        np.testing.assert_array_equal(arrays[name], kept[name])
    assert out["c"].flags.writeable


def test_what_is_not_written_is_poison(device: CudaDevice) -> None:
    text = "def add(a, b, c): c.view(np.float32)[:10] = 1"
    c = device.run(built(text), vectors())["c"]
    assert (c[:10] == 1).all()
    assert np.isnan(c[10:]).all()
    assert (c[10:].view(np.uint8) == 0xFF).all()


def test_workspaces_start_as_poison_and_stay_on_the_device(device: CudaDevice) -> None:
    text = "def add(a, w, c): c.view(np.uint8)[:4000] = w[:4000]"
    out = device.run(built(text, (("a", "in"), ("w", "workspace"), ("c", "out"))), {"a": vectors()["a"]})
    assert list(out) == ["c"]
    assert (out["c"].view(np.uint8) == 0xFF).all()


def test_an_inout_array_comes_back_changed_and_the_callers_stays(device: CudaDevice) -> None:
    text = "def add(c): c.view(np.float32)[:1000] += 1"
    start = np.arange(N, dtype=np.float32)
    out = device.run(built(text, (("c", "inout"),)), {"c": start})
    np.testing.assert_array_equal(out["c"], np.arange(N) + 1)
    np.testing.assert_array_equal(start, np.arange(N))


def test_launches_run_in_order(device: CudaDevice) -> None:
    text = """
def first(a, b, c): c.view(np.float32)[:1000] = a.view(np.float32)[:1000]
def second(a, b, c): c.view(np.float32)[:1000] *= b.view(np.float32)[:1000]
"""
    arrays = vectors()
    out = device.run(built(text, kernels=("first", "second")), arrays)
    np.testing.assert_array_equal(out["c"], arrays["a"] * arrays["b"])


def test_scalars_follow_the_pointers(device: CudaDevice) -> None:
    work = built("def add(c, start, stop): c.view(np.float32)[start:stop] = stop", (("c", "out"),))
    launches = tuple(replace(work.module.launches[0], scalars=(k, k + 500)) for k in (0, 500))
    work = replace(work, module=replace(work.module, launches=launches))
    np.testing.assert_array_equal(device.run(work, {})["c"], np.repeat([500.0, 1000.0], 500))
    wrong = replace(work, module=replace(work.module, launches=(launches[0], replace(launches[1], scalars=(500, 1001)))))
    with pytest.raises(KernelFault) as caught:
        device.run(wrong, {})
    assert "launch 2 of 2: add<<<(4, 1, 1), (256, 1, 1)>>>(500, 1001)" in caught.value.where


def test_only_what_is_asked_for_comes_back(device: CudaDevice) -> None:
    text = "def add(a, b): a[:4000] = 0; b[:4000] = 0"
    two = built(text, (("a", "out"), ("b", "out")))
    assert set(device.run(two, {})) == {"a", "b"}
    assert set(device.run(two, {}, fetch=["b"])) == {"b"}


@pytest.mark.parametrize(("text", "side", "array"), [
    ("def add(a, b, c): c.view(np.float32)[1000] = 0", "after its end", "c"),
    ("def add(a, b, c): a.base.view(np.float32)[1020] = 0", "before its start", "a"),
])
def test_writing_beside_an_array_is_a_fault(device: CudaDevice, text: str, side: str, array: str) -> None:
    with pytest.raises(KernelFault) as caught:
        device.run(built(text), vectors())
    assert f"outside of {array}" in caught.value.what
    assert side in caught.value.why
    assert "launch 1 of 1: add" in caught.value.where
    assert caught.value.array == array
    device.run(built(ADD), vectors())


def test_a_hang_names_the_launch_and_the_next_kernel_runs(device: CudaDevice) -> None:
    assert device.name == "NVIDIA H200"
    with pytest.raises(KernelTimeout) as caught:
        device.run(built(ADD + "def loop(a, b, c): time.sleep(600)\n", kernels=("add", "loop")), vectors(), time_limit_s=0.5)
    assert "launch 2 of 2: loop" in caught.value.where
    arrays = vectors()
    np.testing.assert_array_equal(device.run(built(ADD), arrays)["c"], arrays["a"] + arrays["b"])


def test_a_fault_names_the_launch_and_the_next_kernel_runs(device: CudaDevice) -> None:
    with pytest.raises(KernelFault) as caught:
        device.run(built("def add(a, b, c): raise GpuFault('illegal address')"), vectors())
    assert caught.value.why == "illegal address"
    assert "launch 1 of 1: add" in caught.value.where
    assert device.worker.generation == 1
    arrays = vectors()
    np.testing.assert_array_equal(device.run(built(ADD), arrays)["c"], arrays["a"] + arrays["b"])
    assert device.worker.generation == 2


def test_a_process_that_dies_is_a_fault(device: CudaDevice) -> None:
    with pytest.raises(KernelFault, match="exit status 5"):
        device.run(built("def add(a, b, c): os._exit(5)"), vectors())


def test_too_large_arrays_are_out_of_memory_and_the_next_kernel_runs(device: CudaDevice) -> None:
    large = built("def add(a, b, c): pass", size=2 << 20)
    with pytest.raises(OutOfMemory):
        device.run(large, {"a": Seeded(1), "b": Seeded(2)})
    device.run(built(ADD), vectors())


def test_seeded_inputs_are_made_on_the_device(device: CudaDevice) -> None:
    work = built(ADD)
    a, b = Seeded(1), Seeded(2, "uniform")
    out = device.run(work, {"a": a, "b": b})
    np.testing.assert_array_equal(out["c"], a.host(work.module.buffer("a")) + b.host(work.module.buffer("b")))


def test_arrays_may_be_views_of_any_layout(device: CudaDevice) -> None:
    wide = np.arange(2 * N, dtype=np.float32)
    out = device.run(built(ADD), {"a": wide[::2], "b": wide[::-2]})
    np.testing.assert_array_equal(out["c"], wide[::2] + wide[::-2])


def test_bf16_travels_as_its_bits(device: CudaDevice) -> None:
    text = "def add(a, b, c): c[:2000] = a[:2000]"
    work = built(text, dtype="bf16")
    bits = np.arange(N, dtype=np.uint16)
    out = device.run(work, {"a": bits, "b": bits})
    assert out["c"].dtype == np.uint16
    np.testing.assert_array_equal(out["c"], bits)
    with pytest.raises(DeviceError, match="bf16 as its bits"):
        device.run(work, {"a": bits.astype(np.float32), "b": bits})


@pytest.mark.parametrize("change", [
    {"a": np.zeros(N - 1, np.float32)}, {"a": np.zeros((N, 1), np.float32)}, {"a": np.zeros(N)}, {"d": np.zeros(N, np.float32)},
    {"a": Seeded(0, "gaussian")}, {"a": Seeded(0, "integers", 3, 3)},
], ids=["size", "rank", "type", "surplus", "kind", "range"])
def test_arrays_that_do_not_fit_are_refused_before_anything_runs(device: CudaDevice, change: dict[str, Any]) -> None:
    with pytest.raises(DeviceError):
        device.run(built(ADD), vectors() | change)
    assert device.worker.generation == 0


def test_a_missing_array_is_named(device: CudaDevice) -> None:
    with pytest.raises(DeviceError, match="No array is given for b"):
        device.run(built(ADD), {"a": vectors()["a"]})


def events_of(device: CudaDevice, start: int = 0) -> list[str]:
    return device.worker.call("events", limit_s=5)[start:]


def test_cold_timing_restores_then_flushes_then_starts_the_clock(device: CudaDevice) -> None:
    work = built("def add(c): c.view(np.float32)[:1000] += 1", (("c", "inout"),))
    samples = device.time(work, {"c": np.zeros(N, np.float32)}, repeats=4, warmup=1, l2="cold")
    assert len(samples) == 4
    assert (samples.l2, samples.method) == ("cold", "a counter")
    assert samples.overhead_us > max(samples)  # the counter only goes up, and the empty kernel comes last
    each = ["restore", "flush", "start", "add", "stop"]
    events = events_of(device)
    assert events[:2] == ["restore", "add"]  # the first contents kept, and one run with a wait
    assert events[2: 2 + 5 * len(each)] == each * 5
    assert events[2 + 5 * len(each):][:3] == ["flush", "start", "stop"]


def test_warm_timing_runs_once_untimed_before_each_repeat(device: CudaDevice) -> None:
    work = built("def add(c): c.view(np.float32)[:1000] += 1", (("c", "inout"),))
    device.time(work, {"c": np.zeros(N, np.float32)}, repeats=2, warmup=0, l2="warm")
    events = events_of(device)[2:]
    assert events[:12] == ["replay", "add", "restore", "start", "add", "stop"] * 2
    assert "flush" not in events


def test_interleaved_timing_goes_in_shuffled_rounds(device: CudaDevice) -> None:
    slow = built("def slow(a, b, c): pass", kernels=("slow",))
    first, second = device.time_interleaved([(built(ADD), vectors()), (slow, vectors())], repeats=20, warmup=0, l2="warm", seed=1)
    assert len(first) == len(second) == 20
    assert sorted(first + second) == [float(k) for k in range(1, 41)]  # each sample once, none lost
    order = [a < b for a, b in zip(first, second, strict=True)]
    assert any(order)
    assert not all(order)


def test_an_error_inside_timing_names_its_launch(device: CudaDevice) -> None:
    with pytest.raises(KernelFault) as caught:
        device.time(built("def add(a, b, c): c.view(np.float32)[1000] = 0"), vectors())
    assert "launch 1 of 1: add" in caught.value.where


@pytest.mark.parametrize("wrong", [{"l2": "tepid"}, {"repeats": 0}])
def test_timing_refuses_what_has_no_meaning(device: CudaDevice, wrong: dict[str, Any]) -> None:
    with pytest.raises(DeviceError):
        device.time(built(ADD), vectors(), **wrong)


def real_module(text: str, block: tuple[int, int, int] = (256, 1, 1)) -> CudaModule:
    buffers = (Buffer("x", DTYPES["f32"], (256,), "out"),)
    return CudaModule("real", text, buffers, (Launch("fill", (1, 1, 1), block, ("x",)),))


def test_build_compiles_for_the_installed_gpu_and_checks_the_launch(device: CudaDevice, tmp_path: Path,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = 'extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 1.0f; }'
    made = device.build(real_module(text))
    assert made.cubin.arch == "sm_90"
    assert made.cubin.kernels["fill"].registers > 0
    assert made.gpu == gpu("H200")
    with pytest.raises(ResourceError, match="threads per block"):
        device.build(real_module(text, block=(1025, 1, 1)))
    with pytest.raises(DeviceError, match="defines no kernel"):
        device.build(real_module(text.replace("fill", "full")))


def test_static_shared_memory_is_taken_from_the_compiler(device: CudaDevice, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = """extern "C" __global__ void fill(float* x) {
        __shared__ float s[8192];
        s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[255 - threadIdx.x];
    }"""
    module = real_module(text)
    module = replace(module, launches=(replace(module.launches[0], dynamic_shared_bytes=220 * 1024),))
    with pytest.raises(ResourceError) as caught:
        device.build(module)
    assert "shared memory per block: 258,048 bytes" in caught.value.why


def test_an_unlisted_product_borrows_from_its_architecture() -> None:
    odd = Installed("NVIDIA H20", (9, 0), 78, 96 << 30, 60 << 20, 13000, "14.2")
    assert (odd.gpu.name, odd.gpu.arch, odd.gpu.multiprocessors) == ("NVIDIA H20", "sm_90", 78)
    assert odd.gpu.measured_bandwidth_bytes_per_s is None
    assert odd.gpu.shared_bytes_per_block_optin == gpu("H200").shared_bytes_per_block_optin
    with pytest.raises(DeviceError, match="sm_53"):
        _ = Installed("Old", (5, 3), 1, 1, 1, 1, "1").gpu


def test_other_arrays_are_converted() -> None:
    class Speaks:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    values = np.arange(4.0)
    assert as_numpy(values) is values
    np.testing.assert_array_equal(as_numpy(Speaks(values)), values)
    np.testing.assert_array_equal(as_numpy([1, 2]), [1, 2])

    class Strange(Speaks):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("bfloat16 is not supported")

    with pytest.raises(DeviceError, match=r"torch\.uint16"):
        as_numpy(Strange(values))


def test_available_gives_a_reason_or_none() -> None:
    reason = cuda.available()
    assert reason is None or (isinstance(reason, str) and "\n" not in reason and reason)


def test_available_names_a_missing_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda.importlib.util, "find_spec", lambda name: None)
    assert "pip install" in str(cuda.available.__wrapped__())


def test_available_names_a_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(cuda.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(cuda.ctypes, "CDLL", no_library)
    assert cuda.available.__wrapped__() == "this machine has no NVIDIA driver"
