"""Kernels as static pictures: the CUDA text, the launches, what compilers say, and the static facts."""

from __future__ import annotations

from html import escape

from ..poly.traffic import AccessFacts
from ..run.facts import Facts, scaled
from ..run.kernel import Compiled, Kernel
from .code import cuda_sections
from .schedules import sizes_text
from .style import cards, mark, page, table

MOST_LAUNCHES = 6


def kernel_html(kernel: Kernel) -> str:
    """CUDA with line numbers, and the launches."""
    rows = [(f"<code>{escape(x.kernel)}</code>", "×".join(map(str, x.grid)), "×".join(map(str, x.block)),
             f"{x.static_shared_bytes + x.dynamic_shared_bytes:,}", f"<code>{escape(', '.join(map(str, (*x.arguments, *x.scalars))))}</code>")
            for x in kernel.launches[:MOST_LAUNCHES]]
    more = len(kernel.launches) - MOST_LAUNCHES
    note = f'<span class="soft">… {more} more launches</span>' if more > 0 else ""
    launches = table(("kernel", "grid", "block", "shared bytes", "arguments"), rows, frozenset({"shared bytes"}))
    return page(kernel.name, f"CUDA for {kernel.gpu} · {sizes_text(kernel.program.sizes)}", *cuda_sections(kernel.text), launches + note)


def compiled_html(compiled: Compiled) -> str:
    """Registers, spills, shared memory and occupancy, for each GPU."""
    rows = [(escape(arch), escape(gpu), f"<code>{escape(kernel)}</code>", f"{registers}", _spills(spilled), f"{shared:,}", share, escape(limiter))
            for arch, kernel, gpu, registers, spilled, shared, share, limiter in compiled.rows]
    columns = ("architecture", "GPU", "kernel", "registers", "spilled bytes", "shared bytes", "occupancy", "limited by")
    listed = table(columns, rows, frozenset(columns[3:7])) if rows else ""
    refused = "".join(f'<div class="bad">✗ {escape(arch)}: {escape(error.what)} {escape(error.why)}</div>' for arch, error in compiled.refused.items())
    return page(f"{compiled.name}: {'compiled' if compiled else 'refused'}", "by NVRTC, which needs no GPU", listed, refused, bar="good" if compiled else "bad")


def facts_html(facts: Facts) -> str:
    """Traffic, intensity, limits, and what every access costs."""
    roof = facts.roofline
    exact = "" if all(e.exact for e in facts.elements) else "at most"
    figures = cards(("compulsory traffic", scaled(facts.compulsory_bytes, "B"), exact), ("requested by warps", scaled(facts.requested_bytes, "B"), "before caches"),
                    ("work", scaled(facts.flops, "flop"), ""), ("intensity", f"{facts.intensity:.3g}", f"flop/byte, ridge {roof.ridge:.3g}"),
                    ("floor", f"{roof.floor_us:.3g} µs", f"{roof.bound}-bound"))
    launches = [(f"<code>{escape(r.kernel)}</code>", "×".join(map(str, r.grid)), "×".join(map(str, r.block)), f"{r.shared_bytes:,}",
                 f"{r.register_words}", f"{facts.occupancy[r.kernel].fraction:.0%}", escape(facts.occupancy[r.kernel].limiter)) for r in facts.resources]
    columns = ("kernel", "grid", "block", "shared bytes", "register words", "occupancy at most", "limited by")
    bad = "".join(f'<div class="bad">✗ exceeds {escape(str(b))}: {escape(b.shrink)}</div>' for b in facts.breaches)
    accesses = table(("access", "where", "bytes wide", "cost", "best", "lanes", "requests"), [_access(facts, a) for a in facts.accesses[:40]],
                     frozenset({"bytes wide", "cost", "best", "lanes", "requests"}))
    return page(f"{facts.program.name}: static facts", f"on {facts.gpu} · {sizes_text(facts.program.sizes)}", figures,
                bad + table(columns, launches, frozenset(columns[3:6])), accesses)


def _access(facts: Facts, a: AccessFacts) -> tuple[str, ...]:
    verb = "write" if a.writes else "read"
    wasteful = a.efficiency < 0.99
    if a.space == "global":
        cost, best = f"{a.sectors_per_request:.3g} sectors", f"{a.minimum:.3g}"
    else:
        cost, best = f"{a.conflicts:.3g} bank pass{'es' * (a.conflicts > 1)}", "1"
    shown = f'<span class="bad">✗ {cost}</span>' if wasteful else mark(True, cost)
    requests = scaled(a.requests) + ("~" if a.sampled else "")
    return (f"<code>{escape(facts.text_of(a))}</code>", f'{verb} <span class="soft">{escape(a.space)}</span>', f"{a.width_bytes}", shown, best,
            f"{a.active:.0%}", requests)


def _spills(spilled: int) -> str:
    return "0" if not spilled else f'<span class="bad">✗ {spilled:,}</span>'
