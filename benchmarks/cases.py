"""Public cases of the literature, and random ones.

A reduction is its name, shape, reduced axes, type and operation; a fused chain its name, its program of fused_programs.py, and
sizes.  Shapes whose names begin with P are from Panamera's figures 9 and 10, with A from AStitch.
"""

from __future__ import annotations

import random
from math import prod

Case = tuple[str, tuple[int, ...], tuple[int, ...], str, str]

REDUCTIONS: list[Case] = [
    # all-reduce
    ("all-64M", (64 * 1024 * 1024,), (0,), "f32", "sum"),
    ("all-1M", (1024 * 1024,), (0,), "f32", "sum"),
    ("all-4d", (64, 128, 56, 56), (0, 1, 2, 3), "f32", "sum"),
    ("P-all-65536", (65536,), (0,), "f32", "sum"),
    ("P-all-1024x1024", (1024, 1024), (0, 1), "f32", "sum"),
    ("P-all-21128x768", (21128, 768), (0, 1), "f32", "sum"),
    ("P-all-21128x768-max", (21128, 768), (0, 1), "f32", "max"),
    # rows (x-reduce)
    ("row-32kx1k", (32768, 1024), (1,), "f32", "sum"),
    ("row-64x1M", (64, 1048576), (1,), "f32", "sum"),
    ("row-1Mx64", (1048576, 64), (1,), "f32", "sum"),
    ("row-1x33M", (1, 33554432), (1,), "f32", "sum"),
    ("row-8192x8192", (8192, 8192), (1,), "f32", "sum"),
    ("row-30522x768", (30522, 768), (1,), "f32", "sum"),
    ("row-8192x8192-h", (8192, 8192), (1,), "f16", "sum"),
    ("P-row-768x768", (768, 768), (1,), "f32", "sum"),
    ("P-row-768x21128", (768, 21128), (1,), "f32", "sum"),
    ("P-row-1024x32768-h", (1024, 32768), (1,), "f16", "sum"),
    ("A-row-750000x32", (750000, 32), (1,), "f32", "sum"),
    ("A-row-64x30000", (64, 30000), (1,), "f32", "sum"),
    # columns (y-reduce)
    ("col-8192x8192", (8192, 8192), (0,), "f32", "sum"),
    ("col-1Mx64", (1048576, 64), (0,), "f32", "sum"),
    ("col-16384x768", (16384, 768), (0,), "f32", "sum"),
    ("col-4096x30522", (4096, 30522), (0,), "f32", "sum"),
    ("col-33Mx1", (33554432, 1), (0,), "f32", "sum"),
    ("col-8192x8192-h", (8192, 8192), (0,), "f16", "sum"),
    ("P-col-768x768", (768, 768), (0,), "f32", "sum"),
    ("P-col-21128x768", (21128, 768), (0,), "f32", "sum"),
    ("P-col-32768x1024-h", (32768, 1024), (0,), "f16", "sum"),
    ("P-col-200704x256", (256, 56, 56, 256), (0, 1, 2), "f32", "sum"),
    # interleaved
    ("P-nchw-256x256x56x56", (256, 256, 56, 56), (0, 2, 3), "f32", "sum"),
    ("bn-256x64x112x112", (256, 64, 112, 112), (0, 2, 3), "f32", "sum"),
    ("bn-256x512x28x28", (256, 512, 28, 28), (0, 2, 3), "f32", "sum"),
    ("bn-32x2048x7x7", (32, 2048, 7, 7), (0, 2, 3), "f32", "sum"),
    ("mid-128x512x1024", (128, 512, 1024), (1,), "f32", "sum"),
    ("mid-16x8192x256", (16, 8192, 256), (1,), "f32", "sum"),
    ("even-64x64x56x56", (64, 64, 56, 56), (0, 2), "f32", "sum"),
]

CORNERS: list[Case] = [
    # rows of a few elements
    ("4Mx3/1", (4194304, 3), (1,), "f32", "sum"),
    ("4Mx6/1-h", (4194304, 6), (1,), "f16", "sum"),
    ("3000017x5/1", (3000017, 5), (1,), "f32", "max"),
    ("2Mx8/1", (2097152, 8), (1,), "f32", "sum"),
    ("4Mx8/1-h", (4194304, 8), (1,), "f16", "max"),
    ("1Mx12/1", (1048576, 12), (1,), "f32", "sum"),
    ("1Mx20/1-h", (1048576, 20), (1,), "f16", "sum"),
    ("1Mx31/1", (1048576, 31), (1,), "f32", "sum"),
    ("500009x33/1-h", (500009, 33), (1,), "f16", "max"),
    ("262144x100/1", (262144, 100), (1,), "f32", "sum"),
    # columns of a few elements
    ("2x16M/0", (2, 16777216), (0,), "f32", "sum"),
    ("3x8M/0-h", (3, 8388608), (0,), "f16", "sum"),
    ("7x4000037/0", (7, 4000037), (0,), "f32", "max"),
    ("16x1M/0", (16, 1048576), (0,), "f32", "sum"),
    ("100003x5x37/1", (100003, 5, 37), (1,), "f32", "sum"),
    ("4096x3x2048/1-h", (4096, 3, 2048), (1,), "f16", "max"),
    # a few long columns
    ("8Mx2/0", (8388608, 2), (0,), "f32", "sum"),
    ("5000011x3/0", (5000011, 3), (0,), "f32", "sum"),
    ("3000017x7/0-h", (3000017, 7), (0,), "f16", "max"),
    ("1000003x17/0", (1000003, 17), (0,), "f32", "sum"),
    # a few long rows
    ("2x8M/1", (2, 8388608), (1,), "f32", "sum"),
    ("3x5000011/1-h", (3, 5000011), (1,), "f16", "sum"),
    # short axes on both sides
    ("64x100003x8/0,2", (64, 100003, 8), (0, 2), "f16", "sum"),
    ("3x1000003x3/0,2", (3, 1000003, 3), (0, 2), "f32", "sum"),
    ("2x3x4x100003x5/0,2,4", (2, 3, 4, 100003, 5), (0, 2, 4), "f32", "max"),
    ("100003x3x5x7/1,3", (100003, 3, 5, 7), (1, 3), "f16", "sum"),
]
"""Shapes at the ends of what there is: very short and very long axes, with many results and with few."""
LARGE = 1 << 20
"""Elements from which a random shape is bound by the memory rather than by its launch."""
FUSED: list[tuple[str, str, dict[str, int]]] = [
    ("softmax-16384x1024", "softmax", {"M": 16384, "N": 1024}),
    ("softmax-4096x32000", "softmax", {"M": 4096, "N": 32000}),
    ("softmax-1Mx64", "softmax", {"M": 1048576, "N": 64}),
    ("attnsoftmax-32x12x512x512", "attention_softmax", {"B": 32, "H": 12, "Q": 512, "K": 512}),
    ("layernorm-16384x768", "layernorm", {"M": 16384, "N": 768}),
    ("layernorm-32768x4096", "layernorm", {"M": 32768, "N": 4096}),
    ("rmsnorm-16384x4096", "rmsnorm", {"M": 16384, "N": 4096}),
    ("biasgelu-16384x3072", "bias_gelu", {"M": 16384, "N": 3072}),
    ("biasresln-16384x768", "bias_residual_layernorm", {"M": 16384, "N": 768}),
    ("bntrain-64x256x56x56", "batchnorm_relu", {"B": 64, "C": 256, "P": 3136}),
    ("xent-8192x32000", "cross_entropy", {"M": 8192, "N": 32000}),
    ("lngrad-16384x768", "layernorm_gradient", {"M": 16384, "N": 768}),
    ("adam-64M", "adam", {"M": 67108864}),
]
"""Fused chains."""
ODD_ROWS: list[Case] = [(f"{m}x{n}-h-{op}", (m, n), (1,), "f16", op) for m, n, op in (
    (2039, 1031, "sum"), (1021, 3001, "sum"), (4093, 2049, "max"), (8191, 1025, "sum"), (3001, 4097, "sum"), (1531, 7001, "max"),
    (5003, 6007, "sum"), (8191, 3999, "sum"), (613, 5003, "sum"))] + [
    (f"mid-{b}x{n}x{k}", (b, n, k), (1,), "f32", "sum") for b, n, k in (
        (128, 4096, 4096), (1024, 2048, 1024), (16, 65536, 2048), (2001, 1001, 1003), (1, 2097152, 1024), (2048, 32, 32768),
        (64, 64, 524288), (4, 8388608, 64))]
"""Rows of odd length in f16, 4 to 64 MiB; a middle axis of 8 GB."""
ODD_CHAINS: list[tuple[str, str, dict[str, int]]] = [
    *((f"softmax-{m}x{n}", "softmax", {"M": m, "N": n}) for m, n in ((4099, 1003), (2053, 4097), (8191, 333), (1021, 12345))),
    *((f"biasgelu-{m}x{n}", "bias_gelu", {"M": m, "N": n}) for m, n in ((101, 3001), (97, 12289), (113, 8191), (99, 30001))),
    *((f"biasresln-{m}x64", "bias_residual_layernorm", {"M": m, "N": 64}) for m in (262144, 100003, 1048576)),
    *((f"mean-{b}x{n}x{k}", "mean_middle", {"B": b, "N": n, "K": k}) for b, n, k in (
        (1024, 2048, 1024), (2048, 32, 32768), (64, 64, 524288), (4, 8388608, 64))),
    *((f"{name}-{m}", name, {"M": m}) for name in ("tanh", "sigmoid", "clamp", "gelu", "axpby")
      for m in ((1 << 30, 1000000007) if name == "tanh" else (1 << 30,))),
]
"""Softmax of odd rows, a hundred odd rows of bias and GELU, rows of 64, element by element over more than 10⁹ elements."""
ROWS = ("softmax", "layernorm", "rmsnorm", "bias_gelu", "bias_residual_layernorm", "cross_entropy", "layernorm_gradient")
"""Chains over rows, in programs of fused_programs.py."""
PRIMES = tuple(n for n in range(3, 4000) if all(n % d for d in range(2, int(n**0.5) + 1)))


def drawn(count: int, seed: int, least: int = 1 << 14, most: int = 1 << 26) -> list[Case]:
    """Random shapes of rank 1 to 5 and `least` to `most` elements, odd sizes and primes, f16 and f32, any axes."""
    rng, out = random.Random(seed), []
    while len(out) < count:
        rank = rng.randint(1, 5)
        shape = [_size(rng, 1, 24 / rank + 1) for _ in range(rank)]
        if not least <= prod(shape) <= most:
            continue
        axes = tuple(a for a in range(rank) if rng.random() < 0.5) or (rng.randrange(rank),)
        dtype, op = rng.choice(("f16", "f32")), rng.choice(("sum", "max"))
        name = f"{'x'.join(map(str, shape))}/{','.join(map(str, axes))}-{dtype}-{op}"
        out.append((name, tuple(shape), axes, dtype, op))
    return out


def drawn_chains(count: int, seed: int, least: int = 1 << 18, most: int = 1 << 26) -> list[tuple[str, str, dict[str, int]]]:
    """Chains of random sizes, of `least` to `most` elements: every program in turn, odd sizes and primes."""
    rng, out = random.Random(seed), []
    programs = (*ROWS, "attention_softmax", "batchnorm_relu", "adam")
    while len(out) < count:
        program = programs[len(out) % len(programs)]
        if program == "adam":
            sizes = {"M": _size(rng, 18, 26)}
        elif program == "batchnorm_relu":
            sizes = {"B": _size(rng, 2, 7), "C": _size(rng, 3, 10), "P": _size(rng, 4, 12)}
        elif program == "attention_softmax":
            sizes = {"B": _size(rng, 1, 5), "H": _size(rng, 1, 4), "Q": _size(rng, 4, 11), "K": _size(rng, 4, 11)}
        else:
            sizes = {"M": _size(rng, 4, 17), "N": _size(rng, 4, 15)}
        if least <= prod(sizes.values()) <= most:
            out.append((f"{program}-{'x'.join(map(str, sizes.values()))}", program, sizes))
    return out


def _size(rng: random.Random, low: float, high: float) -> int:
    """A number between two powers of two: a prime (below 4,000), any, or a power of two."""
    kind, n = rng.random(), int(2 ** rng.uniform(low, high))
    near = min(PRIMES, key=lambda p: abs(p - n))
    return max(1, near if kind < 0.4 else n if kind < 0.8 else 1 << n.bit_length() - 1)
