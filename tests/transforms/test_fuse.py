"""Fuse: both bodies in each iteration; nested loops are sent to coalesce, unequal ones to cut and shift."""

from __future__ import annotations

from dataclasses import replace

from explorer.ir.dtype import DTYPES
from explorer.ir.plan import Buffer, initial
from explorer.ir.text import loops_text
from explorer.transforms.bind import Bind
from explorer.transforms.cut import Cut
from explorer.transforms.distribute import Distribute
from explorer.transforms.fuse import Fuse
from explorer.transforms.launch import Launch
from explorer.transforms.shift import Shift
from tests.oracle import check_plan, run_order
from tests.transforms.nests import chain, cube, plan, refusal, siblings, softmax


def test_the_bodies_alternate() -> None:
    fused = plan(siblings(), Fuse("i", "j"))
    check_plan(fused)
    assert [(s, p) for *_, s, p in run_order(fused)] == [(s, (v,)) for v in range(8) for s in ("S0", "S1")]


def test_fused_loops_hold_loops() -> None:
    fused = plan(chain(), Fuse("i", "i_2"), Fuse("j", "j_2"))
    check_plan(fused)
    assert list(fused.loops) == ["i", "j"]


def test_distribute_takes_it_apart_again() -> None:
    base = initial(siblings())
    apart = plan(siblings(), Fuse("i", "j"), Distribute("i", after="S0"))
    assert run_order(apart) == run_order(base)


def test_bound_loops_of_one_role_fuse_with_what_names_them() -> None:
    bound = plan(siblings(), Bind("i", "thread.x"), Bind("j", "thread.x"))
    leaf = replace(bound.leaves[1][0], collect=(("j", "atomic"),))
    bound = replace(bound.replace_node("S1", leaf), buffers=(Buffer("b", DTYPES["f32"], (), "register", scope="j"),))
    fused = Fuse("i", "j").rewrite(bound)
    assert fused.leaves[1][0].collect == (("i", "atomic"),)
    assert fused.buffers[0].scope == "i"
    check_plan(fused)


def test_unequal_loops_become_equal_by_cut_and_shift() -> None:
    check_plan(plan(siblings(6, 8), Cut("j", 6), Fuse("i", "j")))
    check_plan(plan(siblings(8, 8, start=2), Shift("j", -2), Fuse("i", "j")))


def test_tree(golden) -> None:
    golden(f"{loops_text(initial(chain()))}\n\n{loops_text(plan(chain(), Fuse('i', 'i_2'), Fuse('j', 'j_2')))}")


def test_nested_loops_are_sent_to_coalesce() -> None:
    verdict = refusal(initial(cube()), Fuse("i", "k"))
    assert verdict.hint == "these are nested: use coalesce(('i', 'j', 'k'))"
    assert "coalesce(('j', 'k'))" in refusal(initial(cube()), Fuse("k", "j")).hint
    assert "coalesce(('i', 'j'))" in Fuse.offers(initial(cube()), "i").hint


def test_refusals() -> None:
    verdict = refusal(initial(siblings(8, 6)), Fuse("i", "j"))
    assert verdict.what == "i runs 8 times and j 6 times"
    assert verdict.hint == "cut('i', 6) and fuse the equal parts"
    verdict = refusal(initial(siblings(8, 8, start=2)), Fuse("i", "j"))
    assert verdict.what == "i starts at 0 and j at 2"
    assert verdict.hint == "shift('j', -2) first"
    assert "with itself" in refusal(initial(siblings()), Fuse("i", "i")).what
    assert refusal(initial(siblings()), Fuse("j", "i")).hint == "fuse('i', 'j')"
    verdict = refusal(plan(siblings(), Bind("i", "thread.x")), Fuse("i", "j"))
    assert verdict.what == "i is thread.x and j is seq"
    assert verdict.hint == "bind('j', 'thread.x') first"
    assert refusal(initial(softmax()), Fuse("k", "k_2")).what == "S2 stands between k and k_2"
    assert "fuse the loops around them first" in refusal(initial(chain()), Fuse("j", "j_2")).hint
    apart = plan(siblings(), Launch("siblings", after="i"))
    assert "launch('siblings', pack='siblings.2')" in refusal(apart, Fuse("i", "j")).hint


def test_candidates_are_the_neighbours() -> None:
    base = initial(softmax())
    assert list(Fuse.candidates(base, "k_3")) == [Fuse("k_2", "k_3"), Fuse("k_3", "k_4")]
    assert list(Fuse.candidates(base, "k")) == []
