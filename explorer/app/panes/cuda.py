"""The CUDA text of the schedule, line by line, and which lines each node became; also as a pass leaves it."""

from __future__ import annotations

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
    """Node to its lines; a buffer that has no node of its own has those of the leaves that use it, beside its declaration."""
    out = {node: {n for first, last in spans for n in range(first, min(last, len(lines)) + 1)}
           for node, spans in source_map.items()}
    plan = schedule.plan
    nodes = {leaf.id for leaf, _, _ in plan.leaves}
    for leaf, _, _ in plan.leaves:
        for slot in range(len(plan.statement_of[leaf.statement].reads) + 1):
            if (view := leaf.view(slot)) is not None and view.buffer not in nodes:
                out.setdefault(view.buffer, set()).update(out.get(leaf.id, ()))
    return {node: sorted(numbers) for node, numbers in out.items() if numbers}
