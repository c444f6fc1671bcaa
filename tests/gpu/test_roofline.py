"""Floors: traffic over bandwidth or arithmetic over peak."""

from __future__ import annotations

import pytest

from explorer.gpu.roofline import roofline
from explorer.gpu.spec import gpu
from explorer.ir.dtype import DTYPES

H200 = gpu("H200")


def test_a_sum_is_bound_by_memory() -> None:
    roof = roofline(H200, 4 * 2**26, 2**26, "f32")
    assert roof.bound == "memory"
    assert roof.floor_us == pytest.approx(62.4, abs=0.05)
    assert roof.intensity == 0.25
    assert roof.share(62.43) == pytest.approx(1.0, abs=1e-3)


def test_a_large_matrix_product_is_bound_by_compute() -> None:
    n = 8192
    roof = roofline(H200, 3 * 2 * n**2, 2 * n**3, DTYPES["f16"])
    assert roof.bound == "compute"
    assert roof.floor_us == pytest.approx(2 * n**3 / 790e12 * 1e6)
    assert roof.measured_peak
    assert roof.measured_bandwidth
    assert roofline(H200, 1, 2 * n**3, "bf16", measured=False).floor_us == pytest.approx(2 * n**3 / 989.5e12 * 1e6)


def test_the_ridge_is_where_both_times_are_equal() -> None:
    roof = roofline(H200, 1e9, 1.0)
    there = roofline(H200, 1e9, 1e9 * roof.ridge)
    assert there.memory_us == pytest.approx(there.compute_us)
    assert roof.attainable_flops_per_s(roof.ridge / 2) == pytest.approx(roof.peak_flops_per_s / 2)
    assert roof.attainable_flops_per_s(roof.ridge * 2) == roof.peak_flops_per_s


def test_types_have_their_own_peaks() -> None:
    floors = [roofline(H200, 0, 1e12, t).floor_us for t in ("f16", "f32", "f64")]
    assert floors == sorted(floors)
    assert len(set(floors)) == 3


def test_integers_count_traffic_alone() -> None:
    roof = roofline(H200, 4.3e6, 1e12, "i32")
    assert (roof.bound, roof.floor_us, roof.ridge) == ("memory", 1.0, float("inf"))
    assert roof.attainable_flops_per_s(2.0) == 2.0 * 4.3e12


def test_where_nothing_was_measured_the_datasheet_counts() -> None:
    roof = roofline(gpu("L4"), 300e9, 0)
    assert roof.floor_us == pytest.approx(1e6)
    assert not roof.measured_bandwidth


def test_no_traffic_has_no_slope() -> None:
    assert roofline(H200, 0, 1e6).intensity == float("inf")
    assert roofline(H200, 0, 0).floor_us == 0.0
