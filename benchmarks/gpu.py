"""Programs on a GPU, from `strategies.auto` alone, against every peer in the same process.

    python benchmarks/gpu.py [--suites reductions,fused,random,large,corners,chains,…] [--only TEXT,...]
                             [--peers torch,inductor,triton,cupy,xla] [--draw N] [--seed 0] [--search N] [--json PATH]
                             [--limit S] [--stop S] [--resume PATH]

Reductions and fused chains are those of cases.py, against PyTorch, Inductor, CuPy and XLA (memory_bound.py); `matmul`, `bmm`,
`orders`, `f32`, `few_rows`, `reduced`, `triangles`, `conv`, `conv_nhwc`, `conv_grouped`, `conv_transposed`, `conv_weights`,
`epilogue`, `gelu_tanh`, `attention` and `random_products` those of product_cases.py, against cuBLAS, cuDNN and SDPA (`torch`),
Inductor's max-autotune, and Triton's tutorials (compute_bound.py).

With `--search`, N variants of each schedule are built (explorer.strategies.choices) and timed quickly; the best is `searched`,
timed interleaved with the others, and its ratio to the best peer stands beside that of `auto`.

Every result is verified against float64 first.  Times are device time by CUPTI with a cold, clean L2 cache (measure.py).
A ratio above 1 means that the explorer's kernels are faster than the best peer.  After `--stop` seconds no further case begins,
and variants that are not built in half of them are left out; `--resume` takes over the rows of an earlier run on the same kind of
GPU and measures only what they lack.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cases
import product_cases
import searched
from against import complain, finish, summary
from building import CHAINS, prepare, processes, written
from compute_bound import product_case
from memory_bound import fused_case, reduction_case

DRAW, DRAW_PRODUCTS = 40, 30
"""How many random cases there are, unless it is said."""


def suites(draw: int | None, seed: int) -> dict[str, list[Any]]:
    """The cases of every suite by its name."""
    count = draw or DRAW
    return {
        "reductions": cases.REDUCTIONS, "fused": cases.FUSED, "random": cases.drawn(count, seed),
        "large": cases.drawn(count, seed, least=cases.LARGE),
        "corners": cases.CORNERS,
        "odd_rows": cases.ODD_ROWS, "odd_chains": cases.ODD_CHAINS,
        "chains": cases.drawn_chains(count, seed),
        **product_cases.suites(draw or DRAW_PRODUCTS, seed),
    }


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default="reductions,fused")
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", default="torch,inductor,cupy,xla")
    parser.add_argument("--draw", type=int, help=f"random cases: {DRAW}, of products {DRAW_PRODUCTS}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--search", type=int, default=0, metavar="N", help="variants of each schedule to time")
    parser.add_argument("--json")
    parser.add_argument("--limit", type=int, default=60, metavar="S", help="seconds that one case may take to build")
    parser.add_argument("--stop", type=float, default=math.inf, metavar="S", help="seconds after which no further case begins")
    parser.add_argument("--resume", metavar="PATH", help="rows of an earlier run, which are kept")
    return parser.parse_args()


def build(jobs: list[tuple[str, Any]], search: int, limit_s: int, stop_s: float) -> tuple[list[Any], list[list[Any]]]:
    """Of each case its kernels, or in words why there are none; and its variants: those that are there in half of `stop_s`."""
    began = time.monotonic()
    with multiprocessing.get_context("fork").Pool(processes()) as pool:  # ended, not joined, when left
        first = searched.Builds(pool, partial(prepare, limit_s=limit_s), [[job] for job in jobs])
        more = searched.Builds(pool, searched.variant, [
            [(partial(written, *job), n, search) for n in range(1, search + 1)] for job in jobs])
        whole_s = limit_s * (2 + len(jobs) // processes())
        built = [one for (one,) in first.collect(max(searched.CASE_S, 2.0 * limit_s), whole_s)]
        return built, more.collect(whole_s=max(0.0, stop_s / 2 - (time.monotonic() - began)))


def alive() -> bool:
    """Whether the GPU still takes work: after a fault it takes none from this process."""
    import torch

    try:
        torch.zeros(1, device="cuda").add_(1).item()
    except Exception as problem:
        complain("GPU", problem)
        return False
    return True


def main() -> None:
    began, arguments = time.monotonic(), parsed()
    peers, found = set(arguments.peers.split(",")), suites(arguments.draw, arguments.seed)
    earlier = json.loads(Path(arguments.resume).read_text(encoding="utf-8")) if arguments.resume else {"rows": []}
    done = {(row["suite"], row["name"]) for row in earlier["rows"]}
    jobs = [(suite, case) for suite in arguments.suites.split(",") for case in found[suite]
            if any(part in case[0] for part in arguments.only.split(",")) and (suite, case[0]) not in done]
    built, others = build(jobs, arguments.search, arguments.limit, arguments.stop)
    os.environ.setdefault("CUPY_ACCELERATORS", "cub")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    from measure import Bench, torch

    torch._dynamo.config.cache_size_limit = 1024
    quiet()
    bench = Bench(repeats=7)
    if earlier.get("gpu", bench.gpu) != bench.gpu:
        sys.exit(f"{arguments.resume} is of {earlier['gpu']}, and this is {bench.gpu}")
    bench.rows += earlier["rows"]
    print(f"{bench.gpu}; copy {bench.copy_bytes_per_us / 1e6:.2f} TB/s; {len(jobs)} cases, {len(done)} measured before; "
          f"built in {time.monotonic() - began:.0f} s", flush=True)
    for (suite, case), one, several in zip(jobs, built, others, strict=True):
        if time.monotonic() - began > arguments.stop:
            print(f"stopped before {suite} {case[0]}", flush=True)
            break
        run = product_case if isinstance(case, product_cases.KINDS) else fused_case if suite in CHAINS else reduction_case
        try:
            run(bench, case, one, several, peers, suite)
        except Exception as problem:  # one case must not stop the others
            complain(case[0], problem)
            finish(bench, suite, case[0], {}, math.nan, f"{type(problem).__name__}: {problem}", math.nan, {})
        if not alive():
            print("the GPU takes no more work from this process; --resume goes on", flush=True)
            break
        torch.cuda.empty_cache()
        if arguments.json:
            bench.save(arguments.json)
    if arguments.json:
        bench.save(arguments.json)
    summary(bench)
    print(f"{time.monotonic() - began:.0f} s", flush=True)


def quiet() -> None:
    """No table on the screen for every choice that Inductor tries."""
    try:
        from torch._inductor import select_algorithm

        select_algorithm.PRINT_AUTOTUNE = False
    except Exception as problem:
        complain("quiet", problem)


if __name__ == "__main__":
    main()
