"""Drawing of an operand's elements as a grid: a lane's number in each, or its bank."""

from __future__ import annotations

from ...gpu.units import counted
from ...schedule import Schedule
from .asked import Asked, Look
from .fragments import TOGETHER, Element, Fragments, fragments
from .palette import CYCLE, Theme, on
from .picture import Drawing
from .spec import Spec, axis, layout, points, spec

CELL = 19
"""Pixels of an element."""


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = fragments(schedule, asked, look)
    if isinstance(data, str):
        return data
    shown = asked.one_of("show", "numbers", {"lane": "lanes", "register": "registers"}, "lane") if data.lanes else "bank"
    of = f"{data.operand} operand of {data.instruction}" if data.operand != "sum" else f"sums of {data.instruction}"
    where = f"lanes and registers of {data.buffer}" if data.lanes else f"banks of {data.buffer}"
    title = f"{where[0].upper()}{where[1:]}, {of}"
    return Drawing(title, _note(data, shown), lambda theme: draw(data, shown, theme), *_table(data))


def draw(data: Fragments, shown: str, theme: Theme) -> Spec:
    """A square for each element."""
    rows, columns = ([*dict.fromkeys(values)] for values in zip(*((e.row, e.column) for e in data.elements), strict=True))
    colours = [CYCLE[_hue(data, e) % len(CYCLE)] for e in data.elements]
    longest = max(len(_number(e, shown)) for e in data.elements)
    across, down = [float(e.column) for e in data.elements], [float(e.row) for e in data.elements]
    cells = points(across, down, [data.leaf] * len(data.elements), color=colours, size=CELL - 2, text_size=8,
                   text=[_number(e, shown) for e in data.elements], text_color=[on(c) for c in colours],
                   hover=[_words(data, e) for e in data.elements],
                   meta={"cell": [1, 1], "share": 0.92, "longest": longest})  # fmt: skip
    page = layout(theme, CELL * len(rows) + 84, left=58, top=22, bottom=42,
                  xaxis=axis(theme, "column", (columns[0] - 0.6, columns[0] + max(len(columns), 16) - 0.4), _ticks(columns)),
                  yaxis=axis(theme, "row", (rows[-1] + 0.6, rows[0] - 0.6), _ticks(rows)))
    return spec([cells], page)


def _ticks(values: list[int]) -> list[tuple[float, str]]:
    every = 1 if len(values) <= 8 else 2 if len(values) <= 16 else 4
    return [(float(v), str(v)) for v in values if v % every == 0]


def _hue(data: Fragments, e: Element) -> int:
    """Elements of one lane have one colour, and those of one unit of 16 bytes of shared memory."""
    return e.lane % 4 + 3 * (e.lane // 4) if data.lanes else e.bank // 4


def _number(e: Element, shown: str) -> str:
    return str({"lane": e.lane, "register": e.register}.get(shown, e.bank))


def _words(data: Fragments, e: Element) -> str:
    place = f"row {e.row}, column {e.column}"
    if data.lanes:
        who = f"lane {e.lane}" if data.lanes == 32 else f"thread {e.lane} (warp {e.lane // 32}, lane {e.lane % 32})"
        return f"{place}<br>{who}, element {e.register} of its {data.buffer}"
    return f"{place}<br>byte {e.byte} of {data.buffer}: bank {e.bank}"


def _note(data: Fragments, shown: str) -> str:
    size = f"{data.rows} × {data.columns} elements"
    drawn = len(data.elements) < data.rows * data.columns
    part = f", of which {counted(len(data.elements), 'element')} are drawn" if drawn else ""
    if data.lanes:
        who = "a warp" if data.lanes == 32 else "a warpgroup"
        number = "lanes" if shown == "lane" else "elements of a lane's array"
        return (f"{size} in the registers of {who}{part}: {counted(data.lanes, 'lane')}, {counted(data.registers, 'element')} "
                f"each. Numbers are {number}; elements of one lane have one colour.")
    placed = f"swizzled by {data.swizzle} bytes" if data.swizzle else "without a swizzle"
    passes = f"{data.passes} passes" if data.passes > 1 else "one pass"
    return (f"{size} in shared memory, which the instruction reads by itself{part}; {placed}. Eight rows of 16 bytes below each "
            f"other take {passes} over the banks. Numbers are banks; a colour is 16 bytes of the {TOGETHER * 16} of a pass.")


def _table(data: Fragments) -> tuple[list[str], list[list[str | None]]]:
    if data.lanes:
        return ["row", "column", "lane", "register"], [
            [data.leaf, str(e.row), str(e.column), str(e.lane), str(e.register)] for e in data.elements]
    return ["row", "column", "byte", "bank"], [
        [data.leaf, str(e.row), str(e.column), str(e.byte), str(e.bank)] for e in data.elements]
