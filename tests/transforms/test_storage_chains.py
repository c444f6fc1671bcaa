"""Chains of random transformations, storage included: what is judged legal computes the right thing with its real storage."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from explorer.ir.plan import Plan, initial
from explorer.ir.tree import Loop
from explorer.poly.judge import judge
from explorer.transforms.base import Transform, catalogue
from tests.oracle import check_plan
from tests.transforms.programs import (
    all_sum,
    blur,
    chain,
    column_sum,
    conv1d,
    matmul,
    matmul_direct,
    row_sum,
    softmax,
    stencil1d,
    triangle_sum,
)
from tests.transforms.storage import agree, step

PROGRAMS: dict[str, Callable] = {
    "all_sum": lambda: all_sum(13), "blur": lambda: blur(7), "chain": lambda: chain(3, 5), "column_sum": lambda: column_sum(5, 3),
    "conv1d": lambda: conv1d(5), "matmul": lambda: matmul(3, 5, 6), "matmul_direct": lambda: matmul_direct(3, 4, 5),
    "row_sum": lambda: row_sum(3, 7), "softmax": lambda: softmax(2, 6), "stencil1d": lambda: stencil1d(9),
    "triangle_sum": lambda: triangle_sum(5),
}
CHAINS = 5
LENGTH = 7


def _moves(plan: Plan, pick: random.Random) -> Iterator[Transform]:
    """Steps with small arguments; many do not apply."""
    loop, other = pick.choice(list(plan.loops)), pick.choice(list(plan.loops))
    leaf = pick.choice(plan.leaves)[0].id
    array = pick.choice(list(plan.array_of))
    size, role = pick.choice((2, 3, 4)), pick.choice(("block.x", "thread.x", "thread.y", "block.y"))
    inner = next((n.id for n in plan.loops[loop].body if isinstance(n, Loop)), other)
    kinds = ("split", "bind", "stage", "pipeline", "contract", "collect", "rfactor", "accumulate", "compute_at", "inline",
             "interchange", "launch", "cut")
    calls = {
        "split": ("split", loop, size), "bind": ("bind", loop, role), "interchange": ("interchange", loop, inner),
        "stage": ("stage", array, loop, pick.choice(("shared", "register")), pick.choice((1, 1, 2))),
        "pipeline": ("pipeline", loop, size, {"asynchronous": pick.random() < 0.6, "buffers": pick.choice((0, 0, 0, 2))}),
        "contract": ("contract", array, pick.choice(("register", "shared"))),
        "collect": ("collect", leaf, pick.choice(("shuffle", "shared", "atomic", "kernel", "last_block", "grid", "cluster"))),
        "rfactor": ("rfactor", leaf, loop), "accumulate": ("accumulate", array), "compute_at": ("compute_at", leaf, loop),
        "inline": ("inline", array),
        "launch": ("launch", plan.kernels[0].id, {"after": pick.choice(plan.kernels[0].body).id}), "cut": ("cut", loop, 2),
    }
    for kind in pick.sample(kinds, 6):
        yield step(calls[kind])


def _discharged(plan: Plan) -> Plan | None:
    """The plan with a strategy for every open obligation, if the offered ones are enough."""
    for _ in range(4):
        judgement = judge(plan)
        if not judgement.obligations:
            return None if judgement.refusals else plan
        finding = judgement.obligations[0]
        steps = [c for c in catalogue()["collect"].candidates(plan, finding.nodes[0]) if c.check(plan)]
        made = [new for c in steps if not judge(new := c.rewrite(plan)).refusals
                and len(judge(new).obligations) < len(judgement.obligations)]
        if not made:
            return None
        plan = made[0]
    return None


@pytest.mark.parametrize("name", PROGRAMS)
def test_legal_chains_compute_the_right_thing(name: str) -> None:
    applied: list[str] = []
    for seed in range(CHAINS):
        pick = random.Random(f"{name} {seed}")
        plan, done = initial(PROGRAMS[name]()), []
        for _ in range(3 * LENGTH):
            move = next((m for m in _moves(plan, pick) if m.check(plan)), None)
            if move is None:
                continue
            new = move.rewrite(plan)
            if not judge(new).refusals:
                plan = new
                done.append(str(move))
            if len(done) >= LENGTH:
                break
        closed = _discharged(plan)
        try:
            check_plan(plan)
            if closed is not None:
                agree(closed)
        except AssertionError as error:
            raise AssertionError(f"{name}, seed {seed}: {'.'.join(done)}\n{error}") from error
        applied += done
    assert len({a.split("(")[0] for a in applied}) >= 5, applied
