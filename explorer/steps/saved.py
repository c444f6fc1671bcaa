"""Schedules that travel: JSON (versioned, validated, never evaluated), a short share string, and a Python script."""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import MISSING, fields
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import ReplayError, shown
from ..frontend.preamble import decorated
from ..ir.program import Program
from ..transforms.base import Transform, catalogue, misfit

FORMAT, VERSION = "explorer-schedule", 1
LARGEST = 16 << 20
"""Bytes of a file beyond which it is no saved schedule: a step takes about 50."""


def source_hash(program: Program) -> str:
    """The first 12 hex digits of the SHA-256 of the program's text, with that of the functions it calls."""
    return hashlib.sha256((program.source + program.helpers).encode()).hexdigest()[:12]


def to_data(program: Program, steps: Iterable[Transform]) -> dict[str, Any]:
    """The schedule as plain JSON-able data."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": program.name,
        "source": source_hash(program),
        "sizes": dict(program.sizes),
        "steps": [{"move": step.name, **_plain(step.arguments())} for step in steps],
    }


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in arguments.items()}


def from_data(data: Any) -> tuple[str, str, dict[str, int], tuple[Transform, ...]]:
    """Validate plain data: (program name, source hash, sizes, steps).

    Raises
    ------
    ReplayError
        If it is not a saved schedule, is of another version, or holds an unknown move or argument.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReplayError("this is not a saved schedule", why=f'it has no field "format": "{FORMAT}"',
                          hint="save one with schedule.save(path)")
    if data.get("version") != VERSION:
        version = shown(data.get("version"))
        raise ReplayError(f"this schedule was saved as version {version}; this explorer reads version {VERSION}",
                          hint="save it again with the version of the explorer that wrote it, as a script")
    sizes, steps = data.get("sizes"), data.get("steps")
    if not isinstance(sizes, dict) or not all(isinstance(v, int) and not isinstance(v, bool) for v in sizes.values()):
        raise ReplayError("the saved sizes are damaged", why=f"expected names and integers, found {shown(sizes, 150)}")
    if not isinstance(steps, list):
        raise ReplayError("the saved steps are damaged", why="expected a list")
    name, source = data.get("program"), data.get("source")
    if not isinstance(name, str) or not isinstance(source, str):
        raise ReplayError("the saved program's name is damaged")
    return name, source, dict(sizes), tuple(step_of(s, i) for i, s in enumerate(steps))


def step_of(data: Any, number: int = 0) -> Transform:
    """One transformation from plain data, every field checked against its declared kind."""
    where = f"step {number + 1}"
    if not isinstance(data, dict) or not isinstance(data.get("move"), str):
        raise ReplayError("a saved step is damaged", where=where, why=f"expected a move with arguments, found {shown(data, 150)}")
    known = catalogue()
    kind = known.get(data["move"]) or next((k for k in known.values() if data["move"] in k.formerly), None)
    if kind is None:
        near = difflib.get_close_matches(data["move"], known, 3)
        raise ReplayError(f"there is no move {shown(data['move'])}", where=where,
                          hint=", ".join(near) or "print(ex.help()) lists all")
    arguments = {k: v for k, v in data.items() if k != "move"}
    declared = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    if extra := arguments.keys() - declared.keys():
        raise ReplayError(f"{kind.name} takes no argument {', '.join(sorted(extra))}"[:200], where=where,
                          hint=f"it takes {', '.join(declared)}")
    if missing := [n for n, f in declared.items() if f.default is MISSING and n not in arguments]:
        raise ReplayError(f"{kind.name} needs {', '.join(missing)}", where=where)
    return kind(**{n: _field(kind.name, declared[n], v, where) for n, v in arguments.items()})


def _field(move: str, declared: Any, value: Any, where: str) -> Any:
    plain = tuple(value) if isinstance(value, list) else value
    if wanted := misfit(declared, plain):
        raise ReplayError(f"{move}: {declared.name} must be {wanted}, not {shown(value)}", where=where)
    return plain


def to_json(program: Program, steps: Iterable[Transform]) -> str:
    """The schedule as indented JSON."""
    return json.dumps(to_data(program, steps), indent=1)


def read(text: str | Path) -> tuple[str, str, dict[str, int], tuple[Transform, ...]]:
    """What a share string, JSON text or the file at a path says, validated: (program name, source hash, sizes, steps).

    Raises
    ------
    ReplayError
        If it is none of these, cannot be read, or is damaged.
    """
    if not isinstance(text, str | PathLike):
        raise ReplayError(f"a schedule is loaded from a text or a path, not from {shown(text)}")
    content = str(text).strip()
    if not content.startswith(("ex1:", "{")):
        content = _content(Path(text)).strip()
    return read_share_string(content) if content.startswith("ex1:") else read_json(content)


def _content(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise ReplayError(f"cannot read {shown(str(path))}", why="it is no file",
                              hint="give a share string (ex1:…), JSON text, or the path of a JSON file")
        if path.exists() and path.stat().st_size > LARGEST:
            raise ReplayError(f"{shown(str(path))} is no saved schedule", why=f"it has more than {LARGEST:,} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a null byte in the path
        raise ReplayError(f"cannot read {shown(str(path))}", why=str(error)[:200],
                          hint="give a share string (ex1:…), JSON text, or the path of a JSON file") from error


def read_json(text: str) -> tuple[str, str, dict[str, int], tuple[Transform, ...]]:
    """The inverse of :func:`to_json`, validated."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ReplayError("this is not JSON", where=f"line {error.lineno}, column {error.colno}", why=error.msg) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a list of thousands of levels
        raise ReplayError("this is not a saved schedule", why=str(error)) from error
    return from_data(data)


def other_than(name: str, text: str) -> str:
    """What a file holds if it is no saved schedule of the program of this name, in words; empty if it is one."""
    try:
        found = read_json(text)[0]
    except ReplayError:
        return "it is no saved schedule"
    return "" if found == name else f"it is a schedule of {found}"


def share_string(program: Program, steps: Iterable[Transform]) -> str:
    """The schedule as one short line for a chat or a link: ``ex1:`` and URL-safe base64 of the compressed JSON."""
    packed = zlib.compress(json.dumps(to_data(program, steps), separators=(",", ":")).encode(), 9)
    return "ex1:" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_share_string(text: str) -> tuple[str, str, dict[str, int], tuple[Transform, ...]]:
    """The inverse of :func:`share_string`, validated."""
    body = text.strip()
    if not body.startswith("ex1:"):
        raise ReplayError("this is not a share string", why='it does not begin with "ex1:"',
                          hint="make one with schedule.share()")
    try:
        packed = base64.urlsafe_b64decode(body[4:] + "=" * (-len(body[4:]) % 4))
        inflate = zlib.decompressobj()
        raw = inflate.decompress(packed, 1 << 20)
        if inflate.unconsumed_tail:
            raise ValueError("more than 1 MiB")
        if not inflate.eof:
            raise ValueError("its end is missing")
    except (ValueError, zlib.error) as error:
        raise ReplayError("this share string is damaged", why=str(error),
                          hint="copy the whole line, from ex1: to its end") from error
    return read_json(raw.decode("utf-8", "replace"))


def script(program: Program, steps: Iterable[Transform], preamble: Iterable[str] = ("import explorer as ex",)) -> str:
    """A Python script that rebuilds the schedule: the program's text under its `preamble`, and one line for each step."""
    lines = [*preamble, ""]
    lines += [decorated(program.source), ""] if program.source else []
    arguments = ", ".join(f"{name}={value}" for name, value in program.sizes)
    lines.append(f"s = {program.name}.schedule({arguments})")
    lines += [f"s = s.{step}" for step in steps]
    return "\n".join(lines) + "\n"
