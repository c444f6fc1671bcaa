"""Question flow: known contractions and buffer counts, against brute force over all threads."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from explorer.ir.expr import const
from explorer.ir.plan import Plan
from explorer.ir.tree import Kernel, Leaf, View
from explorer.poly.cover import check_cover
from explorer.poly.flow import check_flow
from explorer.poly.placed import place_leaves
from explorer.transforms.contract import Contract
from tests.poly import plans
from tests.poly.brute import wrong_reads
from tests.properties.programs import define
from tests.run_plan import Hazard, run_plan


def wrong(plan: Plan) -> set:
    return wrong_reads(plan) | wrong_reads(plan, reverse=True)


def refusal(plan: Plan):
    """The first finding, after brute force has confirmed that its sink reads a wrong value."""
    found = check_flow(plan)
    assert found
    for f in found:
        assert f.question == "flow"
        assert (f.sink.statement, f.sink.point) in wrong(plan), str(f)
    return found[0]


def accepted(plan: Plan) -> None:
    assert not check_cover(plan, place_leaves(plan))
    assert [str(f) for f in check_flow(plan)] == []
    assert not wrong(plan)


MATMUL = [{}, {"ahead": 1, "buffers": 2}, {"k": 16, "ahead": 2, "buffers": 3}, {"ahead": 1, "buffers": 3},
          {"m": 7, "n": 5, "k": 10}, {"k": 20, "ahead": 2, "buffers": 3, "mechanism": "async"}, {"mechanism": "async"}]


@pytest.mark.parametrize("options", MATMUL, ids=str)
def test_staged_products_are_accepted_and_right(options):
    plan = plans.matmul(**options)
    accepted(plan)
    shapes = {a.name: a.shape for a in plan.program.parameters}
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
    np.testing.assert_allclose(run_plan(plan, arrays)["C"], arrays["A"] @ arrays["B"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("ahead", "buffers"), [(1, 1), (2, 2), (2, 1), (3, 3)])
def test_one_buffer_too_few(ahead, buffers):
    plan = plans.matmul(k=20, ahead=ahead, buffers=buffers)
    finding = refusal(plan)
    assert "overwrites it" in finding.why
    assert finding.source.statement == "As"
    assert finding.sink.point == (0, 0, 0), "the smallest pair"
    accepted(plans.matmul(k=20, ahead=ahead, buffers=ahead + 1))


def test_the_hint_counts_the_buffers():
    assert refusal(plans.matmul(k=20, ahead=2, buffers=2)).hints == ("3 buffers instead of 2",)


@pytest.mark.parametrize("options", [
    {"e": "register"}, {"e": "shared"}, {"e": "register", "fused": True}, {"e": "register:", "fused": True, "again": False},
    {"e": "register", "threads": 4}, {"e": "shared", "threads": 4}, {"e": "shared", "threads": 4, "turned": True},
    {"e": "register", "threads": 4, "fused": True}, {"e": "register:", "threads": 8}, {"e": "register", "rows": "seq"},
    {"e": "register", "rows": "seq", "threads": 4}, {"e": "register", "k": 7, "threads": 4}], ids=str)
def test_contractions_that_keep_every_value(options):
    plan = plans.softmax(**options)
    accepted(plan)
    x = np.random.default_rng(0).standard_normal((2, options.get("k", 8))).astype(np.float32)
    e = np.exp(x)
    wanted = e / e.sum(1, keepdims=True) if options.get("again", True) else e.sum(1)
    np.testing.assert_allclose(run_plan(plan, {"x": x})["y"], wanted, rtol=1e-5)


@pytest.mark.parametrize(("options", "word"), [
    ({"e": "register:"}, "overwrites"), ({"e": "shared:"}, "overwrites"), ({"e": "register:", "fused": True}, "overwrites"),
    ({"e": "register:", "again": False}, "overwrites"), ({"e": "register", "threads": 4, "turned": True}, "private"),
    ({"e": "register:", "threads": 4}, "overwrites"), ({"e": "shared:", "threads": 4}, "overwrites"),
    ({"e": "register", "threads": 4, "collect": ""}, "private")], ids=str)
def test_contractions_that_lose_a_value(options, word):
    plan = plans.softmax(**options)
    finding = refusal(plan)
    assert word in finding.why
    assert finding.hints
    x = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
    e = np.exp(x)
    wanted = e / e.sum(1, keepdims=True) if options.get("again", True) else e.sum(1)
    with contextlib.suppress(Hazard):
        assert not np.allclose(run_plan(plan, {"x": x})["y"], wanted)


def test_softmax_e_in_one_register_names_the_smallest_pair():
    finding = refusal(plans.softmax(e="register:"))
    assert (str(finding.source), str(finding.sink)) == ("S0[0, 0]", "S2[0, 0]")
    assert "S0[0, 1] overwrites it" in finding.why


def test_registers_do_not_outlive_a_launch():
    plan = plans.softmax(e="register", s="")
    row = plan.loops["i"]
    kernels = (Kernel("one", (replace(row, body=row.body[:1]),)), Kernel("two", (replace(row, id="i_2", body=row.body[1:]),)))

    def rename(leaf: Leaf) -> Leaf:
        if leaf.id == "S0":
            return leaf
        move = {"i": plans.var("i_2")}
        at = tuple((d, e.substitute(move)) for d, e in leaf.at)
        return replace(leaf, at=at, when=tuple(("i_2" if n == "i" else n, e) for n, e in leaf.when))

    cut = replace(plan, kernels=kernels).map_leaves(rename)
    assert not check_cover(cut, place_leaves(cut))
    finding = refusal(cut)
    assert "ends with the launch" in finding.why
    assert finding.hints == ("contract('e', 'global')",)


def _with_view(plan: Plan, leaf_id: str, slot: int, change) -> Plan:
    def edit(leaf: Leaf) -> Leaf:
        if leaf.id != leaf_id:
            return leaf
        return replace(leaf, views=tuple((s, change(v) if s == slot else v) for s, v in leaf.views))

    return plan.map_leaves(edit)


def test_writer_and_reader_in_different_storage():
    plan = _with_view(plans.softmax(e="register"), "S3", 0, lambda v: v)
    other = plan.map_leaves(lambda leaf: replace(leaf, views=tuple(p for p in leaf.views if leaf.id != "S3" or p[0] != 0)))
    finding = refusal(other)
    assert "S0[0, 0] writes e[0], S3[0, 0] reads e[0, 0]" in finding.why


def test_another_cell():
    plan = _with_view(plans.softmax(e="register"), "S2", 0, lambda v: View(v.buffer, (const(7) - v.index[0],)))
    assert "writes e[0], S2[0, 0] reads e[7]" in refusal(plan).why


def test_cells_outside_the_buffer():
    plan = plans.softmax(e="register")
    smaller = replace(plan, buffers=tuple(replace(b, shape=(7,)) if b.name == "e" else b for b in plan.buffers))
    found = check_flow(smaller)
    assert "S0[0, 7] writes e[7], outside the buffer's shape [7]" in found[0].what
    x = np.zeros((2, 8), np.float32)
    with pytest.raises(Hazard):
        run_plan(smaller, {"x": x})


def test_padding_is_no_part_of_the_footprint():
    plan = plans.matmul()
    padded = replace(plan, buffers=tuple(replace(b, pad=1, shape=(4, 3)) if b.name == "As" else b for b in plan.buffers))
    assert "outside the buffer's shape [4, 3]" in check_flow(padded)[0].what


def test_an_element_that_is_never_copied():
    plan = _with_view(plans.matmul(), "S1", 0, lambda v: replace(v, element=(*v.element[:4], v.element[4] + 1)))
    assert any("never copies" in f.what for f in check_flow(plan))


def test_a_copy_that_holds_another_element():
    plan = plans.matmul()
    wrong_source = replace(plan.copies[0], reads=(plans.read("A", plan.copies[0].reads[0].index[0], const(3) - plans.var("x")),))
    found = check_flow(replace(plan, copies=(wrong_source, plan.copies[1])))
    assert "S1[0, 0, 0] wants A[0, 0], but As[0, 0] holds something else" in found[0].what


def test_a_fill_is_no_element():
    plan = plans.matmul(m=7)
    narrow = replace(plan.copies[0], inside=(*plan.copies[0].inside, *plans.box({"y": 2})[1:]))
    assert "holds something else" in check_flow(replace(plan, copies=(narrow, plan.copies[1])))[0].what


def test_a_copy_that_comes_too_late():
    plan = plans.matmul(ahead=1, buffers=2)
    block = plan.loops["bj"]
    start, prologue, steady, end = block.body
    assert "would run after" in refusal(plan.replace_node("bj", replace(block, body=(start, steady, prologue, end)))).why


def test_results_do_not_stay_in_a_buffer():
    plan = plans.softmax()
    kept = plan.map_leaves(lambda leaf: replace(leaf, views=(*leaf.views, (2, View("s", ())))) if leaf.id == "S3" else leaf)
    assert "instead of y" in check_flow(kept)[0].what


def test_nothing_staged_nothing_asked():
    assert check_flow(plans.softmax(s="")) == ()


def test_large_sizes_answer_alike():
    large = {"m": 1000, "n": 1000, "k": 1000, "tile": (128, 128, 16), "threads": (16, 16)}
    assert check_flow(plans.matmul(**large, ahead=2, buffers=3)) == ()
    assert "3 buffers instead of 2" in check_flow(plans.matmul(**large, ahead=2, buffers=2))[0].hints


def test_an_update_of_another_element_is_a_wrong_value():
    """Two rows' sums in one register: the second starts from the first, written by its own statement."""
    text = '''@ex.program
def f(x: ex.f32[M, N], y: ex.f32[N]):
    for k in range(M):
        for i in range(N):
            y[i] += x[k, i]
'''
    s = define(text, "elements.py").schedule(M=2, N=2).accumulate("y").cut("i", 1).cut("i.z", 1).cut("i.c", 1)
    _, plan = s.try_step(Contract("y_acc"))
    assert plan is not None
    refusal(plan)
    assert ("S0", (0, 1)) in wrong(plan)
