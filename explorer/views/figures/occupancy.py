"""How many blocks fit on one multiprocessor at once: what each resource alone would allow, and what one more of it would cost.

The arithmetic is :func:`explorer.gpu.occupancy.occupancy`; the curves are the same function at other values of one resource.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...gpu.occupancy import Occupancy as Fill
from ...gpu.occupancy import occupancy as fill_of
from ...gpu.occupancy import waves
from ...gpu.spec import Gpu
from ...gpu.units import counted
from ...kernel.resources import resources
from ...run.facts import scaled
from ...schedule import Schedule
from .asked import Asked, Look
from .palette import Theme, on
from .picture import Drawing
from .spec import Spec, axis, bars, layout, lines, note, points, spec

RESOURCES = {
    "warps": "warps",
    "blocks": "block slots",
    "registers": "registers",
    "shared": "shared memory",
    "barriers": "named barriers",
}


STRIPS = ((0.47, 0.6), (0.235, 0.365), (0.0, 0.13))
"""Where the three curves stand, from bottom to top in shares of the height: each has its words above and its numbers below."""


@dataclass(frozen=True)
class Curve:
    """Occupancy (0 to 1) as one resource varies, and where the kernel is; `now` None where it is not known."""

    resource: str
    title: str
    values: tuple[int, ...]
    fractions: tuple[float, ...]
    now: int | None


@dataclass(frozen=True)
class Occupancy:
    """The resident blocks of one kernel.

    Attributes
    ----------
    kernel, gpu : str
    threads, registers, shared_bytes : int
        Per block, per thread (0: not known), per block.
    block, grid : tuple of int
    fill : explorer.gpu.occupancy.Occupancy
    max_warps : int
        Of one multiprocessor.
    waves : float
        How often the grid fills the GPU.
    curves : tuple of Curve
    register_words : int
        Register arrays of the text: a lower bound of what a compiler will use.
    """

    kernel: str
    gpu: str
    threads: int
    registers: int
    shared_bytes: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    fill: Fill
    max_warps: int
    waves: float
    curves: tuple[Curve, ...]
    register_words: int


def occupancy(schedule: Schedule, asked: Asked, look: Look) -> Occupancy:
    """The limits of one kernel of the schedule on one GPU."""
    plan, gpu = schedule.plan, asked.gpu(look)
    owner = plan.kernel_of(look.node) if look.node else None
    names = [k.id for k in plan.kernels]
    chosen = asked.one_of("kernel", "kernel", names, owner.id if owner else names[0])
    r = resources(plan, next(k for k in plan.kernels if k.id == chosen))
    registers = asked.number("registers", "registers per thread (0: unknown)", 0, gpu.max_registers_per_thread, 0)
    fill = fill_of(gpu, r.threads_per_block, registers, r.shared_bytes)
    return Occupancy(
        chosen,
        gpu.name,
        r.threads_per_block,
        registers,
        r.shared_bytes,
        r.block,
        r.grid,
        fill,
        gpu.max_warps_per_sm,
        waves(gpu, r.grid, fill.blocks_per_sm),
        _curves(gpu, r.threads_per_block, registers, r.shared_bytes),
        r.register_words,
    )


def _curves(gpu: Gpu, threads: int, registers: int, shared: int) -> tuple[Curve, ...]:
    """The three resources that a schedule decides, one varied at a time."""
    counts = tuple(range(32, gpu.max_threads_per_block + 1, 32))
    words = tuple(range(16, gpu.max_registers_per_thread + 1))
    step = max(gpu.shared_bytes_per_block_optin // 96 // 1024, 1) * 1024
    sizes = tuple(range(0, gpu.shared_bytes_per_block_optin + 1, step))
    return (
        Curve("warps", "threads per block", counts, tuple(fill_of(gpu, n, registers, shared).fraction for n in counts), threads),
        Curve(
            "registers",
            "registers per thread",
            words,
            tuple(fill_of(gpu, threads, n, shared).fraction for n in words),
            registers or None,
        ),
        Curve(
            "shared",
            "shared memory per block",
            sizes,
            tuple(fill_of(gpu, threads, registers, n).fraction for n in sizes),
            shared,
        ),
    )


def make(schedule: Schedule, asked: Asked, look: Look) -> Drawing:
    """The figure of a schedule."""
    data = occupancy(schedule, asked, look)
    rows: list[list[str | None]] = [
        [data.kernel, RESOURCES[name], f"{n}", "limits" if name == data.fill.limiter else ""]
        for name, n in data.fill.limits.items()
    ]
    return Drawing(
        f"Occupancy of {data.kernel} on the {data.gpu}: {data.fill.fraction:.0%}",
        _remark(data),
        lambda theme: draw(data, theme),
        ["resource", "blocks it allows", ""],
        rows,
    )


def draw(data: Occupancy, theme: Theme) -> Spec:
    """Blocks that each resource allows as bars; below, occupancy over each of three resources."""
    names = list(data.fill.limits)
    most = max(data.fill.limits["blocks"], 1)
    shown = {n: min(v, most) for n, v in data.fill.limits.items()}
    fills = [theme.thread if n == data.fill.limiter else theme.plain for n in names]
    text = [
        counted(data.fill.limits[n], "block") + (" ◀ limits" if n == data.fill.limiter else "")
        + (", beyond the axis" if data.fill.limits[n] > most else "")
        for n in names
    ]
    inside = [shown[n] > most * 0.3 for n in names]
    rows = [float(i) for i in range(len(names))]
    traces = [
        bars(
            [0.0] * len(names),
            [float(shown[n]) for n in names],
            rows,
            [data.kernel] * len(names),
            color=fills,
            width=0.66,
            hover=[f"{RESOURCES[n]} would allow {data.fill.limits[n]} blocks on one multiprocessor" for n in names],
        )
    ]
    page = layout(
        theme,
        620,
        left=118,
        top=12,
        bottom=34,
        xaxis=axis(theme, "blocks on one multiprocessor", (0, most * 1.02), _ticks(most), domain=(0.0, 1.0), anchor="y"),
        yaxis=axis(
            theme, "", (len(names) - 0.4, -0.6), [(r, RESOURCES[n]) for r, n in zip(rows, names, strict=True)], domain=(0.76, 1.0)
        ),
    )
    for r, words, dark, fill, n in zip(rows, text, inside, fills, names, strict=True):
        colour = (on(fill) if fill[0] == "#" else "") if dark else ""
        x = shown[n] - most * 0.008 if dark else shown[n] + most * 0.008
        page["annotations"].append(
            note(words, x, r, theme, refs=("x", "y"), anchor="right" if dark else "left", color=colour or theme.ink)
        )
    for i, curve in enumerate(data.curves):
        a = f"{i + 2}"
        low, high = STRIPS[i]
        page[f"xaxis{a}"] = axis(
            theme, "", (curve.values[0], curve.values[-1]), _curve_ticks(curve), domain=(0.0, 1.0), anchor=f"y{a}"
        )
        page[f"yaxis{a}"] = axis(
            theme,
            "",
            (0, 1.06),
            [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")],
            domain=(low, high),
            anchor=f"x{a}",
            grid=True,
        )
        unknown = "" if curve.now is not None else " (not known)"
        title = f"occupancy by {curve.title}{unknown}"
        page["annotations"].append(note(title, 0.0, high + 0.008, theme, valign="bottom", size=12))
        limiting = curve.resource == data.fill.limiter
        words = [f"{_amount(curve, v)}: {f:.0%}" for v, f in zip(curve.values, curve.fractions, strict=True)]
        traces.append(
            lines(
                curve.values,
                curve.fractions,
                color=theme.thread if limiting else theme.block,
                width=2,
                axes=(f"x{a}", f"y{a}"),
                line_shape="hv",
            )
            | {"hovertext": words, "hovertemplate": "%{hovertext}<extra></extra>", "hoverinfo": "text"}
        )
        if curve.now is not None:
            traces.append(
                points(
                    [curve.now],
                    [data.fill.fraction],
                    [data.kernel],
                    color=theme.thread if limiting else theme.block,
                    size=12,
                    symbol="circle",
                    axes=(f"x{a}", f"y{a}"),
                    hover=[f"<b>here</b>: {_amount(curve, curve.now)}, {data.fill.fraction:.0%}"],
                    outline=(theme.paper, 1.5),
                )
            )
    return spec(traces, page)


def _amount(curve: Curve, value: int) -> str:
    """``256 threads per block``, ``12,288 B of shared memory per block``."""
    return f"{value:,} {'B of ' * (curve.resource == 'shared')}{curve.title}"


def _ticks(most: int) -> list[tuple[float, str]]:
    step = next(s for s in (1, 2, 4, 8, 16) if most / s <= 12)
    return [(float(v), str(v)) for v in range(0, most + 1, step)]


def _curve_ticks(curve: Curve) -> list[tuple[float, str]]:
    last = curve.values[-1]
    if curve.resource == "shared":
        step = 65536 if last > 131072 else 32768
        return [(float(v), f"{v // 1024} KiB" if v else "") for v in range(0, last + 1, step)]
    step = 256 if last > 300 else 64
    return [(float(v), str(v)) for v in range(step, last + 2, step)]


def _remark(data: Occupancy) -> str:
    fill, size = data.fill, " × ".join(map(str, data.block))
    if not fill.blocks_per_sm:
        asked = f"{size} threads, {data.shared_bytes:,} bytes of shared memory"
        return f"No block fits: {RESOURCES[fill.limiter]} is exceeded ({asked})."
    known = (f"{data.registers} registers per thread" if data.registers else
             f"registers not counted (the text's own arrays take {data.register_words}; a compiler says how many it needs)")
    grid = data.grid[0] * data.grid[1] * data.grid[2]
    return (
        f"Blocks of {size} threads with {scaled(data.shared_bytes, 'B')} of shared memory, {known}: "
        f"{counted(fill.blocks_per_sm, 'block')}, {fill.active_warps} of {data.max_warps} warps; "
        f"{RESOURCES[fill.limiter]} limit{'s' * (fill.limiter == 'shared')}. "
        f"The grid of {counted(grid, 'block')} fills the GPU {data.waves:.3g} times."
    )
