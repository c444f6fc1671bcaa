"""CUDA and Python text with quiet highlighting: keywords and comments, line numbers, changed lines, the library folded away."""

from __future__ import annotations

import re
from collections.abc import Collection
from html import escape

_KEYWORDS = (
    "__global__|__device__|__forceinline__|__shared__|__restrict__|__launch_bounds__|__syncthreads|extern|const|constexpr|static|"
    "void|float|double|int|long|unsigned|char|bool|for|if|else|while|return|struct|template|typename|using|inline|"
    "def|import|from|as|in|range"
)
_CUDA = re.compile(rf"(?P<cm>//[^\n]*|/\*.*?\*/)|(?P<kw>\b(?:{_KEYWORDS})\b|(?m:^[ ]*#[ ]*\w+))", re.S)
_PYTHON = re.compile(rf"(?P<cm>(?<![\w'\"])#[^\n]*)|(?P<kw>\b(?:{_KEYWORDS})\b)")
_ENTRY = re.compile(r'^extern "C" __global__', re.M)
BUDGET = 18_000
"""Characters of HTML that code may take in one picture; the text itself has everything."""
CHANGED, UNCHANGED = '<span class="new" role="img" aria-label="changed">› </span>', '<span class="no">  </span>'
"""What stands before a line of a text with changed lines."""


def highlight(text: str, python: bool = False) -> str:
    """Escaped HTML with spans for comments and keywords; no span crosses a line.  In Python ``//`` divides."""
    out, last = [], 0
    for match in (_PYTHON if python else _CUDA).finditer(text):
        out.append(escape(text[last : match.start()], quote=False))
        lines = [escape(line, quote=False) for line in match.group().split("\n")]
        out.append("\n".join(f'<span class="{match.lastgroup}">{line}</span>' if line else "" for line in lines))
        last = match.end()
    return "".join(out) + escape(text[last:], quote=False)


def code_html(text: str, numbers: bool = True, first: int = 1, budget: int = BUDGET, python: bool = False,
              changed: Collection[int] | None = None) -> str:  # fmt: skip
    """A ``pre`` block with line numbers that are not selected when copying; cut, and said so, beyond `budget` characters.

    Where `changed` lines are given (by number, there may be none), they have a sign and a bar at the left.
    """
    lines = highlight(text.rstrip("\n"), python).split("\n")
    width, used, shown = len(str(first + len(lines) - 1)), 0, []
    for i, line in enumerate(lines, first):
        sign = "" if changed is None else CHANGED if i in changed else UNCHANGED
        shown.append(sign + (f'<span class="no">{i:{width}d}  </span>{line}' if numbers else line))
        used += len(shown[-1]) + 1
        if used > budget and i - first + 1 < len(lines):
            shown[-1] = f'<span class="soft">… {len(lines) - (i - first)} more lines: print the text to see them</span>'
            break
    return f"<pre>{chr(10).join(shown)}</pre>"


def cuda_sections(text: str, budget: int = BUDGET) -> tuple[str, ...]:
    """The kernels open, what stands before them (the device library) folded; line numbers are those of the whole text."""
    entry = _ENTRY.search(text)
    before = text[: entry.start()].rstrip("\n") if entry else ""
    count = text[: entry.start()].count("\n") if entry else 0
    kernels = code_html(text[entry.start() :] if entry else text, first=count + 1, budget=budget)
    if before.count("\n") < 4:
        return (code_html(text, budget=budget),)
    room = budget - len(kernels)
    library = code_html(before, budget=room) if room > 2000 else '<span class="soft">in the text: print it to see them</span>'
    return (f'<details><summary>lines 1 to {before.count(chr(10)) + 1}: device library, plain CUDA</summary>'
            f'<div class="body">{library}</div></details>', kernels)
