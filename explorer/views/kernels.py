"""Kernels as static pictures: the CUDA text, the launches, the text after a pass, what compilers say, and the static facts."""

from __future__ import annotations

from html import escape

from ..gpu.units import time_text
from ..kernel.module import Launch
from ..kernel.resources import Resources
from ..kernel.stages import Stage
from ..poly.traffic import AccessFacts
from ..run.facts import Facts, scaled
from ..run.kernel import Compiled, Kernel
from .code import code_html, cuda_sections
from .reprs import picture_of
from .schedules import sizes_text
from .style import cards, mark, page, table

MOST_LAUNCHES, MOST_ACCESSES = 6, 40
"""Rows of the tables shown at most."""
GOOD_ENOUGH = 0.99
"""Share of the bytes moved that are used, from which on an access gets a tick."""


@picture_of("run.kernel.Kernel")
def kernel_html(kernel: Kernel) -> str:
    """CUDA with line numbers, and the launches."""
    columns = ("kernel", "grid", "block", "shared bytes", "arguments")
    launches = table(columns, [_launch(x) for x in kernel.launches[:MOST_LAUNCHES]], frozenset({"shared bytes"}))
    more = len(kernel.launches) - MOST_LAUNCHES
    note = f'<span class="soft">… {more} more launches</span>' if more > 0 else ""
    small = f"CUDA for {kernel.gpu} · {sizes_text(kernel.program.sizes)}"
    return page(kernel.name, small, *cuda_sections(kernel.text, kernel.module.above), launches + note)


@picture_of("kernel.stages.Stage")
def stage_html(stage: Stage) -> str:
    """The kernels after a pass, with the lines that it changed marked."""
    words = f'{escape(stage.what)} <span class="soft">{escape(stage.change)}{" (›)" if stage.changed else ""}</span>'
    return page(f"after {stage.name}", "the kernels, without the device library", words,
                code_html(stage.text, changed=frozenset(stage.changed)))


@picture_of("run.kernel.Compiled")
def compiled_html(compiled: Compiled) -> str:
    """Registers, spills, shared memory and occupancy, for each GPU."""
    columns = ("architecture", "GPU", "kernel", "registers", "spilled bytes", "shared bytes", "occupancy", "limited by")
    rows = [_compiled(row) for row in compiled.rows]
    listed = table(columns, rows, frozenset(columns[3:7])) if rows else ""
    said = {arch: "; ".join(map(str.strip, error.message().splitlines())) for arch, error in compiled.refused.items()}
    refused = "".join(_bad(f"{arch}: {text}") for arch, text in said.items())
    word = "compiled" if compiled else "refused"
    return page(f"{compiled.name}: {word}", "by NVRTC, which needs no GPU", listed, refused, bar="good" if compiled else "bad")


@picture_of("run.facts.Facts")
def facts_html(facts: Facts) -> str:
    """Traffic, intensity, limits, and what every access costs."""
    roof = facts.roofline
    figures = cards(
        ("compulsory traffic", scaled(facts.compulsory_bytes, "B"), "" if all(e.exact for e in facts.elements) else "at most"),
        ("requested by warps", scaled(facts.requested_bytes, "B"), "before caches"),
        ("work", scaled(facts.flops, "flop"), ""),
        ("intensity", f"{facts.intensity:.3g}", f"flop/byte, ridge {roof.ridge:.3g}"),
        ("floor", time_text(roof.floor_us), f"{roof.bound}-bound"))
    columns = ("kernel", "grid", "block", "shared bytes", "register words", "occupancy at most", "limited by")
    launches = table(columns, [_resources(facts, r) for r in facts.resources], frozenset(columns[3:6]))
    breaches = "".join(_bad(f"exceeds {b}: {b.shrink}") for b in facts.breaches)
    return page(f"{facts.program.name}: static facts", f"on {facts.gpu} · {sizes_text(facts.program.sizes)}", figures,
                breaches + launches, _accesses(facts))


def _launch(launch: Launch) -> tuple[str, ...]:
    shared = launch.static_shared_bytes + launch.dynamic_shared_bytes
    return (f"<code>{escape(launch.kernel)}</code>", _extents(launch.grid), _extents(launch.block), f"{shared:,}",
            f"<code>{escape(', '.join(map(str, (*launch.arguments, *launch.scalars))))}</code>")


def _compiled(row: tuple[str, str, str, int, int, int, str, str]) -> tuple[str, ...]:
    arch, kernel, gpu, registers, spilled, shared, share, limiter = row
    spills = f'<span class="bad">✗ {spilled:,}</span>' if spilled else "0"
    name = f"<code>{escape(kernel)}</code>"
    return escape(arch), escape(gpu), name, f"{registers}", spills, f"{shared:,}", share, escape(limiter)


def _resources(facts: Facts, r: Resources) -> tuple[str, ...]:
    fill = facts.occupancy[r.kernel]
    return (f"<code>{escape(r.kernel)}</code>", _extents(r.grid), _extents(r.block), f"{r.shared_bytes:,}", f"{r.register_words}",
            f"{fill.fraction:.0%}", escape(fill.limiter))


def _accesses(facts: Facts) -> str:
    """The table of accesses, and what its columns mean."""
    columns = ("access", "where", "bytes wide", "cost", "at best", "lanes", "requests")
    shown = facts.accesses[:MOST_ACCESSES]
    notes = ["cost: 32-byte sectors, or passes over the banks, for each request of a warp"]
    notes += ["~ counted on a sample"] if any(a.sampled for a in shown) else []
    more = len(facts.accesses) - len(shown)
    notes += [f"{more} more accesses: print the value"] if more else []
    listed = table(columns, [_access(facts, a) for a in shown], frozenset(columns[2:]), wide=("access",))
    return f'{listed}<div class="soft">{" · ".join(notes)}</div>'


def _access(facts: Facts, a: AccessFacts) -> tuple[str, ...]:
    if a.space == "global":
        cost, best = f"{a.sectors_per_request:.3g} sector{'s' * (a.sectors_per_request != 1)}", f"{a.minimum:.3g}"
    else:
        cost, best = f"{a.conflicts:.3g} pass{'es' * (a.conflicts != 1)}", "1"
    where = f'{"write" if a.writes else "read"} <span class="soft">{escape(a.space)}</span>'
    requests = scaled(a.requests) + ("~" if a.sampled else "")
    return (f"<code>{escape(facts.text_of(a))}</code>", where, f"{a.width_bytes}", mark(a.efficiency >= GOOD_ENOUGH, cost), best,
            f"{a.active:.0%}", requests)


def _extents(extents: tuple[int, ...]) -> str:
    return "×".join(map(str, extents))


def _bad(text: str) -> str:
    return f'<div class="bad">✗ {escape(text)}</div>'
