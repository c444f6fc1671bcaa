"""CUDA text to machine code with no GPU and no driver: NVRTC from the CUDA wheels, for any architecture, on any machine.

The compiler runs in a worker process (a crash or an endless optimisation becomes an error), its results are kept on disk
under the user's cache directory, keyed by text, options and compiler version.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ...errors import CompileError, CompilerMissing, DeviceError, KernelTimeout
from ...gpu.occupancy import Occupancy, occupancy
from ...gpu.spec import ARCHITECTURES, catalogue
from ...kernel.module import CudaModule
from ...system.worker import Worker
from . import cubin_cache
from .library import binding, wheel_folders
from .ptxas import Diagnostic, KernelResources, diagnostics, resources

LIMIT_S = 120.0
_OPTIONS = ("-std=c++17", "--ptxas-options=-v", "-lineinfo")
_PIP = "pip install cupy-cuda13x nvidia-cuda-nvrtc nvidia-cuda-runtime"
# Instructions that exist only in an architecture-specific target: wgmma and setmaxnreg in sm_90a, tcgen05 in sm_100a.
_SPECIFIC = re.compile(r"\b(wgmma\.|setmaxnreg\.|tcgen05\.)")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_MISSING_HEADER = re.compile(r"(?:could not|cannot) open source file \"([^\"]+)\"")


@dataclass(frozen=True)
class Cubin:
    """Machine code for one architecture.

    Attributes
    ----------
    arch : str
        ``"sm_90"``, or ``"sm_90a"`` where the text needs it.
    cubin : bytes
    ptx, log : str
        The intermediate text, and what the compilers printed.
    kernels : mapping of str to KernelResources
        Registers, spills, stack, static shared memory and barriers of each kernel.
    """

    arch: str
    cubin: bytes
    ptx: str
    log: str
    kernels: Mapping[str, KernelResources]


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel of a module on one architecture.

    Attributes
    ----------
    kernel, arch : str
    resources : KernelResources
    threads_per_block, shared_bytes_per_block : int
        The largest over the kernel's launches; shared memory static plus dynamic.
    occupancy : mapping of str to Occupancy
        For each GPU of that architecture in the catalogue.
    """

    kernel: str
    arch: str
    resources: KernelResources
    threads_per_block: int
    shared_bytes_per_block: int
    occupancy: Mapping[str, Occupancy]


def compile_text(text: str, arch: str = "sm_90", options: Sequence[str] = (), *, name: str = "kernel.cu",
                 nodes_at: Callable[[int], tuple[str, ...]] | None = None, limit_s: float = LIMIT_S) -> Cubin:
    """Compile CUDA text for one architecture.

    Parameters
    ----------
    text : str
    arch : str
        ``"sm_90"``; ``"sm_90a"`` for a target's own instructions.
    options : sequence of str
        Further NVRTC options, such as ``"--use_fast_math"``.
    name : str
        Shown in the compiler's messages.
    nodes_at : callable, optional
        From a line to the ids of the schedule's nodes there (``CudaModule.nodes_at``).
    limit_s : float
        Seconds allowed.

    Raises
    ------
    CompileError
        If the text is refused; `diagnostics` holds each error with its line, that line's text and its nodes, `line` is the
        first of the lines, `nodes` all the nodes, `log` what the compiler printed.
    CompilerMissing
        If NVRTC, CuPy's binding or a header is not installed.
    """
    outcome = _compile_all([(text, arch)], options, name, nodes_at, limit_s)[arch]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def compile_module(module: CudaModule, arch: str = "sm_90", options: Sequence[str] = ()) -> Cubin:
    """Compile a module's text; an error names the schedule's nodes."""
    return compile_text(module.text, arch, options, name=f"{module.name}.cu", nodes_at=module.nodes_at)


def compile_for(module: CudaModule, archs: Sequence[str] = ARCHITECTURES,
                options: Sequence[str] = ()) -> tuple[CompiledKernel, ...]:
    """Compile a module for several architectures and say what each kernel needs and how it fills each known GPU.

    Returns
    -------
    tuple of CompiledKernel
        Architecture by architecture, kernels in the order of their first launch.

    Raises
    ------
    CompileError
        For the first architecture that refuses the text; `try_compile_for` goes on instead.
    """
    results = try_compile_for(module, archs, options)
    for outcome in results.values():
        if isinstance(outcome, CompileError):
            raise outcome
    return tuple(kernel for outcome in results.values() if not isinstance(outcome, CompileError) for kernel in outcome)


def try_compile_for(module: CudaModule, archs: Sequence[str] = ARCHITECTURES,
                    options: Sequence[str] = ()) -> dict[str, tuple[CompiledKernel, ...] | CompileError]:
    """Like `compile_for`, with the refusal in place of the kernels where an architecture refuses."""
    compiled = _compile_all([(module.text, arch) for arch in archs], options, f"{module.name}.cu", module.nodes_at, LIMIT_S)
    return {arch: c if isinstance(c, CompileError) else _kernels(module, c) for arch, c in compiled.items()}


def target(text: str, arch: str) -> str:
    """The compiler target for an architecture: with an ``a`` when the text uses instructions that only it has."""
    return arch + "a" if arch in ("sm_90", "sm_100") and _SPECIFIC.search(text) else arch


@cache
def nvrtc_version() -> tuple[int, int]:
    """Major and minor version of the NVRTC that would compile.

    Raises
    ------
    CompilerMissing
        Without CuPy or the NVRTC library, with the line that installs them.
    """
    if importlib.util.find_spec("cupy_backends") is None:
        raise CompilerMissing("NVRTC is reached through CuPy, which is not installed.", hint=_PIP)
    try:
        return binding().getVersion()
    except Exception as error:  # the library is loaded on first use and fails in its own ways
        why = f"{type(error).__name__}: {error}"
        raise CompilerMissing("The NVRTC library is not on this machine.", why=why, hint=_PIP) from error


@cache
def include_folders() -> tuple[str, ...]:
    """Folders with CUDA's headers (``cuda_fp16.h``): the wheels', then an installed toolkit's."""
    wheels = [p for p in wheel_folders() if p.name in (f"cu{nvrtc_version()[0]}", "cuda_runtime")]
    toolkits = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    places = (p / "include" for p in (*wheels, *(Path(t) for t in toolkits if t)))
    return tuple(str(p) for p in places if (p / "cuda_fp16.h").is_file())[:1]


@cache
def _compiler() -> Worker:
    """The compiler process, one for everybody."""
    return Worker("explorer.run.nvrtc.worker:Backend", noun="compiler")


def _compile_all(work: Sequence[tuple[str, str]], options: Sequence[str], name: str,
                 nodes_at: Callable[[int], tuple[str, ...]] | None, limit_s: float) -> dict[str, Cubin | CompileError]:
    """Compile each (text, architecture), from the cache where it is there; results by the architecture asked for."""
    version = nvrtc_version()
    flags = {arch: (f"-arch={target(text, arch)}", *_OPTIONS, *options) for text, arch in work}
    keys = {arch: _key(text, flags[arch], version, name) for text, arch in work}
    outcomes = {arch: cubin_cache.load(keys[arch]) for _, arch in work}
    missing = [(text, arch) for text, arch in work if not _lasting(outcomes[arch])]
    if missing:
        folders = tuple(f"-I{folder}" for folder in include_folders())
        jobs = [(name, text, (*flags[arch], *folders)) for text, arch in missing]
        for (_, arch), outcome in zip(missing, _run_compiler(jobs, limit_s), strict=True):
            outcomes[arch] = outcome
            if _lasting(outcome):
                cubin_cache.store(keys[arch], outcome)
    return {arch: _result(outcomes[arch] or (False, b"", "", ""), text, target(text, arch), nodes_at) for text, arch in work}


def _lasting(outcome: cubin_cache.Outcome | None) -> bool:
    """Whether the outcome follows from the text alone, and so may be kept.

    The log says what every kernel of the PTX needs; ptxas does not, where something else has done its work.  A header that could
    not be opened is a matter of the machine.
    """
    if outcome is None:
        return False
    accepted, _, ptx, log = outcome
    return set(_ENTRY.findall(ptx)) <= resources(log).keys() if accepted else not _MISSING_HEADER.search(log)


def _run_compiler(jobs: list[tuple[str, str, tuple[str, ...]]], limit_s: float) -> list[tuple[bool, bytes, str, str]]:
    """One call of the compiler process; its death or silence is about the text, not about a kernel."""
    try:
        return _compiler().call("compile", jobs, limit_s=limit_s)
    except KernelTimeout as error:
        raise CompileError("The compiler did not finish.", where=error.where, why=error.what,
                           hint="unroll less, or split the kernel") from error
    except (CompilerMissing, CompileError):
        raise
    except DeviceError as error:
        raise CompileError("The compiler failed.", where=error.where, why=f"{error.what} {error.why}".strip()) from error


def _result(outcome: tuple[bool, bytes, str, str], text: str, arch: str,
            nodes_at: Callable[[int], tuple[str, ...]] | None) -> Cubin | CompileError:
    """What the compiler said as machine code or as an error with its lines."""
    accepted, cubin, ptx, log = outcome
    if accepted and not _lasting(outcome):
        raise DeviceError(f"The compiler did not say what the kernels need on {arch}.", why=log or "its log is empty",
                          hint="compile with CUDA_CACHE_DISABLE=1: a cache of machine code keeps no logs")
    if accepted:
        return Cubin(arch, cubin, ptx, log, resources(log))
    missing = _MISSING_HEADER.search(log)
    if missing and missing[1].startswith(("cuda_", "cooperative_groups", "mma")) and not include_folders():
        raise CompilerMissing(f"CUDA's header {missing[1]} is not on this machine.", hint="pip install nvidia-cuda-runtime")
    found = diagnostics(log, text, ptx) or (Diagnostic(log.strip() or "the compiler refused the text without a message"),)
    if nodes_at is not None:
        found = tuple(replace(d, nodes=nodes_at(d.line)) if d.line else d for d in found)
    nodes = tuple(dict.fromkeys(node for d in found for node in d.nodes))
    lines = tuple(d.line for d in found if d.line)
    why = "\n  ".join(dict.fromkeys(map(str, found)))
    return CompileError(f"NVRTC refused the text for {arch}.", why=why, arch=arch, log=log, diagnostics=found,
                        nodes=nodes, lines=lines, line=lines[0] if lines else None)


def _kernels(module: CudaModule, compiled: Cubin) -> tuple[CompiledKernel, ...]:
    """Each launched kernel with its needs and its occupancy."""
    done = []
    for name in dict.fromkeys(launch.kernel for launch in module.launches):
        need = compiled.kernels.get(name)
        if need is None:
            raise CompileError(f"The text defines no kernel {name!r}.", why=f"it defines {', '.join(compiled.kernels) or 'none'}",
                               hint='declare it extern "C" __global__', arch=compiled.arch, diagnostics=(), nodes=(), lines=())
        mine = [launch for launch in module.launches if launch.kernel == name]
        threads = max(launch.threads_per_block for launch in mine)
        shared = need.static_shared_bytes + max(launch.dynamic_shared_bytes for launch in mine)
        fill = {g.name: occupancy(g, threads, need.registers, shared, need.barriers)
                for g in catalogue().values() if g.arch == compiled.arch.rstrip("a")}
        done.append(CompiledKernel(name, compiled.arch, need, threads, shared, fill))
    return tuple(done)


def _key(text: str, flags: Sequence[str], version: tuple[int, int], name: str) -> str:
    """Names a compilation: everything that its result depends on."""
    return hashlib.sha256(json.dumps([text, list(flags), list(version), name]).encode()).hexdigest()
