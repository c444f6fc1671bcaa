"""What the nodes of the kernel IR are made of: elements of memory, registers, and what a load gives."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.dtype import DType
from ..ir.expr import Expr
from ..ir.program import Indirect
from .conditions import Condition
from .sites import Store

Number = float | int | bool
AnyOf = tuple[tuple[Condition, ...], ...]
"""One of several conjunctions holds."""


@dataclass(frozen=True)
class Ref:
    """An element in memory or in a buffer of the plan, or `lanes` neighbours of which it is the first.

    Attributes
    ----------
    store : Store
    index : tuple of Expr or Indirect
        One for each axis; just the row-major offset where it is `flat`.
    flat : bool
    lanes : int
    of_lane : Expr or None
        The lane of the warp whose register it is, where that may be another one: it is read by a shuffle.
    """

    store: Store
    index: tuple[Expr | Indirect, ...]
    flat: bool = False
    lanes: int = 1
    of_lane: Expr | None = None


@dataclass(frozen=True)
class Local:
    """Registers of a thread that a pass made: values in flight, or the lanes of a vector.

    Attributes
    ----------
    name : str
    dtype : DType
    shape : tuple of int
    lanes : int
        Elements of a vector; 1 is a scalar.
    packed : bool
        Whether the lanes are kept as they lie in memory, several to a register.
    wide : bool
        Whether it has the element's compute type.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...] = ()
    lanes: int = 1
    packed: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Held:
    """An element of a local: all lanes of it, or one."""

    local: Local
    index: tuple[Expr, ...] = ()
    lane: Expr | None = None


Operand = Ref | Held


@dataclass(frozen=True)
class Get:
    """What one load gives.

    Attributes
    ----------
    ref : Ref
    packed : bool
        As :attr:`Local.packed`.
    within : bool
        Lanes beyond the array's end are not read; they are `outside`.
    count : Expr or None
        Only the first so many lanes are read; the others are `outside`.
    edge : AnyOf or None
        Where lanes can be missing; elsewhere the whole vector is read without asking.  None: not known, asked everywhere.
    outside : Number
    when : tuple of tuple of Condition
        Where anything is read, one condition inside of the other; elsewhere it is `otherwise`.
    otherwise : Number
    """

    ref: Ref
    packed: bool = False
    within: bool = False
    count: Expr | None = None
    edge: AnyOf | None = None
    outside: Number = 0
    when: tuple[tuple[Condition, ...], ...] = ()
    otherwise: Number = 0
