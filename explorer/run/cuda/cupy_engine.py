"""The engine that drives an NVIDIA GPU through CuPy.  Runs in the worker process alone; nothing else imports CuPy for work.

How a time is taken: the launches of a module are captured into a graph; CUDA events stand before and after one replay of it
on a stream that is otherwise empty; a 50 µs spin before the first event lets the host run ahead, so that no host time gets
between the events.  What an empty kernel reads this way is reported beside every measurement.  With a cold cache, 256 MiB
are written and another 256 MiB read before each repeat: after the write alone the cache is full of dirty lines, whose
write-back the next kernel would pay for (8 to 11 µs on an H200).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from math import prod
from typing import Any

import cupy
import numpy as np

from ...errors import DeviceError, ExplorerError, KernelFault, KernelTimeout, OutOfMemory, ResourceError
from ...ir.tree import PORTABLE_CLUSTER
from ...kernel.module import Buffer, Launch, TensorMap
from ..inputs import seeded as seeding
from ..inputs.seeded import Seeded
from .tensor_maps import encoded

FLUSH_BYTES = 256 << 20
SPIN_CLOCKS = 100_000
_DEFAULT_SHARED_BYTES = 48 << 10
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_WIDE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED

_SUPPORT = seeding.CUDA_TEXT + """
extern "C" __global__ void empty() {}
extern "C" __global__ void spin(long long clocks) {
    long long start = clock64();
    while (clock64() - start < clocks) {}
}
extern "C" __global__ void sweep(const uint4* data, u64 count, u32* sink) {
    u32 seen = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        uint4 v = data[i];
        seen |= v.x | v.y | v.z | v.w;
    }
    if (seen) *sink = seen;  // the data is all zero: never taken, but the loads must happen
}
"""

# CUDA's error numbers (driver and runtime agree on these) and what each means for the author of a kernel.
_FAULTS = {
    700: "an address that belongs to no array was read or written",
    702: "the display's watchdog stopped the kernel",
    710: "a device-side assertion failed",
    714: "the hardware's call stack overflowed",
    715: "the GPU met an instruction that it does not have",
    716: "a load or store was not aligned to its size",
    717: "an instruction was given an address of the wrong memory space",
    718: "the program counter left the program",
    719: "the kernel failed to run to its end",
}
_TOO_BIG = {
    1: "an argument of the launch is out of range",
    9: "the grid or the block is too large",
    701: "too many registers or too much shared memory for the block",
    720: "the blocks of a cooperative launch do not all fit the GPU at once",
}
_OUT_OF_MEMORY, _TIMEOUT = 2, 702


class CupyEngine:
    """Memory, launches and clocks of the first GPU."""

    method = "CUDA events around one graph replay, behind a spin"

    def __init__(self) -> None:
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.pool = cupy.get_default_memory_pool()

    def describe(self) -> dict[str, Any]:
        """Facts about the GPU, under the names of `explorer.run.cuda.device.Installed`."""
        facts = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        return {
            "name": facts["name"].decode(),
            "compute_capability": (facts["major"], facts["minor"]),
            "multiprocessors": facts["multiProcessorCount"],
            "memory_bytes": facts["totalGlobalMem"],
            "l2_bytes": facts["l2CacheSize"],
            "driver": cupy.cuda.runtime.driverGetVersion(),
            "cupy": cupy.__version__,
        }

    # ------------------------------------------------------------------------------------------------------------ memory

    def allocate(self, nbytes: int) -> Any:
        """Memory, aligned to 256 bytes or better."""
        return cupy.cuda.alloc(nbytes)

    def fill(self, handle: Any, offset: int, nbytes: int, byte: int) -> None:
        """Set bytes."""
        if nbytes:
            cupy.cuda.runtime.memsetAsync(handle.ptr + offset, byte, nbytes, self.stream.ptr)

    def write(self, handle: Any, offset: int, host: np.ndarray) -> None:
        """Host to GPU, finished on return."""
        self._move(handle.ptr + offset, host.ctypes.data, host.nbytes, cupy.cuda.runtime.memcpyHostToDevice)
        self.stream.synchronize()

    def read(self, handle: Any, offset: int, host: np.ndarray) -> None:
        """GPU to host, finished on return."""
        self._move(host.ctypes.data, handle.ptr + offset, host.nbytes, cupy.cuda.runtime.memcpyDeviceToHost)
        self.stream.synchronize()

    def copy(self, target: Any, target_offset: int, source: Any, source_offset: int, nbytes: int) -> None:
        """GPU to GPU, in order."""
        self._move(target.ptr + target_offset, source.ptr + source_offset, nbytes, cupy.cuda.runtime.memcpyDeviceToDevice)

    def generate(self, handle: Any, offset: int, buffer: Buffer, seeded: Seeded) -> None:
        """Make a seeded input in place."""
        arguments = (np.uint64(handle.ptr + offset), np.uint64(buffer.size), np.uint64(seeded.seed % 2**64),
                     np.int32(seeding.KINDS.index(seeded.kind)), np.int64(seeded.low), np.uint64(seeded.high - seeded.low),
                     np.int32(seeding.CUDA_TYPES[buffer.dtype.name]), np.float64(seeded.offset), np.float64(seeded.scale),
                     np.uint64(seeded.every), np.int64(seeded.rest), np.uint64(seeded.inner), np.uint64(seeded.outer))
        with self.stream:
            self._support.get_function("fill")((self._wide_grid,), (256,), arguments)

    def release(self) -> None:
        """Give unused memory back to the driver."""
        self.pool.free_all_blocks()

    # ---------------------------------------------------------------------------------------------------------- launches

    def load(self, cubin: bytes, launches: Sequence[Launch]) -> dict[str, Any]:
        """Load machine code; its functions by name, large shared memory allowed where a launch asks for it."""
        module = cupy.cuda.function.Module()
        module.load(cubin)
        functions = {launch.kernel: module.get_function(launch.kernel) for launch in launches}
        for name, function in functions.items():
            mine = [launch for launch in launches if launch.kernel == name]
            dynamic = max(launch.dynamic_shared_bytes for launch in mine)
            if dynamic + max(launch.static_shared_bytes for launch in mine) > _DEFAULT_SHARED_BYTES:
                cupy.cuda.driver.funcSetAttribute(function.ptr, _MAX_DYNAMIC_SHARED, dynamic)
            if max(prod(launch.cluster) for launch in mine) > PORTABLE_CLUSTER:
                cupy.cuda.driver.funcSetAttribute(function.ptr, _WIDE_CLUSTER, 1)
        return functions

    def encode(self, tensor_map: TensorMap, buffer: Buffer, handle: Any, offset: int) -> Any:
        """A tensor map of an array."""
        return encoded(tensor_map, buffer, handle.ptr + offset)

    def launch(self, program: dict[str, Any], launch: Launch, arguments: Sequence[Any]) -> None:
        """Put one launch on the stream."""
        pointers = (np.uint64(a[0].ptr + a[1]) if isinstance(a, tuple) else a for a in arguments)
        scalars = (np.int32(value) for value in launch.scalars)
        with self.stream:
            program[launch.kernel](launch.grid, launch.block, (*pointers, *scalars), shared_mem=launch.dynamic_shared_bytes,
                                   enable_cooperative_groups=launch.cooperative)

    def synchronize(self) -> None:
        """Wait for everything on the stream."""
        self.stream.synchronize()

    # ------------------------------------------------------------------------------------------------------------ timing

    def record(self, work: Callable[[], None] | None) -> Callable[[], None]:
        """A graph of the launches; where something in them cannot be captured, the launches themselves."""
        if work is None:
            work = self._empty
            work()  # loaded before the capture, as every other kernel is by then
        try:
            with self.stream:
                self.stream.begin_capture()
                try:
                    work()
                finally:
                    graph = self.stream.end_capture()
            graph.upload(self.stream)
        except cupy.cuda.runtime.CUDARuntimeError:
            self.method = "CUDA events around the launches one by one (they could not be captured), behind a spin"
            return work
        return partial(graph.launch, self.stream)

    def replay(self, recorded: Callable[[], None]) -> None:
        """Do the recorded work once more, untimed."""
        recorded()

    def time(self, recorded: Callable[[], None]) -> float:
        """Microseconds of one replay."""
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        with self.stream:
            self._support.get_function("spin")((1,), (1,), (np.int64(SPIN_CLOCKS),))
        begin.record(self.stream)
        recorded()
        end.record(self.stream)
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) * 1e3

    def flush(self) -> None:
        """Leave the L2 cache full of clean lines of no interest."""
        dirty, clean, sink = self._flushers
        cupy.cuda.runtime.memsetAsync(dirty.ptr, 0, FLUSH_BYTES, self.stream.ptr)
        with self.stream:
            arguments = (np.uint64(clean.ptr), np.uint64(FLUSH_BYTES // 16), np.uint64(sink.ptr))
            self._support.get_function("sweep")((self._wide_grid,), (256,), arguments)

    # ------------------------------------------------------------------------------------------------------------ errors

    def explain(self, error: Exception) -> ExplorerError | None:
        """A CUDA failure as one of ours; None if it is something else."""
        if isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            return _out_of_memory(str(error))
        if not isinstance(error, cupy.cuda.runtime.CUDARuntimeError | cupy.cuda.driver.CUDADriverError):
            return None
        status = int(getattr(error, "status", 0))
        if status == _OUT_OF_MEMORY:
            return _out_of_memory(str(error))
        if status == _TIMEOUT:
            return KernelTimeout("The driver stopped the kernel.", why=f"{_FAULTS[status]} ({error})",
                                 hint="use smaller sizes, or a GPU that drives no display")
        if status in _TOO_BIG:
            return ResourceError("The driver refused the launch.", why=f"{_TOO_BIG[status]} ({error})",
                                 hint="fewer threads per block, a smaller tile, or fewer registers per thread")
        if status in _FAULTS:
            return KernelFault("The kernel faulted.", why=f"{_FAULTS[status]} ({error})", status=status,
                               hint="run it on the CPU device: its bounds check names the statement")
        return DeviceError("CUDA reports an error.", why=str(error), status=status)

    # ----------------------------------------------------------------------------------------------------------- private

    @cached_property
    def _support(self) -> Any:
        """Our own kernels: seeded inputs, spin, cache sweep, nothing."""
        return cupy.RawModule(code=_SUPPORT, options=("-std=c++17",))

    @cached_property
    def _flushers(self) -> tuple[Any, Any, Any]:
        """Memory to write, memory to read (all zero), and where the sweep never writes."""
        dirty, clean, sink = (cupy.cuda.alloc(n) for n in (FLUSH_BYTES, FLUSH_BYTES, 16))
        cupy.cuda.runtime.memsetAsync(clean.ptr, 0, FLUSH_BYTES, self.stream.ptr)
        return dirty, clean, sink

    @cached_property
    def _wide_grid(self) -> int:
        """Blocks of 256 threads that fill the GPU."""
        return 8 * cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["multiProcessorCount"]

    def _empty(self) -> None:
        with self.stream:
            self._support.get_function("empty")((1,), (1,), ())

    def _move(self, target: int, source: int, nbytes: int, kind: int) -> None:
        if nbytes:
            cupy.cuda.runtime.memcpyAsync(target, source, nbytes, kind, self.stream.ptr)


def _out_of_memory(why: str) -> OutOfMemory:
    free, total = cupy.cuda.runtime.memGetInfo()
    return OutOfMemory("The GPU's memory does not hold the arrays.", why=f"{why}; {free:,} of {total:,} bytes were free",
                       hint="use smaller sizes")
