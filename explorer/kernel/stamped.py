"""An instrumented copy of a plan's kernels: chosen threads note when they begin to do what (:mod:`.passes.stamps`).

For each role of a kernel there are logs in an array of global memory: one of the producer's thread, one of the first thread of
each warpgroup of the consumers, or, where no warpgroup multiplies, of the first thread of the block.  A log has a head, and room
for as many stamps as its thread can make, at most :data:`MOST`; further ones are counted, and not kept.

Everything else is the text that :func:`~explorer.kernel.emit.emit` makes: the proof is of the same nodes, and what the kernels
compute is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ..errors import DeviceError, shown
from ..ir.dtype import DTYPES
from ..ir.instructions import Wgmma
from ..ir.plan import Plan
from .nodes import CloseLog, Multiply, Node, OpenLog
from .passes.stamps import Mark, Stamping, without
from .roles import Roles
from .sites import Lowered, Store
from .traverse import walk

STAMPS = "stamps"
"""Kind of such an array among a launch's storage."""
MOST = 1 << 15
"""Stamps that a log keeps at most: half a megabyte."""
MOST_BLOCKS = 8
HEAD = 3
"""Pairs of words before the stamps (``stamps.cuh``)."""
WARPGROUP = 128
Apiece = tuple[Node | Roles, ...]


@dataclass(frozen=True)
class Log:
    """Who keeps a log.

    Attributes
    ----------
    kernel : str
    role : str
        Whose marks it has: ``"producer"``, ``"consumers"``, or ``"threads"`` where a kernel has no roles.
    block, thread : int
        Numbers in the grid and in the block.
    group : int
        Which of the role's warpgroups; -1 where the role has one log.
    """

    kernel: str
    role: str
    block: int
    thread: int
    group: int = -1

    @property
    def name(self) -> str:
        """The role, and which of its warpgroups."""
        return self.role if self.group < 0 else f"{self.role} {self.group}"


@dataclass(frozen=True)
class Logs:
    """The array of a launch.

    Attributes
    ----------
    name : str
        The module's buffer, and a parameter of the kernel.
    logs : tuple of Log
        In order of memory.
    room : int
        Stamps that each keeps.
    """

    name: str
    logs: tuple[Log, ...]
    room: int

    @property
    def store(self) -> Store:
        """The array in the text."""
        return Store(self.name, DTYPES["u64"], (len(self.logs), HEAD + self.room, 2), "global")


@dataclass(frozen=True)
class _Role:
    """A role of a kernel: its nodes, and which of its threads keep logs."""

    kernel: str
    name: str
    nodes: tuple[Node, ...]
    threads: int
    each: int

    @property
    def logs(self) -> int:
        """Of one block."""
        return self.threads // self.each if self.each else 1


@dataclass
class Stamped:
    """What is noted, and where; found while a module is emitted.

    Parameters
    ----------
    blocks : tuple of int
        Chosen blocks, by their number in the grid.
    most : int
        Stamps that a log keeps at most.

    Attributes
    ----------
    marks : list of Mark
        What stamps say, by number.
    launches : list of Logs
        One array for each launch that has one of the blocks.
    """

    blocks: tuple[int, ...]
    most: int = MOST
    marks: list[Mark] = field(default_factory=list[Mark])
    launches: list[Logs] = field(default_factory=list[Logs])

    def bodies(self, plan: Plan, lows: Sequence[Lowered], bodies: Sequence[Apiece]) -> tuple[list[Apiece], Logs | None]:
        """What is printed in place of the bodies of one launch, and its array; the bodies themselves if it has no such block."""
        blocks = tuple(n for n in self.blocks if n < prod(lows[0].grid))
        if not blocks:
            return list(bodies), None
        log = _free("log", [name for low in lows for name in low.taken.taken])
        name = _free(STAMPS, [*(name for low in lows for name in low.taken.taken), *(x.name for x in self.launches),
                              *plan.array_of, *plan.buffer_of])
        first, roles = len(self.marks), list[_Role]()
        for low, body in zip(lows, bodies, strict=True):
            for role in _roles_of(low, body):
                nodes = Stamping(low, role.name, log, self.marks).stamps(role.nodes)
                assert without(nodes) == role.nodes, "stamps change nothing else"
                roles.append(replace(role, nodes=nodes))
        most = max(sum(m.times for m in self.marks[first:] if (m.kernel, m.role) == (r.kernel, r.name)) for r in roles) + 1
        room, each = min(most, self.most), sum(r.logs for r in roles)
        opened, number = list[tuple[Node, ...]](), 0
        for r in roles:
            begin = OpenLog(log, name, blocks, each, number, r.each, r.threads, room)
            opened.append((begin, *r.nodes, CloseLog(log, room)))
            number += r.logs
        logs = tuple(Log(r.kernel, r.name, block, r.each * n if r.each else r.threads, n if r.logs > 1 else -1)
                     for block in blocks for r in roles for n in range(r.logs))
        array = Logs(name, logs, room)
        self.launches.append(array)
        return [_put_back(body, opened) for body in bodies], array


def stamped(blocks: Sequence[int], most: int = MOST) -> Stamped:
    """Stamps of some blocks.

    Parameters
    ----------
    blocks : sequence of int
        By their number in the grid, at most :data:`MOST_BLOCKS`.
    most : int
        Stamps that a log keeps at most, up to :data:`MOST`.

    Raises
    ------
    DeviceError
        For other numbers.
    """
    chosen = tuple(dict.fromkeys(blocks))
    if not chosen or len(chosen) > MOST_BLOCKS or not all(type(n) is int and n >= 0 for n in chosen):
        raise DeviceError(f"Blocks are chosen by their numbers in the grid, not by {shown(blocks)}.",
                          why=f"1 to {MOST_BLOCKS} of them can be stamped", hint="blocks=(0, 1)")
    if type(most) is not int or not 1 <= most <= MOST:
        raise DeviceError(f"A log keeps 1 to {MOST:,} stamps, not {shown(most)}.", hint=f"most={MOST}")
    return Stamped(chosen, most)


def _roles_of(low: Lowered, body: Apiece) -> list[_Role]:
    """The roles of a kernel, in order."""
    kernel, nodes = low.kernel.id, tuple(n for n in body if not isinstance(n, Roles))
    apart = next((n for n in body if isinstance(n, Roles)), None)
    if apart is None:
        threads = prod(low.block)
        return [_Role(kernel, "threads", nodes, threads, _each(nodes, threads))]
    return [_Role(kernel, "producer", apart.producer, apart.threads, 0),
            _Role(kernel, "consumers", apart.consumers, apart.threads, _each(apart.consumers, apart.threads))]


def _each(nodes: tuple[Node, ...], threads: int) -> int:
    """Every how many threads one keeps a log: of each warpgroup, where these multiply."""
    groups = any(isinstance(n, Multiply) and isinstance(n.instruction, Wgmma) for n in walk(nodes))
    return min(WARPGROUP, threads) if groups else threads


def _put_back(body: Apiece, opened: list[tuple[Node, ...]]) -> Apiece:
    """A body with the next of the changed parts in their places."""
    if not any(isinstance(n, Roles) for n in body):
        return opened.pop(0)
    return tuple(replace(n, producer=opened.pop(0), consumers=opened.pop(0)) if isinstance(n, Roles) else n for n in body)


def _free(wanted: str, taken: Sequence[str]) -> str:
    """The first of ``wanted``, ``wanted_2``, ``wanted_3`` … that is not taken."""
    names = (wanted if n == 1 else f"{wanted}_{n}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)
