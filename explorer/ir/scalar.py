"""Scalar expressions of a statement, and their types.  The operations they use are the rows of :mod:`.operations`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from .dtype import DTYPES, DType
from .expr import Expr
from .operations import APPROXIMATE, FUSED, GELU, OPERATIONS


@dataclass(frozen=True)
class Reduction:
    """An update ``x = x (op) value`` with an associative and commutative `op`.

    Attributes
    ----------
    name : str
        ``sum prod max min``, of truth values ``and or xor``, of bits ``bitand bitor bitxor``.
    operation : str
        The row of :data:`~.operations.OPERATIONS` that combines two values.
    symbol : str
        As shown in loops (``+=``, ``max=``).
    """

    @property
    def assigns(self) -> bool:
        """Whether the symbol is an operator of C, which then says the update."""
        return self.symbol[:-1] in ("+", "*", "&", "|", "^")

    name: str
    operation: str
    symbol: str

    def identity(self, dtype: DType) -> float | int | bool:
        """The value that changes nothing: 0, 1, all bits, the type's smallest or largest, true or false."""
        if self.name in _IDENTITIES:
            return _IDENTITIES[self.name]
        if dtype.kind == "float":
            return -np.inf if self.name == "max" else np.inf
        if dtype.kind == "bool":
            return self.name == "min"
        info = np.iinfo(dtype.numpy)
        if self.name == "bitand":
            return int(info.max) if dtype.unsigned else -1
        return int(info.min if self.name == "max" else info.max)


_IDENTITIES: dict[str, int | bool] = {"sum": 0, "prod": 1, "and": True, "or": False, "xor": False, "bitor": 0, "bitxor": 0}

REDUCTIONS: dict[str, Reduction] = {
    r.name: r
    for r in (
        Reduction("sum", "add", "+="), Reduction("prod", "mul", "*="), Reduction("max", "max", "max="),
        Reduction("min", "min", "min="), Reduction("and", "and", "and="), Reduction("or", "or", "or="),
        Reduction("xor", "xor", "xor="), Reduction("bitand", "bitand", "&="), Reduction("bitor", "bitor", "|="),
        Reduction("bitxor", "bitxor", "^="),
    )
}

BITWISE = ("bitand", "bitor", "bitxor")
"""Reductions of the bits of integers."""


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


_RANK = ("bool", "i32", "u32", "i64", "u64", "f32", "f64")


def common(types: Sequence[DType]) -> DType:
    """The compute type in which an operation on `types` is evaluated (bool < i32 < u32 < i64 < u64 < f32 < f64)."""
    return DTYPES[max((t.compute for t in types), key=_RANK.index)]


def operand_type(call: Call, reads: Sequence[DType]) -> DType:
    """The compute type in which `call` is evaluated, given the types of the statement's reads."""
    operation = OPERATIONS[call.op]
    args = [a for a, fixed in zip(call.args, operation.fixed, strict=True) if not fixed]
    if not args:
        return DTYPES[operation.takes[0]]
    joint = common([type_of(a, reads) for a in args])
    arithmetic = operation.result != "bool" and not operation.keeps_bool
    if operation.result == "float" and joint.kind != "float":
        return DTYPES["f32"]
    return DTYPES["i32"] if arithmetic and joint.kind == "bool" else joint


def argument_types(call: Call, reads: Sequence[DType]) -> tuple[DType, ...]:
    """The compute type in which each argument of `call` is passed."""
    joint, takes = operand_type(call, reads), OPERATIONS[call.op].fixed
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


SAME = 1e-7
"""Two constants that differ by less are the same in f32, where they are near 1."""
LARGEST_SCALE = 2.3e38
"""Of an f32 that is finite when log2 e is in it, too."""


def approximated(scalar: Scalar, types: Sequence[DType], fused: bool = False) -> Scalar:
    """The expression with the special-function units' operations where they exist (f32 only); `fused`: exponentials take the
    product and the difference in their argument with them.  The GELU with `erf` is one operation, and that with `tanh` has a
    sigmoid.
    """
    if isinstance(scalar, Cast):
        return replace(scalar, arg=approximated(scalar.arg, types, fused))
    if not isinstance(scalar, Call):
        return scalar
    if (x := _gelu_of(scalar, types)) is not None:
        return Call(GELU, (approximated(x, types, fused),))
    if (by_sigmoid := _by_sigmoid(scalar, types)) is not None:
        return approximated(by_sigmoid, types, fused)
    new = replace(scalar, args=tuple(approximated(a, types, fused) for a in scalar.args))
    fast = APPROXIMATE.get(scalar.op)
    if fused and scalar.op in ("exp", APPROXIMATE["exp"]) and operand_type(scalar, types).name == "f32":
        return _fused(new.args[0], types)
    return replace(new, op=fast) if fast and operand_type(scalar, types).name == "f32" else new


def _fused(exponent: Scalar, types: Sequence[DType]) -> Call:
    """The exponential of ``x * scale - m``, with the factor that is a constant as the scale."""
    single = DTYPES["f32"]

    def parts(node: Scalar, op: str) -> tuple[Scalar, Scalar] | None:
        if isinstance(node, Call) and node.op == op and operand_type(node, types) == single:
            return node.args[0], node.args[1]
        return None

    x, m = parts(exponent, "sub") or (exponent, Literal(0.0, single))
    a, b = parts(x, "mul") or (x, Literal(1.0, single))
    if isinstance(a, Literal):
        a, b = b, a
    scales = isinstance(b, Literal) and abs(b.value) < LARGEST_SCALE
    return Call(FUSED, (a, b, m) if scales else (x, Literal(1.0, single), m))


def _gelu_of(scalar: Call, types: Sequence[DType]) -> Scalar | None:
    """`x` of ``0.5 * x * (1 + erf(x / sqrt 2))`` in f32, its factors in any order; None for other expressions."""
    if scalar.op not in ("mul", "div") or operand_type(scalar, types).name != "f32":
        return None
    half, others = _factors(scalar)
    for total in others if half == 0.5 else ():
        if (argument := _one_plus("erf", total)) is not None:
            scale, inside = _factors(argument)
            rest = [f for f in others if f is not total]
            if rest and abs(scale - math.sqrt(0.5)) < SAME and sorted(map(repr, inside)) == sorted(map(repr, rest)):
                return reduce(_product, rest)
    return None


def _by_sigmoid(scalar: Call, types: Sequence[DType]) -> Scalar | None:
    """``x * sigmoid(2 z)`` of ``0.5 * x * (1 + tanh(z))`` in f32, its factors in any order; None for other expressions."""
    if scalar.op not in ("mul", "div") or operand_type(scalar, types).name != "f32":
        return None
    half, others = _factors(scalar)
    for total in others if half == 0.5 else ():
        if (argument := _one_plus("tanh", total)) is not None:
            scale, inside = _factors(argument)
            twice = reduce(_product, inside, Literal(2.0 * scale, DTYPES["f32"]))
            return reduce(_product, (f for f in others if f is not total), Call("sigmoid", (twice,)))
    return None


def _one_plus(op: str, total: Scalar) -> Scalar | None:
    """The argument of ``1 + op(argument)``, exact or approximate, its terms in either order; None for other expressions."""
    if not isinstance(total, Call) or total.op != "add":
        return None
    one, e = total.args if isinstance(total.args[0], Literal) else reversed(total.args)
    known = isinstance(one, Literal) and one.value == 1.0 and isinstance(e, Call) and e.op in (op, APPROXIMATE[op])
    return e.args[0] if known and isinstance(e, Call) else None


def _product(a: Scalar, b: Scalar) -> Call:
    return Call("mul", (a, b))


def _factors(scalar: Scalar) -> tuple[float, list[Scalar]]:
    """The constant and the other factors of a product."""
    if isinstance(scalar, Literal):
        return float(scalar.value), []
    if isinstance(scalar, Call) and scalar.op == "div" and isinstance(by := scalar.args[1], Literal) and by.value:
        constant, others = _factors(scalar.args[0])
        return constant / float(by.value), others
    if not isinstance(scalar, Call) or scalar.op != "mul":
        return 1.0, [scalar]
    parts = [_factors(a) for a in scalar.args]
    return math.prod(c for c, _ in parts), [f for _, several in parts for f in several]
