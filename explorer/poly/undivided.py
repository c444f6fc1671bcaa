"""Plans with the parts of divided loops put together: the same instances, places and cells in the same order, in fewer loops.

Two questions are about order alone: *order* asks which of two instances runs first, *flow* which write of a cell is the last
one before a read.  Neither sees that a loop was divided.  So both are asked of the undivided plan, whose answer is there
already where the loop was divided just now, and which has fewer loops where it is not.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.expr import Ranges, quotient, rejoin, remainder, var
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.tree import Loop, Node, leaves, retime


@per_program(512)
def undivided(plan: Plan) -> Plan:
    """The plan with each loop that stands alone in another one, and is its low digit, joined to it; itself where there is none.

    Where *order* and *flow* refuse nothing of the undivided plan, they refuse nothing of this one:

    - ``w`` in ``0…f`` within ``v`` is the loop ``u = f*v + w``: ``v = u // f`` and ``w = u % f`` are one to one, and ``(v, w)``
      before ``(v', w')`` is ``u < u'``.  Both loops run in order, and nothing stands between them, so any two instances keep
      their order, their places and their cells.
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
    inner: dict[str, str] = {}
    kernels = tuple(k if (body := _joined(k.body, {}, inner)) is k.body else replace(k, body=body) for k in plan.kernels)
    if not inner:
        return plan
    buffers = tuple(replace(b, scope=inner[b.scope]) if b.scope in inner else b for b in plan.buffers)
    return replace(plan, kernels=kernels, buffers=buffers)


def _joined(nodes: tuple[Node, ...], scope: Ranges, inner: dict[str, str]) -> tuple[Node, ...]:
    """The nodes with digits joined, the same tuple where there are none; notes which loop each inner one became a part of."""
    out = tuple(_whole(n, scope, inner) if isinstance(n, Loop) else n for n in nodes)
    return out if any(a is not b for a, b in zip(out, nodes, strict=True)) else nodes


def _whole(loop: Loop, scope: Ranges, inner: dict[str, str]) -> Loop:
    """One loop, and all below it."""
    body = _joined(loop.body, {**scope, loop.id: loop.range}, inner)
    loop = loop if body is loop.body else replace(loop, body=body)
    low = loop.body[0] if len(loop.body) == 1 else None
    if not isinstance(low, Loop) or not _is_low_digit(loop, low):
        return loop
    inner |= {name: loop.id for name, of in inner.items() if of == low.id} | {low.id: loop.id}
    size, whole = low.extent, var(loop.id)
    first, extent = loop.start * size, loop.extent * size
    forward = {loop.id: quotient(whole, size), low.id: remainder(whole, size)}
    inside = {**scope, loop.id: (first, first + extent - 1)}
    return replace(loop, start=first, extent=extent, body=retime(low.body, forward, {loop.id: whole * size + var(low.id)}, inside))


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
