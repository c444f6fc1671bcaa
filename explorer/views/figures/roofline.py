"""The roofline figure: a kernel's arithmetic intensity, what bounds it, and the measured point.

After S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from ...gpu.roofline import Roofline as Roof
from ...gpu.roofline import roofline as roof_of
from ...gpu.spec import catalogue
from ...gpu.units import time_text
from ...poly.count import arithmetic_type
from ...run.facts import Facts, scaled
from ...schedule import Schedule
from .asked import Asked, Look
from .palette import Theme
from .picture import Drawing
from .spec import Spec, axis, layout, lines, note, points, spec

ABOVE = 6
"""How far the axis goes above the roof: the words on the roof stand there, where no line can cross them."""


@dataclass(frozen=True)
class Point:
    """A point or a line under the roof: its name, operations per byte, operations per second (None: a line), its source."""

    name: str
    intensity: float
    flops_per_s: float | None
    words: str


@dataclass(frozen=True)
class Roofline:
    """Where a schedule stands.

    Attributes
    ----------
    gpu, dtype : str
    roof : explorer.gpu.roofline.Roofline
        With the rates that can be reached where they were measured.
    datasheet : explorer.gpu.roofline.Roofline
        With the rates as the datasheet has them.
    compulsory_bytes, requested_bytes, flops : float
    points : tuple of Point
        The intensity over compulsory traffic, over the traffic that warps request, and the measurement.
    """

    gpu: str
    dtype: str
    roof: Roof
    datasheet: Roof
    compulsory_bytes: float
    requested_bytes: float
    flops: float
    points: tuple[Point, ...]


def roofline(schedule: Schedule, asked: Asked, look: Look) -> Roofline | str:
    """Intensities and the roof of the chosen GPU, or a sentence where there is no arithmetic to place."""
    gpu = asked.gpu(look)
    facts = Facts(schedule.source, schedule.plan, gpu)
    if not facts.flops or not facts.compulsory_bytes:
        return (
            f"The program does no arithmetic that is counted; it moves {scaled(facts.compulsory_bytes, 'B')} at least, "
            f"which takes {time_text(facts.roofline.floor_us)} on the {gpu.name}."
        )
    dtype = arithmetic_type(facts.program)
    found = [
        Point(
            "compulsory",
            facts.intensity,
            None,
            f"each input read once, each output written once: {scaled(facts.compulsory_bytes, 'B')}",
        )
    ]
    if facts.requested_bytes and schedule.judgement.emittable:
        found.append(Point("requested", facts.flops / facts.requested_bytes, None,
                           f"what the warps ask for in whole sectors, before any cache: {scaled(facts.requested_bytes, 'B')}"))
    run = look.run
    if run is not None and run.timing and run.timing.net_us and run.device == gpu.name and run.flops and run.bytes:
        net = run.timing.net_us
        share = f", {run.share:.0%} of the floor" if run.share is not None else ""
        found.append(
            Point("measured", run.flops / run.bytes, run.flops / net * 1e6, f"{time_text(net, 4)} without an empty launch{share}")
        )
    return Roofline(
        gpu.name,
        dtype,
        facts.roofline,
        roof_of(gpu, facts.compulsory_bytes, facts.flops, dtype, measured=False),
        facts.compulsory_bytes,
        facts.requested_bytes,
        facts.flops,
        tuple(found),
    )


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing | str:
    """The figure of a schedule, or a sentence."""
    data = roofline(schedule, asked, look)
    if isinstance(data, str):
        return data
    rows = [
        [
            None,
            p.name,
            f"{p.intensity:.3g}",
            scaled(p.flops_per_s or data.roof.attainable_flops_per_s(p.intensity), "flop/s"),
            p.words,
        ]
        for p in data.points
    ]
    if any(p.name == "requested" for p in data.points):
        rows += _requests(Facts(schedule.source, schedule.plan, catalogue()[data.gpu]))
    words, run = _remark(data), look.run
    if run is not None and run.timing and run.device in catalogue() and run.device != data.gpu:
        words += f" Measured on the {run.device}, which has another roof."
    return Drawing(f"{schedule.source.name} under the roof of the {data.gpu}", words, lambda theme: draw(data, theme),
                   ["what", "flop per byte", "flop/s (at most, or measured)", "from"], rows)


def _requests(facts: Facts) -> list[list[str | None]]:
    """What each access of the text asks of global memory, the largest first."""
    out: list[list[str | None]] = []
    for a in sorted((a for a in facts.accesses if a.space == "global" and a.bytes), key=lambda a: -a.bytes):
        share, how = a.bytes / facts.requested_bytes, "writes" if a.writes else "reads"
        out.append([a.leaf, f"{a.leaf} {how} {a.array}", "", "",
                    f"{scaled(a.bytes, 'B')}, {share:.0%} of the requested: {a.sectors_per_request:.3g} sectors a request, "
                    f"at least {a.minimum:.3g}"])
    return out


def draw(data: Roofline, theme: Theme) -> Spec:
    """Logarithmic axes; the roof, and an upright line up to it for each intensity."""
    low, high = _span(data)
    traces, top = [], max(data.roof.attainable_flops_per_s(high), data.datasheet.attainable_flops_per_s(high))
    bottom = (
        min(
            [data.roof.attainable_flops_per_s(p.intensity) for p in data.points]
            + [p.flops_per_s for p in data.points if p.flops_per_s]
        )
        / 12
    )
    bottom = min(bottom, top / 1e3)
    for roof, dash, colour, words in (
        (data.datasheet, "dot", theme.soft, "datasheet"),
        (data.roof, "solid", theme.ink, "reachable"),
    ):
        corner = [roof.ridge] if isfinite(roof.ridge) and low < roof.ridge < high else []
        x = [low, *corner, high]
        traces.append(
            lines(
                x,
                [roof.attainable_flops_per_s(v) for v in x],
                color=colour,
                width=2.5 if dash == "solid" else 1.3,
                dash=dash,
                opacity=1 if dash == "solid" else 0.7,
                hoverinfo="skip",
                name=words,
            )
        )
    for p, colour, dash in zip(data.points, (theme.block, theme.thread, theme.vector), ("solid", "dash", "solid"), strict=False):
        limit = data.roof.attainable_flops_per_s(p.intensity)
        y = p.flops_per_s or limit
        if p.flops_per_s is None:
            traces.append(lines([p.intensity, p.intensity], [bottom, limit], color=colour, width=1.6, dash=dash))
        symbol = {"compulsory": "circle", "requested": "diamond", "measured": "triangle-up"}[p.name]
        rate = scaled(y, "flop/s") + ("" if p.flops_per_s else " at most")
        hover = f"<b>{p.name}</b>: {p.intensity:.3g} flop/byte<br>{rate}<br>{p.words}"
        traces.append(points([p.intensity], [y], [None], color=colour, size=13, symbol=symbol, hover=[hover]))
    page = layout(
        theme,
        380,
        left=78,
        top=16,
        bottom=52,
        xaxis=axis(
            theme, "arithmetic intensity (flop per byte)", (log10(low), log10(high)), _decades(low, high), grid=True, log=True
        ),
        yaxis=axis(
            theme,
            "performance (flop/s)",
            (log10(bottom), log10(top * ABOVE)),
            [(v, scaled(v, "")) for v, _ in _decades(bottom, top * ABOVE)],
            grid=True,
            log=True,
        ),
    )
    page["annotations"] += _names(data, theme, low, high, bottom)
    return spec(traces, page)


def _names(data: Roofline, theme: Theme, low: float, high: float, bottom: float) -> list[Spec]:
    """The words on the lines."""
    roof = data.roof
    which = "measured" if roof.measured_bandwidth else "datasheet"
    said = [f"slope: {scaled(roof.bandwidth_bytes_per_s, 'B/s')} ({which})"]
    if roof.peak_flops_per_s:
        which = "measured" if roof.measured_peak else "datasheet"
        said.insert(0, f"flat: {data.dtype} peak {scaled(roof.peak_flops_per_s, 'flop/s')} ({which})")
    out = [note("<br>".join(said), 0.02, 1.0, theme, valign="top", size=12)]
    page = theme.paper if theme.name != "static" else "rgba(0,0,0,0)"
    for i, (p, colour) in enumerate(zip(data.points, (theme.block, theme.thread, theme.vector), strict=False)):
        left = log10(p.intensity / low) < 0.62 * log10(high / low)
        y = (p.flops_per_s / 1.25) if p.flops_per_s else bottom * (1.6 + 2.2 * i)
        out.append(
            _at(
                f"<b>{p.name}</b> {p.intensity:.3g}",
                p.intensity * (1.12 if left else 1 / 1.12),
                y,
                theme,
                "left" if left else "right",
                colour,
            )
            | {"bgcolor": page}
        )
    return out


def _at(text: str, x: float, y: float, theme: Theme, anchor: str, color: str = "") -> Spec:
    """Words at a place on logarithmic axes (Plotly wants the logarithm there)."""
    return note(text, log10(x), log10(y), theme, refs=("x", "y"), anchor=anchor, size=12, color=color, valign="bottom")


def _span(data: Roofline) -> tuple[float, float]:
    """Whole decades around all points and the ridge."""
    values = [p.intensity for p in data.points] + [r for r in (data.roof.ridge, data.datasheet.ridge) if isfinite(r)]
    return 10.0 ** floor(log10(min(values)) - 0.3), 10.0 ** ceil(log10(max(values)) + 0.3)


def _decades(low: float, high: float) -> list[tuple[float, str]]:
    return [(10.0 ** e, f"{10.0 ** e:g}") for e in range(ceil(log10(low)), floor(log10(high)) + 1)]


def _remark(data: Roofline) -> str:
    roof = data.roof
    side = "left of the ridge, so memory bounds it" if roof.bound == "memory" else "right of the ridge, so arithmetic bounds it"
    reuse = ""
    if len(data.points) > 1 and data.points[1].name == "requested":
        times = data.requested_bytes / data.compulsory_bytes
        more = f"{times:.3g} times as much, which caches have to absorb" if times > 1.05 else "no more"
        reuse = f" Its warps request {more}."
    return (
        f"{scaled(data.flops, 'flop')} over {scaled(data.compulsory_bytes, 'B')} of compulsory traffic is "
        f"{roof.intensity:.3g} flop per byte: {side}. The floor is {time_text(roof.floor_us, 4)}.{reuse} "
        f"Solid: rates that can be reached; dotted: the datasheet's."
    )
