"""The catalogue: every number sourced, the numbers consistent with each other, names found."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

import explorer
import explorer.gpu.spec
from explorer.errors import ResourceError
from explorer.gpu.spec import Gpu, catalogue, default_gpu, gpu

RAW = tomllib.loads(Path(explorer.gpu.spec.__file__).with_name("catalogue.toml").read_text())
F32_LANES = {"sm_75": 64, "sm_80": 64, "sm_86": 128, "sm_89": 128, "sm_90": 128, "sm_100": 128, "sm_120": 128}
GPUS = list(catalogue().values())


def test_the_catalogue_holds_the_parts_that_matter() -> None:
    assert {g.arch for g in GPUS} == set(F32_LANES)
    assert {"T4", "A100-40GB", "A100-80GB", "RTX 3090", "L4", "RTX 4090", "H100 SXM", "H200", "B200", "GB200",
            "RTX 5090"} <= set(catalogue())


def test_every_number_has_a_unit_and_a_source_or_a_reason_for_its_absence() -> None:
    tables = [RAW["common"], *RAW["architecture"].values(), *RAW["gpu"].values()]
    rows = [(name, row) for table in tables for name, row in table.items() if name not in ("arch", "aliases")]
    assert len(rows) > 100
    for name, row in rows:
        if "missing" in row:
            assert row["missing"], name
        else:
            assert set(row) == {"value", "unit", "source"}, name
            assert row["source"] in RAW["sources"], f"{name}: {row['source']}"


def test_the_package_is_also_the_function_that_finds_a_gpu() -> None:
    import explorer.gpu.spec as module

    assert module.gpu is gpu
    assert explorer.gpu.spec is module
    assert explorer.gpu("h200") is gpu("H200") is module.catalogue()["H200"]
    with pytest.raises(ResourceError, match="No GPU called 'H2000'"):
        explorer.gpu("H2000")


def test_no_source_is_unused() -> None:
    used = {row["source"] for g in GPUS for row in g.facts.values() if "source" in row}
    assert used == set(RAW["sources"].values())


@pytest.mark.parametrize("g", GPUS, ids=str)
def test_the_f32_peak_is_lanes_times_clock(g: Gpu) -> None:
    if g.clock_hz is None:
        assert g.facts["clock_hz"]["missing"]
        return
    assert g.f32_flops_per_s == pytest.approx(2 * F32_LANES[g.arch] * g.multiprocessors * g.clock_hz, rel=0.01)


@pytest.mark.parametrize("g", GPUS, ids=str)
def test_the_numbers_fit_together(g: Gpu) -> None:
    major, minor = g.compute_capability
    assert g.arch == f"sm_{major}{minor}"
    assert g.shared_bytes_per_block_optin + g.reserved_shared_bytes_per_block == g.shared_bytes_per_sm
    assert g.static_shared_bytes_per_block == 48 * 1024
    assert g.static_shared_bytes_per_block < g.shared_bytes_per_block_optin
    assert g.max_threads_per_sm % g.warp_size == 0
    assert g.f64_flops_per_s < g.f32_flops_per_s < g.f16_tensor_flops_per_s
    assert g.measured_bandwidth_bytes_per_s is None or g.measured_bandwidth_bytes_per_s < g.memory_bandwidth_bytes_per_s
    for field in dataclasses.fields(g):
        value = getattr(g, field.name)
        if str(field.type).startswith("int"):
            assert value is None or type(value) is int, field.name
        assert value is not None or field.name.startswith("measured") or g.facts[field.name]["missing"], field.name


def test_the_h200_is_the_one_that_was_measured() -> None:
    h200 = gpu("H200")
    assert (h200.multiprocessors, h200.arch, h200.shared_bytes_per_block_optin) == (132, "sm_90", 232_448)
    assert h200.bandwidth_bytes_per_s == 4.3e12
    assert "measured" in h200.facts["measured_bandwidth_bytes_per_s"]["source"]
    assert gpu("H100").bandwidth_bytes_per_s == 3.35e12


@pytest.mark.parametrize(("name", "found"), [
    ("h200", "H200"), ("NVIDIA H200", "H200"), ("Tesla T4", "T4"), ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
    ("rtx_4090", "RTX 4090"), ("NVIDIA GeForce RTX 5090", "RTX 5090"), ("NVIDIA H100 80GB HBM3", "H100 SXM"),
    ("a100", "A100-40GB")])
def test_names_are_found_however_they_are_written(name: str, found: str) -> None:
    assert gpu(name).name == found


@pytest.mark.parametrize(("name", "suggestion"), [
    ("H20", "H200"), ("RTX 4080", "RTX 4090"), ("A1000-80GB", "A100-80GB"), ("b20", "B200")])
def test_a_near_miss_suggests(name: str, suggestion: str) -> None:
    with pytest.raises(ResourceError) as caught:
        gpu(name)
    assert suggestion in caught.value.suggestions
    assert f'gpu("{suggestion}")' in caught.value.hint


def test_a_name_like_none_lists_all() -> None:
    with pytest.raises(ResourceError) as caught:
        gpu("zzzz")
    assert caught.value.suggestions == tuple(catalogue())


def test_the_default_is_the_installed_one_or_the_h200() -> None:
    assert default_gpu().name == "H200"
    assert default_gpu("NVIDIA L4").name == "L4"
    assert default_gpu("NVIDIA TITAN V").name == "H200"
    assert default_gpu("").name == "H200"


def test_a_gpu_is_a_value() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        gpu("H200").multiprocessors = 1  # type: ignore[misc]
    assert gpu("H200") is gpu("h200")
    assert str(gpu("H200")) == "H200 (sm_90)"
    assert "facts" not in repr(gpu("H200"))


def test_the_limits_that_a_launch_exceeds_are_all_named() -> None:
    h200 = gpu("H200")
    assert h200.limits_check((2**31 - 1, 65535, 65535), (32, 32, 1), dynamic_shared_bytes=232_448) == ()
    names = {b.what for b in h200.limits_check((1, 65536, 65536), (2048, 1, 65), static_shared_bytes=50_000,
                                               dynamic_shared_bytes=200_000, registers_per_thread=256)}
    assert names == {"grid y", "grid z", "block x", "block z", "threads per block", "static shared memory per block",
                     "shared memory per block", "registers per thread", "registers per block"}
