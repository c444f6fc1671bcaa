"""The words of the input language but for operations (:mod:`.words`): element types, sizes and temporaries.

They exist for the reader, the linter and the type checker.  A decorated function is parsed and never run, so none of
these does anything by itself: used outside a program they say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import ProgramError, outspoken, spoken
from ..ir.dtype import DTYPES, DType

inf: float = float("inf")
"""Positive infinity, the usual start of a minimum; ``-inf`` starts a maximum."""


@dataclass(frozen=True)
class ArrayType:
    """An element type with a shape: the value of ``f32[M, N]``.  The shape is checked where the program is defined."""

    dtype: DType
    shape: tuple[Any, ...]
    inout: bool = False

    def spelled(self, prefix: str = "") -> str:
        """The type as Python, each word of the language behind a prefix: ``ex.inout[ex.f32[M, N]]``."""
        name = f"{prefix}{'bool_' if self.dtype.name == 'bool' else self.dtype.name}"
        plain = f"{name}[{', '.join(map(str, self.shape))}]" if self.shape else name
        return f"{prefix}inout[{plain}]" if self.inout else plain

    def __str__(self) -> str:
        return self.spelled()


def outside(*_: Any, word: str = "an element type", instead: str = "") -> Any:
    """Refuse a word of the language where there is no program; `instead` is what else could have been meant."""
    raise ProgramError(
        f"{word} has no value outside a program",
        why="a program is parsed, never executed",
        hint="; or ".join(filter(None, (instead, "write this inside a function decorated with @ex.program"))),
    )


class Element:
    """Base of the element types.  ``f32[M, N]`` annotates an array, ``f32`` alone a scalar parameter."""

    dtype: ClassVar[DType]

    def __init_subclass__(cls, dtype: str) -> None:
        cls.dtype = DTYPES[dtype]

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Refused: an element type has no values of its own."""
        return outside(word=cls.__name__, instead=f"{cls.__name__}[M, N] declares an array")

    def __class_getitem__(cls, shape: Any) -> ArrayType:
        return ArrayType(cls.dtype, shape if isinstance(shape, tuple) else (shape,))

    def __getitem__(self, index: Any) -> Any:
        return outside()

    def __setitem__(self, index: Any, value: Any) -> None:
        outside()

    # Declared so that type checkers accept arithmetic on scalar parameters.
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = outside
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __and__ = __or__ = outside
    __lt__ = __le__ = __gt__ = __ge__ = outside
    __xor__ = __rxor__ = __lshift__ = __rshift__ = __rlshift__ = __rrshift__ = __invert__ = outside


@outspoken(ProgramError)
class inout:
    """An array that the program changes: ``y: ex.inout[ex.f32[M, N]]``.

    What the caller gives stays wherever the program writes nothing.  An array that is read before it is written is in-out
    without this word.
    """

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Refused: it has no values of its own."""
        return outside(word="inout", instead="inout[f32[M, N]] declares an array")

    def __class_getitem__(cls, array: Any) -> Any:
        if isinstance(array, type) and issubclass(array, Element) and array is not Element:
            return ArrayType(array.dtype, (), True)
        return ArrayType(array.dtype, array.shape, True) if isinstance(array, ArrayType) else array

    __getitem__, __setitem__ = Element.__getitem__, Element.__setitem__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = outside
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = outside


class f16(Element, dtype="f16"):
    """IEEE 754 half precision; widened to `f32` in expressions, rounded when stored."""


class bf16(Element, dtype="bf16"):
    """bfloat16; widened to `f32` in expressions, rounded when stored."""


class f8e4m3(Element, dtype="f8e4m3"):
    """8-bit float with 4 bits of exponent, up to 448 and without infinities; widened to `f32` in expressions.

    It is rounded to nearest when stored, and what is too large becomes the largest number.
    """


class f8e5m2(Element, dtype="f8e5m2"):
    """8-bit float with 5 bits of exponent, up to 57344; widened to `f32` in expressions.

    It is rounded to nearest when stored, and what is too large becomes the largest finite number.
    """


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


class u8(Element, dtype="u8"):
    """8-bit unsigned integer; widened to `i32` in expressions."""


class u16(Element, dtype="u16"):
    """16-bit unsigned integer; widened to `i32` in expressions."""


class u32(Element, dtype="u32"):
    """32-bit unsigned integer; its sums and products wrap."""


class u64(Element, dtype="u64"):
    """64-bit unsigned integer; its sums and products wrap."""


class bool_(Element, dtype="bool"):
    """Truth value, one byte."""


@spoken(ProgramError)
def local(dtype: Any, *shape: Any) -> Any:
    """Declare a temporary: ``peak = ex.local(ex.f32)``, ``row = ex.local(ex.f32, N)``, ``tile = ex.local(ex.f32, (M, N))``.

    Every iteration of the loops around the declaration has a temporary of its own; a schedule decides where it is
    stored.  It must be written before it is read.

    Parameters
    ----------
    dtype : element type
    *shape : int, size, or one tuple or list of them
        No extents for a scalar.
    """
    return outside(word="local")


@spoken(ProgramError)
def cast(value: Any, dtype: Any) -> Any:
    """Convert `value` to an element type; floats to integers truncate towards zero."""
    return outside(word="cast")


@spoken(ProgramError)
def argmax(elements: Any) -> Any:
    """Index of the first largest element: ``y[i] = ex.argmax(x[i, k] for k in range(N))``, on a line of its own.

    As `numpy.argmax`: of equal elements the first, and the first NaN if there is one.  The index is the value of the
    loop variable.  An empty range is refused.
    """
    return outside(word="argmax")


@spoken(ProgramError)
def argmin(elements: Any) -> Any:
    """Index of the first smallest element; as :func:`argmax`."""
    return outside(word="argmin")
