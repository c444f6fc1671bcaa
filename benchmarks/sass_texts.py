"""The CUDA text of every schedule that `sass.py` measures, of the tree in the current folder, as JSON lines on standard output.

    cd TREE && python /somewhere/benchmarks/sass_texts.py

The schedules are that tree's own: `schedules()` of its `benchmarks/sanitize.py` (every workload's default and automatic schedule
at its tiny sizes among them), and those two of every workload at its typical sizes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

TREE = Path.cwd()
sys.path[:0] = [str(TREE / "benchmarks"), str(TREE)]


def schedules() -> Iterator[tuple[str, Any]]:
    """Name and schedule."""
    import sanitize

    from explorer import workloads
    from explorer.strategies.auto import auto
    from explorer.strategies.default import default

    yield from sanitize.schedules()
    for name in workloads.names():
        work = workloads.get(name)
        plain = _definition(work).schedule(**work.typical)
        yield f"{name}, default, typical sizes", default(plain)
        yield f"{name}, auto, typical sizes", auto(plain)


def _definition(work: Any) -> Any:
    """The workload's program, ready to schedule; in older trees `into` makes it so."""
    if not hasattr(work.definition, "into"):
        return work.definition
    from explorer.api import Definition

    return work.definition.into(Definition)


def main() -> None:
    import explorer
    from explorer.errors import ExplorerError
    from explorer.run.kernel import Kernel

    assert Path(explorer.__file__).is_relative_to(TREE), f"imported {explorer.__file__}, not the tree in {TREE}"
    for name, schedule in schedules():
        case: dict[str, Any] = {"case": name}
        try:
            module = Kernel.of(schedule).module
            dynamic: dict[str, int] = {}
            for launch in module.launches:
                dynamic[launch.kernel] = max(dynamic.get(launch.kernel, 0), launch.dynamic_shared_bytes)
            case |= {"text": module.text, "dynamic": dynamic}
        except ExplorerError as error:
            case["refused"] = str(error)
        print(json.dumps(case), file=OUT, flush=True)


if __name__ == "__main__":
    OUT = sys.stdout
    with redirect_stdout(sys.stderr):
        main()
