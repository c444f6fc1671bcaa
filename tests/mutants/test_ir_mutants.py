"""Errors of a pass in the IR: in some order the interpreter sees a hazard, or computes something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from explorer import strategies, workloads
from explorer.kernel.interpreter import Order, execute
from explorer.kernel.launches import PlanIR, plan_ir
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.steps.calls import read_call
from explorer.transforms.approximate import as_computed
from tests.kernel.schedules import gemm
from tests.properties.equal import difference
from tests.transforms.storage import step

from .ir import RULES, IRMutant, ir_mutants

ORDERS = (Order(), Order("warp", "descending"), Order("thread"), Order("thread", "descending", early=True))
STAGED = ("bind('i', 'block.x')", "bind('j', 'thread.x')", "contract('total', 'register')", "split('k', 4)", "stage('a', 'k')",
          "stage('b', 'k')")


def matmul(*steps: str, **sizes: int) -> Schedule:
    s = workloads.get("matmul").definition.schedule(**sizes)
    for text in steps:
        s = s.apply(read_call(text))
    return s


def tiles() -> Schedule:
    s = workloads.get("matmul").definition.schedule(M=11, N=13, K=10)
    for call in gemm():
        s = s.apply(step(call))
    return s


def several_rows() -> Schedule:
    """One block takes row after row, so its threads combine in one scratch array again and again."""
    s = workloads.get("sum_rows").definition.schedule(M=3, N=130)
    return s.split("k", 64).bind("k.i", "thread.x").collect("total", "shuffle").contract("total")


def automatic(name: str, **sizes: int) -> Schedule:
    return strategies.auto(workloads.get(name).definition.schedule(**sizes))


SUBJECTS: dict[str, tuple[Callable[[], Schedule], int]] = {
    "a pipeline": (lambda: matmul(*STAGED, "pipeline('k', 2)", M=3, N=5, K=18), 1),
    "a deeper pipeline": (lambda: matmul(*STAGED, "pipeline('k', 3)", M=3, N=5, K=22), 1),
    "tiles": (tiles, 0), "rows in one block": (several_rows, 0), "softmax": (lambda: automatic("softmax", M=3, N=67), 1),
    "layernorm": (lambda: automatic("layernorm", M=3, N=130), 2)}
"""With how many mutants compute the same.  All of these drop a guard: of the copies into a slot that no iteration reads any more;
of the row's peak, which does not change a softmax; of what threads of a row beyond the last one contribute to that row's sum."""


def noticed(ir: PlanIR, s: Schedule) -> bool:
    """Whether some order shows that something is wrong."""
    arrays, wanted = seeded_arrays(s.source, 1), as_computed(s.source, s.plan)
    runs = (execute(ir, arrays, order) for order in ORDERS)
    return any(run.hazards or difference(wanted, arrays, run.outputs) for run in runs)


def survivors(s: Schedule) -> tuple[list[IRMutant], Counter[str]]:
    found = ir_mutants(plan_ir(s.plan))
    return [m for m in found if not noticed(m.ir, s)], Counter(m.kind for m in found)


@pytest.mark.parametrize("name", SUBJECTS)
def test_mutants_of_the_ir_are_noticed(name: str) -> None:
    make, same = SUBJECTS[name]
    s = make()
    assert not noticed(plan_ir(s.plan), s), "without an error there is none"
    left, kinds = survivors(s)
    assert sum(kinds.values()) > 3
    assert [m.kind for m in left] == ["a guard is dropped"] * same, [(m.kind, m.at) for m in left]


def test_every_kind_of_mutant_is_made() -> None:
    made = {m.kind for make, _ in SUBJECTS.values() for m in ir_mutants(plan_ir(make().plan))}
    assert made == set(RULES)
