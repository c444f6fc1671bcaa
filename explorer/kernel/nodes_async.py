"""Nodes of the kernel IR that are asynchronous: copies that land later, their groups, and waits for these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..ir.dtype import DTYPES
from ..ir.expr import Expr, const
from ..ir.tree import Loop
from .conditions import Condition
from .operands import Ref
from .sites import Site, Store

# -- cp.async: each thread waits for its own copies ------------------------------------------------------------------------


@dataclass(frozen=True)
class Copy:
    """An asynchronous copy of `nbytes`: lanes `inside`, from all `begins` to before all `ends`, are read, others are zeros."""

    site: Site
    to: Ref
    source: Ref
    nbytes: int
    lanes: int
    inside: tuple[Condition, ...] = ()
    begins: tuple[Expr, ...] = ()
    ends: tuple[Expr, ...] = ()
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Commit:
    """The asynchronous copies since the last commit are a group."""

    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wait:
    """Until at most `pending` groups are under way."""

    pending: int
    ids: tuple[str, ...] = ()


# -- products in flight: a warpgroup waits for its own ---------------------------------------------------------------------


@dataclass(frozen=True)
class WaitProducts:
    """Until at most `pending` of the warpgroup's products are in flight, which add into some `accumulators`.

    With `fenced` the compiler cannot move reads of them in front of it (:mod:`~explorer.kernel.passes.fence_reads`).
    """

    pending: int
    accumulators: tuple[Store, ...]
    ids: tuple[str, ...] = ()
    fenced: bool = False


# -- bulk copies: one thread asks, all threads wait --------------------------------------------------------------------------


@dataclass(frozen=True)
class Mbarriers:
    """Objects in shared memory that groups take in turn: all arrivals, and all bytes of bulk copies, complete a phase.

    In each phase `arrivals` come from each of `blocks`, of a cluster.
    """

    name: str
    count: int
    arrivals: int = 1
    blocks: int = 1

    @property
    def store(self) -> Store:
        """The shared array that they are."""
        return Store(self.name, DTYPES["u64"], (self.count,), "shared")


@dataclass(frozen=True)
class TensorMap:
    """What the host tells the hardware of an array, as a parameter of the kernel.

    Attributes
    ----------
    name : str
        C identifier of the parameter.
    store : Store
        The array.
    axes : tuple of tuple of int
        Its dimensions as the hardware sees it: the extents of the axes that each joins.
    box : tuple of int
        Elements that one copy moves, along each dimension.
    steps : tuple of int
        From one of them to the next, in elements of the array.
    swizzle : int
        As :attr:`~explorer.ir.plan.Buffer.swizzle`.
    """

    name: str
    store: Store
    axes: tuple[tuple[int, ...], ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the array as the hardware sees it."""
        return tuple(map(prod, self.axes))

    @property
    def stored(self) -> tuple[int, ...]:
        """The same in memory: rows as long as the array's pitch."""
        pitch = self.store.array.pitch if self.store.array else 0
        return (*self.shape[:-1], pitch) if pitch else self.shape

    @property
    def array(self) -> str:
        """The plan's name of it."""
        assert self.store.array is not None
        return self.store.array.name


@dataclass(frozen=True)
class Mates:
    """The blocks of a cluster that bring the parts of one box to each other.

    Attributes
    ----------
    count : int
        Parts, along one dimension of the box.
    dimension : int
    place : Expr
        The part that this block brings.
    apart : int
        From the rank in the cluster of one of them to the next.
    """

    count: int
    dimension: int
    place: Expr
    apart: int


@dataclass(frozen=True)
class BulkCopy:
    """A box of an array is copied to shared memory, with zeros for what lies beyond the array.

    With `mates` the map's box is a part of it; every one of them brings one, and gets all.

    Attributes
    ----------
    site : Site
    map : TensorMap
    first : tuple of Expr
        The first element of the box, which may lie beyond the array.
    to : Ref
        Where that goes; the others follow it row by row, in the order of the array.
    loops : tuple of Loop
        The plan's over the elements, outermost first: one for each dimension of the box with more than one.
    counted : Mbarriers
    slot : Expr
        The one on which the bytes are counted.
    """

    site: Site
    map: TensorMap
    first: tuple[Expr, ...]
    to: Ref
    loops: tuple[Loop, ...]
    counted: Mbarriers
    slot: Expr
    ids: tuple[str, ...] = ()
    mates: Mates | None = None

    @property
    def box(self) -> tuple[int, ...]:
        """Elements along each dimension, those that mates bring included."""
        if self.mates is None:
            return self.map.box
        return tuple(n * self.mates.count if d == self.mates.dimension else n for d, n in enumerate(self.map.box))


@dataclass(frozen=True)
class BulkStore:
    """A box in shared memory is stored to an array, but for what lies beyond the array; the engine reads it meanwhile.

    Attributes
    ----------
    site : Site
    map : TensorMap
    first : tuple of Expr
        The first element of the box in the array, which may lie beyond it.
    source : Ref
        Where that comes from; the others follow it row by row, in the order of the array.
    loops : tuple of Loop
        The plan's over the elements, outermost first: one for each dimension of the box with more than one.
    """

    site: Site
    map: TensorMap
    first: tuple[Expr, ...]
    source: Ref
    loops: tuple[Loop, ...]
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class WaitStores:
    """Until the engine has read all that the thread's bulk stores send."""

    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Begin:
    """The mbarriers are made ready, each in its first phase."""

    mbarriers: Mbarriers
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arrive:
    """The bulk copies since the last arrival are a group: the phase of the mbarrier is complete when all of them have landed."""

    mbarriers: Mbarriers
    slot: Expr
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Await:
    """Until the mbarrier's phase of this parity is complete."""

    mbarriers: Mbarriers
    slot: Expr
    parity: Expr
    ids: tuple[str, ...] = ()


# -- roles: a producer asks for copies, consumers release their slots -----------------------------------------------------------


@dataclass(frozen=True)
class Acquire:
    """The producer waits until the mbarrier's phase of this parity is complete: the consumers have released a slot."""

    mbarriers: Mbarriers
    slot: Expr
    parity: Expr
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drain:
    """The producer waits, before it ends, until each slot has been released for the last time, of `releases` in all."""

    mbarriers: Mbarriers
    releases: int
    ids: tuple[str, ...] = ()

    @cached_property
    def acquires(self) -> tuple[Acquire, ...]:
        """The waits that it is."""
        count = self.mbarriers.count
        return tuple(Acquire(self.mbarriers, const(n % count), const(n // count % 2), self.ids)
                     for n in range(max(0, self.releases - count), self.releases))


@dataclass(frozen=True)
class AwaitTurn:
    """A consumers' warpgroup, one of `groups`, waits until the one before it has passed; the first one not where `begun`."""

    groups: int
    begun: bool
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class PassTurn:
    """A warpgroup of the consumers, one of `groups`, lets the next one go on; the last one not where `over`."""

    groups: int
    over: bool
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Release:
    """The threads of each warp of the consumers have read a slot: one arrival for each warp."""

    mbarriers: Mbarriers
    slot: Expr
    ids: tuple[str, ...] = ()

