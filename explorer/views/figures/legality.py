"""The grid of a pipeline's legality: slots, release distance and work in flight, each cell right or not, for all trip counts.

Every cell is answered by one condition, with the trip count symbolic (:mod:`~explorer.poly.ring_questions`): no plan is made.
"""

from __future__ import annotations

from ...poly.ring import ways
from ...poly.ring_text import ALWAYS, NEVER, in_flight_words
from ...run.counterexample.pipelines import GridCell, PipelineConditions, pipeline_conditions
from ...schedule import Schedule
from ...strategies.pipelines.facts import steppings
from .asked import Asked, Look
from .palette import Theme, amount, on, scale
from .picture import Drawing
from .spec import Spec, axis, box, heat, layout, note, spec

USUAL, MOST = 5, 8
"""Stages that are looked at, and at most."""
FLIGHT = 3
"""Steps or groups in flight that are looked at."""
SHARE = {ALWAYS: 1.0, NEVER: 0.0}
"""How light a cell is; one that is right up to some trip count is between."""
BETWEEN = 0.45


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    plan = schedule.plan
    loops = [s.loop for kernel in plan.kernels for s in steppings(plan, kernel)]
    if not loops:
        return ("No loop computes in steps, so there is no pipeline to ask about: none has copies that bring another tile to "
                "shared memory in each of its iterations. stage('…', 'k') an array that a loop reads.")
    hit = plan.find(look.node) if look.node else None
    around = {look.node, *(x.id for x in hit[1])} if hit else {look.node}
    loop = asked.one_of("loop", "loop", loops, next((n for n in loops if n in around), loops[0]))
    most = asked.number("slots", "slots", 2, MOST, USUAL)
    data = pipeline_conditions(schedule, loop)
    apart = [", ".join(names) for names in ways(plan, loop)]
    if isinstance(data, str) and len(apart) > 1:
        data = pipeline_conditions(schedule, loop, of=tuple(asked.one_of("copies", "copies", apart, apart[0]).split(", ")))
    if isinstance(data, str):
        return f"There is no condition for {loop}: {data}."
    cells = data.grid(most, FLIGHT)
    known = "legal" if data.condition.always != NEVER else "never legal"
    whose = f"pipelines of {', '.join(data.of)} in {loop}" if data.of else f"pipelines of {loop}"
    return Drawing(f"Where {whose} are {known}, for all trip counts", _note(data, cells),
                   lambda theme: draw(data, cells, theme), *_table(data, cells))


def draw(data: PipelineConditions, cells: tuple[GridCell, ...], theme: Theme) -> Spec:
    """For each number of slots a column of cells, by what is in flight, for each release distance."""
    flights = sorted({c.in_flight for c in cells})
    by = {(c.slots, c.release_distance, c.in_flight): c for c in cells}
    places = sorted({(c.slots, c.release_distance) for c in cells})
    at = {place: n + place[0] - 1 for n, place in enumerate(places)}  # one empty column between slots
    columns = range(max(at.values()) + 1)
    of = {n: place for place, n in at.items()}
    values = [[SHARE.get(by[*of[n], f].trips, BETWEEN) if n in of else None for n in columns] for f in flights]
    hover = [[_words(data, by[*of[n], f]) if n in of else "" for n in columns] for f in flights]
    grid = heat([float(n) for n in columns], [float(f) for f in flights], values, data.loop, scale=scale(), top=1.0,
                hover=hover, dy=1)
    ticks = [(float(n), str(r)) for (_, r), n in at.items()]
    page = layout(theme, 44 * len(flights) + 116, left=96, top=40, bottom=46,
                  xaxis=axis(theme, "release distance", (-0.5, len(columns) - 0.5), ticks),
                  yaxis=axis(theme, "in flight", (flights[0] - 0.5, flights[-1] + 0.5), [(float(f), str(f)) for f in flights]))
    for s in sorted({c.slots for c in cells}):
        middle = (at[s, 0] + at[s, s]) / 2
        page["annotations"].append(note(f"{s} slot{'s' * (s != 1)}", middle, 1.08, theme, refs=("x", "paper"),
                                        anchor="center", size=12))
    for c in cells:
        x, share = at[c.slots, c.release_distance], SHARE.get(c.trips, BETWEEN)
        text = "✓" if c.legal else "✗" if c.trips == NEVER else c.trips.replace("K ", "").replace("<= ", "≤").replace("== ", "=")
        word = note(text, x, c.in_flight, theme, refs=("x", "y"), anchor="center", size=10, color=on(amount(share)))
        page["annotations"].append(word)
        if _is_own(data, c):
            frame = (x - 0.46, c.in_flight - 0.44, x + 0.46, c.in_flight + 0.44)
            page["shapes"].append(box(*frame, line=theme.thread, width=4))
    return spec([grid], page)


def _is_own(data: PipelineConditions, c: GridCell) -> bool:
    return data.own is not None and (c.slots, c.release_distance) == (data.own["S"], data.own["R"]) and (
        c.in_flight == data.own["F"] or not data.kin.varies)


def _words(data: PipelineConditions, c: GridCell) -> str:
    """A cell in words."""
    head = f"{c.slots} slot{'s' * (c.slots != 1)}, release distance {c.release_distance}, {c.in_flight} in flight"
    said = "✓ right for every trip count" if c.legal else "✗ never right" if c.trips == NEVER else f"right iff {c.trips}"
    more = f"<br>fails first for K = {c.least.K}: {c.why_not}" if c.least else ""
    return f"{head}{' (this schedule)' * _is_own(data, c)}<br>{said}{more}"


def _note(data: PipelineConditions, cells: tuple[GridCell, ...]) -> str:
    parts = [str(data.condition), "release distance: a copy takes the slot of the tile so many iterations before"]
    if data.kin.varies:
        parts.append(f"in flight: {in_flight_words(data.family.flight)}")
    parts.append("✓: right for every trip count K; ≤: up to that many iterations; ✗: never")
    if any(_is_own(data, c) for c in cells):
        parts.append("framed: the schedule that is shown")
    elif data.own:
        parts.append(f"the schedule that is shown is not drawn: it has {data.own['S']} slots")
    return "; ".join(parts) + "."


def _table(data: PipelineConditions, cells: tuple[GridCell, ...]) -> tuple[list[str], list[list[str | None]]]:
    rows: list[list[str | None]] = [
        [data.loop, str(c.slots), str(c.release_distance), str(c.in_flight), c.trips, str(c.least.K) if c.least else "",
         c.why_not] for c in cells]
    return ["slots", "release distance", "in flight", "legal", "least K that fails", "why"], rows
