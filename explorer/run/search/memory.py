"""Searches remembered between sessions: one entry each, JSON, in a cache.

What a time depends on names the entry: the program, its sizes and types, the GPU, this package's version, how many variants are
measured, the seed, and the variants that there are to measure (which of them are, the times decide).  It says what was measured;
the schedule in it is replayed and judged again before anybody gets it.
"""

from __future__ import annotations

import json
from typing import Any

from ...errors import ExplorerError, ReplayError
from ...ir.plan import initial
from ...ir.program import Program
from ...ir.text import loops_text
from ...schedule import Schedule
from ...steps.saved import from_data, to_data
from ...system.cache import Cache, key_of
from ..timing import Samples, Timing, compare
from .result import SearchResult, Trial

FORMAT, VERSION = "explorer-search", 1
SEARCHES = Cache("search", 64 << 20)
_NAME = "search.json"


def key(program: Program, device: str, *more: object) -> str:
    """The name of a search's entry: the program's, and one for the device, this version and what else is given."""
    from ... import __version__

    return f"{_of(program)}-{key_of(device, __version__, VERSION, *more)[:20]}"


def _of(program: Program) -> str:
    """A name for a program at its sizes: its loops as text, whatever the user's spaces and comments, and its arrays."""
    arrays = [f"{a.name}: {a.dtype.name}{list(a.shape)} {a.role}" for a in program.arrays]
    return key_of(program.name, loops_text(initial(program)), *arrays, *program.sizes)[:20]


def store(name: str, result: SearchResult) -> None:
    """Keep a result; a folder that cannot be written only means searching again."""
    data = {"format": FORMAT, "version": VERSION, "device": result.device, "clock": result.clock, "best": result.best,
            "floor_us": result.floor_us, "ended": result.ended, "notes": list(result.notes),
            "trials": [_plain(result.schedule.source, t) for t in result.trials]}
    SEARCHES.keep(name, {_NAME: json.dumps(data, separators=(",", ":")).encode()})


def load(name: str, written: Schedule) -> tuple[SearchResult | None, str]:
    """A remembered result, its best schedule replayed and judged; or None, with a note where there is an entry of no use.

    Parameters
    ----------
    name : str
        Of :func:`key`.
    written : Schedule
        The program as written.
    """
    text = SEARCHES.kept(name, _NAME)
    if text is None:
        return None, "the remembered search was damaged and was made again" if SEARCHES.entry(name).exists() else ""
    try:
        return _result(json.loads(text), written), ""
    except (ExplorerError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        said = error.what if isinstance(error, ExplorerError) else str(error)
        return None, f"the remembered search {name} is of no use and was made again: {said}"[:300]


def forget(schedule: Schedule | None = None) -> int:
    """Forget the searches of a program at its sizes, on every GPU; of all programs by default.

    Parameters
    ----------
    schedule : Schedule, optional
        Any schedule of the program.

    Returns
    -------
    int
        How many there were.
    """
    return SEARCHES.forget(f"{'[0-9a-f]' * 20 if schedule is None else _of(schedule.source)}-*")


def _plain(program: Program, trial: Trial) -> dict[str, Any]:
    data: dict[str, Any] = {"label": trial.label, "estimate_us": trial.estimate_us, "rounds": trial.rounds,
                            "problem": trial.problem, "twin": trial.twin, "schedule": to_data(program, trial.steps)}
    if (t := trial.timing) is not None:
        data["timing"] = {"samples": list(t.samples), "l2": t.l2, "overhead_us": t.overhead_us, "method": t.method}
    return data


def _result(data: Any, written: Schedule) -> SearchResult:
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
        raise ReplayError("it is no search of this version")
    program = written.source
    trials = tuple(_trial(t, program) for t in data["trials"])
    start, best = trials[0], trials[data["best"]]
    if best.timing is None or best.problem:
        raise ReplayError("its best variant was not timed")
    schedule = written
    for step in best.steps:
        schedule = schedule.apply(step)
    if not schedule.judgement.emittable:
        raise ReplayError("its best schedule leaves a question open")
    gain = compare(start.timing, best.timing) if data["best"] and start.timing and not start.problem else None
    return SearchResult(program.name, program.sizes, str(data["device"]), str(data["clock"]), schedule, trials, int(data["best"]),
                        gain, data["floor_us"], str(data["ended"]), True, tuple(map(str, data["notes"])))


def _trial(data: dict[str, Any], program: Program) -> Trial:
    name, _, sizes, steps = from_data(data["schedule"])
    if name != program.name or sizes != dict(program.sizes):
        raise ReplayError("it is of another program")
    timing = None
    if (t := data.get("timing")) is not None:
        samples = [float(s) for s in t["samples"]]
        timing = Timing.of(Samples(samples, l2=str(t["l2"]), overhead_us=float(t["overhead_us"]), method=str(t["method"])))
    estimate = data["estimate_us"]
    return Trial(str(data["label"]), steps, None if estimate is None else float(estimate), timing, int(data["rounds"]),
                 str(data["problem"]), str(data["twin"]))
