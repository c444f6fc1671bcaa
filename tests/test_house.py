"""The architecture, enforced: layers only look down, heavy packages stay in their layer, files stay short."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "explorer"
RANK = {"errors": 0, "files": 1, "cancel": 1, "ir": 1, "gpu": 1, "poly": 2, "frontend": 2, "step": 3, "schedule": 3,
        "schedule_methods": 3, "transforms": 4, "replay": 4, "kernel": 4, "workloads": 3, "strategies": 5, "moves": 5, "saved": 5,
        "glossary": 5, "calls": 5, "hints": 5, "api": 5, "run": 7, "views": 8, "manual": 10, "exercises": 10, "tables": 10,
        "app": 10, "__init__": 11}
"""Height of each layer; a module may import its own layer and lower ones."""
HANDS_ON = {"schedule.py", "schedule_methods.py", "frontend/definition.py"}
"""The two classes that users hold: their methods hand on to layers above, which they import when they are called."""
HOME = {"islpy": {"poly"}, "cupy": {"run"}, "cupy_backends": {"run"}, "plotly": {"views"}, "ipywidgets": {"app"},
        "anywidget": {"app"}}
"""Third-party packages and the only layers that may import them."""
CEILING = 400


def layer(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


def late(tree: ast.AST) -> set[ast.AST]:
    """Everything that importing the file does not run: the bodies of functions, and what only type checkers read."""
    inside = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)
              or (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    return {n for function in inside for n in ast.walk(function)}


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
            names = [".".join((*module, alias.name)) for alias in node.names] if module == ("explorer",) else [".".join(module)]
            found += [(node.lineno, name) for name in names]
    return found


SOURCES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_layers_look_down(path: Path) -> None:
    own = RANK[layer(path)]
    for line, module in imports(path, functions=str(path.relative_to(PACKAGE)) not in HANDS_ON):
        parts = module.split(".")
        if parts[0] == "explorer" and len(parts) > 1 and parts[1] in RANK:
            assert RANK[parts[1]] <= own, f"{path.relative_to(ROOT)}:{line} imports {module}, which stands above it"
        if parts[0] in HOME:
            assert layer(path) in HOME[parts[0]], f"{path.relative_to(ROOT)}:{line} imports {parts[0]} outside {HOME[parts[0]]}"


def test_the_check_itself_sees_imports() -> None:
    names = {module for _, module in imports(PACKAGE / "schedule.py")}
    at_once = {module for _, module in imports(PACKAGE / "schedule.py", functions=False)}
    assert names - at_once >= {"explorer.hints", "explorer.run.facts", "explorer.transforms.base"}
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
