"""Mutants of pipelines in the IR, by what goes wrong: a fence, a wait, an arrival, a phase, a slot, a count, or a release.

The schedules are pipelines of all engines: copies of each thread (``cp.async``), bulk copies with mbarriers, and products of a
warpgroup in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from explorer.ir.expr import const
from explorer.kernel.launches import PlanIR
from explorer.kernel.nodes import Arrive, Await, Barrier, Begin, BulkCopy, Commit, Copy, Do, For, If, Multiply, Wait, WaitProducts
from explorer.kernel.traverse import walk
from explorer.schedule import Schedule
from tests.hazards.corpus import MATMUL, OUTER, TWICE, TWO_LOOPS, rows, start, tiles
from tests.kernel.bulk_schedules import SCHEDULES, tiled_product
from tests.properties.programs import define
from tests.transforms.test_overlap import tiled
from tests.transforms.test_tensorize import PRODUCT
from tests.transforms.test_tensorize_held import waiting

from .ir import RULES, Body, IRMutant, Rule, ir_mutants, with_nodes
from .ir_bulk import BULK
from .ir_products import PRODUCTS


def no_fence(body: Body) -> Iterator[Body]:
    for n, node in enumerate(body):
        if isinstance(node, Barrier) and node.proxy:
            yield with_nodes(body, n, replace(node, proxy=False))


def no_wait(body: Body) -> Iterator[Body]:
    """A wait is left out, or lets one group more go on."""
    for n, node in enumerate(body):
        if isinstance(node, (Wait, Await, WaitProducts)):
            yield with_nodes(body, n)
        if isinstance(node, (Wait, WaitProducts)):
            yield with_nodes(body, n, replace(node, pending=node.pending + 1))


def late_wait(body: Body) -> Iterator[Body]:
    """A wait comes behind what reads."""
    for n, (first, second) in enumerate(pairwise(body)):
        reads = isinstance(second, (Do, For, Multiply)) and any(isinstance(x, (Do, Multiply)) for x in walk((second,)))
        if isinstance(first, (Wait, Await)) and reads:
            yield (*body[:n], second, first, *body[n + 2 :])


def no_arrival(body: Body) -> Iterator[Body]:
    """A group is not closed, or is closed twice."""
    for n, node in enumerate(body):
        if isinstance(node, (Arrive, Commit)):
            yield with_nodes(body, n)
        if isinstance(node, Arrive):
            yield with_nodes(body, n, node, node)


def early_arrival(body: Body) -> Iterator[Body]:
    """A group is closed before its last copy is made."""
    for n, (first, second) in enumerate(pairwise(body)):
        if isinstance(first, BulkCopy) and isinstance(second, Arrive):
            yield (*body[:n], second, first, *body[n + 2 :])


def one_phase(body: Body) -> Iterator[Body]:
    """Every wait is for the first phase, as where nobody counts."""
    for n, node in enumerate(body):
        if isinstance(node, Await) and node.parity != const(0):
            yield with_nodes(body, n, replace(node, parity=const(0)))


def no_release(body: Body) -> Iterator[Body]:
    """Threads do not meet between the last read of a slot and the copy that fills it again, or copy before they do."""
    for n, node in enumerate(body):
        if isinstance(node, Barrier):
            yield with_nodes(body, n)
    for n, (first, second) in enumerate(pairwise(body)):
        copies = any(isinstance(x, (Copy, BulkCopy)) for x in walk((second,)))
        if isinstance(first, (Barrier, WaitProducts)) and copies and not isinstance(second, For):
            yield (*body[:n], second, first, *body[n + 2 :])


def uncounted(body: Body) -> Iterator[Body]:
    """Fewer mbarriers than groups on their way, or an arrival of every thread."""
    for n, node in enumerate(body):
        if isinstance(node, Begin) and node.mbarriers.count > 1:
            yield with_nodes(body, n, replace(node, mbarriers=replace(node.mbarriers, count=node.mbarriers.count - 1)))
        if isinstance(node, If) and any(isinstance(inner, Arrive) for inner in node.body):
            yield with_nodes(body, n, *node.body)


def other_bytes(body: Body) -> Iterator[Body]:
    """Fewer bytes are expected than come: those of a box with a row less."""
    for n, node in enumerate(body):
        if isinstance(node, BulkCopy):
            for axis, extent in enumerate(node.map.box):
                if extent > 1:
                    box = (*node.map.box[:axis], extent - 1, *node.map.box[axis + 1 :])
                    yield with_nodes(body, n, replace(node, map=replace(node.map, box=box)))


KINDS: dict[str, tuple[Rule, ...]] = {
    "fence": (no_fence,),
    "wait": (no_wait, late_wait, PRODUCTS["a wait comes before the product"]),
    "arrive": (no_arrival, early_arrival, PRODUCTS["a product is skipped"]),
    "phase": (BULK["a wait is for another phase"], one_phase),
    "slot": (BULK["another mbarrier is used"], BULK["a box goes elsewhere, or is not copied"], RULES["a slot is off by one"],
             RULES["a prologue is one short"]),
    "count": (uncounted, other_bytes),
    "release": (no_release, PRODUCTS["threads meet before they wait"]),
}
"""Kinds of errors, and where each can be made in a body."""


def warpgroup(steps: int = 2) -> Schedule:
    """A product whose factors threads bring themselves, for tensor instructions that read shared memory by themselves."""
    s = define(PRODUCT, "group.py").schedule(M=64, N=64, K=64 * steps).tile(("i", "j"), (64, 64))
    for loop in ("j.i", "i.i"):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    s = s.reorder(("k", "i.i.3", "j.i.3")).split("k", 64).reorder(("k", "i.i.3", "j.i.3", "k.i")).contract("acc", "register")
    s = s.stage("a", "k", vector=8).stage("b", "k", vector=8)
    return s.swizzle("a_s", 128).swizzle("b_s", 128).tensorize("S1")


@dataclass(frozen=True)
class Pipelined:
    """A schedule with asynchronous work, and what kind it is; of each kind of errors the tests run so many, by default none."""

    name: str
    engine: str
    make: Callable[[], Schedule]
    in_tests: int = 0


ALL = 1000
CP_ASYNC, BULK_COPIES, FLYING = "cp.async", "bulk copies", "products in flight"
def landing() -> Schedule:
    """A copy that is waited for where it is made, behind a pipeline: its wait is for the pipeline's groups, too."""
    s = start(MATMUL, M=5, N=6, K=15).tile(("i", "j"), (4, 4))
    for loop, place in (("i", "block.y"), ("j", "block.x"), ("i.i", "thread.y"), ("j.i", "thread.x")):
        s = s.bind(loop, place)
    return s.contract("total").split("k", 4).stage("a", "k").pipeline("k", 3).stage("b", "k", engine="async")


PIPELINES = (
    Pipelined("two stages", CP_ASYNC, lambda: tiles(M=5, N=6).pipeline("k", 2), ALL),
    Pipelined("three stages", CP_ASYNC, lambda: tiles(M=5, N=6).pipeline("k", 3)),
    Pipelined("vectors of 16 bytes", CP_ASYNC, lambda: tiles(M=6, N=8, K=16, vector=4).pipeline("k", 3)),
    Pipelined("more slots than stages", CP_ASYNC, lambda: tiles(M=5, N=6, K=19).pipeline("k", 2, buffers=4)),
    Pipelined("unequal stages", CP_ASYNC, lambda: tiles(M=5, N=6, K=15).pipeline("k", 3, ("a_s",)).pipeline("k", 2, ("b_s",))),
    Pipelined("a copy behind it that lands at once", CP_ASYNC, landing),
    Pipelined("a loop around it", CP_ASYNC, lambda: rows(OUTER, "x").pipeline("k", 3)),
    Pipelined("two readers", CP_ASYNC, lambda: rows(TWICE, "x").pipeline("k", 3)),
    Pipelined("one after the other", CP_ASYNC,
              lambda: rows(TWO_LOOPS, "x").stage("z", "k_2").pipeline("k", 3).pipeline("k_2", 2)),
    Pipelined("two stages", BULK_COPIES, lambda: tiled_product(2, 48, 12, 16, (12, 16, 16), (32, 32)), ALL),
    *(Pipelined(name, BULK_COPIES, SCHEDULES[name]) for name in (
        "three stages", "four stages", "few steps", "more slots", "panels in a pipeline", "tile after tile")),
    Pipelined("two stages", FLYING, lambda: tiled(2, M=64, N=64, K=192).overlap("k"), 1),
    Pipelined("three stages, two warpgroups", FLYING, lambda: tiled(3, 128, M=128, N=64, K=256).overlap("k")),
    Pipelined("copies of threads", FLYING, warpgroup, ALL),
    Pipelined("a left factor in registers", FLYING, waiting, 1),
)


def mutants(ir: PlanIR) -> Iterator[IRMutant]:
    """Every mutant of a pipeline, each once, by kind."""
    seen = list[PlanIR]()
    for kind, rules in KINDS.items():
        for rule in rules:
            for found in ir_mutants(ir, {kind: rule}):
                if not any(found.ir.launches[0].bodies == other.launches[0].bodies for other in seen):
                    seen.append(found.ir)
                    yield found
