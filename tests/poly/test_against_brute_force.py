"""Every combination of a few storages, cells and mappings: flow and barriers must agree with brute force on all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from explorer.ir.expr import Expr, const, remainder, var
from explorer.ir.plan import Buffer, Plan
from explorer.ir.tree import Leaf, Loop, View
from explorer.poly.barriers import barriers
from explorer.poly.cover import check_cover
from explorer.poly.flow import check_flow
from explorer.poly.order import check_order
from explorer.poly.placed import place_leaves
from tests.poly import plans
from tests.poly.brute import races, wrong_reads

CELLS = ("none", "round", "column", "column mod 2", "reversed", "round mod 2")
MAPPINGS = [(threads, turned, fused, rows) for threads, turned, fused, rows in
            product((1, 2, 4), (False, True), (False, True), ("block.x", "seq", "thread.y")) if threads > 1 or not turned]


def cell(name: str, leaf: Leaf) -> tuple[Expr, ...]:
    """A cell over the loops of a leaf, at most 4 of them in a row of 4 columns."""
    column = dict(leaf.at)["k"]
    rounds = next((var(n) for n, _ in leaf.when if n.startswith("r.")), const(0))
    return {"none": (const(0),), "round": (rounds,), "column": (column,), "column mod 2": (remainder(column, 2),),
            "reversed": (const(3) - column,), "round mod 2": (remainder(rounds, 2),)}[name]


def plan_of(space: str, written: str, read: str, mapping: tuple) -> Plan:
    """Softmax rows with e in 4 cells of this space; writer and readers choose their cells apart."""
    threads, turned, fused, rows = mapping
    plan = plans.softmax(m=2, k=4, threads=threads, e=space, fused=fused, turned=turned, rows=rows)

    def choose(leaf: Leaf) -> Leaf:
        name = written if leaf.id == "S0" else read
        return replace(leaf, views=tuple((s, View("e", cell(name, leaf)) if v.buffer == "e" else v) for s, v in leaf.views))

    buffers = tuple(Buffer("e", plans.F32, (4,), space) if b.name == "e" else b for b in plan.buffers)
    return replace(plan, buffers=buffers).map_leaves(choose)


@pytest.mark.parametrize("mapping", MAPPINGS, ids=str)
def test_flow_and_barriers_agree_with_enumeration(mapping):
    answers = set()
    for space, written, read in product(("register", "shared"), CELLS, CELLS):
        plan = plan_of(space, written, read, mapping)
        placed = place_leaves(plan)
        assert not check_cover(plan, placed)
        assert not check_order(plan, placed)
        found = check_flow(plan)
        wrong = wrong_reads(plan) | wrong_reads(plan, reverse=True)
        label = f"{space} {written} {read}"
        answers.add(bool(found))
        for f in found:
            assert (f.sink.statement, f.sink.point) in wrong, f"{label}: {f}"
        if found:
            continue
        assert not wrong, label
        kernel = plan.kernels[0]
        got = barriers(plan, kernel)
        assert not got.races, label
        assert not races(plan, kernel, got.before), label
        for position in got.before:
            assert races(plan, kernel, got.before - {position}), f"{label}: {position} orders nothing"
    # where the rows share a block and the columns change threads, no choice of four cells is right
    turned_over_rows = mapping[1] and mapping[3] == "thread.y"
    assert answers == {True} if turned_over_rows and mapping[0] == 2 else answers == {True, False}


def test_host_loops_end_private_storage():
    """A sum over a loop that the host runs cannot stay in registers from one launch to the next."""
    plan = plans.softmax(m=2, k=4, threads=2, e="shared", rows="launch")
    assert check_flow(plan) == ()
    assert not barriers(plan, plan.kernels[0]).races
    k = var("k")
    s0 = plans.statement("S0", {"i": 3}, plans.read("s", var("i")), plans.ZERO)
    s1 = plans.statement("S1", {"k": 4, "i": 3}, plans.read("s", var("i")), plans.Read(0), (plans.read("x", k, var("i")),), "sum")
    s2 = plans.statement("S2", {"i": 3}, plans.read("y", var("i")), plans.Read(0), (plans.read("s", var("i")),))
    arrays = (plans.array("x", 4, 3, role="in"), plans.array("s", 3), plans.array("y", 3, role="out"))
    body = (plans.nest([("i", 3, "seq")], plans.own(s0)), plans.nest([("k", 4, "seq"), ("i", 3, "seq")], plans.own(s1)),
            plans.nest([("i", 3, "seq")], plans.own(s2)))
    program = plans.Program("sums", arrays, (s0, s1, s2), body)

    def leaf(s, suffix: str, *more: str) -> Leaf:
        names = {"i": f"i{suffix}", "k": "k"}
        at = tuple((d, var(names[d])) for d in s.dims)
        slot = next(n for n, a in enumerate(s.accesses) if a.array == "s")
        return Leaf(s.name, s.name, at, tuple(sorted((names[d], var(d)) for d in s.dims)), ((slot, View("s", ())),))

    kernels = (plans.Kernel("a", (Loop("i0", 3, (leaf(s0, "0"),), "thread.x"),)),
               plans.Kernel("b", (Loop("k", 4, (Loop("i1", 3, (leaf(s1, "1"),), "thread.x"),), "launch"),)),
               plans.Kernel("c", (Loop("i2", 3, (leaf(s2, "2"),), "thread.x"),)))
    private = Plan(program, kernels, buffers=(Buffer("s", plans.F32, (), "register"),))
    assert not check_cover(private, place_leaves(private))
    assert check_flow(private)
    assert barriers(private, kernels[1]).before == frozenset(), "launches need no barrier between them"


def with_lanes(e: str, read_e: tuple[Expr, ...]) -> Plan:
    """Columns over two warps of 32 lanes; the last statement reads its own column from `read_e`."""
    plan = plans.softmax(m=1, k=64, threads=64, e=e, rows="seq")

    def change(loop_id: str, suffix: str) -> None:
        nonlocal plan
        loop = plan.loops[loop_id]
        w, q = f"w.{suffix}", f"q.{suffix}"
        t = var(w) * 32 + var(q)

        def move(leaf: Leaf) -> Leaf:
            at = tuple((d, x.substitute({loop_id: t})) for d, x in leaf.at)
            when = tuple(p for p in leaf.when if p[0] != loop_id)
            when = tuple(sorted((*when, (w, var("k") // 32), (q, remainder(var("k"), 32)))))
            views = tuple((s, View(v.buffer, tuple(x.substitute({loop_id: t}) for x in v.index))) for s, v in leaf.views)
            how = ((w, "shuffle"), (q, "shuffle")) if leaf.collect else ()
            return replace(leaf, at=at, when=when, views=views, collect=how)

        body = tuple(move(n) for n in loop.body if isinstance(n, Leaf))
        plan = plan.replace_node(loop_id, Loop(w, 2, (Loop(q, 32, body, "lane"),), "warp"))

    for name in ("a", "b", "c"):
        change(f"t.{name}", name)
    return plan.map_leaves(lambda leaf: replace(leaf, views=tuple(
        (s, View("e", read_e) if v.buffer == "e" and leaf.id == "S3" else v) for s, v in leaf.views)))


def test_warps_and_lanes():
    own = var("w.c") * 32 + var("q.c")
    other_warp = const(32) - var("w.c") * 32 + var("q.c")
    good = with_lanes("shared", (own,))
    assert not check_cover(good, place_leaves(good))
    assert check_flow(good) == ()
    assert not wrong_reads(good)
    bad = with_lanes("shared", (other_warp,))
    found = check_flow(bad)
    assert {(f.sink.statement, f.sink.point) for f in found} <= wrong_reads(bad)
    assert found
    assert barriers(good, good.kernels[0]).before == frozenset()
