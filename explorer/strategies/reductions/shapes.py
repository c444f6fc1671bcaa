"""How a reduction is spread over threads and blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from ...gpu.spec import Gpu
from .form import WRITTEN_OUT
from .sums import ALONE, Sums, shared

JOIN_BLOCK, JOIN_LOADS, JOIN_COLUMNS = 256, 8, 32
"""Threads of a block of another launch that joins parts of rows; parts that one of its threads takes together where it joins
parts of columns; neighbouring columns of such a block."""


COPIED = 16
"""Accesses of a thread that are written out where a block copies its rows (:class:`~explorer.transforms.stage.Stage`)."""
WORKING, UNASKED = 28, 12
"""Registers of a thread beside what it has loaded (NVRTC 13 took 76 to 78 for 64 words); words of loads that the compiler keeps
in flight without being asked to."""


UNEVEN = 11
"""One of so many multiprocessors is left over where clusters have more than two blocks: they do not fit the groups in which
multiprocessors come (an H200 has 132; the fit is best with 120, for clusters of 4, of 8 and of 16 blocks alike)."""


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
    whole : int
        Elements inside of the next reduced axis outside of the inner ones, all next to each other; 0 where there is none.
    further : int
        `inner` of the reduced axes outside of the inner ones.
    """

    rows: bool
    length: int
    results: int
    run: int
    itemsize: int
    inner: int = 0
    beside: int = 1
    whole: int = 0
    further: int = 0


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
        How parts are combined: ``"launch"``, by a launch of its own; ``"cluster"``, ``"handoff"`` or ``"last_block"``, by a
        block of the same launch (:class:`~explorer.transforms.join.Join`).
    nested : bool
        Threads walk the innermost reduced axes alone, again for each index of the others, which parts share.
    period : int
        Rows of columns that are taken as one: so many of an odd length are a whole number of vectors.  A block then has as many
        sums of each result, which meet in its shared memory.
    kept : bool
        The innermost reduced axes stay apart, too: they and the results beside them are the columns, one contiguous run.
    each : int
        Rows that a thread takes whole, next to each other in memory and together a whole number of vectors.
    staged : bool
        A block copies its rows to shared memory, in vectors whatever their length, and each thread adds up one there.
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
    kept: bool = False
    each: int = 1
    staged: bool = False

    @property
    def two_stage(self) -> bool:
        """Whether a block's threads have several sums of a result, which meet in its shared memory."""
        return self.kept or self.period > 1

    def seen(self, p: Problem) -> Problem:
        """The problem as its columns are: several of them a result's where its sums meet in the block."""
        if self.kept:
            p = replace(p, rows=False, length=p.length // p.inner, results=p.results * p.inner, run=p.whole, inner=p.further,
                        beside=p.whole, whole=0, further=0)
        return p if self.period == 1 else replace(
            p, length=-(-p.length // self.period), results=p.results * self.period, run=p.run * self.period,
            inner=p.inner // self.period, beside=p.beside * self.period, whole=0, further=0)

    def sums(self, p: Problem) -> Sums:
        """What meets in a block, of the problem itself: see :func:`shared`."""
        each = self.period * (p.inner if self.kept else 1)
        return shared(self.x * self.vector // each, self.y * each, self.x, self.y, rows=self.y)

    def joins(self, p: Problem) -> Sums:
        """How parts are joined that have met in their blocks."""
        each = self.period * (p.inner if self.kept else 1)
        return shared(self.x * self.vector // each, self.parts, self.x, self.y, 1 if self.join == "handoff" else ALONE)

    def whole(self, p: Problem) -> bool:
        """Whether threads take whole rows, in vectors."""
        return p.rows and self.flat and self.vector > 1 and not self.staged

    def run(self, p: Problem) -> int:
        """Accesses of a thread to rows that it takes whole, next to each other."""
        return p.run * self.each // self.vector

    @property
    def together(self) -> bool:
        """Whether parts are joined in the launch that makes them."""
        return self.parts > 1 and self.join != "launch"

    @property
    def joins_in_cluster(self) -> bool:
        """Whether the blocks that have parts of one result are a cluster."""
        return self.parts > 1 and self.join == "cluster"

    def blocks(self, p: Problem) -> int:
        """Blocks of the first launch."""
        if self.flat:
            return -(-p.results // (self.x * self.lanes(p))) * self.parts
        if p.rows:
            return -(-p.results // self.y) * self.parts
        return -(-p.run // (self.x * self.vector)) * (p.results // p.run) * self.parts

    def places(self, gpu: Gpu) -> int:
        """Multiprocessors that its blocks fill evenly."""
        return gpu.multiprocessors - (gpu.multiprocessors // UNEVEN if self.joins_in_cluster and self.parts > 2 else 0)

    def shifted(self, p: Problem) -> int:
        """Elements that the first vector of a row may begin before it: rows of odd length are read in whole vectors."""
        return self.vector - gcd(p.run, self.vector) if p.rows and not self.flat and p.results > 1 else 0

    def across(self, p: Problem) -> int:
        """Accesses of one thread to the innermost reduced axes, where it walks those alone."""
        return -(-p.inner // (self.x * self.vector))

    def accesses(self, p: Problem) -> int:
        """Accesses of one thread."""
        if self.nested:
            return self.across(p) * -(-p.length // (p.inner * self.parts))
        if self.whole(p):
            return -(-p.length // (p.run * self.y)) * self.run(p)
        if self.staged:
            return -(-p.length // self.vector)
        if self.flat or not p.rows:
            return -(-p.length // (self.y * self.parts))
        return -(-(p.length + self.shifted(p)) // (self.x * self.vector * self.parts))

    def written_out(self, p: Problem) -> int:
        """Accesses of a thread that are in flight together."""
        if self.nested:
            across = self.across(p)
            return min(self.accesses(p), across * (self.unroll // across) or self.unroll)
        if self.whole(p):
            return min(self.accesses(p), self.unroll // self.run(p) * self.run(p))
        if self.staged:
            return self.accesses(p) if self.accesses(p) <= COPIED else 1
        run = p.run if p.rows and self.flat and p.run <= WRITTEN_OUT else self.unroll
        return min(run, self.accesses(p))

    def launched(self, p: Problem) -> int:
        """Threads of a block of the first launch: a block that joins columns there has one for each of them."""
        several = self.together and not self.joins_in_cluster and not self.two_stage and not (p.rows and not self.flat)
        return self.x * self.y * (self.lanes(p) if several else 1)

    def width(self, p: Problem) -> int:
        """Bytes of one access of a thread."""
        return self.vector * p.itemsize

    def room(self, p: Problem, gpu: Gpu) -> int:
        """Blocks that a multiprocessor is asked to hold, so that more loads of a batch are in flight: all of those that it gets.

        0 where the compiler keeps the loads in flight anyway, or where that would leave no more registers to a thread.  Where
        sums meet in the block, as many as hold all loads of their threads: those have conditions mostly, and are then kept in
        flight at any price.  Rows that begin anywhere ask only where all loads of a batch fit: their conditions take registers
        too, and the compiler spilled (6025 rows of 3267 halves: 26.8 instead of 10.8 µs on an H200).
        """
        threads, each = self._threads(p, gpu), -(-self.blocks(p) // gpu.multiprocessors)
        words = -(-self.written_out(p) * self.width(p) // 4)
        held = min(gpu.max_threads_per_sm // threads, gpu.max_blocks_per_sm)
        enough = min(held, gpu.registers_per_sm // (threads * (WORKING + words)))
        if self.two_stage:
            return min(each, enough) if words > UNASKED else 0
        if self.staged or words <= UNASKED or each > held:
            return 0
        if each <= enough:
            return enough
        return each if self._kept(p, each, gpu) > UNASKED and not self.shifted(p) else 0

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
        if self.two_stage:
            return self.joins(p).alone
        return -(-self.parts // (self.x if p.rows and not self.flat else self.y))

    def rounds(self, p: Problem) -> int:
        """Batches of parts that a thread of a launch of their own joins."""
        alone = p.rows and not self.flat and not self.two_stage
        return -(-self.parts // (JOIN_BLOCK if alone else join_rows(self.parts) * JOIN_LOADS))

    def steady(self, p: Problem) -> bool:
        """Whether the accesses of a thread that are in flight together are a constant apart."""
        step = self.x * self.vector if p.rows and not self.flat else self.y
        return self.nested or not p.inner or step % p.inner == 0 or p.inner % (step * self.unroll) == 0 or (
            p.rows and self.flat and (self.vector > 1 or p.run <= WRITTEN_OUT))

    def lanes(self, p: Problem) -> int:
        """Results of one thread."""
        return self.each if p.rows else self.vector
