"""What Triton's tutorials show, as peers: the product of matrices, the same on tensor maps by persistent programs, and attention.

Written anew after the tutorials `03-matrix-multiplication`, `09-persistent-matmul` and `06-fused-attention` (triton-lang.org),
with their orders of tiles and their lists of configurations, and a few more tiles for Hopper.  Each is tuned for its sizes by
`triton.autotune` when it is first called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = 1.4426950408889634
PLAIN = ((128, 256, 64, 3, 8), (128, 256, 64, 4, 8), (128, 128, 64, 3, 4), (128, 128, 64, 4, 8), (64, 256, 32, 4, 4),
         (128, 128, 32, 4, 4), (128, 64, 32, 4, 4), (64, 128, 32, 4, 4), (128, 32, 32, 4, 4), (64, 32, 32, 5, 2),
         (32, 64, 32, 5, 2), (64, 64, 64, 4, 4), (64, 128, 64, 4, 4), (64, 64, 128, 4, 4))
"""Rows, columns and depth of a tile, stages, and warps."""
MAPPED = ((128, 256, 64, 3, 8), (128, 256, 64, 4, 8), (128, 128, 64, 3, 4), (128, 128, 64, 4, 8), (128, 128, 128, 3, 8),
          (128, 256, 128, 2, 8), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (64, 64, 64, 6, 4))
"""The same for products on tensor maps."""
QUERIES, KEYS = (64, 128), (32, 64, 128)
"""Rows of queries and of keys of a tile of attention."""
GROUP = 8
"""Rows of tiles that programs take together."""


def _briefly(call: Callable[[], Any], quantiles: Any) -> Any:
    """The time of a configuration, in a few repeats."""
    return triton.testing.do_bench(call, warmup=5, rep=30, quantiles=quantiles)


def _tiles(sizes: tuple[tuple[int, int, int, int, int], ...], hook: Callable[..., None] | None = None) -> list[triton.Config]:
    return [triton.Config({"BM": m, "BN": n, "BK": k}, num_stages=stages, num_warps=warps, pre_hook=hook)
            for m, n, k, stages, warps in sizes]


@triton.jit
def _tile_of(tile, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of a tile, in groups of so many rows, column by column."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = tile // (GROUP * columns) * GROUP
    within = tile % (GROUP * columns)
    height = tl.minimum(rows - first, GROUP)
    return first + within % height, within // height


@triton.jit
def _finished(total, i, j, bias, r, N, inside, EPILOGUE: tl.constexpr):
    """What follows the product, in f32."""
    if EPILOGUE != "":
        total += tl.load(bias + j, mask=j < N, other=0.0).to(tl.float32)[None, :]
    if EPILOGUE == "bias_relu":
        total = tl.maximum(total, 0.0)
    if EPILOGUE == "bias_gelu":
        total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    if EPILOGUE == "bias_gelu_tanh":  # (1 + tanh x) / 2 is the sigmoid of 2 x
        total *= tl.sigmoid(1.5957691216057308 * (total + 0.044715 * total * total * total))
    if EPILOGUE == "bias_residual":
        total += tl.load(r + i[:, None] * N + j[None, :], mask=inside, other=0.0).to(tl.float32)
    return total


@triton.autotune(configs=_tiles(PLAIN), key=["M", "N", "K", "az", "am", "bk", "EPILOGUE"], do_bench=_briefly)
@triton.jit
def _product(a, b, c, bias, r, M, N, K, az, am, ak, bz, bk, bn, cz, EPILOGUE: tl.constexpr, GROUP: tl.constexpr,
             BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = _tile_of(tl.program_id(0), M, N, BM, BN, GROUP)
    z = tl.program_id(1)
    i, j, k = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    left = a + z * az + (i % M)[:, None] * am + k[None, :] * ak
    right = b + z * bz + k[:, None] * bk + (j % N)[None, :] * bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(left, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(right, mask=k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(x, y, total)
        left += BK * ak
        right += BK * bk
    inside = (i[:, None] < M) & (j[None, :] < N)
    total = _finished(total, i, j, bias, r, N, inside, EPILOGUE)
    tl.store(c + z * cz + i[:, None] * N + j[None, :], total.to(c.dtype.element_ty), mask=inside)


def _shape_maps(given: dict[str, Any]) -> None:
    given["a"].block_shape = [given["BM"], given["BK"]]
    given["b"].block_shape = [given["BK"], given["BN"]]
    given["c"].block_shape = [given["BM"], given["BN"]]


@triton.autotune(configs=_tiles(MAPPED, _shape_maps), key=["M", "N", "K", "EPILOGUE"], do_bench=_briefly)
@triton.jit
def _mapped_product(a, b, c, bias, r, M, N, K, programs, EPILOGUE: tl.constexpr, GROUP: tl.constexpr,
                    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), programs, flatten=True):
        row, column = _tile_of(tile, M, N, BM, BN, GROUP)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(0, tl.cdiv(K, BK)):
            total = tl.dot(a.load([row * BM, step * BK]), b.load([step * BK, column * BN]), total)
        i, j = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
        total = _finished(total, i, j, bias, r, N, (i[:, None] < M) & (j[None, :] < N), EPILOGUE)
        c.store([row * BM, column * BN], total.to(c.dtype))


def products(a: torch.Tensor, b: torch.Tensor, epilogue: str = "", bias: torch.Tensor | None = None,
             r: torch.Tensor | None = None) -> dict[str, Callable[[], torch.Tensor]]:
    """Calls by name: of the plain kernel, and of the one on tensor maps where both factors are rows of whole 16 bytes and there
    is no batch.

    Parameters
    ----------
    a, b : Tensor
        (m, k) and (k, n), or batches of them; any strides.
    epilogue : str
        ``""``, ``"bias_relu"``, ``"bias_gelu"``, ``"bias_gelu_tanh"`` or ``"bias_residual"``.
    bias, r : Tensor, optional
        (n,) and (m, n), contiguous.
    """
    *lead, m, k = a.shape
    n, batch = b.shape[-1], lead[0] if lead else 1
    c = torch.empty(*lead, m, n, device=a.device, dtype=a.dtype)
    az, bz, cz = (t.stride(0) if lead else 0 for t in (a, b, c))
    bias, r = c if bias is None else bias, c if r is None else r

    def plain() -> torch.Tensor:
        _product[lambda p: (triton.cdiv(m, p["BM"]) * triton.cdiv(n, p["BN"]), batch)](
            a, b, c, bias, r, m, n, k, az, a.stride(-2), a.stride(-1), bz, b.stride(-2), b.stride(-1), cz, epilogue, GROUP)
        return c

    found: dict[str, Callable[[], torch.Tensor]] = {"triton": plain}
    if not lead and a.is_contiguous() and b.is_contiguous() and k % 8 == 0 and n % 8 == 0:
        maps = [TensorDescriptor.from_tensor(t, [1, 1]) for t in (a, b, c)]
        programs = torch.cuda.get_device_properties(a.device).multi_processor_count

        def mapped() -> torch.Tensor:
            _mapped_product[lambda p: (min(programs, triton.cdiv(m, p["BM"]) * triton.cdiv(n, p["BN"])),)](
                *maps, bias, r, m, n, k, programs, epilogue, GROUP)
            return c

        found["triton_maps"] = mapped
    return found


def _shape_attention(given: dict[str, Any]) -> None:
    given["q"].block_shape = [given["BM"], given["D"]]
    given["k"].block_shape = [given["BN"], given["D"]]
    given["v"].block_shape = [given["BN"], given["D"]]
    given["o"].block_shape = [given["BM"], given["D"]]


@triton.jit
def _keys(total, norm, top, q, k, v, first, begin, end, i, scale, MASKED: tl.constexpr, BN: tl.constexpr):
    """The running result, sum and maximum behind the keys of a range."""
    for at in tl.range(begin, end, BN):
        scores = tl.dot(q, k.load([first + at, 0]).T)
        if MASKED:
            scores = tl.where(i[:, None] >= at + tl.arange(0, BN)[None, :], scores * scale, -1.0e6)
            high = tl.maximum(top, tl.max(scores, 1))
            p = tl.math.exp2(scores - high[:, None])
        else:
            high = tl.maximum(top, tl.max(scores, 1) * scale)
            p = tl.math.exp2(scores * scale - high[:, None])
        kept = tl.math.exp2(top - high)
        norm = norm * kept + tl.sum(p, 1)
        total = tl.dot(p.to(v.dtype), v.load([first + at, 0]), total * kept[:, None])
        top = high
    return total, norm, top


@triton.autotune(configs=[triton.Config({"BM": m, "BN": n}, num_stages=stages, num_warps=warps, pre_hook=_shape_attention)
                          for m in QUERIES for n in KEYS if n <= m for stages in (2, 3, 4) for warps in (4, 8) if m * n >= 4096],
                 key=["length", "D", "CAUSAL"], do_bench=_briefly)
@triton.jit
def _attention(q, k, v, o, length, scale, D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    begin, first = tl.program_id(0) * BM, tl.program_id(1) * length
    i = begin + tl.arange(0, BM)
    queries = q.load([first + begin, 0])
    total = tl.zeros((BM, D), dtype=tl.float32)
    norm, top = tl.zeros((BM,), dtype=tl.float32), tl.full((BM,), -float("inf"), dtype=tl.float32)
    if CAUSAL:
        total, norm, top = _keys(total, norm, top, queries, k, v, first, 0, begin, i, scale, False, BN)
        total, norm, top = _keys(total, norm, top, queries, k, v, first, begin, begin + BM, i, scale, True, BN)
    else:
        total, norm, top = _keys(total, norm, top, queries, k, v, first, 0, length, i, scale, False, BN)
    o.store([first + begin, 0], (total / norm[:, None]).to(o.dtype))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> dict[str, Callable[[], torch.Tensor]]:
    """One call, of contiguous (batch, heads, length, width); `length` is a multiple of 128."""
    *_, length, width = q.shape
    heads = q.shape[0] * q.shape[1]
    o = torch.empty_like(q)
    maps = [TensorDescriptor.from_tensor(t.view(heads * length, width), [1, 1]) for t in (q, k, v, o)]

    def call() -> torch.Tensor:
        _attention[lambda p: (length // p["BM"], heads)](*maps, length, width**-0.5 * LOG2_E, width, causal)
        return o

    return {"triton": call}
