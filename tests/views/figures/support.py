"""Schedules that the tests of the figures share, and the instances of a plan by walking its loops."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from math import prod

import explorer as ex
from examples.softmax import softmax as softmax_example
from explorer.ir.plan import Plan, block_extents
from explorer.poly.sample import grid
from explorer.strategies.default import default
from explorer.workloads import get
from tests.poly import brute

Where = dict[tuple[int, ...], tuple[set[tuple[tuple[int, ...], int]], tuple[int, ...]]]
"""Instance to the (block, thread) pairs that run it, and its time."""


def program(name: str) -> ex.Definition:
    """A workload's program with the methods of the public face."""
    return get(name).definition


def written(name: str, **sizes: int) -> ex.Schedule:
    """A workload as written, at its tiny sizes unless told; ``three loops`` is a softmax whose second loop reads a maximum."""
    if name == "three loops":
        return softmax_example.schedule(**(sizes or {"M": 4, "N": 12}))
    return program(name).schedule(**(sizes or dict(get(name).tiny)))


@cache
def matmul(M: int = 8, N: int = 8, K: int = 12, stages: int = 0, depth: int = 4, **pipeline: object) -> ex.Schedule:
    """A matrix product, its tiles in shared memory, two by two threads; pipelined with `stages`."""
    s = written("matmul", M=M, N=N, K=K).tile(["i", "j"], (4, 4)).tile(["i.i", "j.i"], (2, 2))
    s = s.bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y").bind("j.i", "thread.x")
    s = s.distribute("j.i.i", after="S0").distribute("i.i.i", after="j.i.i")
    s = s.distribute("j.i.i.2", after="k").distribute("i.i.i.2", after="j.i.i.2")
    s = s.split("k", depth).reorder(["k", "k.i", "i.i.i.2", "j.i.i.2"]).contract("total").stage("a", "k").stage("b", "k")
    return s.pipeline("k", stages, **pipeline) if stages else s


SCHEDULES = {
    "matmul as written": lambda: written("matmul"),
    "matmul tiled": lambda: (
        written("matmul", M=9, N=7, K=5).tile(["i", "j"], (4, 4)).bind("i", "block.y").bind("j.i", "thread.x")
    ),
    "matmul staged": matmul,
    "matmul pipelined": lambda: matmul(stages=3),
    "triangle": lambda: written("triangular_matmul").split("j", 2).bind("i", "block.x").bind("j.i", "thread.x"),
    "jacobi by the host": lambda: default(written("jacobi2d"), threads=4),
    "wavefront": lambda: default(written("gauss_seidel"), threads=4),
    "columns": lambda: default(written("sum_columns"), threads=4),
    "rows by warps": lambda: (
        written("sum_rows", M=4, N=70).split("i", 2).bind("i", "block.x").bind("i.i", "warp").split("k", 32).bind("k.i", "lane")
    ),
    "all in one block": lambda: default(written("sum_all"), threads=8),
    "softmax rows": lambda: default(written("softmax", M=3, N=40), threads=8),
    "reversed": lambda: written("stencil1d").reverse("i"),
}


def walked(plan: Plan) -> dict[str, Where]:
    """Every instance of every statement with who runs it and when, by walking every thread of every block."""
    out: dict[str, Where] = defaultdict(dict)
    for number, kernel in enumerate(plan.kernels):
        for block in brute.blocks_of(kernel):
            for thread in range(prod(block_extents(kernel))):
                for run in brute.thread_runs(plan, kernel, block, thread):
                    if run.leaf is not None:
                        statement = plan.statement_of[run.leaf.statement]
                        _, point = brute.instance_of(run, statement)
                        who, _ = out[statement.name].setdefault(point, (set(), (number, *run.time)))
                        who.add((block, thread))
    return out


def all_points(plan: Plan, statement: str, box: dict[str, tuple[int, int]]):
    """The grid over the whole bounding box of a statement."""
    return grid(plan.statement_of[statement], {d: range(low, high + 1) for d, (low, high) in box.items()}, {})
