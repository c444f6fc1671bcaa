"""Drawing of the ablation: a cell for each number of stages and each level, with the price of its plan and its time."""

from __future__ import annotations

from ...gpu.units import time_text
from ...schedule import Schedule
from .ablation import Ablation, Cell, ablation
from .asked import Asked, Look
from .palette import Theme, amount, on, scale
from .picture import Drawing
from .spec import Spec, axis, box, heat, layout, note, spec

ROW = 58


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = ablation(schedule, asked, look)
    if isinstance(data, str):
        return data
    return Drawing(f"Stages of {data.loop} and levels on the {data.gpu}, {_known(data)}", _note(data),
                   lambda theme: draw(data, theme), *_table(data))


def draw(data: Ablation, theme: Theme) -> Spec:
    """A heat map; the lighter, the faster."""
    stages = sorted({c.stages for c in data.cells})
    by = {(c.stages, c.level): c for c in data.cells}
    shares = _shares(data)
    rows = range(len(data.levels))
    hover = [[_words(data, by[n, level]) for n in stages] for level in rows]
    values = [[shares.get((n, level)) for n in stages] for level in rows]
    cells = heat([float(n) for n in stages], [float(level) for level in rows], values, data.loop, scale=scale(), top=1.0,
                 hover=hover, dy=1)
    left = 22 + round(7.2 * max(map(len, data.levels)))
    labels = [(float(n), str(n)) for n in stages]
    title, span = "stages: tiles of a copy in slots", (stages[0] - 0.5, stages[-1] + 0.5)
    page = layout(theme, ROW * len(data.levels) + 96, left=left, top=26, bottom=46, xaxis=axis(theme, title, span, labels),
                  yaxis=axis(theme, "", (len(data.levels) - 0.5, -0.5), [(float(n), name) for n, name in enumerate(data.levels)]))
    for c in data.cells:
        share = shares.get((c.stages, c.level))
        colour = theme.soft if share is None else on(amount(share))
        words = note(_text(c), c.stages, c.level, theme, refs=("x", "y"), anchor="center", size=11, color=colour)
        page["annotations"].append(words)
        if c.here:
            frame = (c.stages - 0.47, c.level - 0.46, c.stages + 0.47, c.level + 0.46)
            page["shapes"].append(box(*frame, line=theme.thread, width=4))
    return spec([cells], page)


def _shares(data: Ablation) -> dict[tuple[int, int], float]:
    """How near each cell is to the fastest: 1 for that one, 0 for the slowest."""
    known = {(c.stages, c.level): c.predicted_us for c in data.cells if c.predicted_us is not None}
    if not known:
        return {}
    low, high = min(known.values()), max(known.values())
    return {at: 1.0 if high <= low else 0.08 + 0.92 * (high - us) / (high - low) for at, us in known.items()}


def _text(c: Cell) -> str:
    """What stands in a cell."""
    if c.predicted_us is None:
        return "✗"
    about = time_text(c.predicted_us)
    return about if c.measured_us is None else f"<b>{time_text(c.measured_us)}</b><br>({about})"


def _level(data: Ablation, c: Cell) -> str:
    return data.levels[c.level]


def _words(data: Ablation, c: Cell) -> str:
    """A cell in words."""
    head = f"{c.stages} stage{'s' * (c.stages != 1)}, {_level(data, c)}" + (" (this schedule)" if c.here else "")
    if c.predicted_us is None:
        return f"{head}<br>✗ {c.why_not}"
    said = f"predicted: {time_text(c.predicted_us)}, the longest term is {c.bound}"
    return f"{head}<br>{said}" + ("" if c.measured_us is None else f"<br>measured: {time_text(c.measured_us)}")


def _known(data: Ablation) -> str:
    """What the numbers are."""
    return "predicted and measured" if any(c.measured_us is not None for c in data.cells) else "predicted"


def _note(data: Ablation) -> str:
    parts = ["each cell is this schedule with other stages (1: no pipeline), judged and priced as a plan of its own"]
    if len(data.levels) > 1:
        what = "a warp loads the fragments of its next product during this one" if "ahead" in data.levels[1] else (
            "a warpgroup issues its next product while this one goes on")
        parts.append(f"with the second level, {what}")
    parts.append("the lighter, the faster" + (", by the price" if _known(data) != "predicted" else ""))
    if any(c.here for c in data.cells):
        parts.append("framed: the schedule that is shown")
    refused = [c for c in data.cells if c.predicted_us is None]
    if refused:
        parts.append("✗: refused, and the table says why")
    measured = any(c.measured_us is not None for c in data.cells)
    parts.append("bold: measured, in brackets: predicted" if measured else
                 "nothing of it is measured: runs and searches on this GPU fill in times")
    return ". ".join(p[0].upper() + p[1:] for p in parts) + "."


def _table(data: Ablation) -> tuple[list[str], list[list[str | None]]]:
    rows: list[list[str | None]] = [
        [data.loop, str(c.stages), _level(data, c), "✗" if c.predicted_us is None else time_text(c.predicted_us),
         "" if c.measured_us is None else time_text(c.measured_us),
         c.why_not or f"{c.bound}{' (this schedule)' if c.here else ''}"] for c in data.cells]
    return ["stages", "level", "predicted", "measured", "longest term"], rows
