"""Every workload: its loops, run by the interpreter, agree with its NumPy reference."""

from __future__ import annotations

from math import erf
from pathlib import Path

import numpy as np
import pytest

from explorer import workloads
from explorer.errors import ProgramError
from explorer.frontend.definition import Definition
from explorer.ir.interpret import interpret
from explorer.workloads import bias_gelu

NAMES = (
    "adam argmax_rows argmin_columns attention_softmax batched_matmul batchnorm_apply batchnorm_statistics bias_gelu "
    "bias_residual_layernorm conv2d cross_entropy depthwise_conv2d gauss_seidel jacobi2d layernorm layernorm_backward matmul "
    "max_all max_columns max_interleaved max_rows rmsnorm softmax stencil1d sum_all sum_columns sum_interleaved sum_rows "
    "triangular_matmul"
)
EXPECTED = workloads.names()


def ragged(sizes):
    """Sizes that are no multiples of each other; tiny filters and radii stay."""
    return {name: value if name in ("R", "S") else value + 1 + 2 * (i % 2) for i, (name, value) in enumerate(sizes.items())}


def test_the_folder_is_the_list():
    files = sorted(p.stem for p in Path(workloads.__file__).parent.glob("[!_]*.py"))
    assert list(workloads.names()) == files
    assert set(NAMES.split()) <= set(files)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_defines_one_workload(name):
    work = workloads.get(name)
    assert isinstance(work.definition, Definition)
    assert work.definition.name == work.name == name
    assert work.title.endswith(".")
    assert set(work.tiny) == set(work.typical) == set(work.definition.sizes)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("change", [dict, ragged], ids=["tiny", "ragged"])
def test_loops_agree_with_numpy(name, change):
    work = workloads.get(name)
    sizes = change(work.tiny)
    program = work.definition.at(**sizes)
    arrays = work.arrays(sizes, seed=1)
    before = {k: v.copy() for k, v in arrays.items()}
    wanted = work.reference(arrays, sizes)
    got = interpret(program, arrays, exact=True)
    assert set(got) == set(wanted) == {a.name for a in program.arrays if a.role in ("out", "inout")}
    for array in got:
        assert wanted[array].dtype == np.float64
        np.testing.assert_allclose(got[array], wanted[array], rtol=1e-7, atol=1e-10, err_msg=array)
    for array, value in before.items():
        np.testing.assert_array_equal(arrays[array], value, err_msg=f"{array} was changed")


@pytest.mark.parametrize("name", EXPECTED)
def test_rounding_is_the_size_the_types_promise(name):
    work = workloads.get(name)
    program = work.definition.at(**work.tiny)
    arrays = work.arrays(work.tiny, seed=2)
    wanted = work.reference(arrays, work.tiny)
    got = interpret(program, arrays)
    for array, value in got.items():
        dtype = program.array_of[array].dtype
        assert value.dtype == dtype.numpy
        scale = np.abs(wanted[array]).max()
        np.testing.assert_allclose(value, wanted[array], rtol=0, atol=64 * dtype.digits * scale, err_msg=array)


@pytest.mark.parametrize("name", EXPECTED)
def test_typical_sizes_make_a_program(name):
    work = workloads.get(name)
    program = work.definition.at(**work.typical)
    assert program.statements
    assert sum(a.nbytes for a in program.parameters) >= 2**20


def test_inputs_depend_on_the_seed_alone():
    work = workloads.get("cross_entropy")
    a, b, c = (work.arrays(work.tiny, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a[k], b[k]) for k in a)
    assert any(not np.array_equal(a[k], c[k]) for k in a)
    assert a["target"].dtype == np.int32
    assert (a["target"] < work.tiny["V"]).all()


def test_an_unknown_name_lists_the_known():
    with pytest.raises(ProgramError, match="no workload is called 'sofmax'") as caught:
        workloads.get("sofmax")
    assert "softmax" in caught.value.hint


def test_the_error_function_of_the_reference():
    x = np.linspace(-7, 7, 9973)
    assert np.abs(bias_gelu._erf(x) - [erf(t) for t in x]).max() < 1e-11
