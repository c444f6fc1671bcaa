"""What a run has shown, for its picture and for the run pane: the verdict, numbers, times and what they compare with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from ..gpu.units import counted, time_text, times_text
from ..run.facts import scaled
from ..run.result import Run
from .style import cards, table

_CPU = "of blocks and threads run one after the other: it says nothing about a GPU"


@dataclass(frozen=True)
class Beside:
    """A time to compare with; of a time on the CPU there is no verdict, and `priced_us` is what a schedule is priced at."""

    name: str
    time_us: float
    ratio: float
    verdict: str
    priced_us: float | None = None


def verdict(run: Run | None) -> str:
    """One sentence."""
    if run is None:
        return ""
    word = {True: "right", False: "WRONG", None: "not checked"}[run.correct]
    failed = next((str(c) for c in (*run.checks, *run.exact) if not c), "") or next(
        (f"at {where}: {c}" for where, checks in run.ragged for c in checks if not c), "") or next(iter(run.faults), "")
    if failed:
        return f"{word}: {failed}"
    cells = sum(c.checked for c in run.checks)
    other = f", and at {' and '.join(where for where, _ in run.ragged)}" if run.ragged else ""
    exact = ", exact inputs too" if run.exact else ""
    return f"{word}: {counted(cells, 'cell')} checked on {run.device}{exact}{other}" if run.checks else word


def result_html(run: Run | None, against: tuple[Beside, ...], gpu: str, priced_us: float | None, notes: tuple[str, ...]) -> str:
    """Everything but the verdict: the first wrong cell, times, numbers, and what the time compares with.

    A time on the CPU is no verdict: before it stands what the schedule is priced at on `gpu`.
    """
    if run is None:
        return ""
    times = [str(t) for t in run.timings.values()]
    if run.device == "cpu":
        times = [f"on the CPU {line}: the time {_CPU}" for line in times]
    said = "".join(f'<p class="{"soft" if run.device == "cpu" else "timing"}">{escape(line)}</p>' for line in times)
    if priced_us is not None:
        said = f'<p class="timing">about {time_text(priced_us)} on the {escape(gpu)}, by the model</p>{said}'
    numbers = facts_html(run, notes)
    return f'{wrong_html(run)}<div class="rfacts">{said}{numbers}</div>{_against(run, against, gpu)}'


def facts_html(run: Run, notes: tuple[str, ...] = ()) -> str:
    """The numbers of a run side by side."""
    return cards(*((name, value, "") for name, value in (*facts(run), *(("note", note) for note in notes))))


def wrong_html(run: Run) -> str:
    """The first wrong cell, with the sizes at which it is wrong; nothing where all is right."""
    here = [("these sizes", c) for c in (*run.checks, *run.exact)]
    for where, c in [*here, *((where, c) for where, checks in run.ragged for c in checks)]:
        if not c:
            element = f"[{', '.join(map(str, c.index or ()))}]"
            rows = {"array": c.array, "element": element, "got": f"{c.got:.9g}", "expected": f"{c.expected:.9g}",
                    "allowed": f"{c.allowed:.3g}", "wrong": str(c.wrong), "checked": str(c.checked), "at": where,
                    "reference": c.reference}  # fmt: skip
            return cards(*((name, value, "") for name, value in rows.items()), kind="wrong")
    return ""


def facts(run: Run) -> list[tuple[str, str]]:
    """Rows of numbers: the run's time, floor, error and traffic, and what it left out."""
    out: list[tuple[str, str]] = []
    if run.timing:
        t = run.timing
        middle, low, high = times_text((t.median_us, t.low_us, t.high_us))
        out.append(("time on the CPU" if run.device == "cpu" else "time", f"{middle} ({low} to {high})"))
    if run.share is not None and run.roofline:
        out.append(("share of the floor", f"{run.share:.0%} of {time_text(run.roofline.floor_us)}, {run.roofline.bound}-bound"))
    out.append(("compulsory traffic", scaled(run.bytes, "B")))
    out.append(("work", scaled(run.flops, "flop") + (f", {run.flops / run.bytes:.3g} per byte" if run.bytes else "")))
    if run.checks:
        worst = max(run.checks, key=lambda c: (c.worst if math.isfinite(c.worst) else math.inf, c.max_error))
        out.append(("largest error", f"{run.max_error:.2g}, {worst.share}"))
    out += [(f"on {kind}", words) for kind, words in run.sharp]
    return [*out, *(("note", note) for note in run.notes)]


def _against(run: Run, against: tuple[Beside, ...], gpu: str) -> str:
    if not against:
        return ""
    if run.device == "cpu":
        columns = ("beside", f"on the {gpu}, by the model", "on the CPU")
        rows = [(escape(b.name), "—" if b.priced_us is None else f"about {time_text(b.priced_us)}", time_text(b.time_us))
                for b in against]  # fmt: skip
        return table(columns, rows, frozenset(columns[1:]), kind="against")
    shown = [(escape(b.name), time_text(b.time_us), f"{b.ratio:.2f} ×", escape(b.verdict)) for b in against]
    return table(("against", "time", "ratio", "verdict"), shown, frozenset(("time", "ratio")), kind="against")
