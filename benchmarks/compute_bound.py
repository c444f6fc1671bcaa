"""Products, convolutions and attention against cuBLAS, cuDNN, SDPA and Inductor's max-autotune."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from against import OTHER, OURS, bound, complain, error_of, finish, refine
from building import deadline
from product_cases import Case

WRONG = {"f16": 4e-3, "f32": 2e-5}
"""Error, relative to the largest result, from which a result is wrong: some roundings of it and of f16 partial sums."""
HOPELESS_US = 5e6
"""What a kernel must not be priced at to be run at all."""
SLOW_S = 0.3
"""A kernel that takes longer is timed once, and not in turn with the peers."""
PEER_S = 150
"""Seconds that a peer's first call may take, its tuning included."""


def product_case(bench: Any, case: Case, built: Any, others: list[Any], peers: set[str], suite: str) -> None:
    """A row; what does not run, or is wrong, is said in it."""
    from product_peers import rivals

    with_peers = rivals(case)
    wanted = with_peers.wanted()
    limit = WRONG[case.arithmetic]
    fns: dict[str, Callable[[], Any]] = {}
    times: dict[str, float] = {}
    error, note = math.nan, dict[str, Any]()
    if not isinstance(built, str) and built.priced_us > HOPELESS_US:
        built = f"not run: priced at {built.priced_us / 1e6:.3g} s"
    if not isinstance(built, str):
        try:
            ours = bound(built, with_peers.given)
            seconds = first(ours)
            error = error_of(ours[with_peers.output], wanted)
            if not error <= limit:
                built = f"WRONG: error {error:.3g}"
            elif seconds > SLOW_S:
                times["ours"], note = bench.sampled([ours])[0], {"turns": 1}
            else:
                fns["ours"] = ours
                note = refine(bench, others, with_peers.given, ours,
                              lambda o: error_of(o[with_peers.output], wanted) <= limit, fns)
        except Exception as problem:
            complain("ours", problem)
            built = f"{type(problem).__name__}: {problem}"
    for name, call in with_peers.calls.items():
        if name.partition("_")[0] in peers:
            try:
                with deadline(PEER_S):
                    found = error_of(with_peers.ours(call()), wanted)
                if not found <= limit:
                    raise ArithmeticError(f"wrong: error {found:.3g}")
                fns[name] = call
            except Exception as problem:
                complain(name, problem)
    times |= bench.times_us(fns) if fns else {}
    floor = floor_us(bench, case)
    finish(bench, suite, case.name, times, error, built, floor, note | rates(case, times, floor))


def first(call: Callable[[], Any]) -> float:
    """Seconds of a first call, until the device is done."""
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def floor_us(bench: Any, case: Case) -> float:
    """By the roofline of this GPU, or of the H200 where the catalogue does not know this one."""
    from explorer.errors import ExplorerError
    from explorer.gpu.roofline import roofline
    from explorer.gpu.spec import gpu

    try:
        found = gpu(bench.gpu)
    except ExplorerError:
        found = gpu("H200")
    return roofline(found, case.nbytes, case.flops, case.arithmetic).floor_us


def rates(case: Case, times: dict[str, float], floor: float) -> dict[str, Any]:
    """The best peer, rates in TFLOP/s, and the share of the floor that ours and the best peer reach."""
    theirs = {name: us for name, us in times.items() if name not in (*OURS, *OTHER)}
    peer = min(theirs, key=theirs.__getitem__, default=None)
    found: dict[str, Any] = {}
    for mark, us in (("", times.get("ours")), ("peer_", theirs.get(peer) if peer else None)):
        if us:
            found |= {f"{mark}TFLOPs": case.flops / us / 1e6, f"{mark}of_floor": floor / us}
    return {"peer": peer, **found} if peer else found
