"""Loads of an unrolled loop under conditions stand first; where none is made, the value changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import explorer as ex
from benchmarks.fused_programs import layernorm, softmax
from benchmarks.reduction_program import reduction
from explorer.kernel.emit import emit
from explorer.kernel.passes import batch
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.reductions import Shape, reduce
from tests.kernel.reductions import CASES, definition, plan
from tests.properties.equal import difference

M, N = ex.sizes("M N")
LATE = re.compile(r"if \([^{]*\n +\w+ \+= (__half2float\()?x\[")
"""An update that loads behind its own condition."""


@ex.program
def moments(x: ex.f32[M, N], y: ex.f32[M], z: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        square = ex.local(ex.f32)
        total = 0.0
        square = 0.0
        for k in range(N):
            total += x[i, k]
            square += x[i, k] * x[i, k]
        y[i] = total
        z[i] = square


@ex.program
def exponentials(x: ex.f32[M, N], w: ex.f32[N], y: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += ex.exp(x[i, k]) + w[k]
        y[i] = total


def body(schedule: Schedule) -> str:
    """The text behind the device library."""
    return schedule.cuda[schedule.cuda.index('extern "C"'):]


def unrolled(definition: ex.Definition, *updates: str, **sizes: int) -> Schedule:
    """Rows of a thread each, six elements at a time, in registers."""
    schedule = definition.schedule(**sizes).split("k", 6, inner="u").unroll("u").bind("i", "thread.x")
    for name in updates:
        schedule = schedule.contract(name, "register")
    return schedule


SHAPES = {
    "columns": (((31, 45), (0,), "f32", "sum"), Shape(32, 4, 1, 4, 1)),
    "wide columns": (((31, 48), (0,), "f16", "max"), Shape(8, 4, 4, 4, 1)),
    "aligned rows": (((5, 103), (1,), "f32", "sum"), Shape(8, 1, 4, 4, 1)),
    "two loops": (((4, 9, 45), (0, 2), "f32", "sum"), Shape(32, 1, 1, 4, 1, nested=True)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_text(name: str, golden: Callable[..., None]) -> None:
    case, shape = SHAPES[name]
    golden(body(reduce(reduction(*case), shape=shape)), name)


def test_two_updates_share_a_load(golden: Callable[..., None]) -> None:
    text = body(unrolled(moments, "total", "square", M=3, N=32))
    assert text.count("x[") == 1
    golden(text)


def test_a_value_that_is_not_the_identity_keeps_its_condition(golden: Callable[..., None]) -> None:
    schedule = unrolled(exponentials, "total", M=3, N=32)
    text = body(schedule)
    assert len(re.findall(r"if \(6 \* k \+ u < 32\)", text)) == 2
    golden(text)
    x, w = np.linspace(-2, 2, 96, dtype=np.float32).reshape(3, 32), np.linspace(1, 2, 32, dtype=np.float32)
    got = schedule.run({"x": x, "w": w}, device="cpu").outputs["y"]
    np.testing.assert_allclose(got, (np.exp(x.astype(np.float64)) + w).sum(1), rtol=1e-5)


def test_without_conditions_a_loop_stays_as_it_is() -> None:
    text = body(unrolled(moments, "total", "square", M=3, N=36))
    assert "x_u" not in text


def test_many_values_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    case, shape = SHAPES["columns"]
    schedule = reduce(reduction(*case), shape=shape)
    assert not LATE.search(body(schedule))
    monkeypatch.setattr(batch, "REGISTERS", 3)
    assert LATE.search(body(reduce(reduction(*case), shape=shape)))


def test_most_operations_and_types_need_no_condition() -> None:
    """Not so: extremes and common bits of narrow integers, whose identity none of them is, and keys of places.

        That all are NumPy's is in test_reductions.py.
        """
    texts = {case: emit(plan(definition(*case).at(M=9, N=70), "in registers")).text for case in CASES}
    assert not [case for case, text in texts.items() if "x_k_i[" not in text]
    conditional = {case for case, text in texts.items() if "< 70 ? x[" not in text}
    assert {("max", "i8"), ("min", "i8")} <= conditional
    assert {op for op, _ in conditional} == {"max", "min", "argmax", "argmin", "bitand"}
    assert {dtype for op, dtype in conditional if op == "bitand"} == {"u8", "u16"}  # all ones of an i32 are none of theirs
    assert {dtype for op, dtype in conditional if op in ("max", "min")} == {"i8", "u8", "u16"}



@ex.program
def weighted(x: ex.f32[M, N], w: ex.f32[M], y: ex.f32[N]):
    for j in range(N):
        total = ex.local(ex.f32)
        total = 0.0
        for r in range(M):
            total += x[r, j] * w[r]
        y[j] = total


def test_what_no_vector_holds_is_not_read_where_there_is_nothing() -> None:
    """Rows in fours, 10 of them: the weight of an eleventh is beyond the array, whatever is made of its product."""
    schedule = auto(weighted.schedule(M=10, N=64))
    for shape in (Shape(16, 1, 4, 4, 1), Shape(8, 2, 4, 4, 1)):
        made = reduce(weighted.schedule(M=10, N=64), shape=shape)
        text = body(made)
        assert "[r_u].at[" in text
        run = made.run(device="cpu")
        assert run.correct, str(run)
    assert schedule.run(device="cpu").correct


def test_a_row_is_filled_only_where_somebody_asks_for_the_fill() -> None:
    """A sum runs over zeros behind the row without a condition of its own; a maximum and exponentials keep theirs."""
    summed, shifted = auto(layernorm.schedule(M=5, N=1002)), auto(softmax.schedule(M=5, N=1002))
    assert "? *(const packed<__half, 2>*)" in body(summed)
    assert "packed<__half, 2>{};" in body(summed)
    assert re.search(r"if \(.*< 501\)\s+x_x_r_v_packed\[x_r_0\] = \*\(const packed<__half, 2>\*\)", body(shifted))
    assert "packed<__half, 2>{}" not in body(shifted)
    assert summed.run(device="cpu").correct
    assert shifted.run(device="cpu").correct


def test_a_row_of_narrow_elements_is_copied_in_words() -> None:
    """What is kept of a row whose end is not every thread's: loaded together, taken out of its words afterwards."""
    made = auto(layernorm.schedule(M=5, N=1002))
    text = body(made)
    row = text.index("packed<__half, 2> x_x_r_v_packed[")
    assert text.index("packed<__half, 2>{};", row) < text.index(".lanes();", row)
    assert made.run(device="cpu").correct


@ex.program
def largest(x: ex.f16[M + 2, N + 2], y: ex.f16[1]):
    y[0] = -ex.inf
    for i in range(0, M, 3):
        for k in range(N):
            y[0] = max(y[0], x[i, k])


def test_what_has_no_cell_keeps_its_condition() -> None:
    """A skewed loop runs past the cells of its partial results, where nothing is to be done."""
    s = largest.schedule(M=7, N=11).rfactor("S1", "k").split("k", 4).contract("y_p").skew("k", "i")
    device, arrays = CpuDevice(seeds=1), seeded_arrays(s.source, 3)
    for results in device.run_seeds(device.build(emit(s.plan)), arrays):  # it refuses an index beyond an array
        assert not difference(s.source, arrays, results)
