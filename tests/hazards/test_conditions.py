"""For which trip counts an error is one: what is derived from a kernel of one trip count, against the same error with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from explorer.ir.finding import Finding
from explorer.kernel.launches import PlanIR, plan_ir
from explorer.kernel.validate import judged
from explorer.schedule import Schedule
from tests.kernel.bulk_schedules import several_tiles
from tests.mutants.ir import IRMutant, ir_mutants
from tests.mutants.ir_pipelines import KINDS, warpgroup
from tests.mutants.ir_slots import SLOTS

from .bugs import factors, steps, twice
from .test_bugs import holds

PIPELINES: dict[str, Callable[[int], Schedule]] = {
    "one stage": lambda k: steps(1, k), "two stages": lambda k: steps(2, k), "three stages": lambda k: steps(3, k),
    "tile after tile": lambda k: several_tiles(2, k), "products in flight": lambda k: factors(3, k).overlap("k"),
    "copies of threads": twice, "threads write factors": warpgroup,
    "a producer, two slots": lambda k: factors(1, k).specialise("k", 2),
    "a producer, three slots": lambda k: factors(1, k).specialise("k", 3)}
RULES = {f"{kind} {n}": rule for kind, rules in KINDS.items() for n, rule in enumerate(rules)}
RULES |= {f"slots{n} {what}": rule for n, (what, rule) in enumerate(SLOTS.items())}


def mutants(schedule: Schedule) -> dict[str, list[IRMutant]]:
    """By rule."""
    out: dict[str, list[IRMutant]] = {}
    for m in ir_mutants(plan_ir(schedule.plan), RULES):
        out.setdefault(m.kind, []).append(m)
    return out


def first(ir: PlanIR) -> Finding | None:
    return next((found for launch in ir.launches for found in judged(launch)), None)


@pytest.mark.parametrize("name", PIPELINES)
def test_conditions_hold_with_other_trip_counts(name: str) -> None:
    make, seen = PIPELINES[name], Counter[str]()
    here, others = mutants(make(5)), {trips: mutants(make(trips)) for trips in (3, 4, 7)}
    for kind, made in here.items():
        for n, mutant in enumerate(made):
            found = first(mutant.ir)
            proof = found.proof if found else None
            if proof is None:
                continue
            for trips, there in others.items():
                if len(there.get(kind, ())) == len(made):  # else there are other places for the error
                    again = first(there[kind][n].ir)
                    wrong = again is not None and again.proof is not None
                    assert wrong == (not holds(proof, K=trips)), (kind, mutant.at, trips, proof.condition)
                    seen[kind.split()[0]] += 1
    assert sum(seen.values()) >= 6, seen
    assert len(seen) >= 2, "several kinds"
    assert "producer" not in name or sum(n for kind, n in seen.items() if kind.startswith("slots")) >= 9, seen
