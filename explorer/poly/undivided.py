"""Plans with the parts of divided loops put together: the same instances, places and cells in the same order, in fewer loops.

Two questions are about order alone: *order* asks which of two instances runs first, *flow* which write of a cell is the last
one before a read.  Neither sees that a loop was divided.  So both are asked of the undivided plan, whose answer is there
already where the loop was divided just now, and which has fewer loops where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..ir.expr import Ranges, quotient, rejoin, remainder, var
from ..ir.memo import per_program
from ..ir.plan import Buffer, Plan
from ..ir.tree import Loop, Node, kept, leaves, retime
from .parts_joined import joined


@per_program(512)
def undivided(plan: Plan) -> Plan:
    """The plan with parts of a loop joined to one, and low digits to their high ones; the plan itself where there are none.

    Where *order* and *flow* refuse nothing of the undivided plan, they refuse nothing of this one:

    - ``w`` in ``0…f`` within ``v`` is the loop ``u = f*v + w``: ``v = u // f`` and ``w = u % f`` are one to one, and ``(v, w)``
      before ``(v', w')`` is ``u < u'``.  Both loops run in order, and nothing stands between them, so any two instances keep
      their order, their places and their cells.
    - A loop behind another one that runs the same body in the iterations that follow (a cut) is the rest of that loop: instances
      of both in the order of the text are in that of the iterations.  Buffers of its own are those of the first: a value that
      is read in the iteration that writes it is read in the same part.
    - A buffer in the body of ``v`` has one life for each ``v`` instead of one for each ``u``: cells live longer.  A value that
      is read in the iteration of ``u`` that writes it is so still, and writes in other iterations do not come between.

    Before::

        for k in 0…4
            for k.i in 0…256
                S(256*k + k.i)

    After::

        for k in 0…1024
            S(k)
    """
    if not _is_scoped(plan):
        return plan
    made = _Joins(plan.buffer_of)
    kernels = tuple(k if (body := _joined(k.body, {}, made)) is k.body else replace(k, body=body) for k in plan.kernels)
    if all(a is b for a, b in zip(kernels, plan.kernels, strict=True)):
        return plan
    buffers = (b for b in plan.buffers if b.name not in made.twins)
    return replace(plan, kernels=kernels, buffers=tuple(replace(b, scope=made.inner.get(b.scope, b.scope)) for b in buffers))


def _is_scoped(plan: Plan) -> bool:
    """Whether each buffer is used within its scope alone; other plans are judged as they are."""
    scopes = {b.name: b.scope for b in plan.buffers if b.scope}
    return all(scope is None or any(x.id == scope for x in above)
               for leaf, above, _ in plan.leaves for _, v in leaf.views for scope in (scopes.get(v.buffer),))


@dataclass
class _Joins:
    """What was joined: inner loops to those that they were a digit of, and buffers of second parts to those of the first."""

    buffers: dict[str, Buffer]
    inner: dict[str, str] = field(default_factory=dict)
    twins: dict[str, str] = field(default_factory=dict)


def _joined(nodes: tuple[Node, ...], scope: Ranges, made: _Joins) -> tuple[Node, ...]:
    """The nodes with digits and parts joined, the same tuple where there are none."""
    out: list[Node] = []
    for node in nodes:
        now, before = _whole(node, scope, made) if isinstance(node, Loop) else node, out[-1] if out else None
        both = joined(before, now, scope, made.buffers) if isinstance(now, Loop) and isinstance(before, Loop) else None
        if both is not None:
            out[-1] = both[0]
            made.twins |= both[1]
        else:
            out.append(now)
    return kept(nodes, out)


def _whole(loop: Loop, scope: Ranges, made: _Joins) -> Loop:
    """One loop, and all below it."""
    loop = loop.around(_joined(loop.body, {**scope, loop.id: loop.range}, made))
    while len(loop.body) == 1 and isinstance(low := loop.body[0], Loop) and _is_low_digit(loop, low):
        made.inner |= {name: loop.id for name, of in made.inner.items() if of == low.id} | {low.id: loop.id}
        size, whole = low.extent, var(loop.id)
        first, extent = loop.start * size, loop.extent * size
        forward = {loop.id: quotient(whole, size), low.id: remainder(whole, size)}
        inside = {**scope, loop.id: (first, first + extent - 1)}
        body = retime(low.body, forward, {loop.id: whole * size + var(low.id)}, inside)
        loop = replace(loop, start=first, extent=extent, body=body)
    return loop


def _is_low_digit(high: Loop, low: Loop) -> bool:
    """Whether both run in order, and in each leaf the inner loop's values are a digit below the outer one's."""
    if any(x.role != "seq" or x.trimmed or not x.extent for x in (high, low)) or low.start:
        return False
    for leaf, _ in leaves(low.body):
        when = dict(leaf.when)
        digits = when[high.id] * low.extent + when[low.id]
        if len(rejoin(digits).terms) == len(digits.terms):
            return False
    return True
