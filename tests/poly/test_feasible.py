"""Whether conditions have a point in common: the same answer as isl's, however few operations it may take."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.ir.expr import quotient, remainder, var
from explorer.poly import feasible as module
from explorer.poly.feasible import contradictory, feasible
from explorer.poly.linear import Condition, Tuple, at_least, at_most, box, equal, has_point, less
from tests.mutants.patches import Patch, patched
from tests.poly.test_radix import conditions

LOOPS = (Tuple("A", "a", ("x", "y")), Tuple("B", "b", ("x", "y")))
bounds = st.builds(lambda v, side, n, low: (at_least if low else at_most)(var(v), side, n), st.sampled_from("xy"),
                   st.sampled_from("ab"), st.integers(-2, 9), st.booleans())
BOXES = tuple(c for side in "ab" for c in box([(var("x"), 0, 14), (var("y"), -1, 9)], side))


@pytest.mark.parametrize("few", [1, 200, module.FEW])
@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(conditions, bounds), min_size=1, max_size=5), st.booleans())
def test_the_answer_is_that_of_isl(few: int, case: list[Condition], boxed: bool) -> None:
    held = (*case, *BOXES) if boxed else tuple(case)
    with patched(Patch(module.__name__, "FEW", lambda _: few)):
        assert feasible(LOOPS, held) == has_point(LOOPS, held)


def test_slots_and_fragments_are_decided_without_isl() -> None:
    """The slot that is filled next is not the one that is read, and who has a register of a fragment has one element."""
    k, i, j = (var(v) for v in "kij")
    sides = (Tuple("A", "a", ("k", "i", "j")), Tuple("B", "b", ("k", "i", "j")))
    inside = tuple(c for side in "ab" for c in box([(k, 0, 64), (i, 0, 16), (j, 0, 8)], side))
    slot = equal(remainder(k + 2, 3) * 128 + i * 8 + j, "a", remainder(k, 3) * 128 + i * 8 + j, "b")
    lane, register = remainder(i, 8) * 4 + quotient(j, 2), quotient(i, 8) * 2 + remainder(j, 2)
    fragment = equal(lane, "a", lane, "b"), equal(register, "a", register, "b"), less(i, "a", i, "b")
    questions = ((*inside, slot, equal(k, "a", k, "b")), (*inside, slot, equal(k + 1, "a", k, "b")), (*inside, *fragment))
    for q in questions:
        assert contradictory(sides, q)
        assert not has_point(sides, q)
