"""A plan's last IR, executed in an order that a seed draws; what goes wrong on the way is an error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.ir.plan import Plan
from explorer.kernel.interpreter import Execution, Order, execute
from explorer.kernel.launches import plan_ir, standing

TEAMS = ("block", "warp", "grid", "thread")


class Hazard(AssertionError):
    """The plan does something that no order of blocks and threads makes right."""


def run_plan(plan: Plan, arrays: Mapping[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
    """Outputs of the plan on copies of `arrays`; `seed` shuffles the threads and says which of them go together."""
    run = outcome(plan, arrays, seed)
    if run.hazards:
        raise Hazard("\n".join(map(str, run.hazards)))
    return run.outputs


def outcome(plan: Plan, arrays: Mapping[str, np.ndarray], seed: int = 0) -> Execution:
    """The same of a plan that may be illegal, with what goes wrong beside it."""
    return execute(plan_ir(plan, barriers=standing), arrays, Order(TEAMS[seed % 4], "shuffled", seed))
