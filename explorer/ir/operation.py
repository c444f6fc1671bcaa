"""What a row of the table of scalar operations says, and what it must say."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from .dtype import DTYPES, DType

Interval = tuple[int, int]
"""The integers between two ends, both included."""
Size = tuple[float, float]
"""A bound of a value's magnitude, and one over a power of two that it is a multiple of (infinity: it may have been rounded)."""


def unknown(*_: Interval | None) -> Interval | None:
    """The values of a result of which nothing is known."""
    return None


def rounded(*parts: Size) -> Size:
    """The size of a result that is about as large as the first operand, and is rounded."""
    return parts[0][0], inf


@dataclass(frozen=True)
class Operation:
    """One scalar operation: all that the package knows about it.

    C texts have ``{0} {1} {2}`` for the arguments.  Spellings are looked up by the compute type (``"f32"``), then by its kind
    (``"float"``), then under ``"*"``.

    Attributes
    ----------
    name : str
        What users write (``ex.exp``), or the name of a Python operator (``add``).
    arguments : str
        Their names, one for each.
    numpy : callable
        Its meaning, on NumPy arrays of the compute type; also on float64 in place of f32.
    cuda : mapping of str to str
        Its spelling in CUDA.  Types without one are not taken; a call's text is a primary expression.
    bound : str
        C text of the bound of the result's error, from the values ``{v0}``, the bounds ``{e0}`` of the operands, and the result's
        own value ``{t}``: the sum of each derivative's magnitude times that bound, or where there is none what else may happen.
        ``{tiny}`` is the smallest normal number of the compute type.  Helpers stand in kernel/reference/error_bound.py.
    c : mapping of str to str
        Its spelling in the float64 reference where that is not the float64 (or ``"*"``) one of `cuda`; a primary expression.
    ulp : float
        The largest error of a float result on a device, in units in the last place: 0.5 is correctly rounded, 0 is exact.
    exact_at : str
        C condition on ``{v0}`` where the result is exact even so (results of 0, infinities and NaN always are).
    flops : int
        Cost counted by the roofline: by convention one for a call.
    special : bool
        Whether it is a call of several instructions, most of them of the special-function units, which work beside the others.
    fast : str
        The row of an approximate form in f32 (see `approximate`).
    result : str
        ``"same"`` (the common type of the arguments), ``"float"`` (the same, but integers become f32), or a type's name.
    takes : tuple of str
        Types of the arguments that are not of the common type, by position; ``""`` for the others.
    keeps_bool : bool
        Whether truth values stay what they are, instead of counting as i32.
    precedence : int
        Of the spelling in CUDA: 100 for a call, C's order (multiplication 13, addition 12, …) for an operator.
    python, binds : str, int
        How it is written in Python where it is an operator there, and its precedence among Python's if that is not C's.
    help : str
        The docstring of ``ex.<name>``; without one, users do not write the name.
    same : tuple of callable
        Functions of Python, math and NumPy that mean the same.
    many : bool
        Whether more arguments than two are a chain of it.
    fold : callable, optional
        Its meaning on Python's numbers, for arithmetic on constants.
    leaves_i32 : bool
        Whether the exact result on two i32 (u32) may be no i32 (u32) and wraps.
    keeps_finite : bool
        Whether the result is finite where the arguments are (overflow aside).
    linear : tuple of int
        Arguments that the result follows in a straight line, so that a peak in one is a peak of the result.
    positive : tuple of int
        Arguments that have to be positive (or not near 0) for the result to be a number of a plain size.
    signed : bool
        Whether the sign of the result depends on the arguments' signs.
    interval : callable
        Integers that the result lies between, from those of the arguments (None: not known).
    size : callable
        The result's magnitude and fineness, from those of the arguments.
    """

    name: str
    arguments: str
    numpy: Callable[..., Any]
    cuda: Mapping[str, str]
    bound: str
    c: Mapping[str, str] = field(default_factory=dict[str, str])
    ulp: float = 0.5
    exact_at: str = ""
    flops: int = 1
    special: bool = False
    fast: str = ""
    result: str = "same"
    takes: tuple[str, ...] = ()
    keeps_bool: bool = False
    precedence: int = 100
    python: str = ""
    binds: int = 0
    help: str = ""
    same: tuple[Callable[..., Any], ...] = ()
    many: bool = False
    fold: Callable[..., Any] | None = None
    leaves_i32: bool = False
    keeps_finite: bool = False
    linear: tuple[int, ...] = ()
    positive: tuple[int, ...] = ()
    signed: bool = True
    interval: Callable[..., Interval | None] = unknown
    size: Callable[..., Size] = rounded

    def __post_init__(self) -> None:
        if not self.arguments or not self.cuda:
            raise ValueError(f"the operation {self.name} lacks its {'CUDA spelling' if self.arguments else 'arguments'}")
        allowed = {f"{letter}{n}" for letter in "ve" for n in range(self.arity)} | {"t", "tiny"}
        for what, texts, places in (("bound", [self.bound], allowed), ("exact_at", [self.exact_at], allowed),
                                    ("cuda", self.cuda.values(), set(map(str, range(self.arity)))),
                                    ("c", self.c.values(), set(map(str, range(self.arity))))):
            for text in texts:
                if odd := {name for _, name, _, _ in string.Formatter().parse(text) if name is not None} - places:
                    raise ValueError(f"the {what} of the operation {self.name} names {{{min(odd)}}}, which is no argument of it")
        if not self.bound:
            raise ValueError(f"the operation {self.name} lacks the rule for its error bound")
        for dtype in filter(self.accepts, COMPUTED):
            if not self.in_c(dtype):
                raise ValueError(f"the operation {self.name} lacks its spelling for {dtype} in the float64 reference")
        if self.takes and len(self.takes) != self.arity:
            raise ValueError(f"the operation {self.name} says the types of {len(self.takes)} of its {self.arity} arguments")
        if self.precedence < 100 and not (self.python or "?" in self.cuda.get("*", "") or self.arity == 1):
            raise ValueError(f"the operation {self.name} is an operator in CUDA and lacks its Python spelling")

    @property
    def arity(self) -> int:
        """The number of its arguments."""
        return len(self.arguments.split())

    @property
    def fixed(self) -> tuple[str, ...]:
        """The type of each argument, ``""`` for those that are of the common type."""
        return self.takes or ("",) * self.arity

    @property
    def correctly_rounded(self) -> bool:
        """Whether a float result is the number of its type nearest to the exact one (IEEE 754)."""
        return self.ulp == 0.5

    @property
    def roundings(self) -> float:
        """Relative error of a float result in units u: an ulp is at most 2 u."""
        return 2 * self.ulp

    def accepts(self, dtype: DType) -> bool:
        """Whether the common type of its arguments may be this compute type."""
        return bool(self.spelled(dtype)) and (dtype.kind == "float" or self.result != "float")

    def spelled(self, dtype: DType) -> str:
        """CUDA for arguments of a compute type, or nothing."""
        return _of(self.cuda, dtype)

    def in_c(self, dtype: DType) -> tuple[str, int]:
        """C text and precedence in the float64 reference."""
        if own := _of(self.c, dtype):
            return own, 100
        return _of(self.cuda, DTYPES["f64"] if dtype.kind == "float" else dtype), self.precedence


COMPUTED = tuple(d for d in DTYPES.values() if d == d.wide)
"""The types that expressions are evaluated in."""


def _of(texts: Mapping[str, str], dtype: DType) -> str:
    return texts.get(dtype.name) or texts.get(dtype.kind) or texts.get("*") or ""
