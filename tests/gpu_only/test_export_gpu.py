"""Exported files on a real GPU: nvcc alone compiles them, they check themselves, and a changed kernel is found out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import explorer as ex

pytestmark = pytest.mark.gpu

NAMES = ["softmax", "matmul", "layernorm", "sum_columns", "jacobi2d", "bias_gelu"]
SIZES = {"softmax": {"M": 37, "N": 264}, "layernorm": {"M": 19, "N": 520}, "sum_columns": {"M": 1000, "N": 40}}


def exported(folder: Path, name: str) -> Path:
    workload = ex.workloads.get(name)
    written = workload.definition.schedule(**SIZES.get(name, workload.tiny))
    return ex.strategies.auto(written).export(folder / f"{name}.cu")


def run(source: Path) -> subprocess.CompletedProcess[str]:
    nvcc = shutil.which("nvcc")
    assert nvcc, "a machine with a GPU for these tests needs nvcc"
    binary = source.with_suffix("")
    said = re.search(r"^//     nvcc (.*) && ", source.read_text(), re.M)
    assert said, "the file says how it is compiled"
    built = subprocess.run([nvcc, *said[1].split()], cwd=source.parent, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    return subprocess.run([str(binary)], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", NAMES)
def test_it_checks_itself(name: str, tmp_path: Path) -> None:
    done = run(exported(tmp_path, name))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "right" in done.stdout


@pytest.mark.parametrize(("name", "old", "new"), [
    ("softmax", r"total_p \+= ", "total_p -= "), ("matmul", r"\] \* b\[", "] + b["), ("layernorm", r" \* scale", " + scale"),
    ("jacobi2d", r"0\.2f \*", "0.3f *")])
def test_one_changed_operator_exits_1(name: str, old: str, new: str, tmp_path: Path) -> None:
    source = exported(tmp_path, name)
    text = source.read_text()
    start = text.index("__global__")  # the kernel, not the reference
    changed, count = re.subn(old, new, text[start:], count=1)
    assert count == 1
    source.write_text(text[:start] + changed)
    done = run(source)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "WRONG" in done.stdout.upper()
