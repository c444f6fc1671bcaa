"""Shuffle over the threads of warpgroups: whole warps of `thread.x` ask each other, and no thread of another warp."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.ir.expr import var
from explorer.kernel.interpreter import execute
from explorer.kernel.launches import plan_ir
from explorer.poly.judge import judge
from explorer.run.inputs.arguments import seeded_arrays
from tests.mutants.ir import ir_mutants
from tests.mutants.test_ir_judged import faults
from tests.transforms.test_shuffle import MUTANTS, quads

GROUPS = {kind: rule for kind, rule in MUTANTS.items() if kind != "half of the lanes"}
"""That one names a loop over lanes."""


def bound(order: str = "w q", second: str = "w q", rows: int = 128) -> ex.Schedule:
    """As a warpgroup's accumulator lies: 64 rows of four lanes, 16 of them in each warp, eight and eight."""
    s = quads.schedule(B=2, R=rows).bind("b", "block.x")
    for i, z, outer in (("i", "z", order), ("i2", "z2", second)):
        warp, half, quad = f"{i}.w", f"{i}.h", f"{i}.q"
        s = s.split(i, 64, inner=warp).bind(i, "thread.y").split(warp, 16, inner=half).split(half, 8, inner=quad)
        first, last = (f"{i}.{x}" for x in outer.split())
        s = s.reorder((half, first, last)).coalesce((first, last, z)).bind(first, "thread.x")
    return s.contract("total", "register")


def test_threads_of_a_warp_ask_each_other() -> None:
    s = bound().shuffle("part")
    assert s.judgement.emittable
    assert "part[i2.h]@lane(4*((i2.w // 4) % 8) + k)" in str(s)
    assert "__shfl_sync(0xffffffffu, part[i2_h], 4 * ((tx / 4) % 8) + k)" in s.cuda
    assert "__syncthreads" not in s.cuda
    assert s.run(device="cpu", time=False).correct


def test_the_interpreter_takes_it() -> None:
    x = np.arange(1024, dtype=np.float32).reshape(2, 128, 4)
    done = execute(bound().shuffle("part").plan, {"x": x})
    assert not done.hazards
    np.testing.assert_array_equal(done.outputs["y"], 2 * (x.sum(2, keepdims=True) + x))


def test_threads_of_other_warps_are_not_asked() -> None:
    with pytest.raises(TransformError, match="S2 reads registers of other warps") as refused:
        bound(second="q w").shuffle("part")
    assert "holds what thread i2.q reads" in str(refused.value)
    with pytest.raises(TransformError, match="does not run in all lanes"):
        bound(rows=72).shuffle("part")


def test_another_thread_is_another_value() -> None:
    """The judge looks at the lane that is asked, and in which warp."""
    plan = bound().shuffle("part").plan

    def moved(leaf):  # type: ignore[no-untyped-def]
        views = tuple((slot, replace(v, lane=(v.lane + 4) % 32) if v.lane is not None else v) for slot, v in leaf.views)
        return replace(leaf, views=views)

    def elsewhere(leaf):  # type: ignore[no-untyped-def]
        if leaf.id != "S0":
            return leaf
        at = tuple((d, e.substitute({"i.w": (var("i.w") + 32) % 128})) for d, e in leaf.at)
        when = tuple((x, (e - 32) % 128 if x == "i.w" else e) for x, e in leaf.when)
        return replace(leaf, at=at, when=when)

    for mutant in (plan.map_leaves(moved), plan.map_leaves(elsewhere)):
        refusals = judge(mutant).refusals
        assert refusals
        assert refusals[0].question == "flow"


def test_errors_in_the_text_are_noticed() -> None:
    s = bound().shuffle("part")
    ir, arrays = plan_ir(s.plan), seeded_arrays(s.source, 1)
    assert faults(ir) == []
    wanted = execute(ir, arrays).outputs["y"]
    made = set[str]()
    for mutant in ir_mutants(ir, GROUPS):
        made.add(mutant.kind)
        assert faults(mutant.ir), mutant.kind
        run = execute(mutant.ir, arrays)
        assert run.hazards or not np.allclose(run.outputs["y"], wanted), mutant.kind
    assert made == GROUPS.keys()
