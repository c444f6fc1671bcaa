"""The text of a decorated function, wherever it was typed: a file, a notebook cell, an interactive prompt."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ..errors import ProgramError


@dataclass(frozen=True)
class Source:
    """A function's text and its syntax tree, whose line numbers are those of the user's file.

    Attributes
    ----------
    file : str
        Full name as Python knows it.
    first_line : int
        1-based line of the first decorator.
    lines : tuple of str
        Without line ends.
    tree : ast.FunctionDef
    """

    file: str
    first_line: int
    lines: tuple[str, ...]
    tree: ast.FunctionDef

    @property
    def text(self) -> str:
        """The whole text, without its indentation."""
        indent = len(self.lines[0]) - len(self.lines[0].lstrip())
        return "\n".join(line[min(indent, len(line) - len(line.lstrip())) :] for line in self.lines)

    @property
    def title(self) -> str:
        """The file as people call it: its name, or ``cell`` in a notebook."""
        if "ipykernel_" in self.file or self.file.startswith("<ipython-input"):
            return "cell"
        return PurePath(self.file).name

    def line(self, number: int) -> str:
        """One line of the file, by its number there."""
        position = number - self.first_line
        return self.lines[position] if 0 <= position < len(self.lines) else ""

    def segment(self, node: ast.AST) -> str:
        """The user's text of `node`, on one line."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        rows = [self.line(n).encode() for n in range(first, last + 1)]
        if not rows:
            return ""
        rows[-1] = rows[-1][: getattr(node, "end_col_offset", 0)]
        rows[0] = rows[0][getattr(node, "col_offset", 0) :]
        return " ".join(row.decode().split("#")[0].strip() if len(rows) > 1 else row.decode() for row in rows).strip()

    def place(self, node: ast.AST) -> tuple[str, int, int]:
        """``file:line``, the line's text and carets under `node`; with the line and the column (from 0)."""
        number = getattr(node, "lineno", self.first_line)
        row = self.line(number)
        start = len(row.encode()[: getattr(node, "col_offset", 0)].decode())
        one_line = getattr(node, "end_lineno", number) == number
        stop = len(row.encode()[: getattr(node, "end_col_offset", 0)].decode()) if one_line else len(row.rstrip())
        indent = len(row) - len(row.lstrip())
        carets = " " * (start - indent) + "^" * max(stop - start, 1)
        return f"{self.title}:{number}\n    {row.strip()}\n    {carets}", number, start


def source_of(function: Callable[..., Any]) -> Source:
    """Find and parse the text of `function`.

    Raises
    ------
    ProgramError
        If Python kept no source (``exec``, ``python -c``, an old prompt), if the file has changed since it was
        imported, or if `function` is not an ordinary ``def``.
    """
    if not inspect.isfunction(function):
        raise ProgramError(f"@ex.program expects a function, not {type(function).__name__}", hint="put it above a `def`")
    name, code = function.__name__, function.__code__
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError, IndexError, SyntaxError) as error:
        raise ProgramError(
            f"the source of {name} is not available",
            where=f"{code.co_filename}:{code.co_firstlineno}",
            why="the function is parsed from its text, and Python kept none (exec, python -c, or an old prompt)",
            hint="put it in a file, a notebook cell or IPython",
        ) from error
    tree = _parse(lines)
    arguments = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)] if tree else []
    if tree is None or tree.name != name or arguments != list(code.co_varnames[: len(arguments)]):
        raise ProgramError(
            f"the source of {name} does not match the function",
            where=f"{code.co_filename}:{first}",
            why="it is a lambda or an async function, or its file has changed since it was imported",
            hint="write a plain `def`; restart Python, or run the cell again, after an edit",
        )
    shift = first - 1 - bool(lines[0][:1].isspace())
    ast.increment_lineno(tree, shift)
    return Source(code.co_filename, first, tuple(line.rstrip("\r\n") for line in lines), tree)


def _parse(lines: list[str]) -> ast.FunctionDef | None:
    """The function, with columns as in the file: an indented one is put under an ``if`` of its own."""
    indented = lines[0][:1].isspace()
    try:
        body = ast.parse("".join(["if 1:\n", *lines] if indented else lines)).body
    except SyntaxError:
        return None
    inner = body[0].body if indented and isinstance(body[0], ast.If) else body
    return inner[0] if inner and isinstance(inner[0], ast.FunctionDef) else None
