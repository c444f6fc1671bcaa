"""The words of the input language: element types, sizes, temporaries and operations.

They exist for the reader, the linter and the type checker.  A decorated function is parsed and never run, so none of
these does anything by itself: used outside a program they say so.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import ProgramError
from ..ir.dtype import DTYPES, DType

inf: float = float("inf")
"""Positive infinity, the usual start of a minimum; ``-inf`` starts a maximum."""


class SizeValue(ABC):
    """An integer that becomes known at ``.at(...)``: a size, or arithmetic on sizes."""

    @abstractmethod
    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The integer for given sizes; raises KeyError for a missing one and ZeroDivisionError."""

    @abstractmethod
    def names(self) -> Iterable[str]:
        """The sizes it depends on, in order of appearance."""

    def __add__(self, other: Any) -> SizeValue:
        return _combine("+", self, other)

    def __radd__(self, other: Any) -> SizeValue:
        return _combine("+", other, self)

    def __sub__(self, other: Any) -> SizeValue:
        return _combine("-", self, other)

    def __rsub__(self, other: Any) -> SizeValue:
        return _combine("-", other, self)

    def __mul__(self, other: Any) -> SizeValue:
        return _combine("*", self, other)

    def __rmul__(self, other: Any) -> SizeValue:
        return _combine("*", other, self)

    def __floordiv__(self, other: Any) -> SizeValue:
        return _combine("//", self, other)

    def __rfloordiv__(self, other: Any) -> SizeValue:
        return _combine("//", other, self)

    def __mod__(self, other: Any) -> SizeValue:
        return _combine("%", self, other)

    def __rmod__(self, other: Any) -> SizeValue:
        return _combine("%", other, self)

    def __neg__(self) -> SizeValue:
        return _combine("-", 0, self)

    def __index__(self) -> int:
        raise ProgramError(
            f"the size {self} has no value yet",
            why="sizes are given when a program is scheduled",
            hint="use it inside an @ex.program function, or a Python integer here",
        )


@dataclass(frozen=True)
class Size(SizeValue):
    """A named size, made by :func:`sizes`."""

    name: str

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The integer for given sizes."""
        return sizes[self.name]

    def names(self) -> Iterable[str]:
        """The sizes it depends on."""
        return (self.name,)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class SizeSum(SizeValue):
    """``left op right`` on sizes and integers."""

    op: str
    left: SizeValue | int
    right: SizeValue | int

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The integer for given sizes."""
        a, b = (p.evaluate(sizes) if isinstance(p, SizeValue) else p for p in (self.left, self.right))
        return _ARITHMETIC[self.op](a, b)

    def names(self) -> Iterable[str]:
        """The sizes it depends on."""
        for part in (self.left, self.right):
            if isinstance(part, SizeValue):
                yield from part.names()

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


def _combine(op: str, left: Any, right: Any) -> Any:
    for part in (left, right):
        if not isinstance(part, (SizeValue, int)) or isinstance(part, bool):
            return NotImplemented
    return SizeSum(op, left, right)


def sizes(names: str) -> Any:
    """Declare symbolic sizes, which become integers at ``.at(...)`` or ``.schedule(...)``.

    Parameters
    ----------
    names : str
        Identifiers separated by spaces or commas.

    Returns
    -------
    Size or tuple of Size
        One size for one name, a tuple for several.

    Raises
    ------
    ProgramError
        For a name that is no identifier, is repeated, or if there is none.

    Examples
    --------
    >>> M, N = sizes("M N")
    >>> print(M * N + 1)
    ((M * N) + 1)
    """
    if not isinstance(names, str):
        raise ProgramError(f"sizes are named in a string, not in {names!r}", hint='M, N = ex.sizes("M N")')
    parts = names.replace(",", " ").split()
    bad = [p for p in parts if not p.isidentifier() or not p.isascii()]
    if not parts or bad or len(set(parts)) != len(parts):
        raise ProgramError(
            f"sizes({names!r}) does not name sizes",
            why="each name must be an ASCII identifier and stand once",
            hint='M, N = ex.sizes("M N")',
        )
    return Size(parts[0]) if len(parts) == 1 else tuple(Size(p) for p in parts)


@dataclass(frozen=True)
class ArrayType:
    """An element type with a shape: the value of ``f32[M, N]``.  The shape is checked where the program is defined."""

    dtype: DType
    shape: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


def _outside(*_: Any, word: str = "an element type") -> Any:
    raise ProgramError(
        f"{word} has no value outside a program",
        why="a program is parsed, never executed",
        hint="write this inside a function decorated with @ex.program",
    )


class Element:
    """Base of the element types.  ``f32[M, N]`` annotates an array, ``f32`` alone a scalar parameter."""

    dtype: ClassVar[DType]

    def __init_subclass__(cls, dtype: str) -> None:
        cls.dtype = DTYPES[dtype]

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Refused: an element type has no values of its own."""
        return _outside(word=cls.__name__)

    def __class_getitem__(cls, shape: Any) -> ArrayType:
        return ArrayType(cls.dtype, shape if isinstance(shape, tuple) else (shape,))

    def __getitem__(self, index: Any) -> Any:
        return _outside()

    def __setitem__(self, index: Any, value: Any) -> None:
        _outside()

    # Declared so that type checkers accept arithmetic on scalar parameters.
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _outside
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __and__ = __or__ = _outside
    __lt__ = __le__ = __gt__ = __ge__ = _outside


class f16(Element, dtype="f16"):
    """IEEE 754 half precision; widened to `f32` in expressions, rounded when stored."""


class bf16(Element, dtype="bf16"):
    """bfloat16; widened to `f32` in expressions, rounded when stored."""


class f32(Element, dtype="f32"):
    """IEEE 754 single precision."""


class f64(Element, dtype="f64"):
    """IEEE 754 double precision."""


class i8(Element, dtype="i8"):
    """8-bit signed integer; widened to `i32` in expressions."""


class i32(Element, dtype="i32"):
    """32-bit signed integer."""


class i64(Element, dtype="i64"):
    """64-bit signed integer."""


class bool_(Element, dtype="bool"):
    """Truth value, one byte."""


def local(dtype: Any, *shape: Any) -> Any:
    """Declare a temporary: ``peak = ex.local(ex.f32)``, ``row = ex.local(ex.f32, N)``.

    Every iteration of the loops around the declaration has a temporary of its own; a schedule decides where it is
    stored.  It must be written before it is read.

    Parameters
    ----------
    dtype : element type
    *shape : int or size
        No extents for a scalar.
    """
    return _outside(word="local")


def where(condition: Any, value: Any, other: Any) -> Any:
    """`value` where `condition` holds, `other` elsewhere; the same as ``value if condition else other``."""
    return _outside(word="where")


def cast(value: Any, dtype: Any) -> Any:
    """Convert `value` to an element type; floats to integers truncate towards zero."""
    return _outside(word="cast")


def exp(x: Any) -> Any:
    """E to the power `x`."""
    return _outside(word="exp")


def log(x: Any) -> Any:
    """Natural logarithm."""
    return _outside(word="log")


def sqrt(x: Any) -> Any:
    """Square root."""
    return _outside(word="sqrt")


def rsqrt(x: Any) -> Any:
    """One over the square root."""
    return _outside(word="rsqrt")


def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""
    return _outside(word="tanh")


def erf(x: Any) -> Any:
    """Error function."""
    return _outside(word="erf")


def abs(x: Any) -> Any:
    """Absolute value; Python's `abs` means the same."""
    return _outside(word="abs")


def min(*values: Any) -> Any:
    """Smallest value; Python's `min` means the same."""
    return _outside(word="min")


def max(*values: Any) -> Any:
    """Largest value; Python's `max` means the same."""
    return _outside(word="max")


def pow(base: Any, exponent: Any) -> Any:
    """`base` to the power `exponent`; ``base ** exponent`` means the same."""
    return _outside(word="pow")


def argmax(elements: Any) -> Any:
    """Index of the first largest element: ``y[i] = ex.argmax(x[i, k] for k in range(N))``, on a line of its own.

    As `numpy.argmax`: of equal elements the first, and the first NaN if there is one.  The index is the value of the
    loop variable.  An empty range is refused.
    """
    return _outside(word="argmax")


def argmin(elements: Any) -> Any:
    """Index of the first smallest element; as :func:`argmax`."""
    return _outside(word="argmin")


def argmax_key(value: Any, index: Any) -> Any:
    """A 64-bit integer of which the largest is that of the first largest `value`: what :func:`argmax` is made of.

    ``key = max(key, ex.argmax_key(x[i, k], k))`` starts at ``-2**63``; ``ex.argmax_index(key)`` is the index.
    """
    return _outside(word="argmax_key")


def argmin_key(value: Any, index: Any) -> Any:
    """A 64-bit integer of which the smallest is that of the first smallest `value`; starts at ``2**63 - 1``."""
    return _outside(word="argmin_key")


def argmax_index(key: Any) -> Any:
    """The index in the largest :func:`argmax_key`; -1 if there was none."""
    return _outside(word="argmax_index")


def argmin_index(key: Any) -> Any:
    """The index in the smallest :func:`argmin_key`; -1 if there was none."""
    return _outside(word="argmin_index")


OPERATION_OF: dict[Any, str] = {
    exp: "exp",
    log: "log",
    sqrt: "sqrt",
    rsqrt: "rsqrt",
    tanh: "tanh",
    erf: "erf",
    where: "where",
    abs: "abs",
    min: "min",
    max: "max",
    pow: "pow",
    argmax_key: "argmax_key",
    argmin_key: "argmin_key",
    argmax_index: "argmax_index",
    argmin_index: "argmin_index",
    builtins.abs: "abs",
    builtins.min: "min",
    builtins.max: "max",
    builtins.pow: "pow",
}
"""The operation each callable stands for, by the callable itself, so that any import spelling works."""
