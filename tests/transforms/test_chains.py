"""Chains of random transformations: whatever applies, every instance still runs exactly once and the maps stay inverse."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from explorer.ir.plan import Plan, initial
from explorer.ir.tree import Loop
from explorer.transforms.base import Transform
from explorer.transforms.bind import Bind
from explorer.transforms.coalesce import Coalesce
from explorer.transforms.cut import Cut
from explorer.transforms.distribute import Distribute
from explorer.transforms.fuse import Fuse
from explorer.transforms.interchange import Interchange
from explorer.transforms.launch import Launch
from explorer.transforms.reorder import Reorder
from explorer.transforms.reverse import Reverse
from explorer.transforms.shift import Shift
from explorer.transforms.skew import Skew
from explorer.transforms.tile import Tile
from explorer.transforms.unroll import Unroll
from explorer.transforms.vectorize import Vectorize
from tests.oracle import check_plan, run_order
from tests.transforms.nests import PROGRAMS

CLASSIC: tuple[type[Transform], ...] = (
    Bind, Coalesce, Cut, Distribute, Fuse, Interchange, Launch, Reorder, Reverse, Shift, Skew, Tile, Unroll, Vectorize)
CHAINS = 30
"""Chains per program; with 13 programs 390."""
LENGTH = 6


def _random_steps(plan: Plan, pick: random.Random) -> Iterator[Transform]:
    """Steps with small arguments, most of which apply somewhere; refusals are part of the test."""
    loops = list(plan.loops)
    nodes = [n for n in plan.ids if n not in [k.id for k in plan.kernels]]
    one, two, three = (pick.choice(loops) for _ in range(3))
    size = pick.choice((2, 3, 4))
    inner = plan.loops[one].body[0]
    below = inner.id if isinstance(inner, Loop) else two
    yield from (
        Tile((one,), (size,)), Tile((one, below), (size, 2)), Coalesce((one, below)), Interchange(one, two),
        Interchange(one, below), Reorder((below, one)), Reorder((three, two, one)), Fuse(one, two),
        Distribute(one, plan.loops[one].body[0].id), Skew(one, two, pick.choice((-1, 1, 2))),
        Skew(below, one, pick.choice((-2, 1))), Shift(one, pick.choice((-3, 2))),
        Shift(one, pick.choice((-1, 1, 2)), of=pick.choice(plan.loops[one].body).id), Reverse(one),
        Cut(one, pick.choice((-1, 1, 2))), Bind(one, "thread.x", count=size),
        Bind(one, pick.choice(("block.x", "block.y", "thread.x", "thread.y", "lane", "warp", "seq"))),
        Unroll(one), Vectorize(one), Launch(plan.kernels[0].id, after=pick.choice(sorted(nodes))),
        Launch(plan.kernels[0].id, pack=plan.kernels[-1].id),
    )


@pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_chains_run_every_instance_once(make: Callable) -> None:
    start = initial(make())
    check_plan(start)
    applied: set[str] = set()
    for seed in range(CHAINS):
        pick = random.Random(seed)
        plan, done = start, []
        while len(done) < LENGTH:
            steps = [step for step in _random_steps(plan, pick) if step.check(plan)]
            if not steps:
                break
            step = pick.choice(steps)
            before, plan = plan, step.rewrite(plan)
            done.append(str(step))
            try:
                check_plan(plan)
            except AssertionError as error:
                raise AssertionError(f"{make().name}: {' then '.join(done)}: {error}") from error
            if isinstance(step, (Bind, Coalesce, Cut, Launch, Unroll, Vectorize)):
                assert _order(plan, start) == _order(before, start), f"{' then '.join(done)} changed the order"
            applied.add(type(step).name)
    assert len(applied) > 6, f"the chains only reached {sorted(applied)}"


def _order(plan: Plan, start: Plan) -> list[tuple[str, list[int]]]:
    """The instances as they run, each by the program's own loops: a part of a cut that is divided has a dimension more."""
    dims = {s.name: s.dims for s in plan.program.statements}
    own = {s.name: [dims[s.name].index(d) for d in s.dims if d in dims[s.name]] for s in start.program.statements}
    return [(statement, [point[at] for at in own[statement]]) for _, _, statement, point in run_order(plan)]


@pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_candidates_are_well_formed(make: Callable) -> None:
    """At every node every candidate is checked without an exception, few are offered, and those that apply rewrite."""
    plan = initial(make())
    for node in sorted(plan.ids):
        for kind in CLASSIC:
            steps = list(kind.candidates(plan, node))
            assert len(steps) <= 9
            if any(step.check(plan) for step in steps):
                assert kind.offers(plan, node)
            for step in steps:
                verdict = step.check(plan)
                assert verdict or verdict.what
                if verdict:
                    check_plan(step.rewrite(plan))
                    assert eval(str(step), {kind.name: kind}) == step


def test_nothing_is_offered_without_a_word() -> None:
    """Each transformation says why it cannot stand at a statement, and at a name that is not there."""
    plan = initial(PROGRAMS["matmul"]())
    for kind in CLASSIC:
        for node in ("S1", "nowhere"):
            verdict = kind.offers(plan, node)
            assert not verdict, f"{kind.name} stands at {node}"
            assert verdict.what
            assert not list(kind.candidates(plan, node))
