"""Axes of a launch that trade their loops: the other threads share a warp, the results stay."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer import workloads
from explorer.errors import TransformError
from explorer.ir.tree import Loop, walk
from explorer.kernel.emit import emit
from explorer.strategies.auto import auto
from explorer.strategies.collects import ways
from tests.transforms.multiblock import NAMES, spread


def rows(m: int = 64, n: int = 256) -> ex.Schedule:
    s = workloads.get("sum_rows").definition.schedule(M=m, N=n)
    s = s.split("i", 8).bind("i", "block.y").bind("i.i", "thread.y").split("k", 32).bind("k.i", "thread.x")
    return s.collect("total", "shuffle")


def roles(schedule: ex.Schedule, kernel: int = 0) -> dict[str, str]:
    found = [n for n in walk(schedule.plan.kernels[kernel].body) if isinstance(n, Loop)]
    return {n.id: n.role for n in found if n.is_place}


def right(schedule: ex.Schedule) -> bool:
    return bool(schedule.run(device="cpu", seeds=3, time=False, ragged=False).correct)


def test_every_loop_of_the_launch_changes_its_axis_and_nothing_else() -> None:
    s = rows()
    name = s.plan.kernels[0].id
    swapped = s.swap_axes(name, "thread.x", "thread.y")
    other = {"thread.x": "thread.y", "thread.y": "thread.x"}
    assert roles(swapped) == {loop: other.get(role, role) for loop, role in roles(s).items()}
    assert set(roles(s).values()) == {"block.y", "thread.x", "thread.y"}
    assert swapped.swap_axes(name, "thread.y", "thread.x").plan == s.plan
    assert swapped.judgement.emittable
    assert right(swapped)


def test_other_threads_share_a_warp_so_the_text_and_its_barriers_are_others() -> None:
    s = rows()
    swapped = s.swap_axes(s.plan.kernels[0].id, "thread.x", "thread.y")
    before, after = (emit(one.plan).text for one in (s, swapped))
    assert "block_reduce_first<reduce_sum, 32, 8, 1, true, false, false>" in before
    assert "block_reduce_first<reduce_sum, 8, 32, 1, false, true, false>" in after
    assert "__shared__ float scratch[" in after
    assert "__shared__" not in before, "a row of lanes is one warp"


@pytest.mark.parametrize("how", ["atomic", "kernel", "last_block", "handoff", "grid", "cluster"])
def test_the_axes_of_the_grid_of_reductions_over_blocks(how: str) -> None:
    phases = 0
    for label in NAMES:
        s = spread(label)
        way = next(w for w in ways(s, "y") if w.how == how)
        if not way.verdict:
            continue
        for step in way.steps:
            s = s.apply(step)
        for group in s.plan.launched:
            if not any(role.startswith("block") for k in group for role in roles(s, s.plan.kernels.index(k)).values()):
                continue
            swapped = s.swap_axes(group[0].id, "block.x", "block.y")
            assert swapped.judgement.emittable, label
            assert right(swapped), label
            for phase in group[1:]:
                phases += 1
                number = s.plan.kernels.index(phase)
                other = {"block.x": "block.y", "block.y": "block.x"}
                wanted = {loop: other.get(role, role) for loop, role in roles(s, number).items()}
                assert roles(swapped, number) == wanted, "all phases have the launch's axes"
                with pytest.raises(TransformError, match="runs in the launch of"):
                    s.swap_axes(phase.id, "block.x", "block.y")
    assert bool(phases) == (how in ("last_block", "handoff", "grid"))


@pytest.mark.parametrize("name", ["softmax", "layernorm", "max_columns", "sum_interleaved", "matmul"])
@pytest.mark.parametrize("axes", [("thread.x", "thread.y"), ("block.x", "block.y"), ("thread.x", "thread.z")])
def test_what_auto_makes_stays_right(name: str, axes: tuple[str, str]) -> None:
    workload = workloads.get(name)
    s = auto(workload.definition.schedule(**workload.tiny))
    swapped = s
    for group in s.plan.launched:
        found = {n.role for k in group for n in walk(k.body) if isinstance(n, Loop)}
        if found & set(axes) and not found & {"lane", "warp"}:
            swapped = swapped.swap_axes(group[0].id, *axes)
    assert swapped.plan != s.plan or not any(r in axes for n in range(len(s.plan.kernels)) for r in roles(s, n).values())
    assert right(swapped)


@pytest.mark.parametrize(("arguments", "words"), [
    (("nothing", "thread.x", "thread.y"), "there is no kernel 'nothing'"),
    (("sum_rows", "thread.x", "block.x"), "are not two axes of the grid, or two of the block"),
    (("sum_rows", "thread.x", "thread.x"), "are not two axes of the grid, or two of the block"),
    (("sum_rows", "seq", "unroll"), "are not two axes of the grid, or two of the block"),
    (("sum_rows", "block.x", "block.z"), "no loop of sum_rows is along block.x or block.z"),
])
def test_what_is_refused(arguments: tuple[str, str, str], words: str) -> None:
    with pytest.raises(TransformError, match=words):
        rows().swap_axes(*arguments)


def test_an_axis_holds_no_more_than_it_can() -> None:
    s = workloads.get("sum_rows").definition.schedule(M=128, N=16)
    name = s.plan.kernels[0].id
    with pytest.raises(TransformError, match=r"i runs 128 times; thread\.z has at most 64 places"):
        s.bind("i", "thread.x").swap_axes(name, "thread.x", "thread.z")
    many = workloads.get("sum_rows").definition.schedule(M=70000, N=2).bind("i", "block.x")
    with pytest.raises(TransformError, match=r"i runs 70000 times; block\.y has at most 65535 places"):
        many.swap_axes(name, "block.x", "block.y")


def test_warps_stay_along_x() -> None:
    s = workloads.get("sum_rows").definition.schedule(M=8, N=64).bind("i", "warp")
    name = s.plan.kernels[0].id
    with pytest.raises(TransformError, match="i is a warp"):
        s.swap_axes(name, "thread.x", "thread.y")


def test_it_is_offered_where_it_does_something() -> None:
    s = rows()
    name = s.plan.kernels[0].id
    offered = [str(m.step) for m in s.moves(name) if m.name == "swap_axes" and m.applies]
    assert offered == [f"swap_axes('{name}', 'thread.x', 'thread.y')"]
    bare = workloads.get("sum_rows").definition.schedule(M=8, N=64)
    (refused,) = [m for m in bare.moves(name) if m.name == "swap_axes"]
    assert not refused.applies
    assert refused.verdict.what == f"no loop of {name} is along thread.x or thread.y"
