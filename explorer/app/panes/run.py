"""The run pane: where it can run, how the run stands, and what it has shown."""

from __future__ import annotations

import math
from typing import Any

from ...gpu.units import time_text, times_text
from ...run.facts import scaled
from ...run.result import Run
from ...run.timing import Timing, compare
from ..jobs import AS_WRITTEN, STEP_BEFORE, Snapshot
from ..priced import priced_us
from ..protocol_results import Against, DeviceChoice, RunPane
from ..session import Session
from . import problems

MOST_SAMPLES = 200


def run_pane(session: Session, job: Snapshot, devices: list[DeviceChoice]) -> RunPane:
    """The job at work or just done if it is of the state that is shown, else the last run of that state."""
    state = session.history.state
    mine = job.status == "running" or job.state == state.id
    run = job.run if mine and job.run is not None else None if mine and job.status == "running" else state.run
    shown = job if mine else Snapshot("idle" if run is None else "done")
    timing = None if run is None else run.timing
    timings = [] if run is None else list(run.timings.values())
    cpu = run is not None and run.device == "cpu"
    against = [_against(session, name, other, own or timing, cpu) for name, other, own in shown.against] if timing else []
    samples = {f"this ({t.l2} L2)" if t.l2 else "this": _samples(t) for t in timings}
    samples |= {name: _samples(other) for name, other, _ in shown.against}
    return {
        "status": shown.status, "doing": shown.doing, "fraction": shown.fraction,  # type: ignore[typeddict-item]
        "device": job.device if mine and job.device else session.device, "devices": devices,
        "sizes": dict(session.schedule.source.sizes), "correct": None if run is None else run.correct, "verdict": verdict(run),
        "wrong": wrong(run), "samples": samples, "against": against,
        "on_cpu": cpu, "gpu": session.gpu.name,
        "priced_us": priced_us(session.schedule, session.gpu) if cpu and timing else None, "timings": [str(t) for t in timings],
        "facts": [*facts(run), *(("note", note) for note in shown.notes)],
        "problem": problems.of_error(shown.error, session.schedule) if shown.error else None,
    }


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
    return f"{word}: {cells:,} cells checked on {run.device}{exact}{other}" if run.checks else word


def wrong(run: Run | None) -> dict[str, Any] | None:
    """The first wrong cell, with the sizes at which it is wrong."""
    if run is None:
        return None
    here = [("these sizes", c) for c in (*run.checks, *run.exact)]
    for where, check in [*here, *((where, c) for where, checks in run.ragged for c in checks)]:
        if not check:
            return {"array": check.array, "element": list(check.index or ()), "got": f"{check.got:.9g}",
                    "expected": f"{check.expected:.9g}", "allowed": f"{check.allowed:.3g}", "wrong": check.wrong,
                    "checked": check.checked, "at": where, "reference": check.reference}
    return None


def facts(run: Run | None) -> list[tuple[str, str]]:
    """Rows of numbers: the run's time, floor, error and traffic, and what it left out."""
    if run is None:
        return []
    out: list[tuple[str, str]] = []
    if run.timing:
        t = run.timing
        middle, half = times_text((t.median_us, (t.high_us - t.low_us) / 2))
        out.append(("time on the CPU" if run.device == "cpu" else "time", f"{middle} ± {half}"))
    if run.share is not None and run.roofline:
        out.append(("share of the floor", f"{run.share:.0%} of {time_text(run.roofline.floor_us)}, {run.roofline.bound}-bound"))
    out.append(("compulsory traffic", scaled(run.bytes, "B")))
    out.append(("work", scaled(run.flops, "flop")))
    if run.checks:
        worst = max(run.checks, key=lambda c: c.worst if math.isfinite(c.worst) else math.inf)
        out.append(("largest error", f"{run.max_error:.2g}, {worst.share}"))
    out += [(f"on {kind}", words) for kind, words in run.sharp]
    return [*out, *(("note", note) for note in run.notes)]


def _against(session: Session, name: str, other: Timing, own: Timing, cpu: bool) -> Against:
    found, line = compare(other, own), session.history.line()
    of = {STEP_BEFORE: line[-2] if len(line) > 1 else None, AS_WRITTEN: line[0]}.get(name) if cpu else None
    return {"name": name, "time_us": other.median_us, "ratio": found.ratio, "verdict": "" if cpu else found.verdict,
            "priced_us": priced_us(of.schedule, session.gpu) if of else None}


def _samples(timing: Timing) -> list[float]:
    return [round(v, 4) for v in timing.samples[:MOST_SAMPLES]]
