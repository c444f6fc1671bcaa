"""The CUDA text of the schedule, line by line, and which lines each node became; also as a pass leaves it."""

from __future__ import annotations

import re
from functools import lru_cache

from ...errors import ExplorerError, ResourceError
from ...gpu.occupancy import check_launch
from ...gpu.spec import Gpu
from ...kernel.emit import emit
from ...kernel.emittable import require_emittable
from ...kernel.stages import SourceMap, sentences, stage
from ...schedule import Schedule
from ...views.highlight import highlight_line
from ..protocol import AfterPass, Cuda, Pass
from . import problems
from .loops import KEPT

MOST = 2500
"""Lines sent at most; the export has them all."""
PASSES: list[Pass] = [{"name": name, "what": what} for name, what in sentences().items()]


@lru_cache(maxsize=KEPT)
def cuda(schedule: Schedule, gpu: Gpu) -> Cuda:
    """The text for a GPU, or the problem that keeps it from being written; a launch that is too big for it has both."""
    arch = gpu.arch
    try:
        require_emittable(schedule)
        module = emit(schedule.plan, arch=arch)
    except ExplorerError as error:
        return {"lines": [], "nodes": {}, "arch": arch, "problem": problems.of_error(error, schedule), "truncated": "",
                "passes": PASSES}
    text = module.text.rstrip("\n").split("\n")
    shown = text[:MOST]
    problem = None
    try:
        for launch in module.launches:
            check_launch(gpu, launch)
    except ResourceError as error:
        problem = problems.of_error(error, schedule)
    return {"lines": [highlight_line(line) for line in shown], "nodes": node_lines(schedule, module.source_map, shown),
            "arch": arch, "problem": problem, "truncated": _rest(len(text)), "passes": PASSES}


@lru_cache(maxsize=KEPT)
def after_pass(schedule: Schedule, gpu: Gpu, name: str) -> AfterPass:
    """The kernels as one pass leaves them, with the lines that it changed.

    Raises
    ------
    IllegalSchedule
        While nothing may be emitted.
    ScheduleError
        There is no such pass.
    """
    require_emittable(schedule)
    found = stage(schedule.plan, name, gpu.arch)
    text = found.text.split("\n")
    shown = text[:MOST]
    return {"name": found.name, "lines": [highlight_line(line) for line in shown],
            "nodes": node_lines(schedule, found.source_map, shown), "changed": [n for n in found.changed if n <= MOST],
            "change": found.change, "truncated": _rest(len(text))}


def _rest(count: int) -> str:
    """What is left out, in words."""
    return f"the first {MOST} of {count} lines; the export has them all" if count > MOST else ""


def node_lines(schedule: Schedule, source_map: SourceMap, lines: list[str]) -> dict[str, list[int]]:
    """Node to its lines: from the source map; a buffer that has no node of its own has the lines that name it."""
    out = {node: [n for first, last in spans for n in range(first, min(last, len(lines)) + 1)]
           for node, spans in source_map.items()}
    missing = [b.name for b in schedule.plan.buffers if b.name not in out]
    for name in missing:
        word = re.compile(rf"\b{re.escape(name.replace('.', '_'))}\b")
        out[name] = [n for n, line in enumerate(lines, 1) if word.search(line)]
    return {node: sorted(set(numbers)) for node, numbers in out.items() if numbers}
