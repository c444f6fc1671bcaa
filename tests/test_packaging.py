"""What is installed is complete: a wheel holds every file of the package, and works where the sources are not."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "explorer"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
               "--disable-pip-version-check", "--wheel-dir", str(folder), str(ROOT)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def outside(installed: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code that sees the wheel's content and not the sources."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(installed)}
    return subprocess.run([sys.executable, "-W", "error::SyntaxWarning", "-c", code], cwd=installed.parent, env=environment,
                          capture_output=True, text=True, check=False, timeout=300)  # fmt: skip


def test_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("explorer/")}
    wanted = {p.relative_to(ROOT).as_posix() for p in PACKAGE.rglob("*")
              if p.is_file() and "__pycache__" not in p.parts and not p.name.startswith(".")}
    assert held == wanted
    for suffix in (".toml", ".cuh", ".h", ".cpp"):
        assert any(name.endswith(suffix) for name in held), suffix


def test_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"explorer", f"schedule_explorer-{PROJECT['version']}.dist-info"}
    assert wheel.name == f"schedule_explorer-{PROJECT['version']}-py3-none-any.whl"
    assert wheel.stat().st_size < 5_000_000


def test_installed_package_emits_and_runs(installed: Path) -> None:
    """The catalogue of GPUs, the device library and the CPU runtime are read from the installed files."""
    code = """
import explorer as ex
from explorer import workloads
w = workloads.get("sum_rows")
s = w.definition.schedule(**w.tiny)
s = s.bind("i", "block.x").bind("k", "thread.x").collect("S1", "shuffle")
assert s.kernel("H200").launches
assert "block_reduce" in s.cuda
run = s.run(device="cpu", time=False, ragged=False)
assert run.correct
assert run.evidence.emulated
print(ex.__file__)
"""
    done = outside(installed, code)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == installed / "explorer" / "__init__.py"


def test_version_is_said_once(installed: Path) -> None:
    done = outside(installed, "import explorer; print(explorer.__version__)")
    assert done.stdout.strip() == PROJECT["version"], done.stderr


def test_base_needs_little() -> None:
    """Analysis and text need islpy and NumPy, the CPU device a folder, pictures Pygments; everything heavier is an extra."""
    assert {d.split(">")[0] for d in PROJECT["dependencies"]} == {"islpy", "numpy", "platformdirs", "pygments"}
    assert {"lab", "cuda12", "cuda13", "test", "docs"} <= PROJECT["optional-dependencies"].keys()


def test_binder_has_a_compiler_and_opens_the_tour() -> None:
    binder = ROOT / "binder"
    assert (binder / "apt.txt").read_text().split() == ["g++"]
    lines = (binder / "requirements.txt").read_text().splitlines()
    assert lines[0] == "--editable ."
    lab = PROJECT["optional-dependencies"]["lab"]
    assert sorted(lines[1:]) == sorted(d for d in lab if not d.startswith("jupyterlab")), "Binder brings JupyterLab itself"
    post = binder / "postBuild"
    assert os.access(post, os.X_OK)
    assert subprocess.run(["bash", "-n", str(post)], check=False).returncode == 0
    assert "notebooks/00_tour.ipynb" in post.read_text()
    assert (ROOT / "notebooks" / "00_tour.ipynb").exists()


def test_commands_of_the_readme_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in ("tour", "test"):
        assert f"make {target}" in readme
        assert f"\n{target}: " in makefile
    assert "make check" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
