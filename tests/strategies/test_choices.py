"""The strategies' free choices: the first is auto's, each of the others is one legal schedule, and all compute the same."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice

import pytest

import explorer as ex
from benchmarks import fused_programs, product_programs
from benchmarks.reduction_program import reduction
from explorer.errors import TransformError
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import references
from explorer.strategies.auto import auto
from explorer.strategies.choices import Variant, as_written, decisions, together, variants
from explorer.transforms.approximate import as_computed
from tests.programs import two_sums

PROGRAMS = {
    "rows": lambda: reduction((40, 300), (1,), "f32", "sum"),
    "columns": lambda: reduction((300, 40), (0,), "f16", "max"),
    "softmax": lambda: fused_programs.softmax.schedule(M=24, N=1024),
    "elementwise": lambda: fused_programs.adam.schedule(M=5000),
    "row and column": lambda: fused_programs.layernorm_gradient.schedule(M=64, N=256),
    "statistics": lambda: fused_programs.batchnorm_relu.schedule(B=4, C=6, P=64),
    "default": lambda: ex.workloads.get("matmul").definition.schedule(M=20, N=24, K=12),
    "product": lambda: ex.workloads.get("matmul").definition.schedule(M=72, N=64, K=48),
    "two kernels": lambda: two_sums.schedule(M=48, N=96),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_variants_are_legal_right_and_replay(name: str) -> None:
    written = PROGRAMS[name]()
    found = [v for v in islice(variants(written, each=4), 5)]
    made = [v.schedule for v in found]
    assert made[0].plan == auto(written).plan
    assert len(made) > 2
    assert len({v.label for v in found}) == len(found)
    assert len({emit(s.plan).text for s in made}) > len(made) // 2
    assert all(schedule.judgement.emittable for schedule in made)
    assert written.replay(made[-1].steps).plan == made[-1].plan
    held, device = seeded_arrays(written.source), CpuDevice(checked=False)
    for variant, built in zip(found, device.build_many([emit(s.plan) for s in made]), strict=True):
        program = as_computed(written.source, variant.schedule.plan)
        expected, _ = references(program, held, random=True)
        checks = check_outputs(program, device.run(built, held), *expected)
        assert checks
        assert all(checks), f"{variant}: {next(c for c in checks if not c)}"


def test_a_short_search_sees_many_tiles() -> None:
    (turn,) = decisions(product_programs.product_nn.schedule(M=1000, N=1504, K=776))
    tiles = [c.label.split(" a block")[0] for c in turn.choices[:16]]
    assert len(set(tiles)) >= 5
    assert len({c.label for c in turn.choices}) == len(turn.choices)


def test_tilings_of_an_attention_are_one_decision() -> None:
    written = product_programs.attention.schedule(B=4, H=16, L=512, D=64)
    (turn,) = decisions(written)
    assert turn.stage == "attention"
    assert len({c.free for c in turn.choices}) == len(turn.choices) > 8
    first, second = islice(variants(written, each=3), 2)
    assert first.schedule.plan == auto(written).plan
    assert second.schedule.plan != first.schedule.plan
    assert second.schedule.judgement.emittable
    assert len(second.schedule.plan.kernels) == 1
    assert second.rank_us > first.rank_us


def test_one_kernel_changes_at_a_time_the_cheapest_first_then_several_together() -> None:
    found = list(variants(two_sums.schedule(M=4096, N=4096), each=6))
    turns = decisions(two_sums.schedule(M=4096, N=4096))
    assert [d.stage for d in turns] == ["spread", "spread"]
    assert found[0].changes == ()
    singles = [v for v in found if len(v.changes) == 1]
    assert found[1 : 1 + len(singles)] == singles
    assert [len(v.changes) for v in found[1 + len(singles):]] == [2]
    assert {v.changes[0].kernel for v in singles} == {d.kernel for d in turns}
    assert all(v.label.startswith(v.changes[0].kernel + ": ") for v in singles)
    base = found[0].rank_us
    assert base is not None
    assert singles[0].rank_us <= singles[-1].rank_us
    assert found[-1].rank_us == pytest.approx(base + sum(
        c.rank_us - next(d for d in turns if d.kernel == c.kernel).choices[0].rank_us for c in found[-1].changes))
    assert len(found[-1].schedule.plan.kernels) == len(found[0].schedule.plan.kernels) == 2


def test_ways_to_join_parts_are_choices_of_their_own_and_nearly_the_same_numbers_of_parts_are_not() -> None:
    (turn,) = decisions(reduction((1 << 20,), (0,), "f32", "sum"))
    assert len({c.label for c in turn.choices}) == len(turn.choices)
    found: dict[tuple[str, str], list[int]] = {}
    for choice in turn.choices:
        if spread := re.fullmatch(r"(.*), (\d+) parts joined (.*)", choice.label):
            found.setdefault((spread[1], spread[3]), []).append(int(spread[2]))
    assert {join for _, join in found} == {"by handoff", "by another launch", "in a cluster"}
    assert any(len(parts) > 3 for parts in found.values())
    for several in found.values():
        assert all(abs(b - a) > 0.1 * a for n, b in enumerate(several) for a in several[:n])


def test_each_decision_begins_with_what_the_model_finds_cheapest() -> None:
    (turn,) = decisions(reduction((8192, 8192), (1,), "f32", "sum"))
    costs = [c.rank_us for c in turn.choices]
    assert len(costs) > 10
    assert costs[0] == pytest.approx(min(costs), abs=0.01)
    assert costs[-1] > costs[0]


def test_a_program_that_only_the_default_knows_has_other_block_sizes() -> None:
    (turn,) = decisions(PROGRAMS["default"]())
    assert (turn.stage, turn.kernel) == ("rest", "")
    assert [c.label for c in turn.choices] == [f"default, {n} threads" for n in (256, 64, 128, 512)]
    made = turn.choices[1](PROGRAMS["default"]())
    assert {x.extent for x in made.plan.loops.values() if x.role == "thread.x"} == {64}


def ridden(schedule: ex.Schedule) -> bool:
    """Whether the kernel that writes dx also adds up dw."""
    plan = schedule.plan
    made = [{plan.statement_of[leaf.statement].target.array for leaf, _, own in plan.leaves if own is k} for k in plan.kernels]
    return any("dx" in arrays and any(a.startswith("dw") for a in arrays) for arrays in made)


def test_column_sums_need_not_ride() -> None:
    written = fused_programs.layernorm_gradient.schedule(M=2048, N=768)
    found = list(variants(written))
    assert found[0].label.startswith("auto: rows and columns fused, ")
    apart = next(v for v in found if v.label == "no column sums along rows")
    assert ridden(found[0].schedule)
    assert not ridden(apart.schedule)


def test_variants_begin_with_the_program_as_written_whatever_was_done_to_it() -> None:
    written = reduction((64, 128), (1,), "f32", "sum")
    shaped = auto(written).undo(2)
    assert as_written(shaped).plan == written.plan
    assert [v.label for v in variants(shaped, each=3)] == [v.label for v in variants(written, each=3)]


def test_choices_that_do_not_fit_are_refused() -> None:
    written = reduction((64, 128), (1,), "f32", "sum")
    base, one = islice(variants(written), 2)
    lost: Variant = replace(one, changes=(replace(one.changes[0], kernel="nowhere"),))
    with pytest.raises(TransformError, match="does not go with the other choices"):
        _ = lost.schedule
    wrong = replace(one, changes=(replace(one.changes[0], label="nothing", take=lambda s: s),))
    with pytest.raises(TransformError, match="nothing does not fit"):
        _ = wrong.schedule
    assert together([base, one]) is None


def test_the_best_of_each_kernel_go_together() -> None:
    found = [v for v in variants(two_sums.schedule(M=4096, N=4096), each=3) if len(v.changes) == 1]
    kernels = list(dict.fromkeys(v.changes[0].kernel for v in found))
    first, other = (next(v for v in found if v.changes[0].kernel == k) for k in kernels)
    second = [v for v in found if v.changes[0].kernel == kernels[0]][1]
    both = together([first, second, other])
    assert both is not None
    assert both.changes == (*first.changes, *other.changes)
    assert together([first, second]) is None
    assert together([both, first]) is None
