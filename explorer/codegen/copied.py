"""Copies of a part of an array in vectors, some of which may lie beyond it: that is asked once for all of a block's."""

from __future__ import annotations

from dataclasses import replace

from ..ir.expr import Expr
from ..ir.inequality import linear_in
from ..ir.tree import Leaf, Loop
from . import vector
from .access import inside_conditions
from .batch import Writer, unrolled
from .guards import NEVER, Condition, guard_text
from .item import Item
from .lower import Site
from .printer import Block, Lines, Out
from .shorten import shortened


def copied(w: Writer, loop: Loop) -> list[Item]:
    """The piece of an unrolled loop over such copies; none where it is not one, or no vector lies beyond.

    Asked one by one, each load waits for the one before: 1,760 rows of 38 floats took 3.7 instead of 1.5 µs on an H200.
    """
    found = _copy(w, loop)
    if found is None:
        return []
    lanes, site = found
    name = w.low.variable[lanes.id]
    (inside,) = inside_conditions(site) or (NEVER,)
    if inside == NEVER:
        return []
    apart, first = vector.partial(w.low, site, lanes), {name: Expr((), lanes.start)}
    whole = _all(w, site, Condition(linear_in(inside.expr, name)), (loop, lanes))
    texts = [vector.Lanes(w.low, lanes, [s], w.library, w.aligned, w.asynchronous).move(s)
             for s in (replace(site, statement=replace(site.statement, inside=())), site)]
    if whole is None or whole.expr.interval(site.ranges)[1] < 0 or apart is None or apart.each or not all(texts):
        return []

    def nest(text: list[str]) -> Out:
        out: Out = Lines(tuple(shortened(w.low, site, [*text[:-1], f"{text[-1]}, {lanes.id}"], first)), (lanes.id, site.leaf.id))
        guard = guard_text(apart.some, site.around)
        counter = w.low.variable[loop.id]
        header = f"for (int {counter} = {loop.start}; {counter} < {loop.start + loop.extent}; ++{counter})"
        return Block(header, (Block(f"if ({guard})", (out,)) if guard else out,), (loop.id,), ("#pragma unroll",), loop.id)

    plain, within = map(nest, texts)
    return [Item(Block(f"if ({guard_text((whole,), site.around)})", (plain,), otherwise=(within,)))]


def _copy(w: Writer, loop: Loop) -> tuple[Loop, Site] | None:
    """The vector loop and the copy that an unrolled loop holds, one in the other."""
    node: Loop | Leaf = loop
    around: list[str] = []
    while isinstance(node, Loop) and len(node.body) == 1 and isinstance(node.body[0], (Loop, Leaf)):
        around.append(node.id)
        last, node = node, node.body[0]
        if isinstance(node, Leaf):
            site = w.sites[node.id]
            simple = last.role == "vector" and site.statement.origin == "copy" and len(site.statement.inside) == 1
            apart = any(parent in around for parent, _ in w.before)
            return (last, site) if simple and unrolled(w, loop) and node.mechanism == "plain" and not apart else None
        if w.low.is_counter(node) and node.role != "vector":
            return None
    return None


def _all(w: Writer, site: Site, inside: Condition, loops: tuple[Loop, ...]) -> Condition | None:
    """When a condition holds in all iterations and threads; None where it is not linear in one of them."""
    threads = [x for x in site.loops if x.is_thread]
    expr = inside.expr
    for x in (*loops, *threads):
        name = w.low.variable[x.id]
        step = expr.coefficient(name)
        expr = expr - Expr(((name, step),)) + min(step * x.start, step * (x.start + x.extent - 1))
        if name in expr.variables():
            return None
    return Condition(expr)
