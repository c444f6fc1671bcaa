"""Registers and spills of `auto`'s kernels for the suites of products, for several GPUs.  Needs no GPU: NVRTC alone.

    python benchmarks/spills.py [--gpus H200,A100-80GB] [--suites matmul,conv] [--jobs 2]

Each case is scheduled for a GPU and compiled for its architecture.  Cases that results/spills.json has are not made again, so
the script can be stopped and run again; ``--anew`` makes all of them.  It writes results/spills.json and the table
results/spills.md, and exits with 1 where a kernel spills, or a case has no kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import product_cases  # noqa: E402
from building import deadline, written  # noqa: E402

RESULT, PAGE = HERE / "results" / "spills.json", HERE / "results" / "spills.md"
GPUS = ("T4", "A100-80GB", "RTX 4090", "H200", "RTX 5090")
DRAWN, SEED = 30, 0
"""As `gpu.py` draws the random products."""
LIMIT_S = 300
"""For one case: its schedule, text and machine code."""
Row = dict[str, Any]


def compiled(suite: str, case: Any, name: str) -> Row:
    """Registers and spilled bytes of a thread, the most of any kernel of one case."""
    from explorer.gpu.spec import catalogue
    from explorer.kernel.emit import emit
    from explorer.run.nvrtc.compiler import compile_module
    from explorer.strategies.auto import auto

    gpu = catalogue()[name]
    row: Row = {"suite": suite, "case": case[0], "gpu": name, "arch": gpu.arch}
    try:
        with deadline(LIMIT_S):
            made = compile_module(emit(auto(written(suite, case), gpu=gpu).plan, arch=gpu.arch), gpu.arch)
    except Exception as problem:
        return row | {"error": f"{type(problem).__name__}: {problem}".splitlines()[0]}
    kernels = made.kernels.values()
    return row | {"registers": max(k.registers for k in kernels),
                  "spilled": max(k.spill_store_bytes + k.spill_load_bytes for k in kernels)}


def page(rows: list[Row]) -> Iterator[str]:
    """The table: suites and GPUs, and below it every case that spills or has no kernel."""
    from explorer.run.nvrtc.compiler import nvrtc_version

    version = ".".join(map(str, nvrtc_version()))
    yield from ("# Registers and spills", "", "`auto`'s kernels for the suites of products, scheduled for each GPU and compiled "
                f"for its architecture by NVRTC {version}, whose choice of registers is another one in each version; `python "
                "benchmarks/spills.py` makes this page.  A cell has the cases without spills of all cases, and the most "
                "registers of a thread.", "")
    gpus = [g for g in GPUS if any(r["gpu"] == g for r in rows)]
    archs = {r["gpu"]: r["arch"] for r in rows}
    yield f"| suite | {' | '.join(f'{g}, {archs[g]}' for g in gpus)} |"
    yield "|---|" + "--:|" * len(gpus)
    for suite in dict.fromkeys(r["suite"] for r in rows):
        cells = []
        for gpu in gpus:
            own = [r for r in rows if (r["suite"], r["gpu"]) == (suite, gpu)]
            good = [r for r in own if r.get("spilled") == 0]
            cells.append(f"{len(good)} of {len(own)}, {max((r.get('registers', 0) for r in own), default=0)}" if own else "")
        yield f"| `{suite}` | {' | '.join(cells)} |"
    bad = [r for r in rows if r.get("spilled") != 0]
    yield from ("", f"{len(bad)} of {len(rows)} spill or have no kernel{':' if bad else '.'}", "")
    for r in bad:
        what = r.get("error") or f"{r['spilled']} bytes in a thread"
        yield f"- {r['suite']}, {r['case']}, {r['gpu']}: {what}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default=",".join(GPUS))
    parser.add_argument("--suites", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--anew", action="store_true")
    arguments = parser.parse_args()
    suites = product_cases.suites(DRAWN, SEED)
    rows: list[Row] = [] if arguments.anew or not RESULT.exists() else json.loads(RESULT.read_text(encoding="utf-8"))
    done = {(r["suite"], r["case"], r["gpu"]) for r in rows}
    chosen = arguments.suites.split(",") if arguments.suites else list(suites)
    jobs = [(suite, case, gpu) for gpu in arguments.gpus.split(",") for suite in chosen for case in suites[suite]
            if (suite, case[0], gpu) not in done]
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        for number, future in enumerate(as_completed([pool.submit(compiled, *job) for job in jobs]), 1):
            rows.append(future.result())
            print(f"{number} of {len(jobs)}: {rows[-1]}", flush=True)
            rows.sort(key=lambda r: (list(suites).index(r["suite"]), GPUS.index(r["gpu"]), r["case"]))
            RESULT.write_text("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n", encoding="utf-8")
            PAGE.write_text("\n".join(page(rows)) + "\n", encoding="utf-8")
    return int(any(r.get("spilled") != 0 for r in rows))


if __name__ == "__main__":
    sys.exit(main())
