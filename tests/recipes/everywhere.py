"""What the recipes add, looked for in every place where it must have arrived: run in a copy of the repository that has it.

``python -m tests.recipes.everywhere transformation`` (workload, operation, gpu, view).
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.app.session import Session
from tests.app.front import Front

ROOT = Path(__file__).resolve().parents[2]
assert Path(ex.__file__).is_relative_to(ROOT), "not the copy's package"


N = ex.sizes("N")


@ex.program
def running(x: ex.f32[N], y: ex.f32[N + 1]):
    for i in range(N):
        y[i + 1] = y[i] + x[i]


@ex.program
def powers(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = ex.exp2(x[i]) + np.exp2(0.5 * x[i])


def documented(page: str, *words: str) -> None:
    """The page, as ``make docs`` has written it, has these words."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for word in words:
        assert word in text, f"{page} lacks {word}"


def kept(schedule: ex.Schedule, folder: Path) -> None:
    """The schedule comes back from a file, from a share string and from its script."""
    schedule.save(folder / "schedule.json")
    load = schedule.definition.load
    for again in (load(folder / "schedule.json"), load(schedule.share())):
        assert again.plan == schedule.plan
        assert [str(s) for s in again.steps] == [str(s) for s in schedule.steps]
    script = folder / "script.py"
    script.write_text(schedule.script(), encoding="utf-8")
    made = [v for v in runpy.run_path(str(script)).values() if isinstance(v, ex.Schedule)]
    assert made[-1].cuda == schedule.cuda
    assert [str(s) for s in made[-1].steps] == [str(s) for s in schedule.steps]


def right(schedule: ex.Schedule) -> None:
    """A run on the CPU device finds nothing."""
    run = schedule.run(device="cpu", time=False)
    assert run.correct, str(run)


def transformation(folder: Path) -> None:
    """Menu, palette and its form, method, alias, files, script, help, reference, run."""
    start = ex.workloads.get("sum_rows").definition.schedule(M=5, N=8)
    assert "rotate" in dir(start)
    offered = next(m for m in start.moves("k") if m.name == "rotate")
    assert offered.applies, offered
    assert str(offered.step) == "rotate('k', 4)"
    front = Front(Session(start))
    shown = next(m for m in front.moves("k") if m["name"] == "rotate")
    assert shown["title"] == "Begin a loop in its middle"
    assert [f["name"] for f in shown["form"]] == ["loop", "by"]
    front.ask("apply", call=shown["call"], wait=True)
    assert "rotate('k', 4)" in front.session.script
    rotated = start.roll("k", 4)
    assert rotated == start.rotate("k", 4)
    kept(rotated, folder)
    right(rotated)
    right(rotated.at(N=13))
    with pytest.raises(ex.IllegalSchedule) as caught:
        running.schedule(N=9).rotate("i", 1)
    assert caught.value.finding.question == "order"
    assert ex.help("rotate").startswith("rotate — Run the iterations")
    documented("docs/transformations.md", "### rotate", "*After* `rotate('i', 16)`", "- `by`: the iteration that runs first")
    documented("README.md", "[`rotate`](docs/transformations.md#rotate)")


def workload(folder: Path) -> None:
    """The list, files, script, the default and the automatic schedule, a run against both references, README."""
    assert "scaled_add" in ex.workloads.names()
    found = ex.workloads.get("scaled_add")
    assert found.title == "A vector that is scaled and added to another."
    start = found.definition.schedule(N=70)
    for schedule in (start, ex.strategies.default(start), ex.strategies.auto(start)):
        kept(schedule, folder)
        right(schedule)
    run = start.run(device="cpu", time=False, reference=found.reference)
    assert run.correct
    documented("README.md", f"{len(ex.workloads.names())} ready programs")


def operation(folder: Path) -> None:
    """The language, NumPy's spelling, CUDA, both references, files, script, the table of the page on the language."""
    assert "Two to the power" in (ex.exp2.__doc__ or "")
    schedule = powers.schedule(N=67).split("i", 32).bind("i", "block.x").bind("i.i", "thread.x")
    assert "exp2f(" in schedule.cuda
    kept(schedule, folder)
    right(schedule)
    documented("docs/language.md", "| `exp2(x)` | Two to the power `x`. |")


def gpu(folder: Path) -> None:
    """By name and by alias, its numbers, the explorer's list of targets, what facts and launches are held against."""
    found = ex.gpu("NVIDIA H100 PCIe")
    assert found is ex.gpu("h100 pcie")
    assert (found.arch, found.multiprocessors, found.max_threads_per_sm) == ("sm_90", 114, 2048)
    start = ex.workloads.get("sum_rows").definition.schedule(M=5, N=8)
    front = Front(Session(start))
    front.ask("ready", wait=True)
    assert "H100 PCIe" in [g["name"] for g in front.panes["target"]["gpus"]]
    front.ask("target", gpu="H100 PCIe", wait=True)
    assert front.panes["target"]["gpu"] == "H100 PCIe"
    assert start.run(device="cpu", time=False, gpu="H100 PCIe").correct


def view(folder: Path) -> None:
    """The notebook's picture of the value, and that importing the package does not read it."""
    assert "explorer.views.gpus" not in sys.modules
    picture: Any = ex.gpu("H200")._repr_html_()  # type: ignore[attr-defined]
    assert "multiprocessors" in picture
    assert "132 multiprocessor" in picture


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
