"""For which trip counts an order is lost: the least pairs say it for all of them.

Which element two instances touch, and which of them runs first, in the program and in the plan, does not depend on how many
iterations a loop has: more iterations add instances and change none.  So pairs that are in the wrong order stay where they
are, and what fails with K iterations fails with more.  The trip counts that fail are those that have both instances of some
pair; the instances of the plan itself have the least of them.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from ..errors import Undecided
from ..ir.expr import Expr, var
from ..ir.finding import Instance, Proof
from .isl import alone, budget
from .linear import Tuple, at_least, build_set
from .placed import Placed
from .relations import BUDGET, bounds
from .symbolic_trips import SHOWN, TRIPS, Failing, condition

_D = isl.dim_type


@alone
def lost(a: Placed, b: Placed, pairs: isl.Map, pair: tuple[Instance, Instance]) -> Proof | None:
    """The condition on the trip count of the outermost loop around two leaves, and the least pair.

    Parameters
    ----------
    a, b : Placed
    pairs : isl.Map
        The instances that are in the wrong order.
    pair : tuple of Instance
        What a pair looks like.
    """
    name = next((x.id for x, y in zip(a.above, b.above, strict=False) if x.id == y.id and not x.is_place), None)
    found = None if name is None else _counted(a, b, name)
    if found is None:
        return None
    dims = [f"{side}:{d}" for side, p in (("a", a), ("b", b)) for d in p.statement.dims]
    rows = [at_least(var(TRIPS) - var(f"{side}:{dim}"), "v", 1 - low) for side, (dim, low) in zip("ab", found, strict=True)]
    known = build_set(Tuple("", "v", (TRIPS, *dims)), (at_least(var(TRIPS), "v", 1), *rows))
    try:
        with budget(BUDGET):
            failing = Failing(tuple(dims), pairs.wrap().flatten().insert_dims(_D.set, 0, 1).reset_tuple_id().intersect(known))
            at, told = failing.least(), condition([failing])
    except Undecided:
        return None
    ends = [_at(p, one, tuple(at[f"{side}:{d}"] for d in p.statement.dims))
            for side, p, one in (("a", a, pair[0]), ("b", b, pair[1]))]
    dim, _ = found[0]
    sizes = ((SHOWN, at[SHOWN]), (dim, at[f"a:{dim}"]))
    return Proof(f"{told}, with K iterations of {dim}", sizes, ends[0], ends[1])


def _at(p: Placed, like: Instance, point: tuple[int, ...]) -> Instance:
    values, when = dict(zip(p.statement.dims, point, strict=True)), dict(p.leaf.when)
    place = tuple((x.role, int(when[x.id].evaluate(values))) for x in p.above if x.is_place)
    time = tuple(int(when[x.id].evaluate(values)) for x in p.above if not x.is_place)
    return replace(like, point=point, place=place, time=time)


def _counted(a: Placed, b: Placed, loop: str) -> tuple[tuple[str, int], tuple[str, int]] | None:
    """The dimensions of both that a loop counts alike, with their first values; None where it counts no one dimension, or where
    more iterations would change more than the end.
    """
    found = list[tuple[str, int]]()
    for p in (a, b):
        names = dict(p.leaf.when)[loop].variables()
        dim = next(iter(names), "")
        box = bounds(p.statement.domain).get(dim)
        if len(names) != 1 or box is None or not _only_ends(p, dim, box[0]):
            return None
        found.append((dim, box[0]))
    mine, theirs = (dict(p.leaf.when)[loop].substitute({dim: var("")}) for p, (dim, _) in zip((a, b), found, strict=True))
    return (found[0], found[1]) if (mine - theirs).is_constant else None


def _only_ends(p: Placed, dim: str, low: int) -> bool:
    """Whether more values of a dimension leave the instances with the others as they are, and when they run."""
    alone = all(c.expr.variables() == {dim} and not c.equality for c in p.statement.domain if dim in c.expr.variables())
    whole = all(x.start <= low for x in p.above if dict(p.leaf.when)[x.id].variables() == {dim})
    return alone and whole and all(_grows(e, dim) for _, e in p.leaf.when)


def _grows(e: Expr, dim: str) -> bool:
    """Whether a dimension is in an expression only with positive factors: nothing in it is counted from the end."""
    for atom, c in e.terms:
        inner = var(atom) if isinstance(atom, str) else atom.expr
        if dim in inner.variables() and (c < 0 or not (isinstance(atom, str) or _grows(inner, dim))):
            return False
    return True
