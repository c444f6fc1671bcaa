"""Runs the Python in the documentation and stores what it prints.

In README.md and docs/, a fenced ``python`` block runs after the ones before it in the same file; a ``text`` block right
behind it is what it prints.  ``python docs/run_snippets.py`` rewrites those blocks; a test fails while one of them differs,
times and line numbers aside.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PAIR = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.M | re.S)
_VARYING = (
    (re.compile(r"[\d.]+ µs \([\d.]+ to [\d.]+, n=\d+\)"), "TIME"),
    (re.compile(r"(?<=source line )\d+|(?<=source lines )\d+( and \d+)*"), "LINES"),
)


@dataclass(frozen=True)
class Snippet:
    """A block of Python and, where a block of text follows, what it says that it prints."""

    code: str
    shown: str | None
    span: tuple[int, int]


def pages() -> list[Path]:
    """Every page that is written by hand."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def snippets(text: str) -> list[Snippet]:
    """The blocks of a page."""
    return [Snippet(m["code"], m["shown"], m.span("shown")) for m in _PAIR.finditer(text)]


def printed(page: str, found: list[Snippet]) -> Iterator[str]:
    """What each snippet of a page prints, run in order in one namespace."""
    scope: dict[str, object] = {"__name__": f"snippets of {page}"}
    for number, snippet in enumerate(found):
        name = f"<{page} {number}>"
        linecache.cache[name] = (len(snippet.code), None, snippet.code.splitlines(keepends=True), name)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(snippet.code, name, "exec"), scope)
        yield out.getvalue()


def steady(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


def updated(page: str, text: str) -> str:
    """The page with every block of output as it is now; one that differs only in what varies is kept."""
    found = snippets(text)
    for snippet, out in reversed(list(zip(found, list(printed(page, found)), strict=True))):
        if snippet.shown is not None and steady(out) != steady(snippet.shown):
            text = text[: snippet.span[0]] + out + text[snippet.span[1] :]
    return text


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for path in pages():
        before = path.read_text(encoding="utf-8")
        if (after := updated(path.name, before)) != before:
            path.write_text(after, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: updated")
