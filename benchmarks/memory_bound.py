"""Reductions and fused chains against PyTorch, Inductor, CuPy and XLA."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from against import attempt, bound, error_of, finish, refine
from cases import Case

DTYPES = {"f16": "float16", "f32": "float32"}


def compiled(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Inductor's version, for these very shapes."""
    import torch

    torch._dynamo.reset()
    return torch.compile(fn, dynamic=False)


def reduction_case(bench: Any, case: Case, built: Any, others: list[Any], peers: set[str], suite: str) -> None:
    """A row of a reduction."""
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
    finish(bench, suite, name, attempt(bench, fns), error, built, x.numel() * x.element_size() / bench.copy_bytes_per_us, note)


def fused_case(bench: Any, case: tuple[str, str, dict[str, int]], built: Any, others: list[Any], peers: set[str],
               suite: str) -> None:
    """A row of a chain."""
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
    finish(bench, suite, name, attempt(bench, fns), error, built, nbytes / bench.copy_bytes_per_us, note)
