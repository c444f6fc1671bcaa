"""A measured search, for its picture and for the search pane: what it came to, and a row for every variant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from ..gpu.units import counted, time_text, times_text
from ..run.search.result import SHOWN, SearchResult, Trial
from .bars import interval_bar
from .reprs import picture_of
from .schedules import sizes_text
from .style import page, table


@dataclass(frozen=True)
class Scale:
    """What the rows of a search have in common.

    Attributes
    ----------
    longest_us : float
        The time that fills its bar.
    cpu : bool
        Whether the times are of the CPU.
    gpu : str
        The GPU that estimates are of, where it is another device than that of the times and known.
    """

    longest_us: float
    cpu: bool = False
    gpu: str = ""

    @staticmethod
    def of(trials: Iterable[Trial], cpu: bool = False, gpu: str = "") -> Scale:
        """The slowest of those that count fills its bar."""
        times = [t.timing.median_us for t in trials if t.timing and not t.problem]
        return Scale(max(times, default=0.0), cpu, gpu)


@picture_of("run.search.result.SearchResult")
def search_html(found: SearchResult) -> str:
    """A search: what it came to, the fastest variants with their times, every sample of them, and what failed."""
    shown = list(dict.fromkeys((*found.ranked[:SHOWN], found.start)))
    scale, best = Scale.of(shown, found.device == "cpu"), found.trials[found.best]
    rows = [trial_html(t, scale, start=t is found.start, best=t is best) for t in shown if not t.problem]
    listed = f'<ol class="trials" aria-label="variants, the best first">{"".join(rows)}</ol>' if rows else ""
    failed = _folded(f"failed: {len(found.failed)}", [trial_html(t, scale) for t in found.failed])
    small = f"{sizes_text(found.sizes)} on {found.device}"
    return page(f"{found.program}: {found.verdict}", small, _facts(found), listed, _samples(shown), failed,
                bar="good" if found.gain else "")


def outcome_html(found: SearchResult) -> str:
    """The verdict, with a tick where something was gained, and what it rests on."""
    gained = found.gain is not None and found.device != "cpu"  # times of the CPU say nothing of a gain
    sign = f'<span class="{"good" if gained else "soft"}" aria-hidden="true">{"✓" if gained else "·"} </span>'
    return f'<p class="sverdict">{sign}<b>{escape(found.verdict)}</b></p>{_facts(found)}'


def trial_html(trial: Trial, scale: Scale, *, start: bool = False, best: bool = False, here: bool = False,
               number: int | None = None) -> str:  # fmt: skip
    """A variant: what is different, its time with the interval, its bar, its price, or why it does not count.

    Parameters
    ----------
    trial : Trial
    scale : Scale
    start, best, here : bool
        Whether it is what the search began with, the fastest, and what the explorer shows now.
    number : int, optional
        Makes it a button that takes the variant of this number; without it, it is an item of a list.
    """
    timing = trial.timing if not trial.problem else None
    middle, low, high = times_text((timing.median_us, timing.low_us, timing.high_us)) if timing else ("", "", "")
    time = f"{middle} ({low} to {high}){' on the CPU' if scale.cpu else ''}" if timing else ""
    share, words = timing.median_us / scale.longest_us if timing else 0.0, _words(trial, scale, start)
    sign = "✗" if trial.problem else "★" if best else "▸" if here else "·"
    inner = (f'<span class="sign{" bad" if trial.problem else ""}" aria-hidden="true">{sign}</span> '
             f'<span class="tlabel">{escape(trial.label)}</span> <span class="sest {"good" if best else "soft"}">{time}</span> '
             f'<span class="tbar" aria-hidden="true"><i style="width:{share:.1%}"></i></span> '
             f'<span class="sdoes soft">{escape(words)}</span>')
    kind = f"trial{' here' if here else ''}{' done' if timing else ''}"
    if number is None:
        return f'<li class="{kind}">{inner}</li>'
    state = ", ".join(filter(None, ("the best" if best else "", "shown now" if here else "")))
    label = ". ".join(filter(None, (trial.label, time, words, state)))
    title = f"take its {counted(len(trial.steps), 'step')} as one action" if timing or trial.steps else trial.problem
    more = ' aria-current="step"' if here else ""
    more += "" if timing or trial.steps else ' aria-disabled="true"'
    return (f'<button class="sstep {kind}" type="button" data-rove="" data-trial="{number}" aria-label="{escape(label)}" '
            f'title="{escape(title)}"{more}>{inner}</button>')


def _words(trial: Trial, scale: Scale, start: bool) -> str:
    if trial.problem or trial.twin:
        return trial.problem or f"the same kernels as {trial.twin}"
    rounds = f"timed in {trial.rounds} rounds" if trial.rounds > 1 else ""
    return " · ".join(filter(None, ("what Auto makes" if start else "", _price(trial.estimate_us, scale), rounds)))


def _price(us: float | None, scale: Scale) -> str:
    """What a variant's plan is priced at; on which GPU, where its time is of the CPU."""
    if us is None:
        return ""
    gpu = f"the {scale.gpu}" if scale.gpu else "a GPU"
    return f"about {time_text(us)} on {gpu}, by the model" if scale.cpu else f"estimated {time_text(us)}"


def _facts(found: SearchResult) -> str:
    """How many variants there were, why it ended, what the times are, and the floor."""
    failed = f", {len(found.failed)} of them failed" if found.failed else ""
    again = "remembered from an earlier search" if found.remembered else ""
    floor = f"the floor is {time_text(found.floor_us)}" if found.floor_us else ""
    said = [f"{len(found.trials)} variants{failed}; {found.ended}", again, f"{found.device}: {found.clock}", floor, *found.notes]
    return f'<p class="soft found">{escape(" · ".join(filter(None, said)))}</p>'


def _samples(shown: list[Trial]) -> str:
    """Every sample of the variants, on one scale."""
    timed = [(t, t.timing) for t in shown if t.timing is not None]
    if not timed:
        return ""
    every = [sample for _, timing in timed for sample in timing.samples]
    rows = []
    for trial, t in timed:
        label = f"{time_text(t.median_us)}, interval {time_text(t.low_us)} to {time_text(t.high_us)}, {len(t.samples)} runs"
        bar = interval_bar(t.low_us, t.median_us, t.high_us, t.samples, label, (min(every), max(every)))
        rows.append((escape(trial.label), f"{t.spread:.1%}", bar))
    listed = table(("variant", "spread", "samples"), rows, frozenset(("spread",)), wide=("variant",))
    return f'<details><summary>every sample</summary><div class="body">{listed}</div></details>'


def _folded(summary: str, rows: list[str]) -> str:
    if not rows:
        return ""
    return f'<details><summary>{summary}</summary><div class="body"><ol class="trials">{"".join(rows)}</ol></div></details>'
