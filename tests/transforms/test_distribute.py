"""Distribute: all of the first part, then all of the rest; buffers follow their users."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import TransformError
from explorer.ir.dtype import DTYPES
from explorer.ir.expr import var
from explorer.ir.plan import Buffer, Plan, initial
from explorer.ir.text import loops_text
from explorer.ir.tree import Sync, View
from explorer.schedule import Schedule
from explorer.steps.calls import calls_in
from explorer.transforms.bind import Bind
from explorer.transforms.distribute import Distribute
from tests.oracle import check_plan, run_order
from tests.transforms.nests import copy, copy_2d, matmul, plan, refusal, softmax


def test_all_of_the_first_part_comes_first() -> None:
    apart = plan(softmax(2, 4), Distribute("i", after="k"))
    check_plan(apart)
    names = [s for *_, s, _ in run_order(apart)]
    assert max(i for i, s in enumerate(names) if s in ("S0", "S1")) < min(i for i, s in enumerate(names) if s not in ("S0", "S1"))
    assert list(apart.loops) == ["i", "k", "i.2", "k_2", "k_3", "k_4"]


def test_the_place_may_be_named_by_statement_or_array() -> None:
    by_id = plan(matmul(), Distribute("j", after="k"))
    assert by_id == plan(matmul(), Distribute("j", after="S1")) == plan(matmul(), Distribute("j", after="acc"))


def _stored(p: Plan, where: dict[str, tuple[str, ...]]) -> Plan:
    """Give statements views of buffers that live in loop j."""
    for name, buffers in where.items():
        leaf = p.resolve(name)[0]
        p = p.replace_node(name, replace(leaf, views=tuple((s, View(b, (var("j"),))) for s, b in enumerate(buffers))))
    names = sorted({b for bs in where.values() for b in bs})
    return replace(p, buffers=tuple(Buffer(b, DTYPES["f32"], (7,), "register", scope="j") for b in names))


def test_buffers_follow_their_users() -> None:
    stored = _stored(initial(matmul()), {"S0": ("a", "both"), "S2": ("both", "z")})
    apart = Distribute("j", after="S0").rewrite(stored)
    assert {b.name: b.scope for b in apart.buffers} == {"a": "j", "both": "i", "z": "j.2"}
    assert [v.index for _, v in apart.resolve("S2")[0].views] == [(var("j.2"),)] * 2
    check_plan(apart)


def test_bound_loops_and_what_names_them() -> None:
    bound = plan(matmul(), Bind("j", "thread.x"))
    bound = bound.replace_node("S2", replace(bound.resolve("S2")[0], collect=(("j", "shared"),)))
    apart = Distribute("j", after="k").rewrite(bound)
    assert apart.loops["j.2"].role == "thread.x"
    assert apart.resolve("S2")[0].collect == (("j.2", "shared"),)


def test_tree(golden) -> None:
    apart = plan(matmul(), Distribute("j", after="S0"), Distribute("i", after="j"))
    golden(f"{loops_text(initial(matmul()))}\n\n{loops_text(apart)}")


def test_refusals() -> None:
    base = initial(matmul())
    assert refusal(base, Distribute("j", after="S2")).what == "nothing stands behind S2 in j"
    assert refusal(base, Distribute("j", after="S2")).hint == "after one of S0, k"
    assert "'S9' is not in the body of j" in refusal(base, Distribute("j", after="S9")).what
    verdict = refusal(base, Distribute("i", after="j"))
    assert verdict.what == "the body of i has one part only"
    assert verdict.hint == "distribute('j', after='…') first"
    waits = base.replace_node("S2", base.resolve("S2")[0], Sync("w", "wait", 1))
    assert "waits for asynchronous copies" in refusal(waits, Distribute("j", after="S0")).what
    assert "one part only" in Distribute.offers(initial(copy()), "i").what


def test_a_body_of_one_part_is_parted_from_the_inside_out() -> None:
    """Where a loop inside of it has several parts the proposal leads to the step; where none has, there is none."""
    s = Schedule.of(matmul()).split("i", 2)
    for after in ("S0", "k", "j", "S1"):
        with pytest.raises(TransformError, match="the body of i has one part only") as caught:
            s.distribute("i", after=after)
        now = s
        for step in calls_in(caught.value.hint):
            now = now.apply(step)
        assert now.steps[1:]
        assert now.distribute("i", after=after).judgement.legal, caught.value.hint
    with pytest.raises(TransformError) as caught:
        s.distribute("i", after="S2")
    assert caught.value.hint == "after one of S0, k"
    with pytest.raises(TransformError, match="one part only") as caught:
        Schedule.of(copy_2d()).distribute("i", after="S0")
    assert not caught.value.hint


def test_host_loops_are_refused() -> None:
    hosted = plan(softmax(), Bind("i", "launch"))
    assert "run by the host" in refusal(hosted, Distribute("i", after="k")).what


def test_candidates_are_the_gaps() -> None:
    assert list(Distribute.candidates(initial(matmul()), "j")) == [Distribute("j", "S0"), Distribute("j", "k")]
