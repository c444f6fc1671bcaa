"""Shift: a whole loop is renumbered, a part of a body is delayed."""

from __future__ import annotations

import pytest

from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.transforms.bind import Bind
from explorer.transforms.cut import Cut
from explorer.transforms.fuse import Fuse
from explorer.transforms.shift import Shift
from tests.oracle import check_plan, run_order
from tests.transforms.nests import copy, matmul, plan, refusal, siblings, softmax


@pytest.mark.parametrize("amount", [-5, -1, 3])
def test_a_whole_loop_is_renumbered(amount: int) -> None:
    new = plan(matmul(), Shift("j", amount))
    check_plan(new)
    assert run_order(new) == run_order(initial(matmul()))
    assert (new.loops["j"].start, new.loops["j"].extent) == (amount, 7)


@pytest.mark.parametrize("amount", [-2, -1, 1, 3])
def test_a_part_is_delayed(amount: int) -> None:
    new = plan(siblings(), Fuse("i", "j"), Shift("i", amount, of="S1"))
    check_plan(new)
    time = {(s, p[0]): n for n, (*_, s, p) in enumerate(run_order(new))}
    for v in range(8):
        for w in range(8):
            assert (time["S0", v] < time["S1", w]) == (v <= w + amount)
    assert new.loops["i"].extent == 8 + abs(amount)


def test_the_part_may_be_a_loop_or_named_by_its_array() -> None:
    by_loop, by_statement, by_array = (plan(softmax(), Shift("i", 1, of=name)) for name in ("k_3", "S4", "total"))
    assert by_loop == by_statement == by_array
    check_plan(plan(softmax(), Shift("i", 1, of="k_3"), Shift("i", -1, of="k")))


def test_tree(golden) -> None:
    base = plan(siblings(64, 64), Fuse("i", "j"))
    golden(f"{loops_text(base)}\n\n{loops_text(Shift('i', 1, of='S1').rewrite(base))}")


def test_refusals() -> None:
    base = initial(softmax())
    assert "by 0 iterations changes nothing" in refusal(base, Shift("i", 0)).what
    assert "'S9' is not in the body of i" in refusal(base, Shift("i", 1, of="S9")).what
    assert refusal(initial(copy()), Shift("i", 1, of="S0")).hint == "shift('i', 1) moves all of it"
    assert refusal(plan(softmax(), Bind("i", "block.x")), Shift("i", 1)).what == "i is already block.x"
    part = plan(siblings(), Fuse("i", "j"), Cut("i", 5))
    for amount, of in ((1, "S1"), (-1, "S0"), (1, "S0")):
        check_plan(plan(siblings(), Fuse("i", "j"), Cut("i", 5), Shift("i", amount, of=of)))
    check_plan(Shift("i", 4).rewrite(part))


def test_offers_and_candidates() -> None:
    assert Shift.offers(initial(copy()), "i").what == "not proposed: i has one part only and starts at 0"
    assert list(Shift.candidates(plan(copy(), Shift("i", 3)), "i")) == [Shift("i", -3)]
    assert Shift("j", 1, "k") in list(Shift.candidates(initial(matmul()), "j"))
