"""Every example runs as a user runs it, and its assertions are reached."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def own_asserts(path: Path) -> list[int]:
    """Lines of the assertions that run when the file is run as a script."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    main = next(node for node in tree.body if isinstance(node, ast.If))
    return [node.lineno for node in ast.walk(main) if isinstance(node, ast.Assert)]


def run(path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *flags, str(path)], capture_output=True, text=True, timeout=600, check=False,
                          env=environment, cwd=ROOT / "examples")  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs_and_reaches_its_assertions(path: Path, tmp_path: Path) -> None:
    asserts = own_asserts(path)
    assert asserts, "an example asserts what it claims"
    tracer = tmp_path / "traced.py"
    tracer.write_text(
        "import runpy, sys\n"
        f"path, seen = {str(path)!r}, set()\n"
        "def local(frame, event, arg):\n"
        "    seen.add(frame.f_lineno)\n"
        "    return local\n"
        "sys.settrace(lambda frame, event, arg: local if frame.f_code.co_filename == path else None)\n"
        "runpy.run_path(path, run_name='__main__')\n"
        "sys.settrace(None)\n"
        f"missed = [line for line in {asserts} if line not in seen]\n"
        "print('missed', missed)\n", encoding="utf-8")
    done = run(tracer)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.rstrip().endswith("missed []"), done.stdout[-200:]


def test_a_failing_assertion_fails_the_example(tmp_path: Path) -> None:
    """The test above would notice: the same script with one expectation turned around does not end well."""
    source = (ROOT / "examples" / "column_sum.py").read_text(encoding="utf-8")
    broken = tmp_path / "broken.py"
    broken.write_text(source.replace('assert "atomicAdd" in s.cuda', 'assert "atomicAdd" not in s.cuda'), encoding="utf-8")
    done = run(broken)
    assert done.returncode == 1
    assert "AssertionError" in done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_says_how_to_run_it(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert f"python examples/{path.name}" in (ast.get_docstring(tree) or "")
    schedule = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "schedule")
    assert ast.get_docstring(schedule)
