"""Reverse: the opposite order, twice is nothing."""

from __future__ import annotations

from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.ir.tree import Sync
from explorer.transforms.bind import Bind
from explorer.transforms.reverse import Reverse
from explorer.transforms.shift import Shift
from tests.oracle import check_plan, run_order
from tests.transforms.nests import copy, copy_2d, plan, refusal, triangle


def test_the_order_is_the_opposite() -> None:
    back = plan(copy(), Reverse("i"))
    check_plan(back)
    assert run_order(back) == run_order(initial(copy()))[::-1]
    assert run_order(plan(copy_2d(), Reverse("i"), Reverse("j"))) == run_order(initial(copy_2d()))[::-1]


def test_twice_is_nothing() -> None:
    assert plan(triangle(), Reverse("j"), Reverse("j")) == initial(triangle())


def test_starts_are_kept() -> None:
    back = plan(copy(), Shift("i", 4), Reverse("i"))
    check_plan(back)
    assert back.loops["i"].range == (4, 16)


def test_tree(golden) -> None:
    golden(f"{loops_text(initial(triangle()))}\n\n{loops_text(plan(triangle(), Reverse('i')))}")


def test_refusals() -> None:
    assert refusal(plan(copy(), Bind("i", "lane")), Reverse("i")).what == "i is already lane"
    base = initial(copy())
    waits = base.replace_node("S0", base.leaves[0][0], Sync("w", "wait", 1))
    assert refusal(waits, Reverse("i")).hint == "reverse before pipelining"
    assert Reverse.offers(initial(copy(1)), "i").what == "i runs only once"
    assert not list(Reverse.candidates(initial(copy(1)), "i"))
