"""Groups of bulk copies are numbered without those in which nothing is copied; enumeration of what one thread does agrees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from explorer.ir.plan import Plan
from explorer.ir.tree import Leaf, Loop, Node, Sync
from explorer.kernel import bulk_copy
from explorer.kernel.emit import emit
from explorer.kernel.interpreter import execute
from explorer.kernel.launches import plan_ir
from explorer.kernel.passes import names
from explorer.kernel.validate import waits
from explorer.poly import arrivals
from explorer.poly.arrivals import copies_in_bulk, mbarriers
from explorer.poly.filled import Counted, counted
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from tests.kernel.bulk_schedules import SCHEDULES, several_tiles, tiled_product
from tests.mutants.test_ir_judged import faults
from tests.transforms.test_engines import before

Point = dict[str, int]


def run(nodes: tuple[Node, ...], point: Point) -> Iterator[tuple[Leaf | Sync, Point]]:
    """What one thread of one block comes by, in order; a box is copied once."""
    for node in nodes:
        if not isinstance(node, Loop):
            yield node, point
        elif node.is_place or node.role == "tensor":
            yield from run(node.body, {**point, node.id: node.start}) if node.extent else ()
        else:
            for value in range(node.start, node.start + node.extent):
                yield from run(node.body, {**point, node.id: value})


def copies(plan: Plan, leaf: Leaf, point: Point) -> bool:
    """Whether the leaf copies a box there."""
    dims = {name: e.evaluate(point) for name, e in leaf.at}
    return leaf.mechanism == "bulk" and all(c.holds(dims) for c in plan.statement_of[leaf.statement].domain)


@pytest.mark.parametrize("name", SCHEDULES)
def test_numbers_are_those_of_the_groups_with_copies(name: str) -> None:
    plan = SCHEDULES[name]().plan
    for kernel in (k for k in plan.kernels if copies_in_bulk(k)):
        groups, number, ordinal = counted(plan, kernel), 0, list[int | None]()
        filled = False
        for node, point in run(kernel.body, {}):
            if isinstance(node, Leaf) and copies(plan, node, point):
                filled = True
                assert groups.group_of(node.id).evaluate(point) == number
            elif isinstance(node, Sync) and node.kind == "commit":
                assert all(e.evaluate(point) >= 0 for e in groups.closes(node.id)) == filled
                assert not filled or groups.group_of(node.id).evaluate(point) == number
                ordinal.append(number if filled else None)
                number, filled = number + filled, False
            elif isinstance(node, Sync):
                assert groups.awaited(node).evaluate(point) == ordinal[len(ordinal) - node.pending - 1]
        assert groups.all == number


@pytest.mark.parametrize(("x", "y"), [(4, 2), (2, 3), (5, 3), (3, 0), (3, 3)])
@pytest.mark.parametrize("engine", ["bulk", "async"])
def test_groups_of_pipelines_of_different_depths_are_numbered_apart(x: int, y: int, engine: str) -> None:
    """Each copy takes its own mbarriers in turn; what is copied in no iteration has no number, and waits ask for what arrived."""
    s = before().stage("x", "k", engine="bulk").stage("y", "k", engine=engine, vector=8 if engine == "async" else 1)
    for name, stages in (("x_s", x), ("y_s", y)):
        s = s.pipeline("k", stages, copies=(name,)) if stages else s
    (kernel,) = s.plan.kernels
    groups, seen, ordinal, now = counted(s.plan, kernel), dict[int, int](), list[int | None](), set[int]()
    assert bool(groups.apart) == (x != y)
    beside = 2 if x != y and engine == "bulk" else 1
    assert mbarriers(s.plan, kernel) % beside == 0
    for node, point in run(kernel.body, {}):
        if isinstance(node, Leaf) and copies(s.plan, node, point):
            now.add(groups.group_of(node.id).evaluate(point))
        elif isinstance(node, Sync) and node.kind == "commit":
            number = groups.group_of(node.id).evaluate(point)
            assert all(e.evaluate(point) >= 0 for e in groups.closes(node.id)) == bool(now)
            assert now <= {number}
            if now:
                assert number == seen.get(number % beside, number % beside - beside) + beside
                seen[number % beside] = number
            ordinal.append(number if now else None)
            now = set()
        elif isinstance(node, Sync):
            wanted = ordinal[len(ordinal) - node.pending - 1]
            assert groups.asked(node) == (wanted is not None)
            assert wanted is None or groups.awaited(node).evaluate(point) == wanted
    assert groups.all == len(ordinal) - ordinal.count(None)


def everything(_: Plan, kernel: object) -> Counted:
    """Every group is counted."""
    return Counted(kernel)  # type: ignore[arg-type]


def count_all(patch: pytest.MonkeyPatch) -> None:
    """Let groups without copies arrive, too."""
    patch.setattr(arrivals, "counted", everything)
    patch.setattr(bulk_copy, "groups_of", everything)
    patch.setattr(waits, "counted", everything)


def test_an_arrival_for_an_empty_group_is_noticed_by_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    s = several_tiles(4)
    right, arrays = plan_ir(s.plan), seeded_arrays(s.source, 1)
    assert faults(right) == []
    assert not execute(right, arrays).hazards
    with monkeypatch.context() as patch:
        count_all(patch)
        wrong, module = plan_ir(s.plan), emit(s.plan, after=names()[-1])
    assert "uses the mbarrier of another group" in " ".join(faults(wrong))
    assert not execute(wrong, arrays).hazards  # no bytes of such a phase are waited for
    device = CpuDevice()
    assert np.array_equal(device.run(device.build(module), arrays)["z"], device.run(device.build(emit(s.plan)), arrays)["z"])


def test_a_pipelined_loop_may_be_split() -> None:
    """All groups are counted then, and those in which nothing is copied are nobody's (chain 1101:65)."""
    s = several_tiles(1).pipeline("k", 2).split("k", 3)
    assert s.run(device="cpu", time=False).correct


def test_where_numbers_are_not_affine_every_group_is_counted() -> None:
    """A wait for the group before the last one, which is of the iteration before or is not there."""
    plan = tiled_product(3).plan
    kernel = plan.kernels[0]
    assert counted(plan, kernel).cut
    odd = plan.replace_node("k.wait", Sync("k.wait", "wait", 0))
    assert not counted(odd, odd.kernels[0]).cut
