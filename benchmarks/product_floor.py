"""What each case of product_cases.py computes and moves, and how fast it could be by the roofline; with results, how near we are.

    python benchmarks/product_floor.py [--gpu H200] [--suites matmul,conv,…] [--draw 30] [--seed 0] [RESULTS.json]

The floor is the larger of two times: the operations at the rate of the catalogue (``f16`` by tensor cores, as a large product of
the library reaches it where that is known, ``f32`` without) and each input and output moved once.  A share is of that peak rate:
at the floor, of ours, of the best peer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from product_cases import Case, suites

from explorer.gpu.roofline import roofline
from explorer.gpu.spec import Gpu, gpu


def share(tflops: float | None, peak: float) -> str:
    """A rate and its share of the peak."""
    return f"{tflops:.1f} ({tflops * 1e12 / peak:.1%})" if tflops else "—"


def line(case: Case, on: Gpu, row: dict[str, Any]) -> str:
    """One case."""
    roof = roofline(on, case.nbytes, case.flops, case.arithmetic)
    cells = [case.name, f"{case.flops / 1e9:.3g}", f"{case.nbytes / 1e6:.3g}", f"{roof.intensity:.0f}", f"{roof.floor_us:.2f}",
             roof.bound, f"{roof.compute_us / roof.floor_us:.0%}"]
    if row:
        cells += [share(row.get(key), roof.peak_flops_per_s) for key in ("TFLOPs", "peer_TFLOPs")]
    return "| " + " | ".join(cells) + " |"


def lines(cases: list[Case], on: Gpu, rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    """A suite's table."""
    head = ["case", "GFLOP", "MB", "FLOP/B", "floor µs", "bound", "of the peak at the floor"]
    head += ["ours, TFLOP/s", "best peer, TFLOP/s"] * bool(rows)
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "--:|" * 4 + "---|" + "--:|" * (len(head) - 6)
    for case in cases:
        if not rows or case.name in rows:
            yield line(case, on, rows.get(case.name, {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?")
    parser.add_argument("--gpu", help="of the results, or the H200")
    parser.add_argument("--suites", default="")
    parser.add_argument("--draw", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    data = json.loads(Path(arguments.results).read_text(encoding="utf-8")) if arguments.results else {}
    on = gpu(arguments.gpu or data.get("gpu", "H200"))
    for suite, cases in suites(arguments.draw, arguments.seed).items():
        rows = {row["name"]: row for row in data.get("rows", ()) if row["suite"] == suite}
        if (suite in arguments.suites.split(",") or not arguments.suites) and (rows or not data):
            print(f"\n## {suite}, {on}\n", *lines(cases, on, rows), sep="\n")


if __name__ == "__main__":
    main()
