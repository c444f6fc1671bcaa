"""The lines above a program's text that define the names in it, so that a script of it stands alone."""

from __future__ import annotations

import builtins
import math
import numbers
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from .definition import Definition
from .function import Function, functions_of
from .scope import bound_names
from .size import Size, SizeValue
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
    functions = functions_of(definition.captured)
    mentioned: dict[str, Any] = {}
    for text, captured in (*((f.text, f.captured) for f in functions.values()), (definition.text, definition.captured)):
        own = bound_names(text.tree)
        mentioned |= {name: value for name, value in captured.items() if name not in own}
    modules, imports, rest = [f"import {_PUBLIC} as ex"], [], []
    sizes = {name: value for name, value in mentioned.items() if isinstance(value, Size)}
    for name, value in mentioned.items():
        if isinstance(value, SizeValue | ArrayType | SimpleNamespace | tuple | list | dict):
            parts = value.shape if isinstance(value, ArrayType) else (*_within(value),)
            sizes |= {n: Size(n) for part in parts if isinstance(part, SizeValue) for n in part.names() if n not in sizes}
        if isinstance(value, Function):
            rest += [f"{name} = {value.name}"] if name != value.name else []
            continue
        if isinstance(value, Size) or getattr(builtins, name, None) is value:
            continue
        if isinstance(value, ModuleType):
            modules.append(f"import {value.__name__} as {name}")
        elif public := _public(value):
            imports.append(public if public == name else f"{public} as {name}")
        else:
            rest.append(written := _assignment(name, value))
            modules += [f"import {needed}" for needed in _NEEDED if f"{needed}." in written.partition(" = ")[2]]
    if imports:
        modules.append(f"from {_PUBLIC} import {', '.join(sorted(imports))}")
    written = [line for f in functions.values() for line in ("", "", *str(f).splitlines())]
    aliases = [line for line in rest if line.partition(" = ")[2] in functions]
    return [*dict.fromkeys(modules), "", *_sizes(sizes), *(line for line in rest if line not in aliases), *written,
            *(["", "", *aliases] if aliases else [])]


def _sizes(sizes: dict[str, Size]) -> list[str]:
    """One line for the sizes that are called what their variables are, one each for the others."""
    plain = [name for name, size in sizes.items() if size.name == name]
    other = [f'{name} = ex.sizes("{size.name}")' for name, size in sizes.items() if size.name != name]
    return ([f'{", ".join(plain)} = ex.sizes("{" ".join(plain)}")'] if plain else []) + other


def _public(value: Any) -> str:
    """The name under which the package offers a function or a type, if it does."""
    name = getattr(value, "__name__", "")
    if not name or not getattr(value, "__module__", "").startswith(f"{_PUBLIC}."):
        return ""
    from . import __all__ as offered

    return name if name in offered else ""


def _within(value: Any) -> Iterator[Any]:
    """The values in a tuple, list or dict, and in those in it; of others the value itself."""
    parts = vars(value) if isinstance(value, SimpleNamespace) else value
    for part in parts.values() if isinstance(parts, dict) else parts if isinstance(parts, tuple | list) else ():
        yield from _within(part)
    if not isinstance(parts, dict | tuple | list):
        yield value


def _assignment(name: str, value: Any) -> str:
    if isinstance(value, ArrayType):
        return f"{name} = {value.spelled('ex.')}"
    written = _literal(value)
    return f"{name} = {written}" if written else f"# {name} = …  (a {type(value).__name__}, as where {name} was defined)"


def _literal(value: Any) -> str:
    """A value as Python, "" where it has no such form."""
    if isinstance(value, SizeValue):
        return str(value)
    if isinstance(value, numbers.Number | str):
        plain = getattr(value, "item", lambda: value)()  # NumPy's numbers as Python's
        if isinstance(plain, float) and math.isinf(plain):
            return f"{'-' if plain < 0 else ''}ex.inf"
        return repr(plain) if plain == plain else 'float("nan")'
    if isinstance(value, SimpleNamespace):
        fields = {k: _literal(v) for k, v in vars(value).items()}
        return f"types.SimpleNamespace({', '.join(f'{k}={v}' for k, v in fields.items())})" if all(fields.values()) else ""
    if isinstance(value, np.ndarray):
        plain = _literal(value.tolist()) if value.size <= _LARGEST else ""
        return f'numpy.array({plain}, "{value.dtype}")' if plain else ""
    if isinstance(value, dict):
        parts = [(_literal(k), _literal(v)) for k, v in value.items()]
        return f"{{{', '.join(f'{k}: {v}' for k, v in parts)}}}" if all(k and v for k, v in parts) else ""
    if isinstance(value, tuple | list):
        parts = [_literal(part) for part in value]
        inner = ", ".join(parts) + ("," if isinstance(value, tuple) and len(parts) == 1 else "")
        if all(parts) and (names := getattr(value, "_fields", ())):
            return f'collections.namedtuple("{type(value).__name__}", "{" ".join(names)}")({inner})'
        return "" if not all(parts) else f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    return ""
