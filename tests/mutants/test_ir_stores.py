"""Every error in a bulk store, its wait or its fence is noticed by the judge of the IR, and by running it in some order."""

from __future__ import annotations

from collections import Counter

import pytest

from explorer.kernel.launches import plan_ir
from tests.kernel.stored_schedules import SCHEDULES

from .ir import RULES, ir_mutants
from .ir_stores import STORES
from .printed import Subject
from .test_ir_judged import faults
from .test_ir_mutants import noticed

HARMLESS = {"a fence is dropped", "a guard is dropped"}
"""The fence at the barrier behind which nothing is stored, of the two in a round; waits of threads that have stored nothing."""


@pytest.mark.parametrize("name", ["vector", "ragged tiles", "swizzled", "panels", "in turn", "five dimensions"])
def test_the_judge_notices_them(name: str) -> None:
    ir = plan_ir(SCHEDULES[name]().plan)
    assert faults(ir) == []
    made, left = Counter[str](), Counter[str]()
    for mutant in ir_mutants(ir, STORES | RULES):
        made[mutant.kind] += 1
        left[mutant.kind] += not faults(mutant.ir)
    assert {kind for kind, count in left.items() if count} <= (HARMLESS if name == "in turn" else set())
    assert left["a fence is dropped"] <= 1
    assert left["a guard is dropped"] <= 4
    assert made.keys() >= STORES.keys() - ({"reads are waited for behind the barrier"} if name != "in turn" else set())


@pytest.mark.parametrize("name", ["in turn", "swizzled"])
def test_the_interpreter_notices_them(name: str) -> None:
    s = SCHEDULES[name]()
    assert not noticed(plan_ir(s.plan), s)
    for mutant in ir_mutants(plan_ir(s.plan), STORES):
        assert noticed(mutant.ir, s) or not faults(mutant.ir), (mutant.kind, mutant.at)


@pytest.mark.parametrize("name", ["in turn", "swizzled"])
def test_the_cpu_device_notices_them(name: str) -> None:
    s = SCHEDULES[name]()
    printed = STORES.keys() - {"a box is stored with another swizzle"}  # which the host says, in the tensor map
    found = [m for m in ir_mutants(plan_ir(s.plan), {kind: STORES[kind] for kind in printed}) if faults(m.ir)]
    for mutant, said in zip(found, Subject.of(s).verdicts([m.ir for m in found]), strict=True):
        assert said, (mutant.kind, mutant.at)
