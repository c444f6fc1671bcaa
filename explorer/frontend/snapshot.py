"""Values from outside as they are when a program is defined: what changes later does not change the program."""

from __future__ import annotations

import ast
import numbers
from collections.abc import Set
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

MISSING = object()
_OURS = __name__.partition(".")[0]


def fields_read(tree: ast.AST) -> frozenset[str]:
    """The names behind dots in a text."""
    return frozenset(n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute))


def field_of(value: Any, name: str) -> Any:
    """A field of an object, or :data:`MISSING`: also where a property of somebody's raises whatever it likes."""
    try:
        return getattr(value, name, MISSING)
    except Exception:
        return MISSING


def snapshot(value: Any, fields: Set[str]) -> Any:
    """A value that its owner can no longer change.

    Parameters
    ----------
    value : object
        What a name stands for.  Tuples, lists, dicts and arrays are copied, with what is in them.  Of any other object, or a
        class that somebody wrote, the fields that are read are kept.  Modules, functions and what this package offers stay.
    fields : set of str
        The names behind dots that the text reads.
    """
    return _kept(value, fields, {})


def _kept(value: Any, fields: Set[str], begun: dict[int, Any]) -> Any:
    if value is None or isinstance(value, numbers.Number | str | bytes | ModuleType):
        return value
    if id(value) not in begun:
        begun[id(value)] = None  # what is in itself holds nothing there: no text could reach its end
        begun[id(value)] = _copied(value, fields, begun)
    return begun[id(value)]


def _copied(value: Any, fields: Set[str], begun: dict[int, Any]) -> Any:
    if isinstance(value, np.ndarray):
        return np.array(value)
    if isinstance(value, dict):
        return {k: _kept(v, fields, begun) for k, v in dict.items(value)}
    if isinstance(value, list):
        return [_kept(v, fields, begun) for v in list.__iter__(value)]
    if isinstance(value, tuple):
        parts = [_kept(v, fields, begun) for v in tuple.__iter__(value)]
        return tuple.__new__(type(value), parts) if hasattr(value, "_fields") else tuple(parts)
    return _object(value, fields & {"name", "value"} if isinstance(value, Enum) else fields, begun)


def _object(value: Any, fields: Set[str], begun: dict[int, Any]) -> Any:
    """The fields of an object that a text reads, or the object where it reads none."""
    home = getattr(value if isinstance(value, type) else type(value), "__module__", "") or ""
    if str(home).partition(".")[0] in (_OURS, "builtins", "numpy"):
        return value
    found: dict[str, Any] = {}
    for name in sorted(fields):
        if (part := field_of(value, name)) is not MISSING:
            found[name] = _kept(part, fields, begun)
    name = getattr(value if isinstance(value, type) else type(value), "__name__", "object")
    return type(name, (SimpleNamespace,), {})(**found) if found else value
