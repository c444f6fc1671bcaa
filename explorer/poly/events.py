"""Events: accesses with their position in the plan, and "before" between two of them, in isl's notation.

Two events are compared at their common loops: an earlier launch; or an earlier iteration of a common time loop; or the
same iteration of all of them and an earlier place in the text.  Threads of a block walk the same text, so for two
threads this is the order that barriers will enforce.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from ..ir.plan import Plan
from ..ir.tree import Loop
from .isl import conjunction, read_map, smallest, text
from .sites import Site, sites

ALWAYS = "0 = 0"


@dataclass(frozen=True)
class Event:
    """An access, the number of its launch, and the number of its leaf in the plan's text."""

    site: Site
    launch: int
    number: int


@lru_cache(maxsize=256)
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


def earlier(first: Event, second: Event, x: Mapping[str, str], y: Mapping[str, str]) -> list[str]:
    """Alternatives in which `first` runs strictly before `second`; `x` and `y` name their loop variables."""
    if first.launch != second.launch:
        return [ALWAYS] if first.launch < second.launch else []
    out, outer = [], []
    for loop in common_loops(first.site, second.site):
        if loop.extent > 1:
            out.append(" and ".join([*outer, f"{x[loop.id]} < {y[loop.id]}"]))
            outer.append(f"{x[loop.id]} = {y[loop.id]}")
    if first.number < second.number:
        out.append(" and ".join(outer) or ALWAYS)
    return out


def same_time(first: Event, second: Event, x: Mapping[str, str], y: Mapping[str, str]) -> list[str]:
    """Alternatives in which the two run at one time (only within one leaf)."""
    if first.site.leaf.id != second.site.leaf.id:
        return []
    return [" and ".join(f"{x[z.id]} = {y[z.id]}" for z in first.site.above if not z.is_place and z.extent > 1) or ALWAYS]


def same_replica(a: Site, b: Site, x: Mapping[str, str], y: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pairs of texts that are equal when the two accesses use one replica of their storage (both in one launch)."""
    axes = {"register": range(7), "shared": range(3), "global": range(0)}[a.space]
    both = [(a.place[i], b.place[i]) for i in axes]
    out = [(text(p, x), text(q, y)) for p, q in both if p is not None and q is not None and not (p == q and p.is_constant)]
    if a.space != "global":
        out += [(x[loop.id], y[loop.id]) for loop in common_loops(a, b) if loop.role == "launch"]
    return out


def same_cell(a: Site, b: Site, x: Mapping[str, str], y: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pairs of texts that are equal when the two accesses use one index."""
    return [(text(e, x), text(f, y)) for e, f in zip(a.cell, b.cell, strict=True) if e is not None and f is not None]


def relation(a: Site, b: Site, conditions: list[str], names: tuple[str, str] = ("a", "b")) -> isl.Map:
    """``{ A[a…] -> B[b…] : conditions }`` between the loop variables of two accesses."""
    (p, q), left, right = names, *(", ".join(s.names(n).values()) for s, n in zip((a, b), names, strict=True))
    return read_map(f"{{ {p.upper()}[{left}] -> {q.upper()}[{right}]{conjunction(conditions)} }}")


def either(alternatives: list[str]) -> str:
    """A disjunction in brackets."""
    return f"({' or '.join(f'({a})' for a in alternatives)})"


@lru_cache(maxsize=4096)
def instances(site: Site, prefix: str, guarded: bool = True) -> isl.Map:
    """``{ A[loops] -> S[dims] }``, on the instances that the leaf runs if `guarded`."""
    names, at = site.names(prefix), dict(site.leaf.at)
    dims = ", ".join(text(at[d], names) for d in site.statement.dims)
    held = conjunction(list(site.conditions(prefix))) if guarded else ""
    return read_map(f"{{ {prefix.upper()}[{', '.join(names.values())}] -> {site.statement.name}[{dims}]{held} }}")


def witness(pairs: isl.Map, a: Site, b: Site) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lexicographically smallest pair of statement instances of a relation ``{ A[…] -> B[…] }``."""
    found = smallest(pairs.apply_domain(instances(a, "a", False)).apply_range(instances(b, "b", False)))
    n = len(a.statement.dims)
    return found[:n], found[n:]
