"""The families of shapes that were measured: how a reduction can be spread over threads and blocks."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ...gpu.spec import Gpu
from .form import WRITTEN_OUT
from .shapes import Problem, Shape

IDLE = 1.34
"""Threads for each that has work, at most, where a row ends."""
MOST_UNROLLED = 32
"""Accesses of a thread that are written out, at most."""
PIECE, MOST_PARTS = 4096, 1024
"""Contiguous bytes that are worth a block of their own; parts of a result."""
MOST_BATCHED = 4096
"""Parts of a result where each is a few batches of loads."""
ODD = 64
"""Vectors of a row whose length they do not divide, from which on it is read in whole ones."""
SMALL = 4 << 20
"""Bytes up to which narrower accesses than the widest are considered: more threads, each with less to do."""
MOST_SUMS = 8192
"""Sums that a block leaves in its shared memory (32 KiB)."""
MOST_WHOLE = 256
"""Bytes of the rows that a thread takes whole, at most: a quarter of its registers."""
SHORTEST, LONGEST, STAGED = 24, 256, 32768
"""Bytes of rows that a block copies to shared memory, and of all rows of a block."""
HANDOFF_BYTES, MOST_THREADS, MOST_TAKES = 4, 1024, 8
"""Bytes of a value that one word can hand off; threads of a block; parts that a thread takes one after the other, each after a
latency of the cache."""


def candidates(p: Problem, widest: int, gpu: Gpu) -> list[Shape]:
    """The shapes of a reduction, given the most elements of one access: also rows of odd length in whole vectors.

    Parts are joined by handoff or by another launch.  ``last_block`` is not among the shapes: on an H200 the second launch took
    less device time than 264 of 300 such joins, 14 % on average, much more where a hundred blocks count on one counter.
    """
    vectors = {gcd(p.run, widest)}
    if p.length * p.results * p.itemsize <= SMALL:
        vectors |= {n for n in (1, 2, 4) if n < gcd(p.run, widest)}
    if p.rows and not p.inner and p.length >= ODD * widest:
        vectors.add(widest)
    found = [s for vector in sorted(vectors) for s in shapes(p, vector, gpu)]
    found += [*_two_stage(p, widest, gpu), *_whole_rows(p, widest), *_staged_rows(p, widest)]
    joined = (replace(s, join="handoff") for s in found if s.parts > 1 and s.join == "launch")
    return [*found, *(s for s in joined if _hands_off(p, s))]


def _two_stage(p: Problem, widest: int, gpu: Gpu) -> list[Shape]:
    """The shapes whose threads have several sums of a result, in whole vectors: rows taken together, inner axes kept apart."""
    found = []
    for kept in (False, True) if p.whole else (False,):
        for vector in (widest, widest // 2):
            apart = Shape(1, 1, vector, 1, 1, kept=kept).seen(p)
            period = vector // gcd(apart.run, vector)
            if apart.rows or (period == 1 and not kept) or not _periods(apart, period):
                continue
            like = Shape(1, 1, vector, 1, 1, period=period, kept=kept)
            columns = like.seen(p)
            for x, y in _two_stage_grids(p, columns, like):
                made = _in_parts(columns, [Shape(x, y, vector, 1, 1)], gpu)
                found += [replace(s, period=period, kept=kept) for s in made]
    return found


def _whole_rows(p: Problem, widest: int) -> list[Shape]:
    """The shapes whose threads take whole short rows: as many rows as are a whole number of vectors, or more."""
    found, row, outside = [], p.run * p.itemsize, p.length // p.run
    if not p.rows or row > MOST_WHOLE:
        return []
    for vector in (widest >> n for n in range(widest.bit_length() - 1)):
        least = vector // gcd(p.run, vector)
        for each in (least << n for n in range((widest // least).bit_length())):  # their results are one vector
            if each * row > MOST_WHOLE or each > p.results or (p.inner and p.beside % each):
                continue
            one = Shape(1, 1, vector, 1, 1, True, each=each)
            unrolls = {n * one.run(p) for n in (1, 2, 4, 8) if n == 1 or (n <= outside and n * one.run(p) <= MOST_UNROLLED)}
            found += [replace(one, x=x, y=y, unroll=n) for x in (32, 64, 128, 256) for y in (1, 2, 4, 8, 16)
                      for n in sorted(unrolls) if x * y <= 512 and y <= outside]
    return found


def _staged_rows(p: Problem, widest: int) -> list[Shape]:
    """The shapes whose blocks copy their rows to shared memory: short ones that no vector divides, so that threads read other
    banks there.
    """
    if not p.rows or p.inner or p.length % widest == 0 or not SHORTEST <= p.length * p.itemsize <= LONGEST:
        return []
    unroll = next(n for n in (*range(2 * MOST_UNROLLED, 7, -1), p.length) if p.length % n == 0)
    return [Shape(x, 1, widest, unroll, 1, True, staged=True) for x in (32, 64, 128, 256)
            if x * p.length * p.itemsize <= STAGED and x < 2 * p.results]


def _periods(p: Problem, period: int) -> bool:
    """Whether so many rows of columns can be taken as one, and every batch of them begins where a vector does."""
    alone = not p.inner and p.run == p.results
    return period <= p.length and (p.inner or p.length) % (1 if alone else period) == 0


def _two_stage_grids(p: Problem, columns: Problem, like: Shape) -> list[tuple[int, int]]:
    """(x, y): a period's columns to a block, or those of some results as a whole; as many rows as the block has threads left."""
    if like.period > 1:
        across = {columns.run // like.vector}
    else:
        unit = p.inner * (1 if p.rows else p.run)
        heads, most = columns.run // unit, MOST_THREADS * like.vector // unit
        fits = [n * unit // like.vector for n in range(1 + p.rows, min(heads, most) + 1)
                if heads % n == 0 and n * unit % like.vector == 0]
        across = {min(fits, key=lambda x: abs(x - wide)) for wide in (32, 64, 128, 256, 512)} if fits else set()
    return [(x, 1 << n) for x in sorted(across) if 2 <= x <= MOST_THREADS for n in range(8)
            if 64 <= x << n <= MOST_THREADS and 1 << n < 2 * columns.length and (x << n) * like.vector <= MOST_SUMS]


def _hands_off(p: Problem, s: Shape) -> bool:
    """Whether a block can join parts by handoff: a value fits a word, a thread takes few of them, columns have a thread each."""
    return p.itemsize <= HANDOFF_BYTES and s.launched(p) <= MOST_THREADS and s.takes(p) <= MOST_TAKES


def shapes(p: Problem, vector: int, gpu: Gpu) -> list[Shape]:
    """The shapes worth considering: families that were measured."""
    grids = [Shape(x, y, vector, 1, 1) for x, y in (_row_grids(p, vector) if p.rows else _column_grids(p, vector))]
    grids += [Shape(x, y, 1 if p.rows else vector, 1, 1, True) for x, y in _flat_grids(p, 1 if p.rows else vector)]
    grids += [Shape(x, 1, vector, 1, 1, nested=True) for x in _nested_grids(p, vector)]
    return _in_parts(p, grids, gpu)


def _in_parts(p: Problem, grids: list[Shape], gpu: Gpu) -> list[Shape]:
    """Each with several numbers of parts and of accesses in flight together."""
    out = []
    for one in grids:
        most = p.length // p.inner if one.nested else one.accesses(p)
        whole = {most} if one.nested and p.inner * p.itemsize >= PIECE and most <= MOST_PARTS else set()
        several = _parts(one.blocks(p), most, one.x * one.y, gpu) if not p.rows or one.y == 1 or p.inner else {1}
        several |= _batched(p, one, gpu)
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
    alone = [x for x in (64, 128, 256) if p.length <= WRITTEN_OUT and x * vector < 2 * p.run]  # a thread takes columns whole
    return found + [(x, y) for x in across for y in _whole(p) if 64 <= x * y <= 1024] + [(x, 1) for x in alone]


def _parts(blocks: int, most: int, threads: int, gpu: Gpu) -> set[int]:
    """Numbers of parts: powers of two while multiprocessors are idle, and those that give each up to eight blocks of 512."""
    found = {1}
    for waves in (1, 2, 4, 8):
        parts = -(-gpu.multiprocessors * waves * 512 // max(threads, 64) // blocks)
        if 1 < parts <= min(most, MOST_PARTS):
            found.add(parts)
    found |= {1 << n for n in range(2, 8) if 1 << n <= most and blocks << n <= 2 * gpu.multiprocessors}
    return found


def _batched(p: Problem, one: Shape, gpu: Gpu) -> set[int]:
    """Numbers of parts of a long row of which each is a few whole batches of a block: no last batch is nearly empty, and many
    blocks share the multiprocessors evenly, however fast each of them is.
    """
    if not p.rows or p.inner or one.flat or one.y > 1:
        return set()
    found = {-(-one.accesses(p) // (unroll * batches)) for unroll in (4, 8) for batches in (1, 2, 4)}
    fewest = gpu.multiprocessors * gpu.max_threads_per_sm // 2
    return {n for n in found if 1 < n <= MOST_BATCHED and fewest <= one.blocks(p) * n * one.x}


def _clusters(blocks: int, most: int, gpu: Gpu) -> set[int]:
    """Numbers of parts that the blocks of a cluster take."""
    return {n for n in (2, 4, 8, 16) if n <= min(most, gpu.max_cluster_blocks) and blocks * n <= 8 * gpu.multiprocessors}
