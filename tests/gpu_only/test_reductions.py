"""Reductions on a real GPU are NumPy's, as on the CPU device: the instructions and atomics that the CPU only emulates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from explorer.kernel.emit import emit
from explorer.run.cuda.device import CudaDevice, available
from tests.kernel.reductions import CASES, definition, expected, inputs, plan, result_type, wide

pytestmark = pytest.mark.gpu

N = 70


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    assert available() is None
    made = CudaDevice(limit_s=10)
    yield made
    made.close()


@pytest.mark.parametrize("way", ["shuffle", "atomic, threads", "atomic, blocks", "kernel", "auto"])
def test_every_operation_and_type_is_numpys(device: CudaDevice, way: str) -> None:
    for op, dtype in CASES:
        x, out = inputs(op, dtype, N), result_type(op, dtype)
        made = emit(plan(definition(op, dtype).at(M=9, N=N), way))
        got = wide(device.run(device.build(made), {"x": x})["y"], out)
        rounding = {"f16": 2e-2, "bf16": 1e-1, "f32": 1e-6, "f64": 1e-14}.get(out, 0.0) if op == "mean" else 0.0
        want = expected(op, dtype, x)
        np.testing.assert_allclose(got, want, rtol=rounding, atol=rounding, err_msg=f"{op} of {dtype}, {way}")


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_an_atomic_keeps_the_nan_that_was_there(device: CudaDevice, op: str, dtype: str) -> None:
    from tests.frontend.support import body

    text = f"for i in range(M):\n    for k in range(N):\n        y[i] = {op}(y[i], x[i, k])"
    made = emit(plan(body(text, f"x: ex.{dtype}[M, N], y: ex.{dtype}[M]").at(M=4, N=256), "atomic, blocks"))
    x = np.random.default_rng(0).standard_normal((4, 256)).astype(dtype.replace("f", "float"))
    y = np.array([np.nan, -np.nan, 0.0, -np.inf], x.dtype)
    with np.errstate(all="ignore"):
        want = (np.maximum if op == "max" else np.minimum)(y, getattr(x, op)(axis=1))
    np.testing.assert_array_equal(device.run(device.build(made), {"x": x, "y": y})["y"], want)
