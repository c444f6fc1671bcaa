"""The spelling of programs is one that type checkers and linters accept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = '''"""A program as users write it."""

import explorer.frontend as ex

M, N = ex.sizes("M N")


@ex.program
def row_softmax(x: ex.f16[M, N], wide: ex.f32[2 * M, N - 1, 3], target: ex.i32[M], scale: ex.f32, y: ex.f16[M, N]):
    """Softmax of each row."""
    for i in range(M):
        peak = ex.local(ex.f32)
        total = ex.local(ex.f32)
        row = ex.local(ex.f32, N)
        seen = ex.local(ex.bool_)
        seen = False
        peak = -ex.inf
        for k in range(N):
            row[k] = scale * x[i, k] + wide[i, 0, 0]
            peak = max(peak, x[i, k], ex.exp(x[i, target[i]]))
            seen = seen or x[i, k] > 0
        total = 0.0
        for k in range(N):
            total += ex.exp(row[k] - peak)
        for k in range(0, N, 2):
            if 0 < k < N - 1 and i != 0:
                y[i, k] = ex.exp(x[i, k] - peak) / total if seen else 0.0


program = row_softmax.at(M=4, N=8)
print(program.name)
'''


def test_pyright_and_ruff_accept_a_program(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text(PROGRAM)
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{ROOT.as_posix()}"], "typeCheckingMode": "standard"}}')
    tools = Path(sys.executable).parent
    checked = subprocess.run([tools / "pyright", "-p", tmp_path], capture_output=True, text=True, timeout=120)
    assert "0 errors, 0 warnings" in checked.stdout, checked.stdout + checked.stderr
    rules = ["check", "--isolated", "--select", "E,F,I,B,UP,D,N,RUF,SIM,PL", "--line-length", "130", str(path)]
    linted = subprocess.run([tools / "ruff", *rules], capture_output=True, text=True, timeout=60)
    assert linted.returncode == 0, linted.stdout


def test_the_program_is_accepted(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-c", f"import runpy; runpy.run_path({str(path)!r})"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("row_softmax\n", "")
