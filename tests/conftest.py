"""Shared fixtures: golden files; GPU tests only where there is a GPU; slow tests are marked."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from explorer.run.cpu.compiler import BUILDS
from tests.quick import BUDGET_S, ROOT, WORTH_MEASURING, cpu_s, is_slow, is_slow_file, listed

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no fault
hypothesis.settings.load_profile("untimed")

GOLDENS = Path(__file__).resolve().parent / "goldens"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files from what the tests produce")
    parser.addoption("--cpu-times", metavar="FILE", help="append the processor time of each test to a file (see tests/quick.py)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a CUDA device; collected only where one is present")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the files that are slow as a whole, where slow tests are left out."""
    if config.getoption("markexpr") != "not slow" or not collection_path.is_relative_to(ROOT):
        return None
    return True if is_slow_file(collection_path.relative_to(ROOT).as_posix(), listed()) else None


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str) -> list[pytest.Item] | None:
    """Do not make thousands of cases of slow functions, where slow tests are left out."""
    left_out = collector.config.getoption("markexpr") == "not slow" and f"{collector.nodeid}::{name}" in listed()
    return [] if left_out else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note the processor time of each test, if it is asked for."""
    start = cpu_s()
    found = yield
    if file := item.config.getoption("--cpu-times"):
        with Path(file).open("a") as out:
            out.write(json.dumps([item.nodeid, round(cpu_s() - start, 3)]) + "\n")
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests; deselect GPU tests on a machine without a GPU (they are a suite of their own there, not skips)."""
    slow = listed()
    for item in items:
        if is_slow(item.nodeid, slow):
            item.add_marker(pytest.mark.slow)
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if gpu and not _devices():
        config.hook.pytest_deselected(items=gpu)
        items[:] = [item for item in items if item not in gpu]


def _devices() -> int:
    """Number of CUDA devices, from the driver itself."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare a text with ``tests/goldens/<folder>/<file>/<test>[.<name>].txt``.

    A missing golden fails; ``pytest --update-golden`` writes what the test produced, to be read before it is kept.
    """
    node = request.node
    folder = GOLDENS / node.path.relative_to(GOLDENS.parent).with_suffix("")

    def compare(text: str, name: str = "", suffix: str = ".txt") -> None:
        stem = "".join(c if c.isalnum() or c in "-_." else "_" for c in node.name)
        path = folder / f"{stem}{'.' + name if name else ''}{suffix}"
        produced = text.rstrip("\n") + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(produced, encoding="utf-8")
            return
        if not path.exists():
            missing = path.relative_to(GOLDENS.parent)
            pytest.fail(f"there is no golden {missing}; write it with --update-golden and read it:\n{produced}")
        assert produced == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nothing is remembered yet; compiled kernels, found by their content, are those of all tests."""
    folder, builds = tmp_path / "memory", BUILDS.folder
    folder.mkdir()
    for start in (f"{n:02x}" for n in range(256)):
        (builds / start).mkdir(parents=True, exist_ok=True)
        (folder / start).symlink_to(builds / start)
    monkeypatch.setenv("EXPLORER_CACHE_DIR", str(folder))
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say when the quick tests have grown: new tests are quick until they are measured."""
    if config.getoption("markexpr") != "not slow":
        return
    spent = sum(getattr(report, "duration", 0.0) for reports in terminalreporter.stats.values() for report in reports)
    if spent > WORTH_MEASURING * BUDGET_S:
        said = f"The quick tests took {spent:.0f} s, and have {BUDGET_S:.0f}: measure the new ones, as tests/quick.py says."
        terminalreporter.write_line(said, yellow=True)
