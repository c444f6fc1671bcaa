"""Events: accesses with their position in the plan, and "before" between two of them, as conditions.

Two events are compared at their common loops: an earlier launch; or an earlier iteration of a common time loop; or the
same iteration of all of them and an earlier place in the text.  Threads of a block walk the same text, so for two
threads this is the order that barriers will enforce.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce

import islpy as isl

from ..ir.expr import Expr, var
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.tree import Loop
from .isl import smallest
from .linear import Case, Cases, Condition, build_map, equal, function, less
from .sites import Site, sites

ALWAYS: Case = ()


@dataclass(frozen=True)
class Event:
    """An access, the number of its launch, and the number of its leaf in the plan's text."""

    site: Site
    launch: int
    number: int


@per_program(256)
def events(plan: Plan) -> tuple[Event, ...]:
    """All accesses of the plan, in order of the text."""
    number = {leaf.id: i for i, (leaf, _, _) in enumerate(plan.leaves)}
    by_kernel = sites(plan)
    return tuple(Event(s, i, number[s.leaf.id]) for i, k in enumerate(plan.kernels) for s in by_kernel[k.id])


def common_loops(a: Site, b: Site) -> tuple[Loop, ...]:
    """Time loops around both accesses."""
    shared = []
    for x, y in zip(a.above, b.above, strict=False):
        if x.id != y.id:
            break
        shared.append(x)
    return tuple(x for x in shared if not x.is_place)


def earlier(first: Event, second: Event, p: str, q: str, agreed: int = 0) -> Cases:
    """Cases in which `first` (on side `p`) runs strictly before `second` (on side `q`).

    The two run in one iteration of the outermost `agreed` of their common loops.
    """
    if first.launch != second.launch:
        return (ALWAYS,) if first.launch < second.launch else ()
    out: list[Case] = []
    outer: list[str] = []
    for depth, loop in enumerate(common_loops(first.site, second.site)):
        if loop.extent > 1:
            v = var(loop.id)
            if depth >= agreed:
                out.append((*equal_in(outer, p, q), less(v, p, v, q)))
            outer.append(loop.id)
    if first.number < second.number:
        out.append(equal_in(outer, p, q))
    return tuple(out)


def equal_in(loops: Iterable[str], p: str, q: str) -> Case:
    """Loops with one value on both sides; in alphabetical order, whichever is around the other."""
    return tuple(equal(var(name), p, var(name), q) for name in sorted(loops))


def same_time(first: Event, second: Event, p: str, q: str) -> Cases:
    """Cases in which the two run at one time (only within one leaf)."""
    if first.site.leaf.id != second.site.leaf.id:
        return ()
    return (equal_in((z.id for z in first.site.above if not z.is_place and z.extent > 1), p, q),)


def same_replica(a: Site, b: Site) -> list[tuple[Expr, Expr]]:
    """What is equal when `b` reads the replica of its storage that `a` writes (both in one launch)."""
    axes = {"register": range(7), "shared": range(3), "global": range(0)}[a.space]
    both = [(a.place[i], b.reads_at[i]) for i in axes]
    out = [(p, q) for p, q in both if p is not None and q is not None and not (p == q and p.is_constant)]
    if a.space != "global":
        out += [(var(loop.id), var(loop.id)) for loop in common_loops(a, b) if loop.role == "launch"]
    return out


def same_cell(a: Site, b: Site) -> list[tuple[Expr, Expr]]:
    """What is equal when the two accesses use one index."""
    return [(e, f) for e, f in zip(a.cell, b.cell, strict=True) if e is not None and f is not None]


def relation(a: Site, b: Site, conditions: Iterable[Condition], sides: tuple[str, str] = ("a", "b")) -> isl.Map:
    """``{ A[a…] -> B[b…] : conditions }`` between the loop variables of two accesses."""
    return build_map(a.names(sides[0]), b.names(sides[1]), conditions)


def either(a: Site, b: Site, cases: Cases, sides: tuple[str, str] = ("a", "b")) -> isl.Map:
    """``{ A[a…] -> B[b…] : some case }``; there is at least one."""
    return reduce(isl.Map.union, (relation(a, b, case, sides) for case in cases))


@lru_cache(maxsize=4096)
def instances(site: Site, side: str, guarded: bool = True) -> isl.Map:
    """``{ A[loops] -> S[dims] }``, on the instances that the leaf runs if `guarded`."""
    at = dict(site.leaf.at)
    dims = [at[d] for d in site.statement.dims]
    return function(site.names(side), site.statement.name, dims, site.conditions(side) if guarded else ())


def witness(pairs: isl.Map, a: Site, b: Site) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lexicographically smallest pair of statement instances of a relation ``{ A[…] -> B[…] }``."""
    found = smallest(pairs.apply_domain(instances(a, "a", False)).apply_range(instances(b, "b", False)))
    n = len(a.statement.dims)
    return found[:n], found[n:]
