"""Exported files with bulk copies: their own tensor maps, on the host, where a stand-in makes what the driver would."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.run.export import exported
from tests.kernel.bulk_schedules import SCHEDULES
from tests.kernel.host_run import host_run, host_warnings

MORE = ("-DSIMT_HOST=1",)


@pytest.mark.parametrize("name", ["vector", "f64", "i8", "halo", "five dimensions", "rows apart", "rows as one", "two stages"])
def test_the_file_makes_its_tensor_maps_and_is_right(name: str, tmp_path: Path) -> None:
    done = host_run(exported(SCHEDULES[name]()), tmp_path, more=MORE)
    assert done.returncode == 0, done.stdout


def test_a_wrong_map_is_noticed(tmp_path: Path) -> None:
    text = exported(SCHEDULES["halo"]())
    for old, new, status in (("x_map_extents[] = {44, 20, 3}", "x_map_extents[] = {43, 20, 3}", 2),
                             ("x_map_extents[] = {44, 20, 3}", "x_map_extents[] = {44, 19, 3}", 2),
                             ("x_map_box[] = {16, 10, 3}", "x_map_box[] = {16, 9, 3}", 1)):
        assert old in text
        assert host_run(text.replace(old, new), tmp_path, more=MORE).returncode == status, new


def test_the_host_part_is_golden(golden) -> None:
    text = exported(SCHEDULES["two stages"]())
    golden(text[text.index("// The driver makes tensor maps"):text.index("// ---- The reference")])


@pytest.mark.parametrize("name", ["vector", "two stages"])
def test_no_warnings(name: str, tmp_path: Path) -> None:
    assert host_warnings(exported(SCHEDULES[name]()), tmp_path) == ""
