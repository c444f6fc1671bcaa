"""Element-wise producers: results that are stored only to be read once are computed where they are read."""

from __future__ import annotations

from math import prod

from ..ir.plan import Plan
from ..ir.tree import Loop, walk
from ..schedule import Schedule
from ._steps import Builder, leaves_of
from .counts import additions

GROWTH = 2.0
"""Computing again may double the operations, at most."""


def chained(schedule: Schedule) -> bool:
    """Whether one nest at the top reads what another has computed."""
    plan, made = schedule.plan, set[str]()
    for node in (node for kernel in plan.kernels for node in kernel.body if isinstance(node, Loop)):
        inside = [plan.statement_of[leaf.statement] for leaf in leaves_of(node)]
        if any(a.array in made for s in inside for a in s.accesses if a.array not in plan.buffer_of):
            return True
        made |= {s.target.array for s in inside if s.update or s.reads}
    return False


def produced_in_place(schedule: Schedule, factor: float = GROWTH, but: frozenset[str] = frozenset()) -> Schedule:
    """Compute every element-wise result that one statement reads once where that statement reads it.

    Panamera calls this reduction propagation: the producer takes the loops of the reduction, roles and all.  It saves a write and
    a read of the array, and a launch.  A statement that runs more often than there are elements computes each of them again and
    again: that is done only where the operations of both, counted by their executions, do not grow beyond `factor`.

    Parameters
    ----------
    schedule : Schedule
        A program as written.
    factor : float
        So much the operations may grow.
    but : set of str
        Arrays that stay.

    Returns
    -------
    Schedule
        Legal; the same schedule where there is no such producer.
    """
    b = Builder(schedule)
    for name in (n for n in _crossing(schedule) if n not in but):
        reads = [r for s in b.plan.program.statements for r in s.reads if r.array == name]
        writes = [s for s in b.plan.program.statements if s.target.array == name]
        once = len(reads) == 1 and len(writes) == 1 and not writes[0].update and not _held(b.plan, writes[0].name, name)
        if once and _grows(b.plan, writes[0].name, name) <= factor:
            b.attempt("inline", name)
    return b.schedule


def _grows(plan: Plan, producer: str, name: str) -> float:
    """By what factor the operations of a producer and its reader grow if each execution of the reader computes the element."""
    made, used = 0, 0
    for leaf, above, _ in plan.leaves:
        statement, times = plan.statement_of[leaf.statement], prod(x.extent for x in above)
        if statement.name == producer:
            made += times
        elif any(r.array == name for r in statement.reads):
            used += times
    value = additions(plan.statement_of[producer].value)
    reader = next(s for s in plan.program.statements if any(r.array == name for r in s.reads))
    own = additions(reader.value) + bool(reader.update)
    return used * (value + own) / (made * value + used * own) if value and made * value + used * own else 1.0


def _held(plan: Plan, producer: str, name: str) -> bool:
    """Whether a result comes from a buffer and is read by another launch, which that buffer does not reach."""
    kernels = {True: set[str](), False: set[str]()}
    for leaf, _, kernel in plan.leaves:
        if leaf.statement == producer or any(r.array == name for r in plan.statement_of[leaf.statement].reads):
            kernels[leaf.statement == producer].add(kernel.id)
    return kernels[True] != kernels[False] and any(r.array in plan.buffer_of for r in plan.statement_of[producer].reads)


def _crossing(schedule: Schedule) -> tuple[str, ...]:
    """Temporaries that several nests at the top use, and that no buffer holds yet."""
    plan, nests = schedule.plan, {}
    place = {node.id: (kernel.id, n) for kernel in plan.kernels for n, top in enumerate(kernel.body)
             if isinstance(top, Loop) for node in walk((top,))}
    for leaf, _, _ in plan.leaves:
        for access in plan.statement_of[leaf.statement].accesses:
            array = plan.array_of[access.array]
            if array.role == "temporary" and array.size > 1 and leaf.id in place and array.name not in plan.buffer_of:
                nests.setdefault(access.array, set()).add(place[leaf.id])
    return tuple(name for name, found in nests.items() if len(found) > 1)
