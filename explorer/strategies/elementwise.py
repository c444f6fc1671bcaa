"""Element by element: one flat loop, 16 bytes an access, no reductions."""

from __future__ import annotations

from contextlib import suppress
from math import gcd, prod
from typing import TypeVar

from ..errors import ScheduleError
from ..ir.expr import Expr
from ..ir.tree import Leaf, Loop
from ..schedule import Schedule
from ._steps import Builder, chain, leaves_of, own_temporaries
from .rows.form import WIDE

S = TypeVar("S", bound=Schedule)
THREADS = 128
ENOUGH, STEPS = 1024, 32
"""Blocks that keep every multiprocessor busy; fewer, and a thread takes one access.  Blocks of whole accesses from which on the
elements that no whole access takes get a loop of their own."""


def is_elementwise(schedule: Schedule, kernel: str) -> bool:
    """Whether a kernel is one perfect nest without reductions."""
    body = next(k.body for k in schedule.plan.kernels if k.id == kernel)
    nest = chain(body[0]) if len(body) == 1 else []
    statements = [schedule.plan.statement_of[leaf.statement] for node in body for leaf in leaves_of(node)]
    return bool(nest) and all(isinstance(n, Leaf) for n in nest[-1].body) and not any(s.update for s in statements)


def elementwise(schedule: S, kernel: str = "", threads: int = THREADS, each: int = 0, backwards: bool = False) -> S:
    """Spread a nest without reductions over all threads of the GPU.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Which kernel (default: the first).
    threads : int
        Threads of a block.
    each : int
        Accesses of 16 bytes of one thread and array; by default 4, or 2 where more than four arrays keep as much in flight.
    backwards : bool
        The first blocks take the last elements: what an earlier kernel read last may still be in the cache.

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
    width, widest = vector_width(schedule, nest), whole_width(schedule, nest)
    several = each if total >= each * ENOUGH * threads * widest else 1
    step = threads * several * widest
    if width < widest and total >= STEPS * step:
        with suppress(ScheduleError):  # a step that this nest does not allow: one by one, then
            found = _spread(schedule, kernel, threads, several, backwards, widest, total // step * step)
            if found is not schedule and found.judgement.emittable:
                return found
    return _spread(schedule, kernel, threads, each, backwards, width, 0)


def _spread(schedule: S, kernel: str, threads: int, each: int, backwards: bool, width: int, whole: int) -> S:
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
    if lanes:
        b.attempt("vectorize", lanes)
    if several:
        b.attempt("unroll", several)
    return b.schedule


def each_of(schedule: Schedule, nest: list[Loop]) -> int:
    """Accesses of one thread and array, by how many arrays there are."""
    return 4 if len(_parameters(schedule, nest)) <= 4 else 2


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
    """Elements of 16 bytes of the narrowest global array, where all of them are walked whole, in the order of memory; else 0."""
    order, extents = tuple(Expr(((x.id, 1),)) for x in nest), tuple(x.extent for x in nest)
    own, plan = _own(schedule, nest), schedule.plan
    walked = [(plan.array_of[name], index) for name, index in _walked(schedule, nest) if name not in own]
    if any(x.start for x in nest) or not walked or any(a.shape != extents or index != order for a, index in walked):
        return 0
    return WIDE // min(a.dtype.bytes for a, _ in walked)


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
