"""Two schedules side by side: what changed in the loops, in the CUDA text, and in what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape
from typing import Any

from ..errors import ExplorerError, FigureError, ScheduleError, noun, outspoken, spoken
from ..gpu.occupancy import occupancy
from ..gpu.spec import Gpu, target_gpu
from ..gpu.units import time_text
from ..ir.text import loops_text
from ..kernel.emit import emit
from ..kernel.module import CudaModule
from ..run.facts import Facts, scaled
from ..run.result import Run
from ..schedule import Schedule
from ..strategies.price import price
from .style import page, table

CONTEXT = 3
"""Unchanged lines around a change."""
LINES = 160
"""Lines of a difference in a notebook's picture; the value has them all."""
OPENED = 40
"""Lines up to which a difference of the CUDA text stands open; that of the loops always does."""

Line = tuple[str, str]
"""Sign (space, plus, minus) and text."""


@outspoken(FigureError)
@dataclass(frozen=True, repr=False)
class Compared:
    """Two schedules compared.

    Attributes
    ----------
    a, b : str
        Their names.
    loops, cuda : tuple of (str, str)
        Differing lines with their surroundings: sign (``" "``, ``"-"`` only in the first, ``"+"`` only in the second) and text.
        The CUDA is that of the kernels, without the device library; none where one of the two cannot be emitted yet.
    rows : tuple of (str, str, str)
        Name of a fact, its value for each.
    """

    a: str
    b: str
    loops: tuple[Line, ...]
    cuda: tuple[Line, ...]
    rows: tuple[tuple[str, str, str], ...]

    def data(self) -> dict[str, Any]:
        """As plain data, for a front end."""
        def lines(diff: tuple[Line, ...]) -> list[dict[str, str]]:
            return [{"sign": sign, "text": text} for sign, text in diff]

        return {
            "a": self.a,
            "b": self.b,
            "loops": lines(self.loops),
            "cuda": lines(self.cuda),
            "rows": [list(row) for row in self.rows],
        }

    def __str__(self) -> str:
        wide = [max(len(row[i]) for row in (("", self.a, self.b), *self.rows)) for i in range(3)]
        out = [
            "  ".join(cell.ljust(n) for cell, n in zip(row, wide, strict=True)).rstrip()
            for row in (("", self.a, self.b), *self.rows)
        ]
        for name, diff in (("loops", self.loops), ("CUDA", self.cuda)):
            out += ["", f"{name}: {_count(diff)}", *(f"{sign} {text}".rstrip() for sign, text in diff)]
        return "\n".join(out)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [
            tuple(f"<b>{escape(c)}</b>" if i and row[1] != row[2] else escape(c) for i, c in enumerate(row)) for row in self.rows
        ]
        facts = table(("", self.a, self.b), rows)
        return page(
            f"{self.a} → {self.b}",
            "what changed",
            facts,
            *(_html(name, diff) for name, diff in (("loops", self.loops), ("CUDA", self.cuda))),
        )


@spoken(ScheduleError, "ex.compare(s, t)")
def compare(
    a: Schedule, b: Schedule, *, names: tuple[str, str] = ("before", "after"),
    runs: tuple[Run | None, Run | None] = (None, None), gpu: Gpu | str | None = None,
) -> Compared:
    """Compare two schedules: their loops, their CUDA text, their facts.

    Parameters
    ----------
    a, b : Schedule
        Of one program, or of two.
    names : tuple of str
        What to call them.
    runs : tuple of (Run or None)
        Their runs, if there are some: times and verdicts are then among the facts.
    gpu : Gpu or str, optional
        Whose limits and rates the facts are of, and for whose architecture the text is written; by default the H200.

    Returns
    -------
    Compared
        ``print`` shows it as text; a notebook as a picture.

    Raises
    ------
    ResourceError
        If the catalogue has no GPU of that name.

    Examples
    --------
    >>> ex.compare(s.undo(), s)
    """
    for value in (a, b):
        if not isinstance(value, Schedule):
            raise ScheduleError(f"compare takes two schedules, not {noun(value)}",
                                hint="program.schedule(M=…) makes one of a program")
    if len(tuple(names)) != 2 or len(tuple(runs)) != 2:
        raise ScheduleError("two schedules have two names and two runs", hint='names=("before", "after"), runs=(None, s.run())')
    target = target_gpu(gpu)
    modules = (_module(a, target), _module(b, target))
    texts = [m.kernels_text.splitlines() for m in modules if m is not None]
    cuda = tuple(difference(texts[0], texts[1])) if len(texts) == 2 else ()
    loops = tuple(difference(loops_text(a.plan).splitlines(), loops_text(b.plan).splitlines()))
    facts = [dict(_facts(s, run, target, module)) for s, run, module in zip((a, b), runs, modules, strict=True)]
    every = dict.fromkeys([*facts[0], *facts[1]])
    return Compared(*names, loops, cuda, tuple((name, facts[0].get(name, "–"), facts[1].get(name, "–")) for name in every))


def difference(a: list[str], b: list[str], context: int = CONTEXT) -> Iterator[Line]:
    """Lines that differ, with those around them; ``⋯`` stands for lines that are left out.

    Parameters
    ----------
    a, b : list of str
    context : int
        Unchanged lines kept before and after a change.
    """
    last = 0
    for group in SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(context):
        if group[0][1] > last:
            yield " ", "⋯"
        for tag, i, j, k, m in group:
            yield from ((" ", text) for text in (a[i:j] if tag == "equal" else ()))
            yield from (("-", text) for text in (a[i:j] if tag in ("replace", "delete") else ()))
            yield from (("+", text) for text in (b[k:m] if tag in ("replace", "insert") else ()))
        last = group[-1][2]
    if 0 < last < len(a):
        yield " ", "⋯"


def _module(s: Schedule, gpu: Gpu) -> CudaModule | None:
    """The kernels, or None while something is open."""
    if not s.judgement.emittable:
        return None
    try:
        return emit(s.plan, arch=gpu.arch)
    except ExplorerError:
        return None


def _facts(s: Schedule, run: Run | None, gpu: Gpu, module: CudaModule | None) -> Iterator[tuple[str, str]]:
    """Name and value of what is known, in an order that reads well."""
    facts, judgement = Facts(s.source, s.plan, gpu), s.judgement
    yield "sizes", ", ".join(f"{n}={v}" for n, v in s.source.sizes)
    yield "steps", str(len(s.steps))
    yield (
        "proved",
        "yes" if judgement.emittable else f"{len(judgement.obligations)} obligations open" if judgement.legal else "not legal",
    )
    if module is not None:
        launches = list({launch.kernel: launch for launch in module.launches}.values())
        yield "kernels", str(len(launches))
        for x in launches[:4]:
            name = "" if len(launches) == 1 else f" {x.kernel}"
            shared = x.static_shared_bytes + x.dynamic_shared_bytes
            fill = occupancy(gpu, x.threads_per_block, 0, shared)
            yield f"grid × block{name}", f"{' × '.join(map(str, x.grid))} blocks of {' × '.join(map(str, x.block))} threads"
            yield f"shared memory{name}", scaled(shared, "B")
            yield f"occupancy at most{name}", f"{fill.fraction:.0%} (limited by {fill.limiter})"
        moved = [x for x in facts.accesses if x.space == "global" and x.requests]
        yield "requested by warps", scaled(facts.requested_bytes, "B")
        if sectors := sum(x.requests * x.sectors_per_request for x in moved):
            yield "sectors of use", f"{sum(x.requests * x.minimum for x in moved) / sectors:.0%}"
        if banks := [x.conflicts for x in facts.accesses if x.space == "shared"]:
            yield "bank passes at worst", f"{max(banks):.3g}"
    yield "compulsory traffic", scaled(facts.compulsory_bytes, "B")
    yield f"floor on the {facts.gpu.name}", f"{time_text(facts.roofline.floor_us, 4)} ({facts.roofline.bound}-bound)"
    if module is not None:
        yield f"price on the {facts.gpu.name}", f"about {time_text(price(s.plan, gpu).total_us)}"
    if run is not None:
        yield "result", {True: "right", False: "WRONG", None: "not checked"}[run.correct]
        if run.time_us is not None:
            yield "time on the CPU" if run.device == "cpu" else f"time on {run.device}", time_text(run.time_us, 4)
        if run.share is not None:
            yield "share of the floor", f"{run.share:.0%}"


def _count(diff: tuple[Line, ...]) -> str:
    added, removed = (sum(1 for s, _ in diff if s == sign) for sign in "+-")
    return f"{removed} lines less, {added} more" if diff else "the same, or not there yet"


def _html(name: str, diff: tuple[Line, ...]) -> str:
    """A difference folded under its count; signs say what the colours do."""
    colour = {"+": "good", "-": "bad", " ": "soft"}
    lines = "\n".join(f'<span class="{colour[sign]}">{sign} {escape(text)}</span>' for sign, text in diff[:LINES])
    more = f'\n<span class="soft">… {len(diff) - LINES} more lines: print the value</span>' if len(diff) > LINES else ""
    opened = " open" if name == "loops" or len(diff) <= OPENED else ""
    return (
        f'<details{opened}><summary>{name}: {_count(diff)}</summary><div class="body"><pre>{lines}{more}</pre></div></details>'
        if diff
        else ""
    )
