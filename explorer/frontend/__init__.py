"""The input language: Python loops, parsed at the decorator into :class:`~explorer.ir.program.Program`."""

from typing import TYPE_CHECKING

from .definition import Definition, define, program
from .function import Function, function
from .signature import Parameter
from .size import sizes
from .types import (
    argmax,
    argmin,
    bf16,
    bool_,
    cast,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    inf,
    inout,
    local,
    u8,
    u16,
    u32,
    u64,
)
from .words import WORDS

if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any: ...


globals().update(WORDS)

__all__ = [
    "Definition",
    "Function",
    "Parameter",
    "argmax",
    "argmin",
    "bf16",
    "bool_",
    "cast",
    "define",
    "f8e4m3",
    "f8e5m2",
    "f16",
    "f32",
    "f64",
    "function",
    "i8",
    "i32",
    "i64",
    "inf",
    "inout",
    "local",
    "program",
    "sizes",
    "u8",
    "u16",
    "u32",
    "u64",
]
__all__ += sorted(WORDS)  # pyright: ignore[reportUnsupportedDunderAll]
