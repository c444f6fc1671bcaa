"""On-demand answers of the protocol: figures, comparisons, exports, PTX, counterexamples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from ..errors import ExplorerError, ExportError, ScheduleError
from ..gpu.spec import ARCHITECTURES, Gpu, catalogue
from ..kernel.emit import emit
from ..kernel.emittable import require_emittable
from ..run.export import exported as cu_text
from ..run.nvrtc.compiler import compile_module
from ..run.result import Run
from ..run.stamps import Stamps
from ..run.verify.ragged import own_again
from ..schedule import Schedule
from ..transforms.base import Transform
from ..views.compare import compare
from ..views.figures import Measured, figure_data
from .history import State
from .panes.plain import plain
from .protocol_moves import Counterexample
from .protocol_results import Compared, FigureData, SameFigure


def figure(schedule: Schedule, name: str, options: Mapping[str, Any], node: str | None, run: Run | None, gpu: Gpu,
           step: Transform | None = None, have: str | None = None, times: Measured = (),
           stamps: Stamps | None = None) -> FigureData | SameFigure:  # fmt: skip
    """A figure as data; with a step, of the schedule that it would make, and with the pair of instances that refuses it.

    It is drawn for `gpu`, on which other schedules took `times`, unless its options name another; `stamps` are the schedule's.
    Drawing a figure again costs the browser more than anything else does: one that the front end has is not sent again.
    """
    finding = None
    if step is not None:
        verdict, plan = schedule.try_step(step)
        if plan is not None:
            schedule, run, finding, stamps = replace(schedule, plan=plan), None, verdict.finding, None
    data = plain(figure_data(schedule, name, dict(options), node=node, run=run, finding=finding, target=gpu,
                             measured=times, stamps=stamps))
    sign = blake2b(json.dumps(data).encode(), digest_size=12).hexdigest()
    return {"sign": sign} if sign == have else {**data, "sign": sign}  # type: ignore[return-value]


def compared(a: State, b: State, gpu: Gpu) -> Compared:
    """Two states of the history side by side, on a GPU; the table's first row names them."""
    found = compare(a.schedule, b.schedule, names=(a.title, b.title), runs=(a.run, b.run), gpu=gpu).data()
    return {"a": a.id, "b": b.id, "loops": found["loops"], "cuda": found["cuda"],
            "rows": [["", a.title, b.title], *([str(cell) for cell in row] for row in found["rows"])]}


def ptx(schedule: Schedule, arch: str) -> dict[str, str]:
    """The PTX of the text for one architecture, or why there is none."""
    known = {*ARCHITECTURES, *(g.arch for g in catalogue().values())}
    if arch not in known:
        raise ScheduleError(f"no architecture is called {arch!r}", hint=", ".join(sorted(known)))
    try:
        require_emittable(schedule)
        return {"text": compile_module(emit(schedule.plan, arch=arch), arch).ptx, "arch": arch}
    except ExplorerError as error:
        return {"why": error.message(), "arch": arch}


def exported(schedule: Schedule, what: str, gpu: Gpu) -> dict[str, str]:
    """A file to save (the CUDA text for a GPU), or a text for the clipboard."""
    name = schedule.source.name
    if what == "cu":
        return {"filename": f"{name}.cu", "text": cu_text(schedule, gpu=gpu)}
    if what == "json":
        return {"filename": f"{name}.json", "text": schedule.to_json() + "\n"}
    if what == "script":
        return {"filename": f"{name}_schedule.py", "text": schedule.script()}
    if what == "share":
        return {"filename": f"{name}.txt", "text": schedule.share()}
    raise ExportError(f"there is no export {what!r}", hint="cu, json, script or share")


def counterexample_of(schedule: Schedule, step: Transform) -> Counterexample:
    """The illegal order of a refused step, executed."""
    from ..run.counterexample.counterexample import counterexample
    from ..views.counterexamples import counter_box

    found = counterexample(schedule, step, again=own_again(schedule))
    return {"call": str(step), "caught": found.caught, "html": counter_box(found)}
