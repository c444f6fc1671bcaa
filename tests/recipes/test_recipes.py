"""The recipes of CONTRIBUTING.md, carried out in a copy: one file or one row each, and it has arrived everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .page import ROOT, additions

FOLDERS = ("explorer", "tests", "docs", "examples")
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml",
         "benchmarks/results/gpu_h200.json", "benchmarks/results/products_h200.json")
ADDITIONS = additions((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
PROMISED = {
    "transformation": {"explorer/transforms/rotate.py"}, "workload": {"explorer/workloads/scaled_add.py"},
    "view": {"explorer/views/gpus.py"}, "operation": {"explorer/ir/operations.py"}, "gpu": {"explorer/gpu/catalogue.toml"}}
"""The one file of the package that each recipe touches."""
TESTS = {"tests/transforms/test_rotate.py", "tests/views/values.py"}
FOUND = (
    "tests/ir/test_operations.py::test_device_reference_and_numpy_agree[exp2-f32]",
    "tests/ir/test_operations.py::test_the_bound_follows_the_derivative[exp2-f64]",
    "tests/workloads/test_workloads.py::test_loops_agree_with_numpy[ragged-scaled_add]",
    "tests/workloads/test_workloads.py::test_the_folder_is_the_list",
    "tests/gpu/test_spec.py::test_the_f32_peak_is_lanes_times_clock[H100 PCIe (sm_90)]",
    "tests/views/test_pictures.py::test_picture_is_well_formed_small_and_self_contained[gpu]",
    "tests/views/test_pictures.py::test_every_class_with_a_picture_is_among_the_values",
    "tests/teach/test_glossary.py::test_every_move_is_explained[rotate]",
    "tests/test_docs.py::test_every_transformation_is_documented[rotate]",
    "tests/test_docs.py::test_reference_is_current",
    "tests/test_docs.py::test_readme_table_is_current",
    "tests/test_house.py::test_layers_look_down[transforms/rotate.py]",
    "tests/test_house.py::test_layers_look_down[views/gpus.py]",
    "tests/transforms/test_rotate.py::test_the_second_part_runs_first",
)
"""Tests that are there already, or on the page, and must have found what was added."""


def run(copy: Path, *arguments: str) -> str:
    """What Python prints in the copy, with the copy's package."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run([sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository after all recipes, and after ``make docs``."""
    copy = tmp_path_factory.mktemp("recipes") / "copy"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "pictures"))
    for file in FILES:
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, copy / file)
    for addition in ADDITIONS:
        addition.put(copy)
    run(copy, "docs/make_reference.py")
    return copy


def test_a_recipe_touches_one_file() -> None:
    places = [a.place for a in ADDITIONS]
    assert len(places) == len(set(places))
    assert set(places) == set().union(*PROMISED.values()) | TESTS


@pytest.mark.parametrize("what", PROMISED)
def test_what_is_added_has_arrived_everywhere(what: str, copy: Path, tmp_path: Path) -> None:
    run(copy, "-m", "tests.recipes.everywhere", what, str(tmp_path))


def test_the_tests_that_are_there_find_it(copy: Path) -> None:
    said = run(copy, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-v", *FOUND)
    assert said.count(" PASSED ") == len(FOUND)


def test_what_the_page_says_keeps_the_style(copy: Path) -> None:
    run(copy, "-m", "ruff", "check", *(a.place for a in ADDITIONS if a.place.endswith(".py")))


def test_a_recipe_that_lacks_its_code_is_noticed() -> None:
    page = ("```python recipe\n# explorer/a.py\nx = 1\n```\n\n```toml recipe\n# b.toml, at the end\n[c]\n```\n\n"
            "```python\ny\n```\n")
    assert [(a.place, a.code, a.row, a.within) for a in additions(page)] == [
        ("explorer/a.py", "x = 1\n", False, ""), ("b.toml", "[c]\n", True, "")]
    assert additions("```python recipe\n# d.py, at the end of _ROWS\n1,\n```\n")[0].within == "_ROWS"
