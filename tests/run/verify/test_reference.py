"""The float64 reference: equal to the interpreter and to NumPy, sampled exactly, checked at its indices."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from explorer import program, workloads
from explorer.errors import CompilerMissing, DeviceError, KernelFault
from explorer.frontend import f32, i32, inout, local, sizes, where
from explorer.ir.interpret import interpret
from explorer.kernel.reference.program import parameters, reference_text
from explorer.kernel.reference.slices import cells, cost, sample, slices
from explorer.run.cpu.compiler import find_compiler
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.verify import reference as module
from explorer.run.verify.reference import compiled, reference, references, with_numpy

M, N = sizes("M N")


@program
def gather(x: f32[M, N], at: i32[M], y: f32[M]):
    for i in range(M):
        y[i] = x[i, at[i]]


@program
def maybe(x: f32[M, N], at: i32[M], y: f32[M]):
    for i in range(M):
        y[i] = where(at[i] >= 0, x[i, at[i]], 0.0)


@program
def scan(x: f32[N], y: f32[N]):
    for i in range(N):
        total = local(f32)
        total = 0.0
        for k in range(i + 1):
            total += x[k]
        y[i] = total


@program
def shadowing(exp: f32[N], value: f32[N], e0: f32[N], y1: f32[N]):
    for at in range(N):
        y1[at] = exp[at] * value[at] - e0[at]


def values(name: str) -> tuple:
    w = workloads.get(name)
    p = w.definition.at(**w.tiny)
    return w, p, seeded_arrays(p, 3)


@pytest.mark.parametrize("name", workloads.names())
def test_loops_in_c_equal_interpreter_and_numpy(name: str) -> None:
    w, p, arrays = values(name)
    found = reference(p, arrays)
    exact = interpret(p, arrays, exact=True)
    independent = with_numpy(p, w.reference, arrays, found)
    assert found.complete
    assert "all cells" in found.source
    for array in (a for a in p.parameters if a.role != "in"):
        np.testing.assert_allclose(found.values[array.name], exact[array.name], rtol=1e-12, atol=1e-12)
        # The parameters of some programs round where NumPy's formula does not: only by the constants' and orders' own error.
        np.testing.assert_allclose(found.values[array.name], independent.values[array.name], rtol=1e-6, atol=1e-6)
        assert found.bounds[array.name].shape == array.shape
        assert np.all(found.bounds[array.name] >= 0)


@pytest.mark.parametrize("name", ["matmul", "softmax", "layernorm", "conv2d", "sum_all", "adam", "cross_entropy"])
def test_bounds_cover_what_the_types_really_lose(name: str) -> None:
    _, p, arrays = values(name)
    found = reference(p, arrays)
    rounded = interpret(p, arrays)
    for key, bound in found.bounds.items():
        error = np.abs(rounded[key].astype(np.float64) - found.values[key])
        assert np.all(error <= 2 * bound + 2.0**-11 * np.abs(found.values[key]) + 1e-7)
        assert bound.max() < 0.02 * max(np.abs(found.values[key]).max(), 1.0)


def test_sample_has_the_values_of_the_whole() -> None:
    p = workloads.get("conv2d").definition.at(**workloads.get("conv2d").tiny)
    arrays = seeded_arrays(p, 0)
    whole, chosen = reference(p, arrays), sample(p, cost(p) // 4, seed=5)
    assert chosen is not None
    part = compiled(p, arrays, chosen)
    output = next(a.name for a in p.parameters if a.role == "out")
    assert 0 < part.values[output].size < whole.values[output].size
    np.testing.assert_array_equal(part.values[output], whole.values[output][np.ix_(*part.cells[output])])
    np.testing.assert_array_equal(part.bounds[output], whole.bounds[output][np.ix_(*part.cells[output])])


def test_sample_keeps_the_edges_and_the_budget() -> None:
    p = workloads.get("matmul").definition.at(M=4096, N=4096, K=4096)
    chosen = sample(p, 10**8)
    assert chosen is not None
    assert {g.loops for g in slices(p)} == {("i",), ("j",)}
    rows, columns = cells(p, "c", chosen)
    assert rows[0] == 0
    assert rows[-1] == 4095
    assert len(set(rows)) == len(rows)
    assert len(rows) * len(columns) * 4096 * 5 <= 10**8 * 2
    other = sample(p, 10**8, seed=1)
    assert other is not None
    assert not np.array_equal(rows, other[0])


def test_a_dependence_between_iterations_is_never_sliced() -> None:
    assert slices(workloads.get("gauss_seidel").definition.at(**workloads.get("gauss_seidel").tiny)) == ()
    assert slices(workloads.get("sum_all").definition.at(**workloads.get("sum_all").tiny)) == ()
    statistics = workloads.get("batchnorm_statistics")
    assert [g.loops for g in slices(statistics.definition.at(**statistics.tiny))] != []


def test_triangles_are_guarded() -> None:
    p = scan.at(N=9)
    x = np.arange(9, dtype=np.float32)
    np.testing.assert_array_equal(reference(p, {"x": x}).values["y"], np.cumsum(x))


def test_index_outside_is_a_fault_with_the_count() -> None:
    p = gather.at(M=3, N=4)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(reference(p, {"x": x, "at": np.array([3, 0, 2], np.int32)}).values["y"], [3, 4, 10])
    with pytest.raises(KernelFault, match="outside its array") as caught:
        reference(p, {"x": x, "at": np.array([4, 0, -1], np.int32)})
    assert "2 data-dependent reads" in caught.value.why


def test_a_read_that_is_not_chosen_may_be_outside() -> None:
    p = maybe.at(M=3, N=4)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = reference(p, {"x": x, "at": np.array([-1, 0, 3], np.int32)})
    np.testing.assert_array_equal(found.values["y"], [0, 4, 11])


def test_names_of_the_program_do_not_clash_with_c() -> None:
    p = shadowing.at(N=5)
    arrays = seeded_arrays(p, 0)
    np.testing.assert_allclose(reference(p, arrays).values["y1"], arrays["exp"].astype(float) * arrays["value"] - arrays["e0"])


def test_text_is_c99_and_knows_nothing_of_schedules(tmp_path) -> None:
    p = workloads.get("softmax").definition.at(M=3, N=4)
    for bounds in (False, True):
        text = reference_text(p, slices(p), bounds=bounds)
        assert "threadIdx" not in text
        assert "__global__" not in text
        source = tmp_path / "reference.c"
        names = ", ".join(f"({kind})0" for kind, _ in parameters(p, slices(p), bounds))
        use = f"int main(void) {{ if (0) reference({names}); return 0; }}"
        source.write_text(f"#include <math.h>\n#include <stdlib.h>\n{text}\n{use}\n")
        command = [find_compiler().path, "-x", "c", "-std=c99", "-Wall", "-Werror", "-fsyntax-only", str(source)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr


def test_without_a_compiler_tiny_sizes_are_interpreted_and_large_ones_say_so(monkeypatch) -> None:
    def missing() -> None:
        raise CompilerMissing("No C++ compiler was found, so kernels cannot run on the CPU.")

    _, p, arrays = values("softmax")
    expected = reference(p, arrays)
    monkeypatch.setattr(module, "find_compiler", missing)
    found = reference(p, arrays)
    assert "interpreted" in found.source
    assert not found.bounds
    np.testing.assert_allclose(found.values["y"], expected.values["y"], rtol=1e-12)
    large = workloads.get("matmul").definition.at(M=200, N=200, K=200)
    several, notes = references(large, {})
    assert several == []
    assert "No C++ compiler" in notes[0]


def test_too_much_work_without_slices_is_refused() -> None:
    p = workloads.get("sum_all").definition.at(M=10**6, N=10**6)
    with pytest.raises(DeviceError, match="too many to check"):
        reference(p, {})


def test_numpy_reference_of_another_shape_is_refused() -> None:
    _, p, arrays = values("matmul")
    with pytest.raises(DeviceError, match=r"returns shape \[2\] for c"):
        with_numpy(p, lambda arrays, sizes: np.zeros(2), arrays, None)


@program
def shortest(p: inout[i32[N, N]]):
    for k in range(N):
        for i in range(N):
            for j in range(N):
                p[i, j] = min(p[i, j], p[i, k] + p[k, j])


@program
def wrapped(x: i32[N], z: f32[N], y: i32[4, N]):
    for i in range(N):
        y[0, i] = max(x[i] * x[i], 5)
        y[1, i] = where(x[i] - 7 < x[i], 1, 0)
        y[2, i] = abs(-x[i])
        y[3, i] = where((x[i] + x[i]) * z[i] > 0.0, 1, 0)


def test_integers_wrap_in_expressions_too() -> None:
    x = np.array([1, 65536, 2**31 - 1, -(2**31), -(2**31) + 3, 46341], np.int32)
    p = wrapped.at(N=len(x))
    arrays = {"x": x, "z": np.ones(len(x), np.float32)}
    np.testing.assert_array_equal(reference(p, arrays).values["y"], interpret(p, arrays)["y"])
    for bounds in (True, False):
        assert reference_text(p, bounds=bounds).count("(int)(") >= 6


def test_paths_with_negative_cycles_outgrow_their_type_alike() -> None:
    run = shortest.schedule(N=17).run(device="cpu", time=False)
    assert run.correct, run
