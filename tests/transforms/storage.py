"""Apply storage transformations and hold the result against NumPy, the cover oracle and the four questions."""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.ir.plan import Plan, initial
from explorer.ir.program import Program
from explorer.poly.judge import judge
from explorer.transforms.base import Transform, catalogue
from tests.oracle import check_plan
from tests.run_plan import run_plan
from tests.transforms.programs import inputs, reference

Step = tuple[Any, ...]


def step(call: Step) -> Transform:
    """``("split", "k", 4)`` or ``("stage", "A", "k", {"vector": 4})``."""
    name, *args = call
    keywords = args.pop() if args and isinstance(args[-1], dict) else {}
    return catalogue()[name](*args, **keywords)


def rewritten(program: Program, *calls: Step) -> Plan:
    """The plan after these steps, whose own checks must pass; nothing judges the result."""
    plan = initial(program)
    for call in calls:
        move = step(call)
        verdict = move.check(plan)
        assert verdict, f"{move}: {verdict}"
        before = plan
        plan = move.rewrite(plan)
        assert before == initial(program) or plan is not before
    return plan


def agree(plan: Plan, seeds: int = 2) -> None:
    """The plan computes what NumPy computes, for several inputs and orders of the blocks."""
    program = plan.program
    for seed in range(seeds):
        arrays = inputs(program, seed)
        wanted, got = reference(program, arrays), run_plan(plan, arrays, seed)
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5, err_msg=f"{program.name}.{name}")


def right(program: Program, *calls: Step) -> Plan:
    """The plan after these steps: it runs every instance once, it is legal, and it computes the right thing."""
    plan = rewritten(program, *calls)
    check_plan(plan)
    judgement = judge(plan)
    assert judgement.emittable, str((*judgement.refusals, *judgement.obligations)[0])
    agree(plan)
    return plan


def refusal(program: Program, *calls: Step) -> str:
    """What the check of the last step says when it refuses."""
    verdict = step(calls[-1]).check(rewritten(program, *calls[:-1]))
    assert not verdict, f"{step(calls[-1])} applies"
    assert verdict.what
    return str(verdict)


def judged_illegal(program: Program, *calls: Step) -> str:
    """What the four questions say of a plan that they refuse; running it goes wrong as well."""
    plan = rewritten(program, *calls)
    refusals = judge(plan).refusals
    assert refusals, "the plan is judged legal"
    failed = False
    try:
        agree(plan)
    except AssertionError:
        failed = True
    assert failed, f"judged illegal, but it runs right: {refusals[0]}"
    return str(refusals[0])
