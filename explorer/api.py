"""What users hold: programs they have written, schedules they shape, kernels they read and run.

Thin: every method hands on to the layer that does the work.
"""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from . import saved
from .codegen.emit import emit
from .codegen.module import CudaModule
from .errors import DeviceError, ExportError, ProgramError, ReplayError, TransformError
from .frontend.definition import Definition as _Definition
from .frontend.definition import define
from .frontend.preamble import preamble
from .gpu.spec import Gpu
from .ir.finding import Finding
from .ir.program import Program
from .ir.text import loops_text
from .moves import Moves, moves
from .poly.dependence import ProgramFacts, analyse
from .poly.wellformed import require_wellformed
from .schedule import Schedule as _Schedule
from .transforms.base import Transform, catalogue, misfit

if TYPE_CHECKING:
    from .run.counterexample import Counterexample
    from .run.facts import Facts
    from .run.kernel import Compiled, Kernel
    from .run.search_result import SearchResult
    from .views.figures.plots import Plots


@dataclass(frozen=True)
class Schedule(_Schedule):
    """A program and a legal way to run it.  Every transformation is a method and returns a new schedule.

    Examples
    --------
    >>> s = row_softmax.schedule(M=16384, N=1024)
    >>> s = s.split("k", 256).bind("i", "block.x").bind("k.i", "thread.x")
    >>> print(s)                    # the loops
    >>> print(s.cuda)               # the CUDA text
    >>> s.run()                     # GPU if there is one, else CPU; checked and timed
    """

    definition: Definition | None = None

    def __getattr__(self, name: str) -> Callable[..., Schedule]:
        kind = None if name.startswith("_") else _kind(name)
        if kind is None:
            near = difflib.get_close_matches(name, dir(self), 3)
            raise AttributeError(f"a schedule has no move or attribute {name!r}"
                                 + (f"; did you mean {', '.join(near)}?" if near else ""))

        def move(*args: Any, **kwargs: Any) -> Schedule:
            return self.apply(_construct(kind, args, kwargs))

        move.__name__, move.__doc__ = kind.name, kind.__doc__
        return move

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *catalogue()})

    def __str__(self) -> str:
        return loops_text(self.plan)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}={v}" for n, v in self.source.sizes)
        return f"{self.source.name}({sizes}), {len(self.steps)} step{'s' * (len(self.steps) != 1)}\n{self}"

    def moves(self, node: str) -> Moves:
        """Every transformation at a node: those that apply with concrete arguments, and why the others do not."""
        return moves(self, node)

    def apply(self, step: Any) -> Self:
        """The schedule after one more transformation; see :meth:`explorer.schedule.Schedule.apply`."""
        if not isinstance(step, Transform):
            raise TransformError(f"{step!r} is no transformation"[:200], hint='schedule.split("k", 4), or one of other.steps')
        return super().apply(step)

    def counterexample(self, move: str | Transform, *args: Any, **kwargs: Any) -> Counterexample:
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
        from .run.counterexample import counterexample

        kind = _kind(move) if isinstance(move, str) else None
        if kind is None and isinstance(move, str):
            raise TransformError(f"there is no move {move!r}", hint=f"one of {', '.join(catalogue())}")
        step = _construct(kind, args, kwargs) if kind else move
        again = None if self.definition is None else lambda sizes: self.at(**sizes)
        return counterexample(self, step, again=again)  # type: ignore[arg-type]

    def undo(self, count: int = 1) -> Schedule:
        """The schedule before its last `count` steps."""
        if type(count) is not int or count < 0:
            raise TransformError(f"undo takes a number of steps, not {count!r}", hint="undo() takes back one, undo(3) three")
        return self.replay(self.steps[: max(len(self.steps) - count, 0)])

    def replay(self, steps: tuple[Any, ...]) -> Schedule:
        """The program as written with these steps applied."""
        if not isinstance(steps, Iterable):
            raise TransformError(f"replay takes steps, not {steps!r}"[:200], hint="other.steps")
        new = Schedule.of(self.source, self.definition)
        for step in steps:
            new = new.apply(step)
        return new

    @classmethod
    def of(cls, program: Program, definition: Definition | None = None) -> Schedule:
        """The schedule that runs `program` as written: one kernel, one thread."""
        base = _Schedule.of(program)
        return cls(base.source, base.plan, (), definition)

    def at(self, **sizes: int) -> Schedule:
        """The same steps on the same program with other sizes."""
        if self.definition is None:
            raise ReplayError("this schedule was made from a program without its definition, so its sizes are fixed")
        return self.definition.schedule(**{**dict(self.source.sizes), **sizes}).replay(self.steps)

    @property
    def dependences(self) -> ProgramFacts:
        """The program's exact dependences."""
        return analyse(self.source)

    @property
    def obligations(self) -> tuple[Finding, ...]:
        """Reductions whose updates would race until a strategy collects them."""
        return self.judgement.obligations

    def module(self, arch: str = "sm_90") -> CudaModule:
        """CUDA text, buffers, launches and source map.

        Raises
        ------
        IllegalSchedule
            While a reduction's obligation is open.
        ResourceError
            If no architecture has that name.
        """
        from .run.kernel import architecture
        from .run.ragged import require_emittable

        require_emittable(self)
        return emit(self.plan, arch=architecture(arch))

    @property
    def cuda(self) -> str:
        """The CUDA text."""
        return self.module().text

    def kernel(self, gpu: Gpu | str | None = None) -> Kernel:
        """The CUDA text for one GPU (by default the H200), its launches checked against the GPU's limits.

        Raises
        ------
        IllegalSchedule
            While a reduction's obligation is open.
        ResourceError
            If a launch does not fit; the error says what to shrink.
        """
        from .run.kernel import Kernel

        return Kernel.of(self, gpu)

    def compile(self, archs: str | Sequence[str] | None = None) -> Compiled:
        """Compile the text, with no GPU, for architectures or GPUs; see :meth:`explorer.run.kernel.Kernel.compile`."""
        return self.kernel().compile(archs)

    @property
    def facts(self) -> Facts:
        """What is known without compiling or running: traffic, sectors, bank conflicts, intensity, the floor on an H200."""
        from .gpu.spec import default_gpu
        from .run.facts import Facts

        return Facts(self.source, self.plan, default_gpu())

    @property
    def plot(self) -> Plots:
        """Pictures: ``.domain()``, ``.memory("A")``, ``.pipeline()``, ``.roofline()``, ``.occupancy()``, ``.partials()``,
        ``.dependences()``.
        """
        from .views.figures.plots import Plots

        return Plots(self)

    def run(self, arrays: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Run, verify and time; see :func:`explorer.run.execute.execute` for the options."""
        from .run.execute import execute
        from .run.options import check_names

        check_names(execute, options, DeviceError)
        return execute(self, arrays, **options)

    def search(self, **options: Any) -> SearchResult:
        """Measure variants of what :func:`explorer.strategies.auto.auto` makes of the program, and keep the fastest.

        See :func:`explorer.run.search.search` for the options; ``found.schedule`` is the best.
        """
        from .run.options import check_names
        from .run.search import search

        check_names(search, options, DeviceError)
        return search(self, **options)

    def export(self, path: str | Path, **options: Any) -> Path:
        """Write one self-checking ``.cu`` file; see :func:`explorer.run.export.export`."""
        from .run.export import export
        from .run.options import check_names

        check_names(export, options, ExportError)
        return export(self, path, **options)

    def script(self) -> str:
        """Python that rebuilds this schedule."""
        if self.definition is None:
            return saved.script(self.source, self.steps)  # type: ignore[arg-type]
        return saved.script(self.source, self.steps, preamble(self.definition))  # type: ignore[arg-type]

    def to_json(self) -> str:
        """The schedule as JSON."""
        return saved.to_json(self.source, self.steps)  # type: ignore[arg-type]

    def save(self, path: str | Path) -> Path:
        """Write the schedule as JSON.

        Raises
        ------
        ExportError
            If the file cannot be written.
        """
        if not isinstance(path, str | PathLike):
            raise ExportError(f"a file is given by its path, not by {path!r}", hint=f'save("{self.source.name}.json")')
        target = Path(path)
        try:
            target.write_text(self.to_json() + "\n", encoding="utf-8")
        except (OSError, ValueError) as error:  # ValueError: a null byte in the path
            raise ExportError(f"{target} cannot be written", why=str(error),
                              hint="give the path of a file in an existing folder") from error
        return target

    def share(self) -> str:
        """The schedule as one short line of text."""
        return saved.share_string(self.source, self.steps)  # type: ignore[arg-type]


class Definition(_Definition):
    """A program as the user wrote it, its sizes still symbolic."""

    def schedule(self, *values: Any, **sizes: int) -> Schedule:
        """The schedule that runs the program as written, at these sizes.

        Parameters
        ----------
        **sizes : int
            A value for every size of the program.

        Raises
        ------
        ProgramError
            If a size is missing, or at these sizes an access leaves its array or reads what nothing wrote.
        """
        if values:
            example = ", ".join(f"{name}={v}" for name, v in zip_longest(self.sizes, values[: len(self.sizes)], fillvalue="…"))
            raise ProgramError("sizes are given by name", where=f"{self.name} has the sizes {', '.join(self.sizes)}",
                               hint=f"{self.name}.schedule({example})")
        program = self.at(**sizes)
        require_wellformed(program)
        return Schedule.of(program, self)

    def load(self, text: str | Path) -> Schedule:
        """A saved schedule of this program, from a share string, JSON text, or the path of a JSON file.

        Raises
        ------
        ReplayError
            If the text is damaged, or belongs to another program.
        """
        if not isinstance(text, str | PathLike):
            raise ReplayError(f"a schedule is loaded from a text or a path, not from {text!r}"[:200])
        content = str(text).strip()
        if not content.startswith(("ex1:", "{")):
            try:
                content = Path(text).read_text(encoding="utf-8").strip()
            except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a null byte in the path
                raise ReplayError(f"cannot read {str(text)[:80]!r}", why=str(error)[:200],
                                  hint="give a share string (ex1:…), JSON text, or the path of a JSON file") from error
        name, source, sizes, steps = saved.read_share_string(content) if content.startswith("ex1:") else saved.read_json(content)
        if name != self.name:
            raise ReplayError(f"this schedule is of the program {name!r}, not {self.name!r}", hint=f"{name}.load(…)")
        if sizes.keys() != set(self.sizes):
            raise ReplayError(f"the saved sizes are not those of {name}",
                              why=f"found {', '.join(sizes) or 'none'}, expected {', '.join(self.sizes) or 'none'}"[:200])
        start = self.schedule(**sizes)
        if source != saved.source_hash(start.source):
            raise ReplayError(f"the text of {name} has changed since this schedule was saved",
                              hint="restore the program's text, or replay the steps one by one to see where they stop fitting")
        return start.replay(steps)


def program(function: Callable[..., Any]) -> Definition:
    """Turn a Python function with nested affine loops into a program (a decorator; the function is parsed, never run).

    Raises
    ------
    ProgramError
        At the line and column that is not accepted, with the reason and the nearest accepted form.
    """
    return define(function, Definition)


def _kind(name: str) -> type[Transform] | None:
    known = catalogue()
    return known.get(name) or next((k for k in known.values() if name in k.aliases), None)


def _construct(kind: type[Transform], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Transform:
    """A step from a call, with a sentence instead of Python's TypeError."""
    declared = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    try:
        step = kind(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})
    except TypeError as error:
        why = str(error).replace(f"{kind.__name__}.__init__", kind.name)
        raise TransformError(f"{kind.name} was called with the wrong arguments", why=why,
                             hint=f"{kind.name}({', '.join(declared)})") from None
    for f in fields(kind):  # type: ignore[arg-type]
        if wanted := misfit(f, getattr(step, f.name)):
            raise TransformError(f"{kind.name}: {f.name} must be {wanted}, not {getattr(step, f.name)!r}"[:200],
                                 why=f.metadata.get("help", ""), hint=f"{kind.name}({', '.join(declared)})")
    return step


def _plain(value: Any) -> Any:
    """Lists as tuples, and NumPy's integers as Python's."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return operator.index(value) if hasattr(type(value), "__index__") and not isinstance(value, bool) else value


__all__ = ["Definition", "Gpu", "Schedule", "program"]
