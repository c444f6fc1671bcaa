"""A program with concrete sizes: arrays, statements with their exact domains, and the order they were written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from .dtype import DType
from .expr import Expr
from .hashing import cached_hash
from .scalar import Scalar
from .tree import Node


@dataclass(frozen=True)
class Array:
    """An array of the program.

    Attributes
    ----------
    name : str
    dtype : DType
    shape : tuple of int
        Row-major extents.  A temporary declared inside loops has one leading dimension per enclosing loop
        (each iteration has its own); `given` counts the dimensions the user wrote.
    role : str
        ``"in"``, ``"out"``, ``"inout"`` (parameters) or ``"temporary"``.
    pitch : int
        Elements in memory from one row to the next, of a temporary whose rows have unused ones behind them; 0 for none.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    role: str
    given: int = -1
    pitch: int = 0

    @property
    def stored(self) -> tuple[int, ...]:
        """Extents in memory: rows as long as the pitch."""
        return (*self.shape[:-1], self.pitch) if self.pitch else self.shape

    @property
    def size(self) -> int:
        """Elements in memory (1 for a scalar)."""
        return prod(self.stored)

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return self.size * self.dtype.bytes


@dataclass(frozen=True)
class Constraint:
    """``expr >= 0`` (or ``== 0``) over a statement's dimensions, with the words it was written in."""

    expr: Expr
    equality: bool = False
    text: str = ""

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether it holds at a point."""
        value = self.expr.evaluate(values)
        return value == 0 if self.equality else value >= 0


@dataclass(frozen=True)
class Indirect:
    """A data-dependent index: the value of another read; it may be anything in ``0 … extent - 1``."""

    value: Scalar


@dataclass(frozen=True)
class Access:
    """One use of an array by a statement.

    Attributes
    ----------
    array : str
    index : tuple of Expr or Indirect
        Over the statement's dimensions; empty for a scalar.
    kind : str
        ``"read"``, ``"write"`` or ``"update"`` (read-modify-write of a reduction).
    """

    array: str
    index: tuple[Expr | Indirect, ...]
    kind: str = "read"

    @property
    def affine(self) -> bool:
        """Whether no index is data-dependent."""
        return all(isinstance(e, Expr) for e in self.index)


@cached_hash
@dataclass(frozen=True)
class Statement:
    """``target = value`` or ``target (op)= value`` at every point of an integer domain.

    Attributes
    ----------
    name : str
        ``S0``, ``S1``, … in program order; copies and partial sums that a schedule adds have names of their own.
    dims : tuple of str
        Iteration dimensions, outermost first; names are unique within the program (``k``, ``k_2``, …).
    domain : tuple of Constraint
        All instances: loop bounds first, then conditions.
    target : Access
    value : Scalar
        Its :class:`Read` nodes index `reads`.
    reads : tuple of Access
        Includes the reads inside :class:`Indirect` indices; an update's own target is *not* listed here.
    update : str or None
        Name of the reduction, or None for a plain write.
    inside : tuple of Constraint
        If not empty: where one does not hold the value is `fill` instead (and the reads do not happen).
    fill : float
    origin : str
        ``"program"``, or what a schedule added it for: ``"copy"``, ``"init"``, ``"combine"``.
    line : int
        1-based line in the user's file, 0 if none.
    text : str
        The user's text.
    rounding : float
        Relative rounding error of each of its additions, where what computes them is less exact than their type; else 0.
    """

    name: str
    dims: tuple[str, ...]
    domain: tuple[Constraint, ...]
    target: Access
    value: Scalar
    reads: tuple[Access, ...] = ()
    update: str | None = None
    inside: tuple[Constraint, ...] = ()
    fill: float | int | bool = 0
    origin: str = "program"
    line: int = 0
    text: str = ""
    rounding: float = 0.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The reads in order, then the target: slot ``len(reads)`` (also addressed as ``-1``) is the target."""
        return (*self.reads, self.target)


@cached_hash
@dataclass(frozen=True)
class Program:
    """A loop nest with concrete sizes.

    Attributes
    ----------
    name : str
    arrays : tuple of Array
        Parameters in the order of the signature, then temporaries.
    statements : tuple of Statement
        In program order.
    body : tuple of Node
        The loops as written (all roles ``seq``), whose leaves are the statements.
    sizes : tuple of (str, int)
    source : str
        The user's text; `file` and `first_line` say where it stands.
    helpers : str
        The text of the functions that it calls, which stand written out in the statements.
    """

    name: str
    arrays: tuple[Array, ...]
    statements: tuple[Statement, ...]
    body: tuple[Node, ...]
    sizes: tuple[tuple[str, int], ...] = ()
    source: str = ""
    file: str = ""
    first_line: int = 0
    helpers: str = ""

    @cached_property
    def array_of(self) -> dict[str, Array]:
        """Every array by name."""
        return {a.name: a for a in self.arrays}

    @cached_property
    def statement_of(self) -> dict[str, Statement]:
        """Every statement by name."""
        return {s.name: s for s in self.statements}

    @property
    def parameters(self) -> tuple[Array, ...]:
        """The arrays that a caller passes, in the order of the signature."""
        return tuple(a for a in self.arrays if a.role != "temporary")

    @property
    def temporaries(self) -> tuple[Array, ...]:
        """The arrays that only the program uses."""
        return tuple(a for a in self.arrays if a.role == "temporary")
