"""One check for all elements of a tile in registers, instead of one for each: a mask costs only where the tile has an edge.

Each thread of a tile of a tensor instruction has tens of elements, each with its own row and column, and so a comparison for each
where some may be masked: behind a diagonal, or beyond the last key.  Of most tiles none is.

Before::

    #pragma unroll
    for r in 0…64: if (128*j + 8*(r/4) + … <= 128*i + tx/4 + …) peak[…] = max(peak[…], dot[r]);

After::

    if (128*j + 127 <= 128*i)
      #pragma unroll
      for r in 0…64: peak[…] = max(peak[…], dot[r]);
    else
      #pragma unroll
      for r in 0…64: if (128*j + 8*(r/4) + … <= 128*i + tx/4 + …) peak[…] = max(peak[…], dot[r]);

The check is the same for all threads of a block, and a loop around the tile is in it: most iterations have no edge.  What stands
between two such tiles is written twice with them, and so is a product right behind: values that go from one to the other stay as
they are packed.  Those that are narrower than a register and go further, past a barrier, are packed at the branch's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...ir.expr import Expr, Ranges, const
from ...ir.instructions import stays_in_flight
from ..conditions import NEVER, Condition, anyone, condition
from ..lower import Context
from ..nodes import Declare, Do, For, If, Multiply, Node, Ref
from ..sites import Store
from ..traverse import map_bodies, refs, walk

FEWEST, MOST = 16, 2
"""Elements of a thread from which on the tile is written twice, and different checks that may stand before it."""
WORD_BYTES = 4
"""Of a register."""


def whole_tiles(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with what masks registers written twice, without the conditions and with them."""
    return _body(body, (), context)


def _body(nodes: tuple[Node, ...], above: tuple[For, ...], context: Context) -> tuple[Node, ...]:
    """The nodes, of which those from the first masked tile to the last one with the same check stand under one ``if``."""
    checks = [_checks(n, above, context) if isinstance(n, For) and _in_registers(n) else () for n in nodes]
    out, position = list[Node](), 0
    while position < len(nodes):
        node, check = nodes[position], checks[position]
        if check:
            end = _end(nodes, checks, position)
            declared = tuple(n for n in nodes[position:end] if isinstance(n, Declare))
            tiles = tuple(n for n in nodes[position:end] if not isinstance(n, Declare))
            whole = _unmasked(tiles)
            out += (*declared, If(check, whole, tiles, settled=True, packed=_packed(whole, nodes[end:])))
            position = end
            continue
        inner = (*above, node) if isinstance(node, For) else above
        out.append(map_bodies(node, lambda below, inner=inner: _body(below, inner, context)))
        position += 1
    return tuple(out)


def _packed(whole: tuple[Node, ...], behind: tuple[Node, ...]) -> tuple[Store, ...]:
    """Arrays of computed values narrower than a register that tiles write as a whole, for a use behind the branch."""
    used = {r.store for n in walk(behind) for r in refs(n)}
    written = dict.fromkeys(n.target.store for n in walk(whole) if isinstance(n, Do) and isinstance(n.target, Ref))
    narrow = (s for s in written if s.dtype.bytes < WORD_BYTES and s.shape[-1:] and s.shape[-1] * s.dtype.bytes % WORD_BYTES == 0)
    return tuple(s for s in narrow if s in used)


def _end(nodes: Sequence[Node], checks: Sequence[tuple[Condition, ...]], first: int) -> int:
    """Behind the last masked tile with the first one's check, and products that take it; all between is of registers."""
    end = first + 1
    for n in range(first + 1, len(nodes)):
        if not _in_registers(nodes[n]):
            break
        if checks[n] == checks[first] or (isinstance(nodes[n], Multiply) and n == end):
            end = n + 1
    return end


def _in_registers(node: Node) -> bool:
    """Whether a node is loops that are unrolled as a whole, and nothing in it touches memory but a tensor instruction."""
    for n in walk((node,)):
        if isinstance(n, For):
            known = n.role == "unroll" and not n.limits
        elif isinstance(n, If):
            known = not n.otherwise
        elif isinstance(n, Declare):
            known = isinstance(n.what, Store) and n.what.space == "register"
        elif isinstance(n, Multiply):
            known = not stays_in_flight(n.site.leaf.mechanism)
        else:
            known = isinstance(n, Do) and all(r.store.space == "register" for r in refs(n))
        if not known:
            return False
    return True


def _checks(loop: For, above: tuple[For, ...], context: Context) -> tuple[Condition, ...]:
    """What holds only where all conditions in a loop do, the same for all threads; empty where that is of no use."""
    inside = {n.var: (n.start, n.start + n.extent - 1) for n in walk((loop,)) if isinstance(n, For)}
    asked = dict.fromkeys(_conditions((loop,)))
    if _elements((loop,)) < FEWEST or any(c.equality for c in asked):
        return ()
    around = {x.var: (x.start, x.start + x.extent - 1) for x in above}
    ranges = context.low.ranges((), boxes=False) | around | inside
    kept = ranges.keys() - inside.keys() - context.low.thread_variables
    found = dict.fromkeys(condition(_lowest(c.expr, kept, ranges), False, ranges) for c in asked)
    checks = tuple(c for c in found if c is not None)
    decided = any(c.variables() & around.keys() for c in checks) and may_hold(checks, ranges)
    return checks if decided and len(checks) <= MOST else ()


def may_hold(checks: Sequence[Condition], ranges: Ranges) -> bool:
    """Whether some values of the variables may make all checks hold: ``i >= 1`` and ``4*i + j < 4``, with j >= 0, never do."""
    return NEVER not in anyone(checks, frozenset[str]().union(*(c.variables() for c in checks)), ranges)


def _elements(nodes: Sequence[Node], around: int = 1) -> int:
    """How many masked elements a thread has at most in one place."""
    most = 0
    for n in nodes:
        if isinstance(n, For):
            most = max(most, _elements(n.body, around * n.extent))
        elif isinstance(n, If) or (isinstance(n, Do) and n.inside):
            most = max(most, around)
    return most


def _conditions(nodes: tuple[Node, ...]) -> Iterator[Condition]:
    for n in walk(nodes):
        if isinstance(n, If):
            yield from n.conditions
        elif isinstance(n, Do):
            yield from n.inside


def _lowest(e: Expr, kept: set[str], ranges: Ranges) -> Expr:
    """The least value over all variables that are not kept."""
    out = const(e.const)
    for term in e.terms:
        part = Expr((term,))
        out += part if part.variables() <= kept else const(part.interval(ranges)[0])
    return out


def _unmasked(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes without their conditions."""
    out = list[Node]()
    for n in nodes:
        if isinstance(n, If):
            out += _unmasked(n.body)
        else:
            out.append(replace(n, inside=()) if isinstance(n, Do) else map_bodies(n, _unmasked))
    return tuple(out)
