"""What users do with a schedule: read its text, run it, search, look at it, save it.

These are methods of :class:`explorer.schedule.Schedule`, which takes them over by name.  Each hands on to the layer that does the
work, and imports it when it is called: the layers above import the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError, ExportError, ResourceError, TransformError, spoken
from ..gpu.spec import architecture
from ..system.files import place_for, write_file

if TYPE_CHECKING:
    from ..gpu.spec import Gpu
    from ..kernel.module import CudaModule
    from ..kernel.stages import Stage
    from ..run.counterexample.pipelines import PipelineConditions
    from ..run.counterexample.result import Counterexample
    from ..run.kernel import Compiled, Kernel
    from ..run.search.result import SearchResult
    from ..run.stamps import Stamps
    from ..transforms._pipelined import BufferVerdicts
    from ..transforms.base import Transform
    from . import Schedule


@spoken(TransformError, 's.counterexample("bind", "k", "thread.x")')
def counterexample(self: Schedule, move: str | Transform, *args: Any, **kwargs: Any) -> Counterexample:
    """Run the order that a refused move would make, at the smallest sizes that show a wrong output cell.

    Parameters
    ----------
    move : str or Transform
        A move's name with its arguments behind it, or a step.

    Returns
    -------
    Counterexample
        The wrong cell beside the pair of instances; or in words why there is nothing to see.

    Examples
    --------
    >>> print(s.counterexample("bind", "k", "thread.x"))
    """
    from ..run.counterexample.counterexample import counterexample
    from ..steps.calls import built, find
    from ..transforms.base import expect

    step = built(find(move), args, kwargs) if isinstance(move, str) else expect(move)
    again = None if self.definition is None else lambda sizes: self.at(**sizes)
    return counterexample(self, step, again=again)


@spoken(TransformError, 's.pipeline_conditions("k")')
def pipeline_conditions(self: Schedule, loop: str, *, in_flight: str = "",
                        copies: str | Sequence[str] = ()) -> PipelineConditions:
    """For which numbers of slots, release distances, work in flight and trip counts the pipelines of a loop are right.

    All of these are symbolic: the answer is a condition, not a table of sizes.  Nothing is applied.

    Parameters
    ----------
    loop : str
        A loop whose copies are pipelined, or could be.
    in_flight : {"products", "copies"}, optional
        What is in flight: products of a warpgroup behind their step, or groups of copies at the wait.  By default products where
        some are (`overlap`) or a producer copies (`specialise`), else copies, as `pipeline` has them.
    copies : str or sequence of str, optional
        The copies whose pipeline is asked about, where the loop's copies have stages of their own; the others stay as they are.

    Returns
    -------
    PipelineConditions
        Printed, the condition and the least instance that fails; ``.cell(slots, release_distance, in_flight)`` has one place,
        ``.counterexample(…)`` runs it at its least trip count on the CPU device.

    Raises
    ------
    TransformError
        No tile after tile is copied in the loop.

    Examples
    --------
    >>> print(s.pipeline_conditions("k"))
    """
    from ..run.counterexample.pipelines import pipeline_conditions

    if loop not in self.plan.loops:
        raise TransformError(f"there is no loop {loop!r}", hint=f"one of {', '.join(self.plan.loops)}")
    if in_flight not in ("", "products", "copies"):
        raise TransformError(f"in_flight is {in_flight!r}", hint='"products" or "copies"')
    names = (copies,) if isinstance(copies, str) else copies
    if not isinstance(names, (tuple, list)) or not all(isinstance(n, str) for n in names):
        raise TransformError(f"copies is {copies!r}", hint='copies="A_s", or several names')
    found = pipeline_conditions(self, loop, in_flight, tuple(names))
    if isinstance(found, str):
        apart = "ask for one of them" in found
        none = f"there is no pipeline of {', '.join(names) or loop} to ask about"
        raise TransformError(f"{loop} has pipelines that differ" if apart else none, why=found,
                             hint="" if apart or names else _ask_instead(in_flight))
    return found


def _ask_instead(in_flight: str) -> str:
    other = "copies" if in_flight == "products" else "products"
    return f"in_flight='{other}'" if in_flight else "stage an array that the loop reads"


def pipeline_verdicts(self: Schedule, loop: str) -> BufferVerdicts:
    """For each buffer that a loop reads, whether it can be pipelined, and what keeps the others from it.

    Parameters
    ----------
    loop : str

    Returns
    -------
    BufferVerdicts
        A tuple with one verdict for each; printed, a paragraph for each.

    Raises
    ------
    TransformError
        There is no such loop.

    References
    ----------
    Huang et al., "ALCOP: Automatic Load-Compute Pipelining in Deep Learning Compiler for AI-GPUs", MLSys 2023.

    Examples
    --------
    >>> print(s.pipeline_verdicts("k"))
    a_s (shared, filled by a_s): can be pipelined
    """
    from ..transforms._pipelined import BufferVerdicts, buffer_verdicts

    if loop not in self.plan.loops:
        raise TransformError(f"there is no loop {loop!r}", hint=f"one of {', '.join(self.plan.loops)}")
    return BufferVerdicts(buffer_verdicts(self.plan, self.plan.loops[loop]))


@spoken(ResourceError, 's.module("sm_90")')
def module(self: Schedule, arch: str = "sm_90") -> CudaModule:
    """CUDA text, buffers, launches and source map.

    Raises
    ------
    IllegalSchedule
        While a reduction's obligation is open.
    ResourceError
        If no architecture has that name.
    """
    from ..kernel.emit import emit
    from ..kernel.emittable import require_emittable

    require_emittable(self)
    return emit(self.plan, arch=architecture(arch))


def ir(self: Schedule, after: str = "") -> Stage:
    """The kernels after a pass of the code generator, with the lines that it changed.

    Parameters
    ----------
    after : str
        A pass of :mod:`explorer.kernel.passes`; by default the last one.

    Raises
    ------
    IllegalSchedule
        While an obligation is open.
    ScheduleError
        There is no such pass.
    """
    from ..kernel.stages import stage

    self.module()
    return stage(self.plan, after)


@spoken(ResourceError, 's.kernel("H200")')
def kernel(self: Schedule, gpu: Gpu | str | None = None) -> Kernel:
    """The CUDA text for one GPU (by default the H200), its launches checked against the GPU's limits.

    Raises
    ------
    IllegalSchedule
        While a reduction's obligation is open.
    ResourceError
        If a launch does not fit; the error says what to shrink.
    """
    from ..run.kernel import Kernel

    return Kernel.of(self, gpu)


@spoken(ResourceError, 's.compile("sm_90")')
def compile(self: Schedule, archs: str | Sequence[str] | None = None) -> Compiled:
    """Compile the text, with no GPU, for architectures or GPUs; see :meth:`explorer.run.kernel.Kernel.compile`."""
    return self.kernel().compile(archs)


@spoken(DeviceError, 's.run({"x": x}, device="cpu")')
def run(self: Schedule, arrays: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """Run, verify and time; see :func:`explorer.run.execute.execute` for the options."""
    from ..run.execute import execute
    from ..run.options import check_names

    check_names(execute, options, DeviceError, called="run", arrays=[a.name for a in self.source.parameters])
    return execute(self, arrays, **options)


@spoken(DeviceError, 's.stamps(device="cpu", blocks=(0,))')
def stamps(self: Schedule, arrays: Mapping[str, Any] | None = None, **options: Any) -> Stamps:
    """Run an instrumented copy, whose threads note when they do what; see :func:`explorer.run.stamps.stamps` for the options."""
    from ..run.options import check_names
    from ..run.stamps import stamps

    check_names(stamps, options, DeviceError, called="stamps", arrays=[a.name for a in self.source.parameters])
    return stamps(self, arrays, **options)


@spoken(DeviceError, 's.search(device="cpu")')
def search(self: Schedule, **options: Any) -> SearchResult:
    """Measure variants of what :func:`explorer.strategies.auto.auto` makes of the program, and keep the fastest.

    See :func:`explorer.run.search.measured.search` for the options; ``found.schedule`` is the best.
    """
    from ..run.options import check_names
    from ..run.search.measured import search

    check_names(search, options, DeviceError, arrays=[a.name for a in self.source.parameters])
    return search(self, **options)


@spoken(ExportError, 's.export("kernel.cu")')
def export(self: Schedule, path: str | PathLike[str], **options: Any) -> Path:
    """Write one self-checking ``.cu`` file; see :func:`explorer.run.export.export`."""
    from ..run.export import export
    from ..run.options import check_names

    check_names(export, options, ExportError)
    return export(self, path, **options)


@spoken(ExportError, "s.script()")
def script(self: Schedule) -> str:
    """Python that rebuilds this schedule."""
    from ..frontend.preamble import preamble
    from ..steps.saved import script

    if self.definition is None:
        return script(self.source, self.steps)
    return script(self.source, self.steps, preamble(self.definition))


@spoken(ExportError, "s.to_json()")
def to_json(self: Schedule) -> str:
    """The schedule as JSON."""
    from ..steps.saved import to_json

    return to_json(self.source, self.steps)


@spoken(ExportError, 's.save("schedule.json")')
def save(self: Schedule, path: str | PathLike[str], *, overwrite: bool = False, parents: bool = False) -> Path:
    """Write the schedule as JSON.

    Parameters
    ----------
    path : str or path
    overwrite : bool
        Replace whatever file stands there; without it, only a saved schedule of the same program.
    parents : bool
        Make the folder if it is not there, and those above it.

    Raises
    ------
    ExportError
        The file cannot be written, or another one stands there.  That one is left as it was.
    """
    from ..steps.saved import other_than

    file = place_for(path, f"{self.source.name}.json", parents=parents)
    write_file(file, self.to_json() + "\n", overwrite=overwrite, ours=partial(other_than, self.source.name))
    return file


@spoken(ExportError, "s.share()")
def share(self: Schedule) -> str:
    """The schedule as one short line of text."""
    from ..steps.saved import share_string

    return share_string(self.source, self.steps)
