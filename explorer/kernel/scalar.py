"""Scalar expressions as C text, with as few parentheses as their meaning needs.

Floats narrower than 32 bits are widened when read and rounded when stored (``__half2float``, ``__float2half``), so
arithmetic on them is f32, as in the interpreter.  Floating-point sums are never regrouped: a right operand of equal
precedence keeps its parentheses.

``max`` and ``min`` of floats are ``max_nan`` and ``min_nan`` of the device library: NaN where an operand is NaN, as NumPy's are.
``fmaxf`` and ``fminf`` (IEEE 754-2008 maxNum and minNum) would return the number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..ir.dtype import DType
from ..ir.expr import Expr
from ..ir.operations import OPERATIONS
from ..ir.scalar import REDUCTIONS, Call, Cast, IndexValue, Literal, Read, Scalar, argument_types, operand_type, type_of

PRIMARY, UNARY, CONDITIONAL = 100, 14, 2
Text = tuple[str, int]
"""C text and the precedence of its outermost operator."""

_WIDEN = {"f16": "__half2float({0})", "bf16": "__bfloat162float({0})", "f8e4m3": "float({0})", "f8e5m2": "float({0})"}
_NARROW = {"f16": "__float2half({0})", "bf16": "__float2bfloat16({0})", "f8e4m3": "__nv_fp8_e4m3({0})",
           "f8e5m2": "__nv_fp8_e5m2({0})"}


def widen(text: Text, dtype: DType) -> Text:
    """The text of a stored value as its compute type."""
    return (_WIDEN[dtype.name].format(text[0]), PRIMARY) if dtype.name in _WIDEN else text


def narrow(text: Text, dtype: DType) -> Text:
    """The text of a computed value as it is stored in an element of `dtype`."""
    return (_NARROW[dtype.name].format(text[0]), PRIMARY) if dtype.name in _NARROW else text


def literal(value: float | int | bool, dtype: DType) -> Text:
    """A constant of the compute type of `dtype`; infinities and NaN are the macros of the preamble."""
    kind = dtype.wide
    if kind.kind == "bool":
        return "true" if value else "false", PRIMARY
    if kind.kind == "int":
        return _integer(int(value), kind)
    number = float(value)
    if math.isnan(number):
        return "NAN" if kind.name == "f32" else "(double)NAN", PRIMARY if kind.name == "f32" else UNARY
    if math.isinf(number):
        text = "INFINITY" if kind.name == "f32" else "(double)INFINITY"
        return ("-" + text, UNARY) if number < 0 else (text, PRIMARY if kind.name == "f32" else UNARY)
    if kind.name == "f32":
        with np.errstate(over="ignore"):
            rounded = np.float32(number)
        if np.isinf(rounded):
            return literal(float(rounded), dtype)
        text = str(rounded) + "f"
    else:
        text = repr(number)
    return text, UNARY if text.startswith("-") else PRIMARY


def _integer(value: int, kind: DType) -> Text:
    suffix = "U" * kind.unsigned + "LL" * (kind.bytes == 8)
    smallest = -(2 ** (8 * kind.bytes - 1))
    if value == smallest:
        return f"(-{-(value + 1)}{suffix} - 1)", PRIMARY
    return f"{value}{suffix}", UNARY if value < 0 else PRIMARY


def enclose(text: Text, level: int) -> str:
    """The text, in parentheses if its precedence is below `level`."""
    return text[0] if text[1] >= level else f"({text[0]})"


def cast(text: Text, to: DType, source: DType) -> Text:
    """Conversion to `to`; a cast to a narrow float rounds and stays in f32."""
    if to.name in _NARROW:
        return widen(narrow(text, to), to)
    if to.kind == "bool" and source.kind != "bool":
        return f"{enclose(text, 10)} != 0", 9
    if to.name == source.name:
        return text
    return f"({to.cuda}){enclose(text, UNARY)}", UNARY


def value_text(value: Scalar, types: Sequence[DType], read: Callable[[int], Text], index: Callable[[Expr], Text]) -> Text:
    """The C text of `value`.

    Parameters
    ----------
    value : Scalar
    types : sequence of DType
        Of the statement's reads.
    read : callable
        Slot to the text of that read, already widened.
    index : callable
        Index expression (over the statement's dimensions) to its text.
    """
    if isinstance(value, Literal):
        return literal(value.value, value.dtype)
    if isinstance(value, Read):
        return read(value.slot)
    if isinstance(value, IndexValue):
        return index(value.expr)
    if isinstance(value, Cast):
        return cast(value_text(value.arg, types, read, index), value.dtype, type_of(value.arg, types))
    return _call_text(value, types, lambda arg: value_text(arg, types, read, index))


def _call_text(call: Call, types: Sequence[DType], text_of: Callable[[Scalar], Text]) -> Text:
    kind = operand_type(call, types)
    operation = OPERATIONS[call.op]
    spelling = operation.spelled(kind)
    arguments: list[Text] = []
    for arg, own in zip(call.args, argument_types(call, types), strict=True):
        arguments.append(_operand(arg, own, types, text_of, exact=operation.precedence == PRIMARY))
    if call.op == "div" and all(type_of(a, types).kind != "float" for a in call.args):
        arguments[0] = cast(arguments[0], kind, type_of(call.args[0], types))
    return apply(spelling, operation.precedence, arguments)


def _operand(arg: Scalar, kind: DType, types: Sequence[DType], text_of: Callable[[Scalar], Text], exact: bool) -> Text:
    """An argument as the operation's type: literals respelled, others cast where C would not convert by itself."""
    own = type_of(arg, types).wide
    if isinstance(arg, Literal) and kind.kind == "float" and own.kind != "float" and abs(arg.value) < 2**24:
        return literal(float(arg.value), kind)
    text = text_of(arg)
    return cast(text, kind, own) if exact and own.name != kind.name and kind.kind != "bool" else text


def apply(spelling: str, precedence: int, arguments: Sequence[Text]) -> Text:
    """Fill a spelling of the table of operations, with the parentheses its operator needs."""
    if precedence == PRIMARY:
        return spelling.format(*(text for text, _ in arguments)), PRIMARY
    if precedence == CONDITIONAL:
        levels = (CONDITIONAL + 1, CONDITIONAL + 1, CONDITIONAL)
        return spelling.format(*(enclose(a, level) for a, level in zip(arguments, levels, strict=True))), CONDITIONAL
    if len(arguments) == 1:
        inner = enclose(arguments[0], precedence)
        return spelling.format(f"({inner})" if inner.startswith("-") else inner), precedence
    left, right = arguments
    return spelling.format(enclose(left, precedence), enclose(right, precedence + 1)), precedence


def combine_text(reduction: str, left: Text, right: Text, dtype: DType) -> Text:
    """``left (op) right`` for a reduction on values of `dtype`'s compute type."""
    operation = OPERATIONS[REDUCTIONS[reduction].operation]
    return apply(operation.spelled(dtype.wide), operation.precedence, (left, right))


def updates_in_place(reduction: str, dtype: DType) -> bool:
    """Whether ``target += value`` says the update of an element of `dtype`, without naming the target again."""
    return REDUCTIONS[reduction].assigns and dtype.name == dtype.wide.name and dtype.kind != "bool"


def update_text(reduction: str, target: str, value: Text, dtype: DType, value_type: DType) -> str:
    """The statement ``target (op)= value`` on an element of `dtype`, as a person would write it."""
    row, wide = REDUCTIONS[reduction], dtype.wide
    if updates_in_place(reduction, dtype):
        return f"{target} {row.symbol} {value[0]};"
    if OPERATIONS[row.operation].precedence == PRIMARY and value_type.wide.name != wide.name:
        value = cast(value, wide, value_type.wide)
    old = widen((target, PRIMARY), dtype)
    return f"{target} = {narrow(combine_text(reduction, old, value, dtype), dtype)[0]};"

