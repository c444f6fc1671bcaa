"""Copies and computation of a loop over time, by interpreting its text: who is in flight, which slot holds which tile.

One block is followed, all loops around the chosen one at their first iteration.  A copy occupies its slot from its
issue to the last read of its tile; an asynchronous copy lands at the first wait that covers its group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.text import buffer_text
from ...ir.tree import Leaf, Loop, Node, Sync, leaves, ranges
from ...poly.barriers import barriers
from ...schedule import Schedule
from ...transforms.pipeline import copy_nests, scope_dim
from .asked import Asked, Look

COPY, COMPUTE, MOMENT = 1.5, 2.0, 0.25
"""Lengths of the bars and of a wait: time is order here, not measured."""
UNSEEN = 0.02
"""Scale of the iterations that are not drawn."""
REACH = 8
"""Iterations before the end of a gap that are followed: as many as a pipeline has stages at most."""


@dataclass(frozen=True)
class Bar:
    """A copy or a computation.

    `iteration` is the iteration of the loop whose tile is copied, or that computes; `runs` the one in whose body it stands.
    `landed` is when an asynchronous copy has arrived (None: no wait covers it); for others it is `end`.
    """

    kind: str
    node: str
    text: str
    iteration: int
    runs: int
    phase: str
    start: float
    end: float
    landed: float | None = None
    statements: tuple[str, ...] = ()
    wrong: bool = False
    hidden: bool = False


@dataclass(frozen=True)
class Mark:
    """A commit, a wait or a barrier: a moment."""

    kind: str
    node: str | None
    text: str
    at: float
    runs: int


@dataclass(frozen=True)
class Life:
    """A tile in a slot of a buffer, from its copy's issue to its last read; `read` is False if nothing shown reads it."""

    buffer: str
    slot: int
    iteration: int
    start: float
    end: float
    read: bool


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


@dataclass(frozen=True)
class Stop:
    """One iteration of a loop to follow: of the prologue, or of the loop itself; hidden ones are followed but not drawn."""

    loop: Loop
    value: int
    phase: str
    hidden: bool = False


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
    """Interpret the iterations one after the other."""
    accused, names = set(_accused(plan, loop, look)), _names(plan, loop)
    kernel = plan.kernel_of(loop.id)
    stand = barriers(plan, kernel).before if kernel and not look.finding else frozenset()
    bars: list[Bar] = []
    marks: list[Mark] = []
    gaps: list[tuple[float, float]] = []
    groups: list[list[int]] = []
    group: list[int] = []
    now = 0.0
    for before, stop in zip([None, *stops], stops, strict=False):
        pace, opens = (UNSEEN, now) if stop.hidden else (1.0, now)
        for index, node in enumerate(stop.loop.body):
            if (stop.loop.id, index) in stand:
                marks += [] if stop.hidden else [Mark("barrier", None, "barrier: all threads of the block meet", now, stop.value)]
                now += MOMENT * pace
            if isinstance(node, Sync):
                marks += [] if stop.hidden else [Mark(node.kind, node.id, _says(node), now, stop.value)]
                if node.kind == "commit":
                    groups.append(group)
                    group = []
                else:
                    for landed in (i for g in groups[: max(len(groups) - node.pending, 0)] for i in g if bars[i].landed is None):
                        bars[landed] = replace(bars[landed], landed=now)
                now += MOMENT * pace
                continue
            for bar in _bars(plan, node, stop, now, pace, names):
                if bar.kind == "copy" and bar.landed is None:
                    group.append(len(bars))
                bars.append(bar)
                now = bar.end
        now += MOMENT * pace
        if stop.hidden:
            gaps[-1:] = [(gaps[-1][0], now)] if gaps and before and before.hidden else [*gaps[-1:], (opens, now)]
    lives = tuple(_lives(plan, loop, bars, names, gaps))
    bars = _judged(plan, loop, bars, lives, accused)
    steady = [b for b in bars if b.phase != "prologue"]
    ahead = max((b.iteration - b.runs for b in steady if b.kind == "copy"), default=0)
    buffers = tuple((n, buffer_text(plan.buffer_of[n])) for n in names)
    slots = tuple((n, plan.buffer_of[n].shape[0] if _slotted(plan, n) else 1) for n in names)
    shown = sum(1 for s in stops if s.loop is loop and not s.hidden)
    return Pipeline(
        loop.id,
        loop.extent,
        ahead,
        any(leaf.mechanism == "async" for n in loop.body for leaf, _ in leaves((n,))),
        buffers,
        slots,
        _alive(lives),
        tuple(b for b in bars if not b.hidden),
        tuple(marks),
        lives,
        _phases(bars, now),
        tuple(gaps),
        shown,
    )


def _says(sync: Sync) -> str:
    if sync.kind == "commit":
        return "commit: the copies issued since the last one are a group"
    return (
        f"wait until at most {sync.pending} group{'s' * (sync.pending != 1)} of copies are in flight"
        if sync.pending
        else "wait for all copies"
    )


def _bars(plan: Plan, node: Node, stop: Stop, now: float, pace: float, names: tuple[str, ...]) -> Iterator[Bar]:
    """What a child of the loop's body does in one iteration; a copy past the last iteration does nothing."""
    inside = list(leaves((node,)))
    if not any(leaf.statement in names for leaf, _ in inside):
        last = next((leaf for leaf, _ in inside if plan.statement_of[leaf.statement].update), inside[-1][0]) if inside else None
        if last is not None:
            statements, end = tuple(dict.fromkeys(leaf.statement for leaf, _ in inside)), now + COMPUTE * pace
            yield Bar(
                "compute",
                last.id,
                f"use {stop.loop.id}={stop.value}",
                stop.value,
                stop.value,
                stop.phase,
                now,
                end,
                end,
                statements,
                hidden=stop.hidden,
            )
        return
    for leaf, above in inside:
        value = dict(leaf.at)[scope_dim(plan, leaf)].evaluate({stop.loop.id: stop.value})
        if _exists(plan, leaf, above, stop):
            end = now + COPY * pace
            yield Bar("copy", leaf.id, f"copy {leaf.statement}", int(value), stop.value, stop.phase, now, end,
                      None if leaf.mechanism == "async" else end, (leaf.statement,), hidden=stop.hidden)
            now = end


def _exists(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], stop: Stop) -> bool:
    """Whether some instance of the copy lies in its domain at this iteration."""
    at, outer = dict(leaf.at), plan.find(stop.loop.id)
    scope = {**ranges(outer[1] if outer else ()), **ranges(above), stop.loop.id: (stop.value, stop.value)}
    return all(c.expr.substitute(at, scope).interval(scope)[1] >= 0 for c in plan.statement_of[leaf.statement].domain)


def _slotted(plan: Plan, name: str) -> bool:
    """Whether the buffer's first dimension counts slots."""
    return len(plan.buffer_of[name].shape) > plan.array_of[name].given


def _slot(plan: Plan, name: str, index: tuple[Expr, ...], loop: str, value: int) -> int:
    free = index[0].variables() if index else frozenset()
    return int(index[0].evaluate({loop: value})) if _slotted(plan, name) and free <= {loop} else 0


def _lives(plan: Plan, loop: Loop, bars: list[Bar], names: tuple[str, ...], gaps: list[tuple[float, float]]) -> Iterator[Life]:
    """When each tile is in its slot."""
    by_id = {leaf.id: (leaf, above) for leaf, above, _ in plan.leaves}
    reads = {n: _read_at(plan, loop, n) for n in names}
    for bar in bars:
        if bar.kind != "copy":
            continue
        name, (leaf, above) = bar.statements[0], by_id[bar.node]
        view = leaf.view(len(plan.statement_of[name].reads))
        own = next((x.id for x in above if x.id in dict(leaf.at)[scope_dim(plan, leaf)].variables()), loop.id)
        slot = _slot(plan, name, view.index if view else (), own, bar.runs)
        last = [b.end for b in bars if b.kind == "compute" and b.runs - reads[name] == bar.iteration]
        unseen = [start for start, _ in gaps if start >= bar.start][:1]
        end = max([bar.end, *(last or unseen)])
        if not (bar.hidden and any(start <= end <= stop for start, stop in gaps)):
            yield Life(name, slot, bar.iteration, bar.start, end, bool(last))


def _judged(plan: Plan, loop: Loop, bars: list[Bar], lives: tuple[Life, ...], accused: set[tuple[str, int]]) -> list[Bar]:
    """The bars, marked where a finding names them, or they overwrite a tile before its last read or read it before it lands."""
    over = {(b.buffer, b.iteration) for a in lives for b in lives
            if (a.buffer, a.slot) == (b.buffer, b.slot) and a.iteration != b.iteration and a.start <= b.start < a.end
            and (not accused or (a.buffer, a.iteration) in accused)}
    landed = {(b.statements[0], b.iteration): b.landed for b in bars if b.kind == "copy"}
    late = {n: _read_at(plan, loop, n) for n, _ in landed}

    def wrong(b: Bar) -> bool:
        if any((s, b.iteration) in accused for s in b.statements) or (
            b.kind == "copy" and (b.statements[0], b.iteration) in over
        ):
            return True
        tiles = [landed[n, b.runs - by] for n, by in late.items() if (n, b.runs - by) in landed]
        return b.kind == "compute" and not accused and any(at is None or at > b.start for at in tiles)

    return [replace(b, wrong=True) if wrong(b) else b for b in bars]


def _read_at(plan: Plan, loop: Loop, name: str) -> int:
    """How many iterations after its own a tile is read (0, unless the reader was shifted)."""
    for leaf, above, _ in plan.leaves:
        if any(x.id == loop.id for x in above):
            for slot, view in leaf.views:
                if view.buffer == name and slot < len(plan.statement_of[leaf.statement].reads) and view.element:
                    dims = plan.statement_of[name].dims
                    made = next(x for x, _, _ in plan.leaves if x.statement == name)
                    e = view.element[dims.index(scope_dim(plan, made))]
                    if e.variables() == {loop.id} and e.coefficient(loop.id) == 1:
                        return -e.const
    return 0


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
