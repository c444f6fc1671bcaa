"""What the copy engine and the tensor cores move, as the facts tell it."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.schedule import Schedule
from tests.frontend.support import define


def product(k: int) -> Schedule:
    """f16 on a warpgroup, with boxes in three stages."""
    s = define("""
@ex.program
def product(x: ex.f16[M, K], w: ex.f16[K, N], y: ex.f16[M, N]):
    for m in range(M):
        for n in range(N):
            acc = ex.local(ex.f32)
            acc = 0.0
            for k in range(K):
                acc += x[m, k] * w[k, n]
            y[m, n] = acc
""").schedule(M=256, N=256, K=k)
    s = s.tile(["m", "n"], [128, 128]).split("m.i", 64).bind("m", "block.y").bind("n", "block.x").bind("m.i", "thread.y")
    s = s.distribute("n.i", after="k").distribute("n.i", after="S0")
    s = s.distribute("m.i.i", after="n.i.3").distribute("m.i.i", after="n.i")
    s = s.split("k", 64).reorder(("k", "m.i.i.3", "n.i.3", "k.i")).contract("acc")
    return s.stage("x", "k", engine="bulk", swizzle=128).stage("w", "k", engine="bulk", swizzle=128).tensorize("S1")


@pytest.mark.parametrize("stages", [1, 3])
def test_a_box_is_one_request_of_all_its_bytes(stages: int) -> None:
    """Each of the four blocks takes in its rows and columns once, in a prologue and behind it."""
    s = product(256)
    facts = (s if stages == 1 else s.pipeline("k", stages)).facts
    moved = {a: sum(f.bytes for f in facts.accesses if f.array == a and f.space == "global") for a in ("x", "w")}
    assert moved == {"x": 2 * 256 * 256 * 2, "w": 2 * 256 * 256 * 2}
    boxes = [f for f in facts.accesses if f.array == "x" and f.space == "global"]
    assert {(f.by, f.width_bytes) for f in boxes} == {("copy engine", 128 * 64 * 2)}
    assert sum(f.requests for f in boxes) == 16
    assert "(global, boxes of 16,384 B): " in str(facts)
    assert "3% of lanes" not in str(facts)


def test_boxes_beyond_the_edge_are_whole() -> None:
    """Of 200 columns the fourth box has eight that exist: it is asked for as a box, and filled with zeros."""
    (reads,) = [f for f in product(200).facts.accesses if f.array == "x" and f.space == "global"]
    assert (reads.requests, reads.width_bytes) == (16, 128 * 64 * 2)


def test_tiles_of_a_warpgroup_are_its_instructions() -> None:
    found = [f for f in product(256).facts.accesses if f.leaf == "S1"]
    assert {(f.array, f.by, f.width_bytes) for f in found} == {("x", "tensor cores", 64 * 64 * 2),
                                                              ("w", "tensor cores", 64 * 128 * 2)}
    assert {f.requests for f in found} == {4 * 2 * 4}
    assert ex.gpu("H200").name in str(product(256).facts)
