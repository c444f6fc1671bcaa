"""Every error in a bulk copy, its group or its phase is noticed by the judge of the IR, and by running it in some order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from explorer.kernel.launches import plan_ir
from explorer.schedule import Schedule
from tests.kernel.bulk_schedules import SCHEDULES, tiled_product, vector

from .ir import MORE, RULES, ir_mutants
from .ir_bulk import BULK
from .test_ir_judged import faults
from .test_ir_mutants import noticed

JUDGED = ("vector", "swizzled tiles", "halo", "images", "product", "three stages", "four stages", "panels in a pipeline",
          "tile after tile")
HARMLESS = {"mbarriers are used before they are ready", "a barrier is dropped"}
"""Where a barrier stands before the first wait, none is needed behind the thread that makes the mbarriers ready, and copies."""


@pytest.mark.parametrize("name", JUDGED)
def test_the_judge_notices_them(name: str) -> None:
    ir = plan_ir(SCHEDULES[name]().plan)
    assert faults(ir) == []
    made, left = Counter[str](), Counter[str]()
    for mutant in ir_mutants(ir, BULK | RULES | MORE):
        made[mutant.kind] += 1
        left[mutant.kind] += not faults(mutant.ir)
    survived = {kind for kind, count in left.items() if count}
    assert survived <= (HARMLESS if any(w in name for w in ("product", "tile", "stages")) else set())
    assert all(left[kind] == 1 for kind in survived)
    assert made.keys() >= BULK.keys() - ({"a box is transposed"} if name == "vector" else set())


@pytest.mark.parametrize(("make", "harmless"), [
    (lambda: vector(80, 64), set[str]()), (lambda: tiled_product(2, 32, 12, 16, (12, 16, 16), (32, 32)), HARMLESS)])
def test_running_notices_them(make: Callable[[], Schedule], harmless: set[str]) -> None:
    s = make()
    assert not noticed(plan_ir(s.plan), s)
    for mutant in ir_mutants(plan_ir(s.plan), BULK):
        assert noticed(mutant.ir, s) or mutant.kind in harmless, (mutant.kind, mutant.at)
