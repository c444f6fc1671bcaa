"""Cases of products, convolutions, epilogues and attention: public ones, and random ones; what each must compute and move.

Names that begin with L are from ALCOP's artifact, those with P from Panamera.  A case knows its program
(product_programs.py), that program's sizes, its arithmetic and its compulsory bytes, and a tiny case of the same kind.
"""

from __future__ import annotations

import random
from typing import NamedTuple


class Product(NamedTuple):
    """A product of matrices, or a batch of them; `order` says which factors are stored transposed."""

    name: str
    m: int
    n: int
    k: int
    batch: int = 0
    order: str = "nn"
    arithmetic: str = "f16"

    @property
    def program(self) -> str:
        """Name of the program."""
        return "product_f32" if self.arithmetic == "f32" else f"{'batched' if self.batch else 'product'}_{self.order}"

    @property
    def sizes(self) -> dict[str, int]:
        """Of the program."""
        return {"M": self.m, "N": self.n, "K": self.k} | ({"Z": self.batch} if self.batch else {})

    @property
    def flops(self) -> int:
        """Operations, a multiply-add counted as two."""
        return 2 * max(1, self.batch) * self.m * self.n * self.k

    @property
    def nbytes(self) -> int:
        """Each input once, each output once."""
        width = 4 if self.arithmetic == "f32" else 2
        return width * max(1, self.batch) * (self.m * self.k + self.k * self.n + self.m * self.n)

    @property
    def tiny(self) -> Product:
        """Of the same kind."""
        return self._replace(m=5, n=6, k=7, batch=min(self.batch, 2))


class Epilogue(NamedTuple):
    """A product and what follows it: bias and residual, GELU with erf or with tanh, ReLU, or RMS normalisation of the rows."""

    name: str
    program: str
    m: int
    n: int
    k: int
    arithmetic: str = "f16"

    @property
    def sizes(self) -> dict[str, int]:
        """Of the program."""
        return {"M": self.m, "N": self.n, "K": self.k}

    @property
    def flops(self) -> int:
        """Of the product."""
        return 2 * self.m * self.n * self.k

    @property
    def nbytes(self) -> int:
        """Each input once, each output once."""
        residual = self.m * self.n if "residual" in self.program else 0
        return 2 * (self.m * self.k + self.k * self.n + self.m * self.n + residual + self.n)

    @property
    def tiny(self) -> Epilogue:
        """Of the same kind."""
        return self._replace(m=5, n=6, k=7)


class Reduced(NamedTuple):
    """The sum of squares of each row of a product, which is not stored (`row_squares`), or is (`stored_squares`); or a matrix by
    itself (`gram`).
    """

    name: str
    program: str
    m: int
    n: int
    k: int
    arithmetic: str = "f16"

    @property
    def sizes(self) -> dict[str, int]:
        """Of the program."""
        return {"M": self.m, "K": self.k} | ({"N": self.n} if self.program != "gram" else {})

    @property
    def flops(self) -> int:
        """Of the product, none left out for symmetry."""
        return 2 * self.m * self.n * self.k

    @property
    def nbytes(self) -> int:
        """Each input once, each output once."""
        if self.program == "gram":
            return 2 * (self.m * self.k + self.m * self.n)
        stored = 2 * self.m * self.n * (self.program == "stored_squares")
        return 2 * (self.m * self.k + self.k * self.n) + stored + 4 * self.m

    @property
    def tiny(self) -> Reduced:
        """Of the same kind."""
        return self._replace(m=5, n=5, k=7)


class Triangle(NamedTuple):
    """A product by a lower or an upper triangle of m x m, or with a triangle as its right factor; n columns, or rows."""

    name: str
    program: str
    m: int
    n: int
    arithmetic: str = "f16"

    @property
    def sizes(self) -> dict[str, int]:
        """Of the program."""
        return {"M": self.m, "N": self.n}

    @property
    def flops(self) -> int:
        """Of the terms that there are."""
        return self.m * (self.m + 1) * self.n

    @property
    def nbytes(self) -> int:
        """Each input once, the other half of the triangle's square included, and each output once."""
        return 2 * (self.m * self.m + 2 * self.m * self.n)

    @property
    def tiny(self) -> Triangle:
        """Of the same kind."""
        return self._replace(m=7, n=5)


class Conv(NamedTuple):
    """A convolution of images, then bias and ReLU."""

    name: str
    batch: int
    channels: int
    height: int
    width: int
    filters: int
    rows: int
    columns: int
    stride: int
    padding: int
    groups: int
    last: bool = False
    arithmetic: str = "f16"

    @property
    def depthwise(self) -> bool:
        """Whether every channel has its own filter."""
        return self.groups == self.channels == self.filters > 1

    @property
    def program(self) -> str:
        """Name of the program."""
        return ("depthwise" if self.depthwise else "conv") + "_nhwc" * self.last

    @property
    def out(self) -> tuple[int, int]:
        """Height and width of the result."""
        return ((self.height + 2 * self.padding - self.rows) // self.stride + 1,
                (self.width + 2 * self.padding - self.columns) // self.stride + 1)

    @property
    def sizes(self) -> dict[str, int]:
        """Of the program."""
        found = {"B": self.batch, "C": self.channels, "H": self.height, "W": self.width, "R": self.rows, "S": self.columns,
                 "P": self.out[0], "Q": self.out[1], "T": self.stride, "A": self.padding}
        grouped = {"K": self.filters, "D": self.channels // self.groups, "E": self.filters // self.groups}
        return found if self.depthwise else found | grouped

    @property
    def flops(self) -> int:
        """Operations, those on padding included, a multiply-add counted as two."""
        results = self.batch * self.filters * self.out[0] * self.out[1]
        return 2 * results * (self.channels // self.groups) * self.rows * self.columns

    @property
    def nbytes(self) -> int:
        """Each input once, each output once."""
        weights = self.filters * (self.channels // self.groups) * self.rows * self.columns
        return 2 * (self.batch * self.channels * self.height * self.width + weights + self.filters
                    + self.batch * self.filters * self.out[0] * self.out[1])

    @property
    def tiny(self) -> Conv:
        """Of the same kind."""
        channels, filters, groups = (3, 3, 3) if self.depthwise else (4, 6, 2) if self.groups > 1 else (3, 4, 1)
        return self._replace(batch=2, channels=channels, filters=filters, groups=groups, height=6, width=5)


class Transposed(NamedTuple):
    """A transposed convolution of square images: what decoders enlarge images by, and the gradient of a convolution's input."""

    name: str
    batch: int
    channels: int
    height: int
    filters: int
    reach: int
    stride: int
    padding: int
    beyond: int = 0
    last: bool = False
    arithmetic: str = "f16"

    @property
    def program(self) -> str:
        """Name of the program."""
        return "conv_transposed" + "_nhwc" * self.last

    @property
    def out(self) -> int:
        """Height of the result: `beyond` is PyTorch's output padding."""
        return (self.height - 1) * self.stride - 2 * self.padding + self.reach + self.beyond

    @property
    def sizes(self) -> dict[str, int]:
        """Of the program."""
        return {"B": self.batch, "C": self.channels, "H": self.height, "W": self.height, "K": self.filters, "R": self.reach,
                "S": self.reach, "P": self.out, "Q": self.out, "T": self.stride, "A": self.padding}

    @property
    def flops(self) -> int:
        """Operations, those that end beyond the result included, a multiply-add counted as two."""
        return 2 * self.batch * self.channels * self.filters * (self.height * self.reach) ** 2

    @property
    def nbytes(self) -> int:
        """Each input once, each output once."""
        weights = self.channels * self.filters * self.reach**2
        return 2 * (self.batch * (self.channels * self.height**2 + self.filters * self.out**2) + weights)

    @property
    def tiny(self) -> Transposed:
        """Of the same kind."""
        return self._replace(batch=2, channels=3, filters=4, height=5)


class Weights(NamedTuple):
    """The gradient of a convolution's weights, of square images and stride 1: a sum over all images and pixels."""

    name: str
    batch: int
    channels: int
    height: int
    filters: int
    reach: int
    last: bool = False
    arithmetic: str = "f16"

    @property
    def program(self) -> str:
        """Name of the program."""
        return "conv_weights" + "_nhwc" * self.last

    @property
    def sizes(self) -> dict[str, int]:
        """Of the program; a padding of half the filter."""
        return {"B": self.batch, "C": self.channels, "H": self.height, "W": self.height, "K": self.filters, "R": self.reach,
                "S": self.reach, "A": self.reach // 2}

    @property
    def flops(self) -> int:
        """Operations, those on padding included, a multiply-add counted as two."""
        return 2 * self.batch * self.channels * self.filters * (self.height * self.reach) ** 2

    @property
    def nbytes(self) -> int:
        """Each input once, each output once."""
        return 2 * (self.batch * (self.channels + self.filters) * self.height**2 + self.channels * self.filters * self.reach**2)

    @property
    def tiny(self) -> Weights:
        """Of the same kind."""
        return self._replace(batch=2, channels=3, filters=4, height=5)


class Attention(NamedTuple):
    """Softmax of the scaled scores of all queries and keys, times the values; `length` queries and as many keys."""

    name: str
    batch: int
    heads: int
    length: int
    width: int
    causal: bool
    arithmetic: str = "f16"

    @property
    def program(self) -> str:
        """Name of the program."""
        return "causal_attention" if self.causal else "attention"

    @property
    def sizes(self) -> dict[str, int]:
        """Of the program."""
        return {"B": self.batch, "H": self.heads, "L": self.length, "D": self.width}

    @property
    def flops(self) -> int:
        """Of the two products, of the pairs that count."""
        pairs = self.length * (self.length + 1) // 2 if self.causal else self.length**2
        return 4 * self.batch * self.heads * pairs * self.width

    @property
    def nbytes(self) -> int:
        """Each input once, each output once."""
        return 2 * 4 * self.batch * self.heads * self.length * self.width

    @property
    def tiny(self) -> Attention:
        """Of the same kind."""
        return self._replace(batch=2, heads=2, length=7, width=4)


Case = Product | Epilogue | Reduced | Triangle | Conv | Transposed | Weights | Attention
KINDS = (Product, Epilogue, Reduced, Triangle, Conv, Transposed, Weights, Attention)

MATMULS = [
    Product("mm-8192", 8192, 8192, 8192),
    Product("L-mm-4096", 4096, 4096, 4096),
    Product("L-mm-2048", 2048, 2048, 2048),
    Product("L-mm-1024", 1024, 1024, 1024),
    Product("L-bert-proj-512", 512, 768, 768),
    Product("L-bert-qkv-512", 512, 2304, 768),
    Product("L-bert-fc1-512", 512, 3072, 768),
    Product("L-bert-fc2-512", 512, 768, 3072),
    Product("L-gpt2-fc1-512", 512, 4096, 1024),
    Product("L-gpt2-fc2-512", 512, 1024, 4096),
    Product("L-fc-1024x64x2048", 1024, 64, 2048),
    Product("L-1x1-50176x64x256", 50176, 64, 256),
    Product("L-1x1-12544x512x128", 12544, 512, 128),
    Product("L-bmm-qk-512", 512, 512, 64, 12),
    Product("L-bmm-sv-512", 512, 64, 512, 12),
    Product("L-bmm-qk-1024", 1024, 1024, 64, 12),
    Product("P-splitk-128x32x1024", 128, 32, 1024),
    Product("splitk-64x64x65536", 64, 64, 65536),
]
BMMS = [*(case for case in MATMULS if case.batch),
        Product("L-bmm-sv-1024", 1024, 64, 1024, 12), Product("L-bmm16-qk-512", 512, 512, 64, 16),
        Product("L-bmm16-sv-512", 512, 64, 512, 16)]
ORDERS = [*(Product(f"{m}x{n}x{k}-{order}", m, n, k, 0, order)
            for m, n, k in ((2048, 2048, 2048), (512, 4096, 1024), (1000, 1504, 776)) for order in ("nn", "nt", "tn", "tt")),
          Product("bmm-qk-512-nt", 512, 512, 64, 12, "nt"), Product("bmm-qk-1024-nt", 1024, 1024, 64, 12, "nt")]
"""Both factors stored as rows or as columns; scores as they are computed from queries and keys."""
F32 = [Product(f"f32-{m}x{n}x{k}", m, n, k, 0, "nn", "f32") for m, n, k in (
    (1000, 1000, 1000), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096),
    (1023, 1025, 511), (4095, 1000, 777), (333, 2047, 3001))]
FEW_ROWS = [Product(f"{m}x{n}x{k}", m, n, k) for m, n, k in (
    (2, 4096, 4096), (4, 4096, 4096), (7, 4096, 4096), (4, 11008, 4096), (4096, 4, 4096), (4096, 7, 1024))]
"""A model that answers a few users at once; and few columns."""
REDUCED = [Reduced(f"{program}-{m}x{n}x{k}", program, m, n, k) for program, m, n, k in (
    ("row_squares", 4096, 4096, 1024), ("row_squares", 16384, 768, 3072), ("row_squares", 2000, 3000, 500),
    ("stored_squares", 4096, 4096, 1024), ("stored_squares", 16384, 768, 3072), ("stored_squares", 2000, 3000, 500),
    ("gram", 4096, 4096, 1024), ("gram", 1000, 1000, 4096))]
TRIANGLES = [Triangle(f"{program}-{m}x{n}", f"triangle_{program}", m, n) for program, m, n in (
    ("lower", 4096, 4096), ("lower", 2048, 8192), ("lower", 1000, 3000), ("upper", 4096, 4096), ("right", 4096, 4096))]
CONVS = [
    Conv("r50-3x3-56", 32, 64, 56, 56, 64, 3, 3, 1, 1, 1),
    Conv("r50-1x1-56", 32, 64, 56, 56, 256, 1, 1, 1, 0, 1),
    Conv("r50-3x3-28", 32, 128, 28, 28, 128, 3, 3, 1, 1, 1),
    Conv("r50-3x3-14", 32, 256, 14, 14, 256, 3, 3, 1, 1, 1),
    Conv("r50-7x7-224", 32, 3, 224, 224, 64, 7, 7, 2, 3, 1),
    Conv("r50-b1-3x3-14", 1, 256, 14, 14, 256, 3, 3, 1, 1, 1),
    Conv("r50-b1-3x3-56", 1, 64, 56, 56, 64, 3, 3, 1, 1, 1),
    Conv("mbv2-dw-112", 16, 96, 112, 112, 96, 3, 3, 2, 1, 96),
    Conv("mbv2-dw-56", 16, 144, 56, 56, 144, 3, 3, 1, 1, 144),
    Conv("mbv2-dw-14", 16, 576, 14, 14, 576, 3, 3, 1, 1, 576),
    Conv("mbv2-b1-dw-56", 1, 144, 56, 56, 144, 3, 3, 1, 1, 144),
]
CONVS_LAST = [case._replace(name=f"{case.name}-nhwc", last=True) for case in CONVS]
"""The same with channels last."""
CONVS_GROUPED = [Conv(f"rx50-{c}-{h}{'-nhwc' * last}", 32, c, h, h, c, 3, 3, 1, 1, 32, last)
                 for c, h in ((128, 56), (256, 28)) for last in (False, True)]
"""ResNeXt's convolutions of 32 groups."""
TRANSPOSED = [Transposed(f"{name}{'-nhwc' * last}", *numbers, last=last) for name, *numbers in (
    ("dcgan-8", 64, 512, 8, 256, 4, 2, 1), ("dcgan-16", 64, 256, 16, 128, 4, 2, 1), ("dcgan-32", 64, 128, 32, 64, 4, 2, 1),
    ("unet-64", 8, 256, 64, 128, 2, 2, 0), ("decoder-28", 32, 128, 28, 64, 3, 2, 1, 1),
    ("gradient-28", 32, 128, 28, 128, 3, 1, 1))
    for last in (False, True)]
"""DCGAN's generator, a step up of U-Net, a decoder of 3 x 3 by 2, and the gradient of ResNet-50's 3 x 3 of 28 x 28."""
WEIGHTS = [Weights(f"{name}{'-nhwc' * last}", 32, *numbers, last=last) for name, *numbers in (
    ("r50-3x3-56", 64, 56, 64, 3), ("r50-3x3-28", 128, 28, 128, 3), ("r50-3x3-14", 256, 14, 256, 3),
    ("r50-3x3-7", 512, 7, 512, 3), ("r50-1x1-56", 64, 56, 256, 1))
    for last in (False, True)]
"""Of ResNet-50's layers."""
FOLLOWED = ((4096, 4096, 1024), (512, 3072, 768), (16384, 768, 3072))
EPILOGUES = [Epilogue(f"{e}-{m}x{n}x{k}", e, m, n, k)
             for e in ("bias_gelu", "bias_residual", "bias_relu", "residual_rmsnorm") for m, n, k in FOLLOWED]
GELUS_TANH = [Epilogue(f"bias_gelu_tanh-{m}x{n}x{k}", "bias_gelu_tanh", m, n, k) for m, n, k in FOLLOWED]
"""The GELU that cuBLASLt's own epilogue has."""
ATTENTIONS = [Attention(f"attn-{s}-d{d}{'-causal' * c}", b, 16, s, d, c)
              for s, b in ((512, 32), (2048, 8), (8192, 2)) for d in (64, 128) for c in (False, True)]
LEAST, MOST = 1 << 26, 1 << 36
"""Multiply-adds of a random product."""


def drawn_products(count: int, seed: int) -> list[Product]:
    """Products of random sizes, each axis 32 to 8,192 and a prime, any number, or a multiple of 8; of any order."""
    rng, out = random.Random(seed), list[Product]()
    while len(out) < count:
        m, n, k = (_extent(rng) for _ in "mnk")
        order = rng.choice(("nn", "nt", "tn", "tt"))
        if LEAST <= m * n * k <= MOST:
            out.append(Product(f"{m}x{n}x{k}-{order}", m, n, k, 0, order))
    return out


def _extent(rng: random.Random) -> int:
    """A prime, any number, or a multiple of 8: rows of these begin at 16 bytes."""
    kind, n = rng.random(), int(2 ** rng.uniform(5, 13))
    if kind < 0.35:
        return next(p for p in range(n, 2 * n) if all(p % d for d in range(2, int(p**0.5) + 1)))
    return n if kind < 0.6 else n + -n % 8


def suites(count: int, seed: int) -> dict[str, list[Case]]:
    """All suites by name; `count` and `seed` are of the random one."""
    return {"matmul": [*MATMULS], "bmm": [*BMMS], "orders": [*ORDERS], "f32": [*F32], "few_rows": [*FEW_ROWS],
            "reduced": [*REDUCED], "triangles": [*TRIANGLES], "conv": [*CONVS], "conv_nhwc": [*CONVS_LAST],
            "conv_grouped": [*CONVS_GROUPED], "conv_transposed": [*TRANSPOSED], "conv_weights": [*WEIGHTS],
            "epilogue": [*EPILOGUES], "gelu_tanh": [*GELUS_TANH], "attention": [*ATTENTIONS],
            "random_products": [*drawn_products(count, seed)]}
