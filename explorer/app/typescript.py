"""The protocol's types as TypeScript declarations, against which the front end's JavaScript is checked.

``python -m explorer.app.typescript`` writes ``static/protocol.d.ts``; a test fails where that file is not what the Python says.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from . import protocol, protocol_messages, protocol_moves, protocol_plans, protocol_results, protocol_walks

MODULES = (protocol_walks, protocol, protocol_moves, protocol_results, protocol_plans, protocol_messages)
TARGET = Path(__file__).parent / "static" / "protocol.d.ts"
_HEAD = "// Written by `python -m explorer.app.typescript` from explorer/app/protocol*.py: change those.\n"
_PLAIN: dict[Any, str] = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", None: "null",
                          Any: "any"}  # fmt: skip


def declarations() -> str:
    """Every type of the protocol, in a namespace of its own."""
    return f"{_HEAD}declare namespace Protocol {{\n{''.join(map(_interface, _types()))}}}\n"


def _types() -> Iterator[type]:
    for module in MODULES:
        yield from (one for one in vars(module).values() if is_typeddict(one) and one.__module__ == module.__name__)


def _interface(kind: type) -> str:
    fields = "".join(f"    {_field(name, hint)}\n" for name, hint in get_type_hints(kind, include_extras=True).items())
    return f"  interface {kind.__name__} {{\n{fields}  }}\n"


def _field(name: str, hint: Any) -> str:
    if get_origin(hint) is NotRequired:
        return f"{name}?: {written(get_args(hint)[0])};"
    return f"{name}: {written(hint)};"


def written(hint: Any) -> str:
    """A type as TypeScript writes it."""
    origin, args = get_origin(hint), get_args(hint)
    if is_typeddict(hint):
        return hint.__name__
    if origin in (Union, types.UnionType):
        return " | ".join(map(written, args))
    if origin is Literal:
        return " | ".join(f'"{one}"' for one in args)
    if origin is list:
        inner = written(args[0])
        return f"({inner})[]" if " " in inner and "[" not in inner else f"{inner}[]"
    if origin is tuple:
        return f"[{', '.join(map(written, args))}]"
    if origin is dict:
        return f"Record<string, {written(args[1])}>"
    return _PLAIN[hint]


if __name__ == "__main__":
    TARGET.write_text(declarations(), encoding="utf-8")
