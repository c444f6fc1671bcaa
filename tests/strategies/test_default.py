"""The default strategy on every workload: legal, right on the CPU device, accepted by NVRTC at typical sizes."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.ir.tree import Loop, walk
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.nvrtc.compiler import compile_module
from explorer.run.verify.outputs import check_outputs
from explorer.run.verify.reference import references
from explorer.strategies.default import REGISTER_WORDS

NAMES = ex.workloads.names()
ODD = (17, 5, 11, 13, 3, 2, 3)
"""Sizes in order of their names; with 4 threads to a block nothing divides."""


def program(name: str) -> ex.Definition:
    return ex.workloads.get(name).definition


def typical(name: str) -> ex.Schedule:
    return ex.strategies.default(program(name).schedule(**ex.workloads.get(name).typical))


def proved(schedule: ex.Schedule) -> ex.Schedule:
    assert schedule.judgement.legal
    assert not schedule.obligations
    return schedule


@pytest.mark.parametrize("name", NAMES)
def test_it_is_legal_and_right(name: str) -> None:
    workload = ex.workloads.get(name)
    start = program(name).schedule(**workload.tiny)
    schedule = proved(ex.strategies.default(start))
    assert type(schedule) is ex.Schedule
    assert schedule.steps
    assert start.steps == ()
    run = schedule.run(workload.arrays(workload.tiny), device="cpu", seeds=1, time=False, ragged=False,
                       reference=workload.reference)
    assert run.correct
    assert {c.array for c in run.checks} == {a.name for a in start.source.parameters if a.role != "in"}


def test_it_is_right_where_nothing_divides() -> None:
    made = []
    for name in NAMES:
        definition = program(name)
        made.append(proved(ex.strategies.default(definition.schedule(**dict(zip(definition.sizes, ODD, strict=False))), 4)))
    assert sum(any(step.name == "split" for step in s.steps) for s in made) > len(made) / 2
    device = CpuDevice(checked=True, seeds=2)
    for name, schedule, built in zip(NAMES, made, device.build_many([emit(s.plan) for s in made]), strict=True):
        workload, source = ex.workloads.get(name), schedule.source
        arrays = workload.arrays(dict(source.sizes), seed=3)
        held = {a.name: arrays[a.name] for a in source.parameters if a.name in arrays}
        for outputs in device.run_seeds(built, held):
            expected, _ = references(source, held, workload.reference)
            checks = check_outputs(source, outputs, *expected)
            assert checks, name
            assert all(checks), (name, [str(c) for c in checks])


@pytest.mark.parametrize("name", NAMES)
def test_it_compiles_at_typical_sizes(name: str) -> None:
    schedule = proved(typical(name))
    module = schedule.module()
    compiled = compile_module(module)
    assert {launch.kernel for launch in module.launches} == compiled.kernels.keys()
    for kernel in schedule.plan.kernels:  # whatever loops there are, some of them are spread over threads
        loops = [n for n in walk(kernel.body) if isinstance(n, Loop)]
        assert not loops or any(x.is_thread for x in loops), kernel.id


@pytest.mark.parametrize("name", NAMES)
def test_registers_hold_what_they_can(name: str) -> None:
    schedule = typical(name)
    assert sum(b.size for b in schedule.plan.buffers if b.space == "register") <= REGISTER_WORDS


@pytest.mark.parametrize(("row", "space"), [(REGISTER_WORDS - 8, "register"), (REGISTER_WORDS + 1, "")])
def test_a_row_goes_to_registers_while_it_is_short(row: int, space: str) -> None:
    schedule = ex.strategies.default(program("bias_residual_layernorm").schedule(M=4, N=row))
    assert next((b.space for b in schedule.plan.buffers if b.name == "row"), "") == space


def test_the_guard_of_a_coalesced_nest_divides_nothing() -> None:
    text = ex.strategies.default(program("matmul").schedule(M=1001, N=999, K=64)).cuda
    guards = [line.strip() for line in text[text.index('extern "C"'):].splitlines() if line.strip().startswith("if (")]
    assert guards == ["if (256 * i + i_i < 999999) {"]


def test_threads_to_a_block() -> None:
    start = program("adam").schedule(N=1000)
    schedule = ex.strategies.default(start, threads=64)
    assert schedule.module().launches[0].block == (64, 1, 1)
    assert schedule.module().launches[0].grid == (16, 1, 1)
    for wrong in (0, -1, 1025, 2.5, "many", True):
        with pytest.raises(ex.TransformError, match="1 to 1024 threads"):
            ex.strategies.default(start, threads=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "sizes"), [("matmul", {"M": 0, "N": 3, "K": 4}), ("matmul", {"M": 3, "N": 3, "K": 0}),
                                             ("sum_rows", {"M": 1, "N": 1}), ("adam", {"N": 0})])
def test_nothing_to_do_and_one_of_everything(name: str, sizes: dict[str, int]) -> None:
    run = proved(ex.strategies.default(program(name).schedule(**sizes))).run(device="cpu", seeds=1, time=False, ragged=False)
    assert run.correct
