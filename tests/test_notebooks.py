"""Every notebook runs from top to bottom, its solutions solve its exercises, and its stored outputs are clean and small."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from docs.run_notebooks import ALIVE, METADATA, NOTEBOOKS, run

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
PLACES = re.compile(r"(?<![\w.:/<])(/(home|root|tmp|work|usr|opt|var|mnt|Users)/|[A-Z]:\\\\)|ipykernel_\d|0x[0-9a-f]{10,}")
WARNINGS = re.compile(r"Warning\b|Traceback|\[IPKernelApp\]")
SOLUTION = re.compile(r"<summary>A solution</summary>\n\n```python\n(?P<work>.*?)(?P<task>\w+)\.check\(mine\)\n```", re.S)
"""A folded solution: what it does, and the exercise that checks it."""
SMALL = 300_000
"""Bytes of a stored notebook at most."""


def outputs(notebook: nbformat.NotebookNode) -> list[tuple[int, nbformat.NotebookNode]]:
    """(number of the cell, output), of all code cells."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [(n, output) for n, cell in enumerate(code, 1) for output in cell.outputs]


def shown(output: nbformat.NotebookNode) -> str:
    """Everything that an output shows, as text."""
    return "\n".join([output.get("text", ""), *(str(v) for v in output.get("data", {}).values())])


def check_clean(notebook: nbformat.NotebookNode) -> None:
    for number, output in outputs(notebook):
        assert output.output_type != "error", f"cell {number} failed: {output.get('evalue')}"
        assert output.get("name") != "stderr", f"cell {number} wrote to stderr: {shown(output)[:300]}"
        text = shown(output)
        place = PLACES.search(text)
        assert place is None, f"cell {number} shows a place of this machine: {text[place.start() - 40 : place.end() + 40]}"
        assert not WARNINGS.search(text), f"cell {number} shows a warning"


def solved(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with each folded solution as a cell of its own, which fails where the exercise is not solved."""
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "markdown" and (found := SOLUTION.search(cell.source)):
            text = f"{found['work']}report = {found['task']}.check(mine)\nassert report, report"
            cells.append(nbformat.v4.new_code_cell(text, metadata={"tags": ["solution"]}))
    return nbformat.from_dict({**notebook, "cells": cells})


def test_there_are_a_tour_and_lessons() -> None:
    assert [p.stem for p in PATHS] == ["00_tour", "01_coalescing", "02_fusion", "03_binding", "04_pipelining", "05_reductions",
                                        "06_stitching", "07_tensor_cores"]


@pytest.mark.parametrize("path", [p for p in PATHS if p.stem != "00_tour"], ids=lambda p: p.stem)
def test_every_lesson_has_exercises_with_hints_and_solutions(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert text.count("= Exercise(") == text.count("<summary>Hint</summary>") == len(SOLUTION.findall(text)) >= 2
    checks = [cell for cell in notebook.cells if cell.cell_type == "code" and ".check(mine)" in cell.source]
    stored = [cell.outputs[0].data["text/plain"] for cell in checks]
    assert all(report.startswith(("not yet", "nothing done yet")) for report in stored), "stored unsolved"
    assert len(checks) == text.count("= Exercise(")


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_runs_from_top_to_bottom(path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    fresh = run(solved(stored))
    fresh.cells = [cell for cell in fresh.cells if "solution" not in cell.metadata.get("tags", ())]
    check_clean(fresh)
    cells = [list(dict.fromkeys(n for n, _ in outputs(book))) for book in (stored, fresh)]  # a busy kernel prints in pieces
    assert cells[0] == cells[1], "the stored outputs are of other cells: python docs/run_notebooks.py"


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_stored_outputs_are_clean(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    check_clean(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "run from top to bottom, once"
    assert outputs(notebook), "stored with outputs"
    assert path.stat().st_size <= SMALL
    assert notebook.metadata == METADATA


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_every_picture_has_a_text_beside_it(path: Path) -> None:
    for number, output in outputs(nbformat.read(path, as_version=4)):
        if "text/html" in output.get("data", {}):
            assert len(output.data["text/plain"]) > 20, f"cell {number}"
        assert not set(ALIVE) & set(output.get("data", {})), f"cell {number} is stored with what needs JavaScript or a kernel"


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_code_cells_are_short_and_introduced(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].cell_type == "markdown"
    for cell in cells:
        assert len(cell.source.splitlines()) <= 30
        assert max(map(len, cell.source.splitlines())) <= 130


def test_dirty_outputs_are_noticed() -> None:
    def book(*found: dict) -> nbformat.NotebookNode:
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[nbformat.from_dict(o) for o in found])])

    check_clean(book({"output_type": "stream", "name": "stdout", "text": "a / b, //comment, 4/home"}))
    for dirty in ({"output_type": "stream", "name": "stdout", "text": "wrote /tmp/softmax.cu"},
                  {"output_type": "stream", "name": "stderr", "text": "hm"},
                  {"output_type": "stream", "name": "stdout", "text": "FutureWarning: soon"},
                  {"output_type": "error", "ename": "E", "evalue": "v", "traceback": []}):
        with pytest.raises(AssertionError):
            check_clean(book(dirty))
