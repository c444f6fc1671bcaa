"""The architecture, enforced: layers only look down, heavy packages stay in their layer, files stay short."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "explorer"
RANK = {"errors": 0, "system": 1, "ir": 1, "gpu": 1, "poly": 2, "frontend": 2, "schedule": 3, "workloads": 3, "transforms": 4,
        "kernel": 4, "strategies": 5, "steps": 5, "api": 5, "run": 7, "views": 8, "teach": 10, "app": 10, "__init__": 11}
"""Height of each layer; a module may import its own layer and lower ones."""
INSIDE = {"run": {"device": 0, "options": 0, "timing": 0, "facts": 0, "engine_accesses": 0, "inputs": 1, "cpu": 1, "nvrtc": 1,
                  "cuda": 2, "kernel": 2, "verify": 3, "result": 4, "execute": 5, "export": 5, "stamps": 6, "search": 6,
                  "baselines": 6, "counterexample": 6}}
"""Height of each part of a layer that has storeys of its own."""
HANDS_ON = {"schedule/schedule.py", "schedule/methods.py", "frontend/definition.py"}
"""The two classes that users hold: their methods hand on to layers above, which they import when they are called."""
HOME = {"islpy": {"poly"}, "cupy": {"run"}, "cupy_backends": {"run"}, "plotly": {"views"}, "ipywidgets": {"app"},
        "anywidget": {"app"}}
"""Third-party packages and the only layers that may import them."""
CEILING = 400


def layer(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


def height(parts: Sequence[str]) -> tuple[int, int]:
    """How high a module stands: its layer, and its part of a layer that has storeys."""
    storeys = INSIDE.get(parts[1])
    return RANK[parts[1]], storeys[parts[2]] if storeys and len(parts) > 2 and parts[2] != "__init__" else 0


def late(tree: ast.AST) -> set[ast.AST]:
    """Everything that importing the file does not run: the bodies of functions, and what only type checkers read."""
    inside = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)
              or (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    return {n for function in inside for n in ast.walk(function)}


def is_module(parts: Sequence[str]) -> bool:
    at = PACKAGE.parent.joinpath(*parts)
    return parts[0] == "explorer" and (at.is_dir() or at.with_suffix(".py").is_file())


def imports(path: Path, functions: bool = True) -> list[tuple[int, str]]:
    """(line, absolute dotted module) of every import in a file, with or without those inside functions."""
    here = ("explorer", *path.relative_to(PACKAGE).with_suffix("").parts)
    found = []
    tree = ast.parse(path.read_text())
    left_out = set() if functions else late(tree)
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level] if node.level else ()
            if path.name == "__init__.py" and node.level:
                base = here[: len(here) - node.level]
            module = (*base, *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                whole = (*module, alias.name)
                found.append((node.lineno, ".".join(whole if module == ("explorer",) or is_module(whole) else module)))
    return found


SOURCES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_layers_look_down(path: Path) -> None:
    own = height(("explorer", *path.relative_to(PACKAGE).with_suffix("").parts))
    for line, module in imports(path, functions=str(path.relative_to(PACKAGE)) not in HANDS_ON):
        parts = module.split(".")
        if parts[0] == "explorer" and len(parts) > 1 and parts[1] in RANK:
            assert height(parts) <= own, f"{path.relative_to(ROOT)}:{line} imports {module}, which stands above it"
        if parts[0] in HOME:
            assert layer(path) in HOME[parts[0]], f"{path.relative_to(ROOT)}:{line} imports {parts[0]} outside {HOME[parts[0]]}"


def test_the_check_itself_sees_imports() -> None:
    names = {module for _, module in imports(PACKAGE / "schedule" / "schedule.py")}
    at_once = {module for _, module in imports(PACKAGE / "schedule" / "schedule.py", functions=False)}
    assert names - at_once >= {"explorer.steps.hints", "explorer.run.facts", "explorer.transforms.base"}
    assert at_once >= {"explorer.ir.program", "explorer.poly.judge"}


@pytest.mark.parametrize(
    "path", [p for p in sorted(PACKAGE.rglob("*")) if p.suffix in (".py", ".h", ".cuh", ".cpp", ".js", ".css")],
    ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= CEILING


def test_import_is_quiet_and_needs_no_heavy_package() -> None:
    code = ("import sys; before = set(sys.modules); import explorer; "
            "heavy = {'cupy', 'plotly', 'ipywidgets', 'anywidget', 'torch', 'matplotlib'} & set(sys.modules); "
            "assert not heavy, heavy")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == ""


def test_public_names_exist_once() -> None:  # ruff (RUF022) keeps them in order
    import explorer

    assert len(set(explorer.__all__)) == len(explorer.__all__) > 30
    for name in explorer.__all__:
        assert hasattr(explorer, name)
