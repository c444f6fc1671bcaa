"""Every workload's default schedule, and the hand-written ones, once each: to be run under compute-sanitizer.

    for tool in memcheck racecheck initcheck synccheck; do
        compute-sanitizer --tool $tool --error-exitcode 9 python benchmarks/sanitize.py
    done

Words after it choose schedules by what is in their names, `--share 2/4` every fourth from the third.  Everything runs in this one
process (the sanitizer sees its launches), at small odd sizes, with outputs checked against the workload's reference.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import fused_programs
import level_schedules as levels
import numpy as np
from reduction_program import reduction

from explorer import workloads
from explorer.run.inputs.arguments import arguments
from explorer.run.kernel import Kernel
from explorer.run.nvrtc.compiler import compile_module
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import references
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.default import default
from explorer.strategies.reductions import Shape, reduce
from explorer.transforms.approximate import as_computed

if TYPE_CHECKING:
    from explorer.run.cuda.cupy_engine import CupyEngine

SHAPES = (
    *((f"rows of odd columns by {join}", ((401, 19), (0,), "f16", "max"), Shape(19, 8, 8, 2, 4, join=join, period=8))
      for join in ("launch", "handoff", "cluster")),
    *((f"axes inside by {join}", ((5, 53, 24, 9), (1, 3), "f16", "sum"), Shape(27, 4, 8, 4, 3, join=join, kept=True))
      for join in ("launch", "handoff")),
    ("axes inside, in a block", ((39, 12, 11, 4), (0, 2), "f32", "min"), Shape(33, 4, 4, 5, 1, kept=True)),
    ("axes inside and odd rows, in a cluster", ((64, 7, 55), (0, 2), "f16", "max"),
     Shape(385, 2, 4, 4, 2, join="cluster", period=4, kept=True)),
    ("many sums of few results", ((57, 3, 129), (0, 2), "f32", "sum"), Shape(387, 1, 2, 4, 1, period=2, kept=True)),
    ("batches of odd columns", ((5, 32, 83), (1,), "f16", "max"), Shape(83, 2, 8, 2, 1, period=8)),
    ("whole rows, several a thread", ((3004, 3), (1,), "f32", "sum"), Shape(64, 1, 4, 3, 1, True, each=4)),
    ("whole rows, fewer for the last thread", ((3003, 3), (1,), "f16", "max"), Shape(64, 1, 8, 3, 1, True, each=8)),
    ("whole rows, several times over", ((37, 304, 6), (0, 2), "f16", "sum"), Shape(32, 8, 4, 6, 1, True, each=4)),
    ("rows in shared memory", ((403, 31), (1,), "f32", "sum"), Shape(64, 1, 4, 31, 1, True, staged=True)),
    ("rows of two axes in shared memory", ((24, 19, 19), (2,), "f16", "max"), Shape(32, 1, 8, 19, 1, True, staged=True)),
    ("whole columns", ((5, 3072), (0,), "f32", "sum"), Shape(64, 1, 4, 5, 1)),
    *((f"odd axes as one by {join}", ((57, 27, 3), (0, 1), "f16", "sum"), Shape(3, 32, 8, 2, 2, join=join, period=8))
      for join in ("launch", "handoff", "cluster")),
    ("three odd axes as one", ((9, 7, 11, 5), (0, 1, 2), "f32", "max"), Shape(5, 16, 4, 11, 1, period=4)),
    *((f"interleaved axes, an index of one division, by {join}", ((31, 5, 283), (0, 2), "f16", "sum"),
       Shape(256, 1, 1, 5, 4, join=join)) for join in ("handoff", "cluster")),
    ("rows in whole batches", ((3, 40_961), (1,), "f32", "sum"), Shape(128, 1, 4, 4, 21, join="handoff")),
    ("rows of a vector more", ((11, 511), (1,), "f32", "sum"), Shape(32, 8, 4, 5, 1)),
    ("rows that begin anywhere", ((9, 411), (1,), "f32", "sum"), Shape(8, 4, 4, 13, 1)),
    ("batches of such", ((7, 803), (1,), "f32", "max"), Shape(8, 1, 4, 5, 1)),
    ("49 threads a row", ((8, 16, 7, 7), (0, 2, 3), "f32", "sum"), Shape(49, 8, 1, 8, 1)),
    ("19 threads a row", ((8, 16, 19), (0, 2), "f32", "sum"), Shape(19, 8, 1, 8, 1)),
)
"""Reductions spread as `auto` spreads larger ones: name, case, shape."""


def schedules() -> Iterator[tuple[str, Schedule]]:
    """Name and schedule."""
    for name in workloads.names():
        work = workloads.get(name)
        plain = work.definition.schedule(**work.tiny)
        yield f"{name}, default", default(plain)
        yield f"{name}, auto", auto(plain)
    import move_schedules as moves
    import multiblock_schedules as multiblock
    import spine_schedules as spine
    import tensor_schedules as tensor

    for case in (((20_000,), (0,), "f32", "sum"), ((300, 264), (0,), "f16", "max"), ((8, 6, 12, 12), (0, 2, 3), "f32", "sum")):
        yield f"reduction in parts {case}", auto(reduction(*case))
    for name, case, shape in SHAPES:
        yield f"reduction, {name}", default(reduce(reduction(*case), shape=shape))
    for name in ("cross_entropy", "layernorm", "bias_residual_layernorm", "rmsnorm"):
        yield f"{name}, odd rows that ask ahead", auto(getattr(fused_programs, name).schedule(M=5, N=413))
    yield "column sums by atomics", column_sums("atomic")
    yield "column sums in shared memory", column_sums("shared")
    for name, how, schedule in multiblock.schedules(small=True):
        yield f"{name} over blocks, {how}", schedule
    yield from moves.schedules()
    yield from copies()
    for m, n in ((131, 1301), (97, 2711)):
        yield f"vectors beside a bias {m}x{n}", auto(fused_programs.bias_gelu.schedule(M=m, N=n))
        yield f"a GELU of {m * n}", auto(fused_programs.gelu.schedule(M=m * n))
        yield f"tanh of {m * n}", auto(fused_programs.tanh.schedule(M=m * n))
        yield f"sigmoid of {m * n}", auto(fused_programs.sigmoid.schedule(M=m * n))
    yield "row sums in shared memory", row_sums()
    yield "matmul, pipelined", spine.tiled_matmul(40, 72, 24, bm=16, bn=32, bk=8, tm=2, stages=3)
    yield "softmax, rows in registers", spine.softmax_rows(5, 132, 32)
    yield "jacobi, tiles", spine.jacobi_tiles(6, 30, 70, steps=4, rows=8, threads=32, ty=2)
    yield from tensor.schedules()
    yield from levels.schedules()
    yield from ((f"bulk copies, {name}", make()) for name, make in bulk_copies().items())


def bulk_copies() -> dict[str, Any]:
    """What is tested of bulk copies and stores on the CPU device: dimensions, types, swizzles, ragged edges, pipelines."""
    from tests.kernel import bulk_schedules, stored_schedules

    return bulk_schedules.SCHEDULES | {f"stores of {name}": make for name, make in stored_schedules.SCHEDULES.items()}


def copies() -> Iterator[tuple[str, Schedule]]:
    """Copies of copies, partial vectors and collectives in odd blocks: the chains that are tested on the CPU device."""
    from tests.properties.programs import define
    from tests.properties.test_copies import COLLECTED, COPIED, ONE_ROW, WAYS

    for case in (*COPIED, *COLLECTED):
        definition, sizes = define(case.text, "copies.py"), dict(case.sizes)
        yield case.what, case.chain(definition.schedule(**{name: sizes[name] for name in definition.sizes}))
    for dtype, vector in (("i8", 4), ("f16", 8), ("f32", 4)):
        row = define(ONE_ROW.replace("{dtype}", dtype), "copies.py")
        for number, way in enumerate(WAYS):
            if number == 4 or (dtype, number) == ("i8", 3):  # NVRTC 13 reads the last 3 elements as 4: memcheck reports it
                continue
            yield f"the last vector of 19 {dtype}, way {number}", way(row.schedule(N=19).split("t", 16), vector)


def column_sums(how: str) -> Schedule:
    """Sums of columns, combined in one of the ways there are."""
    written = workloads.get("sum_columns").definition.schedule(M=70, N=40)
    written = written.launch("sum_columns", after="j")
    place = "block.y" if how == "atomic" else "thread.y"
    split = written.split("i", 8).bind("i.i" if how == "shared" else "i", place)
    return split.bind("j", "thread.x").bind("j_2", "thread.x").collect("y", how)


def row_sums() -> Schedule:
    """Sums of rows in shared memory, whose last block has threads without one."""
    s = workloads.get("sum_rows").definition.schedule(M=33, N=2)
    s = s.split("i", 32).bind("i", "block.x").bind("i.i", "thread.x").contract("total", space="shared")
    return s.stage("x", "i.i", space="register")


def run(engine: CupyEngine, schedule: Schedule) -> str:
    """Launch once in this process; "" when every output is right."""
    import cupy

    kernel = Kernel.of(schedule)
    program = engine.load(compile_module(kernel.module, kernel.gpu.arch).cubin, kernel.launches)
    held: dict[str, Any] = dict(arguments(schedule.source, None, 0))
    on_gpu = {}
    for b in kernel.module.buffers:
        memory = cupy.cuda.alloc(max(b.nbytes, 1))
        on_gpu[b.name] = memory
        if b.kind in ("in", "inout"):
            engine.write(memory, 0, np.ascontiguousarray(held[b.name]))
    given: dict[str, Any] = {name: (memory, 0) for name, memory in on_gpu.items()}
    for m in kernel.module.tensor_maps:
        given[m.name] = engine.encode(m, kernel.module.buffer(m.buffer), on_gpu[m.buffer], 0)
    for launch in kernel.launches:
        engine.launch(program, launch, [given[name] for name in launch.arguments])
    engine.synchronize()
    outputs = {}
    for b in kernel.module.buffers:
        if b.kind in ("out", "inout"):
            outputs[b.name] = np.empty(b.shape, b.dtype.numpy)
            engine.read(on_gpu[b.name], 0, outputs[b.name])
    program = as_computed(schedule.source, schedule.plan)
    expected, _ = references(program, held)
    checks = check_outputs(program, outputs, *expected)
    return "; ".join(str(c) for c in checks if not c)


def main() -> int:
    import cupy

    from explorer.run.cuda.cupy_engine import CupyEngine

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="of which a schedule's name has one")
    parser.add_argument("--share", default="0/1", metavar="K/N", help="the schedules whose number leaves K when divided by N")
    asked = parser.parse_args()
    share, shares = map(int, asked.share.split("/"))
    cupy.cuda.set_allocator(None)  # one allocation each, so that the sanitizer sees the ends of the arrays
    engine, wrong = CupyEngine(), 0
    for number, (name, schedule) in enumerate(schedules()):
        if number % shares == share and (not asked.words or any(word in name for word in asked.words)):
            problem = run(engine, schedule)
            wrong += bool(problem)
            print(f"{'BAD' if problem else 'ok '} {name} {problem}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
