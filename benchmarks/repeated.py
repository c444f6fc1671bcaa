"""Every reduction over blocks, a thousand times over poisoned memory: do the deterministic ones give the same bits each time?

    python benchmarks/repeated.py [runs] [--write]

Before each run the workspaces and the outputs are filled with 0xFF bytes; the counters of finished blocks and of barriers are the
module's own and are never touched, so each run also shows that the one before left them ready.  Deterministic ways must give the
same bits in every run, atomics results within the tolerance of the check; both are compared with the float64 reference.
Prints the mismatches of each way (0 is the aim) and exits with their number.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cupy
import numpy as np
from multiblock_schedules import DETERMINISTIC, schedules

from explorer.run.cuda.cupy_engine import CupyEngine
from explorer.run.inputs.arguments import arguments
from explorer.run.kernel import Kernel
from explorer.run.nvrtc.compiler import compile_module
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import references
from explorer.schedule import Schedule

RUNS = 1000
RESULTS = Path(__file__).resolve().parent / "results" / "repeated.json"


def repeated(engine: CupyEngine, schedule: Schedule, runs: int, same_bits: bool) -> dict[str, Any]:
    """Run a schedule again and again; how often the bits differed from the first run, and the outputs from the reference."""
    kernel = Kernel.of(schedule)
    program = engine.load(compile_module(kernel.module, kernel.gpu.arch).cubin, kernel.launches)
    held: dict[str, Any] = dict(arguments(schedule.source, None, 0))
    expected, _ = references(schedule.source, held)
    memory = {b.name: engine.allocate(max(b.nbytes, 1)) for b in kernel.module.buffers}
    for b in kernel.module.buffers:
        if b.kind in ("in", "inout"):
            engine.write(memory[b.name], 0, np.ascontiguousarray(held[b.name]))
    outputs = [b for b in kernel.module.buffers if b.kind == "out"]
    first: dict[str, bytes] = {}
    other, wrong, seen = 0, 0, set()
    for _ in range(runs):
        for b in kernel.module.buffers:
            if b.kind in ("out", "workspace"):
                engine.fill(memory[b.name], 0, b.nbytes, 0xFF)
        for launch in kernel.launches:
            engine.launch(program, launch, [(memory[name], 0) for name in launch.arguments])
        engine.synchronize()
        got = {}
        for b in outputs:
            got[b.name] = np.empty(b.shape, b.dtype.numpy)
            engine.read(memory[b.name], 0, got[b.name])
        bits = {name: value.tobytes() for name, value in got.items()}
        new = tuple(bits.values()) not in seen
        seen.add(tuple(bits.values()))
        first = first or bits
        other += bits != first
        if new:  # what was compared before need not be compared again
            bad = [c for c in check_outputs(schedule.source, got, *expected) if not c]
        wrong += bool(bad)
    return {"runs": runs, "launches": len(kernel.launches), "other_bits": other, "different_results": len(seen), "wrong": wrong,
            "mismatches": wrong + (other if same_bits else 0)}


def main() -> int:
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    engine, rows = CupyEngine(), []
    print(f"{'reduction':10s} {'how':13s} {'launches':>8s} {'runs':>6s} {'other bits':>10s} {'results':>8s} {'wrong':>6s} "
          f"{'mismatches':>10s}")
    for name, how, schedule in schedules():
        row = repeated(engine, schedule, numbers[0] if numbers else RUNS, how in DETERMINISTIC)
        rows.append({"reduction": name, "how": how, **row})
        print(f"{name:10s} {how:13s} {row['launches']:8d} {row['runs']:6d} {row['other_bits']:10d} {row['different_results']:8d} "
              f"{row['wrong']:6d} {row['mismatches']:10d}", flush=True)
    total = sum(r["mismatches"] for r in rows)
    gpu = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{total} mismatches in {sum(r['runs'] for r in rows):,} runs on {gpu}")
    if "--write" in sys.argv:
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    return min(total, 100)


if __name__ == "__main__":
    sys.exit(main())
