"""What the libraries run for products: cuBLAS, cuBLASLt, cuDNN and SDPA through PyTorch, Inductor's max-autotune, and Triton's
tutorials.

Outputs are allocated before where the library allows it.  A call's name begins with its library, which ``--peers``
selects: ``torch``, ``inductor`` or ``triton``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from product_cases import Attention, Case, Conv, Epilogue, Product, Reduced, Transposed, Triangle, Weights

DEVICE = "cuda"
MODE = "max-autotune-no-cudagraphs"
EPSILON = 1e-5

Call = Callable[[], torch.Tensor]


def same(result: torch.Tensor) -> torch.Tensor:
    """A peer's result as it is."""
    return result


@dataclass
class Rivals:
    """The inputs of a case, its right result, and the libraries' calls.

    Attributes
    ----------
    given : dict of str to Tensor
        By the names of our program.
    output : str
        Name of our result.
    wanted : callable
        The result in float64, as our program lays it out.
    calls : dict of str to callable
        What the libraries run.
    ours : callable
        From a library's result to our layout.
    """

    given: dict[str, torch.Tensor]
    output: str
    wanted: Call
    calls: dict[str, Call] = field(default_factory=dict)
    ours: Callable[[torch.Tensor], torch.Tensor] = same


def rivals(case: Case) -> Rivals:
    """Those of a case."""
    torch._dynamo.reset()
    if isinstance(case, Product):
        return product(case)
    if isinstance(case, Epilogue):
        return epilogue(case)
    if isinstance(case, Reduced):
        return reduced(case)
    if isinstance(case, Triangle):
        return triangle(case)
    if isinstance(case, Transposed):
        return transposed(case)
    if isinstance(case, Weights):
        return weights(case)
    return conv(case) if isinstance(case, Conv) else attention(case)


def new(*shape: int, dtype: torch.dtype = torch.float16, scale: float = 1.0) -> torch.Tensor:
    """Normal values."""
    return (torch.randn(shape, device=DEVICE) * scale).to(dtype)


def tuned(fn: Callable[..., torch.Tensor], *given: Any) -> Call:
    """Inductor's fastest version for these very shapes."""
    return partial(torch.compile(fn, dynamic=False, mode=MODE), *given)


def by_triton(what: str, *given: Any) -> dict[str, Call]:
    """Calls of Triton's tutorials; none where there is no Triton."""
    if find_spec("triton") is None:
        return {}
    import triton_peers

    return getattr(triton_peers, what)(*given)


def through(library: str, call: Call) -> Call:
    """A call with another BLAS preferred; the preference costs the device nothing."""
    def preferring() -> torch.Tensor:
        before = torch.backends.cuda.preferred_blas_library()
        torch.backends.cuda.preferred_blas_library(library)
        try:
            return call()
        finally:
            torch.backends.cuda.preferred_blas_library(before)

    return preferring


def product(case: Product) -> Rivals:
    """By cuBLAS's own choice and by cuBLASLt's; factors that are stored transposed are passed as transposed views."""
    dtype = torch.float32 if case.arithmetic == "f32" else torch.float16
    lead = (case.batch,) if case.batch else ()
    first, second = (flip == "t" for flip in case.order)
    a = new(*lead, *((case.k, case.m) if first else (case.m, case.k)), dtype=dtype)
    b = new(*lead, *((case.n, case.k) if second else (case.k, case.n)), dtype=dtype)
    out = torch.empty(*lead, case.m, case.n, device=DEVICE, dtype=dtype)

    def factors(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return a.mT if first else a, b.mT if second else b

    def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(*factors(a, b))

    plain = partial(torch.bmm if case.batch else torch.mm, *factors(a, b), out=out)
    return Rivals({"a": a, "b": b}, "c", lambda: multiply(a.double(), b.double()), {
        "torch": plain, "torch_cublaslt": through("cublaslt", plain), "inductor": tuned(multiply, a, b),
        **(by_triton("products", *factors(a, b)) if case.arithmetic == "f16" else {})})


def epilogue(case: Epilogue) -> Rivals:
    """A product with the bias or the residual as its third operand, then what follows; for bias and activation, one call."""
    a, b = new(case.m, case.k), new(case.k, case.n, scale=case.k**-0.5)
    bias, r = new(case.n), new(case.m, case.n)
    w, out = 1 + 0.1 * new(case.n), torch.empty(case.m, case.n, device=DEVICE, dtype=torch.float16)
    calls: dict[str, Call] = {}
    if case.program == "residual_rmsnorm":
        def formula(a: torch.Tensor, b: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return F.rms_norm(torch.mm(a, b) + r, (case.n,), w, EPSILON)

        given = {"a": a, "b": b, "r": r, "w": w}
        calls["torch"] = lambda: F.rms_norm(torch.addmm(r, a, b, out=out), (case.n,), w, EPSILON)
    elif case.program == "bias_residual":
        def formula(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
            return torch.mm(a, b) + bias + r

        given = {"a": a, "b": b, "bias": bias, "r": r}
        calls["torch"] = lambda: torch.addmm(bias, a, b, out=out).add_(r)
        calls["torch_residual"] = lambda: torch.addmm(r, a, b, out=out).add_(bias)
    else:
        gelu = case.program != "bias_relu"
        act = partial(F.gelu, approximate="tanh" if case.program == "bias_gelu_tanh" else "none") if gelu else F.relu

        def formula(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            return act(torch.mm(a, b) + bias)

        given = {"a": a, "b": b, "bias": bias}
        calls["torch"] = lambda: (act if gelu else torch.relu_)(torch.addmm(bias, a, b, out=out))
        # cuBLASLt's own epilogue, whose GELU is the one with tanh
        own = "torch_other_gelu" if case.program == "bias_gelu" else "torch_fused"
        calls[own] = lambda: torch._addmm_activation(bias, a, b, use_gelu=gelu)
    calls["inductor"] = tuned(formula, *given.values())
    if case.program != "residual_rmsnorm":
        calls |= by_triton("products", a, b, case.program, bias, r)
    return Rivals(given, "y", lambda: formula(*(v.double() for v in given.values())), calls)


def reduced(case: Reduced) -> Rivals:
    """A product in f16 and the norms of its rows in f32; or one of a matrix by its transpose."""
    a = new(case.m, case.k)
    if case.program == "gram":
        def gram(a: torch.Tensor) -> torch.Tensor:
            return torch.mm(a, a.mT)

        out = torch.empty(case.m, case.m, device=DEVICE, dtype=torch.float16)
        plain = partial(torch.mm, a, a.mT, out=out)
        return Rivals({"a": a}, "y", lambda: gram(a.double()), {
            "torch": plain, "torch_cublaslt": through("cublaslt", plain), "inductor": tuned(gram, a),
            **by_triton("products", a, a.mT)})
    b = new(case.k, case.n, scale=case.k**-0.5)
    product = torch.empty(case.m, case.n, device=DEVICE, dtype=torch.float16)

    def squares(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.mm(a, b).float().square().sum(1)

    def both(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        c = torch.mm(a, b)
        return c, c.float().square().sum(1)

    stored = case.program == "stored_squares"
    return Rivals({"a": a, "b": b}, "r" if stored else "y", lambda: (a.double() @ b.double()).square().sum(1), {
        "torch": lambda: torch.linalg.vector_norm(torch.mm(a, b, out=product), dim=1, dtype=torch.float32).square_(),
        "inductor": tuned(both if stored else squares, a, b)}, lambda out: out[1] if isinstance(out, tuple) else out)


def triangle(case: Triangle) -> Rivals:
    """Libraries multiply by the whole square, with zeros in its other half (no library has such a product in f16)."""
    square, other = new(case.m, case.m, scale=case.m**-0.5), new(case.m, case.n)
    square = torch.tril(square) if case.program == "triangle_lower" else torch.triu(square)
    a, b = (other.mT.contiguous(), square) if case.program == "triangle_right" else (square, other)
    out = torch.empty(a.shape[0], b.shape[1], device=DEVICE, dtype=torch.float16)
    plain = partial(torch.mm, a, b, out=out)
    return Rivals({"a": a, "b": b}, "y", lambda: a.double() @ b.double(), {
        "torch": plain, "torch_cublaslt": through("cublaslt", plain), **by_triton("products", a, b)})


def conv(case: Conv) -> Rivals:
    """By the fastest of cuDNN's algorithms, NCHW and channels last; bias and ReLU after it, and in its own fused call."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0  # try all
    inside = case.channels // case.groups * case.rows * case.columns
    x = new(case.batch, case.channels, case.height, case.width)
    f = new(case.filters, case.channels // case.groups, case.rows, case.columns, scale=inside**-0.5)
    bias = new(case.filters)
    calls: dict[str, Call] = {}

    def formula(x: torch.Tensor, f: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(F.conv2d(x, f, bias, case.stride, case.padding, groups=case.groups))

    def apart(x: torch.Tensor, f: torch.Tensor) -> torch.Tensor:
        return torch.relu_(F.conv2d(x, f, bias, case.stride, case.padding, groups=case.groups))

    def fused(x: torch.Tensor, f: torch.Tensor) -> torch.Tensor:
        return torch.cudnn_convolution_relu(x, f, bias, (case.stride,) * 2, (case.padding,) * 2, (1, 1), case.groups)

    def wanted() -> torch.Tensor:
        """By one product of unfolded windows for each group, one image at a time."""
        images = []
        weights = f.double().reshape(case.groups, case.filters // case.groups, inside)
        for image in x.split(1):
            windows = F.unfold(image.double(), (case.rows, case.columns), padding=case.padding, stride=case.stride)
            found = torch.matmul(weights, windows.reshape(case.groups, inside, -1))
            images.append(torch.relu(found.reshape(1, case.filters, *case.out) + bias.double()[:, None, None]))
        return laid(torch.cat(images))

    def laid(result: torch.Tensor) -> torch.Tensor:
        return result.permute(0, 2, 3, 1) if case.last else result

    for layout, memory in (("", torch.contiguous_format), ("_nhwc", torch.channels_last)):
        given = (x.to(memory_format=memory), f.to(memory_format=memory))
        calls["torch" + layout] = partial(apart, *given)
        calls["torch_fused" + layout] = partial(fused, *given)
        calls["inductor" + layout] = tuned(formula, *given, bias)
    filters = f
    if case.depthwise:
        filters = f[:, 0].permute(1, 2, 0) if case.last else f[:, 0]
    elif case.last:
        filters = f.permute(0, 2, 3, 1)
    return Rivals({"x": laid(x).contiguous(), "f": filters.contiguous(), "bias": bias}, "y", wanted, calls, laid)


def transposed(case: Transposed) -> Rivals:
    """By the fastest of cuDNN's algorithms, NCHW and channels last."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0  # try all
    x = new(case.batch, case.channels, case.height, case.height)
    f = new(case.channels, case.filters, case.reach, case.reach, scale=(case.channels * (case.reach / case.stride) ** 2) ** -0.5)
    calls: dict[str, Call] = {}

    def formula(x: torch.Tensor, f: torch.Tensor) -> torch.Tensor:
        return F.conv_transpose2d(x, f, None, case.stride, case.padding, case.beyond)

    def wanted() -> torch.Tensor:
        """Folded windows, one image at a time."""
        weights = f.double().reshape(case.channels, -1)
        whole = case.out + 2 * case.padding
        images = []
        for image in x.split(1):
            windows = weights.T @ image.double().reshape(case.channels, -1)
            covered = (case.height - 1) * case.stride + case.reach
            found = F.fold(windows[None], (covered, covered), (case.reach, case.reach), stride=case.stride)
            found = F.pad(found, (0, whole - covered, 0, whole - covered))
            images.append(found[:, :, case.padding:case.padding + case.out, case.padding:case.padding + case.out])
        return laid(torch.cat(images))

    def laid(result: torch.Tensor) -> torch.Tensor:
        return result.permute(0, 2, 3, 1) if case.last else result

    for layout, memory in (("", torch.contiguous_format), ("_nhwc", torch.channels_last)):
        given = (x.to(memory_format=memory), f.to(memory_format=memory))
        calls["torch" + layout] = partial(formula, *given)
        calls["inductor" + layout] = tuned(formula, *given)
    filters = f.permute(2, 3, 1, 0) if case.last else f
    return Rivals({"x": laid(x).contiguous(), "f": filters.contiguous()}, "y", wanted, calls, laid)


def weights(case: Weights) -> Rivals:
    """By the fastest of cuDNN's algorithms, NCHW and channels last."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0  # try all
    x = new(case.batch, case.channels, case.height, case.height)
    g = new(case.batch, case.filters, case.height, case.height, scale=(case.batch * case.height**2) ** -0.5)
    calls: dict[str, Call] = {}
    size, padding = (case.filters, case.channels, case.reach, case.reach), case.reach // 2

    def formula(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        like = torch.empty(size, device=x.device, dtype=x.dtype)
        return torch.ops.aten.convolution_backward(g, x, like, None, [1, 1], [padding, padding], [1, 1], False, [0, 0], 1,
                                                   [False, True, False])[1]

    def wanted() -> torch.Tensor:
        """Unfolded windows, one image at a time."""
        total = torch.zeros(case.filters, case.channels * case.reach**2, device=x.device, dtype=torch.float64)
        for image, grown in zip(x.split(1), g.split(1), strict=True):
            windows = F.unfold(image.double(), (case.reach, case.reach), padding=padding)[0]
            total += grown.double().reshape(case.filters, -1) @ windows.T
        return laid(total.reshape(size))

    def laid(result: torch.Tensor) -> torch.Tensor:
        return result.permute(2, 3, 0, 1) if case.last else result

    for layout, memory in (("", torch.contiguous_format), ("_nhwc", torch.channels_last)):
        calls["torch" + layout] = partial(formula, x.to(memory_format=memory), g.to(memory_format=memory))
    own = [t.permute(0, 2, 3, 1).contiguous() if case.last else t for t in (x, g)]
    return Rivals({"x": own[0], "g": own[1]}, "y", wanted, calls, laid)


def attention(case: Attention) -> Rivals:
    """Every backend of SDPA, and flexible attention tuned by Inductor."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (new(case.batch, case.heads, case.length, case.width) for _ in "qkv")

    def by(backend: SDPBackend) -> torch.Tensor:
        with sdpa_kernel([backend]):
            return F.scaled_dot_product_attention(q, k, v, is_causal=case.causal)

    def wanted() -> torch.Tensor:
        """Head by head."""
        out = torch.empty(q.shape, device=DEVICE, dtype=torch.float64)
        later = torch.ones(case.length, case.length, device=DEVICE, dtype=torch.bool).triu(1)
        for b in range(case.batch):
            for h in range(case.heads):
                scores = q[b, h].double() @ k[b, h].double().mT * case.width**-0.5
                if case.causal:
                    scores.masked_fill_(later, -torch.inf)
                out[b, h] = torch.softmax(scores, -1) @ v[b, h].double()
        return out

    names = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "cudnn": "CUDNN_ATTENTION", "math": "MATH"}
    calls: dict[str, Call] = {f"torch_{name}": partial(by, getattr(SDPBackend, backend))
                              for name, backend in names.items() if hasattr(SDPBackend, backend)}
    calls["inductor"] = flexible(case, q, k, v)
    calls |= by_triton("attention", q, k, v, case.causal)
    return Rivals({"q": q, "k": k, "v": v}, "y", wanted, calls)


def flexible(case: Attention, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Call:
    """Flexible attention, compiled when it is first called."""
    made: list[Call] = []

    def call() -> torch.Tensor:
        if not made:
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention

            mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, case.length, case.length,
                                     device=DEVICE) if case.causal else None
            made.append(partial(tuned(flex_attention), q, k, v, block_mask=mask))
        return made[0]()

    return call
