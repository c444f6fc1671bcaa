"""The CPU device: the emitted CUDA text, compiled by the system's C++ compiler, run in a process of its own.

Two builds of one text.  The *checked* build instruments every access and runs the threads in several adversarial orders;
it proves bounds, initialisation, alignment, absence of races and of divergent barriers for the sizes it ran.  The *fast*
build runs blocks on all cores, for large sizes and for timing.  The runtime in ``simt/`` explains how.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from pathlib import Path

import numpy as np

from ...errors import CompilerMissing, DeviceError, KernelTimeout, OutOfMemory, ResourceError
from ...kernel.module import Buffer, CudaModule
from ...system.cache import key_of
from ...system.process import run_process
from ..device import Built, checked_array
from .compiler import BUILDS, Compiler, find_compiler, run_compiler
from .elf import symbols_in_section
from .glue import is_dynamic_symbol, module_of_symbol, source_of, variable_of_symbol
from .report import compile_error, failure

SIMT_FOLDER = Path(__file__).parent / "simt"
MODULES_PER_PROGRAM = 32
COOPERATIVE_THREADS = {True: 1 << 14, False: 1 << 16}
"""Threads of a cooperative launch that the checked and the fast build hold: each keeps a stack (two mappings, and some pages)."""
_ALIGNMENT = 4096  # of arrays in the file; a multiple of the 256 bytes that cudaMalloc promises


@dataclass(frozen=True)
class SharedArray:
    """A shared array of a kernel: its place in the section of all of them.  `kernel` is ``"*"`` for any kernel's."""

    name: str
    kernel: str
    offset: int
    bytes: int
    dynamic: bool


@dataclass(frozen=True)
class CpuBuilt(Built):
    """A module compiled for the CPU.

    Attributes
    ----------
    program : Path
        The executable; it may hold other modules too.
    number : int
        This module's number in it.
    checked, watched : bool
    shared : tuple of SharedArray
    """

    program: Path = field(default=Path())
    number: int = 0
    checked: bool = True
    watched: bool = True
    shared: tuple[SharedArray, ...] = ()


@dataclass(frozen=True)
class CpuDevice:
    """Runs kernels on this machine's processor.

    Parameters
    ----------
    checked : bool
        Check every access (slow: for tiny and ragged sizes) or run fast.
    seeds : int or sequence of int
        Thread and block orders of a checked run: seeds 0 and 3 are in order, 1 reversed, every other one random; an integer n
        means the seeds 0 to n - 1.  Copies read, and bulk copies land, as late as can be with seed 0, at once with 1 and 3, and
        at random times else; products in flight are computed at their wait with seeds 0 and 1, at once with 3.
    threads : int, optional
        Operating-system threads of a fast run; by default, all that this process may use.
    time_limit_s : float
        For one run, all seeds together.
    compiler : Compiler, optional
        By default, :func:`~explorer.run.cpu.compiler.find_compiler`'s.
    watched : bool
        Whether a checked run ends at the first fault.  If not, it runs in the same orders without looking at accesses, to
        see what a faulty text computes.
    """

    checked: bool = True
    seeds: int | Sequence[int] = 3
    threads: int | None = None
    time_limit_s: float = 30.0
    compiler: Compiler | None = None
    watched: bool = True

    @property
    def name(self) -> str:
        """What users read."""
        return "cpu"

    @property
    def seed_list(self) -> tuple[int, ...]:
        """The seeds of a run; a fast run has one order."""
        if not self.checked:
            return (0,)
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else tuple(self.seeds)

    def build(self, module: CudaModule) -> CpuBuilt:
        """Compile `module`, or find it in the cache.

        Raises
        ------
        CompilerMissing
            This machine has no C++ compiler.
        CompileError
            The compiler refused the text.
        """
        return self.build_many([module])[0]

    def build_many(self, modules: Sequence[CudaModule]) -> list[CpuBuilt]:
        """Compile many modules, several to a program: a small kernel's share is then a few milliseconds.

        Raises
        ------
        CompilerMissing
        CompileError
            Of the first module that was refused; its position is `index`.
        """
        compiler = self.compiler or find_compiler()
        built: list[CpuBuilt] = []
        for start in range(0, len(modules), MODULES_PER_PROGRAM):
            built += _build_program(compiler, self, modules[start : start + MODULES_PER_PROGRAM], start)
        return built

    def run(self, built: CpuBuilt, arrays: Mapping[str, np.ndarray], *,
            time_limit_s: float | None = None) -> dict[str, np.ndarray]:
        """Run all launches, in every seed's order, and return the first seed's ``out`` and ``inout`` arrays.

        Outputs, workspaces and shared memory start as 0xFF bytes (a NaN).  The arrays given are never modified.

        Raises
        ------
        KernelFault
            A check failed or the kernel crashed; has `kind`, `array`, `index`, `thread`, `block`, `line` and `nodes`.
        KernelTimeout
            It ran longer than the limit.
        """
        return self.run_seeds(built, arrays, time_limit_s=time_limit_s)[0]

    def run_seeds(self, built: CpuBuilt, arrays: Mapping[str, np.ndarray], *,
                  time_limit_s: float | None = None) -> tuple[dict[str, np.ndarray], ...]:
        """As :meth:`run`, with the arrays of every seed; they may differ by the rounding of atomics, and by nothing else."""
        device = replace(self, checked=built.checked)
        layout = _Layout.of(built.module.buffers, len(device.seed_list) if built.checked else 0)
        with _shared_file(layout.bytes) as (descriptor, memory):
            layout.fill(memory, arrays, poison=not built.checked)
            device._execute(built, layout, descriptor, "action run", time_limit_s)
            return tuple(layout.results(memory, seed) for seed in range(len(device.seed_list)))

    def time(self, built: CpuBuilt, arrays: Mapping[str, np.ndarray], *, repeats: int = 10, warmup: int = 2,
             time_limit_s: float | None = None) -> tuple[float, ...]:
        """Durations of all launches together, in microseconds, on the fast build (made now if `built` is the checked one)."""
        fast = replace(self, checked=False)
        program = fast.build(built.module) if built.checked else built
        layout = _Layout.of(built.module.buffers, 0)
        with _shared_file(layout.bytes) as (descriptor, memory):
            layout.fill(memory, arrays, poison=True)
            answer = fast._execute(program, layout, descriptor, f"action time\nrepeats {repeats} {warmup}", time_limit_s)
        return tuple(float(line.split()[1]) for line in answer if line.startswith("sample "))

    def _require_room(self, built: CpuBuilt) -> None:
        """Refuse a launch whose threads all need a stack at once, because its blocks wait for each other, and are too many."""
        most = COOPERATIVE_THREADS[built.checked]
        for launch in built.module.launches:
            blocks = prod(launch.grid)
            if launch.cooperative and blocks * launch.threads_per_block > most:
                raise ResourceError(
                    f"The CPU device cannot hold the grid of {launch.kernel}, whose blocks wait for each other.",
                    why=f"{blocks:,} blocks of {launch.threads_per_block:,} threads are {blocks * launch.threads_per_block:,} "
                        f"threads with a stack each; it holds {most:,}",
                    hint="smaller sizes, fewer blocks, or how='last_block', where no block waits")

    def _execute(self, built: CpuBuilt, layout: _Layout, descriptor: int, action: str, time_limit_s: float | None) -> list[str]:
        """One process, one request; its answer's lines, or the error it reports."""
        self._require_room(built)
        limit_s = self.time_limit_s if time_limit_s is None else time_limit_s
        threads = self.threads or _processors()
        request = "\n".join([
            action, f"limit {max(int(limit_s * 1000), 1)}", f"threads {threads}", f"result_stride {layout.result_stride}",
            f"seeds {len(self.seed_list)} " + " ".join(map(str, self.seed_list)),
            f"data {descriptor} {layout.bytes}", *layout.lines(), *_shared_lines(built), *_map_lines(built),
            *_launch_lines(built), ""])
        try:
            process = run_process([str(built.program)], input=request, pass_fds=(descriptor,), timeout=limit_s + 10)
        except subprocess.TimeoutExpired as error:
            raise KernelTimeout(f"{built.module.name} ran longer than {limit_s:g} s and was stopped.",
                                hint="look for a loop that never ends, or give it more time") from error
        answer = process.stdout.splitlines()
        if process.returncode == 0 and answer and answer[-1] == "ok":
            return answer
        raise failure(built.module, built.program, built.number, answer, process.returncode, process.stderr, limit_s)


# ---- programs ----


def _build_program(compiler: Compiler, device: CpuDevice, modules: Sequence[CudaModule], start: int) -> list[CpuBuilt]:
    """One executable with all of `modules`, from the cache if it is there."""
    checked, watched = device.checked, device.watched
    runtime = _runtime(compiler, checked)
    source = source_of(modules)
    flags = compiler.flags(checked, watched)

    def make(folder: Path) -> None:
        (folder / "program.cpp").write_text(source)
        answer = run_compiler(compiler, (*flags, f"-I{SIMT_FOLDER}", "-c", "program.cpp", "-o", "program.o"), folder)
        if answer.returncode == 0:
            answer = run_compiler(compiler, ("program.o", str(runtime), "-o", "program", "-lm", "-lpthread"), folder)
        if answer.returncode:
            raise compile_error(modules, answer.stderr or answer.stdout, start)
        shared = symbols_in_section(folder / "program", "simt_shared") if checked else ()
        (folder / "shared.json").write_text(json.dumps(shared))
        (folder / "program.o").unlink()

    folder = BUILDS.made(key_of(source, flags, compiler.identity, runtime.parent.name), make)
    _prune_once()
    symbols = json.loads((folder / "shared.json").read_text())
    return [CpuBuilt(m, folder / "program", k, checked, watched, _shared_arrays(symbols, k)) for k, m in enumerate(modules)]


def _runtime(compiler: Compiler, checked: bool) -> Path:
    """The compiled runtime, never instrumented; made once per compiler and mode."""
    text = "".join(p.name + p.read_text() for p in sorted(SIMT_FOLDER.iterdir()) if p.suffix in (".h", ".cpp"))
    flags = ("-std=c++17", "-O2", "-g1", "-fno-exceptions", "-fno-rtti", f"-DSIMT_CHECKED={int(checked)}")

    def make(folder: Path) -> None:
        answer = run_compiler(compiler, (*flags, "-c", str(SIMT_FOLDER / "runtime.cpp"), "-o", "runtime.o"), folder)
        if answer.returncode:
            raise CompilerMissing(f"{compiler.version} cannot compile the runtime of the CPU device.", why=answer.stderr[-2000:],
                                  hint="it needs C++17: g++ 9 or newer, or clang++ 10 or newer; set CXX to choose one")

    return BUILDS.made(key_of(text, flags, compiler.identity), make) / "runtime.o"


@lru_cache(maxsize=1)
def _prune_once() -> None:
    """Keep the cache within its limit, looked at once per process."""
    BUILDS.prune()


def _shared_arrays(symbols: Sequence[Sequence], number: int) -> tuple[SharedArray, ...]:
    """The shared arrays of module `number` among a program's symbols."""
    return tuple(SharedArray(*variable_of_symbol(symbol), offset, size, is_dynamic_symbol(symbol))
                 for symbol, offset, size in symbols if module_of_symbol(symbol) == number)


def _shared_lines(built: CpuBuilt) -> list[str]:
    lines = [f"shared {len(built.shared)}"]
    for a in built.shared:
        owner = "*" if a.kernel == "*" else f"{built.number}:{a.kernel}"
        lines.append(f"{a.name} {'+' if a.dynamic else ''}{owner} {a.offset} {a.bytes}")
    return lines


def _map_lines(built: CpuBuilt) -> list[str]:
    position = {b.name: i for i, b in enumerate(built.module.buffers)}
    lines = [f"maps {len(built.module.tensor_maps)}"]
    for m in built.module.tensor_maps:
        buffer = built.module.buffer(m.buffer)
        axes = (n for axis in zip(m.shape[::-1], m.box[::-1], m.steps[::-1], strict=True) for n in axis)
        lines.append(" ".join(map(str, (position[m.buffer], buffer.dtype.bytes, len(m.box), m.swizzle, m.pitch, *axes))))
    return lines


def _launch_lines(built: CpuBuilt) -> list[str]:
    position = {x.name: i for i, x in enumerate((*built.module.buffers, *built.module.tensor_maps))}
    lines = [f"launches {len(built.module.launches)}"]
    for launch in built.module.launches:
        numbers = (*launch.grid, *launch.block, launch.dynamic_shared_bytes, int(launch.cooperative), *launch.cluster,
                   len(launch.arguments), *(position[a] for a in launch.arguments), len(launch.scalars), *launch.scalars)
        lines.append(f"{built.number}:{launch.kernel} " + " ".join(map(str, numbers)))
    return lines


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- arrays ----


@dataclass(frozen=True)
class _Layout:
    """Where each array lies in the file that both processes map: all buffers, then one group of results per seed."""

    buffers: tuple[Buffer, ...]
    offsets: tuple[int, ...]
    result_offsets: tuple[int, ...]
    result_stride: int
    bytes: int

    @classmethod
    def of(cls, buffers: tuple[Buffer, ...], copies: int) -> _Layout:
        """`copies` results per array; with 0, the results lie where the buffers are."""
        def place(start: int, chosen: Sequence[bool]) -> tuple[list[int], int]:
            at, places = start, []
            for buffer, wanted in zip(buffers, chosen, strict=True):
                places.append(at)
                at += -(-buffer.nbytes // _ALIGNMENT) * _ALIGNMENT if wanted else 0
            return places, at

        offsets, end = place(0, [True] * len(buffers))
        if copies == 0:
            return cls(buffers, tuple(offsets), tuple(offsets), 0, max(end, _ALIGNMENT))
        results, after = place(end, [b.kind in ("out", "inout") for b in buffers])
        stride = after - end
        return cls(buffers, tuple(offsets), tuple(results), stride, max(end + copies * stride, _ALIGNMENT))

    def lines(self) -> list[str]:
        rows = zip(self.buffers, self.offsets, self.result_offsets, strict=True)
        return [f"buffers {len(self.buffers)}",
                *(f"{b.name} {b.kind} {b.dtype.bytes} {b.size} {at} {result}" for b, at, result in rows)]

    def fill(self, memory: mmap.mmap, arrays: Mapping[str, np.ndarray], *, poison: bool) -> None:
        """Copy the inputs in; `poison` the rest (a checked run poisons its own memory)."""
        for buffer, at in zip(self.buffers, self.offsets, strict=True):
            view = np.frombuffer(memory, np.uint8, buffer.nbytes, at)
            if buffer.kind in ("in", "inout"):
                view[:] = checked_array(buffer, arrays).reshape(-1).view(np.uint8)
            elif poison:
                view[:] = 0xFF

    def results(self, memory: mmap.mmap, seed: int) -> dict[str, np.ndarray]:
        found = {}
        for buffer, at in zip(self.buffers, self.result_offsets, strict=True):
            if buffer.kind in ("out", "inout"):
                view = np.frombuffer(memory, buffer.dtype.numpy, buffer.size, at + seed * self.result_stride)
                found[buffer.name] = view.reshape(buffer.shape).copy()
        return found


@contextmanager
def _shared_file(size: int) -> Iterator[tuple[int, mmap.mmap]]:
    """A nameless file of `size` bytes in memory (where the system has such), as a descriptor and a mapping."""
    if (there := _memory()) and size > there:
        raise OutOfMemory("The arrays and workspaces do not fit this machine's memory.",
                          why=f"{size:,} bytes are needed; it has {there:,}", hint="smaller sizes, or fewer partial results")
    descriptor = _open_nameless()
    try:
        try:
            os.ftruncate(descriptor, size)
            memory = mmap.mmap(descriptor, size)
        except (OSError, ValueError, OverflowError) as error:
            raise OutOfMemory("The arrays do not fit this machine's memory.", why=f"{size} bytes are needed: {error}") from error
        yield descriptor, memory
    finally:
        os.close(descriptor)


def _memory() -> int:
    """Bytes of this machine's memory; 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


def _open_nameless() -> int:
    """A descriptor of a new file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("arrays")
    try:
        descriptor, name = tempfile.mkstemp(prefix="arrays-")
    except OSError as error:
        raise DeviceError("No temporary file could be made for the arrays.", why=str(error)) from error
    os.unlink(name)
    return descriptor
