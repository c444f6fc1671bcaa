"""Rows: a chain of loops over one row of an array, with reductions between them, each row read once and written once.

Softmax, layer normalisation and their like are memory-bound chains of row loops (FusionStitching, Zheng et al., ASPLOS 2022,
"thread-local" and "block" composition; the online and register-resident forms are common knowledge since Apex).  The row
belongs to a group of threads: a part of a warp, a warp, or a block.  What several loops read stays in packed registers
between them, reductions are collected by warp shuffles, accesses are 16 bytes wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from typing import TypeVar

from ..gpu.spec import Gpu, default_gpu
from ..ir.expr import Expr
from ..ir.tree import Leaf, Loop
from ..schedule import Schedule
from ._steps import Builder, chain, leaves_of, own_temporaries

S = TypeVar("S", bound=Schedule)
WIDE = 16
"""Bytes of the widest access of one thread (PTX ISA, "ld": up to .v4.b32)."""
BLOCK = 256
"""Threads of a block that holds several rows."""
UNROLL = 16
"""Accesses of one thread in a row loop that are written out."""
RESERVED = 2048
"""Bytes of shared memory that rows leave to the reductions."""
REGISTERS = 128
"""Words of a row that one thread may keep; beyond, the row lies in shared memory or is read again."""
WORKING = 32
"""Registers that a thread needs beside the row (of those that a block of so many threads leaves to each)."""


@dataclass(frozen=True)
class RowForm:
    """Parallel loops around a body of statements and row loops.

    Attributes
    ----------
    kernel : str
    outer : tuple of str
        The parallel loops, outermost first; the innermost may be bound to ``block.y`` already.
    rows : tuple of tuple of str
        The perfect nests in the body, in order; each is one loop once coalesced.
    extent : int
        Elements of a row.
    """

    kernel: str
    outer: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    extent: int


def row_form(schedule: Schedule, kernel: str) -> RowForm | None:
    """The form of a kernel as written, or None where its body is not rows of one extent."""
    body = next(k.body for k in schedule.plan.kernels if k.id == kernel)
    outer: list[Loop] = []
    while len(body) == 1 and isinstance(body[0], Loop) and not _is_row(schedule, body[0]):
        outer.append(body[0])
        body = body[0].body
    nests = [chain(node) for node in body if isinstance(node, Loop)]
    if not nests or any(isinstance(n, Loop) for nest in nests for n in nest[-1].body):
        return None
    extents = {_size(nest) for nest in nests}
    if len(extents) != 1 or any(loop.role not in ("seq", "block.y") for loop in outer):
        return None
    if 2 * _largest(schedule, kernel, nests) < _size(outer) * max(extents):
        return None  # every element is used again and again: tiles are wanted, not rows
    return RowForm(kernel, tuple(x.id for x in outer), tuple(tuple(x.id for x in nest) for nest in nests), extents.pop())


def _largest(schedule: Schedule, kernel: str, nests: list[list[Loop]]) -> int:
    """Elements of the largest array in global memory that the rows use."""
    plan, own = schedule.plan, set(own_temporaries(schedule.plan, kernel))
    used = {a.array for nest in nests for leaf in leaves_of(nest[0]) for a in plan.statement_of[leaf.statement].accesses}
    return max((plan.array_of[n].size for n in used if n not in own), default=0)


def _size(nest: list[Loop]) -> int:
    total = 1
    for loop in nest:
        total *= loop.extent
    return total


def _is_row(schedule: Schedule, node: Loop) -> bool:
    """Whether a loop with one body, alone, reduces or is the contiguous one: then it is no outer loop."""
    return any(schedule.plan.statement_of[leaf.statement].update for leaf in leaves_of(node)) and len(chain(node)) == 1 and all(
        isinstance(n, Leaf) for n in node.body)


def vector_width(schedule: Schedule, form: RowForm) -> int:
    """Elements of one access: 16 bytes of the narrowest array that is contiguous along the rows, if the rows allow."""
    sizes = [schedule.plan.array_of[name].dtype.bytes for name in _contiguous(schedule, form)]
    return gcd(form.extent, WIDE // min(sizes)) if sizes else 1


def _contiguous(schedule: Schedule, form: RowForm) -> list[str]:
    """Arrays in global memory that some row loop walks element by element."""
    found, own = {}, set(own_temporaries(schedule.plan, form.kernel))
    for nest in form.rows:
        inner = nest[-1]
        for leaf, above, _ in schedule.plan.leaves:
            if above and above[-1].id == inner:
                statement, at = schedule.plan.statement_of[leaf.statement], dict(leaf.at)
                for access in statement.accesses:
                    last = access.index[-1] if access.index else None
                    if (isinstance(last, Expr) and access.array not in own
                            and (last.substitute(at) - Expr(((inner, 1),))).variables().isdisjoint({inner})):
                        found[access.array] = None
    return list(found)


def group_size(extent: int, vector: int) -> int:
    """Threads for one row: 2 to 4 accesses each up to 1,024, up to 8 beyond, and as few idle threads as possible.

    Few accesses for each thread keep many rows in flight; where a row needs more than a warp, a block's barrier costs more than
    some accesses.  Measured on an H200 for f16 rows of 64 to 32,000 elements.
    """
    pieces = -(-extent // vector)
    wanted = 2 if pieces <= 128 else 4 if pieces <= 1024 else 8
    best, least = 1, float("inf")
    for exponent in range(11):
        size = 1 << exponent
        each = -(-pieces // size)
        idle = size * each / pieces
        off = max(wanted / each, each / wanted)
        cost = idle * idle * (off if off > 1.6 else 1.0) * (1.1 if size > 512 else 1.0)
        if cost <= least:
            best, least = size, cost
    return best


def kept_words(threads: int, gpu: Gpu) -> int:
    """Words of rows that one of so many threads of a block may keep in registers."""
    return min(REGISTERS, gpu.registers_per_sm // threads - WORKING)


def rows(schedule: S, kernel: str = "", threads: int | None = None, vector: int | None = None,
         how: Mapping[str, str] | None = None, gpu: Gpu | None = None, block: int = BLOCK, keep: str | None = None) -> S:
    """Give every row to a group of threads that reads it once.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Which kernel (default: the first).
    threads : int, optional
        Threads for one row; by default by the row's length.
    vector : int, optional
        Elements of one access; by default 16 bytes where the rows allow it.
    how : mapping of str to str, optional
        Temporary to ``"register"``, ``"shuffle"`` or ``"shared"``: how a result is collected, or where the temporary lives.  By
        default shuffles and registers.  What is named must be possible.
    gpu : Gpu, optional
        By default the H200: its registers and shared memory hold the rows.
    block : int
        Threads of a block that holds several rows, side by side; a row of more than a warp has a block for itself.
    keep : str, optional
        Where what several loops read of a row lies between them: ``"register"``, ``"shared"``, or ``""`` for nowhere, so that it
        is read again.  By default the first of these that holds it.

    Returns
    -------
    Schedule
        Legal; the same schedule where the kernel is no chain of rows.

    Raises
    ------
    TransformError, IllegalSchedule
        If `how` names something that is not possible.
    """
    kernel = kernel or schedule.plan.kernels[0].id
    form = row_form(schedule, kernel)
    if form is None or form.extent == 0:
        return schedule
    vector = vector or vector_width(schedule, form)
    threads = threads or group_size(form.extent, vector)
    b = Builder(schedule)
    shared = read_again(b.schedule, form)
    scope = _outer(b, form, threads, block)
    inner = [_spread(b, nest, threads, vector) for nest in form.rows]
    _store(b, scope, shared, form, threads, vector, how or {}, gpu or default_gpu(), keep)
    for loop, lanes in inner:
        if lanes:
            b.attempt("vectorize", lanes)
        if b.extent(loop) <= UNROLL:
            b.attempt("unroll", loop)
    return b.schedule


def _outer(b: Builder, form: RowForm, threads: int, block: int) -> str:
    """Bind the parallel loops; the innermost loop around a row."""
    if not form.outer:
        return ""
    free = tuple(x for x in form.outer if b.plan.loops[x].role == "seq")
    loop = free[0]
    if len(free) > 1:
        b.do("coalesce", free)
    if len(free) < len(form.outer):
        b.do("bind", loop, "block.x")
        return form.outer[-1]
    rows_per_block = max(1, block // threads) if threads <= 32 else 1
    rows_per_block = min(rows_per_block, b.extent(loop))
    if rows_per_block == 1:
        b.do("bind", loop, "block.x")
        return loop
    inner = b.plan.fresh(f"{loop}.r")
    b.do("split", loop, rows_per_block, inner=inner).do("bind", loop, "block.x").do("bind", inner, "thread.y")
    return inner


def _spread(b: Builder, nest: tuple[str, ...], threads: int, vector: int) -> tuple[str, str]:
    """Divide one row loop among the threads; its loop in time and its lanes ("" without)."""
    loop, lanes = nest[0], ""
    if len(nest) > 1:
        b.do("coalesce", nest)
    if vector > 1:
        lanes = b.plan.fresh(f"{loop}.v")
        b.do("split", loop, vector, inner=lanes)
    part = b.plan.fresh(f"{loop}.t")
    b.do("split", loop, threads, inner=part).do("bind", part, "thread.x")
    return loop, lanes


def read_again(schedule: Schedule, form: RowForm) -> list[str]:
    """Arrays that several row loops read and none writes."""
    plan, seen = schedule.plan, dict[str, set[str]]()
    made = {plan.statement_of[leaf.statement].target.array for leaf, _, k in plan.leaves if k.id == form.kernel}
    for nest in form.rows:
        for leaf in leaves_of(plan.loops[nest[0]]):
            for access in plan.statement_of[leaf.statement].reads:
                if access.array not in made and set(nest) & _moving(leaf, access.index):
                    seen.setdefault(access.array, set()).add(nest[0])
    return [name for name, nests in seen.items() if len(nests) > 1]


def _moving(leaf: Leaf, index: tuple[object, ...]) -> set[str]:
    at = dict(leaf.at)
    return {name for e in index if isinstance(e, Expr) for name in e.substitute(at).variables()}


def _store(b: Builder, scope: str, shared: list[str], form: RowForm, threads: int, vector: int, how: Mapping[str, str],
           gpu: Gpu, keep: str | None) -> None:
    """Rows that are read again into registers or shared memory, reductions collected, temporaries into registers."""
    pieces = -(-form.extent // (threads * vector)) * vector
    left = gpu.shared_bytes_per_block_optin - RESERVED if threads > gpu.warp_size else 0
    for array in shared:
        size = b.plan.array_of[array].dtype.bytes
        wide = pieces * size / 4
        space = "register" if wide <= kept_words(threads, gpu) else "shared" if 4 * wide * threads <= left else ""
        space = space if keep is None else keep
        if not scope or not space:
            continue
        if not b.attempt("stage", array, scope, space=space, vector=vector) and not b.attempt("stage", array, scope, space=space):
            continue
        left -= pieces * threads * size * (space == "shared")
    updates = [(s.target.array, s.name) for s in b.plan.program.statements if s.update and _within(b, form.kernel, s.name)]
    for array, statement in updates:
        if how.get(array) != "register":
            (b.do if array in how else b.attempt)("collect", statement, how.get(array, "shuffle"))
    results = {array for array, _ in updates}
    for array in [a for a, scheme in how.items() if a not in results and scheme == "shuffle"]:
        b.do("collect", array, "shuffle")
    for name in dict.fromkeys((*own_temporaries(b.plan, form.kernel), *(a for a in how if a not in results))):
        if name not in b.plan.buffer_of:
            chosen = name in how and name not in results
            (b.do if chosen else b.attempt)("contract", name, how[name] if chosen else "register")


def _within(b: Builder, kernel: str, statement: str) -> bool:
    hit = b.plan.resolve(statement)
    return hit is not None and hit[2].id == kernel
