"""Time many spreads of many random reductions: what the constants of the reductions' model are fitted to (reduction_fit.py).

    python benchmarks/reduction_sweep.py FILE.csv.gz [--problems 300] [--each 16] [--seed 1] [--least N] [--most N]
                                         [--kind all] [--committee FILE.json]

The problems are those of cases.drawn, rows and columns with few results, many short rows, and rows of odd length.  For each, the
spreads that the
model likes best are timed, some more in clusters, some of each kind, and others that it does not call much slower; with a
committee of constants (of reduction_fit.py), what each of these likes best.  Every result is compared with PyTorch's; rows are
added to the file.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import multiprocessing
import os
import random
import sys
import time
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cases
from reduction_program import reduction

HEAD = ("shape", "axes", "dtype", "op", "x", "y", "vector", "unroll", "parts", "flat", "join", "nested", "period", "kept", "each",
        "staged", "us")
NEAR = 1.7
"""Spreads that take so many times the cheapest, by the model, are not timed."""
WRONG = 2e-3
"""Error relative to the largest result."""


def problems(count: int, seed: int, least: int, most: int, kind: str) -> list[cases.Case]:
    """Random reductions, by `seed`: of one kind, or as many of each."""
    kinds = [kind] if kind != "all" else ["drawn", "few", "short", "odd"]
    rng, share = random.Random(seed), -(-count // len(kinds))
    drawn = cases.drawn(share, 1000 + seed, least=least, most=most) if "drawn" in kinds else []
    few = [_few(rng, least, most) for _ in range(share)] if "few" in kinds else []
    short = [_short(rng, least, most) for _ in range(share)] if "short" in kinds else []
    odd = [_odd(rng, least, most) for _ in range(share)] if "odd" in kinds else []
    return [*drawn, *few, *short, *odd][:count]


def _few(rng: random.Random, least: int, most: int) -> cases.Case:
    """Rows and columns with few results."""
    results, inner = int(2 ** rng.uniform(0, 11)), rng.randint(2, 130)
    length = max(2, int(2 ** rng.uniform(math.log2(least), math.log2(most))) // results)
    rest = max(2, length // inner)
    return _case(rng, [((length, results), (0,)), ((results, length), (1,)), ((rest, results, inner), (0, 2)),
                       ((inner, rest, results), (0, 1))])


def _short(rng: random.Random, least: int, most: int) -> cases.Case:
    """Many rows of a few elements, some of them several times over."""
    row, rows = int(2 ** rng.uniform(1, 7)), int(2 ** rng.uniform(math.log2(least), math.log2(most)))
    outside = int(2 ** rng.uniform(1, 7))
    results = max(2, rows // (row * outside)) // 8 * 8 + rng.choice((0, 0, 1, 4))
    return _case(rng, [((max(2, rows // row), row), (1,)), ((max(2, rows // row), row), (1,)), ((outside, results, row), (0, 2)),
                       ((results, outside, row), (0, 2))])


def _odd(rng: random.Random, least: int, most: int) -> cases.Case:
    """Rows of an odd length of some hundred to some ten thousand elements, next to a power of two now and then."""
    row = (1 << rng.randint(9, 14)) + rng.choice((-1, 1)) if rng.random() < 0.3 else int(2 ** rng.uniform(8.5, 14.5)) | 1
    rows = max(2, int(2 ** rng.uniform(math.log2(least), math.log2(most))) // row)
    return ("", (rows, row), (1,), rng.choice(("f16", "f16", "f32")), rng.choice(("sum", "max")))


def _case(rng: random.Random, choices: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> cases.Case:
    """One of some shapes with axes, of some type and operation."""
    return ("", *rng.choice(choices), rng.choice(("f16", "f32")), rng.choice(("sum", "max")))


def picks(case: cases.Case, each: int, committee: list[dict[str, float]]) -> list[Any]:
    """The spreads to time."""
    from explorer.gpu.spec import default_gpu
    from explorer.strategies.reductions import priced, reduction_form
    from explorer.strategies.reductions.model import Constants

    written = reduction(*case[1:])
    form = reduction_form(written, written.plan.kernels[0].id)
    if form is None:
        return []
    if committee:
        each_likes = [priced(written, form, default_gpu(), Constants(**c)) for c in committee]
        return list(dict.fromkeys(found[rank][0] for rank in range(each) for found in each_likes if rank < len(found)))[:each]
    found, rng = priced(written, form, default_gpu()), random.Random(str(case))
    near = [shape for shape, us in found if us < NEAR * found[0][1]]
    out = near[: each // 2]
    kinds = sorted({_kind(s) for s in near})
    for pool in ([s for s in near if s.clustered], *([s for s in near if _kind(s) == k] for k in kinds)):
        left = [s for s in pool if s not in out]
        out += [*left[:2], *rng.sample(left[2:], min(1, len(left[2:])))]
    left = [s for s in near if s not in out]
    return out + rng.sample(left, max(0, min(len(left), each - len(out))))


def _kind(s: Any) -> tuple[Any, ...]:
    """What a spread has in common with others."""
    return s.vector, s.period, s.kept, s.flat, s.each, s.staged


def built(job: tuple[cases.Case, Any]) -> Any:
    """Text and machine code of one spread, or why not; runs in a process without the GPU."""
    from explorer.run.kernel import Kernel
    from explorer.run.nvrtc.compiler import compile_module
    from explorer.strategies.default import default
    from explorer.strategies.reductions import reduce

    case, shape = job
    try:
        kernel = Kernel.of(default(reduce(reduction(*case[1:]), shape=shape)), "H200")
        return kernel.module, compile_module(kernel.module, kernel.gpu.arch).cubin, 0.0
    except Exception as error:  # one spread must not stop the others
        return f"{type(error).__name__}: {error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    for name, value in (("problems", 300), ("each", 16), ("seed", 1), ("least", 1 << 14), ("most", 1 << 26), ("limit", 300)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--committee", type=Path)
    parser.add_argument("--kind", choices=("all", "drawn", "few", "short", "odd"), default="all")
    a = parser.parse_args()
    committee = json.loads(a.committee.read_text()) if a.committee else []
    end = time.monotonic() + a.limit
    todo = problems(a.problems, a.seed, a.least, a.most, a.kind)
    pool, begun = multiprocessing.get_context("fork").Pool(min(15, os.cpu_count() or 1)), Path(a.file).exists()
    with pool, gzip.open(a.file, "at", newline="") as file:
        chosen = pool.map(partial(picks, each=a.each, committee=committee), todo)
        jobs = [(case, shape) for case, found in zip(todo, chosen, strict=True) for shape in found]
        made = pool.imap(built, jobs, chunksize=4)
        import torch
        from against import bound, error_of
        from measure import Bench
        from memory_bound import DTYPES
        from searched import quick

        bench, rows, x, wanted, last = Bench(), csv.writer(file, lineterminator="\n"), None, None, None
        if not begun:
            rows.writerow(HEAD)
        for case, shape in jobs:
            one = next(made)
            if time.monotonic() > end:
                break
            if isinstance(one, str):
                print("not built:", case, shape, one[:200], flush=True)
                continue
            if case is not last:
                last, (_, size, axes, dtype, op) = case, case
                x = torch.randn(size, device="cuda").to(getattr(torch, DTYPES[dtype]))
                wanted = x.double().sum(axes) if op == "sum" else x.double().amax(axes)
            ours = bound(one, {"x": x})
            ours()
            error = error_of(ours["y"], wanted)
            if not error < WRONG:
                print("WRONG:", case, shape, error, flush=True)
                continue
            spread = [int(v) if isinstance(v, bool) else v for v in astuple(shape)]
            named = ["x".join(map(str, case[1])), " ".join(map(str, case[2])), *case[3:]]
            rows.writerow([*named, *spread, f"{quick(bench, ours):.3f}"])


if __name__ == "__main__":
    main()
