"""The pipeline figure: copies and computation of a loop over time, the copies in flight and the contents of the slots.

One block is followed, all loops around the chosen one at their first iteration.  A copy occupies its slot from its
issue to the last read of its tile; an asynchronous copy lands at the first wait that covers its group.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.plan import Plan
from ...ir.text import buffer_text
from ...ir.tree import Loop, Sync, leaves
from ...poly.barriers import barriers
from ...poly.mechanism import ASYNCHRONOUS
from ...schedule import Schedule
from ...transforms.pipeline import copy_nests, scope_dim
from .asked import Asked, Look
from .timeline import MOMENT, Bar, Life, Mark, Stop, Timeline, judged, lives_of, slotted

REACH = 8
"""Iterations before the end of a gap that are followed: as many as a pipeline has stages at most."""


@dataclass(frozen=True)
class Pipeline:
    """Copies and uses of the tiles of one loop.

    Attributes
    ----------
    loop : str
    extent : int
    ahead : int
        Iterations that the copies run ahead.
    asynchronous : bool
    buffers : tuple of (str, str)
        Name, and declaration.
    slots : tuple of (str, int)
        Slots of each buffer.
    alive : int
        Most tiles of one buffer that are alive at one time.
    bars, marks, lives
        What happens, in order.
    phases : tuple of (str, float, float)
        ``prologue``, ``steady state``, ``epilogue``: those that occur.
    gaps : tuple of (float, float)
        Spans in which iterations are not drawn.
    shown : int
        Iterations that are drawn.
    """

    loop: str
    extent: int
    ahead: int
    asynchronous: bool
    buffers: tuple[tuple[str, str], ...]
    slots: tuple[tuple[str, int], ...]
    alive: int
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    lives: tuple[Life, ...]
    phases: tuple[tuple[str, float, float], ...]
    gaps: tuple[tuple[float, float], ...]
    shown: int


def pipeline(schedule: Schedule, asked: Asked, look: Look) -> Pipeline | str:
    """The copies and uses of one loop, or a sentence where nothing is copied in a loop."""
    plan = schedule.plan
    loops = [x for x in plan.loops.values() if x.role in ("seq", "unroll") and copy_nests(plan, x) and _uses(plan, x)]
    if not loops:
        made = ", ".join(c.name for c in plan.copies)
        return (
            f"{made} is copied once, outside of every sequential loop, so there is nothing to overlap."
            if made
            else "Nothing is staged: no loop makes a copy that could run ahead of its use. "
            "stage('…', 'k') an array that a loop reads, then pipeline('k', 3)."
        )
    words = {x.id: f"{x.id} ({', '.join(_names(plan, x))})" for x in loops}
    chosen = asked.one_of("loop", "loop", words, _focus(plan, loops, look))
    loop = plan.loops[chosen]
    count = asked.number("iterations", "iterations drawn", min(3, loop.extent), min(loop.extent, 12), min(loop.extent, 6))
    return _follow(plan, loop, _stops(plan, loop, count, look), look)


def _uses(plan: Plan, loop: Loop) -> bool:
    """Whether the loop does something besides copying."""
    return any(not isinstance(n, Sync) and n not in copy_nests(plan, loop) for n in loop.body)


def _names(plan: Plan, loop: Loop) -> tuple[str, ...]:
    return tuple(dict.fromkeys(leaf.statement for nest in copy_nests(plan, loop) for leaf, _ in leaves((nest,))))


def _focus(plan: Plan, loops: list[Loop], look: Look) -> str:
    """The loop that is selected, that is around the selected node, or that makes the selected copy; else one that runs ahead."""
    wanted = (look.node, *(look.finding.nodes if look.finding else ()))
    for node in wanted:
        hit = plan.find(node) if node else None
        around = {node, *(x.id for x in hit[1])} if hit else {node}
        for x in reversed(loops):
            if x.id in around or node in _names(plan, x):
                return x.id
    return next((x.id for x in loops if _prologue(plan, x)), loops[0].id)


def _prologue(plan: Plan, loop: Loop) -> tuple[Loop, ...]:
    """Loops before this one, in the same body, that make its copies alone."""
    hit = plan.find(loop.id)
    assert hit is not None
    body = hit[1][-1].body if hit[1] else next(k.body for k in plan.kernels if any(n.id == loop.id for n in k.body))
    before, names = body[: [n.id for n in body].index(loop.id)], set(_names(plan, loop))
    return tuple(
        n for n in before if isinstance(n, Loop) and (held := {leaf.statement for leaf, _ in leaves((n,))}) and held <= names
    )


def _stops(plan: Plan, loop: Loop, count: int, look: Look) -> list[Stop]:
    """The iterations to follow: the first ones, the last ones and those of a finding, and hidden ones between them."""
    out = [Stop(p, v, "prologue") for p in _prologue(plan, loop) for v in range(p.start, p.start + p.extent)]
    last = min(2, count - 1) if loop.extent > count else 0
    wanted = {*range(count - last), *range(loop.extent - last, loop.extent)}
    wanted |= {v - loop.start + d for _, v in _accused(plan, loop, look) for d in (0, 1) if 0 <= v - loop.start + d < loop.extent}
    for previous, v in zip([-1, *sorted(wanted)], sorted(wanted), strict=False):
        out += [Stop(loop, loop.start + u, "", True) for u in range(max(previous + 1, v - REACH), v)]
        out.append(Stop(loop, loop.start + v, ""))
    return out


def _accused(plan: Plan, loop: Loop, look: Look) -> list[tuple[str, int]]:
    """Statement and iteration of the two ends of a finding: for a copy the iteration whose tile it makes."""
    out = []
    for end in (look.finding.source, look.finding.sink) if look.finding else ():
        statement = plan.statement_of.get(end.statement) if end else None
        if end is None or statement is None or len(statement.dims) != len(end.point):
            continue
        point = dict(zip(statement.dims, end.point, strict=True))
        for leaf, above, _ in plan.leaves:
            if leaf.statement == end.statement and end.statement in _names(plan, loop):
                out.append((end.statement, point[scope_dim(plan, leaf)]))
                break
            if leaf.statement == end.statement and any(x.id == loop.id for x in above):
                out.append((end.statement, int(dict(leaf.when)[loop.id].evaluate(point))))
                break
    return out


def _follow(plan: Plan, loop: Loop, stops: list[Stop], look: Look) -> Pipeline:
    """Interpret the iterations, and judge what happens in them."""
    names, kernel = _names(plan, loop), plan.kernel_of(loop.id)
    timeline = Timeline(plan, names, barriers(plan, kernel).before if kernel and not look.finding else frozenset())
    timeline.follow(stops)
    lives = tuple(lives_of(plan, loop, timeline.bars, names, timeline.gaps))
    bars = judged(plan, loop, timeline.bars, lives, set(_accused(plan, loop, look)))
    ahead = max((b.iteration - b.runs for b in bars if b.kind == "copy" and b.phase != "prologue"), default=0)
    return Pipeline(
        loop.id,
        loop.extent,
        ahead,
        any(leaf.mechanism in ASYNCHRONOUS for n in loop.body for leaf, _ in leaves((n,))),
        tuple((n, buffer_text(plan.buffer_of[n])) for n in names),
        tuple((n, plan.buffer_of[n].shape[0] if slotted(plan, n) else 1) for n in names),
        _alive(lives),
        tuple(b for b in bars if not b.hidden),
        tuple(timeline.marks),
        lives,
        _phases(bars, timeline.now),
        tuple(timeline.gaps),
        sum(1 for s in stops if s.loop is loop and not s.hidden),
    )


def _alive(lives: tuple[Life, ...]) -> int:
    """Most tiles of one buffer at one time."""
    return max((sum(1 for b in lives if b.buffer == a.buffer and b.start <= a.start < b.end) for a in lives), default=0)


def _phases(bars: list[Bar], end: float) -> tuple[tuple[str, float, float], ...]:
    """Where the copies start, run along with the computation, and have ended."""
    loop = [b for b in bars if b.phase != "prologue"]
    first = min((b.start for b in loop), default=0.0)
    copying = {b.runs for b in loop if b.kind == "copy"}
    late = min((b.start for b in loop if copying and b.runs > max(copying)), default=end)
    found = (("prologue", 0.0, first), ("steady state", first, late), ("epilogue", late, end))
    return tuple(p for p in found if p[2] - p[1] > 2 * MOMENT and (first > 2 * MOMENT or p[0] != "steady state" or late < end))
