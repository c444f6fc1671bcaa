"""CUDA and Python text in colours, with line numbers, changed lines, and the library folded away."""

from __future__ import annotations

from collections.abc import Collection

from .highlight import highlight

BUDGET = 18_000
"""Characters of HTML that code may take in one picture; the text itself has everything."""
CHANGED, UNCHANGED = '<span class="new" role="img" aria-label="changed">› </span>', '<span class="no">  </span>'
"""What stands before a line of a text with changed lines."""


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


def cuda_sections(text: str, above: int) -> tuple[str, ...]:
    """The kernels open, the lines `above` them (the device library) folded; line numbers are those of the whole text."""
    lines = text.split("\n")
    before = "\n".join(lines[:above]).rstrip("\n")
    kernels = code_html("\n".join(lines[above:]), first=above + 1)
    if before.count("\n") < 4:
        return (code_html(text),)
    room = BUDGET - len(kernels)
    library = code_html(before, budget=room) if room > 2000 else '<span class="soft">in the text: print it to see them</span>'
    return (f'<details><summary>lines 1 to {before.count(chr(10)) + 1}: device library, plain CUDA</summary>'
            f'<div class="body">{library}</div></details>', kernels)
