"""The run pane: where it can run, how the run stands, and what it has shown."""

from __future__ import annotations

from ...run.timing import Timing, compare
from ...views.results import Beside, result_html, verdict
from ..jobs import AS_WRITTEN, STEP_BEFORE, Snapshot
from ..priced import priced_us
from ..protocol_results import DeviceChoice, RunPane
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
    against = tuple(_against(session, name, other, own or timing, cpu) for name, other, own in shown.against) if timing else ()
    priced = priced_us(session.schedule, session.gpu) if cpu and timing else None
    samples = {f"this ({t.l2} L2)" if t.l2 else "this": _samples(t) for t in timings}
    samples |= {name: _samples(other) for name, other, _ in shown.against}
    return {
        "status": shown.status, "doing": shown.doing, "fraction": shown.fraction,  # type: ignore[typeddict-item]
        "device": job.device if mine and job.device else session.device, "devices": devices,
        "sizes": dict(session.schedule.source.sizes), "correct": None if run is None else run.correct, "verdict": verdict(run),
        "samples": samples, "gpu": session.gpu.name, "priced_us": priced,
        "html": result_html(run, against, session.gpu.name, priced, shown.notes),
        "problem": problems.of_error(shown.error, session.schedule) if shown.error else None,
    }


def _against(session: Session, name: str, other: Timing, own: Timing, cpu: bool) -> Beside:
    found, line = compare(other, own), session.history.line()
    of = {STEP_BEFORE: line[-2] if len(line) > 1 else None, AS_WRITTEN: line[0]}.get(name) if cpu else None
    return Beside(name, other.median_us, found.ratio, "" if cpu else found.verdict,
                  priced_us(of.schedule, session.gpu) if of else None)


def _samples(timing: Timing) -> list[float]:
    return [round(v, 4) for v in timing.samples[:MOST_SAMPLES]]
