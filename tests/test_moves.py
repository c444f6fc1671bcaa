"""The moves at a node: every transformation, each with arguments that really apply or a reason why not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.ir.finding import Verdict
from explorer.ir.interpret import interpret
from explorer.steps.moves import Move, Moves, moves
from explorer.transforms.base import catalogue, misfit
from tests.programs import row_sum
from tests.run_plan import run_plan

M, N = ex.sizes("M N")
NAMES = ("cross_entropy", "gauss_seidel", "layernorm", "matmul", "softmax", "stencil1d", "triangular_matmul")


@ex.program
def scaled_sum(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k] * 2.0
        y[i] = total


def start() -> ex.Schedule:
    return scaled_sum.schedule(M=5, N=7)


def workload(name: str) -> ex.Schedule:
    found = ex.workloads.get(name)
    return found.definition.schedule(**found.tiny)


def check(schedule: ex.Schedule, found: Moves) -> None:
    """Everything that holds of any list of moves."""
    assert {m.name for m in found} == catalogue().keys()
    assert [m.applies for m in found] == sorted((m.applies for m in found), reverse=True)
    for group in (True, False):
        names = [m.name for m in found if m.applies is group]
        assert names == sorted(names)
    for m in found:
        assert m.step is None or type(m.step) is catalogue()[m.name]
        if not m.applies:
            assert m.verdict.what.strip(), m.name
            continue
        assert m.step is not None
        assert not any(misfit(f, getattr(m.step, f.name)) for f in dataclasses.fields(m.step))  # type: ignore[arg-type]
        after = schedule.apply(m.step)
        assert after.judgement.legal
        assert after.plan != schedule.plan, str(m)
        assert after.steps == (*schedule.steps, m.step)


@pytest.mark.parametrize("name", NAMES)
def test_every_node_of_a_workload(name: str) -> None:
    schedule = workload(name)
    for node in schedule.plan.ids:
        check(schedule, schedule.moves(node))


@pytest.mark.parametrize("name", ["matmul", "softmax"])
def test_every_node_of_a_schedule_with_places_and_storage(name: str) -> None:
    schedule = ex.strategies.default(workload(name))
    assert schedule.plan.buffers
    for node in schedule.plan.ids:
        check(schedule, schedule.moves(node))


def test_what_is_offered_computes_the_same() -> None:
    schedule = start()
    given = {"x": np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)}
    wanted = interpret(schedule.source, given)["y"]
    ran = set()
    for node in schedule.plan.ids:
        for m in schedule.moves(node):
            if m.applies and m.step is not None and not (after := schedule.apply(m.step)).obligations:
                np.testing.assert_allclose(run_plan(after.plan, given)["y"], wanted, rtol=1e-5, err_msg=str(m))
                ran.add(m.name)
    assert ran >= {"split", "bind", "interchange", "contract", "unroll", "cut", "reverse", "stage"} - {"interchange"}


def test_what_is_expected_is_there() -> None:
    found = start().moves("k")
    shown = {str(m.step) for m in found if m.applies}
    assert {"split('k', 2)", "split('k', 4)", "bind('k', 'thread.x')", "unroll('k')", "reverse('k')"} <= shown
    assert not shown & {"bind('k', 'block.x')"} or start().bind("k", "block.x").obligations
    refused = {m.name: m.verdict for m in found if not m.applies}
    assert "interchange" in refused
    assert isinstance(refused["fuse"], Verdict)


def test_a_refusal_by_the_questions_brings_its_witness() -> None:
    schedule = workload("gauss_seidel")
    found = [m for m in schedule.moves("i") if m.step is not None and not m.applies and m.verdict.finding is not None]
    assert found
    for m in found:
        finding = m.verdict.finding
        assert finding is not None
        assert finding.why
        with pytest.raises(ex.IllegalSchedule) as caught:
            schedule.apply(m.step)  # type: ignore[arg-type]
        assert caught.value.finding == finding


def test_the_text_names_the_node_and_counts() -> None:
    found = start().moves("i")
    applying = sum(m.applies for m in found)
    lines = str(found).splitlines()
    assert lines[0] == f"moves at i: {applying} apply, {len(found) - applying} do not; → what to try"
    assert all(line.startswith("✓ ") for line in lines[1: applying + 1])
    assert max(map(len, lines)) <= 120
    refused = "\n".join(lines[applying + 1:]).replace("\n    ", " ").splitlines()
    assert all(line.startswith("✗ ") and ": " in line for line in refused)
    assert len(refused) == len({m.reason for m in found if not m.applies}), "a line for each reason"
    assert all(sum(f"{m.step or m.name}" in line and m.reason in line for line in refused) == 1 for m in found if not m.applies)
    assert repr(found) == str(found)


def test_the_text_says_what_to_try_or_why_nothing() -> None:
    text = str(workload("matmul").moves("S1")).replace("\n    ", " ")
    assert "✗ join, launch_bounds, swap_axes: S1 is a statement, not a kernel → select the kernel matmul\n" in text
    assert "✗ collect: no bound loop carries the reduction of total → bind('k', 'thread.x')\n" in text
    assert "✗ factor_out: all terms of S1 share no factor (its term is total += a[i, k] * b[k, j])\n" in text


MORE = ("conv2d", "jacobi2d", "attention_softmax", "batched_matmul")


@pytest.mark.parametrize("name", [*NAMES, *MORE])
def test_a_greyed_move_says_more_than_that_it_is_grey(name: str) -> None:
    schedule = workload(name)
    for node in schedule.plan.ids:
        for m in schedule.moves(node):
            if m.step is None and not m.applies:
                assert "nothing to do" not in m.verdict.what
                assert "no arguments of" not in m.verdict.what, (m.name, node)
                assert m.verdict.why or m.verdict.hint, (m.name, node, m.verdict.what)


ALONE = [kind for kind in catalogue().values() if sum(f.default is dataclasses.MISSING for f in dataclasses.fields(kind)) == 1]


@pytest.mark.parametrize("name", ["softmax", "matmul", "attention_softmax"])
def test_what_the_palette_refuses_the_move_refuses(name: str) -> None:
    """Where the node is all that a move needs: what could be made and mostly is not worth it is not proposed, and not refused."""
    schedule, other = workload(name), 0
    for node in schedule.plan.ids:
        for kind in ALONE:
            offer, (needed, *_) = kind.offers(schedule.plan, node), dataclasses.fields(kind)
            if offer or needed.metadata["kind"] not in ("loop", "leaf", "kernel"):
                continue
            verdict, new = schedule.try_step(kind(node))  # type: ignore[call-arg]
            if verdict and new != schedule.plan:
                assert offer.what.startswith("not proposed: "), f"{kind.name} at {node}: {offer}, and it applies"
                other += 1
    assert other


def test_a_long_loop_is_not_proposed_to_be_unrolled_and_can_be() -> None:
    long = scaled_sum.schedule(M=5, N=1000)
    (found,) = (m for m in long.moves("k") if m.name == "unroll")
    assert str(found) == ("✗ unroll: not proposed: k runs 1000 times, and its body would be written as often → "
                          "split('k', 8) and unroll('k.i'); or unroll('k') all the same")
    assert long.unroll("k").judgement.legal
    assert long.split("k", 8).unroll("k.i").judgement.legal


def test_a_move_without_a_step_does_not_apply() -> None:
    assert not Move("split", None, Verdict()).applies
    assert str(Move("split", None, Verdict("nothing to split"))) == "✗ split: nothing to split"


def test_an_unknown_node_is_refused_with_the_nearest() -> None:
    with pytest.raises(ex.TransformError, match="there is no node 'K'") as caught:
        start().moves("K")
    assert "k" in caught.value.hint
    with pytest.raises(ex.TransformError, match="there is no node 3"):
        moves(start(), 3)  # type: ignore[arg-type]


def test_asking_changes_nothing() -> None:
    schedule = start()
    before = str(schedule), schedule.steps, hash(schedule.plan)
    for node in schedule.plan.ids:
        schedule.moves(node)
    assert (str(schedule), schedule.steps, hash(schedule.plan)) == before


PLAIN = {"loop": "k", "leaf": "S1", "array": "y"}


@pytest.mark.parametrize(("move", "kind"), sorted({(name, f.metadata["kind"]) for name, move in catalogue().items()
                                                   for f in dataclasses.fields(move) if f.metadata["kind"] in PLAIN}))
def test_a_name_that_means_nothing_is_answered_with_those_that_do(move: str, kind: str) -> None:
    s = row_sum.schedule(M=8, N=32)
    declared = dataclasses.fields(catalogue()[move])
    others = {**PLAIN, "loops": ("i", "k"), "int": 2, "ints": (2, 2)}
    for wanted in (f for f in declared if f.metadata["kind"] == kind):
        given = {f.name: others.get(f.metadata["kind"], "k") for f in declared if f.default is dataclasses.MISSING}
        with pytest.raises(TransformError) as refused:
            getattr(s, move)(**{**given, wanted.name: "nothing"})
        error = refused.value
        assert error.why or error.hint, error.message()
        assert "nothing is" not in error.what, error.message()
