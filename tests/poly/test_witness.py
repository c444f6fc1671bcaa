"""The least pair of instances that shows a refusal: found for the first one, for the others when they are read, and the least."""

from __future__ import annotations

from random import Random

import pytest

import explorer as ex
from explorer.ir.finding import Findings
from explorer.poly import isl as analysis
from explorer.poly import order
from explorer.poly.isl import MANY, read_set, smallest
from explorer.poly.judge import judge
from explorer.transforms.reverse import Reverse

T, N = ex.sizes("T N")


@ex.program
def sweep(u: ex.inout[ex.f32[N, N]]):
    for _t in range(T):
        for i in range(N - 2):
            for j in range(N - 2):
                u[i + 1, j + 1] = 0.25 * (u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2])


def parts(pick: Random, count: int) -> list[str]:
    """Boxes of points that a quotient or a remainder thins out."""
    out = []
    for _ in range(count):
        low = [pick.randrange(12) for _ in range(3)]
        high = [n + pick.randrange(1, 9) for n in low]
        by, left = pick.randrange(2, 5), pick.randrange(2)
        out.append(f"[i, j, k] : {low[0]} <= i < {high[0]} and {low[1]} <= j < {high[1]} and {low[2]} <= k < {high[2]} and "
                   f"(i + j) % {by} = {left}")
    return out


@pytest.mark.parametrize("count", [1, MANY - 1, MANY, 3 * MANY])
def test_it_is_the_least_point(count: int) -> None:
    pick, asked = Random(count), 0
    while asked < 20:
        found = read_set("{ " + "; ".join(parts(pick, count)) + " }")
        points: list[tuple[int, ...]] = []
        found.foreach_point(lambda p: points.append(tuple(  # noqa: B023
            p.get_coordinate_val(analysis.isl.dim_type.set, n).to_python() for n in range(3))))
        if points:
            asked += 1
            assert smallest(found) == min(points)


def test_other_pairs_are_found_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(order, "smallest", lambda pairs: asked.append(pairs) or smallest(pairs))
    _, plan = sweep.schedule(T=5, N=23).try_step(Reverse("i"))
    assert plan is not None
    found = judge(plan).refusals
    assert isinstance(found, Findings)
    assert len(found) > 1
    assert len(asked) == 1
    assert found[0].source is not None
    assert len(asked) == 1, "the first one was known"
    assert len({x.what for x in found}) == len(found) == len(asked)
    assert tuple(found) == found == judge(plan).refusals
