"""Correct schedules that mutants are tried on: each shows one mechanism, at sizes that leave edges everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from explorer.schedule import Schedule
from tests.properties.programs import define
from tests.transforms.multiblock import spread

MATMUL = """@ex.program
def matmul(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            c[i, j] = total
"""
ROWS = """@ex.program
def row_max(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        peak = ex.local(ex.f32)
        peak = -ex.inf
        for k in range(N):
            peak = max(peak, x[i, k] - 8)
        y[i] = peak
"""
TOTAL = """@ex.program
def total(x: ex.f32[N], y: ex.f32[1]):
    y[0] = 0.0
    for i in range(N):
        y[0] += x[i]
"""
TRIANGLE = """@ex.program
def triangle(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        for k in range(N):
            y[i] += x[i, k]
"""
EXPONENTIALS = """@ex.program
def exponentials(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += ex.exp(x[i, k])
        y[i] = total
"""
SCAN = """@ex.program
def scan(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        y[i, 0] = x[i, 0]
        for j in range(1, N):
            y[i, j] = y[i, j - 1] + x[i, j]
"""
MOVED = """@ex.program
def moved(u: ex.f32[N + 1]):
    for i in range(N):
        u[i] = 0.5 * u[i + 1]
"""
LAST = """@ex.program
def last(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        for j in range(N):
            y[i] = x[i, j]
"""
POINTS = """@ex.program
def points(x: ex.f32[N + 1], y: ex.f32[N]):
    for i in range(N):
        y[i] = 2 * x[i] + x[i + 1]
"""
COPY = """@ex.program
def shifted(x: ex.f32[N + 1], y: ex.f32[N]):
    for i in range(N):
        y[i] = x[i + 1]
"""
GUARDED = """@ex.program
def guarded(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            if i >= j:
                t = ex.local(ex.f32)
                t = 2 * x[i, j]
                y[i, j] = t + 1
"""
CHAIN = """@ex.program
def chain(x: ex.f32[N + 2], y: ex.f32[N]):
    t = ex.local(ex.f32, N + 2)
    for i in range(N + 2):
        t[i] = 0.5 * x[i]
    for i in range(N):
        y[i] = t[i] + t[i + 2]
"""
SCALED = """@ex.program
def scaled(w: ex.f32[N], g: ex.f32[N]):
    for i in range(N):
        w[i] -= g[i] * w[i]
"""


def _started(text: str, **sizes: int) -> Schedule:
    return define(text, f"{text.split('def ')[1].split('(')[0]}.py").schedule(**sizes)


def staged(**how: int) -> Schedule:
    """Tiles of a matrix product in shared memory, read by 4 × 4 threads."""
    s = _started(MATMUL, M=7, N=6, K=9).tile(("i", "j"), (4, 4))
    for loop, place in (("i", "block.y"), ("j", "block.x"), ("i.i", "thread.y"), ("j.i", "thread.x")):
        s = s.bind(loop, place)
    return s.contract("total").split("k", 4).stage("a", "k", **how).stage("b", "k", **how)


def pipelined(stages: int = 3, buffers: int = 0) -> Schedule:
    """The same with asynchronous copies that run two tiles ahead."""
    return staged().pipeline("k", stages, buffers=buffers)


def swizzled() -> Schedule:
    """Tiles of 8 × 16 in shared memory, copied in vectors of four, each array in a pattern of its own."""
    s = _started(MATMUL, M=7, N=16, K=32).tile(("i", "j"), (8, 16))
    for loop, place in (("i", "block.y"), ("j", "block.x"), ("i.i", "thread.y"), ("j.i", "thread.x")):
        s = s.bind(loop, place)
    s = s.contract("total").split("k", 16).stage("a", "k", vector=4).stage("b", "k", vector=4)
    return s.swizzle("a_s", 64).swizzle("b_s", 32)


def boxes(stages: int = 3, buffers: int = 0) -> Schedule:
    """Tiles of 8 × 16 whose factors are copied by bulk copies, one of them swizzled, which run ahead in several stages."""
    s = _started(MATMUL, M=7, N=20, K=40).tile(("i", "j"), (8, 16))
    for loop, place in (("i", "block.y"), ("j", "block.x"), ("i.i", "thread.y"), ("j.i", "thread.x")):
        s = s.bind(loop, place)
    s = s.contract("total").split("k", 8).stage("a", "k", engine="bulk", swizzle=32).stage("b", "k", engine="bulk")
    return s.pipeline("k", stages, buffers=buffers) if stages > 1 else s


def half_ahead() -> Schedule:
    """The same with one array's copies ahead, and no wait for their groups alone: it cannot be written."""
    s = boxes(1).pipeline("k", 3, copies=("a_s",))
    return replace(s, plan=s.plan.replace_node("k.wait"))


def padded_boxes() -> Schedule:
    """The same with rows that lie apart: no plan."""
    s = boxes(1)
    return replace(s, plan=replace(s.plan, buffers=tuple(replace(b, pad=4) if b.name == "b_s" else b for b in s.plan.buffers)))


def warps() -> Schedule:
    """A warp for each row, combined by shuffles."""
    s = _started(ROWS, M=5, N=25).bind("i", "block.x").split("k", 32).bind("k.i", "lane")
    return s.collect("peak", "shuffle").contract("peak")


def blocks() -> Schedule:
    """A block of two warps for each row, combined in shared memory."""
    s = _started(ROWS, M=5, N=100).bind("i", "block.x").split("k", 64).bind("k.i", "thread.x")
    return s.collect("peak", "shared").contract("peak")


def loaded_early() -> Schedule:
    """Rows of a thread each, four elements at a time: beyond the end, an element is one that changes nothing."""
    s = _started(ROWS, M=5, N=7).split("k", 4).unroll("k.i").bind("i", "thread.x")
    return s.contract("peak")


def loaded_early_where_it_is() -> Schedule:
    """The same where no element changes nothing."""
    s = _started(EXPONENTIALS, M=5, N=7).split("k", 4).unroll("k.i").bind("i", "thread.x")
    return s.contract("total")


def aligned() -> Schedule:
    """Rows of odd length in whole vectors, two at a time: lanes of the first and the last are not of the row."""
    s = _started(EXPONENTIALS, M=5, N=19).align("k", "x", 4).split("k", 4, inner="v").vectorize("v")
    return s.split("k", 2, inner="u").unroll("u").bind("i", "thread.x").contract("total")


def aligned_sums() -> Schedule:
    """The same where the loads see to the ends of a row: lanes that are not of it are zero."""
    s = _started(TRIANGLE, M=5, N=19).align("k", "x", 4).split("k", 4, inner="v").vectorize("v")
    return s.split("k", 2, inner="u").unroll("u").bind("i", "thread.x").accumulate("y").contract("y_acc")


def uncollected() -> Schedule:
    """One sum over blocks and threads: two obligations are open."""
    return _started(TOTAL, N=100).launch("total", after="S0").split("i", 32).bind("i", "block.x").bind("i.i", "thread.x")


def atomics() -> Schedule:
    """The same: shuffles in a block, atomics between blocks."""
    return uncollected().collect("y", "shuffle").collect("y", "atomic")


def mixed() -> Schedule:
    """Shuffles over threads that update several elements."""
    s = _started(TRIANGLE, M=5, N=3).coalesce(("i", "k")).bind("i", "thread.x")
    return s.collect("y", "shuffle")


def scanned() -> Schedule:
    """Rows in parallel, along a row in order."""
    return _started(SCAN, M=4, N=5).bind("i", "thread.x")


def scanned_backwards() -> Schedule:
    """Against a flow dependence."""
    return scanned().reverse("j")


def moved_backwards() -> Schedule:
    """Against an antidependence."""
    return _started(MOVED, N=9).reverse("i")


def last_backwards() -> Schedule:
    """Against an output dependence."""
    return _started(LAST, M=4, N=5).reverse("j")


def scanned_in_threads() -> Schedule:
    """A dependence between threads at one time."""
    return _started(SCAN, M=4, N=5).bind("j", "thread.x")


def chained_in_blocks() -> Schedule:
    """A dependence between the blocks of one launch."""
    s = _started(CHAIN, N=10).split("i", 4).split("i_2", 4)
    return s.bind("i", "block.x").bind("i_2", "block.x").bind("i.i", "thread.x").bind("i_2.i", "thread.x")


def chained_in_threads() -> Schedule:
    """A dependence between the threads of a block: a barrier stands between."""
    return _started(CHAIN, N=70).bind("i", "thread.x").bind("i_2", "thread.x").contract("t", "shared")


def split() -> Schedule:
    """A loop whose last part is not full."""
    return _started(POINTS, N=10).split("i", 4).bind("i", "block.x").bind("i.i", "thread.x")


def copied_unwritten() -> Schedule:
    """Copies of elements of a temporary that no statement writes."""
    return _started(GUARDED, M=4, N=5).stage("t", "j")


def cut_copies() -> Schedule:
    """The second part of a loop with a staged copy, its copies before all of its reads."""
    s = _started(ROWS, M=5, N=7).stage("x", "k").cut("k", 3)
    return s.distribute("k.2", "x_s.2")


def reversed_points() -> Schedule:
    """A loop backwards."""
    return _started(POINTS, N=10).reverse("i")


def replicated() -> Schedule:
    """Every block reads for itself what one block writes."""
    return _started(SCALED, N=7).stage("w", "i").cut("i", 2).bind("i.2", "block.y")


def rfactored() -> Schedule:
    """Partial sums of each thread, then their sum."""
    return _started(TOTAL, N=10).split("i", 4).rfactor("y", "i.i")


def vectors() -> Schedule:
    """Four elements at a time."""
    return _started(CHAIN, N=8).split("i", 2).vectorize("i.i")


def misaligned() -> Schedule:
    """Four elements at a time, from an odd address."""
    return _started(COPY, N=8).split("i", 4).vectorize("i.i")


def in_last_block() -> Schedule:
    """Column sums over blocks: the last block of each tile of columns joins the parts, its threads whole columns of them."""
    return spread("columns").collect("y", "last_block")


def barred() -> Schedule:
    """The same behind a barrier of the grid."""
    return spread("columns").collect("y", "grid")


def last_block_of_neighbours() -> Schedule:
    """The sums by the last block, where the parts that a block joins are those of other columns: no schedule."""
    s = spread("columns").collect("y", "shuffle").collect("y", "kernel")
    name = s.plan.kernels[-1].id
    return s.bind("j_2.c", "seq").reverse("j_2.c").bind("j_2.c", "block.x").join(name, "last_block")


GALLERY: tuple[Callable[[], Schedule], ...] = (
    staged, pipelined, warps, blocks, atomics, scanned, chained_in_threads, split, reversed_points, rfactored, vectors,
    in_last_block, barred, loaded_early, loaded_early_where_it_is, aligned, aligned_sums, swizzled, boxes)
"""What is correct without a mutant: the control."""
