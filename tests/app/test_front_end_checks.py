"""The checks of the front end's text, each shown to fail on a planted fault; and the protocol's types as they read them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import tinycss2

from explorer.app.assets import STATIC, modules
from explorer.app.dispatcher import Dispatcher
from explorer.app.measuring import Measuring
from explorer.app.planning import Planning
from explorer.app.protocol import PANES
from explorer.app.protocol_messages import Answers, Panes, Requests
from explorer.app.running import Running
from explorer.app.searching import Searching
from explorer.app.typescript import TARGET, declarations

ROOT = STATIC.parents[2]
LINT = ("biome", "lint", "--error-on-warnings")
TYPES = ("deno", "check", "--no-remote", "--no-npm", "explorer/app/static/widget.js")


def run(where: Path, command: tuple[str, ...]) -> tuple[bool, str]:
    tool = Path(sys.executable).parent / command[0]
    done = subprocess.run([tool, *command[1:]], cwd=where, capture_output=True, text=True, timeout=120,
                          env={"NO_COLOR": "1", "HOME": str(where)})  # fmt: skip
    return done.returncode == 0, done.stdout + done.stderr


def planted(where: Path, name: str, old: str, new: str) -> None:
    """A copy of the front end with one fault in it."""
    static = where / "explorer" / "app" / "static"
    shutil.copytree(STATIC, static)
    for config in ("biome.json", "deno.json"):
        shutil.copy(ROOT / config, where)
    text = (static / name).read_text(encoding="utf-8")
    assert text.count(old) >= 1
    (static / name).write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_makefile_runs_these_checks() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in (LINT, TYPES):
        assert f"\t$(BIN)/{' '.join(command)}\n" in makefile


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("c_panes.css", "/* script */", "}\n/* script */", "parse"),
        ("c_panes.css", "display: grid;", "dipslay: grid;", "noUnknownProperty"),
        ("run.js", "const parts = [];", "const parts = [];\n    const spare = 1;", "noUnusedVariables"),
        ("run.js", "const parts = [];", "const parts = nothing;", "noUndeclaredVariables"),
        ("run.js", "const parts = [];", "const parts = [];\n    parts = [];", "noConstAssign"),
    ],
)
def test_the_linter_sees(tmp_path: Path, name: str, old: str, new: str, says: str) -> None:
    planted(tmp_path, name, old, new)
    fine, words = run(tmp_path, LINT)
    assert not fine
    assert says in words
    assert name in words


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("run.js", "pane.fraction", "pane.friction", "'friction' does not exist on type 'RunPane'"),
        ("widget.js", 'this.link.on("tree"', 'this.link.on("trees"', '"trees"'),
        ("run.js", '"sizes", { sizes }', '"sizes", { size: sizes }', "'size' does not exist in type 'OfSizes'"),
        ("stepper.js", "answer.data.name", "answer.data.title", "'title' does not exist on type 'AfterPass'"),
        ("search.js", "100 * pane.fraction", "100 * pane.doing", "arithmetic"),
        ("link.js", "${said(error)}", "${error.message}", "'error' is of type 'unknown'"),
        ("figure.js", "if (!this.stale && !force) return;", "if (!this.stale) return 1;", "Not all code paths return a value"),
        ("card.js", 'there(this.element.offsetParent, "box around the preview")', "this.element.offsetParent", "possibly 'null'"),
        ("graph.js", "const apart = ([x, y]) =>", "const apart = ([x, y, z]) =>", "not assignable"),
    ],
)
def test_the_type_checker_sees(tmp_path: Path, name: str, old: str, new: str, says: str) -> None:
    planted(tmp_path, name, old, new)
    fine, words = run(tmp_path, TYPES)
    assert not fine
    assert says in words
    assert name in words


def test_what_stands_there_has_no_fault(tmp_path: Path) -> None:
    planted(tmp_path, "run.js", "", "")
    for command in (LINT, TYPES):
        fine, words = run(tmp_path, command)
        assert fine, words


def twice(rules: list[Any]) -> list[str]:
    """Properties that one block of a stylesheet sets twice: the first of them does nothing."""
    out: list[str] = []
    for rule in rules:
        inside = tinycss2.parse_blocks_contents(rule.content or (), skip_comments=True, skip_whitespace=True)
        names = [one.lower_name for one in inside if one.type == "declaration"]
        where = tinycss2.serialize(rule.prelude).strip()
        out += [f"line {rule.source_line}, {where}: {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
        out += twice([one for one in inside if one.type in ("qualified-rule", "at-rule") and one.content])
    return out


def parsed(text: str) -> list[Any]:
    return tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True)


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.css")), ids=lambda path: path.name)
def test_no_block_sets_a_property_twice(path: Path) -> None:
    assert twice(parsed(path.read_text(encoding="utf-8"))) == []


def test_a_property_set_twice_is_seen() -> None:
    assert twice(parsed("@media print { .a { color: red; margin: 0; color: blue } }")) == ["line 1, .a: color"]


def classes(rules: list[Any]) -> set[str]:
    out: set[str] = set()
    for rule in rules:
        inside = tinycss2.parse_blocks_contents(rule.content or (), skip_comments=True, skip_whitespace=True)
        if rule.type == "qualified-rule":
            out |= set(re.findall(r"\.([a-zA-Z][\w-]*)", tinycss2.serialize(rule.prelude)))
        out |= classes([one for one in inside if one.type in ("qualified-rule", "at-rule") and one.content])
    return out


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.css")), ids=lambda path: path.name)
def test_every_class_of_the_stylesheet_is_used(path: Path) -> None:
    sources = [*STATIC.glob("*.js"), *ROOT.glob("explorer/views/**/*.py"), *ROOT.glob("explorer/app/**/*.py")]
    text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    words = set(re.findall(r"[\w-]+", text))
    stems = tuple(set(re.findall(r"[\w]+-(?=\$?\{)", text)))  # `m-${mark}`, f"t-{kind}"; and `g${number}`
    unused = {name for name in classes(parsed(path.read_text(encoding="utf-8"))) - words
              if not name.startswith(stems) and f"{name.rstrip('0123456789')}${{" not in text}  # fmt: skip
    assert unused - {"modebar"} == set(), "but for Plotly's own"


def test_every_module_is_checked() -> None:
    assert set(modules()) == {path.name for path in STATIC.glob("*.js")}


def test_the_declarations_are_what_the_python_says() -> None:
    assert TARGET.read_text(encoding="utf-8") == declarations(), "python -m explorer.app.typescript"


def test_every_message_has_a_type() -> None:
    assert set(get_type_hints(Panes)) == set(PANES)
    parts = (Dispatcher, Planning, Running, Searching, Measuring)
    methods = {name.removeprefix("_").removeprefix("on_") for part in parts for name in dir(part)
               if name.startswith(("_on_", "on_"))}  # fmt: skip
    assert methods == set(get_type_hints(Requests))
    assert set(get_type_hints(Answers)) <= set(get_type_hints(Requests))
