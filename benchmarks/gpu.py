"""Reductions and fused chains on a GPU, from `strategies.auto` alone, against every peer in the same process.

    python benchmarks/gpu.py [--suites reductions,fused,random,large,corners,chains] [--only TEXT,...]
                             [--peers torch,inductor,cupy,xla] [--draw 40] [--seed 0] [--search N] [--json PATH]

With `--search`, N variants of each schedule are built (explorer.strategies.choices) and timed quickly; the best is `searched`,
timed in turn with the others, and its ratio to the best peer stands beside that of `auto`.

Every result is verified against float64 first.  Times are device time by CUPTI with a cold, clean L2 cache (measure.py).
A ratio above 1 means that the explorer's kernels are faster than the best peer.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cases
import fused_programs
import searched
from reduction_program import reduction

CHAINS = ("fused", "chains", "odd_chains")
"""Suites of chains; the others are of reductions."""
DTYPES = {"f16": "float16", "f32": "float32"}


def prepare(job: tuple[str, Any]) -> Any:
    """Schedule, text and machine code of one case; runs in a process without the GPU."""
    kind, case = job
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from explorer.run.kernel import Kernel
    from explorer.run.nvrtc.compiler import compile_module
    from explorer.strategies.auto import auto

    try:
        begin = time.process_time()
        kernel = Kernel.of(auto(written(kind, case), "H200"), "H200")
        seconds = time.process_time() - begin
        return kernel.module, compile_module(kernel.module, kernel.gpu.arch).cubin, seconds
    except Exception as error:  # one case must not stop the others
        return f"{type(error).__name__}: {error}"


def written(kind: str, case: Any) -> Any:
    """The program of a case as written."""
    return getattr(fused_programs, case[1]).schedule(**case[2]) if kind in CHAINS else reduction(*case[1:])


def bound(built: Any, given: dict[str, Any]) -> Any:
    """The compiled kernels on tensors."""
    import torch
    from measure import TYPES, Ours, _engine

    module, cubin, _ = built
    tensors = {}
    for b in module.buffers:
        tensors[b.name] = given[b.name] if b.name in given else torch.empty(b.shape, dtype=TYPES[b.dtype.name], device="cuda")
        if b.name not in given:
            tensors[b.name].view(-1).view(torch.uint8).fill_(0xFF)
    return Ours(module, tensors, _engine().load(cubin, module.launches), _engine())


def error_of(found: Any, wanted: Any) -> float:
    """Largest error relative to the largest result."""
    scale = wanted.abs().max().item() or 1.0
    return float((found.double().reshape(wanted.shape) - wanted).abs().max().item() / scale)


def compiled(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Inductor's version, for these very shapes."""
    import torch

    torch._dynamo.reset()
    return torch.compile(fn, dynamic=False)


def refine(bench: Any, others: list[Any], given: dict[str, Any], ours: Any, right: Callable[[Any], bool],
           fns: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Put the fastest variant beside `auto`'s schedule; what to say of it in the row."""
    if not others:
        return {}
    fastest, label, tried, problems = searched.best(bench, others, lambda one: bound(one, given), right, ours)
    for problem in problems:
        print(f"   not searched: {problem}", flush=True)
    if label != "auto":
        fns["searched"] = fastest
    return {"variant": label, "tried": tried}


def attempt(bench: Any, fns: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Those that run."""
    good = {}
    for name, fn in fns.items():
        try:
            fn()
            good[name] = fn
        except Exception as problem:
            print(f"   {name}: {type(problem).__name__}: {str(problem)[:120]}", flush=True)
    return bench.times_us(good)


def reduction_case(bench: Any, case: cases.Case, built: Any, others: list[Any], peers: set[str], suite: str) -> None:
    import cupy
    import torch

    name, shape, axes, dtype, op = case
    x = torch.randn(shape, device="cuda").to(getattr(torch, DTYPES[dtype]))
    wanted = x.double().sum(axes) if op == "sum" else x.double().amax(axes)
    fns: dict[str, Callable[[], Any]] = {}
    error, note = math.nan, dict[str, Any]()
    if not isinstance(built, str):
        ours = bound(built, {"x": x})
        ours()
        error = error_of(ours["y"], wanted)
        fns["ours"] = ours
        note = refine(bench, others, {"x": x}, ours, lambda o: error_of(o["y"], wanted) <= max(4 * error, 1e-5), fns)

    def eager(v: Any) -> Any:
        return torch.sum(v, dim=axes) if op == "sum" else torch.amax(v, dim=axes)

    if "torch" in peers:
        fns["torch"] = lambda: eager(x)
    if "cupy" in peers:
        view = cupy.from_dlpack(x)
        fns["cupy"] = lambda: getattr(view, op)(axis=axes)
    if "inductor" in peers:
        tuned = compiled(eager)
        fns["inductor"] = lambda: tuned(x)
    if "xla" in peers:
        import jax

        array = jax.dlpack.from_dlpack(x)
        call = jax.jit(lambda v: getattr(jax.numpy, op)(v, axis=axes)).lower(array).compile()
        fns["xla"] = lambda: jax.block_until_ready(call(array))
    finish(bench, suite, name, attempt(bench, fns), error, built, x.numel() * x.element_size(), note)


def finish(bench: Any, suite: str, name: str, times: dict[str, float], error: float, built: Any, nbytes: float,
           note: dict[str, Any]) -> None:
    """One row."""
    best = min((v for k, v in times.items() if k not in ("ours", "searched")), default=math.nan)
    ratio = best / times["ours"] if "ours" in times else 0.0
    if isinstance(built, str):
        note = {"problem": built[:200]}
    else:
        note = {"schedule_s": round(built[2], 2), "launches": len(built[0].launches), **note}
    if note.get("variant") == "auto" and "ours" in times:  # the same kernels: no second time of them
        times = {**times, "searched": times["ours"]}
    if "searched" in times:
        note = {"searched_ratio": best / times["searched"], "gain": times["ours"] / times["searched"], **note}
    bench.row(suite, name, **times, floor=nbytes / bench.copy_bytes_per_us, ratio=ratio, error=error, **note)


def fused_case(bench: Any, case: tuple[str, str, dict[str, int]], built: Any, others: list[Any], peers: set[str],
               suite: str) -> None:
    import torch
    from fused_peers import peer

    name, program, sizes = case
    given, eager, outputs, nbytes, jitted = peer(program, sizes)
    fns: dict[str, Callable[[], Any]] = {}
    error, note = math.nan, dict[str, Any]()
    if not isinstance(built, str):
        ours = bound(built, given)
        ours()
        torch.cuda.synchronize()
        results = eager(*given.values())
        results = results if isinstance(results, tuple) else (results,)
        wanted = {o: r.double() for o, r in zip(outputs, results, strict=True)} if others else {}
        error = max(error_of(ours[o], r.double()) for o, r in zip(outputs, results, strict=True))
        del results
        fns["ours"] = ours
        note = refine(bench, others, given, ours,
                      lambda v: all(error_of(v[o], r) <= max(4 * error, 1e-5, torch.finfo(v[o].dtype).eps)  # one rounding
                                    for o, r in wanted.items()), fns)
        wanted = {}
    if "torch" in peers:
        fns["torch"] = lambda: eager(*given.values())
    if "inductor" in peers:
        tuned = compiled(eager)
        fns["inductor"] = lambda: tuned(*given.values())
    if "xla" in peers and jitted is not None:
        import jax

        arrays = [jax.dlpack.from_dlpack(v) for v in given.values()]
        call = jax.jit(jitted).lower(*arrays).compile()
        fns["xla"] = lambda: jax.block_until_ready(call(*arrays))
    finish(bench, suite, name, attempt(bench, fns), error, built, nbytes, note)


def summary(bench: Any) -> None:
    """Geometric mean and worst case of each suite; of the searched schedules too, and what the search gained."""
    for suite in dict.fromkeys(r["suite"] for r in bench.rows):
        for key in ("ratio", "searched_ratio", "gain"):
            ratios = {r["name"]: r[key] for r in bench.rows if r["suite"] == suite and not math.isnan(r.get(key, math.nan))}
            good = [v for v in ratios.values() if v > 0]
            if not good and key != "ratio":
                continue
            worst = sorted(ratios, key=ratios.__getitem__)[:5] if key != "gain" else sorted(ratios, key=lambda n: -ratios[n])[:5]
            mean = math.exp(sum(map(math.log, good)) / len(good)) if good else math.nan
            title = {"ratio": suite, "searched_ratio": f"{suite}, searched", "gain": f"{suite}, gain of the search"}[key]
            print(f"{title}: {len(good)} of {len(ratios)} run, geometric mean {mean:.3f}, "
                  + ("most " if key == "gain" else "worst ") + ", ".join(f"{n} {ratios[n]:.3f}" for n in worst), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", default="reductions,fused")
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", default="torch,inductor,cupy,xla")
    parser.add_argument("--draw", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--search", type=int, default=0, metavar="N", help="variants of each schedule to time")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    suites, peers = arguments.suites.split(","), set(arguments.peers.split(","))
    jobs: list[tuple[str, Any]] = []
    for suite in suites:
        found: list[Any] = {
            "reductions": cases.REDUCTIONS, "fused": cases.FUSED, "random": cases.drawn(arguments.draw, arguments.seed),
            "large": cases.drawn(arguments.draw, arguments.seed, least=cases.LARGE),
            "corners": cases.CORNERS,
            "odd_rows": cases.ODD_ROWS, "odd_chains": cases.ODD_CHAINS,
            "chains": cases.drawn_chains(arguments.draw, arguments.seed),
        }[suite]
        jobs += [(suite, case) for case in found if any(part in case[0] for part in arguments.only.split(","))]
    with multiprocessing.get_context("fork").Pool(min(15, os.cpu_count() or 1)) as pool:  # ended, not joined, when left
        first = searched.Builds(pool, prepare, [[job] for job in jobs])
        more = searched.Builds(pool, searched.variant, [
            [(partial(written, *job), n, arguments.search) for n in range(1, arguments.search + 1)] for job in jobs])
        built = [one for (one,) in first.collect()]
        others = more.collect()
    os.environ.setdefault("CUPY_ACCELERATORS", "cub")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    from measure import Bench, torch

    torch._dynamo.config.cache_size_limit = 1024
    bench = Bench(repeats=7)
    print(f"{bench.gpu}; copy {bench.copy_bytes_per_us / 1e6:.2f} TB/s; {len(jobs)} cases", flush=True)
    for (suite, case), one, several in zip(jobs, built, others, strict=True):
        run = fused_case if suite in CHAINS else reduction_case
        run(bench, case, one, several, peers, suite)
        torch.cuda.empty_cache()
        if arguments.json:
            bench.save(arguments.json)
    summary(bench)


if __name__ == "__main__":
    main()
