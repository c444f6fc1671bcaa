"""The counts that the cost model of reductions multiplies by its constants, for a spread over threads and blocks.

Whatever is so or is not so is 1 or 0 here, so that the model has no cases: it is arithmetic on numbers, or on arrays of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log2, sqrt
from typing import NamedTuple

import numpy as np

from ...gpu.spec import Gpu
from .shapes import Problem, Shape
from .sums import Sums

WIDE_CLUSTER = 16
"""Blocks of the largest clusters."""
SECTOR = 32
"""Bytes of a sector of the L2 cache (Nsight Compute, "Memory Chart")."""
LINE = 128
"""Bytes of a line of the L1 cache and of a full access to memory (CUDA C++ Best Practices Guide, "Coalesced Access")."""
AT_ONCE = 16
"""Values that the first thread of a group takes itself (``reduce.cuh``)."""
FURTHER = 16
"""Sums that a thread adds up in the time of a further round in which a block's threads share those of one result: so it is in
the sweep (benchmarks/reduction_fit.py), where eight took too little by up to a third."""
WORD, WIDER = 4, 0.65
"""Bytes of a word; with which power of its words an access takes longer where every lane reads rows of its own: so it is in the
sweep, for 2 and for 4 words."""
COPYING = 256
"""Threads of the largest blocks that copy their rows."""
CLOCK = 1.7e9
"""Hertz of a GPU that does not say."""


class Work(NamedTuple):
    """What a spread does on a GPU; each attribute a number, or an array with one for each of many spreads.

    Attributes
    ----------
    stream : float
        Microseconds in which the memory reads the elements once.
    scattered, misfit : float
        How far the pieces that a row of threads reads are from whole lines, 0 to 1; what is read in vain at the ends of pieces
        of columns that begin anywhere, over the pieces' length.
    sectors : float
        Bytes of the sectors that pieces touch.
    fullest, held : float
        Bytes that the fullest multiprocessor reads; those that its resident threads have asked for at once.
    later : float
        The share of rounds of resident blocks that are not the first.
    lines, lines_flat : float
        Lines that the warps of a multiprocessor touch, over the clock in megahertz, where lanes read side by side, and where
        each walks a row of its own: then more for several words at once.
    warps, blocks, begun : float
        Accesses of warps of the fullest multiprocessor; its blocks, and those it begins with.
    launched : float
        Thousands (1,024) of threads of a block.
    batches : float
        Batches of loads that a thread waits for, one after the other.
    unroll, written : float
        Accesses of a thread that are written out, and their elements.
    divided, divided_rows, ragged : float
        Whether addresses take divisions, for each thread, or side by side in a row; lanes of an access with their own condition,
        on average.
    rest : float
        Whether the last thread has fewer rows than it takes whole, and so a text of its own.
    copied, narrow : float
        Threads of a block that copies its rows to shared memory, over those of the largest; values of such a row that are shorter
        than the words there; each over the waves, as others load meanwhile.
    row, row_block, row_warp, row_member, row_twice : float
        Whether threads share a row; whether warps do; how often their number halves; values that are taken one after the other of
        those that shuffles leave, and whether that takes two steps.
    column, column_block, column_value, column_member : float
        The same where threads share columns, for all columns of a thread.
    launch, last_block, handoff, handoff_columns, cluster : float
        Whether parts meet so.
    take : float
        Further rounds in which parts are taken.
    part, partial, cluster_part, crowd : float
        Parts that pass through memory, the microseconds of their results there; parts of a cluster, and these over those of the
        largest.
    second_stage, second_stage_value, second_stage_shared : float
        Whether a block's threads have several sums of a result, or its rows lie in shared memory; how many values a thread adds
        up alone there, and how often those who share sums halve.
    """

    stream: float
    scattered: float
    misfit: float
    sectors: float
    fullest: float
    held: float
    later: float
    lines: float
    lines_flat: float
    warps: float
    blocks: float
    begun: float
    launched: float
    batches: float
    unroll: float
    written: float
    divided: float
    divided_rows: float
    ragged: float
    rest: float
    copied: float
    narrow: float
    row: float
    row_block: float
    row_warp: float
    row_member: float
    row_twice: float
    column: float
    column_block: float
    column_value: float
    column_member: float
    launch: float
    last_block: float
    handoff: float
    handoff_columns: float
    cluster: float
    take: float
    part: float
    partial: float
    cluster_part: float
    second_stage: float
    second_stage_value: float
    second_stage_shared: float
    crowd: float


def work(p: Problem, s: Shape, gpu: Gpu) -> Work:
    """Count what a shape does on a GPU."""
    given, p = p, s.seen(p)
    bandwidth = (gpu.measured_bandwidth_bytes_per_s or gpu.memory_bandwidth_bytes_per_s) / 1e6
    in_rows, in_lanes = p.rows and not s.flat, p.rows and s.flat and not s.staged
    blocks, threads, launched = s.blocks(p), s.x * s.y, s.launched(p)
    accesses, unroll, flight = s.accesses(p), s.written_out(p), s.in_flight(p, gpu)
    places = s.places(gpu)
    each = -(-blocks // places)
    resident = max(1, min(gpu.max_threads_per_sm // max(launched, gpu.warp_size), each, gpu.max_blocks_per_sm))
    resident = min(resident, s.room(p, gpu) or resident) if s.two_stage else resident
    resident = max(1, min(resident, gpu.shared_bytes_per_sm // (s.x * p.length * p.itemsize))) if s.staged else resident
    waves = -(-blocks // (min(places, blocks) * resident))
    width, nbytes = s.width(p), p.length * p.results * p.itemsize
    warps = -(-threads // gpu.warp_size) * accesses
    lines = waves * resident * warps * _lines(p, s, width, gpu.warp_size) / ((gpu.clock_hz or CLOCK) / 1e6)
    unsteady = not s.steady(p)
    columns = not in_rows and s.y > 1 and not s.two_stage
    members = s.x >> _halvings(s.x, gpu.warp_size) if in_rows and s.x > 1 and s.y > 1 else 0
    joined = s.join if s.parts > 1 else ""
    through = s.parts if joined and not s.joins_in_cluster else 0
    takes = {"launch": s.rounds, "handoff": s.takes}.get(joined)
    meeting = s.sums(given) if s.two_stage else None
    return Work(
        stream=nbytes / bandwidth,
        scattered=_scattered(p, s),
        misfit=_misfit(p, s),
        sectors=nbytes * _sectors(p, s),
        fullest=each * threads * accesses * width,
        held=resident * threads * flight * width,
        later=(waves - 1) / waves,
        lines=0.0 if in_lanes else lines,
        lines_flat=lines * max(1.0, width / WORD) ** WIDER if in_lanes else 0.0,
        warps=each * warps,
        blocks=each,
        begun=min(resident, each),
        launched=launched / 1024,
        batches=-(-accesses // flight),
        unroll=unroll,
        written=unroll * width // p.itemsize,
        divided=unsteady and not in_rows,
        divided_rows=unsteady and in_rows,
        ragged=s.vector * _ends(accesses, unroll, s.shifted(p) > 0) if in_rows and p.run % s.vector else 0,
        rest=p.results % s.each > 0,
        copied=s.staged * s.x / COPYING / waves,
        narrow=s.staged * p.length * (p.itemsize < WORD) / waves,
        row=in_rows and s.x > 1,
        row_block=in_rows and s.x > gpu.warp_size,
        row_warp=log2(s.x / gpu.warp_size) if in_rows and s.x > gpu.warp_size else 0.0,
        row_member=members if members <= AT_ONCE else 2 * ceil(sqrt(members)),
        row_twice=members > AT_ONCE,
        column=columns,
        column_block=columns and threads > gpu.warp_size,
        column_value=log2(s.y) * s.lanes(p) if columns else 0.0,
        column_member=_left(s, gpu.warp_size) * s.lanes(p) if columns else 0,
        launch=joined == "launch",
        last_block=joined == "last_block",
        handoff=joined == "handoff" and in_rows,
        handoff_columns=joined == "handoff" and not in_rows,
        cluster=joined == "cluster",
        take=takes(given) - 1 if takes else 0,
        part=through,
        partial=through * given.results * 8 / bandwidth,
        cluster_part=s.parts if s.joins_in_cluster else 0,
        second_stage=s.two_stage or s.staged,
        second_stage_value=_alone(meeting) if meeting else s.staged * p.length,
        second_stage_shared=log2(meeting.share) if meeting else 0.0,
        crowd=s.parts / WIDE_CLUSTER if s.joins_in_cluster else 0.0,
    )


def _ends(accesses: int, unroll: int, shifted: bool) -> float:
    """The share of accesses whose lanes ask whether they are in the row: the first and the last of each batch that is written out
    where rows begin anywhere, else the last.
    """
    batches = -(-accesses // unroll)
    return min(1.0, (2 if shifted else 1) * batches / accesses)


def _alone(meeting: Sums) -> int:
    """Sums that a thread adds up one after the other, or in the time of further rounds."""
    return meeting.alone + FURTHER * (meeting.rounds - 1) * (meeting.place == "x")


def together(works: Iterable[Work]) -> Work:
    """Many works as one, each attribute an array with a number for each of them."""
    return Work(*np.array([tuple(w) for w in works], dtype=float).T)


def _piece(p: Problem, s: Shape, rows: int) -> int:
    """Contiguous bytes that so many rows of threads read at once, or soon one after the other: rows of columns that they cover
    join, and so do the rows of lanes that walk one each.
    """
    if p.rows and s.flat:
        return min(s.x * s.each, p.beside) * p.run * p.itemsize
    if not p.rows and not s.flat and s.x * s.vector >= p.run:
        return p.run * min(rows, p.inner or p.length) * p.itemsize
    return max(1, min(s.x * s.width(p), p.run * p.itemsize))


def _scattered(p: Problem, s: Shape) -> float:
    """How far the pieces that threads read at once are from whole lines."""
    if p.rows and s.x >= 32:
        return 0.0
    return max(0.0, (LINE - _piece(p, s, s.y)) / LINE)


def _misfit(p: Problem, s: Shape) -> float:
    """What is read in vain at the ends of pieces of columns that do not begin where lines do, over the pieces' length."""
    if (p.rows and not s.flat) or p.run * p.itemsize % LINE == 0:
        return 0.0
    return min(1.0, LINE / 2 / _piece(p, s, s.y))


def _sectors(p: Problem, s: Shape) -> float:
    """Bytes of the sectors that pieces touch, over the bytes of the pieces."""
    whole, piece = p.run * p.itemsize % SECTOR == 0, _piece(p, s, s.y)
    if whole and piece <= SECTOR:
        return SECTOR / piece
    return 1.0 if whole and piece % SECTOR == 0 else (piece + SECTOR - p.itemsize) / piece


def _lines(p: Problem, s: Shape, width: int, warp: int) -> int:
    """Lines that one access of a warp touches."""
    beside = min(warp, s.x)
    if s.staged:
        return -(-warp * width // LINE)
    if p.rows and s.flat:
        return min(beside, -(-beside * s.each * p.run * p.itemsize // LINE))
    rows, span = warp // beside, beside * width
    if not p.rows and p.run <= s.x * s.vector and s.x < warp:
        return -(-_piece(p, s, rows) // LINE)
    piece = max(1, min(span, p.run * p.itemsize))
    return rows * max(1, span // piece) * -(-piece // LINE)


def _left(s: Shape, warp: int) -> int:
    """Values of a column that shuffles leave."""
    return s.y >> (_halvings(s.y, warp // s.x) if s.x <= warp and warp % s.x == 0 else 0)


def _halvings(threads: int, warp: int) -> int:
    """How often shuffles of a warp halve a group of threads."""
    n = 0
    while threads >> n & 1 == 0 and 2 << n <= warp:
        n += 1
    return n
