"""Boxes that blocks of a cluster bring to each other: what is written, what is refused, what validator and device notice."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import explorer as ex
from explorer.errors import IllegalSchedule, KernelFault, TransformError
from explorer.ir.plan import Plan
from explorer.kernel.emit import emit
from explorer.kernel.launches import plan_ir
from explorer.kernel.nodes import Barrier, BulkCopy, Drain, Release
from explorer.kernel.traverse import map_bodies
from explorer.kernel.validate import judged
from explorer.poly.judge import judge
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.strategies.contraction import contraction
from explorer.strategies.contraction.shapes import Tiling
from explorer.transforms.multicast import Multicast
from tests.properties.programs import boxes_of_clusters, define
from tests.properties.witness import ENUMERATION, doubt

M, N, K = ex.sizes("M N K")
SMALL = (4, 7, 11, 18)
"""Seeds whose programs are small enough to be enumerated, and of which neighbours copy other boxes."""
ALONE = Tiling("warpgroup", 64, 64, 64, 1, 1, 2, producer=True)


@ex.program
def product(a: ex.f16[M, K], b: ex.f16[K, N], c: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0
            for k in range(K):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc


@cache
def made(mates: tuple[int, int] = (1, 1), m: int = 256, n: int = 256, k: int = 256, columns: int = 64,
         stages: int = 2) -> Schedule:
    tiling = replace(ALONE, mates=mates, columns=columns, stages=stages)
    return contraction(product.schedule(M=m, N=n, K=k), tiling=tiling)


def copies(plan: Plan) -> dict[str, tuple[str, int] | None]:
    return {leaf.id: leaf.multicast for leaf, _, _ in plan.leaves if leaf.mechanism == "bulk"}


def test_each_neighbour_brings_a_half() -> None:
    s = made((2, 2))
    assert copies(s.plan) == {"a_s": ("block.y", 2), "b_s": ("block.x", 2)}
    assert s.plan.clusters["product"] == (2, 2, 1)
    text = s.cuda[s.cuda.index('extern "C"'):]
    order = ("__cluster_dims__(2, 2, 1)", "mbarrier_begin(arrived);", "mbarrier_begin(released, 16);", "cluster_begins();",
             "mbarrier_wait_all(released", "multicast_2d<64, 32, 2, 2>(", "a_map", "multicast_2d<64, 32, 1, 2>(", "b_map",
             "mbarrier_drain<", "mbarrier_release_all<4>(released")
    at = 0
    for word in order:
        at = text.index(word, at) + 1
    assert "bulk_copy_2d" not in text
    assert "cluster_ends();" not in text
    assert "2 neighbours along block.y bring a part each, for all" in str(s)


@pytest.mark.parametrize(("mates", "sizes"), [
    ((1, 2), {}), ((2, 1), {}), ((2, 2), {}), ((4, 1), {}), ((2, 2), {"m": 200, "n": 250 - 2, "k": 136}),
    ((1, 2), {"n": 512, "columns": 128}), ((2, 1), {"n": 512, "columns": 128, "stages": 3, "k": 512}),
])
@pytest.mark.parametrize("checked", [False, True])
def test_it_is_right(mates: tuple[int, int], sizes: dict[str, int], checked: bool) -> None:
    s = made(mates, **sizes)
    assert s.judgement.emittable
    assert any(copies(s.plan).values())
    assert s.run(device="cpu", time=False, checked=checked, ragged=False).correct


@pytest.mark.parametrize("checked", [False, True])
def test_blocks_that_take_tiles_in_turn_share_boxes(checked: bool) -> None:
    """The order of tiles decides what neighbours share: here those of two rows, in one column."""
    tiling = replace(ALONE, mates=(2, 1), persistent=4)
    s = contraction(product.schedule(M=256, N=192, K=192), tiling=tiling)
    assert copies(s.plan) == {"a_s": None, "b_s": ("block.x", 2)}
    assert any(step.name == "persist" for step in s.steps)
    assert s.run(device="cpu", time=False, checked=checked, ragged=False).correct
    with pytest.raises(IllegalSchedule, match="do not copy the same box in a_s"):
        s.multicast("a_s", "block.x", 2)


def test_neighbours_with_other_boxes_are_refused_with_both() -> None:
    step = Multicast("a_s", "block.x", 2)
    with pytest.raises(IllegalSchedule, match="do not copy the same box in a_s") as caught:
        made().apply(step)
    finding = caught.value.finding
    assert "a[0, 0]" in finding.why
    assert "a[64, 0]" in finding.why
    assert (finding.source, finding.sink) != (None, None)


def test_the_enumeration_confirms_it() -> None:
    refused = 0
    for seed in SMALL:
        s = boxes_of_clusters(random.Random(seed), f"clusters{seed}").schedule
        for step in (Multicast(name, axis, 2) for name in ("a_s", "b_s") for axis in ("block.x", "block.y")):
            verdict, plan = s.try_step(step)
            if plan is not None and not verdict and (why := doubt(plan, judge(plan).refusals[0])) != ENUMERATION:
                assert not why
                refused += 1
    assert refused > 1


def test_what_does_not_apply() -> None:
    s = made()
    for step, why in (
        (("a_s", "thread.x", 2), "thread.x is no axis of the grid"), (("S2", "block.x", 2), "S2 is no bulk copy"),
        (("a_s", "block.y", 3), "the grid has 4 blocks along block.y, which 3 does not divide"),
        (("a_s", "block.z", 2), "the grid has 1 blocks along block.z, which 2 does not divide"),
        (("a_s", "block.y", 1), "a_s is not shared"),
    ):
        with pytest.raises(TransformError, match=why):
            s.multicast(*step)
    with pytest.raises(TransformError, match="shared so already"):
        s.multicast("a_s", "block.y", 2).multicast("a_s", "block.y", 2)
    with pytest.raises(TransformError, match="a cluster would have 16 blocks"):
        s.multicast("a_s", "block.y", 4).multicast("b_s", "block.x", 4)
    piped = contraction(product.schedule(M=256, N=256, K=256), tiling=replace(ALONE, producer=False))
    with pytest.raises(TransformError, match="has no producer"):
        piped.multicast("a_s", "block.y", 2)


def test_it_stays_shared_in_later_moves_or_is_refused() -> None:
    s = made((1, 2))
    assert copies(s.launch_bounds("product", 1).plan) == copies(s.plan)
    with pytest.raises((IllegalSchedule, TransformError)):
        s.bind("j", "seq")


def test_it_ends_and_other_counts_say_so() -> None:
    s = made((1, 2))
    assert copies(s.multicast("a_s", "block.y", 1).plan) == copies(made().plan)
    with pytest.raises(TransformError, match=r"a_s is shared by 2 blocks along block\.y") as caught:
        s.multicast("b_s", "block.y", 4)
    assert "multicast('a_s', 'block.y', count=1)" in str(caught.value)
    with pytest.raises(TransformError, match="k has a producer, which runs ahead"):
        s.pipeline("k", 2)


def test_a_pair_is_found_in_later_turns() -> None:
    """Five rows of tiles, two blocks: the third turn of one is in another column than that of the other."""
    tiling = replace(ALONE, persistent=2)
    s = contraction(product.schedule(M=320, N=128, K=128), tiling=tiling)
    with pytest.raises(IllegalSchedule, match="do not copy the same box in b_s") as caught:
        s.multicast("b_s", "block.x", 2)
    assert caught.value.finding.source != caught.value.finding.sink


def test_a_trimmed_loop_is_shared_along_axes_on_which_its_end_does_not_depend() -> None:
    text = """@ex.program
def f(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0
            for k in range(i + 1):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc
"""
    s = define(text, "triangle.py").schedule(M=64, N=64, K=64)
    s = s.tile(("i", "j"), (4, 32)).bind("i.i", "thread.y").bind("j.i", "thread.x").contract("acc").split("k", 16)
    s = s.stage("a", "k", engine="bulk").stage("b", "k", engine="bulk").bind("i", "block.y").bind("j", "block.x")
    s = s.specialise("k", 2).trim("k")
    with pytest.raises(TransformError, match=r"k ends earlier in some blocks along block\.y"):
        s.multicast("b_s", "block.y", 8)
    shared = s.multicast("a_s", "block.x", 2).multicast("b_s", "block.y", 2)  # two tiles of 4 rows end in one step of 16
    assert shared.plan.loops["k"].trimmed
    assert "cluster_ends();" in shared.cuda  # in some blocks more slots are released than in others
    (launch,) = plan_ir(shared.plan).launches
    assert not list(judged(launch))
    assert list(judged(replace(launch, bodies=(launch.bodies[0][:-1],))))
    assert shared.run(device="cpu", time=False, ragged=False).correct


@pytest.mark.parametrize("what", ["begin", "end", "drain", "others", "release", "place", "alone"])
def test_the_validator_notices(what: str) -> None:
    (launch,) = plan_ir(made((1, 2)).plan).launches
    (body,) = launch.bodies
    begins = [n for n in body if isinstance(n, Barrier) and n.cluster]

    def changed(node):  # type: ignore[no-untyped-def]
        if what == "release" and isinstance(node, Release):
            node = replace(node, mbarriers=replace(node.mbarriers, blocks=1))
        if what == "drain" and isinstance(node, Drain):
            node = replace(node, releases=node.releases - 1)
        if what == "others" and isinstance(node, Drain):
            node = replace(node, mbarriers=replace(node.mbarriers, name="arrived"))
        if isinstance(node, BulkCopy) and node.mates:
            if what == "place":
                node = replace(node, mates=replace(node.mates, place=node.mates.place + 1))
            if what == "alone":
                node = replace(node, mates=None)
        return map_bodies(node, lambda nodes: tuple(map(changed, nodes)))

    dropped = {"begin": begins, "end": [body[-1]]}.get(what, [])
    assert not list(judged(launch))
    assert list(judged(replace(launch, bodies=(tuple(changed(n) for n in body if n not in dropped),))))


@pytest.mark.parametrize(("old", "new"), [
    ("mbarrier_release_all<2>(released", "if (tx % 32 == 0) mbarrier_arrive(released"),
    ("mbarrier_wait_all(released", "(void)(released"),
    ("32 * (j % 2)", "0"),
    ("+ 2048 * (j % 2)", ""),
    ("      mbarrier_drain<", "      if (false) mbarrier_drain<"),
])
def test_the_device_notices(old: str, new: str) -> None:
    s = made((1, 2))
    module = emit(s.plan)
    library, mark, kernel = module.text.partition('extern "C"')
    assert old in kernel
    device = CpuDevice(seeds=5)
    arrays = seeded_arrays(s.source, 1)
    broken = replace(module, text=library + mark + kernel.replace(old, new))
    try:
        found = device.run(device.build(broken), arrays)
    except KernelFault:
        return
    wanted = arrays["a"].astype(np.float32) @ arrays["b"].astype(np.float32)
    assert np.abs(found["c"].astype(np.float32) - wanted).max() > 1


@pytest.mark.parametrize(("mates", "persistent"), [((2, 1), 0), ((2, 1), 2), ((1, 2), 0)])
def test_results_of_clusters_leave_by_bulk_stores(mates: tuple[int, int], persistent: int) -> None:
    tiling = replace(ALONE, mates=mates, persistent=persistent, columns=64, stages=2, through=True, bulk_stores=True)
    s = contraction(product.schedule(M=256, N=128, K=128), tiling=tiling)
    assert "bulk_store_2d(c_map" in s.cuda
    assert "mbarrier_drain<" in s.cuda
    assert s.run(device="cpu", time=False, ragged=False).correct


def test_a_nest_behind_does_not_share_the_condition_of_the_last_wait() -> None:
    text = """@ex.program
def f(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[M, N], d: ex.f32[64], e: ex.f32[64]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0
            for k in range(K):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc
    for t in range(64):
        e[t] = d[t] * 2.0
"""
    s = define(text, "two.py").schedule(M=16, N=64, K=64)
    s = s.tile(("i", "j"), (4, 32)).bind("i.i", "thread.y").bind("j.i", "thread.x").contract("acc").split("k", 16)
    s = s.stage("a", "k", engine="bulk").stage("b", "k", engine="bulk").bind("i", "block.y").bind("j", "block.x")
    s = s.split("t", 32).bind("t.i", "thread.x").bind("t", "block.x").specialise("k", 2).multicast("b_s", "block.y", 2)
    assert "mbarrier_drain<4>" in s.cuda
    assert s.run(device="cpu", time=False, ragged=False).correct


def test_a_count_that_is_none_and_another_axis_are_refused() -> None:
    s = made((2, 2))
    for count in (0, -2):
        with pytest.raises(TransformError, match="is no number of neighbours"):
            s.multicast("a_s", "block.y", count)
    with pytest.raises(TransformError, match=r"a_s is shared along block\.y, and not along block\.x"):
        s.multicast("a_s", "block.x", 1)
    assert copies(s.multicast("a_s", "block.y", 1).plan) == {"a_s": None, "b_s": ("block.x", 2)}
