"""The illegal order as CUDA text on the CPU device, what its orders cannot show, and the sizes that are tried."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, product

import numpy as np
import pytest

import explorer as ex
from explorer.errors import CompilerMissing
from explorer.kernel.interpreter import Order, execute
from explorer.poly.judge import judge
from explorer.run.counterexample import illegal
from explorer.run.counterexample.counterexample import counterexample
from explorer.run.counterexample.result import INTERPRETED, ON_DEVICE, Counterexample
from explorer.run.counterexample.smallest import smallest_first
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.steps.calls import read_call

from .front import schedule

N, K = ex.sizes("N K")


@ex.program
def chain(x: ex.f32[N], y: ex.f32[N, K]) -> None:
    for i in range(N):
        for k in range(K):
            y[i, k] = x[i]
    for i in range(N - 3):
        for k in range(K):
            y[i + 3, k] = y[i + 3, k] + y[i, k]


def found(start: ex.Schedule, step: str, **options: object) -> Counterexample:
    return counterexample(start, read_call(step), again=lambda sizes: start.at(**sizes), **options)  # type: ignore[arg-type]


def computed(answer: Counterexample, start: ex.Schedule, step: str, device: CpuDevice) -> list[dict[str, np.ndarray]]:
    """What the text of the answer computes, compiled and run here once more."""
    small = start.at(**dict(answer.sizes))
    text = illegal.illegal_text(read_call(step).rewrite(small.plan))
    assert text.text == answer.text
    return list(device.run_seeds(device.build(text), seeded_arrays(small.source, 0)))


@pytest.mark.parametrize(("name", "step", "order"), [
    ("softmax", "fuse('k_2', 'k_3')", "threads and blocks in order"),
    ("gauss_seidel", "bind('i', 'thread.x')", "threads and blocks in reverse"),
    ("jacobi2d", "bind('t', 'block.x')", "threads and blocks in reverse"),
    ("sum_rows", "bind('k', 'block.x')", "threads and blocks in order"),
])
def test_the_text_itself_computes_the_wrong_cell(name: str, step: str, order: str) -> None:
    start = schedule(name)
    answer = found(start, step)
    assert (answer.shown_by, answer.order) == (ON_DEVICE, order)
    assert "__global__" in answer.text
    outputs = computed(answer, start, step, CpuDevice(watched=False, seeds=4))
    values = {f"{float(out[answer.array][answer.element]):.6g}" for out in outputs}
    assert answer.got in values
    if order == "threads and blocks in reverse":
        assert answer.expected in values, "in order the text is right"


def test_a_race_without_a_barrier_can_be_written_and_the_checks_name_it() -> None:
    start = schedule("gauss_seidel")
    answer = found(start, "bind('i', 'thread.x')")
    assert "two threads of gauss_seidel race for u[1, 1]" in answer.device
    assert "__syncthreads" not in answer.text
    with pytest.raises(ex.KernelFault, match="race"):
        computed(answer, start, "bind('i', 'thread.x')", CpuDevice(seeds=4))


def test_a_lost_update_needs_threads_that_run_together() -> None:
    answer = found(schedule("sum_rows"), "bind('k', 'thread.x', count=32)")
    assert answer.caught
    assert answer.shown_by == INTERPRETED
    assert "right values in all 4 orders" in answer.device
    assert "race for total[0]" in answer.device
    assert f"shown by {INTERPRETED}" in str(answer).replace("\n   ", "")


def test_copies_that_land_early_are_tried_on_the_device_too() -> None:
    start = schedule("matmul", "bind('i', 'block.x')", "bind('j', 'thread.x')", "split('k', 2)", "stage('a', 'k')", M=2, N=2, K=9)
    answer = found(start, "pipeline('k', 3, buffers=2)")
    assert answer.shown_by == ON_DEVICE
    assert answer.order.endswith("asynchronous copies landing at once")
    assert answer.got != "nan", "a value that a machine computes, not the poison of a copy on its way"


def test_without_a_compiler_the_interpreter_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise CompilerMissing("there is no C++ compiler")

    monkeypatch.setattr(CpuDevice, "build_many", missing)
    answer = found(schedule("softmax"), "fuse('k_2', 'k_3')")
    assert answer.caught
    assert answer.shown_by == INTERPRETED
    assert answer.text == ""
    assert answer.device == "there is no C++ compiler"


def test_a_text_that_cannot_be_written_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise ex.ScheduleError("a leaf has no place")

    monkeypatch.setattr(illegal, "emit", refuses)
    answer = found(schedule("softmax"), "fuse('k_2', 'k_3')")
    assert answer.shown_by == INTERPRETED
    assert answer.device == "the order cannot be written as CUDA: a leaf has no place"


def test_what_no_kernel_can_say_has_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise ex.ScheduleError("a leaf has no place")

    monkeypatch.setattr(illegal, "emit", refuses)
    monkeypatch.setattr(illegal, "plan_ir", refuses)
    answer = found(schedule("softmax"), "fuse('k_2', 'k_3')", seconds=1.0)
    assert not answer.caught
    assert answer.verdict.endswith("so there is no order to run: a leaf has no place")


@pytest.mark.parametrize(("name", "step"), [
    ("gauss_seidel", "bind('i', 'thread.x')"), ("gauss_seidel", "bind('j', 'thread.x')"), ("jacobi2d", "bind('t', 'block.x')"),
])
def test_the_order_of_the_witness_shows_a_wrong_cell(name: str, step: str) -> None:
    """The thread of the later instance first: then the pair runs the wrong way round."""
    start = schedule(name, H=5, W=5, T=2)
    plan = read_call(step).rewrite(start.plan)
    finding = judge(plan).refusals[0]
    assert finding.sink
    order = Order("thread", first=finding.sink.place)
    held = seeded_arrays(start.source, 0)
    wanted = illegal.expected(start.source, held).values
    ir = illegal.illegal_ir(plan)
    assert not isinstance(ir, str)
    run = execute(ir, held, order, exact=True)
    assert any(not np.allclose(run.outputs[key], value, equal_nan=True) for key, value in wanted.items())
    assert f"first {finding.sink.place[0][0]}={finding.sink.place[0][1]}" in str(order)
    right = execute(ir, held, Order("thread"), exact=True, watch=False)
    assert all(np.allclose(right.outputs[key], value, equal_nan=True) for key, value in wanted.items()), "in order it is right"


# ---- sizes ----


def test_sizes_are_found_independently() -> None:
    """The carried distance is 3, and two updates must meet: N is 7, and K need not grow with it."""
    start = chain.schedule(N=64, K=64)
    answer = found(start, "reverse('i_2')")
    assert dict(answer.sizes) == {"N": 7, "K": 1}
    for n, k in product(range(1, 8), range(1, 3)):
        if n * k < 7:
            assert not counterexample(start.at(N=n, K=k), read_call("reverse('i_2')")).caught


def test_allowed_values_are_honoured() -> None:
    start = chain.schedule(N=64, K=64)
    answer = found(start, "reverse('i_2')", allowed={"K": [5], "N": range(8, 64, 8)})
    assert dict(answer.sizes) == {"N": 8, "K": 5}


def test_sizes_that_the_steps_refuse_are_left_out() -> None:
    start = schedule("softmax", M=8, N=12)

    def again(sizes: Mapping[str, int]) -> ex.Schedule:
        if sizes["N"] % 3:
            raise ex.ScheduleError("N is a multiple of 3")
        return start.at(**sizes)

    answer = counterexample(start, read_call("fuse('k_2', 'k_3')"), again=again)
    assert dict(answer.sizes) == {"M": 1, "N": 3}


def test_sizes_go_from_little_work_to_much() -> None:
    own = {"M": 300, "N": 40, "T": 3}
    tried = list(islice(smallest_first(own), 4000))
    assert len({tuple(s.values()) for s in tried}) == len(tried)
    assert all(0 < s[name] <= own[name] for s in tried for name in own)
    assert tried[0] == {"M": 1, "N": 1, "T": 1}
    work = [s["M"] * s["N"] * s["T"] for s in tried]
    assert work.index(1 * 24 * 1) > work.index(12)
    assert own in tried
    early = tried[:150]
    assert {"M": 33, "N": 33, "T": 2} in early, "two sizes beyond a tile of 32 are tried soon"
    assert {"M": 1, "N": 12, "T": 1} in early
    assert list(smallest_first({})) == [{}]
