"""The documentation is true: links lead somewhere, generated parts are current, and snippets print what they say."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from docs import make_reference, run_snippets
from explorer import workloads
from explorer.kernel import passes
from explorer.transforms.base import catalogue

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*run_snippets.pages(), ROOT / "CHANGELOG.md"]
NAMES = [p.relative_to(ROOT).as_posix() for p in PAGES]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
_FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors GitHub gives to a page's headings."""
    found = set()
    for title in re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.M):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", title)).strip().lower()
        found.add(words.replace(" ", "-"))
    return found


def links(name: str) -> list[str]:
    return [a or b for a, b in _LINK.findall(_FENCE.sub("", text(name)))]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    for link in links(name):
        if link.startswith("https://"):
            continue
        place, _, anchor = link.partition("#")
        target = (ROOT / name).parent / place if place else ROOT / name
        assert target.exists(), f"{name} links to {link}"
        assert target.resolve().is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(target), f"{name} links to {link}, but there is no such heading"


def test_links_and_anchors_are_found_at_all() -> None:
    assert "docs/transformations.md#split" in links("README.md")
    assert "docs/pictures/overview-light.png" in links("README.md")
    assert {"the-four-questions", "time-and-place"} <= anchors(ROOT / "docs" / "concepts.md")


@pytest.mark.parametrize("name", NAMES)
def test_every_page_is_reached_from_the_readme(name: str) -> None:
    reached, todo = set(), ["README.md"]
    while todo:
        page = todo.pop()
        reached.add(page)
        for link in links(page):
            place = link.partition("#")[0]
            target = ((ROOT / page).parent / place).resolve()
            if place.endswith(".md") and target.exists() and (here := target.relative_to(ROOT).as_posix()) not in reached:
                todo.append(here)
    assert name in reached


@pytest.mark.parametrize("name", [p.relative_to(ROOT).as_posix() for p in run_snippets.pages()])
def test_snippets_print_what_the_page_says(name: str) -> None:
    found = run_snippets.snippets(text(name))
    for snippet, out in zip(found, run_snippets.printed(name, found), strict=True):
        assert snippet.shown is None or run_snippets.steady(snippet.shown) == run_snippets.steady(out)


def test_snippets_are_found_and_compared() -> None:
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\n```python\nx = 1\n```\n"
    found = run_snippets.snippets(page)
    assert [s.shown for s in found] == ["3\n", None]
    assert list(run_snippets.printed("a page", found)) == ["2\n", ""]
    assert "```text\n2\n```" in run_snippets.updated("a page", page)
    assert len(run_snippets.snippets(text("README.md"))) == 3


def test_reference_is_current() -> None:
    assert text("docs/transformations.md") == make_reference.reference(), "run python docs/make_reference.py"


def test_glossary_is_current() -> None:
    assert text("docs/glossary.md") == make_reference.glossary(), "run python docs/make_reference.py"


def test_readme_table_is_current() -> None:
    assert text("README.md") == make_reference.readme(text("README.md")), "run python docs/make_reference.py"


def test_the_table_of_operations_is_current() -> None:
    assert text("docs/language.md") == make_reference.language(text("docs/language.md")), "run python docs/make_reference.py"


def test_the_table_of_passes_is_current() -> None:
    assert text("docs/concepts.md") == make_reference.concepts(text("docs/concepts.md")), "run python docs/make_reference.py"
    assert all(f"| `{name}` | " in text("docs/concepts.md") for name in passes.names())


@pytest.mark.parametrize("name", catalogue())
def test_every_transformation_is_documented(name: str) -> None:
    kind = catalogue()[name]
    entry = make_reference.entry(kind)
    assert "*Before*" in entry
    assert re.search(r"\*After\*", entry)
    for field in fields(kind):
        assert f"- `{field.name}`: " in entry, f"{field.name} has no help text"
    assert "::" not in entry
    assert f"[`{name}`](docs/transformations.md#{name})" in text("README.md")
    assert f"### {name}" in text("docs/transformations.md")


def test_readme_counts_the_workloads() -> None:
    assert f"{len(workloads.names())} ready programs" in text("README.md")


@pytest.mark.parametrize("page", run_snippets.pages(), ids=lambda p: p.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    whole = page.read_text(encoding="utf-8")
    there = [f"/{p.relative_to(ROOT).as_posix()}" for folder in ("explorer", "tests", "docs", "benchmarks", "examples")
             for p in (ROOT / folder).rglob("*.py")]
    there += [f"/{name}" for name in re.findall(r"^# ([\w/]+\.py)$", whole, re.M)]  # what a recipe writes
    named = set(re.findall(r"`([\w/]+\.py)`", _FENCE.sub("", whole)))
    assert not [name for name in named if not any(place.endswith(f"/{name}") for place in there)]


def test_no_page_names_a_machine() -> None:
    for name in NAMES:
        assert not re.search(r"(?<![\w.])/(home|root|tmp|work|usr|opt)/", text(name)), name
