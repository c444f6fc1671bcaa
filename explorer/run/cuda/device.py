"""The CUDA device: kernels run by CuPy in a worker process, so that a hang or an illegal address is an error and not the end.

Importing this needs no CuPy; whether there is a GPU is asked with `available`.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import importlib.util
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ...errors import DeviceError, ExplorerError, ResourceError
from ...gpu.occupancy import check_launch, check_memory
from ...gpu.spec import Gpu, catalogue, gpu
from ...ir.coding import coded
from ...kernel.module import Buffer, CudaModule
from ...system.sharing import SharedBlock
from ...system.worker import Worker
from ..device import Built, as_numpy
from ..inputs.seeded import Seeded
from ..nvrtc.compiler import Cubin, compile_module
from ..timing import Samples
from .worker import Job, Source

LIMIT_S = 20.0


@dataclass(frozen=True)
class Installed:
    """The GPU in this machine, as the driver describes it.

    Attributes
    ----------
    name : str
    compute_capability : tuple of int
    multiprocessors : int
    memory_bytes, l2_bytes : int
    driver : int
        CUDA version the driver supports, as ``1000 * major + 10 * minor``.
    cupy : str
    """

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    driver: int
    cupy: str

    @property
    def arch(self) -> str:
        """The compiler's target."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}"

    @property
    def gpu(self) -> Gpu:
        """Its row in the catalogue; for an unlisted product a row of its architecture with this one's own counts and sizes."""
        with suppress(ResourceError):
            return gpu(self.name)
        kin = [g for g in catalogue().values() if g.arch == self.arch]
        if not kin:
            raise DeviceError(f"The catalogue has no GPU of {self.name}'s architecture {self.arch}.",
                              why=f"known: {', '.join(sorted({g.arch for g in catalogue().values()}))}")
        return replace(kin[0], name=self.name, aliases=(), multiprocessors=self.multiprocessors, memory_bytes=self.memory_bytes,
                       l2_bytes=self.l2_bytes, measured_bandwidth_bytes_per_s=None, measured_f16_tensor_flops_per_s=None)


@dataclass(frozen=True)
class CudaBuilt(Built):
    """A module compiled for the GPU.

    Attributes
    ----------
    cubin : Cubin
        With the resources of each kernel.
    gpu : Gpu
        What its launches were checked against.
    key : str
        Names the machine code.
    """

    cubin: Cubin
    gpu: Gpu
    key: str


class CudaDevice:
    """Builds, runs and times modules on the machine's GPU.

    Parameters
    ----------
    limit_s : float
        Seconds that one launch, one copy or one repeat may take before it counts as hung.
    backend : str
        What runs in the worker process, ``"module:callable"``.

    Notes
    -----
    After a hang, a fault or exhausted memory the worker is replaced and the next call works.
    """

    def __init__(self, *, limit_s: float = LIMIT_S, backend: str = "explorer.run.cuda.worker:Backend") -> None:
        self.limit_s = limit_s
        self.worker = Worker(backend)
        self._installed: Installed | None = None
        self._loaded: set[tuple[int, str]] = set()

    @property
    def name(self) -> str:
        """The GPU's name, as the driver has it."""
        return self.installed().name

    def installed(self) -> Installed:
        """The GPU, asked once."""
        if self._installed is None:
            self._installed = Installed(**self.worker.call("describe", limit_s=self.limit_s))
        return self._installed

    def build(self, module: CudaModule, *, arch: str | None = None, options: Sequence[str] = ()) -> CudaBuilt:
        """Compile a module for this GPU and check that each launch fits it.

        Parameters
        ----------
        module : CudaModule
        arch : str, optional
            Another target, such as ``"sm_90a"``; by default the GPU's own, with the ``a`` when the text needs it.
        options : sequence of str
            Further NVRTC options.

        Raises
        ------
        CompileError, CompilerMissing
            From the compiler.
        ResourceError
            If a launch does not fit.
        """
        here = self.installed()
        for launch in module.launches:  # before compiling: too big in shape alone
            check_launch(here.gpu, launch)
        check_memory(here.gpu, module.buffers)
        cubin = compile_module(module, arch or here.arch, options)
        for launch in module.launches:
            need = cubin.kernels.get(launch.kernel)
            if need is None:
                raise DeviceError(f"The text defines no kernel {launch.kernel!r}.", why=f"it defines {', '.join(cubin.kernels)}",
                                  hint='declare it extern "C" __global__')
            check_launch(here.gpu, replace(launch, static_shared_bytes=need.static_shared_bytes), need.registers)
        return CudaBuilt(module, cubin, here.gpu, hashlib.sha256(cubin.cubin).hexdigest())

    def run(self, built: CudaBuilt, arrays: Mapping[str, Any], *, fetch: Iterable[str] | None = None,
            time_limit_s: float | None = None) -> dict[str, np.ndarray]:
        """Run the module's launches once.

        Parameters
        ----------
        built : CudaBuilt
        arrays : mapping of str to array or Seeded
            One for each ``in`` and ``inout`` buffer: NumPy, CuPy, anything with DLPack, or `Seeded` to have the values made
            on the GPU.  Shape and type must be the buffer's; bf16 and 8-bit floats are given as
            their bits.  None of them is modified.
        fetch : iterable of str, optional
            Which ``out`` and ``inout`` buffers to bring back; all by default.
        time_limit_s : float, optional
            In place of the device's own limit.

        Returns
        -------
        dict of str to ndarray
            New arrays.  Whatever the launches did not write still holds 0xFF bytes (NaN for floats).

        Raises
        ------
        KernelTimeout, KernelFault, OutOfMemory, ResourceError
            With the launch they happened in.
        DeviceError
            For arrays that do not fit the module.
        """
        written = [b for b in built.module.buffers if b.kind in ("out", "inout")]
        wanted = [b for b in written if fetch is None or b.name in set(fetch)]
        with ExitStack() as stack:
            job = self._job(built, arrays, stack)
            blocks = {b.name: stack.enter_context(SharedBlock(b.nbytes)) for b in wanted}
            self.worker.call("run", job, {name: block.path for name, block in blocks.items()},
                             limit_s=time_limit_s or self.limit_s)
            return {b.name: blocks[b.name].array(b.dtype.numpy, b.shape) for b in wanted}

    def time(self, built: CudaBuilt, arrays: Mapping[str, Any], *, repeats: int = 30, warmup: int = 3,
             l2: str = "cold", time_limit_s: float | None = None) -> Samples:
        """Time all launches of a module together; see `time_interleaved`."""
        return self.time_interleaved([(built, arrays)], repeats=repeats, warmup=warmup, l2=l2, time_limit_s=time_limit_s)[0]

    def time_interleaved(self, work: Sequence[tuple[CudaBuilt, Mapping[str, Any]]], *, repeats: int = 30, warmup: int = 3,
                         l2: str = "cold", seed: int | None = None,
                         time_limit_s: float | None = None) -> tuple[Samples, ...]:
        """Time several modules in rounds, each round in a new random order, so that a drifting clock hits all alike.

        Parameters
        ----------
        work : sequence of (CudaBuilt, arrays)
            All are on the GPU at the same time.
        repeats, warmup : int
            Rounds that count, and rounds before them that do not.
        l2 : {"cold", "warm"}
            Before each repeat: 256 MiB written and then 256 MiB read, which leaves a cache of clean foreign lines; or the
            same module run once, which leaves its own.
        seed : int, optional
            Of the order.
        time_limit_s : float, optional
            For one repeat, in place of the device's own limit.

        Returns
        -------
        tuple of Samples
            Microseconds between CUDA events around one replay of a graph of the launches, inout arrays restored before;
            `overhead_us` is what an empty kernel reads that way in the same run, and is not subtracted.
        """
        if l2 not in ("cold", "warm"):
            raise DeviceError(f"The cache is either cold or warm, not {l2!r}.", hint='l2="cold" or l2="warm"')
        if repeats < 1:
            raise DeviceError("A timing needs at least one repeat.")
        with ExitStack() as stack:
            jobs = [self._job(built, arrays, stack) for built, arrays in work]
            order = random.randrange(2**31) if seed is None else seed
            taken, overhead_us, method = self.worker.call("time", jobs, repeats, warmup, l2, order,
                                                          limit_s=time_limit_s or self.limit_s)
        return tuple(Samples(samples, l2=l2, overhead_us=overhead_us, method=method) for samples in taken)

    def close(self) -> None:
        """End the worker process; the next call starts one again."""
        self.worker.close()

    def _job(self, built: CudaBuilt, arrays: Mapping[str, Any], stack: ExitStack) -> Job:
        """The program loaded in the worker, and the inputs where it can map them."""
        module = built.module
        given = [b for b in module.buffers if b.kind in ("in", "inout")]
        names = {b.name for b in given}
        if missing := sorted(names - set(arrays)):
            raise DeviceError(f"No array is given for {', '.join(missing)}.", where=f"module {module.name}")
        if surplus := sorted(set(arrays) - {b.name for b in module.buffers}):
            raise DeviceError(f"The module has no array {', '.join(surplus)}.", where=f"module {module.name}")
        sources: dict[str, Source] = {b.name: _source(b, arrays[b.name], stack) for b in given}
        loaded = (self.worker.start(), built.key)
        if loaded not in self._loaded:
            self.worker.call("load", built.key, built.cubin.cubin, module.launches, limit_s=self.limit_s)
            self._loaded = {entry for entry in self._loaded if entry[0] == loaded[0]} | {loaded}
        return Job(built.key, module.buffers, module.launches, sources, module.tensor_maps)


@cache
def device() -> CudaDevice:
    """The process's CUDA device; its worker starts with the first call."""
    return CudaDevice()


@cache
def available() -> str | None:
    """None if kernels can be run on a GPU here, else the reason why not.  The answer is kept; starting costs seconds once."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed (pip install cupy-cuda13x)"
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(library)
    except OSError:
        return "this machine has no NVIDIA driver"
    try:
        device().installed()
    except ExplorerError as error:
        return f"{error.what} {error.why}".strip().splitlines()[0]
    return None


def _source(buffer: Buffer, array: Any, stack: ExitStack) -> Source:
    """An input as the worker takes it, checked against its buffer."""
    if isinstance(array, Seeded):
        array.check(buffer)
        return array
    values = as_numpy(array, buffer.name)
    expected = buffer.dtype.numpy
    if values.shape != buffer.shape or values.dtype != expected:
        note = f" ({buffer.dtype} as its bits)" if coded(buffer.dtype) else ""
        raise DeviceError(f"The array given for {buffer.name} does not fit.", where=f"array {buffer.name}",
                          why=f"it is {values.dtype}{list(values.shape)}, wanted {expected}{list(buffer.shape)}{note}")
    block = stack.enter_context(SharedBlock(buffer.nbytes))
    np.copyto(block.array(expected, buffer.shape), values)
    return block.path
