"""Which ways to take a turn are neighbours: one free choice apart, and else only in what has to follow it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest

from benchmarks import fused_programs, product_programs
from benchmarks.reduction_program import reduction
from explorer.strategies.choices import decisions
from explorer.strategies.neighbours import Free, Space, free_choices


@dataclass(frozen=True)
class Tile:
    """As strategies have them."""

    rows: int
    mates: tuple[int, int] = (1, 2)
    inside: tuple[str, ...] = ("r", "s")
    ahead: bool = False


def around(points: list[Free], here: Free) -> list[Free]:
    """The neighbours of a point."""
    return [points[n] for n in Space(points).neighbours(points.index(here))]


def test_the_fields_of_a_tiling_are_its_free_choices() -> None:
    assert free_choices(Tile(64), way="plain") == (
        ("rows", 64), ("mates[0]", 1), ("mates[1]", 2), ("inside", "('r', 's')"), ("ahead", False), ("way", "plain"))
    assert free_choices(threads=64, spread=2) == (("threads", 64), ("spread", 2))


def test_a_number_goes_one_size_up_or_down_and_any_other_word_is_one_step() -> None:
    points = [free_choices(rows=r, stages=s, order=o) for r, s, o in product((16, 64, 256), (1, 2, 3, 4), ("ij", "ji", "k"))]
    here = free_choices(rows=64, stages=2, order="ij")
    assert {tuple(dict(p).values()) for p in around(points, here)} == {
        (16, 2, "ij"), (256, 2, "ij"), (64, 1, "ij"), (64, 3, "ij"), (64, 2, "ji"), (64, 2, "k")}
    edge = free_choices(rows=16, stages=1, order="k")
    assert {tuple(dict(p).values()) for p in around(points, edge)} == {(64, 1, "k"), (16, 2, "k"), (16, 1, "ij"), (16, 1, "ji")}


def test_what_has_to_follow_a_choice_follows_it() -> None:
    """Twice as many rows ask for twice as many warps, and the largest tile has no four stages."""
    points = [free_choices(rows=64 * w, warps=w, stages=s) for w, s in product((1, 2, 4), (2, 3, 4)) if (w, s) != (4, 4)]
    assert {tuple(dict(p).values()) for p in around(points, free_choices(rows=128, warps=2, stages=4))} == {
        (64, 1, 4), (256, 4, 3), (128, 2, 3)}


def test_a_value_that_is_missing_here_is_stepped_over() -> None:
    points = [free_choices(blocks=b, rows=r) for b, r in ((0, 1), (80, 2), (96, 3), (128, 1))]
    assert free_choices(blocks=128, rows=1) in around(points, free_choices(blocks=0, rows=1))


def test_another_kind_of_way_is_a_neighbour_by_its_nearest() -> None:
    points = [free_choices(threads=64, each=2), free_choices(threads=128, each=2), free_choices(cut="a"), free_choices(cut="b")]
    space = Space(points)
    assert space.neighbours(0) == [1, 2]
    assert space.neighbours(2) == [0, 3]
    assert space.apart(0, 2) == (3, 3)
    assert space.apart(1, 1) == (0, 0)


def test_the_nearest_is_the_one_with_fewest_other_changes_then_the_first() -> None:
    points = [free_choices(a=0, b=0, c=0), free_choices(a=1, b=1, c=0), free_choices(a=2, b=0, c=1), free_choices(a=3, b=0, c=0)]
    assert Space(points).apart(0, 3) == (1, 3)
    assert Space(points).apart(0, 1) == (2, 2)
    assert Space(points).neighbours(0) == [1, 2, 3]
    assert Space(points[:3]).neighbours(0) == [1, 2]


PROGRAMS = {
    "rows": lambda: reduction((40, 300), (1,), "f32", "sum"),
    "parts": lambda: reduction((1 << 20,), (0,), "f32", "sum"),
    "columns": lambda: reduction((300, 40), (0,), "f16", "max"),
    "softmax": lambda: fused_programs.softmax.schedule(M=24, N=1024),
    "elementwise": lambda: fused_programs.adam.schedule(M=5000),
    "row and column": lambda: fused_programs.layernorm_gradient.schedule(M=64, N=256),
    "product": lambda: product_programs.product_nn.schedule(M=256, N=128, K=512),
    "default": lambda: product_programs.product_nn.schedule(M=6, N=6, K=8),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_free_choices_say_all_that_differs(name: str) -> None:
    found = decisions(PROGRAMS[name](), "H200")
    assert found
    for turn in found:
        assert len({c.free for c in turn.choices}) == len(turn.choices)
        space, last = Space([c.free for c in turn.choices]), len(turn.choices) - 1
        for here in (0, last // 2, last):
            near = space.neighbours(here)
            assert near
            assert here not in near
            if len(turn.choices) > 30:
                assert len(near) < len(turn.choices) // 2
        assert len(turn.choices) < 30 or sum(space.apart(0, n)[0] == 1 for n in space.neighbours(0)) >= 3


def test_a_tile_of_a_product_has_others_of_its_kind_around_it() -> None:
    (turn,) = decisions(product_programs.product_nn.schedule(M=1024, N=1024, K=1024), "H200")
    space, points = Space([c.free for c in turn.choices]), [dict(c.free) for c in turn.choices]
    here = next(n for n, p in enumerate(points) if (p["engine"], p["rows"], p["columns"], p["stages"], p["way"]) ==
                ("warpgroup", 128, 128, 3, "") and not p["persistent"])
    near = [points[n] for n in space.neighbours(here)]
    for name, values in (("rows", {64, 192}), ("stages", {2, 4}), ("engine", {"warp"})):
        assert values <= {p[name] for p in near}
    higher = next(p for p in near if p["rows"] == 192)
    assert (higher["engine"], higher["columns"], higher["down"]) == ("warpgroup", 128, 3)
