"""``schedule.plot``: the figures as methods, their options as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import FigureError, shown, spoken
from ...gpu.spec import default_gpu
from ...ir.finding import Finding
from ...schedule import Schedule

if TYPE_CHECKING:
    from ...run.result import Run
    from ...run.search.result import SearchResult
    from ...run.stamps import Stamps
    from .picture import Picture


def _values(option: str, prefix: str, values: Any) -> dict[str, Any]:
    """Values by name, as the options of a figure."""
    if values is not None and not isinstance(values, Mapping):
        raise FigureError(f"{option} gives values by name, not {shown(values)}", hint=f'{option}={{"i": 0}}')
    return {f"{prefix}.{name}": value for name, value in (values or {}).items()}


@dataclass(frozen=True, repr=False)
class Plots:
    """The figures of one schedule.  Each method returns a :class:`.picture.Picture`; its ``figure`` is a Plotly figure.

    Parameters
    ----------
    schedule : Schedule
    """

    schedule: Schedule

    @spoken(FigureError, "s.plot.domain()")
    def domain(self, node: str | None = None, *, x: str | None = None, y: str | None = None, z: str | None = None,
               colour: str | None = None, at: Mapping[str, int] | None = None, start: Mapping[str, int] | None = None,
               size: str | None = None, show: str | None = None, finding: Finding | None = None, theme: str = "light") -> Picture:
        """Instances of a statement: which block and thread runs each, in which order, and what depends on what.

        Parameters
        ----------
        node : str, optional
            A statement, or a loop around it.
        x, y, z : str, optional
            Dimensions to show across, down, and as a third axis.
        colour : {"thread", "block", "time", "leaf"}, optional
        at : mapping of str to int, optional
            Values of the dimensions that are not shown.
        start : mapping of str to int, optional
            First values of the shown window.
        size : {"small", "large"}, optional
            Of the window.
        show : {"corner", "whole"}, optional
            Neighbouring instances, or every n-th of the whole.
        finding : Finding, optional
            A refusal whose pair is drawn in red.
        theme : {"light", "dark"}

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        more = _values("at", "at", at) | _values("start", "from", start)
        return self._draw(
            "domain", node, {"x": x, "y": y, "z": z, "colour": colour, "size": size, "show": show, **more}, theme, finding
        )

    @spoken(FigureError, "s.plot.memory()")
    def memory(
        self,
        of: str | None = None,
        *,
        access: str | None = None,
        view: str | None = None,
        warp: int | None = None,
        group: int | None = None,
        at: Mapping[str, int] | None = None,
        scope: str | None = None,
        theme: str = "light",
    ) -> Picture:
        """What one request of a warp asks of memory, or which elements a block touches.

        Parameters
        ----------
        of : str, optional
            An array, buffer, statement or loop to open on.
        access : str, optional
            One access as ``"S1:0"``: leaf and slot.
        view : {"warp", "tile"}, optional
        warp, group : int, optional
            Which warp of the block; which of its lanes that are served together.
        at : mapping of str to int, optional
            Values of the loops at the request.
        scope : str, optional
            Who touches: ``"one block"``, ``"one thread"``, …

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        more = _values("at", "at", at)
        return self._draw(
            "memory", of, {"access": access, "view": view, "warp": warp, "group": group, "scope": scope, **more}, theme
        )

    @spoken(FigureError, "s.plot.fragments()")
    def fragments(self, of: str | None = None, *, operand: str | None = None, rows: int | None = None, columns: int | None = None,
                  show: str | None = None, swizzle: str | None = None, theme: str = "light") -> Picture:
        """Which lane and register, or which bank of shared memory, holds each element of a tensor instruction's operand.

        Parameters
        ----------
        of : str, optional
            A tensor instruction, or a buffer of its operands.
        operand : {"left", "right", "sum"}, optional
        rows, columns : int, optional
            The first ones that are drawn.
        show : {"lane", "register"}, optional
            What the numbers are.
        swizzle : {"as it is", "without"}, optional
            How an operand in shared memory is placed.

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        options = {"operand": operand, "rows": rows, "columns": columns, "show": show, "swizzle": swizzle}
        return self._draw("fragments", of, options, theme)

    @spoken(FigureError, "s.plot.pipeline()")
    def pipeline(
        self, loop: str | None = None, *, iterations: int | None = None, finding: Finding | None = None, theme: str = "light"
    ) -> Picture:
        """Copies and computation of a loop over time, and which slot holds which tile.

        Parameters
        ----------
        loop : str, optional
            The loop that makes the copies.
        iterations : int, optional
            How many to draw.
        finding : Finding, optional
            A refusal to mark in red.

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        return self._draw("pipeline", loop, {"iterations": iterations}, theme, finding)

    @spoken(FigureError, "s.plot.timeline()")
    def timeline(self, loop: str | None = None, *, steps: int | None = None, gpu: str | None = None,
                 theme: str = "light") -> Picture:
        """Copies, waits, products and stores of one block on the clock, as the price of the plan has them.

        Parameters
        ----------
        loop : str, optional
            The loop whose steps are followed.
        steps : int, optional
            How many to draw.
        gpu : str, optional
            Whose multiprocessors the blocks run on.

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        return self._draw("timeline", loop, {"steps": steps, "gpu": gpu}, theme)

    @spoken(FigureError, "s.plot.roles(stamps=s.stamps())")
    def roles(self, kernel: str | None = None, *, part: str | None = None, steps: int | None = None, gpu: str | None = None,
              stamps: Stamps | None = None, theme: str = "light") -> Picture:
        """What each role of a kernel does when, in one block, over several tiles: predicted, and with `stamps` measured over it.

        Parameters
        ----------
        kernel : str, optional
            One that computes in steps.
        part : {"start", "tiles", "end", "all"}, optional
            Which part of the block's time; by default from its first tile to its second, where it takes several.
        steps : int, optional
            How many of the loop that computes in steps.
        gpu : str, optional
            Whose multiprocessors the blocks run on.
        stamps : Stamps, optional
            What ``schedule.stamps()`` gives: drawn if it is of this GPU, or of the CPU device, which has an order and no times.

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        options = {"kernel": kernel, "part": part, "steps": steps, "gpu": gpu}
        return self._draw("roles", None, options, theme, stamps=stamps)

    @spoken(FigureError, "s.plot.ablation()")
    def ablation(self, loop: str | None = None, *, stages: int | None = None, gpu: str | None = None,
                 measured: SearchResult | None = None, theme: str = "light") -> Picture:
        """The price of a pipeline with each number of stages, with and without its second level.

        Parameters
        ----------
        loop : str, optional
            The loop that is pipelined, or could be.
        stages : int, optional
            How many are looked at.
        gpu : str, optional
            By which the plans are priced.
        measured : SearchResult, optional
            A search of the same program, whose times stand beside the prices if they are of this GPU.

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        return self._draw("ablation", loop, {"stages": stages, "gpu": gpu}, theme, measured=measured)

    @spoken(FigureError, "s.plot.legality()")
    def legality(self, loop: str | None = None, *, slots: int | None = None, copies: str | None = None,
                 theme: str = "light") -> Picture:
        """For which numbers of slots, release distances and work in flight a pipeline is right, for all trip counts, and why not.

        Parameters
        ----------
        loop : str, optional
            The loop that is pipelined, or could be.
        slots : int, optional
            Up to how many of each buffer are looked at.
        copies : str, optional
            The copies whose pipeline is looked at, where those of the loop have stages of their own: ``"A_s"``, ``"A_s, B_s"``.

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        return self._draw("legality", loop, {"slots": slots, "copies": copies}, theme)

    @spoken(FigureError, "s.plot.roofline()")
    def roofline(self, *, gpu: str | None = None, run: Run | None = None, theme: str = "light") -> Picture:
        """Arithmetic intensity under the roof of a GPU; with `run`, the measured point.

        Raises
        ------
        FigureError
            If the GPU is not in the catalogue.
        """
        return self._draw("roofline", None, {"gpu": gpu}, theme, run=run)

    @spoken(FigureError, "s.plot.price()")
    def price(self, kernel: str | None = None, *, gpu: str | None = None, theme: str = "light") -> Picture:
        """Each term of a kernel's price with its formula, and which of them count.

        Parameters
        ----------
        kernel : str, optional
            By default the one that takes longest.
        gpu : str, optional
            A name of the catalogue.
        theme : {"light", "dark"}

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        return self._draw("price", None, {"kernel": kernel, "gpu": gpu}, theme)

    @spoken(FigureError, "s.plot.occupancy()")
    def occupancy(
        self, kernel: str | None = None, *, gpu: str | None = None, registers: int | None = None, theme: str = "light"
    ) -> Picture:
        """How many blocks fit on a multiprocessor, and what limits them; `registers` per thread as a compiler says.

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        return self._draw("occupancy", None, {"kernel": kernel, "gpu": gpu, "registers": registers}, theme)

    @spoken(FigureError, "s.plot.partials()")
    def partials(self, of: str | None = None, *, gpu: str | None = None, theme: str = "light") -> Picture:
        """From a reduction's terms to its results: values after each kind of addition, how they are joined, and idle lanes.

        Parameters
        ----------
        of : str, optional
            The array that is reduced.
        gpu : str, optional
            Whose multiprocessors the blocks run on.

        Raises
        ------
        FigureError
            If an option does not fit.
        """
        return self._draw("partials", None, {"of": of, "gpu": gpu}, theme)

    @spoken(FigureError, "s.plot.dependences()")
    def dependences(self, kind: str | None = None, *, finding: Finding | None = None, theme: str = "light") -> Picture:
        """Which statement must come after which, at what distance, and how the schedule keeps it.

        Raises
        ------
        FigureError
            If there is no dependence of the kind.
        """
        return self._draw("dependences", None, {"kind": kind}, theme, finding)

    def _draw(self, name: str, node: str | None, options: Mapping[str, Any], theme: str, finding: Finding | None = None,
              run: Run | None = None, measured: SearchResult | None = None, stamps: Stamps | None = None) -> Picture:
        from ...run.result import Run
        from ...run.search.result import SearchResult
        from ...run.stamps import Stamps
        from .ablation import timed
        from .palette import THEMES
        from .registry import picture

        hints = {Finding: "error.finding of a refusal", Run: "what schedule.run() gives",
                 SearchResult: "what schedule.search() gives", Stamps: "what schedule.stamps() gives"}
        for called, value, kind in (("finding", finding, Finding), ("run", run, Run), ("measured", measured, SearchResult),
                                    ("stamps", stamps, Stamps)):
            if value is not None and not isinstance(value, kind):
                raise FigureError(f"{called} is a {kind.__name__}, not {shown(value)}", hint=hints[kind])
        if not isinstance(theme, str) or theme not in THEMES:
            raise FigureError(f"there is no theme {shown(theme)}", hint='"light" or "dark"')
        plan = self.schedule.plan
        if node is not None and not (isinstance(node, str) and (
            node in plan.ids or node in plan.statement_of or node in plan.array_of or node in plan.buffer_of
        )):
            raise FigureError(
                f"nothing in this schedule is called {shown(node)}",
                hint=", ".join([*plan.loops, *plan.statement_of, *plan.buffer_of][:12]),
            )
        of = named if isinstance(named := options.get("gpu"), str) else default_gpu().name
        times = timed(measured.trials) if measured is not None and measured.device == of else ()
        return picture(self.schedule, name, options, node=node, finding=finding, run=run, theme=theme, strict=True,
                       measured=times, stamps=stamps)

    def __repr__(self) -> str:
        return ("schedule.plot: .domain() .memory('A') .fragments() .pipeline() .timeline() .roles() .ablation() .legality() "
                ".roofline() .price() .occupancy() .partials() .dependences()")
