"""One case against its peers: kernels on tensors, what is right, what runs, the best variant, and the row of the table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import searched

OURS = ("ours", "searched")
OTHER = ("torch_other_gelu",)
"""Peers that compute another function, near to the case's: timed in the same run, but no measure of ours."""


def bound(built: Any, given: dict[str, Any]) -> Any:
    """The compiled kernels on tensors; what they write is poisoned."""
    import torch
    from measure import TYPES, Ours, _engine

    module, cubin, *_ = built
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
    """Times, in microseconds, of the calls that run."""
    good = {}
    for name, fn in fns.items():
        try:
            fn()
            good[name] = fn
        except Exception as problem:
            complain(name, problem)
    return bench.times_us(good)


def complain(name: str, problem: Exception) -> None:
    """Say what did not run, and why."""
    print(f"   {name}: {type(problem).__name__}: {str(problem)[:120]}", flush=True)


def finish(bench: Any, suite: str, name: str, times: dict[str, float], error: float, built: Any, floor_us: float,
           note: dict[str, Any]) -> None:
    """One row; its ratio is 0 where ours did not run."""
    best = min((v for k, v in times.items() if k not in (*OURS, *OTHER)), default=math.nan)
    ratio = best / times["ours"] if "ours" in times else 0.0
    if isinstance(built, str):
        note = {**note, "problem": built[:200]}
    else:
        note = {"schedule_s": round(built[2], 2), "launches": len(built[0].launches), **note}
    if note.get("variant") == "auto" and "ours" in times:  # the same kernels: no second time of them
        times = {**times, "searched": times["ours"]}
    if "searched" in times:
        note = {"searched_ratio": best / times["searched"], "gain": times["ours"] / times["searched"], **note}
    bench.row(suite, name, **times, floor=floor_us, ratio=ratio, error=error, **note)


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
