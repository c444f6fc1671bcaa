"""Loops over the depth that lie together in memory, as one: an image's rows and columns, where a filter is a single pixel.

Both factors walk such loops as one loop would, over whole axes of theirs.  Coalesced they are one long depth, whose steps need
not end where a row does.  Loops of one iteration between others are joined with their neighbours first: a filter's, of one pixel.

Before::

    for k in 0…256
        for c in 0…64
            for r in 0…1
                total = 0
                for n in 0…32
                    for h in 0…56
                        for w in 0…56
                            total += g[n, k, h, w] * x[n, c, h + r, w]

After::

    for k in 0…256
        for c in 0…64
            total = 0
            for n in 0…32
                for h in 0…3136
                    total += g[n, k, h // 56, h % 56] * x[n, c, h // 56, h % 56]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.tree import Leaf, Loop, Node
from ...schedule import Schedule
from .._steps import Builder, chain
from .form import ProductForm, product_form, runs_of


def depth_as_one(schedule: Schedule, form: ProductForm) -> tuple[Schedule, ProductForm] | None:
    """The product with loops over its depth that are one coalesced; None where there are none, or it is no product then."""
    b = Builder(schedule, judged=False)
    body = next(k.body for k in b.plan.kernels if k.id == form.kernel)
    for loops in _chains(body):
        for run in _with_units(loops):
            b.attempt("coalesce", run)
    hit = b.plan.find(form.update)
    assert hit is not None
    leaf, above = hit
    assert isinstance(leaf, Leaf)
    around = {x.id for x in chain(next(k.body for k in b.plan.kernels if k.id == form.kernel)[0])}
    inner = [x for x in above if x.id not in around]
    first, second = (runs_of(b.plan, leaf, slot, inner, inner) for slot in (0, 1))
    found = [run for run in first if run in second and b.attempt("coalesce", run)]
    made = product_form(b.schedule, form.kernel) if found else None
    return None if made is None or made.gathered else (b.schedule, made)


def _chains(body: Sequence[Node]) -> Iterator[list[Loop]]:
    """Every perfect nest of loops at or below some nodes."""
    for node in body:
        if isinstance(node, Loop):
            loops = chain(node)
            yield loops
            yield from _chains(loops[-1].body)


def _with_units(loops: Sequence[Loop]) -> Iterator[tuple[str, ...]]:
    """Loops of one iteration with the neighbours that they can be joined with."""
    groups: list[list[Loop]] = []
    for x in loops:
        if groups and (x.extent == 1 or all(y.extent == 1 for y in groups[-1])):
            groups[-1].append(x)
        else:
            groups.append([x])
    yield from (tuple(x.id for x in group) for group in groups if len(group) > 1)
