"""What an edge is called follows from where its value lies."""

from __future__ import annotations

import explorer as ex
from explorer.poly.producer_consumer import value_edges
from explorer.strategies.stitching.result import came_about

M, N = ex.sizes("M N")


@ex.program
def twice(x: ex.f32[M, N], y: ex.f32[M]):
    t = ex.local(ex.f32, (M, N))
    for i in range(M):
        for j in range(N):
            t[i, j] = x[i, j] * 2
        y[i] = 0.0
        for j in range(N):
            y[i] += t[i, j]


def test_a_temporary_of_one_thread_is_where_it_is_stored() -> None:
    s = twice.schedule(M=64, N=8).bind("i", "thread.x")
    (edge,) = value_edges(s.source)
    assert came_about(s.plan, edge, "register") == "global"
    assert came_about(s.contract("t").plan, edge, "register") == "register"
    assert came_about(s.contract("t", "shared").plan, edge, "register") == "shared"
