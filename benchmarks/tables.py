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
          "random_4242": "Random shapes (seed 4242)", "chains_4242": "Fused chains of random sizes (seed 4242)",
          "matmul": "Products", "bmm": "Batched products", "orders": "Products of transposed factors", "f32": "Products in f32",
          "conv": "Convolution, bias and ReLU, NCHW", "conv_nhwc": "The same, channels last",
          "conv_grouped": "Convolutions of 32 groups", "conv_transposed": "Transposed convolutions",
          "conv_weights": "Gradients of a convolution's weights",
          "few_rows": "Products of few rows or columns", "reduced": "Sums of the rows of a product",
          "triangles": "Products by triangles",
          "epilogue": "Products and what follows them",
          "gelu_tanh": "Products and the GELU with tanh", "attention": "Attention",
          "random_products": "Products of random sizes (seed 0)"}


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Each case with the best peer, and how much faster the explorer's kernels are; rates where arithmetic counts."""
    rates = any("peer_TFLOPs" in row for row in rows)
    lines = ["| case | ours µs | best peer µs | ratio | after the search | floor µs |" + " ours, peer TFLOP/s |" * rates
             + " kernels | schedule s |", "|---|" + "--:|" * (7 + rates)]
    for row in rows:
        peers = {name: row[name] for name in row if name.partition("_")[0] in PEERS}
        best = row.get("peer") or min(peers, key=peers.__getitem__, default=None)
        cells = [row["name"], cell(row, "ours"), f"{best} {row[best]:.2f}" if best else "—",
                 row.get("problem", "").partition(":")[0] or cell(row, "ratio"), cell(row, "searched_ratio"), cell(row, "floor"),
                 *[f"{cell(row, 'TFLOPs', '.3g')}, {cell(row, 'peer_TFLOPs', '.3g')}"] * rates,
                 str(row.get("launches", "—")), cell(row, "schedule_s")]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def cell(row: dict[str, Any], key: str, form: str = ".2f") -> str:
    """A number of a row, in three digits where it is small, or a dash."""
    value = row.get(key)
    return "—" if value is None or math.isnan(value) else format(value, ".3g" if key == "ratio" and value < 0.1 else form)


def geometric(ratios: list[float]) -> float:
    """Their geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def summary(suite: str, rows: list[dict[str, Any]]) -> str:
    """Geometric mean, and the cases behind; the same after the measured search."""
    run = [row for row in rows if row["ratio"] > 0]  # 0 where ours did not run, NaN where no peer did
    ratios = [row["ratio"] for row in run]
    if not ratios:
        return f"None of {len(rows)} cases run."
    mean = geometric(ratios)
    searched = [row["searched_ratio"] for row in rows if "searched_ratio" in row]
    behind = [f"{row['name']} {cell(row, 'ratio')}" for row in sorted(run, key=lambda r: r["ratio"]) if row["ratio"] < 0.95]
    count = f"{len(rows)} cases" + f", {len(run)} of them run" * (len(run) < len(rows))
    return (f"{count}; geometric mean {mean:.3f} of the best peer, worst {min(ratios):.2f}"
            + (f"; below 0.95: {', '.join(behind)}." if behind else "; none below 0.95.")
            + (f"  After the search: {geometric(searched):.3f}, worst {min(searched):.2f}." if searched else ""))


def main() -> None:
    data = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    libraries = "PyTorch and Inductor" if any("peer_TFLOPs" in row for row in data["rows"]) else "PyTorch, Inductor, CuPy and XLA"
    print(f"# `strategies.auto` against the best of {libraries}: {data['gpu']}\n")
    print(f"Copy {data['copy_TBps']} TB/s; PyTorch {data['torch']}, CuPy {data['cupy']}.  Above 1: faster than the best peer.")
    for suite in dict.fromkeys(row["suite"] for row in data["rows"]):
        rows = [row for row in data["rows"] if row["suite"] == suite]
        print(f"\n## {TITLES.get(suite, suite)}\n\n{summary(suite, rows)}\n")
        print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
