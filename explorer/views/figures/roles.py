"""What each role of a kernel does when, in one block: predicted by the model, measured by stamps, one over the other."""

from __future__ import annotations

from dataclasses import dataclass

from ...gpu.spec import Gpu
from ...ir.plan import Plan
from ...run.stamps import Kept, Stamps
from ...schedule import Schedule
from ...strategies.pipelines.acting import Acted, Piece, acted
from .asked import Asked, Look

PARTS = {"start": "the first steps", "tiles": "from tile to tile", "end": "the last steps", "all": "the whole block"}
"""The parts of a block that can be looked at."""
MOST_DRAWN = 320
"""Steps up to which a whole block is drawn."""


@dataclass(frozen=True)
class Row:
    """A role, or one warpgroup of it.

    Attributes
    ----------
    name : str
    predicted, measured : tuple of Piece
        All pieces of the block, not only those that are drawn.
    """

    name: str
    predicted: tuple[Piece, ...]
    measured: tuple[Piece, ...]


@dataclass(frozen=True)
class RolesData:
    """One kernel's roles over some time.

    Attributes
    ----------
    kernel, gpu, device : str
        `device` is the GPU of the measurement, ``"cpu"``, or nothing.
    rows : tuple of Row
    part : str
        In :data:`PARTS`.
    window : tuple of (float, float)
        Of the block's time, what is drawn.
    stamps : Stamps or None
        The measurement.
    other : str
        The GPU that was measured where that is not the one asked for: its times are not drawn.
    """

    kernel: str
    gpu: str
    device: str
    rows: tuple[Row, ...]
    part: str
    window: tuple[float, float]
    stamps: Stamps | None = None
    other: str = ""

    @property
    def timed(self) -> bool:
        """Whether the axis is time; else it is the order that the CPU device found."""
        return self.device != "cpu"


def roles(schedule: Schedule, asked: Asked, look: Look) -> RolesData | str:
    """The roles of one kernel, or a sentence where none has steps."""
    plan, gpu = schedule.plan, asked.gpu(look)
    if not schedule.judgement.emittable:
        return "What its roles do is read off the kernel's text, and this schedule may not become one yet."
    told = acted(plan, gpu)
    kept, other = _measured(look, gpu)
    names = list(dict.fromkeys([*(a.kernel for a in told), *(k.log.kernel for k in kept if len(k.pieces) > 1)]))
    if not names:
        return ("No kernel computes in steps: none has a loop with copies that bring another tile to shared memory in each of "
                "its iterations. stage('…', 'k') an array that a loop reads, then pipeline('k', 3) or specialise('k', 3).")
    kernel = asked.one_of("kernel", "kernel", names, _focus(plan, names, look))
    rows = _rows([a for a in told if a.kernel == kernel], [k for k in kept if k.log.kernel == kernel])
    on_cpu = look.stamps is not None and bool(kept) and not look.stamps.measured
    if on_cpu:  # turns are no time: the two cannot share an axis
        rows = tuple(Row(r.name, (), r.measured) for r in rows if r.measured)
    steps = _steps(rows)
    parts = {p: words for p, words in PARTS.items()
             if (p != "tiles" or _tile(steps)) and (p != "all" or len(steps) <= MOST_DRAWN)}
    part = asked.one_of("part", "part", parts, "tiles" if "tiles" in parts else "start")
    few, most = min(6, len(steps)), min(len(steps), 32)
    count = asked.number("steps", "steps drawn", min(2, few), most, few) if part != "all" else 0
    window, stamps = _window(rows, steps, part, count), look.stamps if kept else None
    return RolesData(kernel, gpu.name, stamps.device if stamps else "", rows, part, window, stamps, other)


def _measured(look: Look, gpu: Gpu) -> tuple[tuple[Kept, ...], str]:
    """The logs of one block, if they are of this GPU or of the CPU device; and of which other GPU they are."""
    found = look.stamps
    if found is None or not found.kept:
        return (), ""
    if found.measured and found.device != gpu.name:
        return (), found.device
    return found.block(found.kept[0].log.block), ""


def _focus(plan: Plan, names: list[str], look: Look) -> str:
    """The kernel of the selected node; else the first."""
    kernel = plan.kernel_of(look.node) if look.node and plan.find(look.node) else None
    return kernel.id if kernel is not None and kernel.id in names else names[0]


def _rows(told: list[Acted], kept: list[Kept]) -> tuple[Row, ...]:
    """A row for each log, with what its role was predicted to do; without logs, one for each role and warpgroup."""
    by = {a.role: a.pieces for a in told}
    if kept:
        return tuple(Row(k.log.name, by.get(k.log.role, ()), k.pieces) for k in kept)
    return tuple(Row(f"{a.role} {n}" if a.groups > 1 else a.role, a.pieces, ()) for a in told for n in range(a.groups))


def _steps(rows: tuple[Row, ...]) -> list[tuple[int, ...]]:
    """The iterations of the innermost loop that some role's pieces are in, over all loops around it."""
    found = {tuple(n for _, n in p.iteration) for r in rows for p in (r.predicted or r.measured)}
    deepest = max(map(len, found), default=0)
    return sorted(x for x in found if len(x) == deepest)


def _tile(steps: list[tuple[int, ...]]) -> int:
    """Steps of the first tile, where there is another."""
    return next((n for n, x in enumerate(steps) if x[:-1] != steps[0][:-1]), 0)


def _window(rows: tuple[Row, ...], steps: list[tuple[int, ...]], part: str, count: int) -> tuple[float, float]:
    """The time in which any role that does not only ask for copies is in the steps of this part; never empty."""
    begin, end = _span(rows, steps, part, count)
    return begin, end if end > begin else begin + 1.0


def _span(rows: tuple[Row, ...], steps: list[tuple[int, ...]], part: str, count: int) -> tuple[float, float]:
    every = [p for r in rows for p in (*r.predicted, *r.measured)]
    if part == "all" or not steps or not steps[0]:
        return 0.0, max((p.end for p in every), default=1.0)
    first = {"start": 0, "end": len(steps) - count, "tiles": max(0, _tile(steps) - (count + 1) // 2)}[part]
    chosen = set(steps[first : first + count])
    users = [p for r in rows if r.name != "producer" for p in (*r.predicted, *r.measured)] or every
    inside = [p for p in users if tuple(n for _, n in p.iteration) in chosen]
    begin = 0.0 if part == "start" else min((p.start for p in inside), default=0.0)
    return begin, max((p.end for p in (every if part == "end" else inside)), default=1.0)
