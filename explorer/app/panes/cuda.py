"""The CUDA text of the schedule, line by line, and which lines each node became."""

from __future__ import annotations

import re
from functools import lru_cache

from ...api import Schedule
from ...codegen.emit import emit
from ...codegen.module import CudaModule
from ...errors import ExplorerError, ResourceError
from ...gpu.occupancy import check_launch
from ...gpu.spec import Gpu
from ...run.ragged import require_emittable
from ..protocol import Cuda
from . import problems
from .loops import KEPT
from .spans import code_spans

MOST = 2500
"""Lines sent at most; the export has them all."""


@lru_cache(maxsize=KEPT)
def cuda(schedule: Schedule, gpu: Gpu) -> Cuda:
    """The text for a GPU, or the problem that keeps it from being written; a launch that is too big for it has both."""
    arch = gpu.arch
    try:
        require_emittable(schedule)
        module = emit(schedule.plan, arch=arch)
    except ExplorerError as error:
        return {"lines": [], "nodes": {}, "arch": arch, "problem": problems.of_error(error, schedule), "truncated": ""}
    text = module.text.rstrip("\n").split("\n")
    shown = text[:MOST]
    rest = f"the first {MOST} of {len(text)} lines; the export has them all" if len(text) > MOST else ""
    problem = None
    try:
        for launch in module.launches:
            check_launch(gpu, launch)
    except ResourceError as error:
        problem = problems.of_error(error, schedule)
    return {"lines": [code_spans(line) for line in shown], "nodes": node_lines(schedule, module, len(shown)), "arch": arch,
            "problem": problem, "truncated": rest}


def node_lines(schedule: Schedule, module: CudaModule, most: int) -> dict[str, list[int]]:
    """Node to its lines: from the source map; a buffer that has no node of its own has the lines that name it."""
    out = {node: [n for first, last in spans for n in range(first, min(last, most) + 1)]
           for node, spans in module.source_map.items()}
    missing = [b.name for b in schedule.plan.buffers if b.name not in out]
    if missing:
        lines = module.text.split("\n")[:most]
        for name in missing:
            word = re.compile(rf"\b{re.escape(name.replace('.', '_'))}\b")
            out[name] = [n for n, line in enumerate(lines, 1) if word.search(line)]
    return {node: sorted(set(numbers)) for node, numbers in out.items() if numbers}
