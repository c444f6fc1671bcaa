"""Statements and what must come after what: kind, distance, the loop that carries it, and how the schedule keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from ...gpu.units import counted
from ...ir.text import written_text
from ...poly.distances import Distance, distances
from ...schedule import Schedule
from .asked import Asked, Look
from .palette import Theme
from .picture import Drawing
from .spec import Spec, axis, box, layout, lines, note, points, spec

LANES = 9
"""Lines beside the statements at most; the table has every dependence."""
SELF = 0.4
"""Height of the line about a dependence of a statement on itself; a box without one is 0.6 high."""
KINDS = {"flow": "written, then read", "anti": "read, then overwritten", "output": "written twice",
         "reduction": "updates of one element, in either order"}


@dataclass(frozen=True)
class Node:
    """A statement: its name, its text, the leaf that a click selects."""

    name: str
    text: str
    leaf: str


@dataclass(frozen=True)
class Edge:
    """Dependences of one kind between two statements: `what` says arrays and distances."""

    kind: str
    source: str
    sink: str
    rows: tuple[Distance, ...]

    @property
    def what(self) -> str:
        """The arrays, and the distance if all have the same."""
        arrays = ", ".join(dict.fromkeys(r.array for r in self.rows))
        spans = {distance_text(r) for r in self.rows}
        return f"{arrays} {next(iter(spans))}" if len(spans) == 1 else arrays


@dataclass(frozen=True)
class Dependences:
    """The graph and its rows.

    Attributes
    ----------
    nodes : tuple of Node
        In program order.
    rows : tuple of Distance
    edges : tuple of Edge
        Those drawn.
    hidden : int
        Edges that only the table has.
    accused : tuple of (str, str)
        Source and sink of a finding.
    """

    nodes: tuple[Node, ...]
    rows: tuple[Distance, ...]
    edges: tuple[Edge, ...]
    hidden: int
    accused: tuple[str, ...]


def distance_text(row: Distance) -> str:
    """``(0, 0, 1…43)``: sink minus source in each common loop; empty where there is none."""
    def one(low: int | None, high: int | None) -> str:
        return "?" if low is None or high is None else f"{low}" if low == high else f"{low}…{high}"

    return f"({', '.join(one(*s) for s in row.span)})" if row.span else ""


def dependences(schedule: Schedule, asked: Asked, look: Look) -> Dependences | str:
    """The program's dependences under the schedule, or a sentence where there are none."""
    plan = schedule.plan
    rows = distances(plan)
    if not rows:
        return "No two instances touch one element with a write: every order computes the same, and every loop is parallel."
    kinds = [k for k in KINDS if any(r.kind == k for r in rows)]
    kind = asked.one_of("kind", "show", {"all": "all kinds"} | {k: f"{k}: {KINDS[k]}" for k in kinds}, "all")
    chosen = tuple(r for r in rows if kind in ("all", r.kind))
    leaf_of = {leaf.statement: leaf.id for leaf, _, _ in reversed(plan.leaves)}
    nodes = tuple(
        Node(s.name, written_text(s, plan.array_of, own=True), leaf_of[s.name])
        for s in plan.program.statements
        if s.name in leaf_of
    )
    groups: dict[tuple[str, str, str], list[Distance]] = {}
    for r in chosen:
        groups.setdefault((r.kind, r.source, r.sink), []).append(r)
    edges = [Edge(*key, tuple(found)) for key, found in groups.items()]
    accused = tuple(x.statement for x in (look.finding.source, look.finding.sink) if x) if look.finding else ()
    order = {n.name: i for i, n in enumerate(nodes)}
    near = sorted(
        edges,
        key=lambda e: ((e.source, e.sink) != accused, list(KINDS).index(e.kind) in (1, 2), abs(order[e.source] - order[e.sink])),
    )
    apart = [e for e in near if e.source != e.sink]
    shown = tuple(e for e in near if e not in apart[LANES:])
    return Dependences(nodes, chosen, shown, len(near) - len(shown), accused)


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = dependences(schedule, asked, look)
    if isinstance(data, str):
        return data
    leaf = {n.name: n.leaf for n in data.nodes}
    rows: list[list[str | None]] = [
        [
            leaf.get(r.sink),
            r.kind,
            f"{r.source} → {r.sink}",
            r.array,
            ", ".join(r.dims),
            distance_text(r),
            _carried(r),
            "; ".join(r.kept),
            f"{_instance(r.source, r.first[0])} → {_instance(r.sink, r.first[1])}",
        ]
        for r in data.rows
    ]
    return Drawing(f"Dependences of {schedule.source.name}", _remark(data), lambda theme: draw(data, theme),
                   ["kind", "from → to", "through", "loops", "distance", "carried by", "kept by", "first pair"], rows)


def _instance(name: str, point: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, point))}]"


def _carried(row: Distance) -> str:
    """In words, outermost first."""
    if not row.carried:
        return "not known (too large)"
    return " or ".join(c or ("no loop (loop-independent)" if row.dims else "no common loop") for c in row.carried)


Places = dict[str, tuple[float, float]]
"""Middle and half height of each statement's box."""


def draw(data: Dependences, theme: Theme) -> Spec:
    """Statements as a column, their dependences on themselves in their boxes; the others as lines from source to sink."""
    looks = {
        "flow": (theme.block, "solid"),
        "anti": (theme.thread, "dash"),
        "output": (theme.copy, "dashdot"),
        "reduction": (theme.vector, "dot"),
    }
    selves = {n.name: [e for e in data.edges if e.source == e.sink == n.name] for n in data.nodes}
    rows, bottom = _rows(data, selves)
    shown = {n.name: n.text if len(n.text) <= 46 else f"{n.text[:45]}…" for n in data.nodes}
    says = {n: [f"↻ {e.kind} {e.what}, carried by {_carried(e.rows[0])}" for e in own] for n, own in selves.items()}
    column = 0.5 + 0.125 * max(
        *(len(n) + len(t) + 3 for n, t in shown.items()), *(len(t) for own in says.values() for t in own), 10
    )
    apart = [e for e in data.edges if e.source != e.sink]
    lanes, ports = _lanes(apart, rows), _ports(apart, rows)
    right = column + 0.4 + (max(lanes.values(), default=-1) + 1) + 2.6
    solid = theme.soft if theme.soft[0] == "#" else "#8d97a5"
    traces, notes = [], []
    taken: list[tuple[float, float, float]] = []
    for e in apart:
        colour, dash = looks[e.kind]
        colour = theme.bad if (e.source, e.sink) == data.accused[:2] else colour
        x, (start, end) = column + 0.5 + lanes[e], ports[e]
        node = next(n.leaf for n in data.nodes if n.name == e.sink)
        traces.append(
            lines(
                [column, x, x, column + 0.16],
                [start, start, end, end],
                color=colour,
                width=2,
                dash=dash,
                node=node,
                hover=_hover(e),
            )
        )
        head = points([x, column + 0.02], [end, end], None, color=colour, size=[0, 10], symbol="arrow")
        head["marker"]["angleref"] = "previous"
        traces.append(head)
        text = f"{e.kind} {e.what}"
        notes.append(
            note(
                text,
                x + 0.08,
                _free(taken, x, start, end, len(text) * 0.125),
                theme,
                refs=("x", "y"),
                color=colour,
                size=11,
                bgcolor=theme.paper if theme.name != "static" else "rgba(0,0,0,0)",
            )
        )
    for n in data.nodes:
        middle, half = rows[n.name]
        ink = theme.bad if n.name in data.accused else theme.ink
        notes.append(
            note(f"<b>{n.name}</b>  {shown[n.name]}", 0.15, middle - half + 0.3, theme, refs=("x", "y"), size=12, color=ink)
        )
        for line, (e, text) in enumerate(zip(selves[n.name], says[n.name], strict=True)):
            colour = theme.bad if (e.source, e.sink) == data.accused[:2] else looks[e.kind][0]
            notes.append(note(text, 0.15, middle - half + 0.3 + SELF * (line + 1), theme, refs=("x", "y"), size=11, color=colour))
    hover = ["<br>".join([f"<b>{n.name}</b> {n.text}", *map(_hover, selves[n.name])]) for n in data.nodes]
    traces.append(
        points(
            [column - 0.02] * len(data.nodes),
            [middle for middle, _ in rows.values()],
            [n.leaf for n in data.nodes],
            color=solid,
            size=9,
            symbol="circle",
            hover=hover,
        )
    )
    page = layout(
        theme,
        round(52 * bottom) + 16,
        left=8,
        right=8,
        top=6,
        bottom=6,
        xaxis=axis(theme, "", (0, max(right, 11)), [], visible=False),
        yaxis=axis(theme, "", (bottom, 0), [], visible=False),
    )
    page["shapes"] += [
        box(0, middle - half, column, middle + half, line=solid, layer="below", opacity=0.6) for middle, half in rows.values()
    ]
    page["annotations"] += notes
    edge = max(right, 11)
    page["meta"] = {"within": [[at, column if one["x"] < column else edge] for at, one in enumerate(page["annotations"])]}
    return spec(traces, page)


def _hover(e: Edge) -> str:
    """The first pairs, and how the schedule keeps their order."""
    pairs = [
        f"<b>{r.kind}</b> {_instance(r.source, r.first[0])} → {_instance(r.sink, r.first[1])} through {r.array}, "
        f"distance {distance_text(r) or '–'}"
        for r in e.rows[:6]
    ]
    return "<br>".join([*pairs, *(f"kept: {k}" for k in dict.fromkeys(k for r in e.rows for k in r.kept))])


def _rows(data: Dependences, selves: dict[str, list[Edge]]) -> tuple[Places, float]:
    """Boxes from the top down, higher where a statement depends on itself; and where the last one ends."""
    out: Places = {}
    top = 0.1
    for n in data.nodes:
        half = 0.3 + SELF * len(selves[n.name]) / 2
        out[n.name] = (top + half, half)
        top += 2 * half + 0.3
    return out, top


def _lanes(edges: list[Edge], rows: Places) -> dict[Edge, int]:
    """A lane for each edge so that no two on one lane overlap; short ones near the statements."""
    taken: list[list[tuple[float, float]]] = []
    out: dict[Edge, int] = {}
    for e in sorted(edges, key=lambda e: abs(rows[e.source][0] - rows[e.sink][0])):
        low, high = sorted((rows[e.source][0], rows[e.sink][0]))
        span = (low - 0.2, high + 0.2)
        lane = next((i for i, spans in enumerate(taken) if all(span[1] < a or b < span[0] for a, b in spans)), len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append(span)
        out[e] = lane
    return out


def _ports(edges: list[Edge], rows: Places) -> dict[Edge, tuple[float, float]]:
    """Heights at which lines leave and reach their statements, so that they do not lie upon each other."""
    ends: dict[str, list[tuple[float, int, Edge]]] = {}
    for e in edges:
        ends.setdefault(e.source, []).append((rows[e.sink][0], 0, e))
        ends.setdefault(e.sink, []).append((rows[e.source][0], 1, e))
    out: dict[Edge, list[float]] = {e: [0.0, 0.0] for e in edges}
    for name, here in ends.items():
        middle, half = rows[name]
        for place, (_, side, e) in enumerate(sorted(here, key=lambda end: end[:2])):
            out[e][side] = middle + ((place + 1) / (len(here) + 1) * 2 - 1) * half * 0.9
    return {e: (a, b) for e, (a, b) in out.items()}


def _free(taken: list[tuple[float, float, float]], x: float, start: float, end: float, wide: float) -> float:
    """A height along a line at which a label meets no other label."""
    heights = [start + (end - start) * share for share in (0.5, 0.38, 0.62, 0.26, 0.74, 0.14, 0.86)]
    y = next((y for y in heights if all(abs(y - v) > 0.32 or x + wide < a or b < x for a, b, v in taken)), heights[0])
    taken.append((x, x + wide, y))
    return y


def _remark(data: Dependences) -> str:
    kinds = "; ".join(f"{k}: {KINDS[k]}" for k in KINDS if any(r.kind == k for r in data.rows))
    hidden = f" {data.hidden} more in the table." if data.hidden else ""
    return (
        f"{counted(len(data.rows), 'dependence')}, exact for every instance ({kinds}). "
        f"The distance counts iterations of the common loops, outermost first.{hidden}"
    )
