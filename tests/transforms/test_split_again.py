"""The inner loop of a split is divided by any number: the dimension that it is a part of counts as two."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer.errors import TransformError
from explorer.ir.text import loops_text
from explorer.schedule import Schedule
from tests.oracle import run_order
from tests.properties.programs import define
from tests.properties.trial import Trial

ROWS = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
        for k in range(1, N, 2):
            y[i] += x[i, k]
"""
LOOKED_UP = """@ex.program
def f(x: ex.f32[N], p: ex.i32[N], y: ex.f32[N]):
    for i in range(N):
        if i % 3 != 1:
            y[i] = x[p[i]] * i
        if i % 3 == 1:
            y[i] = 0.5
"""


def rows() -> Schedule:
    return define(ROWS, "rows.py").schedule(M=5, N=50)


@pytest.mark.parametrize("make", [
    lambda s: s.split("k", 4).split("k.i", 3),
    lambda s: s.split("k", 12).split("k.i", 4).split("k.i", 2).split("k.i.i", 3),
    lambda s: s.split("i", 4).split("i.i", 3).bind("i", "block.x").bind("i.i", "block.y").bind("i.i.i", "thread.x"),
    lambda s: s.split("k", 7).bind("k.i", "thread.x", count=4).collect("y", "shuffle"),
    lambda s: s.split("k", 7).tile(("k.i",), (3,)).rfactor("y", "k.i").contract("y_p", "register"),
    lambda s: s.shift("k", 3).split("k", 8).split("k.i", 3).split("k.i.i", 2),
    lambda s: s.split("k", 6).bind("k.i", "thread.x").collect("y", "atomic").split("i", 3).split("i.i", 2),
    lambda s: s.split("i", 4).stage("x", "i").split("i.i", 3),
])
def test_any_number_divides(make: Callable[[Schedule], Schedule]) -> None:
    trial = Trial(shrinks=0)
    trial.conclude("again", make(rows()))
    trial.flush()
    assert not trial.tally.found, "\n".join(map(str, trial.tally.found))
    assert trial.tally.pairs


def test_data_and_conditions_come_along() -> None:
    s = define(LOOKED_UP, "looked.py").schedule(N=23).split("i", 5).split("i.i", 2)
    trial = Trial(shrinks=0)
    trial.conclude("looked", s.bind("i", "block.x").bind("i.i", "thread.x"))
    trial.flush()
    assert not trial.tally.found
    assert trial.tally.pairs


def test_the_order_does_not_change() -> None:
    s = rows().split("k", 4)
    again = s.split("k.i", 3)
    assert "3*k.i + k.i.i < 4" in loops_text(again.plan)
    before = [(name, sum(p * n for p, n in zip(point, (100, 1), strict=False))) for *_, name, point in run_order(s.plan)]
    after = [(name, point[0] * 100 + (4 * point[1] + point[2] if len(point) > 1 else 0))
             for *_, name, point in run_order(again.plan)]
    assert before == after


PARTS = """@ex.program
def parts(x: ex.f32[N], y: ex.f32[N], z: ex.f32[N]):
    for i in range(N):
        y[i] = 2 * x[i]
        z[i] = y[i] + i
"""


def parts(n: int = 25) -> Schedule:
    return define(PARTS, "parts.py").schedule(N=n)


@pytest.mark.parametrize("make", [
    lambda: rows().cut("k", 10).split("k", 4),
    lambda: rows().cut("k", 8).split("k", 3).split("k.2", 4).split("k.i", 2),
    lambda: rows().cut("k", 10).cut("k.2", 6).split("k.2", 4).split("k", 3),
    lambda: rows().split("k", 8).cut("k.i", 3).split("k.i", 2).split("k.i.2", 2),
    lambda: rows().cut("k", 10).split("k", 4).bind("i", "block.x").unroll("k.i"),
    lambda: rows().cut("i", 3).split("i", 2).bind("i", "block.x").bind("i.i", "thread.x").bind("i.2", "block.x"),
    lambda: parts().cut("i", 10).split("i", 4).bind("i", "block.x").bind("i.i", "thread.x").split("i.2", 4)
    .bind("i.2", "block.x"),
    lambda: parts().reverse("i").cut("i", 10).split("i", 4).split("i.2", 4),
    lambda: parts().cut("i", 10).reverse("i").split("i", 4).bind("i.i", "thread.x"),
    lambda: parts().cut("i", 10).distribute("i", "S0").split("i", 4),
    lambda: parts().cut("i", -10).tile(("i",), (4,)),
    lambda: parts().cut("i", 10).shift("i", 2, of="S1"),
    lambda: parts().cut("i", 10).cut("i.2", 5).shift("i.2", -3, of="S0.2"),
    lambda: rows().cut("k", 10).skew("k", "i", 2),
    lambda: rows().cut("k", 10).cut("k.2", 8).skew("k.2", "i", -1),
    lambda: parts(24).cut("i", 8).split("i", 3).unroll("i.i"),
])
def test_a_part_of_a_loop_that_was_cut_is_divided_by_any_number(make: Callable[[], Schedule]) -> None:
    trial = Trial(shrinks=0)
    trial.conclude("parts", make())
    trial.flush()
    assert not trial.tally.found, "\n".join(map(str, trial.tally.found))
    assert trial.tally.pairs


def test_a_part_ends_where_it_was_cut_off() -> None:
    s = rows().cut("k", 10).split("k", 4)
    assert "where 4*k + k.i < 10" in loops_text(s.plan)
    order = [point for *_, name, point in run_order(s.plan) if name == "S1"]
    assert [(i, k) for i, *_, k in order] == [(i, k) for i in range(5) for k in range(25)]


def test_the_copies_of_a_part_still_keep_it_whole() -> None:
    with pytest.raises(TransformError, match="beyond its 10 iterations"):
        rows().cut("k", 10).stage("x", "k").split("k", 4)
