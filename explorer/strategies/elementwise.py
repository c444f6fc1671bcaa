"""Element by element: one flat loop, 16 bytes an access, no reductions."""

from __future__ import annotations

from contextlib import suppress
from math import gcd, prod

from ..errors import ScheduleError
from ..ir.expr import Expr
from ..ir.tree import Leaf, Loop, walk
from ..schedule import Schedule
from ._steps import Builder, chain, leaves_of, own_temporaries
from .rows.form import WIDE

THREADS = 128
BESIDE, GATHERED = 8, 4
"""Elements of a flat loop for each of an array that it does not walk whole, at least.  So many times wider than those of a row
are the vectors for which such an array is read element by element."""
FEW, MOST_OF_FEW = 1 << 21, 4
"""Elements of a nest below which an access has at most so many: bias and GELU of 97 × 12289 halves took 3.36 instead of 3.55 µs
on an H200, of 101 × 3001 2.11 instead of 2.62, of 32 × 8192 1.63 instead of 1.70."""
LARGE, LARGER = 96 << 20, 256 << 20
"""Bytes from which a thread takes two accesses of each array, and from which one: blocks that read and write less at a time kept
more of the memory's pages open (H200, a copy of 2 × 64 MiB: 4 accesses 1.039 times the time of 2; of 2 × 4 GiB: 1.050 times the
time of 1)."""
ENOUGH, STEPS = 1024, 256
"""Blocks that keep every multiprocessor busy; fewer, and a thread takes one access.  Blocks of whole accesses from which on the
elements that no whole access takes get a loop of their own (100,003 hyperbolic tangents one by one: 1.54 instead of 1.79 µs)."""


def is_elementwise(schedule: Schedule, kernel: str) -> bool:
    """Whether a kernel is one perfect nest without reductions."""
    body = next(k.body for k in schedule.plan.kernels if k.id == kernel)
    nest = chain(body[0]) if len(body) == 1 else []
    statements = [schedule.plan.statement_of[leaf.statement] for node in body for leaf in leaves_of(node)]
    return bool(nest) and all(isinstance(n, Leaf) for n in nest[-1].body) and not any(s.update for s in statements)


def elementwise(schedule: Schedule, kernel: str = "", threads: int = THREADS, each: int = 0, backwards: bool = False,
                width: int = 0) -> Schedule:
    """Spread a nest without reductions over all threads of the GPU.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Which kernel (default: the first).
    threads : int
        Threads of a block.
    each : int
        Accesses of 16 bytes of one thread and array; by default as :func:`each_of` says.
    backwards : bool
        The first blocks take the last elements: what an earlier kernel read last may still be in the cache.
    width : int
        Elements of an access, at most; by default those of 16 bytes, fewer where that leaves few threads (:func:`most_lanes`).

    Returns
    -------
    Schedule
        Legal; the same schedule where the kernel is no such nest, or carries a dependence.
    """
    kernel = kernel or schedule.plan.kernels[0].id
    if not is_elementwise(schedule, kernel):
        return schedule
    nest = chain(next(k.body for k in schedule.plan.kernels if k.id == kernel)[0])
    if any(x.extent == 0 or x.role != "seq" for x in nest):
        return schedule
    each, total = each or each_of(schedule, nest), prod(x.extent for x in nest)
    most = width or most_lanes(nest)
    width, widest = gcd(vector_width(schedule, nest), most), min(whole_width(schedule, nest), most)
    several = each if total >= each * ENOUGH * threads * widest else 1
    step = threads * several * widest
    if width < widest and total >= STEPS * step:
        with suppress(ScheduleError):  # a step that this nest does not allow: one by one, then
            found = _spread(schedule, kernel, threads, several, backwards, widest, total // step * step)
            if found is not schedule and found.judgement.emittable:
                return found
    found = _spread(schedule, kernel, threads, each, backwards, width, 0)
    while width > 1 and not _in_vectors(found, kernel):  # what is narrow in memory is read beside what is wide
        narrower = _spread(schedule, kernel, threads, each, backwards, width := width // 2, 0)
        found = narrower if _in_vectors(narrower, kernel) else found
    return found


def _in_vectors(schedule: Schedule, kernel: str) -> bool:
    """Whether a kernel has a vector loop."""
    body = next(k.body for k in schedule.plan.kernels if k.id == kernel)
    return any(isinstance(n, Loop) and n.role == "vector" for n in walk(body))


def _spread(schedule: Schedule, kernel: str, threads: int, each: int, backwards: bool, width: int, whole: int) -> Schedule:
    """One flat loop over all threads; the elements from `whole` on, if it is not 0, one by one by the first blocks."""
    b = Builder(schedule)
    nest = chain(next(k.body for k in b.plan.kernels if k.id == kernel)[0])
    loop, rest = nest[0].id, ""
    if len(nest) > 1:
        b.do("coalesce", tuple(x.id for x in nest))
    own = own_temporaries(b.plan, kernel)
    if whole:
        if not all([b.attempt("contract", temporary, "register") for temporary in own]):
            return schedule
        rest = b.plan.fresh(f"{loop}.2")
        b.do("cut", loop, whole)
    lanes = part = several = ""
    if width > 1:
        lanes = b.plan.fresh(f"{loop}.v")
        b.do("split", loop, width, inner=lanes)
    if b.extent(loop) > threads:
        part = b.plan.fresh(f"{loop}.t")
        b.do("split", loop, threads, inner=part)
        if each > 1 and (whole or b.extent(loop) >= each * ENOUGH):
            several = b.plan.fresh(f"{loop}.u")
            b.do("split", loop, each, inner=several).do("reorder", (part, several))
        if backwards:
            b.attempt("reverse", loop)
        if not b.attempt("bind", loop, "block.x"):
            return schedule
    if not b.attempt("bind", part or loop, "thread.x"):
        return schedule
    if rest:
        inner = b.plan.fresh(f"{rest}.t")
        b.do("split", rest, threads, inner=inner).do("bind", rest, "block.x").do("bind", inner, "thread.x")
    for temporary in own:
        if temporary not in b.plan.buffer_of:
            b.attempt("contract", temporary, "register")
    if lanes and not b.attempt("vectorize", lanes):
        b.attempt("vectorize", lanes, gather=True)
    if several:
        b.attempt("unroll", several)
    return b.schedule


def most_lanes(nest: list[Loop]) -> int:
    """Elements of an access, at most: fewer of a narrow type where there are few, since each thread computes them in turn."""
    return WIDE if prod(x.extent for x in nest) >= FEW else MOST_OF_FEW


def each_of(schedule: Schedule, nest: list[Loop]) -> int:
    """Accesses of one thread and array: 4 of two large arrays, 2 of more, and fewer where they are very large."""
    space = prod(x.extent for x in nest)
    large = [a for a in map(schedule.plan.array_of.__getitem__, _parameters(schedule, nest)) if a.size * BESIDE > space]
    moved = sum(a.nbytes for a in large)
    return 1 if moved >= LARGER else 2 if moved >= LARGE or len(large) > 2 else 4


def _parameters(schedule: Schedule, nest: list[Loop]) -> set[str]:
    """The user's arrays that a nest reads or writes."""
    plan = schedule.plan
    used = {a.array for leaf in leaves_of(nest[-1]) for a in plan.statement_of[leaf.statement].accesses}
    return {name for name in used if plan.array_of[name].role != "temporary"}


def vector_width(schedule: Schedule, nest: list[Loop]) -> int:
    """Elements of one access: 16 bytes of the narrowest global array that the innermost loop walks, if the extents allow.

    Where all arrays are walked whole, in the order of memory, it is their size that has to allow it, else that of a row.
    """
    inner, own = nest[-1].id, _own(schedule, nest)
    sizes = [schedule.plan.array_of[name].dtype.bytes for name, index in _walked(schedule, nest) if name not in own and index
             and isinstance(index[-1], Expr) and inner in index[-1].variables()]
    extent = prod(x.extent for x in nest) if whole_width(schedule, nest) else nest[-1].extent
    return gcd(extent, WIDE // min(sizes)) if sizes else 1


def whole_width(schedule: Schedule, nest: list[Loop]) -> int:
    """Elements of 16 bytes of the narrowest global array, where all large ones are walked whole, in the order of memory; else 0.

    Those beside, a row's bias, say, are inputs, and small enough to stay in the cache.
    """
    order, extents = tuple(Expr(((x.id, 1),)) for x in nest), tuple(x.extent for x in nest)
    own, plan = _own(schedule, nest), schedule.plan
    whole = set[str]()
    for name, index in _walked(schedule, nest):
        array = plan.array_of[name]
        if name not in own and array.shape == extents and index == order:
            whole.add(name)
        elif name not in own and (array.role != "in" or array.size * BESIDE > prod(extents)):
            return 0
    if any(x.start for x in nest) or not whole:
        return 0
    widest = WIDE // min(plan.array_of[name].dtype.bytes for name in whole)
    beside = {name for name, _ in _walked(schedule, nest)} - own - whole
    return 0 if beside and gcd(nest[-1].extent, widest) * GATHERED > widest else widest


def _own(schedule: Schedule, nest: list[Loop]) -> set[str]:
    """The temporaries of the nest's kernel alone."""
    return set(own_temporaries(schedule.plan, next(k.id for _, above, k in schedule.plan.leaves if nest[-1] in above)))


def _walked(schedule: Schedule, nest: list[Loop]) -> list[tuple[str, tuple]]:
    """The arrays that the nest uses, each access with its index over the loops."""
    out = []
    for leaf in leaves_of(nest[-1]):
        at = dict(leaf.at)
        for access in schedule.plan.statement_of[leaf.statement].accesses:
            out.append((access.array, tuple(e.substitute(at) if isinstance(e, Expr) else e for e in access.index)))
    return out
