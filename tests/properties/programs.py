"""Random programs as the text a user would write, at tiny and ragged sizes; and the ready workloads."""

from __future__ import annotations

import linecache
import random
from dataclasses import dataclass

import explorer as ex
from explorer import workloads
from explorer.frontend.definition import Definition
from explorer.ir.dtype import DTYPES
from explorer.ir.instructions import INSTRUCTIONS
from explorer.schedule import Schedule
from explorer.transforms.bind import Bind
from explorer.transforms.multicast import Multicast
from explorer.transforms.overlap import Overlap
from explorer.transforms.pipeline import Pipeline
from explorer.transforms.specialise import Specialise
from explorer.transforms.stage import Stage

from .hostile import renamed
from .shapes import SHAPES, two_reductions
from .writer import FLOATS, INTEGERS, SIZES, Writer

EXTENTS = (1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 11)
EMPTY = 0.02
"""Share of sizes that are 0."""
HOSTILE_SHARE = 0.5
"""Share of programs whose names are hostile ones."""
WIDE = (17, 31, 33, 40)
"""Sizes of a loop over more than a warp, or part of one: one size of some programs."""


@dataclass(frozen=True)
class Case:
    """A program at concrete sizes, and where it comes from."""

    name: str
    schedule: Schedule


def random_text(pick: random.Random) -> str:
    """The text of a random program: one to three nests, in one element type."""
    w = Writer(pick, pick.choice(FLOATS) if pick.random() < 0.8 else pick.choice(INTEGERS))
    for _ in range(pick.choice((1, 1, 2, 2, 3))):
        pick.choice(SHAPES)(w)
    return f"@ex.program\ndef f({', '.join(w.parameters.values())}):\n" + "\n".join(w.lines) + "\n"


def define(text: str, file: str, names: tuple[str, ...] = SIZES) -> Definition:
    """The program of a text, with the sizes M, N and K (or others) at hand."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, object] = {"ex": ex, "__name__": "user", **dict(zip(names, ex.sizes(" ".join(names)), strict=True))}
    exec(compile(text, file, "exec"), space)
    return next(v for v in space.values() if isinstance(v, Definition))


def random_case(pick: random.Random, label: str) -> Case:
    """A random program at random sizes, some under hostile names; sizes of 0 and 1 are rare but there.

    Raises
    ------
    ProgramError
        If the program reads what nothing wrote, or leaves an array, at these sizes.
    """
    text, names = random_text(pick), SIZES
    if pick.random() < HOSTILE_SHARE:
        text, names = renamed(text, names, pick)
    definition = define(text, f"{label}.py", names)
    sizes = {s: pick.choice(EXTENTS) if pick.random() >= EMPTY else 0 for s in definition.sizes}
    if sizes and pick.random() < 0.15:
        sizes[pick.choice(sorted(sizes))] = pick.choice(WIDE)
    return Case("random", definition.schedule(**sizes))


def maxima_in_parts(pick: random.Random, label: str) -> Case:
    """Two reductions as in softmax, the maximum with partial results of some loop of its own."""
    w = Writer(pick, pick.choice(FLOATS))
    two_reductions(w)
    text = f"@ex.program\ndef f({', '.join(w.parameters.values())}):\n" + "\n".join(w.lines) + "\n"
    definition = define(text, f"{label}.py")
    schedule = definition.schedule(**{s: pick.choice(EXTENTS) for s in definition.sizes})
    loops = {s.update: [x.id for x in above] for leaf, above, _ in schedule.plan.leaves
             if (s := schedule.plan.statement_of[leaf.statement]).update}
    if pick.random() < 0.5:
        size = pick.choice((2, 3))
        schedule = schedule.split(loops["max"][-1], size).split(loops["sum"][-1], size)
    return Case("maxima in parts", schedule.rfactor("S1", loops["max"][-1]))


def products_in_tiles(pick: random.Random, label: str) -> Case:
    """A product of matrices in tiles of a tensor instruction, all three of them in registers; some are one already."""
    return _product_in_tiles(pick, label, done=pick.random() < 0.4, shared=0.3)


def fragments_of_shared_tiles(pick: random.Random, label: str) -> Case:
    """A product by a tensor instruction whose fragments come from shared memory."""
    return _product_in_tiles(pick, label, done=True, shared=0.8)


def _product_in_tiles(pick: random.Random, label: str, *, done: bool, shared: float) -> Case:
    row = pick.choice(list(INSTRUCTIONS.values()))
    left, right = ("ex.tf32(", ")") if row.significand else ("", "")
    turned = pick.random() < 0.5
    text = f"""@ex.program
def f(a: ex.{row.a}[M, K], b: ex.{row.b}[{'N, K' if turned else 'K, N'}], c: ex.{row.c}[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.{row.c})
            acc = 0
            for k in range(K):
                acc += {left}a[i, k]{right} * {left}b[{'j, k' if turned else 'k, j'}]{right}
            c[i, j] = acc
"""
    tiles = [pick.choice((1, 2)) for _ in range(3)]
    s = define(text, f"{label}.py").schedule(**{n: t * e for n, t, e in zip("MNK", tiles, (row.m, row.n, row.k), strict=True)})
    s = s.tile(("i", "j"), (row.m, row.n))
    for loop in ("j.i", "i.i"):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    s = s.reorder(("k", "i.i.3", "j.i.3")).split("k", row.k).reorder(("k", "i.i.3", "j.i.3", "k.i")).contract("acc", "register")
    for array in pick.sample(("a", "b"), 2):
        through = pick.random() < shared
        s = s.stage(array, "k") if through else s
        s = s.stage(f"{array}_s" if through else array, "k", space="register")
    return Case("products in tiles", s.tensorize("S1") if done else s)


def results_of_instructions(pick: random.Random, label: str) -> Case:
    """Results of a tensor instruction that lie in its lanes as halves, to be left in shared memory, turned or not."""
    rows = [r for r in INSTRUCTIONS.values() if r.c.name in ("f16", "f32") and not r.significand]
    row, turned = pick.choice(rows), pick.random() < 0.5
    text = f"""@ex.program
def f(a: ex.{row.a}[M, K], b: ex.{row.b}[K, N], c: ex.f16[{'N, M' if turned else 'M, N'}]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.{row.c})
            acc = 0
            for k in range(K):
                acc += a[i, k] * b[k, j]
            c[{'j, i' if turned else 'i, j'}] = acc
"""
    s = define(text, f"{label}.py").schedule(M=pick.choice((1, 2)) * row.m, N=pick.choice((1, 2)) * row.n, K=row.k)
    s = s.tile(("i", "j"), (row.m, row.n)).outline("S2").outline("S2")
    for loop in ("j.i", "i.i"):
        for n in (-2, 1, 0):
            s = s.distribute(loop, after=s.plan.loops[loop].body[n].id)
    _, rows, columns, _ = (x.id for x in s.plan.resolve("S1")[1][1:])  # type: ignore[index]
    s = s.split("k", row.k).reorder(("k", rows, columns, "k.i")).contract("acc", "register")
    s = s.stage("a", "k", space="register").stage("b", "k", space="register").tensorize("S1")
    registers, lanes = (x.id for x in s.plan.resolve("S2")[1][-2:])  # type: ignore[index]
    s = s.distribute(lanes, after="S2").distribute(registers, after=lanes)
    return Case("results of instructions", s.contract("c_t_t", "register").contract("c_t", "shared"))


def scaled_sums(pick: random.Random, label: str) -> Case:
    """Sums of products of which all terms of an element share a factor."""
    factors = [pick.choice(("alpha[0]", "0.5", "r[i]", "(r[i] + 1.0)", "(i + 1)")), "a[i, k]"]
    factors += ["b[k, j]"] if pick.random() < 0.7 else []
    pick.shuffle(factors)
    dtype, size = pick.choice(("f16", "f32", "f64")), {"i": "M", "j": "N", "k": "K"}
    order = pick.choice(("ijk", "ikj", "kij"))
    loops = "".join(f"{'    ' * n}for {x} in range({size[x]}):\n" for n, x in enumerate(order, 1))
    text = f"""@ex.program
def f(a: ex.{dtype}[M, K], b: ex.{dtype}[K, N], r: ex.f32[M], alpha: ex.f32[1], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            c[i, j] = b[0, j] + r[i] + alpha[0]
{loops}                c[i, j] += {' * '.join(factors)}
"""
    return Case("scaled sums", define(text, f"{label}.py").schedule(**{n: pick.randint(1, 9) for n in "MNK"}))


def producers_apart(pick: random.Random, label: str) -> Case:
    """An array that one nest writes and another one reads, its elements or some near them."""
    use = pick.choice(("t[i, j]", "t[i, j] + t[i, 0]", "t[i, j] * t[i, N - 1]", "t[i, max(j - 1, 0)] + x[i, j]"))
    text = f"""@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    t = ex.local(ex.f32, M, N)
    for i in range(M):
        for j in range(N):
            t[i, j] = 2.0 * x[i, j]
    for i in range(M):
        for j in range(N):
            y[i, j] = {use}
"""
    return Case("producers apart", define(text, f"{label}.py").schedule(M=pick.randint(1, 9), N=pick.randint(1, 9)))


def triangles_in_tiles(pick: random.Random, label: str) -> Case:
    """A triangle or a band times a matrix, in tiles of which some blocks use only the first ones."""
    bound = pick.choice(("k <= i", "k < i + 3", "i <= k + 4 and k <= i + 2", "2 * k <= i"))
    text = f"""@ex.program
def f(a: ex.f32[N, N], b: ex.f32[N, M], c: ex.f32[N, M]):
    for i in range(N):
        for j in range(M):
            s = ex.local(ex.f32)
            s = 0.0
            for k in range(N):
                if {bound}:
                    s += a[i, k] * b[k, j]
            c[i, j] = s
"""
    s = define(text, f"{label}.py").schedule(N=pick.randint(6, 30), M=pick.choice((2, 4)))
    s = s.split("k", pick.choice((2, 3, 4))).split("i", pick.choice((2, 4, 5))).bind("i", pick.choice(("block.x", "seq")))
    s = s.bind("i.i", "thread.y").bind("j", "thread.x").contract("s", "register")
    for array in ("a", "b"):
        s = s.stage(array, "k") if pick.random() < 0.6 else s
    return Case("triangles in tiles", s.pipeline("k", 2, asynchronous=False) if s.plan.copies and pick.random() < 0.4 else s)


def tiles_in_shared_memory(pick: random.Random, label: str) -> Case:
    """A transposed copy or a product through shared tiles, whose rows are whole patterns of a swizzle; some lie in one."""
    dtype = pick.choice(("f16", "f32", "f64", "i8"))
    rows, columns = pick.choice((8, 16)), pick.choice((32, 64, 128)) * pick.choice((1, 1, 2)) // DTYPES[dtype].bytes
    ragged = pick.choice((0, 0, 1, 3))
    vector = pick.choice((1, 2, 4, 8, 16)) if not ragged else 1
    vector = min(vector, 16 // DTYPES[dtype].bytes)
    if pick.random() < 0.5:
        text = f"""@ex.program
def f(x: ex.{dtype}[M, N], y: ex.{dtype}[N, M]):
    for i in range(M):
        for j in range(N):
            y[j, i] = x[i, j]
"""
        s = define(text, f"{label}.py").schedule(M=rows * pick.choice((1, 2)) - ragged, N=columns * pick.choice((1, 2)))
        s = s.tile(("i", "j"), (rows, columns)).bind("i", "block.y").bind("j", "block.x")
        s = s.bind("i.i", "thread.x").stage("x", "j", vector=vector, early=pick.random() < 0.3)
    else:
        text = f"""@ex.program
def f(x: ex.{dtype}[M, K], y: ex.{dtype}[K, N], z: ex.{dtype}[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.{"i32" if dtype == "i8" else "f32" if dtype == "f16" else dtype})
            acc = 0
            for k in range(K):
                acc += x[i, k] * y[k, j]
            z[i, j] = acc
"""
        s = define(text, f"{label}.py").schedule(M=9, N=8 - ragged, K=columns * pick.choice((1, 2, 3)))
        s = s.tile(("i", "j"), (8, 8)).bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y").bind("j.i", "thread.x")
        s = s.contract("acc").split("k", columns)
        for array, wide in (("x", vector), ("y", 1)):
            s = s.stage(array, "k", vector=wide) if array == "x" or pick.random() < 0.5 else s
    return Case("tiles in shared memory", s.swizzle("x_s", min(128, columns * DTYPES[dtype].bytes)) if pick.random() < 0.4 else s)


def boxes_of_arrays(pick: random.Random, label: str) -> Case:
    """A product or a filter whose arrays have rows that bulk copies can take; their tiles are copied so, and may run ahead."""
    dtype = pick.choice(("f16", "f32", "f64", "i8"))
    size, wide = DTYPES[dtype].bytes, pick.choice((1, 2, 4))
    if pick.random() < 0.4:
        text = f"""@ex.program
def f(x: ex.{dtype}[M, N], y: ex.{dtype}[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = 0
            for k in range(3):
                if 0 <= i + k - 1 < M:
                    y[i, j] += x[i + k - 1, j]
"""
        columns = 16 * wide // size
        s = define(text, f"{label}.py").schedule(M=pick.choice((1, 5, 8)), N=columns * pick.choice((1, 2, 3)))
        s = s.split("i", pick.choice((2, 4))).split("j", columns).reorder("i", "j", "i.i", "j.i")
        s = s.bind("i", "block.y").bind("j.i", "thread.x")
        s = s.bind("j", "block.x") if pick.random() < 0.7 else s
        return Case("boxes of a filter", s.stage("x", "j", engine="bulk"))
    text = f"""@ex.program
def f(x: ex.{dtype}[M, K], y: ex.{dtype}[K, N], z: ex.{dtype}[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.{"i32" if dtype == "i8" else "f32" if dtype == "f16" else dtype})
            acc = 0
            for k in range(K):
                acc += x[i, k] * y[k, j]
            z[i, j] = acc
"""
    depth, columns, rows = 16 * wide // size, 16 * pick.choice((1, 2)) // size, pick.choice((4, 8))
    depth = max(depth, 8) if rows * depth * size % 128 else depth
    k = 16 // size * pick.choice((1, 2, 3, 5, 7))
    s = define(text, f"{label}.py").schedule(M=pick.choice((3, 8, 9)), N=columns * pick.choice((1, 2)), K=k)
    s = s.tile(("i", "j"), (rows, columns))
    s = s.bind("j", "block.x") if pick.random() < 0.6 else s
    s = s.bind("i.i", "thread.y").bind("j.i", "thread.x").contract("acc").split("k", depth)
    for array in ("x", "y") if pick.random() < 0.7 else ("x",):
        offered = [step for step in Stage.candidates(s.plan, "k") if (step.array, step.engine) == (array, "bulk")]
        s = s.apply(offered[0]) if offered else s.stage(array, "k", engine="async", vector=max(4 // size, 1), pad=0)
    extent = s.plan.loops["k"].extent
    if extent > 1 and pick.random() < 0.6:
        ahead = Pipeline("k", pick.randint(2, min(extent, 4)))
        s = s.apply(ahead) if s.try_step(ahead)[0] else s
    return Case("boxes of a product", s)


def products_of_warpgroups(pick: random.Random, label: str) -> Case:
    """A product by a warpgroup's instructions, whose factors bulk copies bring some steps ahead; some products are in flight."""
    s = _tiles_of_warpgroups(pick, label)
    extent = s.plan.loops["k"].extent
    ahead = Pipeline("k", pick.randint(2, min(extent, 3) + 1), buffers=pick.choice((0, 0, 3, 4)))
    s = s.apply(ahead) if s.try_step(ahead)[0] else s
    return Case("products of warpgroups", _some_in_flight(pick, s.tensorize("S1")))


def roles_of_warpgroups(pick: random.Random, label: str) -> Case:
    """A product by a warpgroup's instructions, whose factors a producer brings, for one tile or several; some are in flight."""
    s = _tiles_of_warpgroups(pick, label)
    turns = pick.choice((None, Bind("i", "seq"), Bind("j", "seq"), Bind("i", "block.x")))
    s = s.apply(turns) if turns is not None and s.try_step(turns)[0] else s
    s = s.tensorize("S1")
    step = Specialise("k", pick.randint(2, 4))
    s = s.apply(step) if pick.random() < 0.8 and s.try_step(step)[0] else s
    return Case("roles of warpgroups", _some_in_flight(pick, s))


def boxes_of_clusters(pick: random.Random, label: str) -> Case:
    """A product whose blocks share boxes, or might: by a warpgroup's instructions, or small enough to be enumerated."""
    small = pick.random() < 0.6
    s = _small_tiles(pick, label) if small else _tiles_of_warpgroups(pick, label)
    for step in (Bind("i", "block.y"), Bind("j", pick.choice(("block.x", "block.x", "seq")))):
        s = s.apply(step) if s.try_step(step)[0] else s
    s = s if small else s.tensorize("S1")
    step = Specialise("k", pick.randint(2, 4))
    s = s.apply(step) if s.try_step(step)[0] else s
    for copy in pick.sample(("a_s", "b_s"), pick.choice((0, 1, 2))):
        share = Multicast(copy, "block.x" if copy == "a_s" else "block.y", 2)
        s = s.apply(share) if s.try_step(share)[0] else s
    return Case("boxes of clusters", s if small else _some_in_flight(pick, s))


def _small_tiles(pick: random.Random, label: str) -> Schedule:
    """Up to the copies of factors, of a product by threads."""
    text = """@ex.program
def f(a: ex.f32[M, K], b: ex.f32[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0
            for k in range(K):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc
"""
    s = define(text, f"{label}.py").schedule(M=pick.choice((4, 7, 8)), N=32 * pick.choice((1, 2)), K=pick.choice((16, 32, 44)))
    s = s.tile(("i", "j"), (4, 32)).bind("i.i", "thread.y").bind("j.i", "thread.x").contract("acc").split("k", 16)
    return s.stage("a", "k", engine="bulk").stage("b", "k", engine="bulk")


def _some_in_flight(pick: random.Random, s: Schedule) -> Schedule:
    step = Overlap("k", pick.choice((0, 1, 1, 2)))
    return s.apply(step) if pick.random() < 0.3 and s.try_step(step)[0] else s


def _tiles_of_warpgroups(pick: random.Random, label: str) -> Schedule:
    """Up to the copies of factors."""
    dtype = pick.choice(("f16", "bf16", "i8"))
    total, depth = ("i32", 128) if dtype == "i8" else ("f32", 64)
    text = f"""@ex.program
def f(a: ex.{dtype}[M, K], b: ex.{dtype}[N, K], c: ex.{total}[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.{total})
            acc = 0
            for k in range(K):
                acc += a[i, k] * b[j, k]
            c[i, j] = acc
"""
    steps, columns, rows = pick.choice((1, 2, 3, 4)), pick.choice((8, 8, 16)), pick.choice((1, 2))
    k = steps * depth - (pick.choice((0, 16)) if steps > 1 else 0)
    s = define(text, f"{label}.py").schedule(M=pick.choice((64, 72, 100, 128)), N=columns * pick.choice((1, 2)), K=k)
    s = s.tile(("i", "j"), (64 * rows, columns))
    if rows > 1:
        s = s.split("i.i", 64).bind("i.i", "thread.y")
    inner = "i.i.i" if rows > 1 else "i.i"
    for loop in ("j.i", inner):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    s = s.reorder(("k", f"{inner}.3", "j.i.3")).split("k", depth).reorder(("k", f"{inner}.3", "j.i.3", "k.i"))
    s = s.contract("acc", "register")
    for array in ("a", "b"):
        s = s.stage(array, "k", engine="bulk", swizzle=128)
    return s


def workload_case(pick: random.Random) -> Case:
    """A ready program at one of a few tiny or ragged sizes."""
    chosen = workloads.get(pick.choice(workloads.names()))
    sizes = dict(chosen.tiny)
    if pick.random() < 0.5:
        small = pick.choice((1, 2))
        sizes = {name: max(1, value - small) if value > 3 else value for name, value in sizes.items()}
    return Case(chosen.name, chosen.definition.schedule(**sizes))
