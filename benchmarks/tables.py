"""Tables of the results of gpu.py, for people.

python benchmarks/tables.py benchmarks/results/gpu_h200.json > benchmarks/results/gpu_h200.md
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

PEERS = ("torch", "inductor", "cupy", "xla")
TITLES = {"reductions": "Public reductions", "fused": "Fused chains", "random": "Random shapes (seed 0)",
          "large": "Random shapes of a million elements and more (seed 0)", "chains": "Fused chains of random sizes (seed 0)",
          "corners": "Shapes at the ends of what there is", "odd_rows": "Rows of odd length in f16, and a middle axis of 8 GB",
          "odd_chains": "Chains of odd rows and of short ones; element by element over 10⁹",
          "random_4242": "Random shapes (seed 4242)", "chains_4242": "Fused chains of random sizes (seed 4242)"}


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Each case with the best peer, and how much faster the explorer's kernels are."""
    lines = ["| case | ours µs | best peer µs | ratio | after the search | floor µs | kernels | schedule s |",
             "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for row in rows:
        peers = {name: row[name] for name in PEERS if name in row}
        best = min(peers, key=peers.__getitem__)
        lines.append(f"| {row['name']} | {row['ours']:.2f} | {best} {peers[best]:.2f} | {row['ratio']:.2f} "
                     f"| {format(row['searched_ratio'], '.2f') if 'searched_ratio' in row else '—'} | {row['floor']:.2f} "
                     f"| {row['launches']} | {row['schedule_s']:.2f} |")
    return lines


def geometric(ratios: list[float]) -> float:
    """Their geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def summary(suite: str, rows: list[dict[str, Any]]) -> str:
    """Geometric mean, and the cases behind; the same after the measured search."""
    ratios = [row["ratio"] for row in rows]
    mean = geometric(ratios)
    searched = [row["searched_ratio"] for row in rows if "searched_ratio" in row]
    behind = [f"{row['name']} {row['ratio']:.2f}" for row in sorted(rows, key=lambda r: r["ratio"]) if row["ratio"] < 0.95]
    return (f"{len(rows)} cases; geometric mean {mean:.3f} of the best peer, worst {min(ratios):.2f}"
            + (f"; below 0.95: {', '.join(behind)}." if behind else "; none below 0.95.")
            + (f"  After the search: {geometric(searched):.3f}, worst {min(searched):.2f}." if searched else ""))


def main() -> None:
    data = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(f"# `strategies.auto` against the best of PyTorch, Inductor, CuPy and XLA: {data['gpu']}\n")
    print(f"Copy {data['copy_TBps']} TB/s; PyTorch {data['torch']}, CuPy {data['cupy']}.  Above 1: faster than the best peer.")
    for suite in dict.fromkeys(row["suite"] for row in data["rows"]):
        rows = [row for row in data["rows"] if row["suite"] == suite]
        print(f"\n## {TITLES.get(suite, suite)}\n\n{summary(suite, rows)}\n")
        print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
