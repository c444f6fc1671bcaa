"""Hazards of pipelining: what goes wrong when copies run ahead of their readers, each in the smallest schedule that shows it.

And of joined launches: what goes wrong when a block goes on with what others may not have left yet.

Every one is either refused with a witness, or proved and then run.  (A transformation's own precondition is no answer here: it
is no judgement about values.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from explorer.schedule import Schedule
from tests.mutants.gallery import MATMUL
from tests.properties.programs import define

TRIANGLE = MATMUL.replace("[M, K]", "[M, M]").replace("[K, N]", "[M, N]").replace("for k in range(K)", "for k in range(i + 1)")
CONDITIONAL = MATMUL.replace("                total +=", "                if (i + k) % 2 == 0:\n                    total +=")
HALF = MATMUL.replace("a: ex.f32", "a: ex.f16").replace("b: ex.f32", "b: ex.f16")
TWICE = """@ex.program
def f(x: ex.f32[K, M], y: ex.f32[K, M], z: ex.f32[K, M]):
    for k in range(K):
        for i in range(M):
            y[k, i] = 2 * x[k, i]
        for i in range(M):
            z[k, i] = x[k, i] + x[k, M - 1 - i]
"""
BINS = """@ex.program
def f(x: ex.f32[K, M], y: ex.f32[K, 3]):
    for k in range(K):
        for i in range(M):
            y[k, i % 3] += x[k, i]
"""
PLANES = """@ex.program
def f(u: ex.f32[2, N + 2]):
    for t in range(K):
        for i in range(1, N + 1):
            u[(t + 1) % 2, i] = 0.5 * (u[t % 2, i - 1] + u[t % 2, i + 1])
"""
PRODUCED = """@ex.program
def f(x: ex.f32[K, M], y: ex.f32[K, M]):
    t = ex.local(ex.f32, K, M)
    for k in range(K):
        for i in range(M):
            t[k, i] = 2 * x[k, i]
        for i in range(M):
            y[k, i] = t[k, M - 1 - i]
"""
CLEARED = """@ex.program
def f(u: ex.f32[K, M], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
    for k in range(K):
        for i in range(M):
            y[i] += u[k, M - 1 - i]
        for i in range(M):
            u[k, i] = 0.0
"""
FEEDS = CLEARED.replace("u: ex.f32[K, M]", "u: ex.f32[K + 1, M]").replace("u[k, i] = 0.0", "u[k + 1, i] = 0.5")
OUTER = """@ex.program
def f(x: ex.f32[2, K, M], y: ex.f32[2, M]):
    for t in range(2):
        for i in range(M):
            y[t, i] = 0.0
        for k in range(K):
            for i in range(M):
                y[t, i] += x[t, k, M - 1 - i]
"""
TWO_LOOPS = """@ex.program
def f(x: ex.f32[K, M], z: ex.f32[K, M], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
    for k in range(K):
        for i in range(M):
            y[i] += x[k, M - 1 - i]
    for k in range(K):
        for i in range(M):
            y[i] += z[k, (i + 1) % M]
"""
NEIGHBOURS = """@ex.program
def f(x: ex.f32[M], y: ex.f32[M], z: ex.f32[M]):
    for i in range(M):
        y[i] = 2 * x[i]
    for j in range(M):
        z[j] = y[j] + x[j]
"""
SIZES = {"M": 7, "N": 6, "K": 11}


@dataclass(frozen=True)
class Hazard:
    """A schedule whose copies run ahead, and what must come of it: "proved", or the question that refuses it."""

    name: str
    outcome: str
    make: Callable[[], Schedule]


def start(text: str, **sizes: int) -> Schedule:
    """The program as written, at sizes that leave edges."""
    definition = define(text, "hazard.py")
    return definition.schedule(**{name: {**SIZES, **sizes}[name] for name in definition.sizes})


def tiles(text: str = MATMUL, depth: int = 4, vector: int = 1, pad: int = 0, **sizes: int) -> Schedule:
    """A matrix product in tiles of 4 × 4 × `depth`, staged in shared memory."""
    s = start(text, **sizes).tile(("i", "j"), (4, 4))
    for loop, place in (("i", "block.y"), ("j", "block.x"), ("i.i", "thread.y"), ("j.i", "thread.x")):
        s = s.bind(loop, place)
    s = s.contract("total").split("k", depth)
    return s.stage("a", "k", vector=vector, pad=pad).stage("b", "k", vector=vector, pad=pad)


def triangle() -> Schedule:
    """Rows of a lower triangle times columns, four iterations at a time."""
    s = start(TRIANGLE, M=11).split("k", 4).bind("i", "block.x").bind("j", "thread.x").contract("total")
    return s.stage("a", "k").stage("b", "k")


def registers() -> Schedule:
    """Register copies of the shared copies, one step of the inner loop each."""
    return tiles().stage("a_s", "k.i", space="register").stage("b_s", "k.i", space="register")


def rows(text: str, *arrays: str, at: str = "k", **sizes: int) -> Schedule:
    """Rows staged in shared memory; threads run along them."""
    s = start(text, **sizes)
    for loop in [x for x in s.plan.loops if x.split("_")[0] == "i"]:
        s = s.bind(loop, "thread.x")
    for array in arrays:
        s = s.stage(array, at)
    return s


def apart(text: str = NEIGHBOURS) -> Schedule:
    """Two launches over the same blocks."""
    s = start(text).launch("f", after="i").bind("i", "block.x")
    return s.bind("j", "block.x")


READS_NEXT = NEIGHBOURS.replace("y[j] + x[j]", "y[(j + 1) % M] + x[j]")
READS_ALL = NEIGHBOURS.replace("y[j] + x[j]", "y[0] + x[j]")
CLEARS = NEIGHBOURS.replace("z: ex.f32[M]", "z: ex.f32[M + 1]").replace("2 * x[i]", "2 * x[i] + z[i + 1]").replace(
    "z[j] = y[j] + x[j]", "z[j] = x[j]")
JOINS = (
    Hazard("last block: the block reads what it wrote itself", "proved", lambda: apart().join("f.2", "last_block")),
    Hazard("last block: the block reads what its neighbour wrote", "order", lambda: apart(READS_NEXT).join("f.2", "last_block")),
    Hazard("last block: every block reads what the first one wrote", "order", lambda: apart(READS_ALL).join("f.2", "last_block")),
    Hazard("last block: the block overwrites what its neighbour reads", "order", lambda: apart(CLEARS).join("f.2", "last_block")),
    Hazard("last block: one block for all reads what they wrote", "proved",
           lambda: apart(READS_NEXT).bind("j", "seq").join("f.2", "last_block")),
    Hazard("last block: threads of one block read what all blocks wrote", "proved",
           lambda: apart(READS_NEXT).bind("j", "seq").bind("j", "thread.x").join("f.2", "last_block")),
    Hazard("last block: blocks along another axis", "order",
           lambda: apart().bind("j", "seq").bind("j", "block.y").join("f.2", "last_block")),
    Hazard("a barrier of the grid: the block reads what its neighbour wrote", "proved",
           lambda: apart(READS_NEXT).join("f.2", "grid")),
    Hazard("a barrier of the grid: the block overwrites what its neighbour reads", "proved",
           lambda: apart(CLEARS).join("f.2", "grid")),
    Hazard("no barrier: one launch with the reads of a neighbour packed into it", "order",
           lambda: apart(READS_NEXT).launch("f", pack="f.2")),
)
PLAIN = {"asynchronous": False}
CORPUS = (
    # too few slots, enough, and more
    Hazard("write after read: one slot for two stages", "flow", lambda: tiles().pipeline("k", 2, buffers=1)),
    Hazard("write after read: two slots for three stages", "flow", lambda: tiles().pipeline("k", 3, buffers=2)),
    Hazard("two slots for three stages, plain copies", "flow", lambda: tiles().pipeline("k", 3, buffers=2, **PLAIN)),
    Hazard("as many slots as stages", "proved", lambda: tiles().pipeline("k", 3)),
    Hazard("more slots than stages", "proved", lambda: tiles().pipeline("k", 2, buffers=4)),
    Hazard("plain copies run ahead", "proved", lambda: tiles().pipeline("k", 3, **PLAIN)),
    # short loops
    Hazard("as many stages as iterations", "proved", lambda: tiles(K=8).pipeline("k", 2)),
    Hazard("one stage more than iterations", "proved", lambda: tiles(K=8).pipeline("k", 3)),
    Hazard("a single iteration", "proved", lambda: tiles(K=3).pipeline("k", 2)),
    Hazard("one stage more than iterations, too few slots", "flow", lambda: tiles(K=8).pipeline("k", 3, buffers=1)),
    # edges
    Hazard("tiles beyond every edge, 16 bytes at a time", "proved", lambda: tiles(M=6, N=8, K=8, vector=4).pipeline("k", 3)),
    Hazard("padded rows, 8 bytes at a time", "proved", lambda: tiles(M=6, N=6, K=10, vector=2, pad=2).pipeline("k", 3)),
    Hazard("halves, two at a time", "proved", lambda: tiles(HALF, M=6, N=6, K=10, vector=2).pipeline("k", 3)),
    # several levels, several pipelines
    Hazard("unequal stages at two levels: 3 of shared memory, 2 of registers", "proved",
           lambda: registers().pipeline("k", 3).pipeline("k.i", 2, **PLAIN)),
    Hazard("unequal stages at two levels: 2 of shared memory, 3 of registers", "proved",
           lambda: registers().pipeline("k", 2).pipeline("k.i", 3, **PLAIN)),
    Hazard("two levels, the inner one first", "proved", lambda: registers().pipeline("k.i", 2, **PLAIN).pipeline("k", 3)),
    Hazard("registers with too few slots under a pipeline", "flow",
           lambda: registers().pipeline("k", 3).pipeline("k.i", 3, buffers=2, **PLAIN)),
    Hazard("shared memory with too few slots above a pipeline", "flow",
           lambda: registers().pipeline("k.i", 2, **PLAIN).pipeline("k", 3, buffers=2)),
    Hazard("unequal stages of two copies in one loop", "proved",
           lambda: tiles().pipeline("k", 3, ("a_s",)).pipeline("k", 2, ("b_s",))),
    Hazard("one asynchronous and one plain copy", "proved",
           lambda: tiles().pipeline("k", 3, ("a_s",)).pipeline("k", 2, ("b_s",), **PLAIN)),
    Hazard("only one of two copies", "proved", lambda: tiles().pipeline("k", 3, ("b_s",))),
    Hazard("a loop around the pipeline starts it again", "proved", lambda: rows(OUTER, "x").pipeline("k", 3)),
    Hazard("two pipelines one after the other", "proved",
           lambda: rows(TWO_LOOPS, "x").stage("z", "k_2").pipeline("k", 3).pipeline("k_2", 2)),
    # who reads
    Hazard("a copy read by two statements", "proved", lambda: rows(TWICE, "x").pipeline("k", 3)),
    Hazard("a copy read by two statements, too few slots", "flow", lambda: rows(TWICE, "x").pipeline("k", 3, buffers=2)),
    Hazard("a reader under a condition", "proved", lambda: tiles(CONDITIONAL).pipeline("k", 3)),
    Hazard("a triangle: the last iterations read nothing", "proved", lambda: triangle().pipeline("k", 3)),
    Hazard("a triangle, too few slots", "flow", lambda: triangle().pipeline("k", 3, buffers=2)),
    Hazard("atomics in the pipelined loop", "proved", lambda: rows(BINS, "x").pipeline("k", 3).collect("y", "atomic")),
    Hazard("atomics in the pipelined loop, too few slots", "flow",
           lambda: rows(BINS, "x").pipeline("k", 3, buffers=2).collect("y", "atomic")),
    # who writes the source
    Hazard("the source is written by the iteration before", "order", lambda: rows(PLANES, "u", at="t").pipeline("t", 2)),
    Hazard("the source is produced in the same iteration", "order", lambda: rows(PRODUCED, "t").pipeline("k", 2)),
    Hazard("the source is produced two iterations before its use is copied", "order", lambda: rows(FEEDS, "u").pipeline("k", 2)),
    Hazard("the source is overwritten after its use", "proved", lambda: rows(CLEARED, "u").pipeline("k", 3)),
    # later moves
    Hazard("the prologue fused into the loop", "proved", lambda: tiles(K=8).pipeline("k", 3, **PLAIN).fuse("k.pro", "k")),
    Hazard("the pipelined loop backwards", "order", lambda: tiles().pipeline("k", 3, **PLAIN).reverse("k")),
    Hazard("the readers one iteration later", "flow", lambda: tiles().pipeline("k", 2, **PLAIN).shift("k", 1, of="k.i")),
    Hazard("the readers one iteration later, with a slot to spare", "proved",
           lambda: tiles().pipeline("k", 2, buffers=3, **PLAIN).shift("k", 1, of="k.i")),
    Hazard("registers of one iteration read in the next", "flow",
           lambda: start(MATMUL).stage("a", "k", space="register").shift("k", 1, of="S1")),
    Hazard("copies and readers in loops of their own", "flow",
           lambda: tiles(K=19).pipeline("k", 3, **PLAIN).distribute("k", "b_s")),
    Hazard("copies and readers in loops of their own, a slot for every tile", "proved",
           lambda: tiles().pipeline("k", 3, **PLAIN).distribute("k", "b_s")),
    Hazard("the last iterations cut off", "proved", lambda: tiles().pipeline("k", 3, **PLAIN).cut("k", -1)),
)
