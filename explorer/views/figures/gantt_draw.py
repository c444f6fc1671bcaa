"""Drawing of the timeline: a row for each slot of a copied tile, one for waits, one for what computes, one for the results."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log10

from ...gpu.units import counted, time_text
from ...schedule import Schedule
from ...strategies.pipelines.trace import Span
from .asked import Asked, Look
from .gantt import WORDS, Gantt, gantt
from .palette import Theme, on
from .picture import Drawing
from .spec import FITTED, Spec, axis, bars, box, layout, note, spec

ROW = 25
SLOTS = 8
"""Slots of a buffer that have a row."""
BETWEEN, STORED = 0.5, 2.5
"""Width of what is left out, and of the results' way out at most, in steps."""
THIN = {"held": 0.3, "sync": 0.4}
"""Heights of the bars that stand back."""
WIDTH, LETTER = 470, 7
"""Pixels of a narrow figure, whose bars have words that fit, and of a letter."""
KINDS = {"wait": "wait", "turn": "other blocks", "sync": "waits and barriers", "product": "product", "compute": "compute",
         "store": "store"}
SAYS = {"wait": "waits for its copies", "turn": "waits while other resident blocks compute", "store": "stores its results",
        "sync": "passes its waits and barriers", "product": "computes its product", "compute": "computes"}


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = gantt(schedule, asked, look)
    if isinstance(data, str):
        return data
    title = f"One block's steps over {data.loop} on the {data.gpu}, predicted · {time_text(data.period_us)} a step"
    return Drawing(title, _note(data), lambda theme: draw(data, theme), *_table(data))


def draw(data: Gantt, theme: Theme) -> Spec:
    """Rows over one time axis; what is not drawn is a gap in it."""
    place, end = _placing(data)
    rows = _rows(data)
    numbers = {name: float(n) for n, name in enumerate(rows)}
    left = 22 + round(6.6 * max(map(len, rows)))
    room = (WIDTH - left) / LETTER / end
    fills = {"copy": theme.copy, "held": theme.plain, "wait": theme.thread, "turn": theme.plain, "sync": theme.plain,
             "product": theme.block, "compute": theme.block, "store": theme.vector}
    traces = []
    for kind in ("held", "copy", "turn", "wait", "sync", "product", "compute", "store"):
        some = [s for s in data.spans if s.kind == kind and _row(data, s) in numbers and place(s.end) > place(s.start)]
        if not some:
            continue
        starts, lengths = [place(s.start) for s in some], [min(place(s.end), end) - place(s.start) for s in some]
        traces.append(bars(
            starts, lengths, [numbers[_row(data, s)] for s in some], [s.node for s in some], color=fills[kind],
            width=THIN.get(kind, 0.72), hover=[_words(data, s) for s in some],
            constraintext="inside",
            text=[_label(data, s, length * room) for s, length in zip(some, lengths, strict=True)], text_color=on(fills[kind])))
    ticks = [(place(t), f"{t:g}") for t in _ticks(data)]
    height = ROW * len(rows) + 92
    page = layout(theme, height, left=left, top=26, bottom=46, barmode="overlay", **FITTED,
                  xaxis=axis(theme, "µs from the first copy", (0.0, end), ticks, grid=True),
                  yaxis=axis(theme, "", (len(rows) - 0.4, -0.6), [(n, name) for name, n in numbers.items()]))
    if data.gap:
        start, stop = place(data.gap[0]), place(data.gap[1])
        hidden = data.count - len({s.step for s in data.spans if s.kind in ("product", "compute")})
        page["shapes"].append(box(start, 0, stop, 1, fill="#8d97a5", refs=("x", "paper"), layer="below", opacity=0.25))
        page["annotations"].append(note(f"⋯ {counted(hidden, 'step')}", (start + stop) / 2, 1.0, theme, refs=("x", "paper"),
                                        anchor="center", valign="bottom", yshift=4))
    return spec(traces, page)


def _placing(data: Gantt) -> tuple[Callable[[float], float], float]:
    """Where a moment stands on the axis, and where the axis ends."""
    last = data.steps_us + min(data.store_us, STORED * data.period_us)
    if not data.gap:
        return (lambda t: t), last
    start, stop = data.gap
    width = BETWEEN * data.period_us

    def place(t: float) -> float:
        if t <= start:
            return t
        return start + width if t <= stop else t - (stop - start) + width

    return place, place(last)


def _rows(data: Gantt) -> list[str]:
    """The names of the rows, from top to bottom."""
    slots = range(min(data.stages, SLOTS))
    names = [_slot(data, buffer, n) for _, buffer in _buffers(data) for n in slots]
    return [*names, "threads", _engine(data), "results"]


def _buffers(data: Gantt) -> list[tuple[str, str]]:
    """The first copy of each buffer."""
    return list({buffer: (leaf, buffer) for leaf, buffer in reversed(data.copies)}.values())[::-1]


def _slot(data: Gantt, buffer: str, number: int) -> str:
    return f"{buffer} slot {number}" if data.stages > 1 else buffer


def _engine(data: Gantt) -> str:
    return "tensor cores" if data.tensor else "arithmetic"


def _row(data: Gantt, s: Span) -> str:
    """The row of a span."""
    if s.kind in ("copy", "held"):
        return _slot(data, dict(data.copies)[str(s.node)], s.step % data.stages)
    if s.kind in ("wait", "turn", "sync") or (s.kind == "compute" and data.tensor):
        return "threads"
    return "results" if s.kind == "store" else _engine(data)


def _label(data: Gantt, s: Span, room: float) -> str:
    """As much of the span's name as fits."""
    step = f"{data.loop}={s.step}"
    names = {"copy": (f"copy {step}", step), "product": (f"product {step}", step), "compute": (f"compute {step}", step),
             "turn": ("other blocks", "others"), "wait": ("wait",), "store": (f"store: {time_text(s.end - s.start)}", "store")}
    names = names.get(s.kind, ())
    return next((t for t in names if len(t) <= room), "")


def _words(data: Gantt, s: Span) -> str:
    """What a span is, and how long it takes."""
    took, step = time_text(s.end - s.start), f"{data.loop}={s.step}"
    if s.kind == "copy":
        return f"{s.node}: the tile of {step} is on its way, from its issue to its landing<br>{took}"
    if s.kind == "held":
        return f"{s.node}: the tile of {step} is there until its last use<br>{took}"
    return f"the block {SAYS[s.kind]}" + (f" of {step}" if s.step >= 0 else "") + f"<br>{took}"


def _ticks(data: Gantt) -> list[float]:
    """Moments on the axis: round numbers, none of them in the gap."""
    last = data.steps_us + min(data.store_us, STORED * data.period_us)
    drawn = last - (data.gap[1] - data.gap[0] if data.gap else 0.0)
    rough = drawn / 8
    size = 10 ** floor(log10(rough))
    step = next(n * size for n in (1, 2, 5, 10) if n * size >= rough)
    every = [round(n * step, 9) for n in range(floor(last / step) + 1)] if last / step < 2000 else []
    if not data.gap:
        return every
    start, stop = data.gap
    behind = [t for t in every if t > stop + step / 4]
    return [t for t in every if t < start] + behind


def _note(data: Gantt) -> str:
    slots = f"{data.stages} tiles in flight" if data.stages > 1 else "one tile at a time: each step waits for its own copy"
    others = f"{counted(data.resident, 'block')} resident on a multiprocessor" + (
        ", which take turns" if data.resident > 1 else ", so nothing else hides its waits")
    longest = data.terms.bound
    return (f"{slots[0].upper()}{slots[1:]}; {others}. The longest of a step's times is {longest} ({WORDS[longest]}). "
            "Purple: a tile on its way; thin and grey behind it: in its slot until its last use. On the threads' row, orange: a "
            "wait for copies; grey: other blocks' turn; thin: waits and barriers that a step has in any case. The grid takes "
            f"{counted(data.rounds, 'round')} of such blocks, {time_text(data.total_us)} by the price of the plan. "
            "All of it is predicted, not measured.")


def _table(data: Gantt) -> tuple[list[str], list[list[str | None]]]:
    """The spans in order of time."""
    rows: list[list[str | None]] = []
    for s in sorted(data.spans, key=lambda s: (s.start, s.end)):
        what = {"copy": "copy", "held": "tile in its slot"}.get(s.kind) or KINDS[s.kind]
        rows.append([s.node, what, f"{data.loop}={s.step}" if s.step >= 0 else "", f"{s.start:.3f}", f"{s.end:.3f}"])
    return ["what", "step", "from µs", "to µs"], rows
