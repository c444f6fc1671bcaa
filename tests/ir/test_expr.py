"""What quotients and remainders become, against every point of a box: splits undone, divisions saved."""

from __future__ import annotations

import random
from itertools import product

import pytest

from explorer.ir.expr import Expr, Quotient, Remainder, quotient, rejoin, remainder, var
from explorer.ir.regroup import one_division, without_remainders
from explorer.kernel.index import divisions

A, B, C = var("a"), var("b"), var("c")
BOX = {"a": (0, 10), "b": (-3, 12), "c": (0, 7)}


def points() -> list[dict[str, int]]:
    return [dict(zip(BOX, at, strict=True)) for at in product(*(range(low, high + 1) for low, high in BOX.values()))]


def same(one: Expr, other: Expr, modulo: int = 0) -> bool:
    apart = (one.evaluate(at) - other.evaluate(at) for at in points())
    return all(d % modulo == 0 if modulo else d == 0 for d in apart)


def coalesced(x: Expr, *extents: int) -> list[Expr]:
    """The indices that a coalesced loop stands for, the outermost without an end."""
    inner = 1
    for n in extents:
        inner *= n
    out = [quotient(x, inner, BOX)]
    for n in extents:
        inner //= n
        out.append(remainder(quotient(x, inner, BOX), n, BOX))
    return out


@pytest.mark.parametrize("x", [A * 64 + B, A * 704 + B * 64 + C, A * 384 + B * 5 + C, A * 77 + C])
@pytest.mark.parametrize("extents", [(7, 11), (11,), (5, 6), (3, 5, 7), (2, 16, 7)])
def test_a_coalesced_loop_is_put_together(x: Expr, extents: tuple[int, ...]) -> None:
    total, stride = Expr(), 1
    for e, n in zip(reversed(coalesced(x, *extents)), reversed((1, *extents)), strict=True):
        total, stride = total + e * stride, stride * n
    assert rejoin(total, BOX) == x


@pytest.mark.parametrize("x", [A * 64 + B, A * 704 + B * 64 + C])
@pytest.mark.parametrize(("extents", "by"), [((7, 11), 2), ((12, 5), 2), ((16, 10, 5), 8), ((27,), 8), ((227,), 4), ((6, 10), 4)])
def test_and_so_is_its_remainder(x: Expr, extents: tuple[int, ...], by: int) -> None:
    """Of neighbouring rows taken together: coefficients are reduced, and some are gone."""
    total, stride = Expr(), 1
    for e, n in zip(reversed(coalesced(x, *extents)), reversed((1, *extents)), strict=True):
        total, stride = total + e * (stride % by), stride * n
    assert remainder(total, by, BOX) == remainder(x, by, BOX)


def test_what_does_not_belong_together_stays() -> None:
    for e in (quotient(A + B, 3) * 3 + B % 3, quotient(A, 3) * 4 + A % 3, quotient(A, 6) * 6 + quotient(A, 3) % 2):
        assert rejoin(e) == e
    assert rejoin(quotient(A, 6) * 2 + quotient(A, 3) % 2) == quotient(A, 3)
    assert remainder(quotient(A * 5 + C, 9) % 6 + B, 4) == Expr(((Remainder(quotient(A * 5 + C, 9) % 6 + B, 4), 1),))


def random_expr(rng: random.Random, depth: int) -> Expr:
    e = Expr((), rng.randint(-9, 9))
    for v in (A, B, C):
        e = e + v * rng.choice((0, 0, 1, 1, 2, 3, 8, 11, 64, 77))
    for _ in range(rng.randint(0, 2) if depth else 0):
        by = rng.choice((2, 3, 5, 7, 8, 11, 12))
        inner = random_expr(rng, depth - 1)
        e = e + rng.choice((quotient, remainder))(inner, by, BOX) * rng.choice((1, 1, 2, 3, by, 5 * by))
    return e


def test_every_way_to_write_it_has_the_same_value() -> None:
    rng, changed = random.Random(5), dict.fromkeys(("rejoin", "modulo", "one", "without"), 0)
    for _ in range(150):
        x, (p, q), c = random_expr(rng, 1), (rng.choice((3, 5, 7, 11)), rng.choice((2, 4, 6, 7))), rng.randint(1, 9)
        first, by = quotient(x, p, BOX), rng.choice((2, 4, 8))
        e = random_expr(rng, 1) + quotient(first, q, BOX) * rng.choice((c * q, rng.randint(1, 99))) + remainder(first, q, BOX) * c
        e = e + remainder(x, p, BOX) * rng.randint(0, 3)
        ways = {"rejoin": (rejoin(e, BOX), 0), "modulo": (rejoin(e, BOX, by), by), "one": (one_division(e, BOX), 0),
                "without": (without_remainders(e), 0)}
        for name, (other, modulo) in ways.items():
            assert same(e, other, modulo), (name, str(e), str(other))
            changed[name] += other != e
    assert min(changed.values()) > 20, changed


def test_one_division_for_what_is_divided_and_what_remains() -> None:
    x = A * 8 + B
    e = quotient(x, 3, BOX) * 30 + remainder(x, 3, BOX)
    assert divisions((e,)) == 2
    assert one_division(e, BOX) == x + quotient(x, 3, BOX) * 27
    assert divisions((one_division(e, BOX),)) == 1
    rest = next(atom for atom, _ in e.terms if isinstance(atom, Remainder))
    assert one_division(e, BOX, (rest,)) == e  # it is there anyway
    alike = quotient(A, 3) * 30 + A % 3
    assert one_division(alike, BOX) == alike  # one division as it is
    assert one_division(quotient(A * 9 + B, 8) * 80 + remainder(A * 9 + B, 8), BOX) == quotient(A * 9 + B, 8) * 80 + (A + B) % 8
    column = quotient(x, 3, BOX) + remainder(x, 3, BOX) * 30
    assert one_division(column, BOX) == column  # nothing would be subtracted
    assert {type(atom) for atom, _ in one_division(e, BOX).terms} == {str, Quotient}
