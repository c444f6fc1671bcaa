"""Programs for maxima that run, registers of other lanes, and warpgroups that take turns: what random nests hardly ever are."""

from __future__ import annotations

import random

from explorer.transforms.running import Running
from explorer.transforms.shuffle import Shuffle
from explorer.transforms.specialise import Specialise
from explorer.transforms.take_turns import TakeTurns
from tests.transforms.test_running import weighted
from tests.transforms.test_shuffle import quads

from .programs import Case, define


def sums_against_maxima(pick: random.Random, _label: str) -> Case:
    """A maximum and sums of exponentials against it, each in parts of one loop; of some the maximum runs already."""
    s = weighted.schedule(M=pick.choice((1, 2, 3)), N=pick.choice((4, 6, 7, 10)))
    size = pick.choice((2, 3, 4))
    s = s.split("k", size).split("k_2", size).split("k_3", size)
    s = s.bind("i", pick.choice(("block.x", "thread.x"))) if pick.random() < 0.5 else s
    if pick.random() < 0.5:
        s = s.apply(Running("peak", "k"))
        if pick.random() < 0.7:
            s = s.sequence("k_2", after="S4").sequence("k", after="S4").fuse("k", "k_2").fuse("k", "k_3")
    return Case("sums against maxima", s)


def values_of_quads(pick: random.Random, _label: str) -> Case:
    """Values that the four lanes of a quad make and read from each other; of some by shuffles already."""
    s = quads.schedule(B=pick.choice((1, 2)), R=pick.choice((8, 8, 16, 24, 11)))
    s = s.bind("b", "block.x") if pick.random() < 0.7 else s
    lanes = pick.choice((8, 8, 8, 4))
    for i, z in (("i", "z"), ("i2", "z2")):
        s = s.split(i, lanes, inner=f"{i}.q").coalesce((f"{i}.q", z)).bind(f"{i}.q", pick.choice(("lane", "lane", "thread.x")))
    s = s.contract("total", "register")
    step = Shuffle("part")
    return Case("values of quads", s.apply(step) if pick.random() < 0.5 and s.try_step(step)[0] else s)


def products_in_turn(pick: random.Random, label: str) -> Case:
    """Two products in a step of two warpgroups, and stores between, whose factors a producer brings; they take turns or might."""
    text = """@ex.program
def f(a: ex.f16[M, 64 * K], b: ex.f16[N, 64 * K], d: ex.f16[N, 64 * K], c: ex.f32[M, N], e: ex.f32[M, N], r: ex.f32[K, M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            two = ex.local(ex.f32)
            acc = 0
            two = 0
            for t in range(K):
                for k in range(64):
                    acc += a[i, 64 * t + k] * b[j, 64 * t + k]
                r[t, i, j] = acc
                for k in range(64):
                    two += a[i, 64 * t + k] * d[j, 64 * t + k]
            c[i, j] = acc
            e[i, j] = two
"""
    sizes = {"M": pick.choice((72, 128, 136)), "N": pick.choice((8, 16)), "K": pick.choice((2, 3))}
    s = define(text, f"{label}.py").schedule(**sizes).tile(("i", "j"), (128, 8)).split("i.i", 64).bind("i.i", "thread.y")
    for loop, place in (("i", "block.y"), ("j", "block.x")):
        s = s.bind(loop, place) if pick.random() < 0.8 else s
    for loop in ("j.i", "i.i.i"):
        for last in ("S5", "t", "S1", "S0"):
            s = s.distribute(loop, after=last)
    rows, columns = (x.id for x in s.plan.leaves[2][1][-4:-2])
    s = s.reorder(("t", rows, columns))
    for name in ("acc", "two"):
        s = s.contract(name, "register")
    for array in "abd":
        s = s.stage(array, "t", engine="bulk", swizzle=128)
    for loop in (columns, rows):
        s = s.distribute(loop, after="S3").distribute(loop, after="k")
    s = s.tensorize("S2").tensorize("S4")
    for step in (Specialise("t", pick.choice((2, 3))), TakeTurns("t")):
        s = s.apply(step) if pick.random() < 0.75 and s.try_step(step)[0] else s
    return Case("products in turn", s)
