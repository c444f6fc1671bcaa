"""A measured search as a static picture: what was gained, and every variant's time on one scale."""

from __future__ import annotations

from html import escape

from ..gpu.units import time_text
from ..run.search.result import SHOWN, SearchResult, Trial
from .bars import interval_bar
from .reprs import picture_of
from .schedules import sizes_text
from .style import cards, mark, page, table


@picture_of("run.search.result.SearchResult")
def search_html(found: SearchResult) -> str:
    """A search: the gain over the start, the fastest variants with their intervals, and what failed."""
    again = " (remembered)" if found.remembered else ""
    small = f"{sizes_text(found.sizes)} on {found.device}{again}"
    notes = "".join(f'<div class="soft">{escape(note)}</div>' for note in (found.clock, found.ended, *found.notes))
    bar = "good" if found.gain else ""
    return page(f"{found.program}: {found.verdict}", small, _figures(found), _times(found), _failed(found), notes, bar=bar)


def _figures(found: SearchResult) -> str:
    best = found.trials[found.best]
    figures = [("best", time_text(found.time_us), best.label)]
    if found.gain is not None and found.start.timing is not None and found.device != "cpu":
        figures.append(("start", time_text(found.start.time_us), ""))
        figures.append(("gain", f"{found.gain.ratio:.2f}×", f"{found.gain.low:.2f} to {found.gain.high:.2f}"))
    if found.floor_us:
        figures.append(("floor", time_text(found.floor_us), ""))
    figures.append(("variants", str(len(found.trials)), f"{len(found.failed)} failed"))
    return cards(*figures)


def _times(found: SearchResult) -> str:
    shown = list(dict.fromkeys((*found.ranked[:SHOWN], found.start)))
    timed = [t for t in shown if t.timing is not None]
    every = [s for t in timed for s in t.timing.samples] if timed else [0.0]  # type: ignore[union-attr]
    columns = ("variant", "median", "spread", "estimate", "samples")
    rows = [_row(t, t is found.trials[found.best], (min(every), max(every))) for t in timed]
    return table(columns, rows, frozenset(columns[1:4]), wide=("variant",))


def _row(trial: Trial, best: bool, scale: tuple[float, float]) -> tuple[str, ...]:
    t = trial.timing
    assert t is not None
    label = f"{time_text(t.median_us)}, interval {time_text(t.low_us)} to {time_text(t.high_us)}, {len(t.samples)} runs"
    estimate = "" if trial.estimate_us is None else time_text(trial.estimate_us)
    name = mark(True, trial.label) if best else escape(trial.label)
    return name, time_text(t.median_us), f"{t.spread:.1%}", estimate, interval_bar(t.low_us, t.median_us, t.high_us, t.samples,
                                                                                   label, scale)


def _failed(found: SearchResult) -> str:
    if not found.failed:
        return ""
    lines = "".join(f"<div>{mark(False, t.label)}: {escape(t.problem)}</div>" for t in found.failed)
    return f"<details><summary>failed: {len(found.failed)}</summary><div class=\"body\">{lines}</div></details>"
