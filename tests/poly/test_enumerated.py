"""Point by point and by isl: the same answer about maps, right ones and wrong ones."""

from __future__ import annotations

import random

import pytest

from explorer.ir.expr import Expr, const, quotient, remainder, var
from explorer.ir.program import Constraint
from explorer.poly import enumerated
from explorer.poly.cover import _both


def domain(**extents: int) -> tuple[Constraint, ...]:
    return tuple(c for d, n in extents.items() for c in (Constraint(var(d)), Constraint(const(n - 1) - var(d))))


def both_ways(sizes: tuple[int, int], tile: int, wrong: str) -> tuple[bool | None, bool]:
    """A coalesced loop, split: as it is, or with one mistake."""
    m, n = sizes
    flat, extent = var("i") * n + var("j"), m * n
    boxes = (("a", 0, -(-extent // tile)), ("b", 0, tile))
    joint = var("a") * tile + var("b")
    scope = {"a": (0, boxes[0][2]), "b": (0, tile - 1), "i": (0, m - 1), "j": (0, n - 1)}
    forward: dict[str, Expr] = {"i": quotient(joint, n, scope), "j": remainder(joint, n, scope)}
    when: dict[str, Expr] = {"a": quotient(flat, tile, scope), "b": remainder(flat, tile, scope)}
    constraints = domain(i=m, j=n)
    if wrong == "stride":
        when["a"] = quotient(flat + var("i"), tile, scope)
    elif wrong == "swapped":
        forward["i"] = quotient(joint + 1, n, scope)
    elif wrong == "short":
        boxes = (boxes[0], ("b", 0, tile - 1))
    elif wrong == "triangle":
        constraints = (*constraints, Constraint(var("i") * n - var("j")))
    found = enumerated.inverts(("i", "j"), constraints, forward, when, boxes)
    one, two = _both(("i", "j"), constraints, tuple(forward.items()), tuple(when.items()), boxes)
    return found, one.is_equal(two)


@pytest.mark.parametrize("wrong", ["", "stride", "swapped", "short", "triangle"])
def test_the_answer_is_isls(wrong: str) -> None:
    rng = random.Random(wrong)
    answers = set()
    for _ in range(6):
        found, wanted = both_ways((rng.randint(60, 90), rng.randint(70, 130)), rng.choice((7, 16, 32, 100)), wrong)
        assert found is wanted
        answers.add(found)
    assert answers == {wrong not in ("stride", "swapped")}


def test_too_few_and_too_many_are_left_to_isl() -> None:
    assert both_ways((5, 7), 4, "")[0] is None
    assert enumerated.inverts(("i",), domain(i=1 << 20), {"i": var("a")}, {"a": var("i")}, (("a", 0, 1 << 20),)) is None
    assert enumerated.inverts(("i",), (), {"i": var("a")}, {"a": var("i")}, (("a", 0, 1 << 13),)) is None
