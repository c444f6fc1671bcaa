"""Runs as static pictures: verdict, errors against tolerances, times with intervals, the share of the floor, the badge."""

from __future__ import annotations

from html import escape

from ..gpu.units import time_text
from ..run.result import Comparison, Evidence, Run
from ..run.timing import Timing
from ..run.verify.outputs import Check
from .bars import interval_bar, share_bar
from .reprs import picture_of
from .results import facts_html
from .schedules import sizes_text
from .style import cards, mark, page, table

_VERDICT = {True: ("right", "good"), False: ("WRONG", "bad"), None: ("not checked", "")}


@picture_of("run.result.Run")
def run_html(run: Run) -> str:
    """A run: right or wrong, how fast, against what floor, and which evidence there is."""
    word, bar = _VERDICT[run.correct]
    title = f"{run.program} on {run.device}: {word}"
    checks = _wrong(run) + _checks(run)
    return page(title, sizes_text(run.sizes), facts_html(run), checks, _times(run), badge(run.evidence), bar=bar)


def _wrong(run: Run) -> str:
    """Every check that failed, with its first wrong cell, and every fault."""
    texts = [str(c) for c in (*run.checks, *run.exact) if not c]
    texts += [f"at {where}: {c}" for where, checks in run.ragged for c in checks if not c]
    return "".join(f'<div class="bad">✗ {escape(text)}</div>' for text in (*texts, *run.faults))


def _checks(run: Run) -> str:
    columns = ("output", "cells", "largest error", "of tolerance", "tolerance", "against")
    rows = [_check(c) for c in run.checks]
    stored = any(c.leaves_out_store for c in run.checks)
    left = '<div class="soft">shares of the tolerance leave out the rounding of the store</div>' if stored else ""
    return table(columns, rows, frozenset(columns[1:4]), wide=("tolerance", "against")) + left if rows else ""


def _times(run: Run) -> str:
    times = "".join(f"<div>{_timing(t, run.device)}</div>" for t in run.timings.values())
    if run.roofline is None or run.share is None:
        return times
    label = f"{run.share:.0%} of the floor: {time_text(run.roofline.floor_us)}, {run.roofline.bound}-bound"
    return f"{times}<div>{share_bar(run.share, label)} {escape(label)}</div>"


def badge(evidence: Evidence) -> str:
    """The five ticks, each with what was done."""
    rows = []
    for tick in evidence.ticks:
        good = True if tick.earned else False if tick.detail == "failed" else None
        rows.append((mark(good, tick.name), f'<span class="soft">{escape(tick.detail or "not done")}</span>'))
    return table(("evidence", "how"), rows, wide=("how",))


@picture_of("run.result.Evidence")
def evidence_html(evidence: Evidence) -> str:
    """The badge alone."""
    return page("evidence", "a tick is a check that has passed", badge(evidence))


@picture_of("run.result.Comparison")
def comparison_html(comparison: Comparison) -> str:
    """Two runs against each other; a difference smaller than noise says so."""
    first, second = (run.timings[comparison.l2] for run in (comparison.before, comparison.after))
    t, device = comparison.timing, comparison.after.device
    named = (("first", comparison.before), ("second", comparison.after))
    wrong = [f"the {name} result is WRONG" for name, run in named if run.correct is False]
    figures = cards(("before", time_text(first.median_us), ""), ("after", time_text(second.median_us), ""),
                    ("ratio", f"{t.ratio:.2f}×", f"{t.low:.2f} to {t.high:.2f}"), ("verdict", comparison.verdict, ""))
    every = (*first.samples, *second.samples)
    rows = "".join(f"<div>{_timing(x, device, (min(every), max(every)))}</div>" for x in (first, second))
    bad = "".join(f'<div class="bad">✗ {w}</div>' for w in wrong)
    bar = "bad" if wrong else "" if t.noise or device == "cpu" else "good" if t.ratio > 1 else "bad"
    return page(f"{comparison.after.program}: {comparison.verdict}", f"on {device}", figures, rows, bad, bar=bar)


def _check(check: Check) -> tuple[str, ...]:
    error, worst = f"{check.max_error:.2g}", f"{check.worst:.2g}"
    return mark(bool(check), check.array), check.cells, error, worst, escape(str(check.tolerance)), escape(check.reference)


def _timing(t: Timing, device: str, scale: tuple[float, float] | None = None) -> str:
    state = f"{t.l2} L2" if t.l2 else f"on {device}"
    interval = f"{t.confidence:.0%} interval {time_text(t.low_us)} to {time_text(t.high_us)}"
    empty = f", empty launch {time_text(t.overhead_us)}" if t.overhead_us else ""
    label = f"{state}: {time_text(t.median_us)}, {interval}, {len(t.samples)} runs{empty}"
    return f"{interval_bar(t.low_us, t.median_us, t.high_us, t.samples, label, scale)} {escape(label)}"
