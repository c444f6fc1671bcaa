"""Cut: same order in two loops; the copies and their buffers have names of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.expr import var
from explorer.ir.plan import Buffer, initial
from explorer.ir.text import loops_text
from explorer.ir.tree import Sync, View
from explorer.poly.judge import judge
from explorer.transforms.bind import Bind
from explorer.transforms.cut import Cut
from explorer.transforms.shift import Shift
from explorer.transforms.split import Split
from explorer.transforms.tile import Tile
from tests.oracle import check_plan, run_order
from tests.properties.programs import define
from tests.properties.trial import Trial
from tests.transforms.nests import copy, copy_2d, matmul, plan, refusal, triangle

COPY = """@ex.program
def f(x: ex.f32[M], y: ex.f32[M]):
    for i in range(M):
        y[i] = x[i]
"""


@pytest.mark.parametrize("at", [1, 3, 6, -1, -4])
def test_the_order_does_not_change(at: int) -> None:
    for make in (matmul, lambda: triangle(7)):
        name = "j"
        parts = plan(make(), Shift(name, 2), Cut(name, at))
        check_plan(parts)
        assert run_order(parts) == run_order(initial(make()))
        assert (parts.loops["j"].extent, parts.loops["j.2"].start) == (at % 7, 0)
        assert parts.loops["j.2"].extent == 7 - at % 7


def test_copies_are_numbered() -> None:
    twice = plan(matmul(), Cut("j", 2), Cut("j.2", 3), Cut("j", 1))
    check_plan(twice)
    assert [n.id for n in twice.loops["i"].body] == ["j", "j.4", "j.2", "j.3"]
    assert [leaf.id for leaf, _, _ in twice.leaves if leaf.statement == "S1"] == ["S1", "S1.4", "S1.2", "S1.3"]


def test_bound_loops_inside_and_what_names_them_are_copied() -> None:
    bound = plan(matmul(), Bind("k", "thread.x"))
    bound = bound.replace_node("S1", replace(bound.resolve("S1")[0], collect=(("k", "shuffle"),)))
    parts = Cut("j", 3).rewrite(bound)
    check_plan(parts)
    assert parts.loops["k.2"].role == "thread.x"
    assert parts.resolve("S1.2")[0].collect == (("k.2", "shuffle"),)


def test_buffers_inside_are_copied_and_those_outside_shared() -> None:
    base = initial(matmul())
    views = ((0, View("inner", (var("k"),))), (1, View("outer", (var("j"), var("k")))))
    stored = base.replace_node("S1", replace(base.resolve("S1")[0], views=views))
    stored = replace(stored, buffers=(Buffer("inner", DTYPES["f32"], (6,), "register", scope="j"),
                                      Buffer("outer", DTYPES["f32"], (7, 6), "shared", scope="i")))
    parts = Cut("j", 3).rewrite(stored)
    check_plan(parts)
    assert [(b.name, b.scope) for b in parts.buffers] == [("inner", "j"), ("outer", "i"), ("inner.2", "j.2")]
    copied = parts.resolve("S1.2")[0]
    used = [(v.buffer, [str(e) for e in v.index]) for _, v in copied.views]
    assert used == [("inner.2", ["k.2"]), ("outer", ["j.2 + 3", "k.2"])]


def test_tree(golden) -> None:
    golden(f"{loops_text(initial(matmul()))}\n\n{loops_text(plan(matmul(), Cut('k', -1)))}")


@pytest.mark.parametrize(("at", "first"), [(0, 0), (13, 13), (-13, 0)])
def test_a_part_may_be_empty(at: int, first: int) -> None:
    """Steps that name it still apply, so that they replay at sizes where there is nothing to cut off."""
    made = plan(copy(13), Cut("i", at), Split("i", 4), Bind("i.i", "thread.x"), Split("i.2", 4), Bind("i.2.i", "thread.x"))
    assert made.loops["i"].extent == -(-first // 4)
    assert judge(made).emittable
    check_plan(made)
    trial = Trial(shrinks=0)
    trial.conclude("empty", define(COPY, "copy.py").schedule(M=13).cut("i", at).split("i", 4).bind("i.i", "thread.x"))
    trial.flush()
    assert trial.tally.pairs
    assert not trial.tally.found


def test_a_part_has_at_most_all_iterations() -> None:
    verdict = refusal(initial(copy(13)), Cut("i", 20))
    assert verdict.what == "i runs 13 times and cannot be cut at 20"
    assert verdict.hint == "a number from -13 to 13"


def test_refusals() -> None:
    assert refusal(plan(copy(), Bind("i", "warp")), Cut("i", 1)).what == "i is already warp"
    base = initial(copy())
    waits = base.replace_node("S0", base.leaves[0][0], Sync("w", "commit"))
    assert refusal(waits, Cut("i", 1)).hint == "cut before pipelining"
    assert Cut.offers(initial(copy(1)), "i").what == "i runs only once"


def test_candidates_peel_both_ends_and_the_partial_tile() -> None:
    tiled = plan(copy_2d(6, 20), Tile(("j",), (8,)))
    assert list(Cut.candidates(tiled, "j")) == [Cut("j", 1), Cut("j", -1), Cut("j", 2)]
    full, rest = Cut("j", 2).rewrite(tiled).loops["i"].body
    whole = tiled.replace_node("i", replace(tiled.loops["i"], body=(full,)))
    assert "where" in loops_text(tiled)
    assert "where" not in loops_text(whole)
    assert rest.extent == 1
    assert list(Cut.candidates(plan(copy(12), Split("i", 4)), "i")) == [Cut("i", 1), Cut("i", -1)]
