"""How a reduction is spread over threads and blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...gpu.spec import Gpu
from .form import WRITTEN_OUT

JOIN_BLOCK, JOIN_LOADS, JOIN_COLUMNS = 256, 8, 32
"""Threads of a block of another launch that joins parts of rows; parts that one of its threads takes together where it joins
parts of columns; neighbouring columns of such a block."""


WORKING, UNASKED = 28, 12
"""Registers of a thread beside what it has loaded (NVRTC 13 took 76 to 78 for 64 words); words of loads that the compiler keeps
in flight without being asked to."""


def join_rows(parts: int) -> int:
    """Threads of a block of another launch that share a column's parts."""
    return 8 if parts <= 8 * JOIN_LOADS else 32


@dataclass(frozen=True)
class Problem:
    """A canonical reduction.

    Attributes
    ----------
    rows : bool
        Whether the contiguous loop is reduced.
    length, results : int
        Elements reduced to one result, and results.
    run : int
        Contiguous elements of one role.
    itemsize : int
        Bytes of an element.
    inner : int
        Elements of the innermost reduced axes that are next to each other, where there are others: beyond, an index takes
        divisions.
    beside : int
        Results whose contiguous elements are next to each other: the parallel axes just outside of those.
    """

    rows: bool
    length: int
    results: int
    run: int
    itemsize: int
    inner: int = 0
    beside: int = 1


@dataclass(frozen=True)
class Shape:
    """How a reduction is spread.

    Attributes
    ----------
    x, y : int
        Threads along the contiguous loop, and across it.
    vector : int
        Elements of one access.
    unroll : int
        Accesses of a thread that are written out, and so in flight together.
    parts : int
        Parts of the reduced loops that blocks of their own take.
    flat : bool
        Neighbouring threads take neighbouring results, whatever the axes between them.
    join : str
        How parts become one: ``"launch"``, one of its own; ``"cluster"``, ``"signal"`` or ``"ticket"``, a block of the same one
        (:class:`~explorer.transforms.join.Join`).
    nested : bool
        Threads walk the innermost reduced axes alone, again for each index of the others, which parts share.
    period : int
        Rows of columns that are taken as one: so many of an odd length are a whole number of vectors.  Each result then has as
        many parts more, which are joined with the others.
    """

    x: int
    y: int
    vector: int
    unroll: int
    parts: int
    flat: bool = False
    join: str = "launch"
    nested: bool = False
    period: int = 1

    @property
    def together(self) -> bool:
        """Whether parts are joined in the launch that makes them."""
        return self.parts > 1 and self.join != "launch"

    @property
    def clustered(self) -> bool:
        """Whether the blocks that have parts of one result are a cluster."""
        return self.parts > 1 and self.join == "cluster"

    def blocks(self, p: Problem) -> int:
        """Blocks of the first launch."""
        if self.flat:
            return -(-p.results // (self.x * self.lanes(p))) * self.parts
        if p.rows:
            return -(-p.results // self.y) * self.parts
        return -(-p.run // (self.x * self.vector)) * (p.results // p.run) * self.parts

    def across(self, p: Problem) -> int:
        """Accesses of one thread to the innermost reduced axes, where it walks those alone."""
        return -(-p.inner // (self.x * self.vector))

    def accesses(self, p: Problem) -> int:
        """Accesses of one thread."""
        if self.nested:
            return self.across(p) * -(-p.length // (p.inner * self.parts))
        return -(-p.length // ((self.x * self.vector if p.rows and not self.flat else self.y) * self.parts))

    def written_out(self, p: Problem) -> int:
        """Accesses of a thread that are in flight together."""
        if self.nested:
            across = self.across(p)
            return min(self.accesses(p), across * (self.unroll // across) or self.unroll)
        whole = p.run if p.rows and self.flat and p.run <= WRITTEN_OUT else self.unroll
        return min(whole, self.accesses(p))

    def launched(self, p: Problem) -> int:
        """Threads of a block of the first launch: a block that joins columns there has one for each of them."""
        several = self.together and not self.clustered and not (p.rows and not self.flat)
        return self.x * self.y * (self.lanes(p) if several and self.period == 1 else 1)

    def width(self, p: Problem) -> int:
        """Bytes of one access of a thread."""
        return (self.lanes(p) if self.flat else self.vector) * p.itemsize

    def room(self, p: Problem, gpu: Gpu) -> int:
        """Blocks that a multiprocessor is asked to hold, so that more loads of a batch are in flight: all of those that it gets.

        0 where the compiler keeps the loads in flight anyway, or where that would leave no more registers to a thread.
        """
        threads, each = self._threads(p, gpu), -(-self.blocks(p) // gpu.multiprocessors)
        words = -(-self.written_out(p) * self.width(p) // 4)
        held = min(gpu.max_threads_per_sm // threads, gpu.max_blocks_per_sm)
        enough = min(held, gpu.registers_per_sm // (threads * (WORKING + words)))
        if words <= UNASKED or each > held:
            return 0
        return enough if each <= enough else each if self._kept(p, each, gpu) > UNASKED else 0

    def in_flight(self, p: Problem, gpu: Gpu) -> int:
        """Accesses of a thread that are in flight together: those written out, as far as the compiler keeps them so."""
        asked = self.room(p, gpu)
        words = self._kept(p, asked, gpu) if asked else UNASKED
        return max(1, min(self.written_out(p), words * 4 // self.width(p)))

    def _kept(self, p: Problem, blocks: int, gpu: Gpu) -> int:
        """Words that fit the registers of a thread where a multiprocessor holds so many blocks."""
        return gpu.registers_per_sm // (self._threads(p, gpu) * blocks) - WORKING

    def _threads(self, p: Problem, gpu: Gpu) -> int:
        """Threads of a block, in whole warps."""
        return -(-self.launched(p) // gpu.warp_size) * gpu.warp_size

    def takes(self, p: Problem) -> int:
        """Parts that a thread of the block that joins takes one after the other, where it joins them in the same launch."""
        return -(-self.parts * self.period // (self.x if p.rows and not self.flat else self.y))

    def rounds(self, p: Problem) -> int:
        """Batches of parts that a thread of a launch of their own joins."""
        parts = self.parts * self.period
        return -(-parts // (JOIN_BLOCK if p.rows and not self.flat else join_rows(parts) * JOIN_LOADS))

    def steady(self, p: Problem) -> bool:
        """Whether the accesses of a thread that are in flight together are a constant apart."""
        step = self.x * self.vector if p.rows and not self.flat else self.y
        return self.nested or not p.inner or step % p.inner == 0 or p.inner % (step * self.unroll) == 0 or (
            p.rows and self.flat and p.run <= WRITTEN_OUT)

    def lanes(self, p: Problem) -> int:
        """Results of one thread."""
        return 1 if p.rows else self.vector


def periodic(p: Problem, period: int) -> Problem:
    """The same columns where so many rows are taken as one."""
    if period == 1:
        return p
    return replace(p, length=-(-p.length // period), results=p.results * period, run=p.run * period, inner=p.inner // period,
                   beside=p.beside * period)
