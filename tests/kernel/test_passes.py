"""Passes of the kernel IR: what comes out of each one runs right, and each can be looked at."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import explorer as ex
from explorer import strategies, workloads
from explorer.errors import ScheduleError
from explorer.ir.plan import Plan
from explorer.kernel import passes
from explorer.kernel.emit import emit
from explorer.kernel.module import CudaModule
from explorer.kernel.nodes import Do, Node
from explorer.kernel.stages import Stage, _changed, stages
from explorer.kernel.traverse import map_bodies
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.transforms.approximate import as_computed
from tests.properties import trial
from tests.properties.equal import difference

M, N = ex.sizes("M N")


NAMES = ("softmax", "layernorm", "matmul", "conv2d", "sum_all", "bias_gelu", "argmax_rows", "jacobi2d")


def automatic(name: str) -> Schedule:
    workload = workloads.get(name)
    return strategies.auto(workload.definition.schedule(**workload.tiny))


def wrong(modules: list[tuple[str, Schedule, CudaModule]]) -> list[str]:
    """What is not as the interpreter has it; compiled together."""
    found = []
    for (label, schedule, _), built in zip(modules, CpuDevice().build_many([m for _, _, m in modules]), strict=True):
        arrays = seeded_arrays(schedule.source, 1)
        wanted = as_computed(schedule.source, schedule.plan)
        (outputs,) = CpuDevice(seeds=1).run_seeds(built, arrays)
        if difference(wanted, arrays, outputs):
            found.append(label)
    return found


def test_what_comes_out_of_a_pass_runs_right() -> None:
    """Automatic schedules of workloads, printed after each pass."""
    every = [(name, automatic(name)) for name in NAMES]
    assert not wrong([(f"{name} after {p}", s, emit(s.plan, after=p)) for name, s in every for p in passes.names()])


def test_random_schedules_run_right_after_any_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of moves; each one's text is run as a pass drawn for it leaves it."""
    pick, seen = random.Random(3), Counter[str]()

    def drawn(plan: Plan) -> CudaModule:
        name = pick.choice(passes.names())
        seen[name] += 1
        return emit(plan, after=name)

    monkeypatch.setattr(trial, "emit", drawn)
    tally = trial.Trial(shrinks=0).run(2030, range(32))
    assert not tally.found, "\n".join(map(str, tally.found))
    assert set(seen) == set(passes.names())


def test_a_pass_that_loses_a_statement_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(body: tuple[Node, ...], context: object) -> tuple[Node, ...]:
        return tuple(map_bodies(n, lambda inner: forgetful(inner, context)) for n in body
                     if not (isinstance(n, Do) and n.site.statement.update))

    monkeypatch.setattr(passes, "PASSES", (*passes.PASSES, forgetful))
    s = automatic("matmul")
    with pytest.raises(ScheduleError, match="the text of S1 does not run in every instance"):
        emit(s.plan)
    assert wrong([("matmul", s, emit(s.plan, after="forgetful"))]) == ["matmul"]


def test_every_pass_says_what_it_does_before_and_after() -> None:
    for change in passes.PASSES:
        page = __import__(change.__module__, fromlist=["x"]).__doc__
        assert "Before::" in page, change.__name__
        assert "After::" in page, change.__name__


@ex.program
def totals(x: ex.f32[M, N], y: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
        for k in range(N):
            y[i] += x[i, k]


def test_stages_show_what_each_pass_changed() -> None:
    s = totals.schedule(M=8, N=37).bind("i", "block.x").accumulate("y").contract("y_acc").split("k", 8, inner="u").unroll("u")
    found = stages(s.plan)
    assert [f.name for f in found] == list(passes.names())
    batch = next(f for f in found if f.name == "batch_loads")
    assert batch.changed
    lines = batch.text.split("\n")
    assert any("x_u" in lines[n - 1] for n in batch.changed)
    assert found[-1].text == s.cuda[s.cuda.index('extern "C"'):].rstrip("\n")


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_nodes_count_from_the_first_kernel(name: str) -> None:
    """What a node has of a stage is what it has of the whole text after that pass."""
    s = automatic(name)
    for found in stages(s.plan):
        whole = emit(s.plan, after=found.name)
        lines, own = whole.text.split("\n"), found.text.split("\n")
        for node, spans in whole.source_map.items():
            texts = [lines[first - 1 : last] for first, last in spans]
            assert [own[first - 1 : last] for first, last in found.source_map[node]] == texts, (found.name, node)


def test_changed_and_removed_lines_are_counted() -> None:
    assert _changed("a\nb\nc", "a\nB\nc") == ((2,), 0)
    assert _changed("a\nb\nc", "a\nc") == ((), 1)
    assert _changed("a\nb\nc\nd", "a\nX\nd\ne") == ((2, 4), 1)
    edits = (((), 0), ((), 2), ((1,), 0), ((1, 2), 1))
    said = [Stage("vectorize", "", "x", changed, removed).change for changed, removed in edits]
    assert said == ["no line changed", "2 lines removed", "1 line changed", "2 lines changed, 1 removed"]
    assert Stage(passes.names()[0], "", "x").change == "the first pass"


def test_ir_of_a_schedule() -> None:
    s = totals.schedule(M=8, N=32).bind("i", "block.x")
    assert str(s.ir(after="vectorize")).startswith("after vectorize: ")
    assert s.ir().name == passes.names()[-1]
    with pytest.raises(ScheduleError, match="the passes are"):
        s.ir(after="nothing")


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_a_statement_are_lines_of_the_loops_around_it(name: str) -> None:
    """Wide loads and guards, too, whatever pass wrote them; loops that nothing in the text shows have no lines."""
    plan = automatic(name).plan
    for found in passes.names():
        lines = {node: {n for first, last in spans for n in range(first, last + 1)}
                 for node, spans in emit(plan, after=found).source_map.items()}
        for leaf, above, _ in plan.leaves:
            for loop in above:
                lost = lines.get(leaf.id, set()) - lines.get(loop.id, lines.get(leaf.id, set()))
                assert not lost, (found, leaf.id, loop.id, sorted(lost))
