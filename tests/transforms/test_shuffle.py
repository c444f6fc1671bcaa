"""Shuffle: registers of other lanes, right on the CPU device and in the interpreter; what is no shuffle; errors are noticed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.errors import ScheduleError, TransformError
from explorer.ir.expr import const, var
from explorer.kernel.emit import emit
from explorer.kernel.interpreter import execute
from explorer.kernel.launches import plan_ir
from explorer.kernel.nodes import Do, If, Ref
from explorer.poly.judge import judge
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.nvrtc.compiler import compile_module
from tests.mutants.ir import Body, Rule, ir_mutants
from tests.mutants.test_ir_judged import faults

B, R = ex.sizes("B R")


@ex.program
def quads(x: ex.f32[B, R, 4], y: ex.f32[B, R, 4]):
    for b in range(B):
        part = ex.local(ex.f32, R, 4)
        for i in range(R):
            for z in range(4):
                part[i, z] = x[b, i, z] * 2.0
        for i2 in range(R):
            for z2 in range(4):
                total = ex.local(ex.f32)
                total = 0.0
                for k in range(4):
                    total += part[i2, k]
                y[b, i2, z2] = total + part[i2, z2]


def bound(rows: int = 16) -> ex.Schedule:
    """Four lanes for a row, eight rows at a time."""
    s = quads.schedule(B=2, R=rows).bind("b", "block.x")
    for i, z in (("i", "z"), ("i2", "z2")):
        s = s.split(i, 8, inner=f"{i}.q").coalesce((f"{i}.q", z)).bind(f"{i}.q", "lane")
    return s.contract("total", "register")


def shuffled() -> ex.Schedule:
    return bound().shuffle("part")


def test_lanes_ask_each_other() -> None:
    s = shuffled()
    assert s.judgement.emittable
    assert "part[i2]@lane(4*(i2.q // 4) + k)" in str(s)
    assert "__shfl_sync(0xffffffffu, part[i2], 4 * (lane / 4) + k)" in s.cuda
    assert "__syncthreads" not in s.cuda
    assert "__shared__" not in s.cuda
    assert s.run(device="cpu", time=False).correct


def test_the_interpreter_and_nvrtc_take_it() -> None:
    s = shuffled()
    x = np.arange(128, dtype=np.float32).reshape(2, 16, 4)
    done = execute(s.plan, {"x": x})
    assert not done.hazards
    np.testing.assert_array_equal(done.outputs["y"], 2 * (x.sum(2, keepdims=True) + x))
    assert not next(iter(compile_module(emit(s.plan, arch="sm_80"), "sm_80").kernels.values())).spill_store_bytes


@pytest.mark.parametrize(("make", "said"), [
    (lambda: quads.schedule(B=2, R=16), "no lanes make part"),
    (lambda: bound(12), "does not run in all lanes"),
    (lambda: bound().contract("part", "shared"), "has storage already"),
    (lambda: bound().bind("i.q", "seq"), "no lanes make part"),
])  # fmt: skip
def test_refusals(make, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TransformError, match=said):
        make().shuffle("part")


def test_lanes_that_read_their_own_need_none() -> None:
    with pytest.raises(TransformError, match=r"shuffle\('total'\)|has storage already|reads its own"):
        bound().contract("total", "global").shuffle("total")


def test_later_steps_do_not_break_it() -> None:
    s = shuffled()
    with pytest.raises(ScheduleError, match="shuffle"):
        s.bind("i2.q", "seq")
    assert s.unroll("k").run(device="cpu", time=False).correct


def test_another_lane_is_another_value() -> None:
    """The judge looks at the lane that is asked."""
    plan = shuffled().plan

    def moved(leaf):  # type: ignore[no-untyped-def]
        views = tuple((slot, replace(v, lane=const(0)) if v.lane is not None else v) for slot, v in leaf.views)
        return replace(leaf, views=views)

    refusals = judge(plan.map_leaves(moved)).refusals
    assert refusals
    assert refusals[0].question == "flow"


def _asks(change) -> Rule:  # type: ignore[no-untyped-def]
    def rule(body: Body) -> Iterator[Body]:
        for n, node in enumerate(body):
            asked = isinstance(node, Do) and [o for o in node.operands if isinstance(o, Ref) and o.of_lane is not None]
            if asked:
                operands = tuple(change(o) if o in asked else o for o in node.operands)
                yield (*body[:n], replace(node, operands=operands), *body[n + 1:])

    return rule


def _sometimes(body: Body) -> Iterator[Body]:
    for n, node in enumerate(body):
        if isinstance(node, Do) and any(isinstance(o, Ref) and o.of_lane is not None for o in node.operands):
            from explorer.kernel.conditions import Condition

            yield (*body[:n], If((Condition(const(15) - var("lane")),), (node,)), *body[n + 1:])


MUTANTS: dict[str, Rule] = {
    "its own register": _asks(lambda o: replace(o, of_lane=None)),
    "the next lane": _asks(lambda o: replace(o, of_lane=(o.of_lane + 1) % 32)),
    "one lane for all": _asks(lambda o: replace(o, of_lane=const(3))),
    "half of the lanes": _sometimes,
}


def test_the_judge_of_the_text_and_runs_notice_errors() -> None:
    ir = plan_ir(shuffled().plan)
    assert faults(ir) == []
    arrays = seeded_arrays(quads.schedule(B=2, R=16).source, 1)
    wanted = execute(ir, arrays).outputs["y"]
    made = set[str]()
    for mutant in ir_mutants(ir, MUTANTS):
        made.add(mutant.kind)
        assert faults(mutant.ir), mutant.kind
        run = execute(mutant.ir, arrays)
        assert run.hazards or not np.allclose(run.outputs["y"], wanted), mutant.kind
    assert made == MUTANTS.keys()
