"""Symbolic sizes, and arithmetic on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ProgramError, shown, spoken


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


@spoken(ProgramError, 'all names in one string: M, N = ex.sizes("M N")')
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
        raise ProgramError(f"sizes are named in a string, not in {shown(names)}", hint='M, N = ex.sizes("M N")')
    parts = names.replace(",", " ").split()
    bad = [p for p in parts if not p.isidentifier() or not p.isascii()]
    if not parts or bad or len(set(parts)) != len(parts):
        raise ProgramError(
            f"sizes({shown(names)}) does not name sizes",
            why="each name must be an ASCII identifier and stand once",
            hint='M, N = ex.sizes("M N")',
        )
    return Size(parts[0]) if len(parts) == 1 else tuple(Size(p) for p in parts)
