"""Drawing of a pipeline: a row for each iteration with its copy, its flight and its use, and a row for each slot."""

from __future__ import annotations

from ...schedule import Schedule
from .asked import Asked, Look
from .palette import Theme, on
from .picture import Drawing
from .pipeline import Pipeline, pipeline
from .spec import FITTED, Spec, axis, bars, box, layout, lines, note, points, rule, spec
from .timeline import Bar, Life, Mark

ROW = 25


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = pipeline(schedule, asked, look)
    if isinstance(data, str):
        return data
    names = ", ".join(name for name, _ in data.buffers)
    stages = f"{data.ahead + 1} stages" if data.ahead else "copied by a warp of its own" if _has_roles(data) else "copy, then use"
    return Drawing(
        f"Copies and uses of {names} over {data.loop} · {stages}", _note(data), lambda theme: draw(data, theme), *_table(data)
    )


def draw(data: Pipeline, theme: Theme) -> Spec:
    """Two panels over one time axis: iterations above, slots below."""
    shown = [0.0, *(b.end for b in data.bars), *(b.landed or 0 for b in data.bars)]
    end = max(shown) + 0.4
    rows = {z: i for i, z in enumerate(sorted({b.iteration for b in data.bars}))}
    held = _slot_rows(data)
    sync = 1 if data.marks else 0
    upper, lower = len(rows) + sync, len(held)
    height = ROW * (upper + lower) + 118
    cut = (lower + 0.2) * ROW / (ROW * (upper + lower) + 34)
    traces = [
        *_flights(data, theme, rows),
        *_work(data, theme, rows, end),
        *_syncs(data, theme, len(rows)),
        *_slots(held, data, theme, end),
    ]
    labels = [(float(i), f"{data.loop}={z}") for z, i in rows.items()] + ([(float(len(rows)), "sync")] if sync else [])
    names = [(float(i), name) for i, name in enumerate(held)]
    wide = max(len(t) for _, t in (*labels, *names))
    page = layout(theme, height, left=22 + round(6.6 * wide), top=30, bottom=42, barmode="overlay", **FITTED,
                  xaxis=axis(theme, "order in one block, not to scale", (-0.3, end), [], anchor="y2"),
                  yaxis=axis(theme, "", (upper - 0.4, -0.6), labels, domain=(cut + 0.05, 1.0)),
                  yaxis2=axis(theme, "", (lower - 0.4, -0.6), names, domain=(0.0, cut - 0.02), anchor="x"))
    for name, start, stop in data.phases:
        page["annotations"].append(
            note(
                f"<b>{name}</b>",
                (start + min(stop, end)) / 2,
                1.0,
                theme,
                refs=("x", "paper"),
                anchor="center",
                valign="bottom",
                yshift=4,
            )
        )
        if start > 0:
            page["shapes"].append(rule(start - 0.12, 0, start - 0.12, 1, theme.soft, dash="dash", refs=("x", "paper")))
    for start, stop in data.gaps:
        page["shapes"].append(box(start, 0, stop, 1, fill="#8d97a5", refs=("x", "paper"), layer="below", opacity=0.25))
        page["annotations"].append(note("⋯", (start + stop) / 2, 0.5, theme, refs=("x", "paper"), anchor="center", size=16))
    return spec(traces, page)


def _work(data: Pipeline, theme: Theme, rows: dict[int, int], end: float) -> list[Spec]:
    """Copies and computations; those of a finding outlined in red with a sign."""
    out = []
    for kind, colour in (("copy", theme.copy), ("compute", theme.block)):
        some = [b for b in data.bars if b.kind == kind]
        if some:
            out.append(
                bars(
                    [b.start for b in some],
                    [b.end - b.start for b in some],
                    [rows[b.iteration] for b in some],
                    [b.node for b in some],
                    color=colour,
                    width=0.72,
                    constraintext="inside",
                    text=[_label(data, b, end) for b in some],
                    text_color=on(colour),
                    outline=([theme.bad if b.wrong else colour for b in some], [3 if b.wrong else 0 for b in some]),
                    hover=[_words(data, b) for b in some],
                )
            )
    wrong = sorted((b for b in data.bars if b.wrong), key=lambda b: b.start)
    if wrong:
        out.append(
            points(
                [(b.start + b.end) / 2 for b in wrong],
                [rows[b.iteration] - 0.42 for b in wrong],
                None,
                color="rgba(0,0,0,0)",
                size=1,
                text=["✗"] * len(wrong),
                text_color=theme.bad,
                text_size=14,
            )
        )
    return out


def _label(data: Pipeline, bar: Bar, end: float) -> str:
    """As much of the bar's name as fits."""
    room = (bar.end - bar.start) / (end + 0.3) * 590 / 6.2
    names = (bar.text, bar.text.removeprefix("copy ")) if bar.kind == "copy" else ("use",)
    return next((t for t in names if len(t) <= room), "")


def _flights(data: Pipeline, theme: Theme, rows: dict[int, int]) -> list[Spec]:
    """From the issue of an asynchronous copy to the wait after which it has landed, and from there to its use."""
    out = []
    end = max(b.end for b in data.bars) + 0.3
    for landed, colour in ((True, theme.copy), (False, theme.bad)):
        some = [b for b in data.bars if b.kind == "copy" and (b.landed is not None) is landed and (b.landed or end) > b.end]
        if some:
            x = [v for b in some for v in (b.end, b.landed if b.landed is not None else end, None)]
            y = [v for b in some for v in (rows[b.iteration], rows[b.iteration], None)]
            out.append(lines(x, y, color=colour, width=2, dash="dot"))
    return out


def _syncs(data: Pipeline, theme: Theme, row: int) -> list[Spec]:
    """Commits, waits and barriers on a row of their own."""
    signs = {"commit": ("triangle-up", theme.copy), "wait": ("triangle-down", theme.vector),
             "wait_products": ("triangle-left", theme.vector), "release": ("triangle-right", theme.vector),
             "acquire": ("triangle-down-open", theme.copy), "barrier": ("diamond", theme.soft),
             "turn": ("square-open", theme.soft), "pass": ("square", theme.soft)}
    out = []
    for kind, (symbol, colour) in signs.items():
        some = [m for m in data.marks if m.kind == kind]
        if some:
            fill = colour if colour[0] == "#" else "#8d97a5"
            out.append(
                points(
                    [m.at + 0.1 for m in some],
                    [float(row)] * len(some),
                    [m.node for m in some],
                    color=fill,
                    size=10,
                    symbol=symbol,
                    hover=[f"{data.loop}={m.runs}: {m.text}" for m in some],
                )
            )
    return out


def _slot_rows(data: Pipeline) -> dict[str, list[Life]]:
    """Lives by row; buffers that live alike share their rows."""
    alike: dict[tuple, list[str]] = {}
    for name, _ in data.slots:
        pattern = tuple((x.slot, x.iteration) for x in data.lives if x.buffer == name)
        alike.setdefault(pattern, []).append(name)
    out: dict[str, list[Life]] = {}
    for names in alike.values():
        count = dict(data.slots)[names[0]]
        for slot in range(min(count, 8)):
            label = ", ".join(names) + (f" slot {slot}" if count > 1 else "")
            out[label] = [x for x in data.lives if x.buffer == names[0] and x.slot == slot]
    return out


def _slots(held: dict[str, list[Life]], data: Pipeline, theme: Theme, end: float) -> list[Spec]:
    """Which iteration's tile is in which slot, when."""
    some = [(i, x) for i, lives in enumerate(held.values()) for x in lives]
    fill = theme.vector
    fits = [len(f"{data.loop}={x.iteration}") * 6.4 < (x.end - x.start) / (end + 0.3) * 590 for _, x in some]
    return [
        bars(
            [x.start for _, x in some],
            [x.end - x.start for _, x in some],
            [float(i) for i, _ in some],
            [x.buffer for _, x in some],
            color=fill,
            width=0.6,
            axes=("x", "y2"),
            constraintext="inside",
            text=[f"{data.loop}={x.iteration}" if fit else "" for (_, x), fit in zip(some, fits, strict=True)],
            text_color=on(fill),
            hover=[
                f"{x.buffer} slot {x.slot} holds the tile of {data.loop}={x.iteration}"
                + ("" if x.read else "<br>read in an iteration that is not drawn")
                for _, x in some
            ],
        )
    ]


def _words(data: Pipeline, bar: Bar) -> str:
    if bar.kind == "compute":
        return f"iteration {data.loop}={bar.iteration} computes ({', '.join(bar.statements)})"
    lands = (
        ""
        if bar.landed == bar.end
        else "<br>asynchronous: in flight until the wait"
        if bar.landed is not None
        else "<br>no wait here covers it"
    )
    return f"{bar.statements[0]}: the tile of {data.loop}={bar.iteration} is copied" + (
        f" in iteration {data.loop}={bar.runs}" if bar.phase != "prologue" and bar.runs != bar.iteration else "") + lands


def _has_roles(data: Pipeline) -> bool:
    """Whether other threads copy than those that compute."""
    return any(m.kind == "acquire" for m in data.marks)


def _note(data: Pipeline) -> str:
    parts = ["; ".join(text for _, text in data.buffers), "a row is one iteration: its copies, named by buffer, then its use"]
    slots = max(n for _, n in data.slots)
    if data.ahead:
        parts.append(
            f"copies run {data.ahead} iteration{'s' * (data.ahead != 1)} ahead"
            + (", asynchronously (dotted: in flight)" if data.asynchronous else "")
            + f"; {slots} slots, at most {data.alive} tile{'s' * (data.alive != 1)} of a buffer alive at once"
        )
    elif _has_roles(data):
        parts.append(f"a warp of its own copies, as far ahead of the others as slots are released: up to {slots} tiles. What is "
                     "drawn is the order of the text; the timeline shows what runs at the same time")
    else:
        parts.append("each iteration waits for its own copy; pipeline it to let the next copy run during the computation")
    if data.marks:
        signs = {"commit": "▲ commit", "wait": "▼ wait", "wait_products": "◀ wait for products",
                 "release": "▶ release", "acquire": "▽ acquire", "barrier": "◆ barrier", "turn": "□ wait for one's turn",
                 "pass": "■ pass the turn"}
        parts.append(", ".join(signs[k] for k in dict.fromkeys(m.kind for m in data.marks)))
    if data.shown < data.extent:
        parts.append(f"{data.shown} of {data.extent} iterations are drawn")
    if any(b.wrong for b in data.bars):
        parts.append(
            "✗ red: what the refusal names, and what overwrites a tile before its last read or reads it before it has landed"
        )
    return ". ".join(p[0].upper() + p[1:] for p in parts) + "."


def _table(data: Pipeline) -> tuple[list[str], list[list[str | None]]]:
    events: list[Bar | Mark] = sorted([*data.bars, *data.marks], key=lambda e: e.start if isinstance(e, Bar) else e.at)
    rows: list[list[str | None]] = []
    for e in events:
        if isinstance(e, Bar):
            rows.append(
                [
                    e.node,
                    "prologue" if e.phase == "prologue" else f"{data.loop}={e.runs}",
                    e.text if e.kind == "copy" else "use",
                    f"{data.loop}={e.iteration}",
                ]
            )
        else:
            rows.append([e.node, f"{data.loop}={e.runs}", e.kind, e.text.partition(":")[2].strip() or e.text])
    return ["runs in", "what", "tile or meaning"], rows
