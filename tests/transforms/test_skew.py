"""Skew: the box is exact, wavefronts come out, and a part of a dimension cannot be skewed."""

from __future__ import annotations

import pytest

from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.transforms.bind import Bind
from explorer.transforms.cut import Cut
from explorer.transforms.interchange import Interchange
from explorer.transforms.skew import Skew
from explorer.transforms.split import Split
from explorer.transforms.vectorize import Vectorize
from tests.oracle import check_plan, enumerate_plan, run_order
from tests.transforms.nests import copy_2d, cube, matmul, plan, refusal, seidel, siblings, triangle


@pytest.mark.parametrize("factor", [-3, -1, 1, 2])
def test_the_box_is_exact_and_the_order_stays(factor: int) -> None:
    new = plan(seidel(4, 9), Skew("i", "t", factor))
    check_plan(new)
    assert run_order(new) == run_order(initial(seidel(4, 9)))
    taken = {values["i"] for _, _, values in enumerate_plan(new)}
    loop = new.loops["i"]
    assert (min(taken), max(taken)) == loop.range


def test_interchange_after_a_skew_runs_wavefronts() -> None:
    waves = plan(seidel(4, 9), Skew("i", "t", 1), Interchange("t", "i"))
    check_plan(waves)
    fronts = [t + i for *_, (t, i) in run_order(waves)]
    assert fronts == sorted(fronts)


def test_the_outer_loop_may_be_skewed_by_the_inner() -> None:
    new = plan(copy_2d(4, 5), Skew("i", "j", 1))
    check_plan(new)
    assert [i + j for *_, (i, j) in run_order(new)] == sorted(i + j for i in range(4) for j in range(5))


def test_triangles_and_tiles() -> None:
    check_plan(plan(triangle(), Skew("j", "i", -1)))
    check_plan(plan(seidel(4, 9), Split("i", 3), Skew("i", "t", 1)))


def test_tree(golden) -> None:
    golden(f"{loops_text(initial(seidel(8, 100)))}\n\n{loops_text(plan(seidel(8, 100), Skew('i', by='t', factor=1)))}")


def test_refusals() -> None:
    base = initial(seidel())
    assert "cannot be skewed by itself" in refusal(base, Skew("i", "i")).what
    assert "a skew by 0 times t changes nothing" in refusal(base, Skew("i", "t", 0)).what
    assert "there is no loop 'q'" in refusal(base, Skew("i", "q")).what
    assert refusal(plan(seidel(), Bind("i", "thread.x")), Skew("i", "t")).what == "i is already thread.x"
    verdict = refusal(initial(siblings()), Skew("i", "j"))
    assert verdict.what == "S0 runs in i but not in j"
    assert refusal(initial(matmul()), Skew("j", "k")).what == "S0 runs in j but not in k"
    wide = plan(copy_2d(), Split("j", 4), Vectorize("j.i"))
    assert refusal(wide, Skew("j", "j.i")).what == "j.i is a vector loop"


def test_a_part_of_a_dimension_is_skewed() -> None:
    check_plan(plan(seidel(4, 8), Cut("i", 4), Skew("i", "t")))
    check_plan(plan(seidel(4, 8), Cut("i", 4), Skew("i.2", "t")))


def test_the_inner_loop_of_a_split_is_skewed() -> None:
    made = plan(seidel(4, 8), Split("i", 4), Skew("i.i", "t"))
    check_plan(made)
    assert made.loops["i.i"].extent == 7


def test_offers_and_candidates() -> None:
    assert Skew.offers(initial(cube()), "i").what == "no loop is around i to skew it by"
    assert list(Skew.candidates(initial(seidel()), "i")) == [Skew("i", "t", factor) for factor in (1, 2)]
    assert Skew.offers(initial(seidel()), "i")


def test_nothing_is_proposed_where_no_loop_carries_a_dependence() -> None:
    """Also none where a statement uses what another one has written in the same iteration, or updates a sum."""
    for program, loop in ((cube(), "k"), (matmul(), "k"), (copy_2d(), "j")):
        assert list(Skew.candidates(initial(program), loop)) == []
        refused = Skew.offers(initial(program), loop)
        assert refused.what == f"not proposed: no loop around {loop} carries a dependence between what runs in it"
