"""Long rows of a maximum and a sum of exponentials in parts: each part a row of its own, read once, then joined.

A part is short enough to stay in registers between its two passes, its sum is shifted by its own maximum (the move `rescale`),
and parts of one row go to different blocks.  So neither the length of a row nor the number of rows matters any more.
"""

from __future__ import annotations

from ..errors import ScheduleError
from ..gpu.spec import Gpu
from ..ir.program import Statement
from ..ir.tree import Leaf, Loop
from ..schedule import Schedule
from ..transforms.rescale import exponential
from ._steps import Builder, chain
from .rows import rows
from .stitching.moves import chain_body

PART_BYTES = 65536
"""Bytes of a part at most: 256 threads hold so much in 64 registers each."""
BLOCKS_PER_SM = 4
"""Parts of all rows together that give each multiprocessor enough blocks."""
LEAST = 4096
"""Elements of a part at least, where the row has so many."""


def split_rows(schedule: Schedule, kernel: str, gpu: Gpu) -> Schedule:
    """Reduce rows to a maximum and a sum of exponentials in parts, with a launch that joins them.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Parallel loops around a maximum over a row and the sum of exponentials shifted by it.
    gpu : Gpu

    Returns
    -------
    Schedule
        Legal; the same where the kernel is not of that form, or a row is one part.
    """
    b = Builder(schedule)
    holder = chain_body(b, kernel)
    nests = [n for n in holder(b) if isinstance(n, Loop)]
    pair = [_only(b, n) for n in nests]
    if len(pair) != 2 or pair[0] is None or pair[1] is None or not online(pair[0], pair[1]):
        return schedule
    outer = _above(b, nests[0].id)
    if not outer:
        return schedule
    try:
        length = _part(b, nests, outer, pair[1], gpu)
        return _made(b, kernel, nests, pair[0], pair[1], outer, length, gpu) if length else schedule
    except ScheduleError:
        return schedule


def online(peak: Statement, total: Statement) -> bool:
    """Whether one statement sums exponentials shifted by the maximum that the other makes."""
    shifted = exponential(total) if total.update == "sum" else None
    return peak.update == "max" and shifted is not None and total.reads[shifted[1]].array == peak.target.array


def _made(b: Builder, kernel: str, nests: list[Loop], peak: Statement, total: Statement, outer: list[str], length: int,
          gpu: Gpu) -> Schedule:
    first, second = (n.id for n in nests)
    for nest in nests:
        names = tuple(x.id for x in chain(nest))
        if len(names) > 1:
            b.do("coalesce", names)
        b.do("split", nest.id, length, inner=b.plan.fresh(f"{nest.id}.q"))
    b.do("rfactor", peak.name, first).do("rescale", total.name, second)
    body = [n.id for n in (b.plan.loops[outer[-1]].body)]
    for node in reversed([n for n in body[: body.index(second)] if n != first]):
        b.do("sequence", node, after=second)
    b.do("fuse", first, second)
    for loop in reversed(outer):
        b.do("distribute", loop, after=b.plan.loops[loop].body[0].id)
    b.do("launch", kernel, after=outer[0])
    joining = b.plan.kernels[[k.id for k in b.plan.kernels].index(kernel) + 1].id
    b.do("bind", first, "block.y")
    return rows(rows(b.schedule, kernel, gpu=gpu), joining, gpu=gpu)


def _part(b: Builder, nests: list[Loop], outer: list[str], total: Statement, gpu: Gpu) -> int:
    """Elements of a part: few enough for registers, enough parts for all multiprocessors; 0 where a row is one part."""
    row, many = 1, 1
    for x in chain(nests[0]):
        row *= x.extent
    for name in outer:
        many *= b.extent(name)
    size = min(b.plan.array_of[r.array].dtype.bytes for r in total.reads if r.index)
    fewest = parts_of(many, row, size, gpu)
    if fewest < 2:
        return 0
    wanted = -(-row // fewest)  # the threads' shares of a part come out even where it is a power of two
    return min(1 << (wanted - 1).bit_length(), PART_BYTES // size)


def parts_of(rows: int, length: int, itemsize: int, gpu: Gpu) -> int:
    """Parts of a row at least: short enough for registers, enough of them for all multiprocessors; 1 where one is right.

    Where half of the multiprocessors have a row of their own, another launch costs more than the others' idleness.
    """
    fewest = -(-length * itemsize // PART_BYTES)
    few = 2 * rows < gpu.multiprocessors
    return max(fewest, min(-(-BLOCKS_PER_SM * gpu.multiprocessors // rows), max(1, length // LEAST))) if few else fewest


def _above(b: Builder, node: str) -> list[str]:
    """The loops around a node, outermost first."""
    hit = b.plan.find(node)
    return [x.id for x in hit[1]] if hit else []


def _only(b: Builder, nest: Loop) -> Statement | None:
    """The one statement of a perfect nest."""
    body = chain(nest)[-1].body
    return b.plan.statement_of[body[0].statement] if len(body) == 1 and isinstance(body[0], Leaf) else None
