"""Products that are summed straight into an output, in any order of their loops, in the form that tiles need.

``for i, k, j: c[i, j] += a[i, k] * b[k, j]`` adds to an element of ``c`` in every iteration of the middle loop.  The loops over
the depth go inside, what starts an element comes under its loops, and the sum gets a temporary, written out once.  A third
factor that all terms share, as ``alpha`` of BLAS, leaves the sum first (`factor_out`).
"""

from __future__ import annotations

from ...ir.expr import Expr
from ...ir.tree import Leaf, Loop, walk
from ...poly.tensor import is_product
from ...schedule import Schedule
from .._steps import Builder
from ..stitching.moves import join_inside
from .form import NARROW, product_form


def products_summed(schedule: Schedule) -> Schedule:
    """The schedule with shared factors outside, and :func:`summed_apart` done to the kernels that are a product then."""
    for kernel in [k.id for k in schedule.plan.kernels]:
        made = factors_outside(schedule, kernel)
        made = made if product_form(made, kernel) else summed_apart(made, kernel)
        if made is not schedule and (form := product_form(made, kernel)) and min(form.extents[:2]) >= NARROW:
            schedule = made
    return schedule


def factors_outside(schedule: Schedule, kernel: str = "") -> Schedule:
    """Take what all terms share out of the sums of other products, of a kernel or of all."""
    b = Builder(schedule)
    for leaf, _, owner in schedule.plan.leaves:
        statement = b.plan.statement_of[leaf.statement]
        if kernel in ("", owner.id) and statement.update == "sum" and not is_product(statement):
            b.attempt("factor_out", leaf.id)
    return b.schedule


def summed_apart(schedule: Schedule, kernel: str) -> Schedule:
    """Let a kernel's product run in a temporary, its loops over the depth innermost.

    Before::

        for i in 0…M
            for j in 0…N
                c[i, j] = 0
            for k in 0…K
                for j_2 in 0…N
                    c[i, j_2] += a[i, k] * b[k, j_2]

    After::

        for i in 0…M
            for j in 0…N
                c_acc[i, j] = 0
                for k in 0…K
                    c_acc[i, j] += a[i, k] * b[k, j]
                c[i, j] = c_acc[i, j]

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Nothing of it is spread.

    Returns
    -------
    Schedule
        Legal; the same schedule where the kernel has no such product, or more than one.
    """
    plan = schedule.plan
    updates = [leaf for leaf, _, k in plan.leaves if k.id == kernel and is_product(plan.statement_of[leaf.statement])]
    body = next(k.body for k in plan.kernels if k.id == kernel)
    if len(updates) != 1 or any(x.role != "seq" for node in body for x in walk((node,)) if isinstance(x, Loop)):
        return schedule
    b, total = Builder(schedule), plan.statement_of[updates[0].statement].target.array
    if not _depth_inside(b, updates[0].id):
        return schedule
    join_inside(b, kernel)
    if plan.array_of[total].role == "temporary" or b.attempt("accumulate", total):
        return b.schedule
    return schedule


def _depth_inside(b: Builder, update: str) -> bool:
    """Bring the loops over the depth inside of those over results that stand right in them; whether all are."""
    hit = b.plan.find(update)
    assert hit is not None
    leaf, above = hit
    assert isinstance(leaf, Leaf)
    target = b.plan.statement_of[leaf.statement].target
    kept = frozenset[str]().union(*(e.substitute(leaf.places).variables() for e in target.index if isinstance(e, Expr)))
    outside = max((n + 1 for n, x in enumerate(above) if len(x.body) > 1), default=0)
    inner = [x.id for x in above[outside:]]
    if any(x.id not in kept for x in above[:outside]):
        return False
    wanted = (*(x for x in inner if x in kept), *(x for x in inner if x not in kept))
    return list(wanted) == inner or b.attempt("reorder", wanted)
