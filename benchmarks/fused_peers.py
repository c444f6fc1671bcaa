"""What the libraries run for the fused chains: inputs, eager formula, names of our outputs, compulsory bytes, XLA's formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F


def new(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    """Standard normal values."""
    return torch.randn(shape, device="cuda", dtype=dtype)


def gradient(x: torch.Tensor, dy: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Layer normalisation backwards, statistics included."""
    wide = x.float()
    mean = wide.mean(-1, keepdim=True)
    scale = (wide.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
    normal = (wide - mean) * scale
    g = dy.float() * w.float()
    dx = scale * (g - g.mean(-1, keepdim=True) - normal * (g * normal).mean(-1, keepdim=True))
    return dx.half(), (dy.float() * normal).sum(0), dy.float().sum(0)


def adam(p: torch.Tensor, m: torch.Tensor, v: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """One step."""
    m2 = 0.9 * m + 0.1 * g
    v2 = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m2 / (v2.sqrt() + 1e-8), m2, v2


def peer(name: str, sizes: dict[str, int]) -> tuple[dict[str, torch.Tensor], Callable[..., Any], tuple[str, ...], float,
                                                    Callable[..., Any] | None]:
    """(inputs by our names, eager formula, our outputs, bytes, XLA's formula or None)."""
    import jax
    import jax.numpy as jnp

    def normal(x: Any, w: Any, b: Any) -> Any:
        wide = x.astype(jnp.float32)
        d = wide - wide.mean(-1, keepdims=True)
        return (d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5) * w + b).astype(x.dtype)

    m, n = sizes.get("M", 1), sizes.get("N", 1)
    if name == "softmax":
        return {"x": new(m, n)}, lambda x: torch.softmax(x, -1), ("y",), 4 * m * n, (
            lambda x: jax.nn.softmax(x.astype(jnp.float32), -1).astype(x.dtype))
    if name == "attention_softmax":
        b, h, q, k = (sizes[s] for s in "BHQK")
        return ({"x": new(b, h, q, k), "m": new(b, k)}, lambda x, m: torch.softmax(x * 0.125 + m[:, None, None, :], -1), ("y",),
                4 * b * h * q * k,
                lambda x, m: jax.nn.softmax((x * 0.125 + m[:, None, None, :]).astype(jnp.float32), -1).astype(x.dtype))
    if name == "layernorm":
        return {"x": new(m, n), "w": new(n), "c": new(n)}, lambda x, w, c: F.layer_norm(x, (n,), w, c), ("y",), 4 * m * n, normal
    if name == "rmsnorm":
        return {"x": new(m, n), "w": new(n)}, lambda x, w: F.rms_norm(x, (n,), w, 0.0009765625), ("y",), 4 * m * n, None
    if name == "bias_gelu":
        return ({"x": new(m, n), "c": new(n)}, lambda x, c: F.gelu(x + c), ("y",), 4 * m * n,
                lambda x, c: jax.nn.gelu((x + c).astype(jnp.float32), approximate=False).astype(x.dtype))
    if name == "bias_residual_layernorm":
        given = {"x": new(m, n), "r": new(m, n), "b": new(n), "w": new(n), "c": new(n)}
        return (given, lambda x, r, b, w, c: F.layer_norm(x + b + r, (n,), w, c), ("y",), 6 * m * n,
                lambda x, r, b, w, c: normal(x + b + r, w, c))
    if name == "batchnorm_relu":
        shape = (sizes["B"], sizes["C"], sizes["P"])
        w, c = (new(shape[1], dtype=torch.float32) for _ in "wc")
        given = {"x": new(*shape, dtype=torch.float32), "w": w, "c": c}
        count = shape[0] * shape[1] * shape[2]
        return given, lambda x, w, c: F.relu(F.batch_norm(x, None, None, w, c, True)), ("y",), 12 * count, None
    if name == "cross_entropy":
        given = {"x": new(m, n), "target": torch.randint(0, n, (m,), device="cuda")}
        return given, lambda x, t: F.cross_entropy(x.float(), t, reduction="none"), ("y",), 2 * m * n, None
    if name == "layernorm_gradient":
        return {"x": new(m, n), "dy": new(m, n), "w": new(n)}, gradient, ("dx", "dw", "db"), 6 * m * n, None
    if name == "adam":
        given = {k: new(m, dtype=torch.float32) for k in "pmvg"}
        given["v"] = given["v"].abs()
        return given, adam, ("p2", "m2", "v2"), 28 * m, None
    if name == "mean_middle":
        shape = (sizes["B"], n, sizes["K"])
        nbytes = 4 * n * shape[0] * shape[2]
        return {"x": new(*shape, dtype=torch.float32)}, lambda x: x.mean(1), ("y",), nbytes, lambda x: x.mean(1)
    flat = {"tanh": (torch.tanh, jnp.tanh), "sigmoid": (torch.sigmoid, jax.nn.sigmoid),
            "clamp": (lambda x: torch.clamp(x, -1.0, 1.0), lambda x: jnp.clip(x, -1.0, 1.0)),
            "gelu": (F.gelu, lambda x: jax.nn.gelu(x, approximate=False)),
            "axpby": (lambda x, z: 2.0 * x + 0.5 * z, lambda x, z: 2.0 * x + 0.5 * z)}
    if name in flat:
        given = {k: new(m, dtype=torch.float32) for k in ("xz" if name == "axpby" else "x")}
        return given, flat[name][0], ("y",), 4 * m * (len(given) + 1), flat[name][1]
    raise ValueError(name)
