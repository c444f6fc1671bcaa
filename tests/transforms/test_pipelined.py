"""For each buffer of a loop: whether it can be pipelined, and the reason and the move that helps where not."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.schedule import Schedule

M, N, K = ex.sizes("M N K")


@ex.program
def activated(x: ex.f32[M, K], y: ex.f32[K, N], z: ex.f32[M, N]):
    """A function of one factor is computed into a tile, beside a copy of the other one."""
    t = ex.local(ex.f32, (M, K))
    for i in range(M):
        for k in range(K):
            t[i, k] = max(x[i, k], 0.0)
    for i in range(M):
        for j in range(N):
            z[i, j] = 0.0
    for i in range(M):
        for j in range(N):
            for k in range(K):
                z[i, j] += t[i, k] * y[k, j]


def fused() -> Schedule:
    s = activated.schedule(M=64, N=64, K=64).split("i_3", 16).split("k_2", 16)
    s = s.reorder(("i_3", "k_2", "i_3.i", "j_2", "k_2.i")).compute_at("S0", "k_2")
    return s.contract("t", "shared").stage("y", "k_2")


def test_what_is_computed_is_named_with_the_move_that_helps() -> None:
    found = {v.buffer: v for v in fused().pipeline_verdicts("k_2")}
    assert found.keys() == {"t", "y_s"}
    assert found["y_s"].verdict
    assert found["y_s"].filled_by == "y_s"
    assert "S0 computes it: t[i, k] = max(x[i, k], 0.0)" in str(found["t"])
    assert "inline('t')" in found["t"].verdict.hint


def test_the_move_helps() -> None:
    s = fused()
    inlined = activated.schedule(M=64, N=64, K=64).inline("t").split("i_3", 16).split("k_2", 16)
    inlined = inlined.reorder(("i_3", "k_2", "i_3.i", "j_2", "k_2.i")).stage("x", "k_2").stage("y", "k_2")
    assert [bool(v.verdict) for v in s.pipeline_verdicts("k_2")] == [False, True]
    assert [bool(v.verdict) for v in inlined.pipeline_verdicts("k_2")] == [True, True]
    assert inlined.pipeline("k_2", 3).run(device="cpu")


def test_a_copy_of_another_loop_and_one_that_runs_ahead() -> None:
    s = activated.schedule(M=64, N=64, K=64).inline("t").split("i_3", 16).split("k_2", 16)
    s = s.reorder(("i_3", "k_2", "i_3.i", "j_2", "k_2.i")).stage("x", "i_3.i").stage("y", "k_2").pipeline("k_2", 2)
    told = repr(s.pipeline_verdicts("k_2"))
    assert "x_s is not made for an iteration of k_2" in told
    assert "stage('x', 'k_2')" in told
    assert "y_s already runs ahead in k_2" in told


def test_registers_have_no_asynchronous_copies_but_pipelines() -> None:
    s = activated.schedule(M=64, N=64, K=64).inline("t").split("k_2", 4).stage("y", "k_2", space="register")
    (verdict,) = s.pipeline_verdicts("k_2")
    assert verdict.space == "register"
    assert verdict.verdict


def test_no_buffer_and_no_loop() -> None:
    s = activated.schedule(M=64, N=64, K=64)
    assert repr(s.pipeline_verdicts("k_2")) == "no buffer in shared memory or registers is read in this loop"
    with pytest.raises(TransformError, match="there is no loop 'q'"):
        s.pipeline_verdicts("q")
