"""What users hold: programs they have written, schedules they shape, kernels they read and run.

Thin: every method hands on to the layer that does the work.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import saved
from .codegen.emit import emit
from .codegen.module import CudaModule
from .errors import ReplayError, TransformError
from .frontend.definition import Definition as _Definition
from .frontend.definition import define
from .gpu.spec import Gpu
from .ir.finding import Finding
from .ir.program import Program
from .ir.text import loops_text
from .moves import Moves, moves
from .poly.dependence import ProgramFacts, analyse
from .poly.wellformed import require_wellformed
from .schedule import Schedule as _Schedule
from .transforms.base import Transform, catalogue

if TYPE_CHECKING:
    from .run.facts import Facts
    from .run.kernel import Compiled, Kernel


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

    def undo(self, count: int = 1) -> Schedule:
        """The schedule before its last `count` steps."""
        return self.replay(self.steps[: max(len(self.steps) - count, 0)])

    def replay(self, steps: tuple[Any, ...]) -> Schedule:
        """The program as written with these steps applied."""
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
        """
        from .run.execute import require_emittable

        require_emittable(self)
        return emit(self.plan, arch=arch)

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

    def run(self, arrays: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """Run, verify and time; see :func:`explorer.run.execute.execute` for the options."""
        from .run.execute import execute

        return execute(self, arrays, **options)

    def export(self, path: str | Path, **options: Any) -> Path:
        """Write one self-checking ``.cu`` file; see :func:`explorer.run.export.export`."""
        from .run.export import export

        return export(self, path, **options)

    def script(self) -> str:
        """Python that rebuilds this schedule."""
        names = " ".join(name for name, _ in self.source.sizes)
        line = f'{", ".join(names.split())}{"," if " " not in names else ""} = ex.sizes("{names}")' if names else ""
        return saved.script(self.source, self.steps, line)  # type: ignore[arg-type]

    def to_json(self) -> str:
        """The schedule as JSON."""
        return saved.to_json(self.source, self.steps)  # type: ignore[arg-type]

    def save(self, path: str | Path) -> Path:
        """Write the schedule as JSON."""
        target = Path(path)
        target.write_text(self.to_json() + "\n", encoding="utf-8")
        return target

    def share(self) -> str:
        """The schedule as one short line of text."""
        return saved.share_string(self.source, self.steps)  # type: ignore[arg-type]


class Definition(_Definition):
    """A program as the user wrote it, its sizes still symbolic."""

    def schedule(self, **sizes: int) -> Schedule:
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
        content = str(text).strip()
        if not content.startswith(("ex1:", "{")):
            try:
                content = Path(text).read_text(encoding="utf-8").strip()
            except OSError as error:
                raise ReplayError(f"cannot read {text}", why=str(error)) from error
        name, source, sizes, steps = saved.read_share_string(content) if content.startswith("ex1:") else saved.read_json(content)
        if name != self.name:
            raise ReplayError(f"this schedule is of the program {name!r}, not {self.name!r}", hint=f"{name}.load(…)")
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
    frozen = [tuple(a) if isinstance(a, list) else a for a in args]
    named = {k: tuple(v) if isinstance(v, list) else v for k, v in kwargs.items()}
    try:
        return kind(*frozen, **named)
    except TypeError as error:
        raise TransformError(f"{kind.name} was called with the wrong arguments", why=str(error).replace("__init__", kind.name),
                             hint=f"{kind.name}({', '.join(declared)})") from None


__all__ = ["Definition", "Gpu", "Schedule", "program"]
