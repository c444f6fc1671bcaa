"""Where a program may be typed: files, notebook cells, functions within functions; and where it cannot be found."""

from __future__ import annotations

import importlib.util
import linecache
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from explorer.errors import ProgramError
from explorer.frontend import definition
from tests.frontend.support import define

ROOT = Path(__file__).resolve().parents[2]
COPY = """
import explorer.frontend as ex

N = ex.sizes("N")


@ex.program
def copy(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = {value}
"""


def run(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, input=text, capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CELLS = r"""
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.history_manager.enabled = False
for text in {cells!r}:
    shell.run_cell(text, store_history=False)
"""


def test_cells_of_an_interactive_shell():
    cells = [COPY.format(value=v).strip() + "\nprint(copy.at(N=2).statements[0])" for v in ("x[i]", "2 * x[i]")]
    done = run("-c", CELLS.format(cells=cells))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert "line=9, text='y[i] = x[i]'" in first
    assert "line=9, text='y[i] = 2 * x[i]'" in second


def test_a_mistake_in_a_cell_is_shown_without_a_traceback():
    done = run("-c", CELLS.format(cells=[COPY.format(value="x[i * i]").strip()]))
    lines = done.stdout.splitlines()
    assert lines[0] == "ProgramError: i * i is not affine"
    assert [line.strip() for line in lines[1:4]] == ["cell:9", "y[i] = x[i * i]", "^^^^^"]
    assert lines[2].index("i * i") == lines[3].index("^")
    assert "Traceback" not in done.stdout + done.stderr
    assert "definition.py" not in done.stdout


def test_a_notebook():
    cells = [
        new_code_cell(COPY.format(value="x[i]").strip()),
        new_code_cell("print(copy.at(N=2).statements[0].line)"),
        new_code_cell(COPY.format(value="x[i * i]").strip()),
    ]
    book = NotebookClient(
        new_notebook(cells=cells),
        timeout=60,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(ROOT)}},
    ).execute()
    assert book.cells[1].outputs[0].text == "9\n"
    shown = "\n".join(book.cells[2].outputs[0].traceback)
    assert shown.splitlines()[:2] == ["ProgramError: i * i is not affine", "  cell:9"]
    assert "definition.py" not in shown


def test_the_kernel_s_file_names_are_cells():
    with pytest.raises(ProgramError) as caught:
        define("@ex.program\ndef f(x: ex.f32[N]):\n    return", file="/tmp/ipykernel_17/3141592.py")
    assert caught.value.where.startswith("cell:3\n")


def test_a_script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(COPY.format(value="x[i]") + "\nprint(copy.at(N=4).statements[0].text)")
    done = run(str(path))
    assert (done.stdout, done.stderr) == ("y[i] = x[i]\n", "")
    done = run("-c", f"import runpy; runpy.run_path({str(path)!r})")
    assert (done.stdout, done.stderr) == ("y[i] = x[i]\n", "")


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python 3.13 keeps the source of -c and of its prompt")
@pytest.mark.parametrize("how", ["-c", "-"])
def test_without_source(how):
    text = COPY.format(value="x[i]")
    done = run("-c", text) if how == "-c" else run("-", text=text)
    assert done.returncode == 1
    assert "the source of copy is not available" in done.stderr
    assert "put it in a file, a notebook cell or IPython" in done.stderr


def test_exec_without_source():
    with pytest.raises(ProgramError, match="the source of copy is not available") as caught:
        exec(compile(COPY.format(value="x[i]"), "<nowhere>", "exec"), {"__name__": "nowhere"})
    assert "<nowhere>" in caught.value.where


def test_a_file_that_changed_after_its_import(tmp_path):
    path = tmp_path / "changing.py"
    path.write_text(COPY.format(value="x[i]").replace("@ex.program\n", ""))
    module = load(path)
    path.write_text(COPY.format(value="x[i]").replace("@ex.program\ndef copy(x:", "def other(z: ex.f32[N], x:"))
    linecache.checkcache(str(path))
    with pytest.raises(ProgramError, match="does not match the function"):
        definition.define(module.copy)


def test_postponed_annotations(tmp_path):
    path = tmp_path / "postponed.py"
    path.write_text("from __future__ import annotations\n" + COPY.format(value="x[i]"))
    assert load(path).copy.at(N=3).array_of["x"].shape == (3,)


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_inside_a_function(tmp_path, future):
    path = tmp_path / "inside.py"
    path.write_text(
        future
        + textwrap.dedent('''
        import explorer.frontend as ex

        def make(scale):
            rows, columns = ex.sizes("rows columns")
            WIDE = ex.f64

            @ex.program
            def f(x: WIDE[rows, columns], y: WIDE[rows]):
                """Doc."""
        # a comment out of line
                for i in range(rows):
                    y[i] = scale * x[i, 0]   # é

            return f
        ''')
    )
    module = load(path)
    f, g = module.make(2), module.make(3)
    assert f.sizes == ("rows", "columns")
    first, second = (p.at(rows=2, columns=3) for p in (f, g))
    assert first.array_of["x"].shape == (2, 3)
    assert first.statements[0].value.args[0].value == 2
    assert second.statements[0].value.args[0].value == 3
    assert first.source.startswith("@ex.program\ndef f(")
    line = first.statements[0].line
    assert path.read_text().splitlines()[line - 1].strip().startswith("y[i] = scale")


def test_carets_count_characters_and_not_bytes():
    with pytest.raises(ProgramError) as caught:
        define('@ex.program\ndef f(x: ex.f32[N]):\n    "é"; x[0] = "ü" if True else x[i * "é"]')
    _, code, carets = caught.value.where.splitlines()
    assert code[carets.index("^") : carets.rindex("^") + 1] == '"ü"'


def test_text_over_several_lines():
    text = """
        @ex.program
        def f(
            x: ex.f32[M, N],  # the input
            y: ex.f32[M, N],
        ) -> None:
            for i in range(M):
                for j in range(N):
                    y[i, j] = (
                        x[i, j]  # the point
                        + x[j, i]
                    )
    """
    f = define(text)
    assert f.at(M=3, N=3).statements[0].text == "y[i, j] = ( x[i, j] + x[j, i] )"
    with pytest.raises(ProgramError) as caught:
        f.at(M=3, N=4)
    assert caught.value.where.splitlines()[1:] == ["    y[i, j] = (", "    ^^^^^^^^^^^"]


def test_windows_line_ends(tmp_path):
    path = tmp_path / "windows.py"
    path.write_bytes(COPY.format(value="x[i]").replace("\n", "\r\n").encode())
    assert load(path).copy.at(N=3).statements[0].text == "y[i] = x[i]"


def test_tabs(tmp_path):
    path = tmp_path / "tabs.py"
    path.write_text(COPY.format(value="x[i + i * i]").replace("    ", "\t"))
    with pytest.raises(ProgramError) as caught:
        load(path)
    assert caught.value.where.splitlines()[1:] == ["    y[i] = x[i + i * i]", "                 ^^^^^"]


def test_under_other_decorators():
    f = define("def same(f):\n    return f\n\n@ex.program\n@same\ndef f(x: ex.f32[N]):\n    x[0] = 1.0")
    assert f.at(N=1).statements[0].line == 7


def test_any_import_spelling():
    f = define(
        "from explorer.frontend import program as p, f32 as single, exp as e, local as tmp\n"
        "@p\ndef f(x: single[N]):\n    t = tmp(single)\n    t = e(x[0])\n    x[0] = t"
    )
    assert f.at(N=1).statements[0].value.op == "exp"


def test_annotations_in_quotes():
    f = define('@ex.program\ndef f(x: "ex.f32[N, Q]"):\n    x[0, 0] = 1.0', Q=3)
    assert f.at(N=2).array_of["x"].shape == (2, 3)


def test_sizes_of_another_module():
    from types import SimpleNamespace

    import explorer.frontend as ex

    shape = SimpleNamespace(P=ex.sizes("P"), deep=SimpleNamespace(Q=ex.sizes("Q") * 2))
    f = define("@ex.program\ndef f(x: ex.f32[shape.P]):\n    for i in range(shape.P):\n        x[i] = shape.deep.Q", shape=shape)
    assert f.sizes == ("P", "Q")
    assert f.at(P=2, Q=3).statements[0].value.value == 6.0


def test_the_program_says_where_it_stands(tmp_path):
    path = tmp_path / "somewhere.py"
    path.write_text(COPY.format(value="x[i]"))
    program = load(path).copy.at(N=3)
    assert (program.file, program.first_line) == ("somewhere.py", 7)
