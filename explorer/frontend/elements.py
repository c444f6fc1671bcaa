"""The element types by the names that other languages have for them, for hints."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .types import Element

ELEMENTS = " ".join(kind.__name__ for kind in Element.__subclasses__())
"""The element types by name, for sentences."""

_NEAR = {
    "f16": "half float16 fp16", "bf16": "bfloat16",
    "f8e4m3": "f8 float8 fp8 e4m3 e4m3fn float8_e4m3 float8_e4m3fn", "f8e5m2": "e5m2 float8_e5m2",
    "f32": "float float32 fp32 single tf32",
    "f64": "double float64 fp64", "i8": "int8 char", "i32": "int int32 i16 int16 short index intc",
    "i64": "long int64 intp",
    "u8": "uint8 uchar byte", "u16": "uint16 ushort", "u32": "uint32 uint",
    "u64": "uint64 size_t ulong", "bool_": "bool bool8 boolean",
}  # fmt: skip


def nearest_element(name: str) -> str:
    """The element type that holds what another language calls `name` (``"float32"`` → ``"f32"``), or nothing."""
    word = name.rsplit(".", 1)[-1].rstrip("_").lower()
    return next((ours for ours, theirs in _NEAR.items() if word == ours.rstrip("_") or word in theirs.split()), "")


def no_such_word(module: str, name: str, words: Iterable[str]) -> AttributeError:
    """The error for ``ex.<name>``: it names the element types where one seems to be meant, else the nearest words."""
    if near := nearest_element(name):
        return AttributeError(f"{module} has no {name}: the element types are {ELEMENTS}; try {near}", name=name)
    close = difflib.get_close_matches(name, [w for w in words if not w.startswith("_")], 3)
    tail = f"; did you mean {', '.join(close)}?" if close else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{tail}", name=name)
