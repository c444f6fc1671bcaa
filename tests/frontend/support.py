"""Defining programs from text, as a file or a notebook cell would."""

from __future__ import annotations

import itertools
import linecache
import textwrap

import explorer.frontend
from explorer.frontend.definition import Definition

_COUNT = itertools.count()


def define(text: str, file: str = "", **names: object) -> Definition:
    """Run `text`, whose last definition is the program, with ``ex`` and the sizes M, N, K, T at hand."""
    text = textwrap.dedent(text).strip("\n") + "\n"
    file = file or f"case{next(_COUNT)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    sizes = dict(zip("MNKT", explorer.frontend.sizes("M N K T"), strict=True))
    space: dict[str, object] = {"ex": explorer.frontend, "__name__": "user", **sizes, **names}
    exec(compile(text, file, "exec"), space)
    return next(v for v in reversed(space.values()) if isinstance(v, Definition))


def body(lines: str, signature: str = "x: ex.f32[M, N], y: ex.f32[M, N]", **names: object) -> Definition:
    """A program ``f`` with this body, whose first line is line 3."""
    inner = textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ")
    return define(f"@ex.program\ndef f({signature}):\n{inner}\n", **names)
