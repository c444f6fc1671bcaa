"""How a reduction can be spread over threads and blocks: the families of shapes that were measured."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ...gpu.spec import Gpu
from .form import WRITTEN_OUT

ODD = 64
"""Vectors of a row whose length they do not divide, from which on it is read in whole ones."""


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
    """

    rows: bool
    length: int
    results: int
    run: int
    itemsize: int
    inner: int = 0


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
    ticket : bool
        The last block of a result joins its parts, without another launch.
    """

    x: int
    y: int
    vector: int
    unroll: int
    parts: int
    flat: bool = False
    ticket: bool = False

    def blocks(self, p: Problem) -> int:
        """Blocks of the first launch."""
        if self.flat:
            return -(-p.results // (self.x * self.lanes(p))) * self.parts
        if p.rows:
            return -(-p.results // self.y) * self.parts
        return -(-p.run // (self.x * self.vector)) * (p.results // p.run) * self.parts

    def accesses(self, p: Problem) -> int:
        """Accesses of one thread."""
        return -(-p.length // ((self.x * self.vector if p.rows and not self.flat else self.y) * self.parts))

    def written_out(self, p: Problem) -> int:
        """Accesses of a thread that are in flight together."""
        whole = p.run if p.rows and self.flat and p.run <= WRITTEN_OUT else self.unroll
        return min(whole, self.accesses(p))

    def steady(self, p: Problem) -> bool:
        """Whether the accesses of a thread that are in flight together are a constant apart."""
        step = self.x * self.vector if p.rows and not self.flat else self.y
        return not p.inner or step % p.inner == 0 or p.inner % (step * self.unroll) == 0 or (
            p.rows and self.flat and p.run <= WRITTEN_OUT)

    def lanes(self, p: Problem) -> int:
        """Results of one thread."""
        return 1 if p.rows else self.vector


def candidates(p: Problem, widest: int, gpu: Gpu) -> list[Shape]:
    """The shapes of a reduction, given the most elements of one access: also rows of odd length in whole vectors.

    Tickets are not among them.  On an H200 the second launch took less device time than 264 of 300 tickets: 14 % on average, much
    more where a hundred blocks take tickets of one result.  What a ticket saves is the gap between two launches.
    """
    vectors = {gcd(p.run, widest)}
    if p.rows and not p.inner and p.length >= ODD * widest:
        vectors.add(widest)
    return [s for vector in sorted(vectors) for s in shapes(p, vector, gpu)]


def shapes(p: Problem, vector: int, gpu: Gpu) -> list[Shape]:
    """The shapes worth considering: families that were measured."""
    flat = [(x, y, True) for x, y in _flat_grids(p, 1 if p.rows else vector)]
    out = []
    for x, y, results_first in [(x, y, False) for x, y in (_row_grids(p, vector) if p.rows else _column_grids(p, vector))] + flat:
        lanes = 1 if p.rows and results_first else vector
        one = Shape(x, y, lanes, 1, 1, results_first)
        most = one.accesses(p)
        for parts in _parts(one.blocks(p), most, x * y, gpu) if not p.rows or y == 1 else [1]:
            each = -(-most // parts)
            unrolls = (4, each) if each <= 16 else (2, 4, 8, 16)
            out += [Shape(x, y, lanes, n, parts, results_first) for n in sorted({min(n, each) for n in unrolls})]
    return list(dict.fromkeys(out))


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
    whole = [(n // vector, 1) for n in _whole(p) if n % vector == 0 and n // vector >= 8]
    return found + whole + [(x, 1) for x in (32, 64, 128, 256, 512, 1024) if x <= pieces and pieces > 2 * x] or [(1, 128)]


def _column_grids(p: Problem, vector: int) -> list[tuple[int, int]]:
    """(x, y): 128 to 1,024 contiguous bytes for each row, as many rows as the block has threads left."""
    wide = [1 << n for n in range(9) if 128 <= (vector * p.itemsize << n) <= 1024] or [32]
    enough = [x for x in wide if x * vector < 2 * p.run]
    narrow = 1
    while narrow * vector < p.run:
        narrow *= 2
    across = enough or [min(narrow, wide[0])]
    found = [(x, threads // x) for x in across for threads in (128, 256, 512, 1024)
             if threads >= x and threads // x < 2 * max(p.length, 1)] or [(narrow, 1)]
    return found + [(x, y) for x in across for y in _whole(p) if 64 <= x * y <= 1024]


def _parts(blocks: int, most: int, threads: int, gpu: Gpu) -> list[int]:
    """Numbers of parts: powers of two while multiprocessors are idle, and those that give each up to four blocks of 512."""
    found = {1}
    for waves in (1, 2, 4):
        parts = -(-gpu.multiprocessors * waves * 512 // max(threads, 64) // blocks)
        if 1 < parts <= min(most, 1024):
            found.add(parts)
    found |= {1 << n for n in range(2, 8) if 1 << n <= most and blocks << n <= 2 * gpu.multiprocessors}
    return sorted(found)
