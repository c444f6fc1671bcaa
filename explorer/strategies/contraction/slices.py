"""The depth of a product in slices: each is a product of its own, and a second launch adds their sums up (split-K).

Few tiles leave multiprocessors idle, however deep a product is.  Sliced, ``total[i, j] = sum over k`` becomes partial sums
``total_p[s, i, j]`` in global memory, a product with a batch more; and a reduction over ``s``, with what followed the sums.  They
are added in one order: the result is the same in every run.
"""

from __future__ import annotations

from ...errors import TransformError
from ...ir.plan import Plan
from .._steps import Builder, leaves_of
from ..stitching.moves import separate_leaves
from .accesses import index_of
from .form import ProductForm, product_form


def sliced_apart(b: Builder, form: ProductForm, chunk: int, along: str = "") -> tuple[ProductForm, str]:
    """Cut the depth, or another loop `along` it, into slices of `chunk`; their product, and the kernel that adds them up.

    Before::

        for i in 0…M
            for j in 0…N
                total[i, j] = 0
                for k in 0…K
                    total[i, j] += a[i, k] * b[k, j]
                c[i, j] = total[i, j]

    After::

        for i in 0…M
            for j in 0…N
                for k in 0…K / chunk
                    total_p_acc[k, i, j] = 0
                    for k.s in 0…chunk
                        total_p_acc[k, i, j] += a[i, chunk*k + k.s] * b[chunk*k + k.s, j]
                    total_p[k, i, j] = total_p_acc[k, i, j]
        for i.2 in 0…M
            for j.2 in 0…N
                total[i.2, j.2] = 0
                for k.c in 0…K / chunk
                    total[i.2, j.2] += total_p[k.c, i.2, j.2]
                c[i.2, j.2] = total[i.2, j.2]

    Raises
    ------
    TransformError, IllegalSchedule
        If the product does not allow it.
    """
    along = along or form.depth
    inner, hit = b.plan.fresh(f"{along}.s"), b.plan.find(form.update)
    assert hit is not None
    depths = [x.id for x in hit[1] if x.id in (form.depth, *form.outer_depth)]
    if chunk > 1 or along == form.depth:
        b.do("split", along, chunk, inner=inner)
        depths[depths.index(along)] = inner
        depths.insert(depths.index(inner), along)
    order = (along, *(x for x in depths if x != along))
    if depths != [*order]:
        b.do("reorder", order)
    b.do("rfactor", form.update, along, axes=(0,))
    own = {leaf.id for leaf in leaves_of(b.plan.loops[along])}
    kernels = separate_leaves(b, form.kernel, {leaf.id: int(leaf.id not in own) for leaf, _, k in b.plan.leaves
                                               if k.id == form.kernel})
    parts = next(b.plan.statement_of[leaf.statement].target.array for leaf, _, _ in b.plan.leaves if leaf.id == form.update)
    b.do("accumulate", parts)
    found = product_form(b.schedule, form.kernel)
    if found is not None and (order := _tiles_last(b.plan, found, parts)):
        b.do("rearrange", parts, order)
        found = product_form(b.schedule, form.kernel)
    if found is None or found.depth != (inner if along == form.depth else form.depth) or len(kernels) != 2:
        raise TransformError(f"the slices of {along} are no products of their own", hint="one slice")
    return found, kernels[1]


def _tiles_last(plan: Plan, form: ProductForm, parts: str) -> tuple[int, ...]:
    """The axes of partial sums with those of tiles behind the others; nothing where tiles lie along the last axis already.

    The gradient of a convolution's weights has the filter's pixels last, and its tiles run along the channels: the sums would be
    stored one by one, each in a sector of its own.
    """
    leaf = next(x for x, _, _ in plan.leaves if plan.statement_of[x.statement].target.array == parts
                and plan.statement_of[x.statement].update is None)
    index, tile = index_of(plan, leaf, len(plan.statement_of[leaf.statement].reads)), (form.rows[-1], form.columns[-1])
    if index is None or not index or index[-1].variables() & {*tile}:
        return ()
    last = [n for x in tile for n, e in enumerate(index) if x in e.variables()]
    return (*(n for n in range(len(index)) if n not in last), *last) if len(last) == len({*last}) == len(tile) else ()
