"""Attention whose maximum stands in the loop of the scores; and what moves do to the reads of other lanes in its schedule."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.schedule import Schedule
from explorer.strategies.attention.form import ready_form
from explorer.transforms.compute_at import ComputeAt
from tests.frontend.support import define
from tests.properties.trial import unbound

ATTENTION = """
L, D = ex.sizes("L D")

@ex.program
def attention(q: ex.f16[L, D], k: ex.f16[L, D], v: ex.f16[L, D], y: ex.f16[L, D]):
    for i in range(L):
        s = ex.local(ex.f32, L)
        m = ex.local(ex.f32)
        l = ex.local(ex.f32)
        m = -ex.inf
        for j in range(L):
            s[j] = 0.0
            for d in range(D):
                s[j] += q[i, d] * k[j, d]
            MAXIMUM
        l = 0.0
        for j in range(L):
            l += ex.exp(s[j] * 0.125 - m)
        for e in range(D):
            o = ex.local(ex.f32)
            o = 0.0
            for j in range(L):
                o += ex.exp(s[j] * 0.125 - m) * v[j, e]
            y[i, e] = o / l
"""
FUSED = ATTENTION.replace("MAXIMUM", "m = max(m, s[j] * 0.125)")
APART = ATTENTION.replace("            MAXIMUM\n", "        for j in range(L):\n            m = max(m, s[j] * 0.125)\n")


def written(text: str, length: int = 64) -> Schedule:
    return define(text).schedule(L=length, D=16)


@pytest.mark.parametrize("length", [64, 17])
def test_the_loop_of_the_scores_is_distributed(length: int) -> None:
    """It was taken for two loops, and `auto` raised."""
    s = written(FUSED, length)
    ready = ready_form(s, s.plan.kernels[0].id)
    assert ready is not None
    made, form = ready
    assert len(set(form.keys)) == 4
    assert [step.name for step in made.steps].count("distribute") == 1
    planned = ex.strategies.auto(s, gpu="H200")
    assert len(planned.plan.kernels) == len(ex.strategies.auto(written(APART, length), gpu="H200").plan.kernels)
    assert planned.run(device="cpu", time=False).correct


def test_a_read_of_another_lane_follows_the_loops_that_compute_at_moves() -> None:
    """Its lane was told over a loop that is no longer around it: the judge raised, and so did the refusal that proposed it."""
    s = ex.strategies.auto(written(APART), gpu="H200")
    readers = [leaf.id for leaf, _, _ in s.plan.leaves for _, v in leaf.views if v.lane is not None and v.lane.variables()]
    found = [step for leaf in readers for step in ComputeAt.candidates(s.plan, leaf)]
    assert found
    for step in found:
        assert not unbound(step.rewrite(s.plan)), str(step)
    right = [s.apply(step) for step in found if s.try_step(step)[0]]
    assert right
    assert right[0].run(device="cpu", time=False, ragged=False).correct
    with pytest.raises(TransformError) as refused:
        s.inline("m_p")
    assert "is not defined by one plain statement" in str(refused.value)
