"""A schedule: the user's program, the plan it has become, and the steps that made it.  Frozen; undo is keeping the old value.

This is the one class for everybody: the decorator, workloads, saved files, strategies and searches all give it.  Steps are made
and judged here.  The methods that read, run, draw or save a schedule hand on to the layer that does the work, which they import
when they are called; so this module itself needs only ``ir`` and ``poly``.

==========================================================  =====================================================
methods                                                     stand in
==========================================================  =====================================================
``apply``, ``try_step``, ``undo``, ``replay``, ``at``       here; :mod:`explorer.steps.replay`, :mod:`explorer.steps.hints`
``moves``, and every transformation by its name             :mod:`explorer.steps.moves`, :mod:`explorer.transforms`
``dependences``, ``judgement``, ``obligations``             :mod:`explorer.poly`
``module``, ``cuda``, ``ir``                                :mod:`explorer.kernel`
``kernel``, ``compile``, ``facts``, ``run``, ``search``,    :mod:`explorer.run`
``export``, ``counterexample``
``plot``                                                    :mod:`explorer.views.figures`
``to_json``, ``save``, ``share``, ``script``                :mod:`explorer.steps.saved`
==========================================================  =====================================================
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

from ..errors import IllegalSchedule, ProgramError, ReplayError, TransformError, outspoken, shown, spoken
from ..ir.finding import Finding, Verdict
from ..ir.plan import Plan, initial
from ..ir.program import Program
from ..ir.text import loops_text
from ..poly.dependence import ProgramFacts, analyse
from ..poly.judge import Judgement, judge
from . import methods
from .step import taken

if TYPE_CHECKING:
    from ..frontend.definition import Definition
    from ..run.facts import Facts
    from ..steps.moves import Moves
    from ..steps.replay import Reached
    from ..transforms.base import Transform
    from ..views.figures.plots import Plots


@outspoken(TransformError, "program.schedule(N=1024)")
@dataclass(frozen=True)
class Schedule:
    """A program and the plan that a sequence of transformations has made of it.

    Every transformation is a method and returns a new schedule.

    Attributes
    ----------
    source : Program
        The user's program, with concrete sizes; what a run is verified against.
    plan : Plan
        What runs where, when, in which storage.
    steps : tuple of Transform
        The transformations, in order; replaying them on `source` gives `plan`.
    definition : Definition, optional
        Where the program comes from; without one its sizes are fixed.

    Examples
    --------
    >>> s = row_softmax.schedule(M=16384, N=1024)
    >>> s = s.split("k", 256).bind("i", "block.x").bind("k.i", "thread.x")
    >>> print(s)                    # the loops
    >>> print(s.cuda)               # the CUDA text
    >>> s.run()                     # GPU if there is one, else CPU; checked and timed
    """

    source: Program
    plan: Plan
    steps: tuple[Transform, ...] = ()
    definition: Definition | None = None

    @classmethod
    def of(cls, program: Program, definition: Definition | None = None) -> Schedule:
        """The schedule that runs `program` as written: one kernel, one thread."""
        return cls(program, initial(program), (), definition)

    def __getattr__(self, name: str) -> Callable[..., Schedule]:
        from ..steps.calls import built, kind_of

        kind = None if name.startswith("_") else kind_of(name)
        if kind is None:
            near = difflib.get_close_matches(name, dir(self), 3)
            raise AttributeError(f"a schedule has no move or attribute {name!r}"
                                 + (f"; did you mean {', '.join(near)}?" if near else ""))

        def move(*args: Any, **kwargs: Any) -> Schedule:
            return self.apply(built(kind, args, kwargs))

        move.__name__, move.__doc__ = kind.name, kind.__doc__
        return move

    def __dir__(self) -> list[str]:
        from ..transforms.base import catalogue

        return sorted({*object.__dir__(self), *catalogue()})

    def __str__(self) -> str:
        return loops_text(self.plan)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}={v}" for n, v in self.source.sizes)
        return f"{self.source.name}({sizes}), {len(self.steps)} step{'s' * (len(self.steps) != 1)}\n{self}"

    # ---- steps ----

    @spoken(TransformError, "one of other.steps")
    def try_step(self, step: Any, *, judge: bool = True) -> tuple[Verdict, Plan | None]:
        """What `apply` would say: the verdict, and the new plan if there is one (also when it is not legal).

        The hints of a refusal are tried when they are read.
        """
        from ..steps.hints import advised
        from ..transforms.base import expect

        verdict, plan = taken(self.plan, expect(step), judge)
        return verdict if verdict else advised(self, step, verdict), plan

    @spoken(TransformError, 'schedule.split("k", 4)')
    def apply(self, step: Any, *, judge: bool = True) -> Schedule:
        """The schedule after one more transformation.

        Parameters
        ----------
        step : Transform
        judge : bool
            Whether the result is judged now.  Without, the step is taken where its own preconditions hold; the result's
            ``judgement`` is found when it is read, and nothing is emitted before it is legal.

        Returns
        -------
        Schedule
            A new value; this one is unchanged.

        Raises
        ------
        TransformError
            If the transformation's own precondition does not hold.
        IllegalSchedule
            If the result would compute something else; ``error.finding`` has the smallest pair of instances.
        """
        verdict, plan = self.try_step(step, judge=judge)
        if verdict and plan is not None:
            return replace(self, plan=plan, steps=(*self.steps, step))
        if verdict.finding is None:
            raise TransformError(f"{step} does not apply: {verdict.what}", why=verdict.why, hint=verdict.advice, step=step,
                                 verdict=verdict)
        finding = verdict.finding
        raise IllegalSchedule(verdict.what, where=finding.where, why=finding.why, hint=verdict.advice,
                              step=step, finding=finding, verdict=verdict, program=self.source)

    @spoken(TransformError, 's.moves("i"): the name of a loop, a statement or a kernel')
    def moves(self, node: str) -> Moves:
        """Every transformation at a node: those that apply with concrete arguments, and why the others do not."""
        from ..steps.moves import moves

        return moves(self, node)

    @spoken(TransformError, "undo() takes back one, undo(3) three")
    def undo(self, count: int = 1) -> Schedule:
        """The schedule before its last `count` steps.

        Raises
        ------
        TransformError
            If it has not so many steps.
        """
        if type(count) is not int or count < 0:
            raise TransformError(f"undo takes a number of steps, not {shown(count)}", hint="undo() takes back one, undo(3) three")
        if count > (made := len(self.steps)):
            what = f"undo({count}) takes back more steps than there are" if made else "there is nothing to undo"
            raise TransformError(what, why=f"the schedule has {made or 'no'} step{'s' * (made != 1)}",
                                 hint=f"undo({made}) leads back to the program as written" if made else "")
        return self.replay(self.steps[: made - count])

    @spoken(TransformError, "other.steps")
    def replay(self, steps: tuple[Any, ...], *, seconds: float = inf, progress: Reached | None = None) -> Schedule:
        """The program as written with these steps applied.

        Raises
        ------
        ReplayError
            If they take longer than `seconds`; ``error.schedule`` has the steps that were made, ``error.left`` the others.
        TransformError, IllegalSchedule
            If a step does not apply; ``error.schedule`` has those before it.
        """
        if not isinstance(steps, Iterable) or getattr(steps, "shape", None) == ():
            raise TransformError(f"replay takes steps, not {shown(steps)}", hint="other.steps")
        from ..steps.replay import replayed

        start = Schedule.of(self.source, self.definition)
        return [start, *(s for _, s in replayed(start, tuple(steps), seconds, progress))][-1]

    @spoken(ProgramError, "sizes are given by name: s.at(N=64)")
    def at(self, **sizes: int) -> Schedule:
        """The same steps on the same program with other sizes."""
        if self.definition is None:
            raise ReplayError("this schedule was made from a program without its definition, so its sizes are fixed")
        return self.definition._scheduled({**dict(self.source.sizes), **sizes}, ".at").replay(self.steps)

    # ---- what is known of it ----

    @cached_property
    def judgement(self) -> Judgement:
        """The answers of the four questions for this schedule."""
        return judge(self.plan)

    @property
    def dependences(self) -> ProgramFacts:
        """The program's exact dependences."""
        return analyse(self.source)

    @property
    def obligations(self) -> tuple[Finding, ...]:
        """Reductions whose updates would race until a strategy collects them."""
        from ..steps.hints import open_findings

        return open_findings(self)

    @property
    def facts(self) -> Facts:
        """What is known without compiling or running: traffic, sectors, bank conflicts, intensity, the floor on an H200."""
        from ..gpu.spec import default_gpu
        from ..run.facts import Facts

        return Facts(self.source, self.plan, default_gpu())

    @property
    def plot(self) -> Plots:
        """Pictures: ``.domain()``, ``.memory("A")``, ``.fragments()``, ``.pipeline()``, ``.timeline()``, ``.roles()``,
        ``.ablation()``, ``.legality()``, ``.roofline()``, ``.price()``, ``.occupancy()``, ``.partials()``, ``.dependences()``.
        """
        from ..views.figures.plots import Plots

        return Plots(self)

    @property
    def cuda(self) -> str:
        """The CUDA text."""
        return self.module().text

    # ---- text, runs, files: explorer/schedule/methods.py ----

    counterexample = methods.counterexample
    pipeline_conditions = methods.pipeline_conditions
    pipeline_verdicts = methods.pipeline_verdicts
    module = methods.module
    ir = methods.ir
    kernel = methods.kernel
    compile = methods.compile
    run = methods.run
    stamps = methods.stamps
    search = methods.search
    export = methods.export
    script = methods.script
    to_json = methods.to_json
    save = methods.save
    share = methods.share
