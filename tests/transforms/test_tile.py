"""Tile: the order is block by block, partial tiles are guarded, and every refusal says what to do."""

from __future__ import annotations

from itertools import product

import pytest

from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.transforms.bind import Bind
from explorer.transforms.cut import Cut
from explorer.transforms.split import Split
from explorer.transforms.tile import Tile
from tests.oracle import check_plan, run_order
from tests.transforms.nests import copy_2d, cube, matmul, plan, refusal


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2), (4, 5), (9, 9), (1, 1)])
def test_the_order_is_block_by_block(sizes: tuple[int, int]) -> None:
    tiled = plan(copy_2d(5, 7), Tile(("i", "j"), sizes))
    check_plan(tiled)
    a, b = sizes
    expected = [(bi + i, bj + j) for bi, bj in product(range(0, 5, a), range(0, 7, b)) for i, j in product(range(a), range(b))
                if bi + i < 5 and bj + j < 7]
    assert [point for *_, point in run_order(tiled)] == expected


def test_loops_between_stay_at_their_depth() -> None:
    tiled = plan(cube(4), Tile(("i", "k"), (2, 3)))
    assert list(tiled.loops) == ["i", "k", "j", "i.i", "k.i"]
    check_plan(tiled)


def test_the_listed_order_is_the_order_of_the_tiles() -> None:
    assert list(plan(cube(4), Tile(("j", "i"), (2, 2))).loops) == ["j", "i", "j.i", "i.i", "k"]


def test_one_loop_is_a_split() -> None:
    assert plan(copy_2d(), Tile(("j",), (4,))) == plan(copy_2d(), Split("j", 4))


def test_tree(golden) -> None:
    before = initial(copy_2d(6, 16))
    golden(f"{loops_text(before)}\n\n{loops_text(plan(copy_2d(6, 16), Tile(('i', 'j'), (4, 8))))}")


def test_a_part_of_a_dimension_ends_where_it_was_cut_off() -> None:
    assert list(plan(copy_2d(6, 16), Cut("j", 10), Tile(("j",), (4,))).loops) == ["i", "j.part", "j", "j.i", "j.2"]
    assert list(plan(copy_2d(6, 16), Cut("j", 10), Tile(("j",), (5,))).loops) == ["i", "j", "j.i", "j.2"]


@pytest.mark.parametrize(("step", "what"), [
    (Tile((), ()), "at least one loop"),
    (Tile(("i", "j"), (4, 4, 4)), "2 loops cannot be tiled by 3 sizes"),
    (Tile(("i", "j"), (4, 0)), "an integer of at least 1"),
    (Tile(("i", "i"), (4, 4)), "named twice"),
    (Tile(("i", "q"), (4, 4)), "there is no loop 'q'"),
])
def test_refusals(step: Tile, what: str) -> None:
    assert what in refusal(initial(copy_2d()), step).what


def test_imperfect_nests_are_refused_with_the_way_out() -> None:
    verdict = refusal(initial(matmul()), Tile(("i", "j", "k"), (2, 2, 2)))
    assert "not perfectly nested" in verdict.what
    assert verdict.why == "j also holds S0 and S2 beside k"
    assert verdict.hint == "distribute('j', after='k') and distribute('j', after='S0') first: then k is alone in its loop"


def test_bound_loops_are_refused() -> None:
    assert "already block.x" in refusal(plan(copy_2d(), Bind("i", "block.x")), Tile(("i", "j"), (2, 2))).what


def test_candidates_fit_the_loops() -> None:
    assert list(Tile.candidates(initial(copy_2d(20, 40)), "i")) == [Tile(("i", "j"), (8, 8)), Tile(("i", "j"), (16, 16))]
    assert list(Tile.candidates(initial(copy_2d(5, 40)), "i")) == [Tile(("i", "j"), (2, 2)), Tile(("i", "j"), (4, 4))]
