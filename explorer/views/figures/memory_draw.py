"""Drawing of one access: memory as rows of 128 bytes or of 32 banks, and the map of the elements touched."""

from __future__ import annotations

from ...gpu.units import counted
from ...poly.traffic import BANKS, SECTOR_BYTES, WORD_BYTES
from ...run.engine_accesses import COPY_ENGINE
from ...run.facts import scaled
from ...schedule import Schedule
from .asked import Asked, Look
from .memory import TileAccess, WarpAccess, memory
from .palette import CYCLE, Theme, on
from .picture import Drawing
from .spec import Spec, axis, bars, box, heat, layout, note, spec

LINE_BYTES = 4 * SECTOR_BYTES
ROWS = 32
OFTEN = ("#b5d9ee", "#86c0e2", "#57a5d3", "#2f86bd", "#1767a0")
"""Few to many touches: one hue, lightness tells, legible on light and dark."""


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = memory(schedule, asked, look)
    if isinstance(data, str):
        return data
    if isinstance(data, TileAccess):
        return Drawing(
            f"Elements of {data.array} that {data.scope} touches",
            _tile_note(data),
            lambda theme: draw_tile(data, theme),
            *_tile_table(data),
        )
    where = ", ".join(f"{k} = {v}" for k, v in data.at)
    title = f"Warp {data.warp} {'writes' if data.writes else 'reads'} {data.text}" + (f" · {where}" if where else "")
    draw = draw_sectors if data.space == "global" else draw_banks
    return Drawing(title, _warp_note(data), lambda theme: draw(data, theme), *_warp_table(data))


def _lanes(data: WarpAccess, only: tuple[int, ...] | None = None) -> list[tuple[int, int, str, int, str]]:
    """First byte, width, words for the lanes that ask for just these bytes, the first of those lanes, element."""
    found: dict[tuple[int, int], list] = {}
    for x in data.request.lanes:
        if only is None or x.lane in only:
            found.setdefault((x.first, x.width), []).append(x)
    out = []
    for (first, width), same in sorted(found.items()):
        numbers = [x.lane for x in same]
        text = (
            f"{numbers[0]}"
            if len(numbers) == 1
            else f"{numbers[0]}–{numbers[-1]}"
            if numbers[-1] - numbers[0] == len(numbers) - 1
            else f"{numbers[0]} …"
        )
        out.append((first, width, text, numbers[0], _element(data, same[0].index)))
    return out


def _element(data: WarpAccess, index: tuple[int, ...]) -> str:
    return f"{data.array}[{', '.join(map(str, index))}]" if data.shape else data.array


def _around(data: WarpAccess) -> Spec:
    """The buffer or array that the leaf's bars are of: whoever selects it means them, too."""
    return {"around": {data.leaf: [data.array]}}


def draw_sectors(data: WarpAccess, theme: Theme) -> Spec:
    """Global memory: a row for each 128 bytes, the sectors that move pale, the bytes asked for coloured by lane."""
    lines = sorted({s * SECTOR_BYTES // LINE_BYTES for s in data.request.sectors})[:ROWS]
    row = {line: i for i, line in enumerate(lines)}
    moved = [s for s in data.request.sectors if s * SECTOR_BYTES // LINE_BYTES in row]
    asked = _lanes(data)
    used = {
        s: len(
            {
                b
                for first, width, *_ in asked
                for b in range(max(first, s * SECTOR_BYTES), min(first + width, (s + 1) * SECTOR_BYTES))
            }
        )
        for s in moved
    }
    traces = [
        bars(
            [s * SECTOR_BYTES % LINE_BYTES + 0.4 for s in moved],
            [SECTOR_BYTES - 0.8] * len(moved),
            [row[s * SECTOR_BYTES // LINE_BYTES] for s in moved],
            [data.leaf] * len(moved),
            color=theme.plain,
            width=0.86,
            opacity=0.55,
            hover=[f"sector {s}: {used[s]} of {SECTOR_BYTES} bytes are asked for" for s in moved],
        )
    ]
    pieces = [
        (max(first, line * LINE_BYTES), min(first + width, (line + 1) * LINE_BYTES), text, lane, element)
        for first, width, text, lane, element in asked
        for line in range(first // LINE_BYTES, (first + width - 1) // LINE_BYTES + 1)
        if line in row
    ]
    fills = [CYCLE[lane % len(CYCLE)] for *_, lane, _ in pieces]
    fits = [len(text) * 6.4 < (b - a) * 4.6 for a, b, text, _, _ in pieces]
    traces.append(
        bars(
            [a % LINE_BYTES + 0.2 for a, *_ in pieces],
            [b - a - 0.4 for a, b, *_ in pieces],
            [row[a // LINE_BYTES] for a, *_ in pieces],
            [data.leaf] * len(pieces),
            color=fills,
            width=0.56,
            text=[t if fit else "" for (_, _, t, _, _), fit in zip(pieces, fits, strict=True)],
            text_color=[on(f) for f in fills],
            hover=[f"lane {t}: {element}<br>bytes {a} to {b - 1}, sector {a // SECTOR_BYTES}" for a, b, t, _, element in pieces],
        )
    )
    names = []
    for line in lines:
        inside = [element for first, _, _, _, element in asked if first // LINE_BYTES == line]
        names.append((float(row[line]), inside[0] if inside else ""))
    page = layout(
        theme,
        72 + 24 * max(len(lines), 2),
        left=20 + round(6.4 * max(len(n) for _, n in names)),
        top=10,
        bottom=48,
        barmode="overlay",
        xaxis=axis(
            theme,
            "byte of a 128-byte line (32 bytes are one sector)",
            (0, LINE_BYTES),
            [(float(b), str(b)) for b in range(0, 129, 32)],
            grid=True,
        ),
        yaxis=axis(theme, "", (len(lines) - 0.4, -0.6), names, mono=True),
    )
    return spec([{**t, "meta": _around(data)} for t in traces], page)


def draw_banks(data: WarpAccess, theme: Theme) -> Spec:
    """Shared memory: a column for each bank, a row for each 128 bytes; a bank with two words takes two passes."""
    group = data.request.served[data.group]
    asked = _lanes(data, group)
    lines = sorted({(first + d) // WORD_BYTES // BANKS for first, width, *_ in asked for d in range(0, width, WORD_BYTES)})[:ROWS]
    row = {line: i for i, line in enumerate(lines)}
    pieces = []
    for first, width, text, lane, element in asked:
        word, last = first // WORD_BYTES, (first + width - 1) // WORD_BYTES
        if word // BANKS in row:
            pieces.append((word % BANKS, min(last - word + 1, BANKS - word % BANKS), row[word // BANKS], text, lane, element))
    fills = [CYCLE[lane % len(CYCLE)] for *_, lane, _ in pieces]
    traces = [
        bars(
            [bank + 0.06 for bank, *_ in pieces],
            [n - 0.12 for _, n, *_ in pieces],
            [r for _, _, r, *_ in pieces],
            [data.leaf] * len(pieces),
            color=fills,
            width=0.8,
            text=[t if len(t) * 5.2 < n * 18 else "" for _, n, _, t, _, _ in pieces],
            text_color=[on(f) for f in fills],
            hover=[
                f"lane {t}: {element}<br>bank {bank}" + (f" to {bank + n - 1}" if n > 1 else "")
                for bank, n, _, t, _, element in pieces
            ],
            text_size=9,
        )
    ]
    names = [(float(row[line]), next((e for bank, _, r, _, _, e in pieces if r == row[line]), "")) for line in lines]
    page = layout(
        theme,
        92 + 24 * max(len(lines), 2),
        left=20 + round(6.4 * max((len(n) for _, n in names), default=0)),
        top=28,
        bottom=48,
        barmode="overlay",
        xaxis=axis(theme, "bank (4 bytes wide)", (0, BANKS), [(b + 0.5, str(b)) for b in range(0, BANKS, 2)]),
        yaxis=axis(theme, "", (len(lines) - 0.4, -0.6), names, mono=True),
    )
    words = data.request.words(data.group)
    most = data.request.passes(data.group)
    if most > 1:
        worst = next(bank for bank, asked_for in words.items() if len(asked_for) == most)
        page["shapes"].append(box(worst - 0.02, -0.55, worst + 1.02, len(lines) - 0.45, line=theme.bad, width=2))
        side = "left" if worst < BANKS / 2 else "right"
        page["annotations"].append(
            note(
                f"✗ bank {worst}: {most} words, {most} passes",
                worst if side == "left" else worst + 1,
                1.0,
                theme,
                refs=("x", "paper"),
                anchor=side,
                valign="bottom",
                size=12,
                color=theme.bad,
                yshift=4,
            )
        )
    return spec([{**t, "meta": _around(data)} for t in traces], page)


def draw_tile(data: TileAccess, theme: Theme) -> Spec:
    """A map of the array around what is touched; the darker (the label says how often) the more often."""
    (top, left), (high, wide) = data.origin, data.cell
    x = [left + (i + 0.5) * wide - 0.5 for i in range(len(data.counts[0]))]
    y = [top + (i + 0.5) * high - 0.5 for i in range(len(data.counts))]
    most = max(v for row in data.counts for v in row if v is not None)

    def name(r: int, c: int) -> str:
        rows, columns = ((f"{a}" if n == 1 else f"{a}…{a + n - 1}") for a, n in ((top + r * high, high), (left + c * wide, wide)))
        named = (
            {data.axes[-1]: columns} | ({data.axes[0]: rows} if len(data.axes) > 1 else {}) | {d: str(v) for d, v in data.others}
        )
        return f"{data.array}[{', '.join(named[d] for d in range(len(data.shape)))}]"

    hover = [["" if v is None else f"{name(r, c)}: {v:g}×" + (" each" if high * wide > 1 else "")
              for c, v in enumerate(row)] for r, row in enumerate(data.counts)]
    cell = min(max(620 / len(x), 8), 22)
    page = layout(
        theme,
        round(len(y) * cell) + 84,
        left=58,
        top=12,
        bottom=48,
        xaxis=axis(
            theme, f"index {data.axes[-1]} of {data.array}", (x[0] - wide / 2, x[-1] + wide / 2), _marks(left, wide, len(x))
        ),
        yaxis=axis(
            theme,
            f"index {data.axes[0]}" if len(data.axes) > 1 else "",
            (y[-1] + high / 2, y[0] - high / 2),
            _marks(top, high, len(y)) if len(data.axes) > 1 else [],
        ),
    )
    x1, y1 = x[-1] + wide / 2, y[-1] + high / 2
    page["shapes"].append(box(x[0] - wide / 2, y[0] - high / 2, x1, y1, line=theme.grid))
    return spec(
        [
            heat(
                x,
                y,
                data.counts,
                data.leaf,
                scale=[[i / (len(OFTEN) - 1), c] for i, c in enumerate(OFTEN)],
                top=max(most, 1),
                hover=hover,
            )
        ],
        page,
    )


def _marks(first: int, cell: int, count: int) -> list[tuple[float, str]]:
    stride = next(s for s in (1, 2, 4, 8, 16) if count / s <= 12 or s == 16)
    return [(first + i * cell + (cell - 1) / 2, f"{first + i * cell}") for i in range(0, count, stride)]


def _warp_note(data: WarpAccess) -> str:
    facts, request = data.facts, data.request
    lanes = f"{len(request.lanes)} of 32 lanes take part" if len(request.lanes) < 32 else "all 32 lanes take part"
    mean = f"Mean over all {scaled(facts.requests)} requests{' (from a sample)' * facts.sampled}"
    if data.space == "global":
        count, best, each = len(request.sectors), request.fewest, f"{facts.sectors_per_request:.3g}"
        verdict = (
            "no request could move fewer"
            if count <= best
            else f"{best} would hold the bytes: {best / count:.0%} of what moves is used"
        )
        hidden = (
            f" The first {ROWS} lines are shown." if len({s * SECTOR_BYTES // LINE_BYTES for s in request.sectors}) > ROWS else ""
        )
        return (
            f"This request moves {counted(count, 'sector')} of 32 bytes; {verdict}; {lanes}. {mean}: "
            f"{each} sector{'s' * (each != '1')}, {facts.minimum:.3g} at best. "
            f"Numbers are lanes; pale: bytes that move unasked.{hidden}"
        )
    passes = request.passes(data.group)
    group = (
        f"lanes {request.served[data.group][0]} to {request.served[data.group][-1]} are served together, in"
        if len(request.served) > 1
        else "served in"
    )
    verdict = (
        "one pass: no two different words in one bank" if passes <= 1 else f"{passes} passes: a bank gives one word at a time"
    )
    return (
        f"Shared memory, {group} {verdict}; {lanes}. {mean}: {facts.conflicts:.3g} "
        f"pass{'es' * (facts.conflicts != 1)}. Numbers are lanes."
    )


def _warp_table(data: WarpAccess) -> tuple[list[str], list[list[str]]]:
    place = "sector" if data.space == "global" else "bank"
    rows = [
        [
            data.leaf,
            str(x.lane),
            str(x.thread),
            _element(data, x.index),
            f"{x.first} to {x.first + x.width - 1}",
            str(x.first // SECTOR_BYTES if data.space == "global" else x.first // WORD_BYTES % BANKS),
        ]
        for x in data.request.lanes
    ]
    return ["lane", "thread", "first element", "bytes", place], rows


def _tile_note(data: TileAccess) -> str:
    each = data.touches / data.elements
    words = [
        f"{counted(data.elements, 'different element')} of {data.array} ({scaled(data.bytes, 'B')}) of "
        f"{' × '.join(map(str, data.shape))}, "
        + ("each touched once" if each == 1 else f"touched {data.touches:,} times: {each:,.4g} times each")
    ]
    if data.engine == COPY_ENGINE:
        words.append("one thread asks for a box, which the engine for bulk copies moves: there is no request of a warp")
    elif data.engine:
        words.append("tensor cores read the tile of an instruction from shared memory, as its swizzle has it: there is no "
                     "request of a warp")
    if data.cell != (1, 1):
        words.append(f"a cell is {data.cell[0]} × {data.cell[1]} elements")
    if data.others:
        words.append("shown at " + ", ".join(f"index {d} = {v}" for d, v in data.others))
    if data.cut:
        words.append(
            "followed only for the first "
            + ", ".join(f"{n:,} iterations of {loop}" for loop, n in data.cut)
            + ", so there are more"
        )
    return ". ".join(w[0].upper() + w[1:] for w in words) + "."


def _tile_table(data: TileAccess) -> tuple[list[str], list[list[str]]]:
    rows = [
        ["touched by", data.scope],
        ["access", data.text],
        ["array", " × ".join(map(str, data.shape))],
        ["different elements", f"{data.elements:,}"],
        ["bytes", f"{data.bytes:,}"],
        ["touches", f"{data.touches:,}"],
        ["touches of each", f"{data.touches / data.elements:.3g}"],
    ]
    return ["", ""], [[data.leaf, *row] for row in rows]
