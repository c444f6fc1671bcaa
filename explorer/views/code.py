"""CUDA and Python text with quiet highlighting: keywords and comments, line numbers, nothing fetched."""

from __future__ import annotations

import re
from html import escape

_KEYWORDS = (
    "__global__|__device__|__shared__|__restrict__|__launch_bounds__|__syncthreads|extern|const|constexpr|static|void|float|double|"
    "int|long|unsigned|char|bool|for|if|else|while|return|struct|template|typename|using|inline|def|import|from|as|in|range"
)
_TOKEN = re.compile(rf"(?P<cm>//[^\n]*|/\*.*?\*/|(?<![\w'\"])#[^\n]*)|(?P<kw>\b(?:{_KEYWORDS})\b)", re.S)


def highlight(text: str) -> str:
    """Escaped HTML with spans for comments and keywords."""
    out, last = [], 0
    for match in _TOKEN.finditer(text):
        out.append(escape(text[last : match.start()]))
        out.append(f'<span class="{match.lastgroup}">{escape(match.group())}</span>')
        last = match.end()
    return "".join(out) + escape(text[last:])


def code_html(text: str, numbers: bool = True, first: int = 1) -> str:
    """A ``pre`` block with line numbers that are not selected when copying."""
    lines = highlight(text.rstrip("\n")).split("\n")
    width = len(str(first + len(lines) - 1))
    shown = [f'<span class="no">{i:{width}d}  </span>{line}' if numbers else line for i, line in enumerate(lines, first)]
    return f"<pre>{chr(10).join(shown)}</pre>"
