"""Sets and relations from rows agree with what isl reads from text."""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.ir.expr import Expr, const, quotient, remainder, var
from explorer.poly.isl import CONTEXT, text
from explorer.poly.linear import Condition, Tuple, at_least, at_most, build_map, build_set, differ, equal, function, less

NAMES = ("x", "y")
SIDE = {"x": "d0", "y": "d1"}


def exprs(depth: int = 2) -> st.SearchStrategy[Expr]:
    small = st.integers(-4, 4)
    plain = st.builds(lambda a, b, c: var("x") * a + var("y") * b + c, small, small, small)
    if not depth:
        return plain
    below = exprs(depth - 1)
    floors = st.builds(lambda e, by, f, rest: (quotient(e, by) if f else remainder(e, by)) * 2 + rest,
                       below, st.integers(2, 5), st.booleans(), plain)
    return st.one_of(plain, floors)


def read_set(conditions: list[str]) -> isl.Set:
    return isl.Set.read_from_str(CONTEXT, f"{{ S[d0, d1] : {' and '.join(conditions)} }}")


@settings(max_examples=120, deadline=None)
@given(exprs(), exprs(), st.booleans())
def test_sets_equal_their_text(e: Expr, f: Expr, equality: bool) -> None:
    t = Tuple("S", "a", NAMES)
    inside = [*(at_least(var(n), "a", -9) for n in NAMES), *(at_most(var(n), "a", 9) for n in NAMES)]
    built = build_set(t, [*inside, Condition(((e, "a", 1), (f, "a", -3)), 2, equality)])
    difference = f"({text(e, SIDE)}) - 3*({text(f, SIDE)}) + 2 {'=' if equality else '>='} 0"
    wanted = read_set(["-9 <= d0 <= 9", "-9 <= d1 <= 9", difference])
    assert built.is_equal(wanted)
    assert built.complement().is_equal(wanted.complement())


@settings(max_examples=60, deadline=None)
@given(exprs(), exprs())
def test_relations_equal_their_text(e: Expr, f: Expr) -> None:
    source, sink = Tuple("A", "a", NAMES), Tuple("B", "b", NAMES)
    x, y = {"x": "a0", "y": "a1"}, {"x": "b0", "y": "b1"}

    def read(condition: str) -> isl.Map:
        return isl.Map.read_from_str(CONTEXT, f"{{ A[a0, a1] -> B[b0, b1] : {condition} }}")

    left, right = text(e, x), text(f, y)
    assert build_map(source, sink, [equal(e, "a", f, "b")]).is_equal(read(f"{left} = {right}"))
    assert build_map(source, sink, [less(e, "a", f, "b")]).is_equal(read(f"{left} < {right}"))
    apart = [build_map(source, sink, case) for case in differ(e, "a", f, "b")]
    assert apart[0].union(apart[1]).is_equal(read(f"{left} != {right}"))


def test_functions_and_what_is_never_true() -> None:
    t = Tuple("S", "d", NAMES)
    e = quotient(var("x"), 4) + var("y") * 2
    assert function(t, "V", (e, const(7))).is_equal(isl.Map("{ S[x, y] -> V[floor(x/4) + 2y, 7] }"))
    assert build_set(t, [Condition((), -1)]).is_empty()
    assert build_set(t, [Condition(((var("x") * 2, "d", 1),), 1, True)]).is_empty()
    assert build_set(Tuple("S", "d", ()), []).is_equal(isl.Set("{ S[] }"))


@pytest.mark.parametrize("size", [2**31, 2**40, 2**63, 2**70])
def test_coefficients_of_any_size(size: int) -> None:
    t = Tuple("S", "d", ("x",))
    built = build_set(t, [at_least(var("x"), "d", 0), at_most(var("x"), "d", size), at_least(var("x") * 3, "d", 3 * size)])
    assert built.is_equal(isl.Set(f"{{ S[{size}] }}"))
