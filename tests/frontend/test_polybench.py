"""PolyBench as people type it: accepted, with the roles that its instances give the arrays, and the results of Python."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import explorer as ex
from explorer.ir.interpret import interpret
from tests.frontend.polybench import KERNELS
from tests.frontend.support import by_python, define

ROLES = {
    "atax": {"y": "out", "tmp": "out"},
    "trisolv": {"x": "out"},
    "durbin": {"y": "out", "z": "out"},
    "ludcmp": {"A": "inout", "x": "out", "y": "out"},
    "adi": {"u": "inout", "v": "out", "p": "out", "q": "out"},
    "heat-3d": {"A": "inout", "B": "inout"},
    "jacobi-1d": {"A": "inout", "B": "inout"},
    "jacobi-2d": {"A": "inout", "B": "inout"},
    "seidel-2d": {"A": "inout"},
}
"""Where the order of instances says something that the order of the text does not, or seems not to."""


def kernel(name: str) -> tuple[ex.Definition, dict[str, int]]:
    sizes, signature, text = KERNELS[name]
    body = textwrap.indent(text.strip("\n"), "    ")
    definition = define(f"@ex.program\ndef f({signature}):\n{body}\n")
    return definition, {k: v for k, v in sizes.items() if k in definition.sizes}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_accepted_and_means_what_python_means(name: str) -> None:
    definition, sizes = kernel(name)
    program = definition.schedule(**sizes).source
    assert ROLES.get(name, {}).items() <= {a.name: a.role for a in program.parameters}.items()
    arrays = {a.name: some(a) for a in program.parameters}
    expected = by_python(definition, sizes, arrays)
    found = interpret(program, arrays, exact=True)
    assert found
    for array, value in found.items():
        np.testing.assert_allclose(value, expected[array], rtol=1e-9, err_msg=array)


def some(array) -> np.ndarray:
    """Numbers between 1 and 2, with a heavy diagonal, so that every solver is well conditioned."""
    rng = np.random.default_rng(0)
    if array.dtype.kind != "float":
        return rng.integers(0, 4, array.shape).astype(array.dtype.numpy)
    square = len(array.shape) == 2 and array.shape[0] == array.shape[1]
    return (rng.uniform(1, 2, array.shape) + (10 * np.eye(array.shape[0]) if square else 0)).astype(array.dtype.numpy)


@pytest.mark.parametrize("name", ["jacobi-1d", "trisolv", "correlation", "deriche"])
def test_a_kernel_runs(name: str) -> None:
    definition, sizes = kernel(name)
    run = definition.schedule(**sizes).run(device="cpu")
    assert run.correct
