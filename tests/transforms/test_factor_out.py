"""Factors that leave a sum: which do, what they leave behind, values against the program's, and what is refused."""

from __future__ import annotations

import pytest

import explorer as ex
from benchmarks.product_programs import attention as plain
from explorer.errors import TransformError
from explorer.poly.tensor import is_product
from explorer.strategies.attention.form import ready_form
from explorer.strategies.auto import auto
from explorer.strategies.contraction import factors_outside
from tests.frontend.support import define

OUTER = """
@ex.program
def f(a: ex.f32[M, K], b: ex.f32[K, N], r: ex.f32[M], w: ex.f32[K], u: ex.f32[M, N], alpha: ex.f32[1], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = u[i, j]
            for k in range(K):
                t += {terms}
            c[i, j] = t + (a[i, 0] + b[0, j] + r[i] + w[0] + alpha[0])
"""


def summed(terms: str, m: int = 5, n: int = 6, k: int = 7) -> ex.Schedule:
    return define(OUTER.format(terms=terms)).schedule(M=m, N=n, K=k)


LEAVE = {
    "alpha[0] * a[i, k] * b[k, j]": ("alpha[0] * t_p", "a[i, k] * b[k, j]"),
    "a[i, k] * 0.5 * b[k, j]": ("0.5 * t_p", "a[i, k] * b[k, j]"),
    "a[i, k] * (r[i] * b[k, j]) * alpha[0]": ("r[i] * alpha[0] * t_p", "a[i, k] * b[k, j]"),
    "(u[i, j] + 1.0) * a[i, k]": ("(u[i, j] + 1.0) * t_p", "a[i, k]"),
    "i * j * w[k]": ("i * j * t_p", "w[k]"),
    "r[i] * (a[i, k] + b[k, j])": ("r[i] * t_p", "a[i, k] + b[k, j]"),
    "-(a[i, k] * b[k, j])": ("-t_p", "a[i, k] * b[k, j]"),
    "a[i, k] * (-b[k, j]) * alpha[0]": ("-1.0 * alpha[0] * t_p", "a[i, k] * b[k, j]"),
}


@pytest.mark.parametrize("terms", LEAVE)
def test_what_all_terms_share_multiplies_the_sum_once(terms: str) -> None:
    s = summed(terms).factor_out("t")
    combined, left = LEAVE[terms]
    text = str(s).replace("[i, j] +=", " +=").replace("t_p[i, j]", "t_p")
    assert f"S1: t_p += {left}\n" in text
    assert f"S1_combine: t += {combined}\n" in text
    assert s.judgement.legal
    assert s.run(device="cpu", time=False).correct


def test_sums_from_zero_are_written_once() -> None:
    s = define(SCALED).schedule(M=3, N=4, K=5).factor_out("S1")
    assert "S0: t_p[i, j] = 0.0" in str(s)
    assert "S1_combine: t[i, j] = alpha[0] * t_p[i, j]" in str(s)
    assert s.run(device="cpu", time=False).correct


def test_in_tiles_and_other_orders_of_the_loops() -> None:
    s = summed("alpha[0] * a[i, k] * b[k, j]", 9, 10, 11).distribute("j", after="S1").distribute("j", after="S0")
    s = s.split("k", 4).reorder(("k", "j_2" if "j_2" in s.plan.loops else s.plan.resolve("S1")[1][-2].id))  # type: ignore[index]
    made = s.factor_out("S1")
    assert is_product(made.plan.statement_of["S1"])
    assert made.run(device="cpu", time=False).correct


def test_a_staged_factor_stays_behind_and_others_keep_their_copies() -> None:
    s = summed("alpha[0] * a[i, k] * b[k, j]").stage("b", "j").factor_out("S1")
    leaf, _, _ = s.plan.resolve("S1")  # type: ignore[misc]
    assert [slot for slot, _ in leaf.views] == [1]
    assert s.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("terms", "words"), [
    ("a[i, k] * b[k, j]", "share no factor"), ("a[i, k] * w[k] * b[k, j]", "share no factor"),
    ("alpha[0] * a[i, k] + b[k, j]", "share no factor"), ("r[i] * alpha[0]", "all terms of S1 are the same"),
])
def test_sums_without_a_shared_factor(terms: str, words: str) -> None:
    with pytest.raises(TransformError, match=words):
        summed(terms).factor_out("S1")


def test_what_is_no_sum_and_factors_that_change() -> None:
    with pytest.raises(TransformError, match="is not a reduction"):
        summed("a[i, k]").factor_out("S2")
    largest = OUTER.replace("t += {terms}", "t = max(t, alpha[0] * a[i, k])")
    with pytest.raises(TransformError, match="a factor does not leave the max of S1"):
        define(largest).schedule(M=3, N=3, K=3).factor_out("S1")
    changing = OUTER.format(terms="q * a[i, k]").replace("            t = u", f"{' ' * 12}q = ex.local(ex.f32)\n{' ' * 12}t = u")
    changing = changing.replace("                t +=", "                q = w[k]\n                t +=")
    with pytest.raises(TransformError, match="q is written in the loops of the sum"):
        define(changing).schedule(M=3, N=3, K=3).factor_out("t")


SCALED = """
@ex.program
def f(a: ex.f16[M, K], b: ex.f16[K, N], alpha: ex.f32[1], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += alpha[0] * a[i, k] * b[k, j]
            c[i, j] = t
"""


def test_auto_finds_the_product_in_a_scaled_one() -> None:
    made = auto(define(SCALED).schedule(M=64, N=72, K=96))
    assert "factor_out('S1')" in map(str, made.steps)
    assert any(leaf.mechanism.startswith("m16n8k16") for leaf, _, _ in made.plan.leaves)
    assert len(made.plan.kernels) == 1
    assert made.run(device="cpu", time=False).correct


def test_auto_finds_the_product_that_is_subtracted() -> None:
    made = auto(define(SCALED.replace("t += alpha[0] *", "t -=").replace("t = 0.0", "t = alpha[0]")).schedule(M=64, N=72, K=96))
    assert any(leaf.mechanism.startswith("m16n8k16") for leaf, _, _ in made.plan.leaves)
    assert made.run(device="cpu", time=False).correct


def test_cut_off_factors_are_checked_as_such() -> None:
    """What remains of the product may be computed in tf32, and the run's reference then cuts these factors off, and no others."""
    s = summed("alpha[0] * a[i, k] * b[k, j]", 16, 8, 64).factor_out("S1").approximate("S1", factors="tf32")
    assert s.run(device="cpu", time=False).correct


def test_attention_with_the_scale_in_its_scores_is_one_kernel() -> None:
    text = str(plain).replace("dot += q", "dot += D ** -0.5 * q").replace("s[j] = dot * D ** -0.5", "s[j] = dot")
    sizes = dict(zip("BHLD", ex.sizes("B H L D"), strict=True))
    s = define(text, **sizes).schedule(B=1, H=1, L=64, D=16)
    (kernel,) = [k.id for k in s.plan.kernels]
    assert ready_form(s, kernel) is None
    assert ready_form(factors_outside(s), kernel) is not None


EXTREME = """
@ex.program
def f(a: ex.{kind}[M, N], b: ex.{kind}[M]):
    for i in range(M):
        b[i] = {start}
        for j in range(N):
            b[i] = {update}(b[i], {term})
"""


@pytest.mark.parametrize(("update", "start", "begun"), [("max", "-ex.inf", True), ("min", "ex.inf", True), ("max", "0.5", False)])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_a_positive_constant_leaves_an_extremum(update: str, start: str, begun: bool, kind: str) -> None:
    s = define(EXTREME.format(kind=kind, start=start, update=update, term="a[i, j] * 0.125")).schedule(M=5, N=37)
    done = s.factor_out("S1")
    assert f"S1: b_p[i] {update}= a[i, j]" in str(done)
    last = "S1_combine: b[i] = 0.125 * b_p[i]" if begun else f"S1_combine: b[i] {update}= 0.125 * b_p[i]"
    assert last in str(done)
    assert done.judgement.legal
    assert done.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("term", "kind", "why"), [
    ("a[i, j] * -0.125", "f32", "may be negative"),
    ("a[i, j] * 0.0", "f32", "may be negative, zero"),
    ("a[i, j] * a[i, 0]", "f32", "may be negative"),
    ("a[i, j] * 3", "i32", "integers overflow"),
])
def test_what_may_turn_an_order_stays_in_an_extremum(term: str, kind: str, why: str) -> None:
    start = "-2147483648" if kind == "i32" else "-ex.inf"
    s = define(EXTREME.format(kind=kind, start=start, update="max", term=term)).schedule(M=5, N=7)
    with pytest.raises(TransformError, match=why):
        s.factor_out("S1")
