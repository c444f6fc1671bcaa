"""The recipes of CONTRIBUTING.md: the code that stands there, put where it says."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```\w+ recipe\n# (?P<place>\S+?)(?:, at the end(?: of (?P<within>\w+))?(?P<end>))?\n(?P<code>.*?)^```$",
                    re.M | re.S)


@dataclass(frozen=True)
class Addition:
    """What one recipe adds.

    Attributes
    ----------
    place : str
        The file, from the root of the repository.
    code : str
    row : bool
        Whether it goes to the end of a file that is there; else it is the whole of a new one.
    within : str
        The tuple of that file at whose end it goes; empty for the end of the file.
    """

    place: str
    code: str
    row: bool
    within: str

    def put(self, root: Path) -> None:
        """Add it to the repository at `root`."""
        path = root / self.place
        if not self.row:
            assert not path.exists(), f"{self.place} is there already"
            path.write_text(self.code, encoding="utf-8")
            return
        text = path.read_text(encoding="utf-8")
        path.write_text(_within(text, self.within, self.code) if self.within else f"{text}\n\n{self.code}", encoding="utf-8")


def additions(page: str) -> tuple[Addition, ...]:
    """Every block of the page that is a recipe's code."""
    return tuple(Addition(m["place"], m["code"], m["end"] is not None, m["within"] or "") for m in _BLOCK.finditer(page))


def _within(text: str, name: str, code: str) -> str:
    """The text with code before the bracket that ends the tuple of this name."""
    values = [node.value for node in ast.parse(text).body if isinstance(node, ast.Assign)
              and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name]
    assert len(values) == 1, f"there is no {name}"
    assert values[0].end_lineno is not None
    lines = text.splitlines(keepends=True)
    at = values[0].end_lineno - 1
    assert lines[at] == ")\n"
    return "".join([*lines[:at], *(f"    {line}" for line in code.splitlines(keepends=True)), *lines[at:]])
