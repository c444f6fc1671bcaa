"""Nodes of the kernel IR that note the time: what an instrumented copy of a kernel has beside its own (:mod:`.passes.stamps`)."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.expr import Expr


@dataclass(frozen=True)
class Stamp:
    """The thread notes the time in its log: from here on it does what the mark says.

    Attributes
    ----------
    log : str
        The log's variable.
    mark : int
        Number of the mark, in the kernel's list.
    at : Expr
        Number of the iteration of the loops around it, counted over all of them.
    """

    log: str
    mark: int
    at: Expr
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenLog:
    """The thread gets a log: of its own where it and its block are chosen, one that keeps nothing elsewhere.

    Attributes
    ----------
    log, store : str
        The log's variable, and the array of all logs.
    blocks : tuple of int
        Chosen blocks, by their number in the grid.
    logs, first : int
        Logs of a block, and which of them is this role's first.
    each, threads : int
        Every so many threads, of the first so many, one is chosen: 0 is the one thread that comes here.
    room : int
        Stamps that a log keeps.
    """

    log: str
    store: str
    blocks: tuple[int, ...]
    logs: int
    first: int
    each: int
    threads: int
    room: int
    ids: tuple[str, ...] = ()

    @property
    def number(self) -> str:
        """The number of this thread's log in the text, -1 where it has none."""
        logs = "".join(f"stamp_block() == {block} ? {n * self.logs + self.first} : " for n, block in enumerate(self.blocks))
        return f"stamp_number<{self.each}, {self.threads}>({logs}-1)" if self.each else f"{logs}-1"


@dataclass(frozen=True)
class CloseLog:
    """The last stamp of a log, and how many there were."""

    log: str
    room: int
    ids: tuple[str, ...] = ()
