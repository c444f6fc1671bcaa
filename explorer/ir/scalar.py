"""Scalar expressions of a statement, and the table of operations they may use.

Adding an operation is one row in :data:`OPERATIONS`: its name, NumPy meaning, CUDA spelling and cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .dtype import DTYPES, DType
from .expr import Expr


@dataclass(frozen=True)
class Operation:
    """One scalar operation.

    Attributes
    ----------
    name : str
        What users write (``ex.exp``), or the name of a Python operator (``add``).
    arity : int
    numpy : callable
        Its meaning, on NumPy arrays of the compute type.
    cuda : mapping of str to str
        Spelling per compute type, with ``{0} {1} {2}`` for the arguments; ``"*"`` is every other type.
    flops : int
        Cost counted by the roofline.  Transcendental functions count as 1 special-function operation on current
        GPUs but take several instructions; the figures follow the usual convention of one per call.
    result : str
        ``"same"`` (the common type of the arguments), ``"float"`` (the same, but integers become f32), or a type's name.
    precedence : int
        Of the spelling in CUDA: 100 for a call, C's order (multiplication 13, addition 12, …) for an operator.
    takes : tuple of str
        Types of the arguments that are not of the common type, by position; ``""`` for the others.
    """

    name: str
    arity: int
    numpy: Callable[..., Any]
    cuda: dict[str, str]
    flops: int = 1
    result: str = "same"
    precedence: int = 100
    python: str = ""
    takes: tuple[str, ...] = ()


def _erf(x: Any) -> Any:
    """Error function; NumPy has none, so through :func:`math.erf`, element by element."""
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x).astype(np.result_type(x, np.float32))


def _rank(value: Any, zero: float, nan: int) -> Any:
    """An integer of 32 bits, as int64, in the order of the values: of floats, -0 and 0 are `zero`, and a NaN is `nan`."""
    value = np.asarray(value)
    if value.dtype.kind != "f":
        return value.astype(np.int64)
    with np.errstate(over="ignore"):
        bits = np.asarray(np.where(value == 0, zero, value).astype(np.float32)).view(np.int32)
    ordered = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).astype(np.int64)
    return np.where(np.isnan(value), np.int64(nan), ordered)


def _argmax_key(value: Any, index: Any) -> Any:
    return _rank(value, 0.0, 0x7FFFFFFF) * 2**32 + (0xFFFFFFFF - np.asarray(index, np.int64))


def _argmin_key(value: Any, index: Any) -> Any:
    return _rank(value, -0.0, -0x80000000) * 2**32 + np.asarray(index, np.int64)


def _call(name: str, **other: str) -> dict[str, str]:
    return {"f32": f"{name}f({{0}})", "f64": f"{name}({{0}})", **other}


_ROWS = (
    Operation("add", 2, np.add, {"*": "{0} + {1}"}, precedence=12, python="{0} + {1}"),
    Operation("sub", 2, np.subtract, {"*": "{0} - {1}"}, precedence=12, python="{0} - {1}"),
    Operation("mul", 2, np.multiply, {"*": "{0} * {1}"}, precedence=13, python="{0} * {1}"),
    Operation("div", 2, np.true_divide, {"*": "{0} / {1}"}, result="float", precedence=13, python="{0} / {1}"),
    Operation("neg", 1, np.negative, {"*": "-{0}"}, precedence=14, python="-{0}"),
    Operation("exp", 1, np.exp, _call("exp"), result="float"),
    Operation("log", 1, np.log, _call("log"), result="float"),
    Operation("sqrt", 1, np.sqrt, _call("sqrt"), result="float"),
    Operation("rsqrt", 1, lambda x: 1 / np.sqrt(x), _call("rsqrt"), result="float"),
    Operation("tanh", 1, np.tanh, _call("tanh"), result="float"),
    Operation("erf", 1, _erf, _call("erf"), result="float"),
    Operation("abs", 1, np.abs, {"f32": "fabsf({0})", "f64": "fabs({0})", "i64": "llabs({0})", "*": "abs({0})"}),
    Operation("min", 2, np.minimum, {"f32": "min_nan({0}, {1})", "f64": "min_nan({0}, {1})", "*": "min({0}, {1})"}),
    Operation("max", 2, np.maximum, {"f32": "max_nan({0}, {1})", "f64": "max_nan({0}, {1})", "*": "max({0}, {1})"}),
    Operation("fast_exp", 1, np.exp, {"f32": "__expf({0})", "f64": "exp({0})"}, result="float"),
    Operation("fast_log", 1, np.log, {"f32": "__logf({0})", "f64": "log({0})"}, result="float"),
    Operation("fast_div", 2, np.true_divide, {"f32": "__fdividef({0}, {1})", "f64": "(({0}) / ({1}))"}, result="float"),
    Operation("pow", 2, np.power, {"f32": "powf({0}, {1})", "f64": "pow({0}, {1})"}, result="float"),
    Operation("where", 3, np.where, {"*": "{0} ? {1} : {2}"}, flops=0, precedence=2, takes=("bool", "", "")),
    Operation("lt", 2, np.less, {"*": "{0} < {1}"}, result="bool", precedence=10, python="{0} < {1}"),
    Operation("le", 2, np.less_equal, {"*": "{0} <= {1}"}, result="bool", precedence=10, python="{0} <= {1}"),
    Operation("gt", 2, np.greater, {"*": "{0} > {1}"}, result="bool", precedence=10, python="{0} > {1}"),
    Operation("ge", 2, np.greater_equal, {"*": "{0} >= {1}"}, result="bool", precedence=10, python="{0} >= {1}"),
    Operation("eq", 2, np.equal, {"*": "{0} == {1}"}, result="bool", precedence=9, python="{0} == {1}"),
    Operation("ne", 2, np.not_equal, {"*": "{0} != {1}"}, result="bool", precedence=9, python="{0} != {1}"),
    Operation("and", 2, np.logical_and, {"*": "{0} && {1}"}, flops=0, result="bool", precedence=5, python="{0} and {1}"),
    Operation("or", 2, np.logical_or, {"*": "{0} || {1}"}, flops=0, result="bool", precedence=4, python="{0} or {1}"),
    Operation("not", 1, np.logical_not, {"*": "!{0}"}, flops=0, result="bool", precedence=14, python="not {0}"),
    Operation("argmax_key", 2, _argmax_key, {"*": "argmax_key({0}, {1})"}, result="i64", takes=("", "i32")),
    Operation("argmin_key", 2, _argmin_key, {"*": "argmin_key({0}, {1})"}, result="i64", takes=("", "i32")),
    Operation("argmax_index", 1, lambda key: np.asarray(~np.asarray(key, np.int64)).astype(np.int32), {"*": "(int)~{0}"}, flops=0,
              result="i32", precedence=14, takes=("i64",)),
    Operation("argmin_index", 1, lambda key: np.asarray(key, np.int64).astype(np.int32), {"*": "(int){0}"}, flops=0,
              result="i32", precedence=14, takes=("i64",)),
)

OPERATIONS: dict[str, Operation] = {row.name: row for row in _ROWS}
"""By name.  ``max`` and ``min`` are NumPy's ``maximum`` and ``minimum``: NaN where an operand is NaN.

``argmax_key(value, index)`` is a 64-bit integer whose order is the order in which `numpy.argmax` prefers elements: a NaN before
all, then larger values, then smaller indices; so that the largest key says which element is the first largest, whatever the order
in which keys are combined.  The high half is the value's bit pattern, with the lower 31 bits of a negative number complemented,
which orders IEEE 754 numbers as integers; the low half is the complemented index.  ``argmin_key`` orders for `numpy.argmin`: the
smallest is taken.  ``argmax_index`` and ``argmin_index`` give the index back, and -1 for the identities of max and min."""

APPROXIMATE = {"exp": "fast_exp", "log": "fast_log", "div": "fast_div"}
"""Operations that the special-function units have in one or two instructions, with larger errors (`approximate`).  Users do not
write these names; errors are in codegen/error_bound.py."""


@dataclass(frozen=True)
class Reduction:
    """An update ``x = x (op) value`` with an associative and commutative `op`.

    Attributes
    ----------
    name : str
        ``sum prod max min and or``.
    operation : str
        The row of :data:`OPERATIONS` that combines two values.
    symbol : str
        As shown in loops (``+=``, ``max=``).
    """

    name: str
    operation: str
    symbol: str

    def identity(self, dtype: DType) -> float | int | bool:
        """The value that changes nothing: 0, 1, the type's smallest or largest, true or false."""
        if self.name in ("sum", "prod", "and", "or"):
            return {"sum": 0, "prod": 1, "and": True, "or": False}[self.name]
        if dtype.kind == "float":
            return -np.inf if self.name == "max" else np.inf
        if dtype.kind == "bool":
            return self.name == "min"
        info = np.iinfo(dtype.numpy)
        return int(info.min if self.name == "max" else info.max)


REDUCTIONS: dict[str, Reduction] = {
    r.name: r
    for r in (
        Reduction("sum", "add", "+="), Reduction("prod", "mul", "*="), Reduction("max", "max", "max="),
        Reduction("min", "min", "min="), Reduction("and", "and", "and="), Reduction("or", "or", "or="),
    )
}


@dataclass(frozen=True)
class Literal:
    """A constant of the program text."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True)
class IndexValue:
    """An index expression over the statement's dimensions, used as a number (type i32, i64 where it may exceed 2**31)."""

    expr: Expr


@dataclass(frozen=True)
class Read:
    """The value of ``statement.reads[slot]``, widened to its compute type."""

    slot: int


@dataclass(frozen=True)
class Call:
    """An operation of the table applied to arguments."""

    op: str
    args: tuple[Scalar, ...]


@dataclass(frozen=True)
class Cast:
    """Conversion to `dtype` (floats to integers truncate towards zero, as in C)."""

    dtype: DType
    arg: Scalar


Scalar = Literal | IndexValue | Read | Call | Cast


def children(scalar: Scalar) -> tuple[Scalar, ...]:
    """Direct operands."""
    if isinstance(scalar, Call):
        return scalar.args
    return (scalar.arg,) if isinstance(scalar, Cast) else ()


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """The expression and all its operands, outermost first."""
    yield scalar
    for child in children(scalar):
        yield from walk(child)


def rebuild(scalar: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """Replace every operand for which `change` returns something, outermost first."""
    if (new := change(scalar)) is not None:
        return new
    if isinstance(scalar, Call):
        return replace(scalar, args=tuple(rebuild(a, change) for a in scalar.args))
    return replace(scalar, arg=rebuild(scalar.arg, change)) if isinstance(scalar, Cast) else scalar


def flops(scalar: Scalar) -> int:
    """Arithmetic operations of one evaluation, by the table's costs."""
    return sum(OPERATIONS[node.op].flops for node in walk(scalar) if isinstance(node, Call))


_RANK = ("bool", "i32", "i64", "f32", "f64")


def common(types: Sequence[DType]) -> DType:
    """The compute type in which an operation on `types` is evaluated (bool < i32 < i64 < f32 < f64)."""
    return DTYPES[max((t.compute for t in types), key=_RANK.index)]


def operand_type(call: Call, reads: Sequence[DType]) -> DType:
    """The compute type in which `call` is evaluated, given the types of the statement's reads."""
    operation = OPERATIONS[call.op]
    args = [a for a, fixed in zip(call.args, operation.takes or ("",) * len(call.args), strict=True) if not fixed]
    if not args:
        return DTYPES[operation.takes[0]]
    joint = common([type_of(a, reads) for a in args])
    arithmetic = operation.result != "bool" and call.op not in ("where", "min", "max")
    if operation.result == "float" and joint.kind != "float":
        return DTYPES["f32"]
    return DTYPES["i32"] if arithmetic and joint.kind == "bool" else joint


def argument_types(call: Call, reads: Sequence[DType]) -> tuple[DType, ...]:
    """The compute type in which each argument of `call` is passed."""
    joint, takes = operand_type(call, reads), OPERATIONS[call.op].takes or ("",) * len(call.args)
    return tuple(DTYPES[fixed] if fixed else joint for fixed in takes)


def type_of(scalar: Scalar, reads: Sequence[DType]) -> DType:
    """The type of the value of `scalar`, given the types of the statement's reads."""
    if isinstance(scalar, (Literal, Cast)):
        return scalar.dtype
    if isinstance(scalar, IndexValue):
        return DTYPES["i32"]
    if isinstance(scalar, Read):
        return reads[scalar.slot].wide
    result = OPERATIONS[scalar.op].result
    return DTYPES[result] if result in DTYPES else operand_type(scalar, reads)


def approximated(scalar: Scalar, types: Sequence[DType]) -> Scalar:
    """The expression with the special-function units' operations where they exist (f32 only); see :data:`APPROXIMATE`."""
    if isinstance(scalar, Cast):
        return replace(scalar, arg=approximated(scalar.arg, types))
    if not isinstance(scalar, Call):
        return scalar
    new = replace(scalar, args=tuple(approximated(a, types) for a in scalar.args))
    fast = APPROXIMATE.get(scalar.op)
    return replace(new, op=fast) if fast and operand_type(scalar, types).name == "f32" else new
