"""How a reduction can be spread over threads and blocks: the families of shapes that were measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from ...gpu.spec import Gpu
from .form import WRITTEN_OUT

IDLE = 1.34
"""Threads for each that has work, at most, where a row ends."""
MOST_UNROLLED = 32
"""Accesses of a thread that are written out, at most."""
PIECE, MOST_PARTS = 4096, 1024
"""Contiguous bytes that are worth a block of their own; parts of a result."""
ODD = 64
"""Vectors of a row whose length they do not divide, from which on it is read in whole ones."""


SMALL = 4 << 20
"""Bytes up to which narrower accesses than the widest are considered: more threads, each with less to do."""
SIGNALLED, MOST_THREADS, MOST_TAKES = 4, 1024, 8
"""Bytes of a value that a signal carries; threads of a block; parts that a thread takes one after the other, each after a latency
of the cache."""


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
    """

    x: int
    y: int
    vector: int
    unroll: int
    parts: int
    flat: bool = False
    join: str = "launch"
    nested: bool = False

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
        return self.x * self.y * (self.lanes(p) if several else 1)

    def room(self, p: Problem, gpu: Gpu) -> int:
        """Blocks that a multiprocessor holds while all loads of a batch are in flight; 0 where that takes no more registers than
        the compiler takes anyway.
        """
        words = -(-self.written_out(p) * (self.lanes(p) if self.flat else self.vector) * p.itemsize // 4)
        threads = -(-self.launched(p) // gpu.warp_size) * gpu.warp_size
        held = gpu.registers_per_sm // (threads * (WORKING + words)), gpu.max_threads_per_sm // threads, gpu.max_blocks_per_sm
        return max(1, min(held)) if words > UNASKED else 0

    def takes(self, p: Problem) -> int:
        """Parts that a thread of the block that joins takes one after the other, where it joins them in the same launch."""
        return -(-self.parts // (self.x if p.rows and not self.flat else self.y))

    def rounds(self, p: Problem) -> int:
        """Batches of parts that a thread of a launch of their own joins."""
        return -(-self.parts // (JOIN_BLOCK if p.rows and not self.flat else join_rows(self.parts) * JOIN_LOADS))

    def steady(self, p: Problem) -> bool:
        """Whether the accesses of a thread that are in flight together are a constant apart."""
        step = self.x * self.vector if p.rows and not self.flat else self.y
        return self.nested or not p.inner or step % p.inner == 0 or p.inner % (step * self.unroll) == 0 or (
            p.rows and self.flat and p.run <= WRITTEN_OUT)

    def lanes(self, p: Problem) -> int:
        """Results of one thread."""
        return 1 if p.rows else self.vector


def candidates(p: Problem, widest: int, gpu: Gpu) -> list[Shape]:
    """The shapes of a reduction, given the most elements of one access: also rows of odd length in whole vectors.

    Parts are joined by signals or by another launch.  Tickets are not among the shapes: on an H200 the second launch took less
    device time than 264 of 300 tickets, 14 % on average, much more where a hundred blocks take tickets of one result.
    """
    vectors = {gcd(p.run, widest)}
    if p.length * p.results * p.itemsize <= SMALL:
        vectors |= {n for n in (1, 2, 4) if n < gcd(p.run, widest)}
    if p.rows and not p.inner and p.length >= ODD * widest:
        vectors.add(widest)
    found = [s for vector in sorted(vectors) for s in shapes(p, vector, gpu)]
    joined = (replace(s, join="signal") for s in found if s.parts > 1 and s.join == "launch")
    return [*found, *(s for s in joined if _signals(p, s))]


def _signals(p: Problem, s: Shape) -> bool:
    """Whether a block can join parts by signals: a value fits a word, a thread takes few of them, columns have a thread each."""
    return p.itemsize <= SIGNALLED and s.launched(p) <= MOST_THREADS and s.takes(p) <= MOST_TAKES


def shapes(p: Problem, vector: int, gpu: Gpu) -> list[Shape]:
    """The shapes worth considering: families that were measured."""
    grids = [Shape(x, y, vector, 1, 1) for x, y in (_row_grids(p, vector) if p.rows else _column_grids(p, vector))]
    grids += [Shape(x, y, 1 if p.rows else vector, 1, 1, True) for x, y in _flat_grids(p, 1 if p.rows else vector)]
    grids += [Shape(x, 1, vector, 1, 1, nested=True) for x in _nested_grids(p, vector)]
    out = []
    for one in grids:
        most = p.length // p.inner if one.nested else one.accesses(p)
        whole = {most} if one.nested and p.inner * p.itemsize >= PIECE and most <= MOST_PARTS else set()
        several = _parts(one.blocks(p), most, one.x * one.y, gpu) if not p.rows or one.y == 1 or p.inner else {1}
        near = _clusters(one.blocks(p), most, gpu) if len(several) > 1 or 1 not in several else set()
        for parts, join in [*((n, "launch") for n in sorted(several | whole)), *((n, "cluster") for n in sorted(near))]:
            unrolls = _unrolls(replace(one, parts=parts).accesses(p))
            out += [replace(one, unroll=n, parts=parts, join=join) for n in unrolls]
    return list(dict.fromkeys(out))


def _unrolls(accesses: int) -> list[int]:
    """Accesses in flight together: a few, or all of them in one batch or two of the same size."""
    even = {-(-accesses // batches) for batches in (1, 2)}
    return sorted({min(n, accesses) for n in (4, 8, 16)} | {n for n in even if n <= MOST_UNROLLED})


def _nested_grids(p: Problem, vector: int) -> list[int]:
    """Threads for the innermost reduced axes of interleaved ones, where not too many are idle at their end."""
    pieces = -(-p.inner // vector)
    return [x for x in (32, 64, 128, 256, 512, 1024) if p.rows and x <= IDLE * pieces and x * -(-pieces // x) <= IDLE * pieces]


def _flat_grids(p: Problem, lanes: int) -> list[tuple[int, int]]:
    """(x, y): neighbouring results to neighbouring threads, reduced loops over y; for short rows and short runs of columns."""
    if p.run * p.itemsize > 256 if p.rows else p.run == p.results:
        return []
    return [(x, y) for x in (8, 16, 32, 64, 128) for y in (1, 2, 4, 8, 16, 32, *_whole(p))
            if 64 <= x * y <= 512 and y < 2 * p.length and x * lanes < 2 * p.results]


def _whole(p: Problem) -> tuple[int, ...]:
    """Threads for the inner reduced axes as a whole, or an even share of them: then no access takes a division."""
    if not p.inner:
        return ()
    return tuple(n for k in (1, 2, 4, 8) if p.inner % k == 0 and 2 <= (n := p.inner // k) <= 128)


def _row_grids(p: Problem, vector: int) -> list[tuple[int, int]]:
    """(x, y): part of a warp for a short row, several rows to a block; a block for a long one."""
    pieces = -(-p.length // vector)
    short = [x for x in (1, 2, 4, 8, 16, 32) if x * vector * p.itemsize >= min(64, p.length * p.itemsize) and x < 2 * pieces]
    found = [(x, max(1, threads // x)) for x in short for threads in (128, 256) if pieces <= 16 * x]
    threads = [n // vector for n in _whole(p) if n % vector == 0 and n // vector >= 8]
    whole = [(x, y) for x in threads for y in (1, 2, 4, 8, 16, 32, p.beside)
             if y == 1 or (64 <= x * y <= 1024 and y <= p.results)]
    return found + whole + [(x, 1) for x in (32, 64, 128, 256, 512, 1024) if x <= pieces and pieces > 2 * x] or [(1, 128)]


def _column_grids(p: Problem, vector: int) -> list[tuple[int, int]]:
    """(x, y): 64 to 1,024 contiguous bytes for each row, as many rows as the block has threads left."""
    wide = [1 << n for n in range(9) if 64 <= (vector * p.itemsize << n) <= 1024] or [32]
    enough = [x for x in wide if x * vector < 2 * p.run]
    narrow = 1
    while narrow * vector < p.run:
        narrow *= 2
    across = enough or [min(narrow, wide[0])]
    found = [(x, threads // x) for x in across for threads in (128, 256, 512, 1024)
             if threads >= x and threads // x < 2 * max(p.length, 1)] or [(narrow, 1)]
    return found + [(x, y) for x in across for y in _whole(p) if 64 <= x * y <= 1024]


def _parts(blocks: int, most: int, threads: int, gpu: Gpu) -> set[int]:
    """Numbers of parts: powers of two while multiprocessors are idle, and those that give each up to four blocks of 512."""
    found = {1}
    for waves in (1, 2, 4):
        parts = -(-gpu.multiprocessors * waves * 512 // max(threads, 64) // blocks)
        if 1 < parts <= min(most, MOST_PARTS):
            found.add(parts)
    found |= {1 << n for n in range(2, 8) if 1 << n <= most and blocks << n <= 2 * gpu.multiprocessors}
    return found


def _clusters(blocks: int, most: int, gpu: Gpu) -> set[int]:
    """Numbers of parts that the blocks of a cluster take."""
    return {n for n in (2, 4, 8, 16) if n <= min(most, gpu.max_cluster_blocks) and blocks * n <= 8 * gpu.multiprocessors}
