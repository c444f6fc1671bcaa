"""The spine's figures on a GPU: matrix product against cuBLAS, softmax against a copy, Jacobi in time tiles against without.

    python benchmarks/spine.py [--json PATH] [--sweep]

Every result is verified first (matrix product and softmax against float64; Jacobi bit by bit against the untiled schedule).
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from measure import Bench, Ours
from spine_schedules import jacobi_naive, jacobi_steps, jacobi_tiles, softmax_rows, tiled_matmul

import explorer as ex

MATMULS: dict[int, dict[str, Any]] = {
    4096: {"bm": 128, "bn": 128, "bk": 32, "tm": 8, "stages": 2},
    2048: {"bm": 128, "bn": 128, "bk": 32, "tm": 8, "stages": 2},
    1000: {"bm": 64, "bn": 64, "bk": 16, "tm": 8, "stages": 3},
}


def difference(found: torch.Tensor, right: torch.Tensor) -> float:
    """Relative error in the Frobenius norm."""
    return float(torch.linalg.norm(found.double() - right) / torch.linalg.norm(right))


def matmuls(bench: Bench) -> None:
    """f32, TF32 off."""
    for n, options in MATMULS.items():
        a, b = (torch.randn(n, n, device="cuda") for _ in range(2))
        ours = Ours.of(tiled_matmul(n, n, n, **options), {"a": a, "b": b})
        ours()
        error = difference(ours["c"], a.double() @ b.double())
        times = bench.times_us({"ours": ours, "cublas": lambda a=a, b=b: a @ b})
        bench.row("matmul", f"f32 {n}^3", **times, ratio=times["cublas"] / times["ours"], TFLOPs=2 * n**3 / times["ours"] / 1e6,
                  error=error, schedule=str(options))


def softmaxes(bench: Bench, sweep: bool) -> None:
    """f32: the floor is one read and one write at the speed of a copy."""
    for m, n in ((16384, 4096), (16384, 1024)):
        x = torch.randn(m, n, device="cuda")
        right = torch.softmax(x.double(), -1)
        floor = 8 * m * n / bench.copy_bytes_per_us
        sizes = [t for t in ((128, 256, 512, 1024) if sweep else (256,)) if 4 * t <= n]
        candidates = {t: Ours.of(softmax_rows(m, n, t), {"x": x}) for t in sizes}
        for call in candidates.values():
            call()
        worst = max(difference(call["y"], right) for call in candidates.values())
        fns: dict[str, Callable[[], Any]] = {f"threads {t}": call for t, call in candidates.items()}
        times = bench.times_us({**fns, "torch": lambda x=x: torch.softmax(x, -1)})
        peer = times.pop("torch")
        best = min(times.values())
        bench.row("softmax", f"f32 {m}x{n}", ours=best, torch=peer, floor=floor, of_copy=floor / best, error=worst, **times)


def jacobis(bench: Bench, sweep: bool) -> None:
    """Best schedule with time tiles against best without."""
    for n, t in ((4096, 64), (8192, 64)):
        start = torch.rand(2, n, n, device="cuda")
        start[1] = start[0]

        def prepared(make: Callable[..., ex.Schedule], start: torch.Tensor = start, n: int = n, t: int = t) -> Ours:
            return Ours.of(make(t, n, n), {"u": start.clone()})

        plain = {f"rows {r}": partial(jacobi_steps, rows=r) for r in ((1, 2, 4, 8) if sweep else (4,))}
        shapes = itertools.product((4, 8, 16), (64, 128), (128,), (8,), (False, True)) if sweep else [(8, 64, 128, 8, False)]
        tiled = {f"steps {a} rows {b} threads {c}x{d}{' unrolled' * e}":
                 partial(jacobi_tiles, steps=a, rows=b, threads=c, ty=d, unroll=e) for a, b, c, d, e in shapes}
        reference = prepared(jacobi_naive)
        reference()
        wanted, figures = reference["u"].clone(), {"naive": bench.time_us(reference)}
        for group in (plain, tiled):
            for name, make in group.items():
                ours = prepared(make)
                ours()
                assert torch.equal(ours["u"], wanted), name
                figures[name] = bench.time_us(ours)
                if sweep:
                    print("   ", n, name, round(figures[name], 1), len(ours.module.launches), flush=True)
        best_plain = min(figures[k] for k in plain)
        best_tiled, name = min((figures[k], k) for k in tiled)
        bench.row("jacobi", f"f32 {n}^2 T={t}", tiled=best_tiled, untiled=best_plain, naive=figures["naive"],
                  ratio=best_plain / best_tiled, schedule=name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--sweep", action="store_true", help="try the neighbouring shapes too")
    arguments = parser.parse_args()
    bench = Bench()
    print(f"{bench.gpu}; copy {bench.copy_bytes_per_us / 1e6:.2f} TB/s", flush=True)
    matmuls(bench)
    softmaxes(bench, arguments.sweep)
    jacobis(bench, arguments.sweep)
    if arguments.json:
        bench.save(arguments.json)


if __name__ == "__main__":
    main()
