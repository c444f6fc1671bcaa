"""Parts of values computed before: which part, values against the program's, its way back, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.ir.dtype import DTYPES
from explorer.ir.scalar import Call, Cast, Literal, walk
from explorer.transforms._rounded_parts import stored_narrower
from explorer.transforms.approximate import as_computed
from explorer.transforms.precompute import Precompute
from tests.frontend.support import define

SUM = """
@ex.program
def f(a: ex.f16[M, K], b: ex.f16[K, N], w: ex.f16[K], r: ex.f32[M], q: ex.i8[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += {term}
            c[i, j] = t + (a[i, 0] + b[0, j] + w[0] + r[i] + q[0, j])
"""


def summed(term: str) -> ex.Schedule:
    return define(SUM.format(term=term)).schedule(M=5, N=6, K=7)


PARTS = {
    "max(a[i, k], 0.0) * b[k, j]": ("a", "a_p[i.p, k.p] = max(a[i.p, k.p], 0.0)", "a_p[i, k] * b[k, j]"),
    "a[i, k] * b[k, j] * w[k]": ("a", "a_p[i.p, k.p] = a[i.p, k.p] * w[k.p]", "a_p[i, k] * b[k, j]"),
    "a[i, k] * (w[k] * b[k, j])": ("b", "b_p[k.p, j.p] = w[k.p] * b[k.p, j.p]", "a[i, k] * b_p[k, j]"),
    "a[i, k] * abs(b[k, j] - w[k])": ("w", "", ""),
    "a[i, k] * abs(b[k, j] - 1.0) * 2.0": ("b", "b_p[k.p, j.p] = abs(b[k.p, j.p] - 1.0) * 2.0", "a[i, k] * b_p[k, j]"),
    "(a[i, k] + r[i]) * b[k, j]": ("a", "a_p[i.p, k.p] = a[i.p, k.p] + r[i.p]", "a_p[i, k] * b[k, j]"),
    "(a[i, k] * k + i) * b[k, j]": ("a", "a_p[i.p, k.p] = a[i.p, k.p] * k.p + i.p", "a_p[i, k] * b[k, j]"),
    "a[i, k] + abs(b[k, j]) * 2.0": ("b", "b_p[k.p, j.p] = abs(b[k.p, j.p]) * 2.0", "a[i, k] + b_p[k, j]"),
}


@pytest.mark.parametrize("term", [t for t, (_, own, _) in PARTS.items() if own])
def test_the_part_is_what_the_element_tells(term: str) -> None:
    array, own, left = PARTS[term]
    s = summed(term)
    made = s.precompute("S1", array)
    assert f"S1_p: {own}\n" in str(made)
    assert f"+= {left}\n" in str(made)
    assert made.judgement.legal
    assert made.run(device="cpu", time=False).correct
    back = made.inline(f"{array}_p")
    assert "S1_p" not in str(back)
    assert back.run(device="cpu", time=False).correct


def test_a_narrower_type_rounds_where_the_program_is_compared() -> None:
    s = summed("(a[i, k] + r[i]) * b[k, j]")
    wide, narrow = s.precompute("S1", "a"), s.precompute("S1", "a", dtype="f16")
    assert wide.plan.array_of["a_p"].dtype == DTYPES["f32"]
    assert as_computed(s.source, wide.plan) == s.source
    [cast] = [n for n in walk(as_computed(s.source, narrow.plan).statement_of["S1"].value) if isinstance(n, Cast)]
    assert cast.dtype == DTYPES["f16"]
    # 2049 is no f16: sums of 1 are lost, and the program that rounds there says so
    arrays = {"a": np.full((5, 7), 2048, np.float16), "b": np.ones((7, 6), np.float16), "w": np.ones(7, np.float16),
              "r": np.ones(5, np.float32), "q": np.ones((7, 6), np.int8)}
    assert wide.run(arrays, device="cpu", time=False).outputs["c"][0, 0] == 7 * 2049 + 2048 + 1 + 1 + 1 + 1
    run = narrow.run(arrays, device="cpu", time=False)
    assert run.outputs["c"][0, 0] == 7 * 2048 + 2048 + 1 + 1 + 1 + 1
    assert run.correct


def test_a_narrower_type_counts_behind_other_moves() -> None:
    s = summed("max(a[i, k], 0.25) * w[k] * b[k, j]").precompute("S1", "a", dtype="f16")
    made = s.split("k", 3).launch("f", after="i.p").bind("i", "block.x").bind("j", "thread.x")
    assert made.run(device="cpu", time=False).correct
    assert any(isinstance(n, Cast) for n in walk(as_computed(made.source, made.plan).statement_of["S1"].value))


def test_elements_of_a_narrower_array_alone() -> None:
    """Weights of 8 bits in the type of the other factor: nothing is rounded."""
    s = summed("a[i, k] * q[k, j]")
    made = s.precompute("S1", "q", dtype="f16")
    assert "S1_p: q_p[k.p, j.p] = q[k.p, j.p]\n" in str(made)
    assert made.run(device="cpu", time=False).correct
    with pytest.raises(TransformError, match="computes nothing of it alone"):
        s.precompute("S1", "q")


def test_windows_are_computed_once_for_each_element() -> None:
    """The temporary has the array's elements, not one for each window that has them."""
    s = define("""
@ex.program
def f(x: ex.f32[N + 2], w: ex.f32[3], y: ex.f32[N]):
    for i in range(N):
        t = ex.local(ex.f32)
        t = 0.0
        for r in range(3):
            t += max(x[i + r], 0.0) * w[r]
        y[i] = t
""").schedule(N=9)
    made = s.precompute("S1", "x")
    assert made.plan.array_of["x_p"].shape == (11,)
    assert "+= x_p[i + r] * w[r]" in str(made)
    assert made.run(device="cpu", time=False).correct


def test_what_is_refused() -> None:
    s = summed("a[i, k] * b[k, j]")
    for step, why in {Precompute("S1", "r"): "does not read r", Precompute("S1", "a"): "computes nothing of it alone",
                      Precompute("S9", "a"): "there is no statement", Precompute("S1", "a", "f12"): "has no type 'f12'"}.items():
        verdict = step.check(s.plan)
        assert not verdict
        assert why in verdict.what
    spread = summed("max(a[i, k], 0.0) * b[k, j]").bind("i", "block.x")
    with pytest.raises(TransformError, match="is spread over the GPU already"):
        spread.precompute("S1", "a")
    staged = summed("max(a[i, k], 0.0) * b[k, j]").stage("a", "i", threads=False)
    with pytest.raises(TransformError, match="reads a_s, a copy"):
        staged.precompute("S1", "a")


def test_an_array_that_changes_between() -> None:
    s = define("""
@ex.program
def f(x: ex.inout[ex.f32[N]], y: ex.f32[N, N]):
    for i in range(N):
        x[i] = x[i] * 0.5
        for j in range(N):
            y[i, j] = abs(x[i]) + j
""").schedule(N=5)
    with pytest.raises(TransformError, match="x changes between S1_p and S1"):
        s.precompute("S1", "x")


def test_data_dependent_reads_beside_it() -> None:
    """A part goes, and the slots that indices read move with the others."""
    s = define("""
@ex.program
def f(x: ex.f32[N], w: ex.f32[M], at: ex.i32[N], y: ex.f32[N, N]):
    for i in range(N):
        for j in range(N):
            y[i, j] = abs(x[j]) * w[at[i] % M] + at[j]
""").schedule(N=5, M=4)
    made = s.precompute("S0", "x")
    assert "S0_p: x_p[j.p] = abs(x[j.p])\n" in str(made)
    assert made.run(device="cpu", time=False).correct
    with pytest.raises(TransformError, match="data-dependent"):
        s.precompute("S0", "w")


def test_statements_before_it_compute_it_themselves() -> None:
    """The part is computed in front of the statement that is named: what stands before that cannot read it."""
    s = define("""
@ex.program
def f(x: ex.f32[N], y: ex.f32[N], z: ex.f32[N]):
    for i in range(N):
        y[i] = abs(x[i]) + 1.0
    for i in range(N):
        z[i] = abs(x[i]) * 2.0 + i
""").schedule(N=5)
    late, early = s.precompute("S1", "x"), s.precompute("S0", "x")
    assert "S0: y[i] = abs(x[i]) + 1.0" in str(late)
    assert "S1: z[i_2] = x_p[i_2]" in str(early) or "x_p" not in str(early).split("S1:")[1]
    for made in (late, early):
        assert made.run(device="cpu", time=False).correct


def test_statements_behind_it_read_it_too() -> None:
    s = define("""
@ex.program
def f(x: ex.f32[N], w: ex.f32[N], y: ex.f32[N], z: ex.f32[N, N]):
    for i in range(N):
        y[i] = abs(x[i])
        for j in range(N):
            z[i, j] = abs(x[i]) * w[j]
""").schedule(N=5)
    made = s.precompute("S0", "x")
    assert "S0: y[i] = x_p[i]" in str(made)
    assert "S1: z[i, j] = x_p[i] * w[j]" in str(made)
    assert made.run(device="cpu", time=False).correct
    inside = s.precompute("S1", "x", at="i")
    assert "S1_p: x_p[i] = abs(x[i])" in str(inside)
    assert inside.run(device="cpu", time=False).correct


def test_a_part_of_a_part_that_is_narrower() -> None:
    s = summed("(a[i, k] + r[i]) * b[k, j]")
    made = s.precompute("S1", "a").precompute("S1_p", "a", dtype="f16")
    [cast] = [n for n in walk(as_computed(made.source, made.plan).statement_of["S1"].value) if isinstance(n, Cast)]
    assert cast.dtype == DTYPES["f16"]
    assert made.run(device="cpu", time=False).correct


def test_only_those_who_compute_all_of_it_read_it() -> None:
    """An element alone is not the square of it."""
    s = define("""
@ex.program
def f(x: ex.f32[N], y: ex.f32[N], z: ex.f32[N]):
    for i in range(N):
        y[i] = x[i] * x[i]
    for i in range(N):
        z[i] = x[i] * 3.0
""").schedule(N=5)
    made = s.precompute("S0", "x")
    assert "S1: z[i_2] = x[i_2] * 3.0" in str(made)
    assert made.run(device="cpu", time=False).correct


def test_types_that_do_not_hold_the_part() -> None:
    s = summed("max(a[i, k], 0.0) * q[k, j]")
    for array, dtype in (("a", "i32"), ("a", "i8")):
        verdict = Precompute("S1", array, dtype).check(s.plan)
        assert not verdict
        assert "does not hold the part of S1" in verdict.what
    assert Precompute("S1", "q", "i32").check(s.plan)


def test_factors_cut_off_to_tf32_before_or_behind() -> None:
    s = define("""
@ex.program
def f(a: ex.f32[M, K], b: ex.f32[K, N], alpha: ex.f32[1], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            t = ex.local(ex.f32)
            t = 0.0
            for k in range(K):
                t += alpha[0] * b[k, j] * a[i, k]
            c[i, j] = t
""").schedule(M=9, N=5, K=7).factor_out("S1")
    for made in (s.commute("S1").approximate("S1", factors="tf32"), s.approximate("S1", factors="tf32").precompute("S1", "a"),
                 s.approximate("S1", factors="tf32").commute("S1").precompute("S1", "b")):
        value = as_computed(made.source, made.plan).statement_of["S1"].value
        assert sum(getattr(n, "op", "") == "tf32" for n in walk(value)) == 2
        assert made.run(device="cpu", time=False).correct


def test_a_loop_that_was_fused_to_be_longer_is_not_around_it() -> None:
    s = define("""
@ex.program
def f(a: ex.f32[N, M], y: ex.f32[M, N], z: ex.f32[3 * M]):
    for i in range(M):
        for j in range(N):
            y[i, j] = ex.exp(0.25 * a[j, i])
    for i in range(3 * M):
        z[i] = i
""").schedule(M=5, N=3).fuse("i", "i_2")
    with pytest.raises(TransformError, match="no loop of the program around S0"):
        s.precompute("S0", "a", at="j")
    assert s.precompute("S0", "a").run(device="cpu", time=False).correct


def test_a_loop_that_numbers_two_axes_is_not_around_it() -> None:
    s = define("""
@ex.program
def f(a: ex.f32[N, N], y: ex.f32[N, N]):
    for i in range(N):
        for j in range(N):
            y[i, j] = abs(a[i, i]) * j
""").schedule(N=5)
    with pytest.raises(TransformError, match="i numbers several axes of a"):
        s.precompute("S0", "a", at="i")
    assert s.precompute("S0", "a").run(device="cpu", time=False).correct


def test_a_key_of_a_value_and_its_index_is_not_rounded() -> None:
    """Half of its bits are the index: in a type of the values every row had the same one (chain 2040:1004)."""
    s = define("""
@ex.program
def argmax_rows(x: ex.f32[M, N], y: ex.i32[M]):
    for i in range(M):
        y[i] = ex.argmax(x[i, k] for k in range(N))
""").schedule(M=5, N=7)
    verdict = Precompute("S1", "x", "f32").check(s.plan)
    assert not verdict
    assert "f32 does not hold the part of S1" in verdict.what
    made = s.precompute("S1", "x")
    assert made.plan.array_of["x_p"].dtype.name == "i64"
    assert made.run(device="cpu", time=False).correct
    assert not Precompute("S1", "x_p", "f16").check(made.plan)


@pytest.mark.parametrize(("value", "op"), [("ex.where(q[i] * 2049 - 2049 * j == 0, x[i, j], 0.0)", "eq"),
                                           ("x[i, j] * ex.cast((q[i] * 4099 + j) % 2, ex.f32)", "mod")])
def test_whole_numbers_that_are_compared_or_divided_stay_whole(value: str, op: str) -> None:
    """In a type of floats they were rounded before they were compared; and floats have no remainder: no text."""
    s = define(f"""
@ex.program
def chosen(q: ex.i32[M], x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = {value}
""").schedule(M=8, N=8)
    for dtype in ("f16", "f32", "f64"):
        verdict = Precompute("S0", "q", dtype).check(s.plan)
        assert not verdict
        assert f"{op!r} of it is asked for" in verdict.why
    assert s.precompute("S0", "q").run(device="cpu", time=False).correct


def test_a_condition_in_floats_and_back_rounds_nothing() -> None:
    """It is 0 or 1 there, too; the reference rounded all of the value to a condition (chain 2041:1886)."""
    s = define("""
@ex.program
def chosen(x: ex.bf16[M], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = ex.where(x[i] > 0, x[i], j)
""").schedule(M=5, N=4)
    s = s.precompute("S0", "x").precompute("S0_p", "x", dtype="bf16").precompute("S0_p_p", "x", dtype="f16")
    assert [s.plan.array_of[a].dtype.name for a in ("x_p", "x_p_2", "x_p_3")] == ["bool", "bf16", "f16"]
    assert as_computed(s.source, s.plan) == s.source
    assert s.run(device="cpu", time=False).correct


def test_a_part_within_an_operation_is_rounded_where_it_stands() -> None:
    """Not all of the value, where another move has changed that, too."""
    s = define("""
@ex.program
def added(x: ex.f32[M], z: ex.f32[N], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = max(ex.exp(x[i] * 3.0) + z[j] * 5.0, 0.0)
""").schedule(M=5, N=4).precompute("S0", "z").precompute("S0", "x", dtype="f16")
    source, now = s.source.statement_of["S0"], s.plan.statement_of["S0"]
    assert isinstance(now.value, Call)
    other = replace(now, value=replace(now.value, args=(now.value.args[0], Literal(1.0, DTYPES["f32"]))))
    rounded = stored_narrower(source, other, s.source, s.plan.program, {})
    (cast,) = [n for n in walk(rounded.value) if isinstance(n, Cast) and n.dtype.name == "f16"]
    assert isinstance(cast.arg, Call)
    assert cast.arg.op == "exp"
    assert s.run(device="cpu", time=False).correct


def test_a_narrower_part_that_is_inlined_again_stays_rounded() -> None:
    """The conversion is left in the statement, and behind other moves in what that has become (chain 2042:96)."""
    s = define("""
@ex.program
def largest(x: ex.f32[M, N], y: ex.f32[N]):
    for j in range(N):
        y[j] = -ex.inf
    for i in range(M):
        for j in range(N):
            y[j] = max(y[j], x[i, j])
""").schedule(M=5, N=3).precompute("S1", "x", dtype="bf16").inline("x_p")
    assert "S1: y[j_2] max= bf16(x[i, j_2])" in str(s)
    assert s.run(device="cpu", time=False).correct
    assert s.stage("x", "i", space="register").rfactor("S1", "i").run(device="cpu", time=False).correct
    products = summed("max(a[i, k], 0.25) * w[k] * b[k, j]").precompute("S1", "a", dtype="f16").inline("a_p")
    assert products.run(device="cpu", time=False).correct


def test_a_narrower_part_of_a_statement_that_is_inlined_itself() -> None:
    """No statement of its name is left: what reads it is rounded, where it read that."""
    s = define("""
@ex.program
def chain(x: ex.f32[M], z: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = ex.exp(x[i]) + z[i, j]
    for i in range(M):
        for j in range(N):
            y[i, j] = t[i, j] * 3.0
""").schedule(M=5, N=3).precompute("S0", "x", dtype="bf16")
    assert s.inline("t").run(device="cpu", time=False).correct
    assert s.inline("x_p").inline("t").run(device="cpu", time=False).correct
    assert s.inline("t").inline("x_p").run(device="cpu", time=False).correct
