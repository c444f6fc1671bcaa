"""Runs as static pictures: the verdict, errors against tolerances, times with their intervals, the share of the floor, the badge."""

from __future__ import annotations

from html import escape

from ..run.facts import scaled
from ..run.result import Comparison, Evidence, Run
from ..run.timing import Timing
from ..run.verify import Check
from .bars import interval_bar, share_bar
from .schedules import sizes_text
from .style import cards, mark, page, table

_VERDICT = {True: ("right", "good"), False: ("WRONG", "bad"), None: ("not checked", "")}


def run_html(run: Run) -> str:
    """A run: right or wrong, how fast, against what floor, and which evidence there is."""
    word, bar = _VERDICT[run.correct]
    figures = [("largest error", f"{run.max_error:.2g}", "")] if run.checks else []
    if run.timing:
        figures.append(("median time", _time(run.timing.median_us), f"± {_time((run.timing.high_us - run.timing.low_us) / 2)}"))
    figures.append(("compulsory traffic", scaled(run.bytes, "B"), ""))
    figures.append(("work", scaled(run.flops, "flop"), f"{run.flops / run.bytes:.3g} per byte" if run.bytes else ""))
    floor = ""
    if run.roofline and run.share is not None:
        label = f"{run.share:.0%} of the floor: {_time(run.roofline.floor_us)}, {run.roofline.bound}-bound"
        floor = f"{share_bar(run.share, label)} {escape(label)}"
    times = "".join(f"<div>{_timing(t)}</div>" for t in run.timings.values())
    checks = table(("output", "cells", "largest error", "of tolerance", "tolerance", "against"), [_check(c) for c in run.checks],
                   frozenset({"cells", "largest error", "of tolerance"}), wide="tolerance") if run.checks else ""
    wrong = "".join(f'<div class="bad">✗ {escape(str(c))}</div>' for c in run.checks if not c)
    wrong += "".join(f'<div class="bad">✗ at {escape(where)}: {escape(str(c))}</div>' for where, cs in run.ragged for c in cs if not c)
    wrong += "".join(f'<div class="bad">✗ {escape(fault)}</div>' for fault in run.faults)
    notes = "".join(f'<div class="soft">{escape(note)}</div>' for note in run.notes)
    title = f"{run.program} on {run.device}: {word}"
    return page(title, sizes_text(run.sizes), cards(*figures), wrong + checks, times + floor, badge(run.evidence), notes, bar=bar)


def badge(evidence: Evidence) -> str:
    """The five ticks, each with what was done."""
    rows = []
    for tick in evidence.ticks:
        good = True if tick.earned else False if tick.detail == "failed" else None
        rows.append((mark(good, tick.name), f'<span class="soft">{escape(tick.detail or "not done")}</span>'))
    return table(("evidence", "how"), rows, wide="how")


def evidence_html(evidence: Evidence) -> str:
    """The badge alone."""
    return page("evidence", "each tick is earned by doing it", badge(evidence))


def comparison_html(comparison: Comparison) -> str:
    """Two runs against each other; a difference smaller than noise says so."""
    first, second = (run.timings[comparison.l2] for run in (comparison.before, comparison.after))
    t = comparison.timing
    wrong = [w for w, run in (("the first result is WRONG", comparison.before), ("the second result is WRONG", comparison.after)) if run.correct is False]
    figures = cards(("before", _time(first.median_us), ""), ("after", _time(second.median_us), ""),
                    ("ratio", f"{t.ratio:.2f}×", f"{t.low:.2f} to {t.high:.2f}"), ("verdict", t.verdict, ""))
    every = (*first.samples, *second.samples)
    rows = "".join(f"<div>{_timing(x, (min(every), max(every)))}</div>" for x in (first, second))
    bad = "".join(f'<div class="bad">✗ {w}</div>' for w in wrong)
    bar = "bad" if wrong else "" if t.noise else "good" if t.ratio > 1 else "bad"
    return page(f"{comparison.after.program}: {t.verdict}", f"{comparison.l2} L2, on {comparison.after.device}", figures, rows, bad, bar=bar)


def _check(check: Check) -> tuple[str, ...]:
    cells = f"{check.checked:,}" if check.checked == check.total else f"{check.checked:,} of {check.total:,}"
    return (mark(bool(check), check.array), cells, f"{check.max_error:.2g}", f"{check.worst:.2g}", escape(str(check.tolerance)), escape(check.reference))


def _timing(t: Timing, scale: tuple[float, float] | None = None) -> str:
    label = (f"{t.l2} L2: {_time(t.median_us)}, {t.confidence:.0%} interval {_time(t.low_us)} to {_time(t.high_us)}, {len(t.samples)} runs"
             + (f", empty launch {_time(t.overhead_us)}" if t.overhead_us else ""))
    return f"{interval_bar(t.low_us, t.median_us, t.high_us, t.samples, label, scale)} {escape(label)}"


def _time(us: float) -> str:
    """Microseconds, or milliseconds or seconds from a thousand on."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.3g} {unit}"
    return f"{us:.3g} µs"
