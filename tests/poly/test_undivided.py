"""The undivided plan: what order and flow are asked about, in place of a plan whose loops were split or cut."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from explorer.errors import ExplorerError
from explorer.ir.expr import const, var
from explorer.ir.plan import Plan
from explorer.ir.tree import Leaf
from explorer.poly.flow import check_flow
from explorer.poly.order import broken
from explorer.poly.undivided import undivided
from explorer.schedule import Schedule
from explorer.transforms.base import Transform
from explorer.transforms.cut import Cut
from explorer.transforms.split import Split
from tests.properties.programs import define
from tests.properties.trial import Trial

SEED, CHAINS = 2051, 60


TEXT = """@ex.program
def f(x: ex.f32[M, N], y: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = x[i, j] + x[i, 0]
"""


def stencil() -> Schedule:
    """A row of an array in registers for each row, so that each part of a loop that is cut has cells of its own."""
    return define(TEXT, "rows.py").schedule(M=12, N=24).stage("x", "i", space="register", read=0)


@pytest.mark.parametrize("steps", ["split('j', 4)", "split('j', 6).split('j', 2)", "cut('i', 5)", "cut('i', -1).cut('i', 3)",
                                   "split('i', 3).cut('i.i', 1)", "cut('j', 8).split('j.2', 4)"])
def test_what_was_divided_is_whole_again(steps: str) -> None:
    s: Schedule = eval(f"s.{steps}", {"s": stencil()})
    assert undivided(s.plan) == stencil().plan
    assert undivided(stencil().plan) is not s.plan


@pytest.mark.parametrize("step", ["split('j', 5)", "split('i', 4).interchange('i', 'i.i')", "reverse('j')",
                                  "bind('i', 'thread.x')"])
def test_other_plans_are_not_that_of_the_program(step: str) -> None:
    """A factor that leaves a rest has more iterations; loops that changed places, or directions, or are bound, are others."""
    s = stencil()
    assert undivided(eval(f"s.{step}", {"s": s}).plan) != s.plan


def second_leaf(plan: Plan, change: dict[str, object]) -> Plan:
    """The plan with something else in the statement of the second part."""
    def changed(leaf: Leaf) -> Leaf:
        return replace(leaf, **change) if leaf.id == "S0.2" else leaf  # type: ignore[arg-type]

    return plan.map_leaves(changed)


def mutants() -> dict[str, Plan]:
    """Plans that look like a loop in two parts, and are none."""
    plan = stencil().cut("i", 5).plan
    leaf = next(leaf for leaf, _, _ in plan.leaves if leaf.id == "S0.2")
    (slot, view), *rest = leaf.views
    first, second = plan.loops["i"], plan.loops["i.2"]
    return {
        "another row": second_leaf(plan, {"at": (("i", var("i.2") + 6), *leaf.at[1:])}),
        "another time": second_leaf(plan, {"when": tuple((x, e + 1 if x == "i.2" else e) for x, e in leaf.when)}),
        "another cell": second_leaf(plan, {"views": ((slot, replace(view, index=(view.index[0] + 1,))), *rest)}),
        "the first part's buffer": second_leaf(plan, {"views": ((slot, replace(view, buffer="x_r")), *rest)}),
        "another mechanism": second_leaf(plan, {"mechanism": "kahan"}),
        "an iteration between": plan.replace_node("i.2", replace(second, start=1)),
        "the first part shorter": plan.replace_node("i", replace(first, extent=4)),
        "in parallel": plan.replace_node("i.2", replace(second, role="block.x")),
        "ended early": plan.replace_node("i.2", replace(second, trimmed=True)),
        "an inner loop shorter": plan.replace_node("j.2", replace(plan.loops["j.2"], extent=23)),
        "a buffer of another type": replace(plan, buffers=tuple(
            replace(b, pad=1) if b.scope == "i.2" else b for b in plan.buffers)),
        "a buffer of one part in both": plan.map_leaves(lambda leaf: replace(leaf, views=tuple(
            (s, replace(v, buffer="x_r") if v.buffer.startswith("x_r") else v) for s, v in leaf.views))),
        "a buffer around both": replace(plan, buffers=tuple(
            replace(b, scope="") if b.scope == "i.2" else b for b in plan.buffers)),
    }


@pytest.mark.parametrize("name", mutants())
def test_what_differs_is_no_part(name: str) -> None:
    made = mutants()[name]
    assert {"i", "i.2"} <= undivided(made).loops.keys()


def test_two_buffers_are_not_one() -> None:
    """The second part writes one buffer and reads another: in place of both the first has one."""
    plan = stencil().cut("i", 5).plan
    own = next(b for b in plan.buffers if b.scope == "i.2")
    copy = next(leaf.id for leaf, _, _ in plan.leaves if leaf.id.startswith("x_r") and leaf.id.endswith(".2"))
    other = replace(own, name="other")

    def apart(leaf: Leaf) -> Leaf:
        views = tuple((slot, replace(v, buffer="other") if v.buffer == own.name else v) for slot, v in leaf.views)
        return replace(leaf, views=views) if leaf.id == copy else leaf

    made = replace(plan.map_leaves(apart), buffers=(*plan.buffers, other))
    assert check_flow(made)
    assert "i.2" in undivided(made).loops


def test_a_value_of_an_earlier_iteration_of_the_same_part() -> None:
    """The undivided plan has a buffer for each iteration, this one has one for four: its refusal is not taken over."""
    s = stencil().split("i", 4)
    plan = s.plan
    read = next(leaf for leaf, _, _ in plan.leaves if leaf.id == "S0")
    assert undivided(plan) == stencil().plan
    assert not check_flow(plan)
    stale = plan.map_leaves(lambda leaf: replace(leaf, views=tuple(
        (slot, replace(v, element=(const(0), *v.element[1:]))) for slot, v in leaf.views)) if leaf.id == read.id else leaf)
    assert check_flow(stale)


class Plans(Trial):
    """Random chains, of which only the plans are kept: those that are refused, too."""

    def __init__(self) -> None:
        super().__init__(shrinks=0)
        self.plans: list[Plan] = []

    def attempt(self, seed: str, schedule: Schedule, step: Transform) -> Schedule:
        try:
            verdict, plan = schedule.try_step(step)
        except ExplorerError:
            return schedule
        if plan is not None:
            self.plans.append(plan)
        return schedule.apply(step) if verdict else schedule

    def conclude(self, seed: str, schedule: Schedule) -> None:
        del seed, schedule


def test_the_answers_are_those_about_the_plan_itself() -> None:
    """Random plans, divided once more: order has the same answer, and flow refuses what it refuses of the plan."""
    trial, pick, seen = Plans(), random.Random(SEED), Counter[str]()
    for number in range(CHAINS):
        trial.chain(f"{SEED}:{number}")
    for plan in pick.sample(trial.plans, min(len(trial.plans), 260)):
        name = pick.choice(sorted(plan.loops))
        step = pick.choice((Split(name, 2), Split(name, 3), Cut(name, 1), Cut(name, -1), Cut(name, 2)))
        divided = step.rewrite(plan) if step.check(plan) else plan
        whole = undivided(divided)
        if whole is divided:
            continue
        wrong = bool(broken(divided))
        assert bool(broken(whole)) == wrong, f"order, {step}"
        seen["order refuses" if wrong else "order"] += 1
        if not wrong:
            refused, here = check_flow(whole), check_flow(divided)
            assert refused or not here, f"flow, {step}: {here[0]}"
            seen["flow refuses" if here else "flow", bool(refused)] += 1  # type: ignore[index]
    assert seen["order"] >= 50, seen
    assert seen["order refuses"] >= 3, seen
    assert seen["flow refuses", True] >= 1, seen  # type: ignore[index]
