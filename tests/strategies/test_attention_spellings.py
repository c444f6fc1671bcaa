"""Attention as people write it: every spelling comes into the same kernel as the one whose results are divided at the end."""

from __future__ import annotations

import pytest

import explorer as ex
from benchmarks.product_programs import attention as known
from explorer.gpu.spec import gpu
from explorer.strategies import auto
from explorer.strategies.attention import attention
from explorer.strategies.attention.form import ready_form
from explorer.strategies.price import price
from tests.frontend.support import define

HEAD = """
B, H, L, D = ex.sizes("B H L D")

@ex.program
def f(q: ex.{t}[B, H, L, D], k: ex.{t}[B, H, L, D], v: ex.{t}[B, H, L, D], m: ex.f32[L, L], y: ex.{t}[B, H, L, D]):
    s = ex.local(ex.f32, B, H, L, L)
    e = ex.local(ex.f32, B, H, L, L)
    p = ex.local(ex.{t}, B, H, L, L)
    for b in range(B):
        for h in range(H):
            for i in range(L):
                for j in range({n}):
                    dot = ex.local(ex.f32)
                    dot = 0.0
                    for d in range(D):
                        dot += q[b, h, i, d] * k[b, h, j, d]
                    s[b, h, i, j] = {score}
"""
ROWS = """    for b in range(B):
        for h in range(H):
            for i in range(L):
"""
SOFTMAX = """                peak = ex.local(ex.f32)
                total = ex.local(ex.f32)
                peak = -ex.inf
                for j in range({n}):
                    peak = max(peak, s[b, h, i, j])
                total = 0.0
                for j in range({n}):
                    {sums}
"""
VALUES = """                for d in range(D):
                    out = ex.local(ex.f32)
                    out = 0.0
                    for j in range({n}):
                        out += {weight} * v[b, h, j, d]
                    y[b, h, i, d] = {result}
"""
E = "ex.exp(s[b, h, i, j] - peak)"
KEPT = f"e[b, h, i, j] = {E}\n                    total += e[b, h, i, j]"
STORED = """                for j in range({n}):
                    p[b, h, i, j] = {stored}
"""
P = "p[b, h, i, j]"


def written(*parts: str, t: str = "f16", n: str = "L", score: str = "dot * D ** -0.5", sums: str = f"total += {E}",
            stored: str = f"{E} / total", weight: str = P, result: str = "out") -> ex.ProgramDefinition:
    text = "".join((HEAD, *parts)).format(t=t, n=n, score=score, sums=sums, stored=stored, weight=weight, result=result)
    for name in ("e", "p"):  # temporaries that are not used
        if f"{name}[b" not in text:
            text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(f"    {name} = "))
    return define(text if "m[i, j]" in text else text.replace(" m: ex.f32[L, L],", ""))


SPELLINGS = {
    "weights divided by their sum": written(SOFTMAX, STORED, VALUES),
    "exponentials kept, then divided": written(SOFTMAX, STORED, VALUES, sums=KEPT, stored="e[b, h, i, j] / total"),
    "multiplied by a reciprocal": written(SOFTMAX, STORED, VALUES, sums=KEPT, stored="e[b, h, i, j] * (1.0 / total)"),
    "no weights stored": written(SOFTMAX, VALUES, weight=E, result="out / total"),
    "no weights stored, and divided": written(SOFTMAX, VALUES, weight=f"({E} / total)"),
    "three nests": written(ROWS, SOFTMAX, STORED, ROWS, VALUES),
    "bf16 with an additive mask": written(SOFTMAX, STORED, VALUES, t="bf16", score="dot * D ** -0.5 + m[i, j]"),
    "causal, divided": written(SOFTMAX, STORED, VALUES, n="i + 1"),
    "causal, three nests": written(ROWS, SOFTMAX, STORED, ROWS, VALUES, n="i + 1"),
    "the sum at the end": written(SOFTMAX, STORED, VALUES, stored=E, result="out / total"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_spelling_is_one_kernel(name: str) -> None:
    s = SPELLINGS[name].schedule(B=2, H=2, L=512, D=64)
    ready = ready_form(s, s.plan.kernels[0].id)
    assert ready is not None
    made = auto(s)
    assert len(made.plan.kernels) == 1
    best = price(auto(known.schedule(B=2, H=2, L=512, D=64)).plan, gpu("H200")).total_us
    assert price(made.plan, gpu("H200")).total_us <= best * 1.3


@pytest.mark.parametrize("name", SPELLINGS)
def test_it_is_right(name: str) -> None:
    s = SPELLINGS[name].schedule(B=1, H=2, L=40, D=16)
    ready = ready_form(s, s.plan.kernels[0].id)
    assert ready is not None
    assert ready[0].run(device="cpu", time=False).correct
    for name in ("H200", "A100"):
        assert attention(s, gpu=gpu(name)).run(device="cpu", time=False).correct


def test_what_needs_the_sum_before_is_left() -> None:
    """Weights to which something is added after the division need the sum before they multiply the values."""
    s = written(SOFTMAX, STORED, VALUES, stored=f"{E} / total + 0.5").schedule(B=1, H=2, L=48, D=16)
    assert ready_form(s, s.plan.kernels[0].id) is None
    assert auto(s).run(device="cpu", time=False).correct
