"""The text of a schedule for one GPU: read it, ask what it costs, compile it for any GPU on any machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import CompileError, DeviceError, ResourceError, outspoken, shown
from ..gpu.occupancy import check_launch, check_memory
from ..gpu.spec import ARCHITECTURES, Gpu, architecture, target_gpu
from ..ir.plan import Plan
from ..ir.program import Program
from ..kernel.architecture import require_instructions
from ..kernel.emittable import require_emittable
from ..kernel.module import CudaModule, Launch
from ..schedule import Schedule
from .facts import Facts
from .nvrtc.compiler import CompiledKernel, try_compile_for


@outspoken(DeviceError)
@dataclass(frozen=True)
class Compiled:
    """What the compiler says of a kernel's text, for each architecture.

    Attributes
    ----------
    name : str
        The program's.
    kernels : tuple of CompiledKernel
        Architecture by architecture: registers, spills, shared memory, and the occupancy of each known GPU.
    refused : mapping of str to CompileError
        Architectures that refuse the text; the error names lines and nodes.  One that lacks an instruction of the schedule is
        refused before its text is compiled; the error then says which, and what to take instead.
    """

    name: str
    kernels: tuple[CompiledKernel, ...]
    refused: Mapping[str, CompileError]

    def __bool__(self) -> bool:
        return not self.refused

    def __getitem__(self, arch: str) -> tuple[CompiledKernel, ...]:
        """The kernels compiled for one architecture.

        Raises
        ------
        CompileError
            The compiler's, if that architecture refuses the text.
        KeyError
            If it was not compiled for.
        """
        if arch in self.refused:
            raise self.refused[arch]
        found = tuple(k for k in self.kernels if k.arch.rstrip("a") == arch.rstrip("a"))
        if not found:
            raise KeyError(arch)
        return found

    @property
    def rows(self) -> tuple[tuple[str, str, str, int, int, int, str, str], ...]:
        """(arch, kernel, GPU, registers, spilled bytes, shared bytes, occupancy, limiter); one row for each GPU."""
        out = []
        for k in self.kernels:
            spilled = k.resources.spill_store_bytes + k.resources.spill_load_bytes
            for gpu, fill in k.occupancy.items() or (("", None),):
                share, limiter = (f"{fill.fraction:.0%}", fill.limiter) if fill else ("", "")
                out.append((k.arch, k.kernel, gpu, k.resources.registers, spilled, k.shared_bytes_per_block, share, limiter))
        return tuple(out)

    def __str__(self) -> str:
        lines = [f"{self.name}, compiled by NVRTC"]
        for arch, kernel, gpu, registers, spilled, shared, share, limiter in self.rows:
            spills = f"{spilled} B spilled" if spilled else "no spills"
            fill = f"{share:>4s} occupancy, limited by {limiter}" if share else "no GPU of this architecture in the catalogue"
            lines.append(f"  {arch:7s} {gpu:10s} {kernel}: {registers} registers, {spills}, {shared:,} B shared; {fill}")
        lines += [f"  {arch} refuses the text: {error.message()}".replace("\n", "\n  ") for arch, error in self.refused.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


@outspoken(DeviceError)
@dataclass(frozen=True)
class Kernel:
    """CUDA text with its launches, for one GPU whose launch limits it keeps.

    Attributes
    ----------
    module : CudaModule
        Text, buffers, launches, and the lines of every node.
    program : Program
        The user's.
    plan : Plan
    gpu : Gpu
    """

    module: CudaModule
    program: Program
    plan: Plan
    gpu: Gpu

    @classmethod
    def of(cls, schedule: Schedule, gpu: Gpu | str | None = None) -> Kernel:
        """The kernel of a schedule.

        Parameters
        ----------
        schedule : Schedule
        gpu : Gpu or str, optional
            ``"H200"`` and others of the catalogue; by default the H200.

        Raises
        ------
        IllegalSchedule
            While a reduction's obligation is open.
        ResourceError
            If a launch exceeds a limit of the GPU; it says what to shrink.
        """
        from ..kernel.emit import emit  # needed here alone: `import explorer` needs this class for its picture

        require_emittable(schedule)
        target = target_gpu(gpu)
        module = emit(schedule.plan, arch=target.arch)
        for launch in module.launches:
            check_launch(target, launch)
        check_memory(target, module.buffers)
        return cls(module, schedule.source, schedule.plan, target)

    @property
    def name(self) -> str:
        """The program's name."""
        return self.module.name

    @property
    def text(self) -> str:
        """The CUDA text."""
        return self.module.text

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches, in order."""
        return self.module.launches

    @cached_property
    def facts(self) -> Facts:
        """What is known without compiling or running."""
        return Facts(self.program, self.plan, self.gpu)

    def compile(self, archs: str | Sequence[str] | None = None) -> Compiled:
        """Compile the text; needs neither a GPU nor a driver.

        Parameters
        ----------
        archs : str or sequence of str, optional
            Architectures (``"sm_90"``) or names of GPUs (``"H200"``); by default every architecture from 7.5 to 12.0.

        Returns
        -------
        Compiled
            Registers, spills, shared memory and occupancy; an architecture that refuses the text is in ``refused``.

        Raises
        ------
        CompilerMissing
            If NVRTC is not installed; the hint says how.
        """
        results = compiled_for(self.plan, self.module, architectures(archs) or ARCHITECTURES)
        kernels = tuple(k for found in results.values() if not isinstance(found, CompileError) for k in found)
        return Compiled(self.name, kernels, {a: f for a, f in results.items() if isinstance(f, CompileError)})

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        launches = "; ".join(f"{x.kernel}<<<{x.grid}, {x.block}>>>"
                             for x in self.launches[:4]) + ("; …" if len(self.launches) > 4 else "")
        return f"// {self.name} for {self.gpu}: {launches}\n{self.text}"


def compiled_for(plan: Plan, module: CudaModule, archs: Sequence[str]) -> dict[str, tuple[CompiledKernel, ...] | CompileError]:
    """A module compiled for each architecture, or why one refuses it.

    One that lacks an instruction of the plan is not compiled for: the compiler would name lines, not moves.
    """
    lacking: dict[str, CompileError] = {}
    for arch in archs:
        try:
            require_instructions(plan, arch)
        except ResourceError as error:
            lacking[arch] = CompileError(error.what, where=error.where, why=error.why, hint=error.hint, arch=arch, log="",
                                         diagnostics=(), nodes=error.nodes, lines=(), line=None)
    others = [arch for arch in archs if arch not in lacking]
    compiled = try_compile_for(module, others) if others else {}
    return {arch: lacking.get(arch) or compiled[arch] for arch in archs}


def architectures(asked: str | Sequence[str] | None) -> tuple[str, ...]:
    """Each of the architectures or GPUs asked for, once.

    Raises
    ------
    ResourceError
        If there is none of one of the names.
    """
    if asked is not None and not isinstance(asked, str | Sequence):
        raise ResourceError(f"architectures are asked for by their names, not by {shown(asked)}", hint='["sm_90", "H200"]')
    return tuple(dict.fromkeys(architecture(name) for name in ([asked] if isinstance(asked, str) else asked or ())))
