"""Index expressions as C text: the text means what the expression means, also below zero and beyond 32 bits."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from explorer.ir.expr import Expr, Quotient, Remainder, const, quotient, remainder, var
from explorer.kernel.index import PRIMARY, horner, is_wide, linear, offset_text, rename, subscripts, to_c

RANGES = {"i": (-7, 9), "j": (0, 5), "k": (3, 4)}
i, j, k = var("i"), var("j"), var("k")


def c_value(text: str, values: dict[str, int]) -> int:
    """The value that C gives the text: `/` and `%` truncate towards zero."""

    class Int(int):
        def __truediv__(self, other: int) -> Int:
            return Int(abs(self) // abs(other) * (1 if (self < 0) == (other < 0) else -1))

        def __mod__(self, other: int) -> Int:
            return Int(int(self) - int(self / other) * int(other))

        def _same(name: str):  # type: ignore[misc]
            return lambda self, other: Int(getattr(int, name)(self, int(other)))

        __add__, __radd__, __sub__ = _same("__add__"), _same("__radd__"), _same("__sub__")
        __rsub__, __mul__, __rmul__ = _same("__rsub__"), _same("__mul__"), _same("__rmul__")

        def __neg__(self) -> Int:
            return Int(-int(self))

    wrapped = re.sub(r"\b(\d+)(?:LL)?\b", r"Int(\1)", text.replace("(long long)", ""))
    return int(eval(wrapped, {"Int": Int, **{n: Int(v) for n, v in values.items()}}))


def random_expr(pick: random.Random, depth: int = 2) -> Expr:
    total = const(pick.randint(-9, 9))
    for name in ("i", "j", "k"):
        if pick.random() < 0.6:
            total = total + var(name) * pick.choice((-8, -3, -1, 1, 1, 2, 5, 16))
    if depth and pick.random() < 0.7:
        inner, by = random_expr(pick, depth - 1), pick.choice((2, 3, 8))
        total = total + pick.choice((quotient, remainder))(inner, by, RANGES) * pick.choice((-4, 1, 3))
    return total


def test_text_means_the_expression_everywhere() -> None:
    pick = random.Random(1)
    seen_negative = False
    for _ in range(400):
        expr = random_expr(pick)
        text = to_c(expr, RANGES)[0]
        for point in itertools.product((-7, -1, 0, 9), (0, 5), (3, 4)):
            values = dict(zip("ijk", point, strict=True))
            assert c_value(text, values) == expr.evaluate(values), f"{text} for {expr} at {values}"
        seen_negative = seen_negative or "/" in text
    assert seen_negative


def test_as_a_person_writes_it() -> None:
    assert to_c(i * 16 + j - 3, RANGES)[0] == "16 * i + j - 3"
    assert to_c(-j, RANGES)[0] == "-j"
    assert to_c(-j + 4, RANGES)[0] == "4 - j"
    assert to_c(const(0), RANGES) == ("0", PRIMARY)
    assert to_c(quotient(j, 2, RANGES) * 4 + remainder(j, 2, RANGES), RANGES)[0] == "4 * (j / 2) + j % 2"
    assert to_c(quotient(i, 4, RANGES), RANGES)[0] == "(i + 8) / 4 - 2"
    assert to_c(remainder(i, 4, RANGES), RANGES)[0] == "(i + 8) % 4"


def test_wide_values_are_computed_in_64_bits() -> None:
    ranges = {"r": (0, 2**20), "c": (0, 2**13 - 1)}
    index = (var("r"), var("c"))
    assert offset_text(index, (2**20 + 1, 2**13), ranges) == "r * 8192LL + c"
    assert offset_text(index, (2**10, 2**13), {"r": (0, 2**10 - 1), "c": (0, 2**13 - 1)}) == "r * 8192 + c"
    assert to_c(var("r") * 8192 + var("c"), ranges)[0] == "8192LL * r + c"
    assert is_wide(var("r") * 8192, ranges)
    assert not is_wide(var("r") * 1024, ranges)
    flat = {"f": (0, 2**33), "g": (0, 1)}
    assert to_c(var("f") + var("g"), flat)[0] == "(long long)f + g"


def test_offsets_stay_factored_unless_flat_is_simpler() -> None:
    ranges = {"f": (0, 99), "r": (0, 9), "c": (0, 9)}
    f = var("f")
    assert offset_text((quotient(f, 10, ranges), remainder(f, 10, ranges)), (10, 10), ranges) == "f"
    assert offset_text((var("r") * 2 + 1, var("c")), (20, 10), ranges) == "(2 * r + 1) * 10 + c"
    assert offset_text((const(0), var("r"), const(0), var("c")), (3, 10, 2, 10), ranges) == "r * 20 + c"
    assert offset_text((), (), ranges) == "0"
    assert offset_text((const(0), const(0)), (4, 4), ranges) == "0"
    assert horner([("a", PRIMARY), ("-b", 12)], (3, 7), False) == "a * 7 - b"
    assert linear((var("r"), var("c")), (10, 10)) == var("r") * 10 + var("c")
    assert subscripts((var("r"), var("c") + 1), ranges) == "[r][c + 1]"


def test_renaming_goes_into_quotients() -> None:
    e = Expr(((Quotient(i * 2 + j, 3), 1), (Remainder(j, 4), 2)))
    assert rename(e, {"i": "tx", "j": "ty"}).variables() == {"tx", "ty"}
    assert rename(e, {}) is e
    assert rename(i + j, {"i": "t", "j": "t"}) == var("t") * 2


def test_a_variable_without_bounds_is_an_error() -> None:
    with pytest.raises(AssertionError, match="without bounds"):
        to_c(quotient(var("z"), 4), {})


def test_a_quotient_and_a_remainder_that_are_written_differently_are_one_division() -> None:
    """``x % 7`` has its coefficients reduced; where the loops are apart it would be divided by 7 twice."""
    at, ranges = i * 128 + j, {"i": (0, 20), "j": (0, 127)}
    index = quotient(at, 7, ranges), k, remainder(at, 7, ranges)
    assert offset_text(index, (400, 9, 7), {**ranges, "k": (0, 8)}) == "128 * i + 56 * ((128 * i + j) / 7) + 7 * k + j"
    kept = offset_text(index, (400, 9, 7), {**ranges, "k": (0, 8)}, used=[atom for atom, _ in index[2].terms])
    assert kept == "(((128 * i + j) / 7) * 9 + k) * 7 + (2 * i + j) % 7"
    tile = quotient(at, 8, ranges), k, remainder(at, 8, ranges)
    assert offset_text(tile, (400, 9, 8), {**ranges, "k": (0, 8)}) == "((16 * i + j / 8) * 9 + k) * 8 + j % 8"
