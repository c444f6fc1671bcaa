"""Seeded inputs: reproducible, of the right types, and valid for what the program does with them."""

from __future__ import annotations

import numpy as np
import pytest

from explorer import workloads
from explorer.errors import DeviceError
from explorer.frontend import bf16, bool_, f16, f32, i8, i32, local, log, program, sizes, sqrt, where
from explorer.ir.dtype import bf16_to_f32
from explorer.run.inputs.arguments import arguments, poisoned, recipes, seeded_arrays, widened

M, N = sizes("M N")


@program
def gather(x: f32[M, N], at: i32[M], y: f32[M]):
    for i in range(M):
        y[i] = x[i, 2 * at[i] - 1]


@program
def chain(x: f16[M, N], w: bf16[N], mask: bool_[N], k: i8[N], y: f32[M]):
    for i in range(M):
        total = local(f32)
        total = 0.0
        for j in range(N):
            total += w[j] + x[i, j] * x[i, j] + where(mask[j], k[j] * k[j], 0)
        y[i] = log(total) / sqrt(x[i, 0] * x[i, 0] + 1.0)


@program
def product(x: f32[N], y: f32[1]):
    y[0] = 1.0
    for i in range(N):
        y[0] *= x[i]


def test_same_seed_same_bits_other_seed_other_bits() -> None:
    p = workloads.get("matmul").definition.at(M=4, N=5, K=6)
    first, again, other = (seeded_arrays(p, s) for s in (1, 1, 2))
    assert first.keys() == {"a", "b", "c"}
    np.testing.assert_array_equal(first["a"], again["a"])
    assert not np.array_equal(first["a"], other["a"])
    assert not np.array_equal(first["a"].ravel()[:5], first["b"].ravel()[:5])


def test_floats_are_close_to_normal_in_every_type() -> None:
    p = workloads.get("matmul").definition.at(M=300, N=5, K=300)
    a = seeded_arrays(p, 0)["a"]
    assert a.dtype == np.float32
    assert abs(a.mean()) < 0.02
    assert abs(a.std() - 1) < 0.02
    assert np.abs(a).max() < 3.5


def test_indices_are_valid_through_their_arithmetic() -> None:
    p = gather.at(M=500, N=11)
    at = seeded_arrays(p, 0)["at"]
    used = 2 * at - 1
    assert used.min() == 1
    assert used.max() == 9
    assert "indexes" in recipes(p)["at"].why


def test_what_is_under_a_logarithm_is_positive_and_what_is_squared_need_not_be() -> None:
    made = recipes(chain.at(M=3, N=4))
    assert made["w"].offset == 1.0
    assert made["x"].offset == 0.0
    assert made["mask"].high == 2
    arrays = seeded_arrays(chain.at(M=3, N=400), 0)
    assert arrays["w"].dtype == np.uint16
    assert bf16_to_f32(arrays["w"]).min() > 0.5
    assert arrays["x"].dtype == np.float16
    assert set(np.unique(arrays["mask"])) == {False, True}
    assert arrays["k"].min() == -8
    assert arrays["k"].max() == 8


@pytest.mark.parametrize("count", [10, 10_000])
def test_products_neither_vanish_nor_overflow(count: int) -> None:
    x = seeded_arrays(product.at(N=count), 0)["x"]
    assert 1e-10 < np.prod(x.astype(np.float64)) < 1e10


def test_outputs_are_poisoned() -> None:
    p = chain.at(M=3, N=4)
    by_name = {a.name: a for a in p.parameters}
    assert np.isnan(poisoned(by_name["y"])).all()
    assert np.isnan(widened(by_name["w"], poisoned(by_name["w"]))).all()
    assert (poisoned(by_name["k"]) == -1).all()
    assert (widened(by_name["mask"], poisoned(by_name["mask"])) == 255).all()


def test_arguments_are_converted_or_refused() -> None:
    p = gather.at(M=2, N=3)
    x, at = np.zeros((2, 3)), np.array([1, 1])
    given = arguments(p, {"x": x, "at": at})
    assert given["x"].dtype == np.float32
    assert given["at"].dtype == np.int32
    for arrays, message in (({"x": x}, "at is missing"), ({"x": x, "at": at, "z": x}, "no parameter 'z'"),
                            ({"x": x[:1], "at": at}, r"x has shape \[1, 3\]"), ({"x": x, "at": at + 0.5}, "at is float64")):
        with pytest.raises(DeviceError, match=message):
            arguments(p, arrays)


def test_every_workload_has_seeded_inputs_that_give_finite_results() -> None:
    for name in workloads.names():
        w = workloads.get(name)
        p = w.definition.at(**w.tiny)
        held = {k: v for k, v in seeded_arrays(p, 0).items() if p.array_of[k].role != "out"}
        wide = {k: widened(p.array_of[k], v) for k, v in held.items()}
        assert all(np.isfinite(v).all() for v in w.reference(wide, w.tiny).values()), name
