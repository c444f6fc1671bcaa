"""About how long a plan takes on a GPU: one rule for every step of a strategy, coarse enough to hold for all of them.

A kernel takes a launch and the longer of two times: what its warps request from global memory at the measured bandwidth, and
the requests for reading, one at a time in each resident warp, at the latency of memory (J. D. C. Little, "A proof for the queuing
formula L = λW", Operations Research 9(3), 1961).  Caches and several loads of one warp in flight are left out, so the estimate is
too long where those help; it shows what a step changes, and is no prediction.
"""

from __future__ import annotations

from ..api import Schedule
from ..gpu.spec import Gpu
from ..run.facts import Facts
from ..strategies.stitching.rates import LATENCY_US, LAUNCH_US, bandwidth_of

RULE = ("each kernel: a launch, and the longer of its requested bytes at the bandwidth and its reads one after the other in each "
        "resident warp; without caches")
"""The rule in words."""


def estimate(schedule: Schedule, gpu: Gpu) -> tuple[float, float]:
    """Microseconds on a GPU by the rule of this module's text, and the bytes that the warps request."""
    facts = Facts(schedule.source, schedule.plan, gpu)
    total = 0.0
    for r in facts.resources:
        here = [a for a in facts.accesses if a.space == "global" and _kernel(schedule, a.leaf) == r.kernel]
        per_block = -(-r.threads_per_block // gpu.warp_size)
        warps = per_block * r.grid[0] * r.grid[1] * r.grid[2]
        resident = max(1, min(warps, gpu.multiprocessors * facts.occupancy[r.kernel].blocks_per_sm * per_block))
        waiting = sum(a.requests for a in here if not a.writes) * LATENCY_US / resident
        total += LAUNCH_US + max(sum(a.bytes for a in here) / bandwidth_of(gpu), waiting)
    return total, facts.requested_bytes


def _kernel(schedule: Schedule, leaf: str) -> str:
    kernel = schedule.plan.kernel_of(leaf)
    return kernel.id if kernel else ""
