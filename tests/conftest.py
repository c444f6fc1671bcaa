"""Shared fixtures: golden files, and GPU tests only where there is a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no fault
hypothesis.settings.load_profile("untimed")

GOLDENS = Path(__file__).resolve().parent / "goldens"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files from what the tests produce")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a CUDA device; collected only where one is present")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect GPU tests on a machine without a GPU; they are a suite of their own there, not skips."""
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
