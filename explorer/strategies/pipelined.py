"""Pipeline every copy of a loop that can be: tiles in shared memory, and fragments of them in registers."""

from __future__ import annotations

from ..errors import TransformError, noun, spoken
from ..ir.plan import Plan
from ..ir.tree import Loop, leaves
from ..schedule import Schedule
from ..transforms.pipeline import copy_nests
from ._steps import Builder


@spoken(TransformError, 'pipelined(s, "k")')
def pipelined(schedule: Schedule, loop: str, stages: int = 3, register_stages: int = 2) -> Schedule:
    """Pipeline all buffers of a loop that can be, over both levels of memory.

    The rules are those of :meth:`~explorer.schedule.Schedule.pipeline_verdicts`.  Loops in its body whose copies are in registers
    are pipelined, too, by plain copies: their first copies are made by the last iterations of the step before, if that is
    possible (``pipeline(…, across=loop)``), else again in each step.

    Before::

        for k in 0…8
            A_s[…] = A[…, 32*k + …]
            for k.i in 0…2
                A_r[…] = A_s[…, k.i]
                acc += A_r[…]

    After ``pipelined(s, 'k')``::

        for k.pro in 0…2
            async A_s[k.pro % 3, …] = A[…, 32*k.pro + …]
            commit
        wait 1
        A_r[0, …] = A_s[0, …, 0]
        for k in 0…8
            async A_s[(k + 2) % 3, …] = A[…, 32*k + 64 + …]     # where k < 6
            commit
            A_r[1, …] = A_s[k % 3, …, 1]
            acc += A_r[0, …]
            wait 1
            A_r[0, …] = A_s[(k + 1) % 3, …, 0]                  # where k < 7
            acc += A_r[1, …]

    Parameters
    ----------
    schedule : Schedule
    loop : str
        The loop over tiles.
    stages : int
        Of buffers in shared memory, at least 2.
    register_stages : int
        Of buffers in registers; 1 leaves them.

    Returns
    -------
    Schedule
        Legal.  What could not be pipelined stays as it was: ``schedule.pipeline_verdicts(loop)`` says why.

    Raises
    ------
    TransformError
        If no buffer of the loop can be pipelined, with the verdict on each.

    References
    ----------
    Huang et al., "ALCOP: Automatic Load-Compute Pipelining in Deep Learning Compiler for AI-GPUs", MLSys 2023, section 3.
    """
    if not isinstance(schedule, Schedule):
        raise TransformError(f"pipelined takes a schedule, not {noun(schedule)}", hint='pipelined(s, "k")')
    for name, value, least in (("stages", stages, 2), ("register_stages", register_stages, 1)):
        if type(value) is not int or value < least:
            raise TransformError(f"{name}={value!r} is not a whole number of at least {least}")
    verdicts = schedule.pipeline_verdicts(loop)
    shared = tuple(dict.fromkeys(v.filled_by for v in verdicts if v.verdict and v.space == "shared"))
    b = Builder(schedule)
    outer, where = b.plan.loops[loop], b.schedule
    if shared:
        b.do("pipeline", loop, stages, copies=shared)
    for inner in [n.id for n in outer.body if isinstance(n, Loop)] if register_stages > 1 else []:
        if copies := _in_registers(b.plan, inner):
            how = {"copies": copies, "asynchronous": False}
            if not b.attempt("pipeline", inner, register_stages, across=loop, **how):
                b.attempt("pipeline", inner, register_stages, **how)
    if b.schedule is where:
        raise TransformError(f"no buffer of {loop} can be pipelined", why=repr(verdicts))
    return b.schedule


def _in_registers(plan: Plan, name: str) -> tuple[str, ...]:
    """Copies into registers for each iteration of a loop."""
    found = plan.loops.get(name)
    inside = leaves(copy_nests(plan, found)) if found is not None and found.role in ("seq", "unroll") else ()
    return tuple(dict.fromkeys(leaf.statement for leaf, _ in inside
                               if (view := leaf.view(1)) is not None and plan.buffer_of[view.buffer].space == "register"))
