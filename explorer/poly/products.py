"""Products in flight: is every one complete before its accumulator is used, and before what it reads is written again?

A warpgroup's product (``wgmma.mma_async``) reads its factors, in shared memory or the left one in registers, and reads and writes
its accumulator, at any moment up to a wait that lets it through.  Products are counted as groups of copies are
(:mod:`~explorer.poly.groups`), each a group of its own, so that the questions are exact:

- another access of an element of its accumulator, unless by a product of the same shape, which the hardware keeps in order
  (PTX ISA, "wgmma.mma_async", "wgmma.fence"), comes after a wait that lets it through;
- so does every later write of an element of its factors.  Where another thread writes, a barrier stands behind that wait
  (:mod:`~explorer.poly.barriers`).
"""

from __future__ import annotations

from ..ir.finding import Finding
from ..ir.instructions import Wgmma, instruction, stays_in_flight
from ..ir.plan import Plan
from ..ir.tree import Kernel, Loop, Sync, walk
from .asynchronous import Points, StillOpen
from .decide import decide
from .events import Event, earlier, events
from .flow_text import cell_text, element, instance
from .groups import PRODUCTS, closed_before, closed_in, landings, path_to


def check_products(plan: Plan) -> tuple[Finding, ...]:
    """Whether every product in flight is complete before anybody else uses its accumulator or writes its factors.

    Parameters
    ----------
    plan : Plan
        A plan that passes *cover* and *flow*.

    Returns
    -------
    tuple of Finding
        One for each pair of a product and a later access that fails, with the smallest pair of instances.
    """
    everything = events(plan)
    products = [e for e in everything if stays_in_flight(e.site.leaf.mechanism)]
    pairs = ((p, o) for p in products for o in everything
             if p.launch == o.launch and p.site.cells == o.site.cells and _matters(p, o)
             and not (o.site.leaf.mechanism == "bulk" and plan.kernels[o.launch].has_roles))  # see `roles`
    return tuple(filter(None, (_check(plan.kernels[p.launch], p, o) for p, o in pairs)))


def _matters(product: Event, other: Event) -> bool:
    """Whether the two touch what only one may: a factor that is written, an accumulator outside of products of its shape."""
    return other.site.writes if not product.site.writes else _shape(other) != _shape(product)


def _shape(event: Event) -> tuple[object, ...]:
    """What products have in common whose accumulators are the same registers."""
    row = instruction(event.site.leaf.mechanism)
    if not isinstance(row, Wgmma) or not row.in_flight or not event.site.writes:
        return (event.site.leaf.id, event.site.slot)
    return row.n, row.c


def _check(kernel: Kernel, product: Event, other: Event) -> Finding | None:
    a, b = product.site, other.site
    group = closed_before(path_to(kernel, a.leaf.id), PRODUCTS)
    early: Points | None = decide(StillOpen(a, b, earlier(product, other, "a", "b"), group,
                                            landings(kernel, b.leaf.id, PRODUCTS)))
    if not early:
        return None
    source, sink = instance(a, early[0]), instance(b, early[1])
    verb, does = ("write" if b.writes else "read"), ("adds to" if a.writes else "reads")
    around = {n.id: x for x in walk(kernel.body) if isinstance(x, Loop) for n in x.body}
    waits = [n for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == PRODUCTS.wait]
    hints = tuple(f"overlap('{loop.id}', {w.pending // max(1, closed_in(loop.body, PRODUCTS)) - 1}) instead"
                  for w in waits if w.pending and (loop := around.get(w.id)))
    kind = "anti" if not a.writes else "output" if b.writes else "flow"
    lines = tuple(sorted({s.statement.line for s in (a, b) if s.statement.line}))
    return Finding("flow", f"{sink} may {verb} {cell_text(b, early[1])} while {source} is in flight",
                   f"{source} {does} that cell up to a wait for products, and none before {sink} covers it",
                   b.statement.accesses[b.slot].array, element(b, early[1]), kind, source, sink,
                   (a.leaf.id, b.leaf.id, *(w.id for w in waits)), lines, hints or ("a wait for products before it",))
