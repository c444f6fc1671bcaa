"""How many blocks a multiprocessor should hold: a word to the compiler, which changes registers and nothing else."""

from __future__ import annotations

import pytest

import explorer as ex
from benchmarks.reduction_program import reduction
from explorer.errors import TransformError
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.steps.saved import read, to_json
from explorer.strategies.reductions import Shape, reduce
from explorer.transforms.base import catalogue

LONG = Shape(x=256, y=1, vector=4, unroll=16, parts=16)
"""One block to a multiprocessor, whose threads load sixteen times four elements before they add."""


def long_sum(length: int = 1 << 20) -> ex.Schedule:
    made = reduce(reduction((length,), (0,), "f32", "sum"), shape=LONG)
    return made.launch_bounds(made.plan.kernels[0].id, 0)


def test_it_is_the_second_launch_bound_and_stands_behind_the_kernel() -> None:
    s = long_sum()
    first = s.plan.kernels[0].id
    asked = s.launch_bounds(first, 2)
    assert "__launch_bounds__(256) reduction(" in emit(s.plan).text
    assert "__launch_bounds__(256, 2) reduction(" in emit(asked.plan).text
    assert "__launch_bounds__(256, 2) reduction(" in emit(asked.plan, min_blocks=4).text
    assert emit(asked.plan).text.count(", 2) reduction") == 1, "of one kernel alone"
    assert f"kernel {first}  # a multiprocessor holds at least 2 blocks\n" in str(asked)
    assert f"kernel {first}  # a multiprocessor holds at least 1 block\n" in str(s.launch_bounds(first, 1))
    assert asked.launch_bounds(first, 0).plan == s.plan


def test_nothing_else_changes() -> None:
    s = long_sum(70000)
    asked = s.launch_bounds(s.plan.kernels[0].id, 1)
    free, bound = (f"__launch_bounds__({n}) reduction(" for n in ("256", "256, 1"))
    assert emit(asked.plan).text == emit(s.plan).text.replace(free, bound)
    assert asked.judgement.emittable
    assert asked.run(device="cpu", seeds=2, time=False, ragged=False).correct


def test_loads_that_are_written_out_together_are_in_flight_together() -> None:
    """Sixteen loads of four words take 64 registers; left alone the compiler keeps within 32 and has four in flight."""
    pytest.importorskip("cupy")
    s = long_sum()
    first = s.plan.kernels[0].id
    used = {n: compile_module(emit(s.launch_bounds(first, n).plan if n else s.plan), "sm_90").kernels["reduction"].registers
            for n in (0, 1, 2, 8)}
    assert used[0] <= 40
    assert used[1] >= 64
    assert used[2] >= 64
    assert used[8] <= 32


@pytest.mark.parametrize(("kernel", "blocks", "words"), [
    ("nothing", 1, "there is no kernel 'nothing'"),
    ("reduction", 9, "9 blocks of 256 threads are 2,304 threads"),
    ("reduction", 33, "a multiprocessor holds 0 to 32 blocks, not 33"),
    ("reduction", -1, "a multiprocessor holds 0 to 32 blocks, not -1"),
    ("reduction", 0, "reduction already asks for no number of blocks"),
])
def test_what_is_refused(kernel: str, blocks: int, words: str) -> None:
    with pytest.raises(TransformError, match=words.replace("(", r"\(")):
        long_sum().launch_bounds(kernel, blocks)


def test_a_phase_has_the_blocks_of_its_launch() -> None:
    s = long_sum()
    first, second = (k.id for k in s.plan.kernels)
    joined = s.join(second, "last_block")
    with pytest.raises(TransformError, match=f"{second} runs in the launch of {first}") as caught:
        joined.launch_bounds(second, 1)
    assert caught.value.hint == f"launch_bounds('{first}', 1)"
    assert "__launch_bounds__(256, 1) reduction(" in emit(joined.launch_bounds(first, 1).plan).text


def test_it_is_offered_at_kernels() -> None:
    s = long_sum()
    offered = {str(m.step) for m in s.moves(s.plan.kernels[0].id) if m.verdict and m.step.name == "launch_bounds"}
    assert offered == {f"launch_bounds('reduction', {n})" for n in (1, 2, 4, 8)}


def test_the_name_of_the_version_before_is_still_understood() -> None:
    """In calls, scripts and saved files; it is offered nowhere."""
    s = long_sum()
    first = s.plan.kernels[0].id
    now = s.launch_bounds(first, 2)
    assert s.occupy(first, 2).steps == now.steps
    program = s.source
    saved_before = to_json(program, now.steps).replace('"launch_bounds"', '"occupy"')
    assert '"occupy"' in saved_before
    assert read(saved_before)[3] == now.steps
    assert "launch_bounds" in to_json(program, read(saved_before)[3])
    assert "occupy" not in dir(s)
    assert "occupy" not in catalogue()
    assert not [m for m in s.moves(first) if "occupy" in str(m.step)]
