"""Sectors and banks: textbook cases, and a count thread by thread."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest

from explorer.ir.expr import Expr, var
from explorer.ir.plan import Buffer, Plan
from explorer.ir.program import Program
from explorer.ir.scalar import Read
from explorer.ir.tree import Kernel, Leaf, View
from explorer.poly.traffic import traffic
from tests.poly import plans


def copy(index: Expr, extent: int, n: int = 32, role: str = "thread.x", vector: int = 1) -> Plan:
    """y[i] = x[index(i)], one thread for each i (or for each `vector` of them)."""
    i = var("i")
    s0 = plans.statement("S0", {"i": n}, plans.read("y", i), Read(0), (plans.read("x", index),))
    program = Program("copy", (plans.array("x", extent, role="in"), plans.array("y", n, role="out")), (s0,),
                      (plans.nest([("i", n, "seq")], plans.own(s0)),))
    leaf = Leaf("S0", "S0", (("i", var("t") * vector + var("v")),), (("t", i // vector), ("v", i % vector)))
    tree = plans.nest([("t", n // vector, role), ("v", vector, "vector")], leaf)
    return Plan(program, (Kernel("copy", (tree,)),))


@pytest.mark.parametrize(("index", "extent", "sectors", "minimum"), [
    (var("i"), 32, 4, 4), (var("i") + 1, 33, 5, 4), (var("i") * 2, 64, 8, 4), (var("i") * 8, 256, 32, 4),
    (var("i") // 2, 16, 2, 2),
    (var("i") * 0, 1, 1, 1), (var("i") * -1 + 31, 32, 4, 4)], ids=str)
def test_sectors_of_one_warp(index, extent, sectors, minimum):
    read, write = traffic(copy(index, extent))
    assert (read.sectors_per_request, read.minimum, read.requests) == (sectors, minimum, 1)
    assert read.bytes == sectors * 32
    assert (write.sectors_per_request, write.efficiency) == (4, 1)
    assert not read.sampled
    assert read.active == 1


def test_vector_access_is_one_wide_request():
    read, write = traffic(copy(var("i"), 128, n=128, vector=4))
    assert (read.requests, read.sectors_per_request, read.width_bytes) == (1, 16, 16)
    assert write.efficiency == 1
    narrow, _ = traffic(copy(var("i") * 2, 256, n=128, vector=4))
    assert (narrow.requests, narrow.width_bytes) == (4, 4), "a stride of two cannot be one wide access"


def test_a_part_of_a_warp():
    read, _ = traffic(copy(var("i"), 20, n=20))
    assert read.requests == 1
    assert read.active == pytest.approx(20 / 32)
    assert read.sectors_per_request == ceil(20 * 4 / 32)


def staged(index: Expr, size: int, pad: int = 0, shape: tuple[int, ...] = (), vector: int = 1, n: int = 32) -> Plan:
    """The same copy whose source is a buffer in shared memory."""
    plan = copy(var("i"), n, n=n, vector=vector)
    shape = shape or (size,)
    where = (index,) if len(shape) == 1 else (index // shape[1], index % shape[1])
    buffer = Buffer("x", plans.F32, shape, "shared", pad)
    return replace(plan, buffers=(buffer,)).map_leaves(lambda leaf: replace(leaf, views=((0, View("x", where)),)))


@pytest.mark.parametrize(("stride", "passes"), [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1), (0, 1)])
def test_bank_conflicts_by_stride(stride, passes):
    read = traffic(staged(var("t") * stride, 32 * 33 + 1))[0]
    assert (read.space, read.conflicts) == ("shared", passes)
    assert read.bytes == 0
    assert read.efficiency == pytest.approx(1 / passes)


def test_padding_removes_the_conflicts_of_a_column():
    column = var("t") * 32
    assert traffic(staged(column, 0, shape=(32, 32)))[0].conflicts == 32
    assert traffic(staged(column, 0, shape=(32, 32), pad=1))[0].conflicts == 1


def test_wide_shared_accesses_go_by_quarter_warps():
    contiguous = traffic(staged(var("t") * 4 + var("v"), 128, vector=4, n=128))[0]
    assert (contiguous.width_bytes, contiguous.conflicts) == (16, 1)
    strided = traffic(staged(var("t") * 8 + var("v"), 256, vector=4, n=128))[0]
    assert strided.conflicts == 2


def test_products_and_sampling():
    plan = plans.matmul(m=64, n=64, k=64, tile=(32, 32, 16), threads=(8, 8))
    facts = {(f.leaf, f.slot): f for f in traffic(plan)}
    a = facts["As.a", 0]
    tiles, warps = 2 * 2 * 4, 2
    assert a.requests == pytest.approx(tiles * warps * (32 * 16 // 64))
    assert a.efficiency == 1
    assert not a.sampled
    use = facts["S1", 0]
    assert use.sampled
    assert use.requests == pytest.approx(tiles * warps * 16 * 4 * 4)
    assert facts["S1", 1].conflicts == 1


def test_edges_issue_no_read():
    plan = plans.matmul(m=5, n=5, k=5)
    copy_a = next(f for f in traffic(plan, leaf="As.a") if not f.writes)
    write = next(f for f in traffic(plan, leaf="As.a") if f.writes)
    assert copy_a.active < write.active


def test_single_and_replicated_leaves():
    """One thread writes global memory where no loop is bound; a register's replicas all read."""
    plan = plans.softmax(m=2, k=64, threads=32, again=False)
    write = next(f for f in traffic(plan, leaf="S3") if f.writes)
    assert write.active == pytest.approx(1 / 32)
    assert write.requests == 2


def test_one_kernel_or_leaf_only():
    plan = plans.matmul()
    assert {f.leaf for f in traffic(plan, leaf="S2")} == {"S2"}
    assert traffic(plan, kernel="nothing") == ()
