"""How long a click takes: one transformation with its four questions and the new text, and the palette of a node.

    python benchmarks/latency.py                      # all workloads, half an hour; writes results/latency.json
    python benchmarks/latency.py --jobs 8             # the same on eight cores
    python benchmarks/latency.py matmul conv2d        # some of them; writes nothing
    python benchmarks/latency.py --tensor             # the schedules on tensor cores alone; writes only that part

No GPU is used and nothing is compiled.  A *step* is its *verdict*, ``schedule.apply(step)`` (rewrite, cover, order, flow,
obligations), and, where no obligation is open, the new *text*: the kernel IR with its barriers and passes, judged again as it
will be printed, and the CUDA text with its source map.  The explorer shows the verdict before the text.  The *palette* is
``schedule.moves(node)``: every transformation with concrete arguments at one node, each of them judged.

Every workload is walked at its typical size as a session would: as written, tiled, bound to the grid, staged, and the
default strategy; the chain of moves that makes a fast matrix product is timed step by step.  At each stage some
applicable instances of every kind of transformation are drawn with a fixed seed.  One sample is one process, forked
from the session at that stage: so it finds the caches that the session has there (the program's dependences, answers
about pairs that earlier steps have asked) and nothing that another sample has left.  The palette is not asked before a
step, which in a session it often is; the step would then be answered from the cache.

Schedules on tensor cores are timed step by step: every step's *verdict*, without the text, and which question took longest;
then, for each, the text and ``pipeline_conditions`` of the loops that have a pipeline.  One schedule is one process, which
replays its steps: each finds what the steps before have asked.  Where the collector of Python's garbage ran within a step, its
time is a part of the step's.

Figures are milliseconds of CPU time of the process (a shared machine inflates the wall clock, which is reported
beside it); a forked process also pays for the pages that it copies, so they are a little too high.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from latency_clock import clock, forked, machine, quantile
from latency_tensor import measured_tensor, tensor_page

from explorer import workloads
from explorer.ir.tree import leaves
from explorer.schedule import Schedule
from explorer.strategies.default import default
from explorer.transforms.base import Transform, catalogue

VERDICT_TARGET_MS, PALETTE_TARGET_MS, TEXT_TARGET_MS = 50.0, 200.0, 150.0
TENSOR_TARGET_MS = 100.0
"""For verdicts on steps of schedules on tensor cores."""
RESULT = Path(__file__).parent / "results" / "latency.json"
INSTANCES = 2
"""Of each kind of move at each stage."""
TRIES = 12
"""Instances of one kind that are tried at one stage before it counts as not applicable there."""

WALK: tuple[tuple[str, tuple[tuple[str, dict[str, Any]], ...]], ...] = (
    ("written", ()),
    ("tiled", (("tile", {}), ("split", {}))),
    ("bound", (("bind", {"to": "block.x"}), ("bind", {"to": "thread.x"}))),
    ("staged", (("contract", {"space": "register"}), ("stage", {"space": "shared"}), ("pipeline", {}), ("stage", {}))),
)
"""Stages of a session, each with the moves that lead to it from the one before; moves that do not apply are left out."""

PAGE = {"step on": "by_workload", "kind of move": "by_move", "stage": "by_stage", "palette on": "palettes_by_workload"}
"""Tables of the written page, by title."""
BIG = {
    "matmul 512": ("matmul", {"M": 512, "N": 512, "K": 512}),
    "matmul 4096": ("matmul", {"M": 4096, "N": 4096, "K": 4096}),
    "matmul 65536": ("matmul", {"M": 65536, "N": 65536, "K": 65536}),
    "matmul ragged": ("matmul", {"M": 4093, "N": 4092, "K": 4100}),
}
"""The chain at several sizes; at 65536 each array has 2³² elements."""


@dataclass(frozen=True)
class Sample:
    """One timed step or palette, in milliseconds of CPU time and of the wall clock."""

    workload: str
    stage: str
    move: str
    step: str
    cpu: float
    wall: float
    emit: float
    emitted: bool


def sized(name: str, sizes: dict[str, int] | None = None) -> Schedule:
    """A workload as written, at its typical size."""
    workload = workloads.get(name)
    return workload.definition.schedule(**(sizes or dict(workload.typical)))


def time_step(schedule: Schedule, step: Transform) -> tuple[float, float, float, bool]:
    """CPU and wall time of a step with its text, the CPU time of the text, and whether there is one."""
    touch()
    cpu, wall = clock()
    new = schedule.apply(step)
    judged, _ = clock()
    if emitted := new.judgement.emittable:
        new.module()
    end, over = clock()
    return end - cpu, over - wall, end - judged, emitted


def time_palette(schedule: Schedule, node: str) -> tuple[float, float, int]:
    """CPU and wall time of the palette of a node, and how many moves it holds."""
    touch()
    cpu, wall = clock()
    found = schedule.moves(node)
    end, over = clock()
    return end - cpu, over - wall, len(found)


def touch() -> None:
    """Copy the pages of the parent's objects now, and not while the clock runs."""
    for _ in gc.get_objects():
        pass


def nodes(schedule: Schedule) -> list[str]:
    """Ids of all loops, leaves and kernels."""
    found = [leaf.id for kernel in schedule.plan.kernels for leaf, _ in leaves(kernel.body)]
    return [*schedule.plan.loops, *found, *(k.id for k in schedule.plan.kernels)]


def instances(schedule: Schedule, kind: type[Transform], count: int, pick: random.Random, **wanted: Any) -> list[Transform]:
    """Some applicable instances of a kind, at nodes drawn at random."""
    at = nodes(schedule)
    pick.shuffle(at)
    offered = [s for node in at if kind.offers(schedule.plan, node) for s in kind.candidates(schedule.plan, node)]
    offered = [s for s in dict.fromkeys(offered) if all(getattr(s, k) == v for k, v in wanted.items())]
    pick.shuffle(offered)
    found: list[Transform] = []
    for step in offered[:TRIES]:
        if len(found) < count and schedule.try_step(step)[0]:
            found.append(step)
    return found


def advanced(schedule: Schedule, step: Transform) -> Schedule:
    """The session after a step: applied, and its text shown."""
    new = schedule.apply(step)
    if new.judgement.emittable:
        new.module()
    return new


def session(name: str) -> Iterator[tuple[str, Schedule]]:
    """A workload's stages; the state of this process is that of the session when a stage is yielded."""
    schedule = start = sized(name)
    start.module()  # it is shown as written
    for stage, wishes in WALK:
        before = schedule
        for kind, wanted in wishes:
            pick = random.Random(f"{name} {stage} {kind}")
            if found := forked(lambda: instances(schedule, catalogue()[kind], 1, pick, **wanted)):  # noqa: B023
                schedule = advanced(schedule, found[0])
        if schedule is not before or not wishes:
            yield stage, schedule
    steps = forked(lambda: default(start).steps)
    for step in steps:
        start = advanced(start, step)
    yield "default", start


def samples(name: str, count: int) -> Iterator[Sample]:
    """Every kind of move and some palettes at every stage of a workload."""
    for stage, schedule in session(name):
        for move, kind in catalogue().items():
            pick = random.Random(f"{name} {stage} {move}")
            for step in forked(lambda: instances(schedule, kind, count, pick)):  # noqa: B023
                cpu, wall, emit, emitted = forked(lambda: time_step(schedule, step))  # noqa: B023
                yield Sample(name, stage, move, str(step), cpu, wall, emit, emitted)
        yield from palettes(name, stage, schedule)


def palettes(name: str, stage: str, schedule: Schedule) -> Iterator[Sample]:
    """The palettes of the outermost and the innermost loops, of one between, and of a leaf."""
    loops = list(schedule.plan.loops)
    chosen = [*loops[:1], *loops[len(loops) // 2 : len(loops) // 2 + 1], *loops[-1:], schedule.plan.leaves[-1][0].id]
    for node in dict.fromkeys(chosen):
        cpu, wall, moves = forked(lambda: time_palette(schedule, node))  # noqa: B023
        yield Sample(name, stage, "palette", f"moves({node!r}), {moves} of them", cpu, wall, 0.0, False)


def matmul_chain(bm: int = 128, bn: int = 128, bk: int = 32, tm: int = 8, tn: int = 4, stages: int = 2) -> list[Transform]:
    """The moves from the matrix product as written to a register-tiled, double-buffered, vectorised one."""
    k: dict[str, Any] = dict(catalogue())
    cuts = [k["distribute"](loop, after=after) for loop in ("uj", "j.i", "ui") for after in ("S1", "S0")]
    roles = {"i": "block.y", "j": "block.x", "i.i": "thread.y", "tj": "thread.x"}
    return [
        k["tile"](("i", "j"), (bm, bn)), k["split"]("i.i", tm, inner="ui"), k["split"]("j.i", bn // 2, inner="tj"),
        k["split"]("tj", tn, inner="uj"), k["reorder"](("i.i", "tj", "ui", "j.i", "uj")),
        *(k["bind"](loop, role) for loop, role in roles.items()), *cuts,
        k["reorder"](("k", "ui.3", "j.i.3", "uj.3")), k["split"]("k", bk), k["contract"]("total", "register"),
        k["stage"]("a", "k", vector=4), k["stage"]("b", "k", vector=4), k["pipeline"]("k", stages),
        k["split"]("k.i", 4, inner="kv"), k["stage"]("a_s", "k.i", space="register", vector=4),
        k["stage"]("b_s", "kv", space="register", vector=4), k["unroll"]("k.i"), k["vectorize"]("uj.2"),
    ]


def chain(label: str, sizes: dict[str, int], palette: bool) -> Iterator[Sample]:
    """The chain, each step timed in the state that the steps before have left; `palette` also asks what else could be done."""
    schedule = sized("matmul", sizes)
    schedule.module()
    for number, step in enumerate(matmul_chain()):
        cpu, wall, emit, emitted = forked(lambda: time_step(schedule, step))  # noqa: B023
        yield Sample(label, f"chain {number}", step.name, str(step), cpu, wall, emit, emitted)
        schedule = advanced(schedule, step)
        if palette and number % 4 == 3:
            yield from palettes(label, f"chain {number + 1}", schedule)
    if palette:
        yield from palettes(label, "chain end", schedule)


def summary(found: Sequence[Sample]) -> dict[str, Any]:
    """Percentiles of the CPU time, and the slowest by name."""
    cpu = [s.cpu for s in found]
    worst = max(found, key=lambda s: s.cpu)
    return {"samples": len(found), "p50": round(quantile(cpu, 0.5), 1), "p95": round(quantile(cpu, 0.95), 1),
            "worst": round(worst.cpu, 1), "p95_wall": round(quantile([s.wall for s in found], 0.95), 1),
            "worst_step": f"{worst.workload}, {worst.stage}: {worst.step}"}


def grouped(found: Sequence[Sample], key: Callable[[Sample], str]) -> dict[str, Any]:
    """A summary for each value of `key`."""
    return {name: summary([s for s in found if key(s) == name]) for name in sorted({key(s) for s in found})}


def table(title: str, rows: dict[str, Any]) -> None:
    """Print summaries as rows."""
    print(f"\n{title:22s} {'samples':>7s} {'p50':>7s} {'p95':>7s} {'worst':>7s}  ms CPU; slowest")
    for name, row in rows.items():
        print(f"{name:22s} {row['samples']:7d} {row['p50']:7.1f} {row['p95']:7.1f} {row['worst']:7.1f}  {row['worst_step'][:90]}")


def markdown(result: dict[str, Any]) -> str:
    """The result as a page."""
    def rows(title: str, of: dict[str, Any]) -> list[str]:
        head = [f"| {title} | samples | p50 | p95 | worst | the slowest |", "|---|--:|--:|--:|--:|---|"]
        return [*head, *(f"| {name} | {r['samples']} | {r['p50']} | {r['p95']} | {r['worst']} | `{r['worst_step']}` |"
                         for name, r in of.items()), ""]

    where = result["machine"]
    lines = ["# Latency of an interactive step", "",
             "Milliseconds of CPU time; `python benchmarks/latency.py` makes this page and says what is measured.", "",
             f"{where['cpu']}, {where['cores']} cores, load average {where['load_average'][0]}, Python {where['python']}, "
             f"islpy {where['islpy']}; `import explorer` {result['import_explorer']} ms.", ""]
    lines += rows("all", {"steps": result["steps"], "their verdicts": result["verdicts"], "their texts": result["texts"],
                          "palettes": result["palettes"]})
    if tensor := result.get("tensor"):
        lines += [*tensor_page(tensor), ""]
    for title, key in PAGE.items():
        lines += rows(title, result[key])
    return "\n".join(lines)


def import_time() -> float:
    """Milliseconds of CPU time of ``import explorer`` beyond an empty interpreter's; the median of five."""
    def once(code: str) -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).resolve().parent.parent)
        after = os.times()
        return 1e3 * (after.children_user + after.children_system - before.children_user - before.children_system)

    taken = sorted(once("import explorer") - once("pass") for _ in range(5))
    return round(taken[2], 1)


def warm() -> None:
    """Import what a session has imported by its first step: nobody's first workload is to pay for it."""
    work = workloads.get("adam")
    schedule = default(work.definition.schedule(**work.tiny))
    schedule.module()
    schedule.moves(next(iter(schedule.plan.loops)))


def measured(part: str) -> list[Sample]:
    """The samples of a workload, or of the chain at a size of :data:`BIG`."""
    if part in BIG:
        return list(chain(part, BIG[part][1], part == "matmul 4096"))
    found = list(samples(part, INSTANCES))
    own = summary([s for s in found if s.move != "palette"])
    print(f"{part:22s} p50 {own['p50']:6.1f}  p95 {own['p95']:6.1f}  worst {own['worst']:6.1f} ms", flush=True)
    return found


def main() -> int:
    """Time everything, print the tables, write the results; the exit code is 1 if a target is missed."""
    arguments = argparse.ArgumentParser(description="Latency of interactive steps, without a GPU.")
    arguments.add_argument("workloads", nargs="*", help="some of the workloads (default: all, and the result is written)")
    arguments.add_argument("--tensor", action="store_true", help="the schedules on tensor cores alone")
    arguments.add_argument("--jobs", type=int, default=1, help="workloads at a time; use no more than half of the cores")
    arguments.add_argument("--out", type=Path, help="where to write the JSON")
    given = arguments.parse_args()
    chosen = given.workloads or list(workloads.names())
    if given.tensor:
        return report_tensor(measured_tensor(), given.out or RESULT)
    warm()
    parts = [*chosen, *(BIG if not given.workloads or "matmul" in chosen else ())]
    with get_context("fork").Pool(given.jobs, maxtasksperchild=1) as pool:
        found = [sample for one in pool.map(measured, parts, chunksize=1) for sample in one]
    return report(found, None if given.workloads else measured_tensor(), given.out or (None if given.workloads else RESULT))


def tensor_missed(tensor: dict[str, Any]) -> bool:
    """Print the figures of schedules on tensor cores; whether one misses its target."""
    missed = tensor["all"]["p95"] > TENSOR_TARGET_MS or tensor["text"]["p95"] > TEXT_TARGET_MS
    print(f"tensor cores: verdict p95 {tensor['all']['p95']} (target {TENSOR_TARGET_MS:g}), text p95 {tensor['text']['p95']} "
          f"(target {TEXT_TARGET_MS:g}), {tensor['pipeline_conditions']}")
    return missed


def report_tensor(tensor: dict[str, Any], out: Path) -> int:
    """Write the figures of schedules on tensor cores among the others, which stay."""
    if out.exists():
        written(json.loads(out.read_text(encoding="utf-8")) | {"tensor": tensor}, out)
    return int(tensor_missed(tensor))


def written(result: dict[str, Any], out: Path) -> None:
    """Write the result, and as a page."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    out.with_suffix(".md").write_text(markdown(result), encoding="utf-8")
    print(f"written to {out}")


def report(found: Sequence[Sample], tensor: dict[str, Any] | None, out: Path | None) -> int:
    """Print and write what was found."""
    steps, shown = [s for s in found if s.move != "palette"], [s for s in found if s.move == "palette"]
    result = {
        "unit": "milliseconds of CPU time", "machine": machine(), "import_explorer": import_time(),
        "steps": summary(steps), "palettes": summary(shown) if shown else None, "tensor": tensor,
        "verdicts": summary([replace(s, cpu=s.cpu - s.emit) for s in steps]),
        "texts": summary([replace(s, cpu=s.emit) for s in steps if s.emitted]),
        "by_workload": grouped(steps, lambda s: s.workload), "by_move": grouped(steps, lambda s: s.move),
        "by_stage": grouped(steps, lambda s: s.stage.split()[0]), "palettes_by_workload": grouped(shown, lambda s: s.workload),
        "not_applicable": {name: missing for name in sorted({s.workload for s in steps if not s.workload.startswith("matmul ")})
                           if (missing := sorted(set(catalogue()) - {s.move for s in steps if s.workload == name}))},
        "slowest": [asdict(s) for s in sorted(found, key=lambda s: -s.cpu)[:25]],
    }
    table("workload", result["by_workload"])
    table("move", result["by_move"])
    table("stage", result["by_stage"])
    table("palette", result["palettes_by_workload"])
    missed = tensor is not None and tensor_missed(tensor)
    print(f"\n{result['machine']}\nimport explorer {result['import_explorer']} ms")
    for title, target in (("verdicts", VERDICT_TARGET_MS), ("texts", TEXT_TARGET_MS), ("palettes", PALETTE_TARGET_MS)):
        if (row := result[title]) is None:
            continue
        missed |= row["p95"] > target
        print(f"{title:8s} p50 {row['p50']}  p95 {row['p95']} (target {target:g})  worst {row['worst']}  {row['worst_step']}")
    if out is not None:
        written(result, out)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
