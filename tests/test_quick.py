"""The list of slow tests names tests that there are, and the choice keeps what is quick."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.quick import ROOT, chosen, cpu_s, is_slow, is_slow_file, listed


def functions(file: str) -> set[str]:
    """The names of the functions of a file."""
    return {n.name for n in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("name", listed())
def test_what_is_listed_is_there(name: str) -> None:
    file, _, function = name.partition("::")
    assert (ROOT / file).is_file(), "python -m tests.quick writes the list anew"
    assert not function or function.rpartition("::")[2] in functions(file)


def test_the_cheapest_functions_stay_quick_with_all_their_parameters() -> None:
    times = {"tests/a.py::test_x[1]": 1.0, "tests/a.py::test_x[2]": 1.5, "tests/a.py::test_y": 2.0, "tests/b.py::test_z": 9.0,
             "tests/browser/test_w.py::test_v": 0.1}
    slow = chosen(times, budget_s=5.0)
    assert slow == {"tests/b.py": 9.0, "tests/browser/test_w.py": 0.1}
    assert chosen(times, budget_s=2.2) == {"tests/a.py::test_x": 2.5, **slow}
    assert not is_slow("tests/a.py::test_x[1]", slow)
    assert is_slow("tests/a.py::test_x[1]", {"tests/a.py::test_x": 2.5})
    assert not is_slow("tests/a.py::test_xy", {"tests/a.py::test_x": 2.5})
    assert is_slow("tests/b.py::test_z", slow)
    assert is_slow_file("tests/browser/test_new.py", {})


def test_processor_time_of_children_counts() -> None:
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint('ready', flush=True)\ninput()"
    start = cpu_s()
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        running = cpu_s() - start
        child.communicate(b"\n")
    assert running >= 0.25 or sys.platform != "linux"
    assert cpu_s() - start >= 0.25


def test_slow_tests_are_marked(request: pytest.FixtureRequest) -> None:
    slow = listed()
    for item in request.session.items:
        assert (item.get_closest_marker("slow") is not None) == is_slow(item.nodeid, slow), item.nodeid
