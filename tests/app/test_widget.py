"""The widget and the magic: bundles, messages, the renewed picture, and what stands in a saved notebook."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import explorer as ex
from explorer.app.explore import explore, session_of
from explorer.app.magic import explore_cell, read_sizes
from explorer.app.widget import Explorer
from explorer.errors import ProgramError, ScheduleError
from tests.programs import ROW_SUM_CELL

from .front import schedule

ROOT = Path(__file__).resolve().parents[2]
VIEW = "application/vnd.jupyter.widget-view+json"
PROGRAM = ROW_SUM_CELL + "\n"


@pytest.fixture
def widget(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = explore(schedule("softmax", "split('k', 4)", M=6, N=12))
    found.sent = []
    monkeypatch.setattr(Explorer, "send", lambda self, content, buffers=None: self.sent.append((content, buffers)))
    yield found
    found.close()


def test_the_bundle_has_the_view_a_picture_and_text(widget: Any) -> None:
    data, _ = widget._repr_mimebundle_()
    assert set(data) == {VIEW, "text/html", "text/plain"}
    assert data[VIEW]["model_id"] == widget.model_id
    assert "s = s.split(&#x27;k&#x27;, 4)" in data["text/html"] or "split('k', 4)" in data["text/html"]
    assert f'ex.explore(softmax, "{widget.schedule.share()}")' in data["text/plain"]
    assert len(json.dumps(data)) < 300_000


def test_the_synchronised_state_holds_the_front_end_alone(widget: Any) -> None:
    state = widget.get_state()
    usual = ("_model", "_view", "_dom", "_anywidget", "layout", "tooltip", "tabbable")
    assert {k for k in state if not k.startswith(usual)} == {"_esm", "_css"}
    widget._receive(widget, {"kind": "ready", "serial": 1}, [])
    assert {k: v for k, v in widget.get_state().items() if k != "layout"} == {k: v for k, v in state.items() if k != "layout"}
    assert len(state["_esm"]) + len(state["_css"]) < 300_000


def test_messages_go_through_the_desk(widget: Any) -> None:
    widget._receive(widget, {"kind": "undo", "serial": 7}, [])
    message, buffers = widget.sent[0]
    assert (message["kind"], message["serial"], buffers) == ("panes", 7, None)
    assert widget.schedule.steps == ()
    assert widget.script == "s = softmax.schedule(M=6, N=12)\n"
    assert widget.session.schedule is widget.schedule
    widget._receive(widget, {"kind": "plotly", "serial": 8}, [])
    assert len(widget.sent[-1][1]) == 1


def test_a_front_end_that_has_gone_is_logged_and_not_raised(widget: Any, monkeypatch: pytest.MonkeyPatch,
                                                            caplog: pytest.LogCaptureFixture) -> None:
    def gone(*_: Any) -> None:
        raise RuntimeError("the comm is closed")

    monkeypatch.setattr(Explorer, "send", gone)
    with caplog.at_level(logging.ERROR, "explorer"):
        widget._receive(widget, {"kind": "ready", "serial": 1}, [])
    assert "the comm is closed" in caplog.text


def test_without_anywidget_the_error_names_what_to_install() -> None:
    code = ("import sys\nsys.modules['anywidget'] = None\nimport explorer as ex\nfrom explorer import workloads\n"
            "s = workloads.get('matmul').definition.schedule(M=2, N=2, K=2)\n"
            "try:\n    ex.explore(s)\nexcept ex.ScheduleError as error:\n    print(error)")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert 'pip install "schedule-explorer[lab]"' in done.stdout
    assert done.stderr == ""


def test_importing_the_package_does_not_import_the_app() -> None:
    code = "import sys, explorer; print([m for m in sys.modules if m.startswith('explorer.app')], 'explore' in dir(explorer))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"


def test_explore_is_public() -> None:
    assert ex.explore is explore
    assert isinstance(ex.explore(schedule("softmax", M=2, N=2)), Explorer)
    with pytest.raises(ScheduleError, match="takes a schedule or a program"):
        ex.explore("softmax")


@pytest.mark.parametrize(("line", "sizes"), [("M=64 N=32", {"M": 64, "N": 32}), (" M=1,N=2 ", {"M": 1, "N": 2}), ("", {})])
def test_sizes_of_the_magic(line: str, sizes: dict[str, int]) -> None:
    assert read_sizes(line) == sizes


@pytest.mark.parametrize("line", ["M", "M=", "M=a", "M=1.5", "M=-1", "3=4", "M=__import__('os')", "M==3"])
def test_what_is_no_size_is_refused(line: str) -> None:
    with pytest.raises(ProgramError, match="is not a size"):
        read_sizes(line)


def test_the_magic_needs_a_program() -> None:
    for cell in (None, "", "\n"):
        with pytest.raises(ProgramError, match="needs a program below it"):
            explore_cell(None, "M=4", cell)


@pytest.fixture(scope="module")
def notebook() -> Any:
    """One notebook, executed: the outputs of each cell."""
    import nbformat
    from nbclient import NotebookClient

    cells = [
        PROGRAM + "w = ex.explore(row_sum, M=37, N=100)\nw",
        "w._receive(w, {'kind': 'apply', 'serial': 2, 'call': \"bind('i', 'block.x')\"}, [])\nimport time; time.sleep(3)",
        "%load_ext explorer",
        "%%explore M=64 N=32\n@ex.program\ndef scale(x: ex.f32[M, N], y: ex.f32[M, N]):\n    for i in range(M):\n"
        "        for j in range(N):\n            y[i, j] = 2.0 * x[i, j]\n",
        "%%explore M=4\ndef f(x): pass", "%%explore M=4\nx = 1", "%%explore M=4 Q=3\n" + PROGRAM.split('"M N")\n')[1],
        "%%explore M=4\n@ex.program\ndef g(x: ex.f32[M, K9]):\n    for i in range(M):\n        x[i, 0] = 1.0\n",
        "%%explore M=4\n1/0",
    ]
    found = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    place = {"metadata": {"path": str(ROOT)}}
    NotebookClient(found, allow_errors=True, timeout=120, kernel_name="python3", resources=place).execute()
    return found


def test_a_saved_cell_is_small_and_shows_a_picture(notebook: Any) -> None:
    still, live = notebook.cells[0].outputs
    assert set(still.data) == {"text/html", "text/plain"}
    assert 'class="ex-static"' in still.data["text/html"]
    assert VIEW in live.data
    assert len(json.dumps(notebook.cells[0].outputs)) < 300_000


def test_the_picture_is_renewed_after_a_change(notebook: Any) -> None:
    still = notebook.cells[0].outputs[0]
    assert "s = s.bind('i', 'block.x')" in still.data["text/plain"]
    assert "block.x" in still.data["text/html"]
    line = still.data["text/plain"].splitlines()[-1]
    text = line.split('"')[1]
    names: dict[str, Any] = {}
    source = ROOT / ".scratch" / "row_sum_of_the_test.py"
    source.parent.mkdir(exist_ok=True)
    source.write_text(PROGRAM)
    exec(compile(PROGRAM, str(source), "exec"), names)
    source.unlink()
    assert str(session_of(names["row_sum"], text).schedule.steps[0]) == "bind('i', 'block.x')"


def test_nothing_is_printed(notebook: Any) -> None:
    assert not [o for cell in notebook.cells[:4] for o in cell.outputs if o.output_type == "stream"]


def test_the_magic_opens_the_explorer(notebook: Any) -> None:
    outputs = notebook.cells[3].outputs
    assert [o.output_type for o in outputs] == ["display_data", "display_data"]
    assert "scale(M=64, N=32), 0 steps" in outputs[0].data["text/plain"]


@pytest.mark.parametrize(("cell", "words"), [(4, "put @ex.program above its def"), (5, "the cell defines no program"),
                                             (6, "row_sum has no size Q"), (7, "K9"), (8, "ZeroDivisionError")])
def test_the_magics_errors_help(notebook: Any, cell: int, words: str) -> None:
    errors = [o for o in notebook.cells[cell].outputs if o.output_type == "error"]
    assert len(errors) == 1
    assert words in "\n".join(errors[0].traceback) + errors[0].evalue
