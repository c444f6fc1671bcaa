"""Numbers of a program's text: their types, and arithmetic on them alone, done once."""

from __future__ import annotations

from math import inf

import numpy as np

from ..ir.dtype import DTYPES, DType
from ..ir.operations import OPERATIONS
from ..ir.scalar import Call, Cast, Literal, Read, Scalar, operand_type, walk

_NORMAL, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
"""The normal numbers of f32."""


def literal(value: float | int | bool) -> Literal:
    """A number of the text: i32 (i64 or u64 where needed), f32 until its surroundings say f64, or bool."""
    if isinstance(value, bool):
        return Literal(value, DTYPES["bool"])
    if isinstance(value, int):
        return Literal(value, DTYPES["i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"])
    return Literal(value, DTYPES["f32"])


def fold(call: Call) -> Scalar:
    """Arithmetic on literals alone, done once in Python's numbers."""
    function = OPERATIONS[call.op].fold
    if function is None or not all(isinstance(a, Literal) for a in call.args):
        return call
    try:
        value = function(*(a.value for a in call.args if isinstance(a, Literal)))
    except (ZeroDivisionError, OverflowError):
        return call
    return literal(value) if isinstance(value, (int, float)) else call


def settle(scalar: Scalar, context: DType, reads: list[DType]) -> Scalar:
    """Give every literal the type in which it is used, so that ``0.1 * x`` is exact to f64 where `x` is f64."""
    if isinstance(scalar, Literal):
        return _settled(scalar, context)
    if isinstance(scalar, Cast):
        arg = settle(scalar.arg, scalar.dtype.wide, reads)
        same = isinstance(arg, Read) and reads[arg.slot].wide == scalar.dtype  # f32 of an f16 element: it is evaluated as that
        return arg if same else Cast(scalar.dtype, arg)
    if not isinstance(scalar, Call):
        return scalar
    own = operand_type(scalar, reads)
    weak = not any(isinstance(n, (Read, Cast)) for n in walk(scalar))
    if weak and own.name == "f32" and context.name == "f64" and OPERATIONS[scalar.op].result != "bool":
        own = context
    fixed = zip(scalar.args, OPERATIONS[scalar.op].fixed, strict=True)
    return Call(scalar.op, tuple(settle(a, DTYPES[name] if name else own, reads) for a, name in fixed))


def beyond(value: Scalar) -> int | None:
    """An integer of the text that no type holds, if there is one."""
    numbers = (n.value for n in walk(value) if isinstance(n, Literal) and n.dtype.kind == "int")
    return next((int(n) for n in numbers if not -(2**63) <= n < 2**64), None)


def _held(value: float, context: DType) -> float:
    """A number as the type holds it, where that is none of its normal numbers: no float64 reference may know better."""
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 308 digits
        number = inf if value > 0 else -inf
    if context.wide.name == "f64" or _NORMAL <= abs(number) <= _LARGEST:
        return number
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(number))


def _settled(node: Literal, context: DType) -> Literal:
    if context.kind == "float" and node.dtype.kind != "bool":
        return Literal(_held(node.value, context), context)
    if context.kind == "int" and node.dtype.kind == "int":
        fits = 0 <= node.value < 2 ** (8 * context.bytes) if context.unsigned else node.dtype.name == "i32"
        return Literal(node.value, context) if fits else node
    return node
