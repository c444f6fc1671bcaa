"""Fuse: both bodies in each iteration; nested loops are sent to coalesce, unequal ones to cut and shift."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import IllegalSchedule
from explorer.ir.dtype import DTYPES
from explorer.ir.plan import Buffer, initial
from explorer.ir.text import loops_text
from explorer.poly.judge import judge
from explorer.transforms.bind import Bind
from explorer.transforms.cut import Cut
from explorer.transforms.distribute import Distribute
from explorer.transforms.fuse import Fuse
from explorer.transforms.interchange import Interchange
from explorer.transforms.launch import Launch
from explorer.transforms.shift import Shift
from explorer.transforms.split import Split
from tests.oracle import check_plan, run_order
from tests.properties.programs import define
from tests.properties.trial import Trial
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
    assert verdict.hint == "these are nested: use coalesce(('i', 'j', 'k')) instead"
    assert "coalesce(('j', 'k'))" in refusal(initial(cube()), Fuse("k", "j")).hint
    assert "coalesce(('i', 'j'))" in Fuse.offers(initial(cube()), "i").hint


@pytest.mark.parametrize(("first", "second", "start"), [(8, 6, 0), (6, 8, 0), (8, 8, 2), (8, 3, 2), (3, 8, 4)])
def test_the_loop_takes_the_values_of_both(first: int, second: int, start: int) -> None:
    made = plan(siblings(first, second, start), Fuse("i", "j"))
    low, high = min(0, start), max(first, start + second)
    assert (made.loops["i"].start, made.loops["i"].extent) == (low, high - low)
    check_plan(made)
    assert judge(made).emittable


STENCIL = """@ex.program
def f(x: ex.f32[N + 2], y: ex.f32[N - 2]):
    t = ex.local(ex.f32, N)
    for i in range(N):
        t[i] = x[i] + x[i + 2]
    for j in range(N - 2):
        y[j] = t[j] + t[j + 2]
"""


def test_a_stencil_is_fused_after_a_shift() -> None:
    """What the refusal proposes, and nothing less, makes the fuse legal."""
    s = define(STENCIL, "stencil.py").schedule(N=9)
    with pytest.raises(IllegalSchedule) as refused:
        s.fuse("i", "j")
    assert list(refused.value.finding.hints) == ["shift('j', 2) first"]
    trial = Trial(shrinks=0)
    trial.conclude("stencil", s.shift("j", 2).fuse("i", "j"))
    trial.flush()
    assert trial.tally.pairs
    assert not trial.tally.found


def test_refusals() -> None:
    inner = plan(chain(), Split("i", 2), Split("i_2", 3), Interchange("i_2", "i_2.i"), Interchange("i", "i.i"))
    verdict = refusal(inner, Fuse("i.i", "i_2.i"))
    assert verdict.what == "i.i runs 2 times and i_2.i 3 times"
    assert verdict.hint == "cut('i_2.i', 2) first"
    assert "with itself" in refusal(initial(siblings()), Fuse("i", "i")).what
    assert refusal(initial(siblings()), Fuse("j", "i")).hint == "fuse('i', 'j')"
    verdict = refusal(plan(siblings(), Bind("i", "thread.x")), Fuse("i", "j"))
    assert verdict.what == "i is thread.x and j is seq"
    assert verdict.hint == "bind('j', 'thread.x') first"
    assert refusal(initial(softmax()), Fuse("k", "k_2")).what == "S2 stands between k and k_2"
    assert refusal(initial(chain()), Fuse("j", "j_2")).hint == "fuse('i', 'i_2') first"
    apart = plan(siblings(), Launch("siblings", after="i"))
    assert "launch('siblings', pack='siblings.2')" in refusal(apart, Fuse("i", "j")).hint


def test_candidates_are_the_neighbours() -> None:
    base = initial(softmax())
    assert list(Fuse.candidates(base, "k_3")) == [Fuse("k_2", "k_3"), Fuse("k_3", "k_4")]
    assert list(Fuse.candidates(base, "k")) == []
