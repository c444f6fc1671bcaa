"""Layouts of shared arrays: every element has a place of its own, units of 16 bytes stay together, columns leave their bank."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.expr import const, quotient, remainder, var
from explorer.ir.plan import Buffer
from explorer.ir.swizzle import MODES, apart, by_patterns, cells, offset, places_of, shared_bytes, swizzled

TYPES = ("u8", "f16", "f32", "f64")


def laid(dtype: str, shape: tuple[int, ...], panel: int = 0, swizzle: int = 0) -> Buffer:
    return Buffer("b", DTYPES[dtype], shape, "shared", panel=panel, swizzle=swizzle)


def places(b: Buffer) -> list[int]:
    """The place of each element, in order of the indices."""
    names = [f"x{d}" for d in range(len(b.shape))]
    ranges = {name: (0, n - 1) for name, n in zip(names, b.shape, strict=True)}
    plain = offset(b, [var(name) for name in names], ranges)
    every = [plain.evaluate(dict(zip(names, index, strict=True))) for index in product(*map(range, b.shape))]
    return [swizzled(place, b.swizzle, b.dtype.bytes) for place in every]


def by_hand(b: Buffer, index: tuple[int, ...]) -> int:
    """The byte of an element, from the words of the documentation: panels of rows, then units xor-ed with lines."""
    *outer, row, column = index
    *around, rows, columns = b.shape
    size, panel = b.dtype.bytes, b.panel or columns
    tile = 0
    for i, n in zip(outer, around, strict=True):
        tile = tile * n + i
    byte = tile * rows * columns * size + column // panel * rows * panel * size + row * panel * size + column % panel * size
    if not b.swizzle:
        return byte
    bits = {128: 0b111, 64: 0b011, 32: 0b001}[b.swizzle]  # bits 4, 5 and 6 of the byte's number, by bits 7, 8 and 9
    return byte ^ (byte >> 7 & bits) << 4


@pytest.mark.parametrize("mode", [0, *MODES])
@pytest.mark.parametrize("dtype", TYPES)
def test_every_element_has_a_place_of_its_own(dtype: str, mode: int) -> None:
    size = DTYPES[dtype].bytes
    for width in {mode or 64, 32}:
        for panels in (1, 3):
            panel = width // size
            for shape in ((8, panel * panels), (3, 16, panel * panels)):
                b = laid(dtype, shape, panel if panels > 1 else 0, mode if width == mode else 0)
                found = places(b)
                assert sorted(found) == list(range(b.size)), b
                assert [p * size for p in found] == [by_hand(b, index) for index in product(*map(range, shape))], b


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", TYPES)
def test_units_of_16_bytes_stay_together_within_their_row(dtype: str, mode: int) -> None:
    size = DTYPES[dtype].bytes
    found = np.array(places(laid(dtype, (16, mode // size), 0, mode)))
    units = found.reshape(-1, 16 // size)
    assert (units == units[:, :1] + np.arange(16 // size)).all()
    assert not (units[:, 0] % (16 // size)).any()
    assert (found // (mode // size) == np.arange(16).repeat(mode // size)).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_column_of_units_fills_the_lines(mode: int) -> None:
    """The first units of 8 rows: as many different ones of a line as a row of the pattern and its line have."""
    found = np.array(places(laid("f16", (8, mode // 2), 0, mode))).reshape(8, -1)[:, 0] * 2
    assert len(set(found % 128 // 16)) == 8


def test_numbers_of_an_array_are_swizzled_alike() -> None:
    place = np.arange(4096)
    assert (swizzled(place, 64, 2) == [swizzled(int(p), 64, 2) for p in place]).all()


def test_panels_stand_before_rows() -> None:
    b, ranges = laid("f16", (2, 8, 24), 8), {"s": (0, 1), "i": (0, 7), "j": (0, 23), "t": (0, 2), "v": (0, 7)}
    assert cells(b, (var("s"), var("i"), var("j")), ranges)[1] == (2, 3, 8, 8)
    column = 8 * var("t") + var("v")
    assert offset(b, (var("s"), var("i"), column), ranges) == 192 * var("s") + 64 * var("t") + 8 * var("i") + var("v")
    plain = laid("f16", (8, 24))
    assert offset(plain, (var("i"), const(3)), ranges) == 24 * var("i") + 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", TYPES)
def test_what_stands_behind_a_unit_keeps_its_distance(dtype: str, mode: int) -> None:
    size = DTYPES[dtype].bytes
    b, unit = laid(dtype, (16, mode // size), 0, mode), 16 // size
    ranges = {"t": (0, mode // 16 - 1), "v": (0, unit - 1), "k": (0, mode // size - 1)}
    cases = [(unit * var("t") + var("v"), ()), (var("k"), ("k",)), (var("k"), ()), (unit * var("t") + (unit - 1), ())]
    for column, unrolled in cases:
        (row, first), rest = apart(b, (const(0), column), ranges, unrolled)
        assert row == const(0)
        assert (first == column and rest == const(0)) == (column == var("k") and not unrolled)
        for line, (t, v, k) in product(range(16), product(*(range(high + 1) for _, high in ranges.values()))):
            at = {"t": t, "v": v, "k": k}
            whole, begin = (line * (mode // size) + e.evaluate(at) for e in (column, first))
            assert swizzled(whole, mode, size) == swizzled(begin, mode, size) + rest.evaluate(at)


def test_aligned_arrays_stand_first() -> None:
    assert places_of([(100, 16), (2000, 1024), (512, 1024)]) == ((2560, 0, 2048), 2672)
    assert places_of([(8, 16), (8, 16)]) == ((0, 16), 32)
    plain, register = Buffer("p", DTYPES["f32"], (25,), "shared"), Buffer("r", DTYPES["f32"], (8,), "register")
    assert shared_bytes([plain, laid("f16", (8, 64), 0, 128), register]) == 1024 + 112


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", TYPES)
def test_what_stands_behind_a_pattern_keeps_its_distance(dtype: str, mode: int) -> None:
    """Slots, tiles of rows, quotients and panels; a place that would be negative within its pattern stays whole."""
    size = DTYPES[dtype].bytes
    width, ranges = mode // size, {"s": (0, 2), "w": (0, 3), "r": (0, 15), "c": (0, mode // size - 1)}
    s, w, r, c = (var(name) for name in "swrc")
    b, panels = laid(dtype, (3, 80, width), 0, mode), laid(dtype, (3, 80, 2 * width), width, mode)
    cases = [(b, (s, 16 * w + r, c), True), (b, (remainder(s + 2, 3, ranges), 16 * w + 8 * quotient(r, 8, ranges) + 3, c), True),
             (panels, (s, r, c + width * quotient(w, 2, ranges)), True), (b, (s, r + 17, c), True),
             (b, (s, 64 - 16 * w + r, c), True),
             (b, (const(0), r - r + w, c), False), (b, (const(0), 15 - r, c), False)]
    for buffer, index, moves in cases:
        inside, extents, beyond = by_patterns(buffer, index, ranges)
        assert (beyond != const(0)) == moves
        for values in product(*(range(high + 1) for _, high in ranges.values())):
            at, place = dict(zip("swrc", values, strict=True)), 0
            for e, extent in zip(inside, extents, strict=True):
                assert e.evaluate(at) >= 0
                place = place * extent + e.evaluate(at)
            whole = offset(buffer, index, ranges).evaluate(at)
            assert swizzled(whole, mode, size) == swizzled(place, mode, size) + beyond.evaluate(at)
