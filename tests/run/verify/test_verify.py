"""The judgement of outputs: every wrong cell found, rounding excused, NaN and infinity compared as such."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from explorer import workloads
from explorer.errors import KernelFault
from explorer.frontend import bool_, cast, f16, f32, i32, local, program, sizes
from explorer.ir.interpret import interpret
from explorer.kernel.emit import emit
from explorer.kernel.reference.error_bound import gamma
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.verify.outputs import check_output, check_outputs, longest_path
from explorer.run.verify.reference import Reference, reference
from explorer.schedule import Schedule

N = sizes("N")


@program
def double_it(x: f16[N], y: f16[N]):
    for i in range(N):
        y[i] = x[i] * 2.0


@program
def above(x: f32[N], y: bool_[N], z: i32[N]):
    for i in range(N):
        y[i] = x[i] * 3.0 > 1.0
        z[i] = cast(x[i] * 3.0, i32)


def simple(expected: list[float], bound: float | None = 0.0) -> tuple:
    p = double_it.at(N=len(expected))
    values = np.array(expected)
    bounds = {} if bound is None else {"y": np.full(len(expected), bound)}
    return p, Reference({"y": values}, bounds, {}, "a test")


def test_rounding_of_the_store_is_excused_and_more_is_not() -> None:
    p, r = simple([1.0, 2.0, 3.0])
    one_unit = np.array([1.0, 2.0, 3.0], np.float16) * np.float16(1 + 2**-11)
    assert check_outputs(p, {"y": one_unit}, r)[0]
    wrong = np.array([1.0, 2.0, 3.0 + 2**-8], np.float16)
    (check,) = check_outputs(p, {"y": wrong}, r)
    assert not check
    assert (check.wrong, check.index, check.got, check.expected) == (1, (2,), 3 + 2**-8, 3.0)
    assert check.worst > 1
    assert "1 of 3 cells wrong against a test; first y[2] = 3.00390625, expected 3" in str(check)


def test_the_bound_of_each_cell_counts() -> None:
    p, r = simple([1.0, 1.0], None)
    r = replace(r, bounds={"y": np.array([0.0, 0.1])})
    (check,) = check_outputs(p, {"y": np.array([1.1, 1.1], np.float16)}, r)
    assert check.wrong == 1
    assert check.index == (0,)


def test_nan_and_infinity() -> None:
    p, r = simple([np.nan, np.inf, -np.inf, 70000.0, 65000.0, 1.0])
    good = np.array([np.nan, np.inf, -np.inf, np.inf, 65000.0, 1.0], np.float16)
    assert check_outputs(p, {"y": good}, r)[0]
    for cell, value in ((0, 1.0), (1, np.nan), (2, np.inf), (3, -np.inf), (4, np.inf), (5, np.nan)):
        bad = good.copy()
        bad[cell] = value
        (check,) = check_outputs(p, {"y": bad}, r)
        assert check.wrong == 1
        assert check.index == (cell,), cell


def test_cells_that_nothing_bounds_do_not_count_as_compared_bit_for_bit() -> None:
    p, r = simple([1.0, 2.0], np.inf)
    (check,) = check_outputs(p, {"y": np.array([5.0, 6.0], np.float16)}, r)
    assert check.blind
    assert "its errors have no bound" in check.sharpness
    assert "except 2 cells that nothing bounds" in str(check.tolerance)
    (check,) = check_outputs(p, {"y": np.array([1.0, 6.0], np.float16)}, replace(r, bounds={"y": np.array([0.0, np.inf])}))
    assert not check.blind
    assert "except 1 cells that nothing bounds" in str(check.tolerance)


def test_what_is_allowed_of_a_wrong_cell_is_a_distance() -> None:
    p, r = simple([1.0 + 2.0**-12], 0.0)  # nearest below
    (check,) = check_outputs(p, {"y": np.array([1.0 + 2.0**-10], np.float16)}, r)
    assert check.wrong == 1
    assert check.allowed >= 0.0


def test_sampled_cells_are_reported_with_their_own_index() -> None:
    p = double_it.at(N=10)
    r = Reference({"y": np.array([0.0, 14.0])}, {"y": np.zeros(2)}, {"y": (np.array([0, 7]),)}, "a sample")
    got = np.full(10, 99, np.float16)
    got[0] = 0
    check = check_output(p, p.array_of["y"], got, r)
    assert (check.checked, check.total, check.index) == (2, 10, (7,))
    assert "of 2 of 10 cells" in str(check)


def test_integers_are_exact_unless_rounding_can_move_them() -> None:
    p = above.at(N=4)
    x = np.array([0.5, 1 / 3, 2.0, 0.1], np.float32)
    r = reference(p, {"x": x})
    good = interpret(p, {"x": x})
    assert all(check_outputs(p, good, r))
    edge = {k: v.copy() for k, v in good.items()}
    edge["y"][1] ^= True
    assert all(check_outputs(p, edge, r))  # 3 * (1/3) > 1 is decided by rounding
    for name in ("y", "z"):
        bad = {k: v.copy() for k, v in good.items()}
        bad[name][2] = 0
        assert not all(check_outputs(p, bad, r))


def test_unwritten_bool_shows() -> None:
    p = above.at(N=2)
    x = np.array([2.0, 2.0], np.float32)
    good = interpret(p, {"x": x})
    bad = np.array([1, 0xFF], np.uint8).view(np.bool_)
    checks = check_outputs(p, {**good, "y": bad}, reference(p, {"x": x}))
    assert not checks[0]
    assert checks[0].index == (1,)


def test_a_priori_tolerance_grows_with_the_reduction() -> None:
    small, large = (workloads.get("matmul").definition.at(M=2, N=2, K=k) for k in (8, 800))
    assert longest_path(small, "c") < longest_path(large, "c") / 50
    arrays = seeded_arrays(large, 0)
    r = replace(reference(large, arrays), bounds={})
    got = {"c": (arrays["a"].astype(np.float64) @ arrays["b"]).astype(np.float32)}
    assert check_outputs(large, got, r)[0]
    assert "a priori" in str(check_outputs(large, got, r)[0].tolerance)
    got["c"][1, 0] *= 1.01
    assert not check_outputs(large, got, r)[0]


def test_gamma_is_the_smaller_of_theorem_and_probability() -> None:
    u = 2.0**-24
    assert gamma(4, u) == pytest.approx(4 * u, rel=1e-5)
    assert gamma(10**6, u) == pytest.approx(6e3 * u, rel=1e-2)
    assert np.isfinite(gamma(10**9, u))


MUTATIONS = {" + ": " - ", " - ": " + ", " * ": " + ", " / ": " * ", " += ": " -= ", "max_nan": "fminf", "expf": "exp2f"}


def mutants(text: str) -> list[str]:
    """The text with one operator of one statement changed, for every operator of every statement."""
    lines = text.split("\n")
    found = []
    for n, line in enumerate(lines):
        code, mark, comment = line.partition("//")
        if not re.search(r"\bS\d", comment):
            continue
        for hit in re.finditer("|".join(map(re.escape, MUTATIONS)), code):
            changed = code[: hit.start()] + MUTATIONS[hit[0]] + code[hit.end() :]
            found.append("\n".join([*lines[:n], changed + mark + comment, *lines[n + 1 :]]))
    return found


@pytest.mark.parametrize("name", ["matmul", "jacobi2d", "sum_columns", "conv2d"])
def test_every_mutated_operator_is_detected(name: str) -> None:
    w = workloads.get(name)
    p = w.definition.at(**w.tiny)
    module = emit(Schedule.of(p).plan)
    arrays = seeded_arrays(p, 0)
    expected, device = reference(p, arrays), CpuDevice(checked=True, seeds=1)
    texts = mutants(module.text)
    assert texts
    original, *built = device.build_many([module, *(replace(module, text=t) for t in texts)])
    assert all(check_outputs(p, device.run(original, arrays), expected))
    for mutant, text in zip(built, texts, strict=True):
        try:
            outputs = device.run(mutant, arrays)
        except KernelFault:
            continue
        assert not all(check_outputs(p, outputs, expected)), text


def test_long_random_sums_are_still_told_from_their_mutants() -> None:
    p = workloads.get("sum_all").definition.at(M=1024, N=1024)
    arrays = seeded_arrays(p, 0)
    sharp, safe = reference(p, arrays, random=True), reference(p, arrays)
    total = arrays["x"].astype(np.float64).sum()
    sequential = np.cumsum(arrays["x"].ravel(), dtype=np.float32)[-1:]
    assert check_outputs(p, {"y": sequential}, sharp)[0]
    assert not check_outputs(p, {"y": -sequential}, sharp)[0]
    assert not check_outputs(p, {"y": sequential * np.float32(1.01)}, sharp)[0]
    assert sharp.bounds["y"][0] < 0.01 * abs(total) < safe.bounds["y"][0]


def test_given_data_in_the_worst_order_is_not_called_wrong() -> None:
    p = workloads.get("sum_all").definition.at(M=512, N=512)
    x = np.sort(np.random.default_rng(0).standard_normal(512 * 512).astype(np.float32)).reshape(512, 512)
    sequential = np.cumsum(x.ravel(), dtype=np.float32)[-1:]
    assert check_outputs(p, {"y": sequential}, reference(p, {"x": x}))[0]


@program
def through_a_narrow_temporary(x: f32[N], w: f32[N], y: f32[N]):
    square = local(f16, N)
    for i in range(N):
        square[i] = x[i] * x[i]
    for i in range(N):
        y[i] = square[i] - w[i] * 0.25


def test_numbers_below_the_normal_ones_may_lose_all_their_digits() -> None:
    """1e-9 is stored as 0 in f16: half of 2**-24 may be lost, far more than a share of it."""
    p = through_a_narrow_temporary.at(N=64)
    x = np.geomspace(1e-5, 1e-2, 64, dtype=np.float32)
    w = np.full(64, 1e-6, dtype=np.float32)
    found = reference(p, {"x": x, "w": w})
    rounded = (x * x).astype(np.float16).astype(np.float32) - w * np.float32(0.25)
    assert np.abs(rounded - found.values["y"]).max() > 2.0**-27
    assert all(check_outputs(p, {"y": rounded}, found))
    assert np.all(found.bounds["y"] <= 2.0**-24 + 2.0**-10 * x * x), "and no more is allowed"
    assert not all(check_outputs(p, {"y": rounded + np.float32(2.0**-21)}, found))
