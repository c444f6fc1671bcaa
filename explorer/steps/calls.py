"""One step as a call or as Python text, which is read, never evaluated; every argument checked against its declared field."""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from ..errors import TransformError, shown
from ..transforms.base import Transform, catalogue, gathered, mended, misfit, spelled

NAMES = ("loop", "leaf", "array", "name", "choice", "node", "kernel")
"""Kinds of field that hold one name."""
LISTS = {"loops": str, "arrays": str, "ints": int}
"""Kinds of field that hold several values, and of which type."""
LONGEST = 4000
"""Characters of one step that are read at all."""


def read_call(text: str) -> Transform:
    """The step that a call such as ``split('k', 32)`` means.

    Raises
    ------
    TransformError
        If it is not one call of a transformation with literal arguments that fit its fields.
    """
    if len(text) > LONGEST:
        raise TransformError("this step is too long to be one", hint="split('k', 32)")
    try:
        node = ast.parse(text.strip().removeprefix("s.").removeprefix("."), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TransformError("this is not a step", why=str(error), hint="write a call such as split('k', 32)") from None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise TransformError("this is not a step", hint="write a call such as split('k', 32)")
    return step_of(node.func.id, node)


def step_of(name: str, call: ast.Call) -> Transform:
    """The step that a parsed call of the transformation `name` means."""
    kind = find(name)
    declared = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    args = tuple(literal(a) for a in call.args)
    values, hint = gathered(kind, args), kind.meant(args)
    if len(values) > len(declared):
        raise TransformError(f"{kind.name} takes at most {len(declared)} arguments", hint=hint or signature(kind))
    given = dict(zip(declared, values, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            raise TransformError("arguments are written out, without **", hint=signature(kind))
        if keyword.arg in given:
            raise TransformError(f"{kind.name} got {keyword.arg} twice", hint=signature(kind))
        given[keyword.arg] = literal(keyword.value)
    return construct(kind, given, hint)


def literal(node: ast.expr) -> Any:
    """The value of a number, a string, True, False, None, or a list or tuple of them; refuses every other expression.

    What takes integers refuses other numbers: it knows the nearest that fits.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool, type(None))):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(literal(e) for e in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) \
            and isinstance(node.operand.value, (int, float)) and not isinstance(node.operand.value, bool):
        return -node.operand.value
    raise TransformError("an argument is a name in quotes, an integer, True, False, or a list of them",
                         why=f"found {ast.unparse(node)[:80]}", hint="nothing in a script is evaluated")


def find(name: str) -> type[Transform]:
    """The transformation of this name or alias."""
    kind, known = kind_of(name), catalogue()
    if kind is None:
        near = difflib.get_close_matches(name, known, 3)
        raise TransformError(f"there is no move {name!r}", hint=", ".join(near) or "print(ex.help()) lists all")
    return kind


def construct(kind: type[Transform], given: Mapping[str, Any], hint: str = "") -> Transform:
    """The step with these arguments; `hint` is what to write where they do not fit, if not just how the step is called.

    Raises
    ------
    TransformError
        With ``errors``: a sentence for every field that is wrong or missing.
    """
    errors: dict[str, str] = {}
    values: dict[str, Any] = {}
    declared = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for name in given.keys() - declared.keys():
        errors[name] = f"{kind.name} takes no argument {name}"
    for name, spec in declared.items():
        value = given.get(name)
        if value is None or (isinstance(value, str) and not value.strip()) or value == ():
            if spec.default is MISSING:
                errors[name] = "needed"
            continue
        try:
            values[name] = coerced(spec.metadata, value)
        except ValueError as error:
            errors[name] = str(error)
    if errors:
        words = "; ".join(f"{name}: {text}" for name, text in sorted(errors.items()))
        raise TransformError(f"{kind.name} was called with the wrong arguments", why=words,
                             hint=hint or _mended(kind, values, given, errors) or signature(kind), errors=errors)
    return kind(**values)


def _mended(kind: type[Transform], values: Mapping[str, Any], given: Mapping[str, Any], errors: Mapping[str, str]) -> str:
    """The call with the nearest numbers that fit, where nothing else is wrong with its arguments."""
    kinds = {f.name: f.metadata.get("kind") for f in fields(kind) if f.name in errors}  # type: ignore[arg-type]
    if kinds.keys() != errors.keys() or not set(kinds.values()) <= {"int", "ints"}:
        return ""
    raw = {name: tuple(_parts(given.get(name))) if kinds[name] == "ints" else given.get(name) for name in kinds}
    return mended(kind(**{**values, **raw}), raw.keys())


def coerced(metadata: Mapping[str, Any], value: Any) -> Any:
    """`value` as a field of this kind holds it; text from a form is read as numbers and lists.

    Raises
    ------
    ValueError
        With a sentence.
    """
    kind = metadata.get("kind", "")
    if kind in LISTS:
        return tuple(_listed(kind, value, metadata))
    if kind == "int":
        return _integer(value, metadata)
    if kind == "bool":
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise ValueError("yes or no: True or False")
        return value
    if not isinstance(value, str):
        raise ValueError(f"a name in quotes, not {value!r}"[:120])
    value = spelled(metadata, value)
    choices = metadata.get("choices")
    if choices and value not in choices:
        raise ValueError(f"one of {', '.join(choices)}")
    return value.strip()


def _parts(value: Any) -> Sequence[Any]:
    """The values of a list, also of one that a form has as text."""
    if isinstance(value, str):
        return [p for p in re.split(r"[\s,;]+", value.strip(" ()[]")) if p]
    return value if isinstance(value, (list, tuple)) else [value]


def _listed(kind: str, value: Any, metadata: Mapping[str, Any]) -> Iterator[Any]:
    for part in _parts(value):
        if LISTS[kind] is int:
            yield _integer(part, metadata)
        elif isinstance(part, str):
            yield part.strip("'\" ")
        else:
            raise ValueError(f"names, not {part!r}"[:120])


def _integer(value: Any, metadata: Mapping[str, Any]) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,12}\s*", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"an integer, not {value!r}"[:120])
    low, high = metadata.get("min"), metadata.get("max")
    if low is not None and value < low:
        raise ValueError(f"at least {low}")
    if high is not None and value > high:
        raise ValueError(f"at most {high}")
    return value


def signature(kind: type[Transform]) -> str:
    """How a transformation is called: ``split(loop, factor, inner=…)``."""
    parts = [f.name if f.default is MISSING else f"{f.name}=…" for f in fields(kind)]  # type: ignore[arg-type]
    return f"{kind.name}({', '.join(parts)})"


def calls_in(text: str) -> Iterator[Transform]:
    """Every complete step that stands in a sentence: ``bind('k', 'seq') makes it an ordinary loop again``."""
    for match in re.finditer(r"\b([a-z_]+)\(", text):
        if match[1] not in catalogue():
            continue
        end = closing(text, match.end())
        if end:
            try:
                yield read_call(text[match.start() : end])
            except TransformError:
                continue


def closing(text: str, start: int) -> int:
    """Position behind the parenthesis that closes the one before `start`, or 0."""
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
    return 0


def title_of(step: Transform) -> str:
    """The step in few words, for the history and the undo button: ``split k 32``."""
    words = [step.name]
    for name, value in step.arguments().items():
        shown = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        spec = next(f for f in fields(step) if f.name == name)  # type: ignore[arg-type]
        words.append(shown if spec.default is MISSING else f"{name}={shown}")
    return " ".join(words)


def kind_of(name: str) -> type[Transform] | None:
    """The transformation of this name or alias, if there is one."""
    known = catalogue()
    return known.get(name) or next((k for k in known.values() if name in (*k.aliases, *k.formerly)), None)


def built(kind: type[Transform], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Transform:
    """A step from a call, with a sentence instead of Python's TypeError."""
    declared = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    try:
        step = kind(*gathered(kind, tuple(map(_plain, args))), **{name: _plain(value) for name, value in kwargs.items()})
    except TypeError as error:
        why = str(error).replace(f"{kind.__name__}.__init__", kind.name)
        raise TransformError(f"{kind.name} was called with the wrong arguments", why=why,
                             hint=kind.meant(args) or f"{kind.name}({', '.join(declared)})") from None
    for f in fields(kind):  # type: ignore[arg-type]
        if wanted := misfit(f, getattr(step, f.name)):
            raise TransformError(f"{kind.name}: {f.name} must be {wanted}, not {shown(getattr(step, f.name))}",
                                 why=f.metadata.get("help", ""),
                                 hint=kind.meant(args) or mended(step) or f"{kind.name}({', '.join(declared)})")
    return step


def _plain(value: Any) -> Any:
    """Lists and NumPy's arrays as tuples, and its integers as Python's."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return operator.index(value) if hasattr(type(value), "__index__") and not isinstance(value, bool) else value
