"""Errors of a pass in the last IR of every schedule here, and how many of them the judge of the IR notices by itself.

``python benchmarks/ir_mutants.py`` prints the table, ``--write`` puts it into results/ir_mutants.md, ``--every 10`` takes each
tenth schedule.  The schedules are those of sass.py: every case of the benchmarks, every workload's default and automatic one.
``--pipelines`` takes those of tests/mutants/ir_pipelines.py instead, with errors in fences, waits, arrivals, phases, slots,
counts and releases, and asks the CPU device as well; the table is results/pipeline_mutants.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from sass_texts import schedules  # noqa: E402

from explorer.kernel.launches import PlanIR, plan_ir  # noqa: E402
from explorer.kernel.validate import judged  # noqa: E402
from tests.mutants.ir import MORE, RULES, ir_mutants  # noqa: E402
from tests.mutants.ir_pipelines import ALL, PIPELINES  # noqa: E402
from tests.mutants.pipelines import answers  # noqa: E402
from tests.mutants.pipelines import page as pipelines_page  # noqa: E402

KINDS = RULES | MORE


def is_noticed(ir: PlanIR) -> bool:
    """Whether the judge finds something."""
    return any(True for launch in ir.launches for _ in judged(launch))


def counted(every: int) -> tuple[int, Counter[str], Counter[str], list[str], list[float]]:
    """Schedules, mutants and those let through by kind, where these are, and the seconds of judging each schedule as it is."""
    made, through, where, number = Counter[str](), Counter[str](), list[str](), 0
    seconds: list[float] = []
    for position, (name, schedule) in enumerate(schedules()):
        if position % every:
            continue
        number += 1
        ir = plan_ir(schedule.plan)
        begin = time.perf_counter()
        assert not is_noticed(ir), name
        seconds.append(time.perf_counter() - begin)
        for mutant in ir_mutants(ir, KINDS):
            made[mutant.kind] += 1
            if not is_noticed(mutant.ir):
                through[mutant.kind] += 1
                where.append(f"{name}: {mutant.kind} at {', '.join(mutant.at[:2])}")
    return number, made, through, where, seconds


def page(number: int, made: Counter[str], through: Counter[str], where: list[str], seconds: list[float]) -> str:
    """The table as Markdown."""
    ordered = sorted(seconds)
    lines = ["# Errors of a pass, and the judge of the IR", "",
             f"{number} schedules (those of sass.py), one error at a time in their last IR; the judge alone "
             "(`explorer.kernel.validate`).  Made by `python benchmarks/ir_mutants.py --write`.", "",
             f"Without an error none is reported.  Judging one schedule takes {1e3 * ordered[len(ordered) // 2]:.0f} ms in the "
             f"median, {1e3 * ordered[int(0.95 * len(ordered))]:.0f} ms at the 95th percentile.", "",
             "| error | mutants | noticed | let through |", "|---|---:|---:|---:|"]
    lines += [f"| {kind} | {made[kind]:,} | {made[kind] - through[kind]:,} | {through[kind]} |" for kind in KINDS]
    lines += [f"| all | {made.total():,} | {made.total() - through.total():,} | {through.total()} |", ""]
    if where:
        lines += ["Let through, since the relations show the same kernel (a condition that another one implies, a load whose "
                  "lanes are masked afterwards):", "", *(f"- {one}" for one in where), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--pipelines", action="store_true")
    given = parser.parse_args()
    if given.pipelines:
        text = pipelines_page([answer for pipeline in PIPELINES[:: given.every] for answer in answers(pipeline, ALL)])
    else:
        text = page(*counted(given.every))
    print(text)
    if given.write:
        name = "pipeline_mutants.md" if given.pipelines else "ir_mutants.md"
        (ROOT / "benchmarks" / "results" / name).write_text(text)


if __name__ == "__main__":
    main()
