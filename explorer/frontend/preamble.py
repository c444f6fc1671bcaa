"""The lines above a program's text that define the names in it, so that a script of it stands alone."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from .definition import Definition
from .function import Function
from .scope import bound_names
from .size import Size, SizeValue
from .source import Source
from .types import ArrayType

_PUBLIC = "explorer"
_NEEDED = ("collections", "numpy", "types")
"""Modules of which something may stand in a written value."""
_LARGEST = 1024
"""Elements of an array that is written down."""


def preamble(definition: Definition) -> list[str]:
    """Imports, sizes and constants that the text of a program mentions, as Python.

    Returns
    -------
    list of str
        Lines; a name whose value cannot be written down is left to the reader in a comment.
    """
    lines = _Lines()
    lines.ready(definition.text, definition.captured)
    return lines.all()


def decorated(text: str, word: str = "program") -> str:
    """A function's text under its decorator alone: it lacks one where it was passed to `word`, and others may stand there."""
    text = text.strip("\n").rstrip()
    try:
        (node,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return text
    assert isinstance(node, ast.FunctionDef)
    if len(node.decorator_list) == 1 and text.startswith("@"):
        return text
    own = next((d for d in map(ast.unparse, node.decorator_list) if d.rpartition(".")[2] == word), f"ex.{word}")
    return "\n".join([f"@{own}", *text.splitlines()[node.lineno - 1:]])


@dataclass
class _Lines:
    """A script as it grows: what is imported, what was written, and what each name means behind the last line.

    A function takes the values that its names have where it is defined.  Where two texts call different things by one name, the
    name is given its value again in front of the second.
    """

    modules: list[str] = field(default_factory=lambda: [f"import {_PUBLIC} as ex"])
    imports: set[str] = field(default_factory=set)
    sizes: dict[str, Size] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)
    bound: dict[str, Any] = field(default_factory=dict)

    def all(self) -> list[str]:
        """The lines in their order."""
        public = [f"from {_PUBLIC} import {', '.join(sorted(self.imports))}"] if self.imports else []
        return [*dict.fromkeys([*self.modules, *public]), "", *_sizes(self.sizes), *self.rest]

    def ready(self, text: Source, captured: Mapping[str, Any]) -> None:
        """Let every name from outside mean in the text that follows what it meant where that was defined."""
        own = bound_names(text.tree)
        decorators = {n.id for d in text.tree.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
        used = {n.id for part in (*text.tree.body, text.tree.args) for n in ast.walk(part) if isinstance(n, ast.Name)}
        names = {name: value for name, value in captured.items()
                 if name not in own and (name not in decorators - used or _public(value) or isinstance(value, ModuleType))}
        for _ in range(1 + len(names)):  # writing a function may give a name of before another meaning
            before = list(self.rest)
            for name, value in names.items():
                self._name(name, value)
            if before == self.rest:
                return

    def _name(self, name: str, value: Any) -> None:
        parts = value.shape if isinstance(value, ArrayType) else (*_within(value),)
        self.sizes |= {n: Size(n) for part in parts if isinstance(part, SizeValue) for n in part.names() if n not in self.sizes}
        for part in parts:
            if isinstance(part, Function) and part is not value:
                self._function(part)
        if isinstance(value, Function):
            if self.bound.get(name) is not value and (holder := self._function(value)) != name:
                self.rest += ["", "", f"{name} = {holder}"]
                self.bound[name] = value
        elif isinstance(value, Size):
            self.sizes[name] = value
        elif getattr(builtins, name, None) is value:
            return
        elif isinstance(value, ModuleType):
            self.modules.append(f"import {value.__name__} as {name}")
        elif public := _public(value):
            self.imports.add(public if public == name else f"{public} as {name}")
        elif (written := self._assignment(name, value)) != self.bound.get(name):
            self.rest.append(written)
            self.bound[name] = written
            self.modules += [f"import {needed}" for needed in _NEEDED if f"{needed}." in written.partition(" = ")[2]]

    def _function(self, function: Function) -> str:
        """The name under which a function is known here; its text is written where there is none."""
        if (holder := next((n for n, v in self.bound.items() if v is function), "")):
            return holder
        self.ready(function.text, function.captured)
        self.rest += ["", "", *decorated(str(function), "function").splitlines()]
        self.bound[function.name] = function
        return function.name

    def _assignment(self, name: str, value: Any) -> str:
        written = value.spelled("ex.") if isinstance(value, ArrayType) else self._literal(value)
        return f"{name} = {written}" if written else f"# {name} = …  (a {type(value).__name__}, as where {name} was defined)"

    def _literal(self, value: Any) -> str:
        """A value as Python, "" where it has no such form; parts without one, which no program can read, are None."""
        if isinstance(value, SizeValue):
            return str(value)
        if isinstance(value, ArrayType):
            return value.spelled("ex.")
        if isinstance(value, Function):
            return next((n for n, v in self.bound.items() if v is value), "")
        if isinstance(value, bool | int | float | complex | str | bytes | np.generic):
            return _number(value)
        if isinstance(value, np.ndarray):
            small = value.size <= _LARGEST and value.dtype.kind in "biufU"
            return f'numpy.array({self._literal(value.tolist())}, "{value.dtype}")' if small else ""
        if public := _public(value):
            return f"ex.{public}"
        parts = _parts(value)
        if parts is None or (not any(written := [self._literal(part) for part in parts.values()]) and parts):
            return ""
        kept = dict(zip(parts, (w or "None" for w in written), strict=True)) if parts else {}
        return _container(value, kept)


def _number(value: Any) -> str:
    """A number or a text, also of a class of its own."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return 'float("nan")' if math.isnan(plain) else f"{'-' if plain < 0 else ''}ex.inf"
    kind: Any = next((k for k in (bool, int, float, complex, str, bytes) if isinstance(plain, k)), None)
    return kind.__repr__(plain) if kind else ""


def _parts(value: Any) -> dict[Any, Any] | None:
    """What is in a tuple, list, dict or object of fields; None for others."""
    if isinstance(value, SimpleNamespace):
        return vars(value)
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if isinstance(k, bool | int | float | str | tuple)}
    return dict(enumerate(value)) if isinstance(value, tuple | list) else None


def _container(value: Any, parts: Mapping[Any, str]) -> str:
    """A tuple, list, dict or object of fields with its parts as they are written."""
    inner = ", ".join(parts.values())
    if isinstance(value, SimpleNamespace):
        return f"types.SimpleNamespace({', '.join(f'{k}={v}' for k, v in parts.items())})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(k)}: {v}' for k, v in parts.items())}}}"
    if isinstance(value, list):
        return f"[{inner}]"
    if names := getattr(value, "_fields", ()):
        return f'collections.namedtuple("{type(value).__name__}", "{" ".join(names)}")({inner})'
    return f"({inner}{',' * (len(parts) == 1)})"


def _key(key: Any) -> str:
    return f"({''.join(f'{_key(part)}, ' for part in key)})" if isinstance(key, tuple) else _number(key) or repr(str(key))


def _sizes(sizes: dict[str, Size]) -> list[str]:
    """One line for the sizes that are called what their variables are, one each for the others."""
    plain = [name for name, size in sizes.items() if size.name == name]
    other = [f'{name} = ex.sizes("{size.name}")' for name, size in sizes.items() if size.name != name]
    return ([f'{", ".join(plain)} = ex.sizes("{" ".join(plain)}")'] if plain else []) + other


def _public(value: Any) -> str:
    """The name under which the package offers a function or a type, if it does."""
    name = getattr(value, "__name__", "")
    if not name or not isinstance(name, str) or not str(getattr(value, "__module__", "")).startswith(f"{_PUBLIC}."):
        return ""
    from . import __all__ as offered

    return name if name in offered else ""


def _within(value: Any) -> Iterator[Any]:
    """The values in a tuple, list, dict or object of fields, and in those in it; of others the value itself."""
    parts = _parts(value)
    if parts is None:
        yield value
    for part in (parts or {}).values():
        yield from part.shape if isinstance(part, ArrayType) else _within(part)
