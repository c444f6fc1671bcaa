"""The elements of arrays, buffers and registers while a launch runs: values as their type keeps them, and which are known."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...ir.coding import coded, decoded, encoded
from ...ir.dtype import DType
from .lanes import Numbers
from .watch import Marks

POISON: dict[str, float | int | bool] = {"float": np.nan, "int": -1, "bool": True}
"""What an element holds that nothing has written: all bits are set, as devices fill memory."""


def held_as(dtype: DType, exact: bool) -> np.dtype:
    """The NumPy type in which values of a type are computed."""
    return np.dtype(np.float64) if exact and dtype.kind == "float" else dtype.wide.numpy


def rounded(value: Any, dtype: DType, exact: bool, moved: bool = False) -> Numbers:
    """Values as an element of the type keeps them, or as it gets them from another one, in the type that they are computed in."""
    value, kind = np.asarray(value), held_as(dtype, exact)
    if exact and dtype.kind == "float":
        return value.astype(kind, copy=False)
    if coded(dtype):
        return decoded(encoded(value, dtype, moved), dtype)
    return value.astype(dtype.numpy, copy=False).astype(kind, copy=False)


def poison(dtype: DType, exact: bool) -> Numbers:
    """:data:`POISON`, as an element of the type keeps it."""
    return rounded(np.asarray(POISON[dtype.kind]), dtype, exact)


class Cells:
    """One array, once or once for each block, cluster or thread.

    Attributes
    ----------
    size : int
        Elements of one copy.
    data : ndarray
        The elements of all copies, one after the other.
    known : ndarray
        Which of them have been written.
    flight : ndarray or None
        The thread whose asynchronous copy or product is on its way there, or -1.
    lent : ndarray or None
        The thread whose product in flight may still read it, or -1.
    phase : ndarray or None
        The phase of an mbarrier in which a box that was copied there is counted, or -1.
    written, read : Marks or None
        Who wrote and read each last; None for what belongs to one thread.
    """

    def __init__(self, name: str, dtype: DType, shape: tuple[int, ...], copies: int = 1, exact: bool = False) -> None:
        self.name, self.dtype, self.shape, self.exact = name, dtype, shape, exact
        self.size = prod(shape)
        self.poisoned = poison(dtype, exact)
        self.data = np.full(self.size * copies, self.poisoned)
        self.known = np.zeros(self.data.shape, bool)
        self.flight: Numbers | None = None
        self.lent: Numbers | None = None
        self.phase: Numbers | None = None
        self.written: Marks | None = None
        self.read: Marks | None = None

    def watched(self, wanted: bool) -> None:
        """Nobody has touched the elements so far, or nobody cares."""
        self.written, self.read = (Marks(self.data.size), Marks(self.data.size)) if wanted else (None, None)

    def poison(self, where: Numbers) -> None:
        """Elements become unknown."""
        self.data[where] = self.poisoned
        self.known[where] = False

    def load(self, where: Numbers) -> Numbers:
        """The values of elements."""
        return self.data[where]

    def store(self, where: Numbers, value: Any, known: Any = True) -> None:
        """Elements become values that are rounded to their type."""
        self.data[where] = rounded(value, self.dtype, self.exact, moved=True)
        self.known[where] = known

    def add(self, where: Numbers, terms: Numbers) -> None:
        """Terms are added to elements, each to another one."""
        self.store(where, self.data[where] + terms)

    def element(self, flat: int) -> tuple[int, ...]:
        """The indices of an element of some copy."""
        return tuple(int(i) for i in np.unravel_index(flat % self.size, self.shape)) if self.shape else ()


class Kahan(Cells):
    """Sums with the rounding errors beside (``kahan_sum`` of the device library)."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.lost = np.zeros_like(self.data)

    def store(self, where: Numbers, value: Any, known: Any = True) -> None:
        """A sum begins."""
        super().store(where, value, known)
        self.lost[where] = 0

    def add(self, where: Numbers, terms: Numbers) -> None:
        """See :meth:`Cells.add`."""
        total = self.data[where]
        more = terms - self.lost[where]
        after = total + more
        self.lost[where] = (after - total) - more
        self.data[where] = after


class Pairwise(Cells):
    """Sums in pairs, pairs of pairs and so on (``pairwise_sum`` of the device library)."""

    def __init__(self, *args: Any, levels: int, **more: Any) -> None:
        super().__init__(*args, **more)
        self.part = np.zeros((levels, self.data.size), self.data.dtype)
        self.count = np.zeros(self.data.size, np.int64)

    def store(self, where: Numbers, value: Any, known: Any = True) -> None:
        """A sum begins."""
        super().store(where, value, known)
        self.count[where] = 0

    def load(self, where: Numbers) -> Numbers:
        """The sums of their parts."""
        total = np.zeros(where.shape, self.data.dtype)
        for level, part in enumerate(self.part):
            total = np.where(self.count[where] >> level & 1, part[where] + total, total)
        return self.data[where] + total

    def add(self, where: Numbers, terms: Numbers) -> None:
        """See :meth:`Cells.add`."""
        carried = np.ones(where.shape, bool)
        for level, part in enumerate(self.part):
            full = self.count[where] >> level & 1 == 1
            ends = carried & ~full
            part[where[ends]] = terms[ends]
            terms = np.where(carried & full, part[where] + terms, terms)
            carried &= full
        self.count[where] += 1
