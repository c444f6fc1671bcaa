"""Runs the notebooks from top to bottom and stores what they show.

``python docs/run_notebooks.py`` runs every notebook in ``notebooks/``; with names, only those.  Counters and outputs are
stored, times of execution and machine details are not.  What needs JavaScript or a kernel (Plotly figures, widgets) is
stored as its static picture alone, which every reader of notebooks shows, light or dark.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}}
ALIVE = ("application/vnd.plotly.v1+json", "application/vnd.jupyter.widget-view+json")
"""Forms of an output that are not stored."""


def run(notebook: nbformat.NotebookNode, timeout_s: int = 600) -> nbformat.NotebookNode:
    """The notebook with the outputs of a fresh kernel.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        At the first cell that fails.
    """
    client = NotebookClient(notebook, timeout=timeout_s, kernel_name="python3", record_timing=False,
                            resources={"metadata": {"path": str(NOTEBOOKS)}})  # fmt: skip
    client.execute()
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        for form in ALIVE:
            output.get("data", {}).pop(form, None)
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


if __name__ == "__main__":
    for path in [NOTEBOOKS / name for name in sys.argv[1:]] or sorted(NOTEBOOKS.glob("*.ipynb")):
        nbformat.write(run(nbformat.read(path, as_version=4)), path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
