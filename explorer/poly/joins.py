"""Legality of phases of one launch: whether each block of a joined kernel runs after the blocks whose results it uses.

Block ``b`` of a kernel joined by ``last_block`` is run by the block that finishes last (by ``handoff``: the one with the highest
number, see :mod:`~explorer.poly.handoffs`) among the blocks of its launch with the coordinates ``b`` along the axes that the
kernel is spread over.  So two accesses of one cell of global memory, one before the join and one behind it, at least one of
them a write, are ordered exactly if their blocks have the same coordinates along those axes.
Everything else is asked as of separate launches (a barrier of the grid, too, orders all blocks).

The question is asked of cells and not of the program's dependences: storage that a schedule folds is then covered too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from ..ir.finding import Finding, Instance
from ..ir.plan import Plan
from ..ir.tree import BLOCK_ROLES, MOST_CLUSTER, Kernel, Loop, walk
from .decide import Meet, decide
from .handoffs import check_handoff
from .isl import Undecided, alone, smallest
from .linear import Case, Cases, build_map, differ, equal
from .sites import Site, sites

BUDGET = 2_000_000
"""Operations of isl for one pair of accesses (some tenths of a second); beyond, the join is refused as undecided."""


@alone
def check_joins(plan: Plan) -> tuple[Finding, ...]:
    """Whether every kernel that joins the launch before it may do so.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    tuple of Finding
        With the smallest pair of instances whose order the join would lose.
    """
    return tuple(finding for group in plan.launched if len(group) > 1 for finding in _group_findings(plan, group))


def _group_findings(plan: Plan, group: tuple[Kernel, ...]) -> Iterator[Finding]:
    """The findings of one launch, at most one for each of its phases."""
    for kernel in group:
        hosted = next((n.id for n in walk(kernel.body) if isinstance(n, Loop) and n.role == "launch"), "")
        if hosted:
            joined = next(k.id for k in group[1:])
            yield Finding("order", f"the host runs {hosted} of {kernel.id}, so {joined} cannot join its launch",
                          "each iteration is a launch of its own", nodes=(kernel.id, hosted),
                          hints=(f"join('{joined}', 'launch')", f"bind('{hosted}', 'seq')"))
            return
    for kernel in group:
        if kernel.by_one and max(plan.clusters[kernel.id]) > 1:
            by = [leaf.id for leaf, _, k in plan.leaves if k is kernel and "cluster" in dict(leaf.collect).values()]
            for name in by:
                yield Finding("order", f"{name} is combined over a cluster, but one block alone runs {kernel.id}",
                              "the last block goes on, and the others of its cluster never come", nodes=(name, kernel.id),
                              hints=(f"join('{kernel.id}', 'grid')",))
    since: list[Kernel] = []
    for kernel in group:
        if since and kernel.by_one:
            finding = (check_handoff(plan, group, kernel, BUDGET) if kernel.join == "handoff" else
                       _clusters(plan, group, kernel) if kernel.join == "cluster" else _chain(plan, since[-1], kernel))
            for earlier in since if finding is None else ():
                finding = finding or _unordered(plan, earlier, kernel)
            if finding:
                yield finding
        since = [*since, kernel] if kernel.by_one else [kernel]


def _chain(plan: Plan, before: Kernel, kernel: Kernel) -> Finding | None:
    """Whether the blocks that run the kernel before it are spread over every axis that this one needs."""
    missing = [axis for axis in plan.joined_axes(kernel) if axis not in plan.joined_axes(before)]
    if not before.by_one or not missing:
        return None
    axes = ", ".join(BLOCK_ROLES[a] for a in missing)
    return Finding("order", f"{kernel.id} is spread over {axes}, where {before.id} is run by one block only",
                   f"the last block of {before.id} runs {kernel.id}, and there is one along {axes}",
                   nodes=(before.id, kernel.id), hints=(f"join('{kernel.id}', 'grid')",))


def _clusters(plan: Plan, group: tuple[Kernel, ...], kernel: Kernel) -> Finding | None:
    """Whether the blocks that a kernel joins can be a cluster, whose barrier orders what they write."""
    hints = (f"join('{kernel.id}', 'last_block')", f"join('{kernel.id}', 'launch')")
    if len(group) > 2:
        other = next(k for k in group[1:] if k is not kernel)
        return Finding("order", f"{kernel.id} joins the blocks of a cluster, and {other.id} is a phase of the same launch",
                       "the other blocks of a cluster end at its barrier", nodes=(kernel.id, other.id), hints=hints)
    if combined := next((leaf.id for leaf, _, k in plan.leaves if k in group and "cluster" in dict(leaf.collect).values()), ""):
        return Finding("order", f"{combined} is combined over a cluster, and {kernel.id} joins its blocks, too",
                       "a launch has one kind of clusters", nodes=(combined, kernel.id), hints=hints)
    cluster = plan.clusters[kernel.id]
    if prod(cluster) > MOST_CLUSTER:
        return Finding("order", f"{kernel.id} joins the parts of {prod(cluster)} blocks",
                       f"a cluster has at most 8 blocks, {MOST_CLUSTER} where the GPU allows it", nodes=(kernel.id,), hints=hints)
    return None


def _unordered(plan: Plan, before: Kernel, kernel: Kernel) -> Finding | None:
    """The first two accesses of one cell whose order the join would lose."""
    axes = plan.joined_axes(kernel)
    if not axes:
        return None
    late: dict[tuple[str, bool], list[Site]] = {}
    for site in sites(plan)[kernel.id]:
        if site.space == "global":
            late.setdefault(site.cells, []).append(site)
    for a in sites(plan)[before.id]:
        for b in late.get(a.cells, []) if a.space == "global" else ():
            if not (a.writes or b.writes) or (a.atomic and a.atomic == b.atomic):
                continue
            try:
                if _apart(a, b, axes):
                    return _finding(a, b, axes, before, kernel)
            except Undecided:
                return Finding("order", f"it could not be decided whether the blocks of {kernel.id} wait for all that they need",
                               f"{a.leaf.id} and {b.leaf.id} use {a.storage}; the exact question took too long",
                               nodes=(a.leaf.id, b.leaf.id), hints=(f"join('{kernel.id}', 'grid')",))
    return None


def _same_cell(a: Site, b: Site) -> Case:
    cells = ((e, f) for e, f in zip(a.cell, b.cell, strict=True) if e is not None and f is not None)
    return (*a.conditions("a"), *b.conditions("b"), *(equal(e, "a", f, "b") for e, f in cells))


def _cases(a: Site, b: Site, axes: tuple[int, ...]) -> Cases:
    """Cases in which the blocks of two accesses differ along the axes; one empty case where one runs in every block."""
    cases: Cases = ()
    for axis in axes:
        e, f = a.place[axis], b.place[axis]
        if e is None or f is None:
            return ((),)
        cases += differ(e, "a", f, "b")
    return cases


@lru_cache(maxsize=4096)
def _apart(a: Site, b: Site, axes: tuple[int, ...]) -> bool:
    """Whether two accesses of one cell are in blocks that differ along the axes."""
    return decide(Meet(a.names("a"), b.names("b"), _same_cell(a, b), _cases(a, b, axes), BUDGET))


def _finding(a: Site, b: Site, axes: tuple[int, ...], before: Kernel, kernel: Kernel) -> Finding:
    found = (build_map(a.loops("a"), b.loops("b"), (*_same_cell(a, b), *case)) for case in _cases(a, b, axes))
    values = min(smallest(pairs) for pairs in found if not pairs.is_empty())
    at_a, at_b = values[: len(a.above)], values[len(a.above):]
    source, sink = _instance(a, at_a), _instance(b, at_b)
    point = {x.id: v for x, v in zip(a.above, at_a, strict=True)}
    cell = tuple(0 if e is None else int(e.evaluate(point)) for e in a.cell)
    name = f"{a.storage}[{', '.join(map(str, cell))}]" if cell else a.storage
    kind = "flow" if a.writes and b.reads and not b.writes else "output" if a.writes else "anti"
    words = {"flow": ("writes", "reads"), "anti": ("reads", "overwrites"), "output": ("writes", "writes too")}[kind]
    where = ", ".join(BLOCK_ROLES[axis] for axis in axes)
    lines = tuple(sorted({s.statement.line for s in (a, b) if s.statement.line}))
    return Finding(
        "order", f"{source} {words[0]} {name}, which {sink} {words[1]}: {kernel.join} does not order the two",
        f"a block of {kernel.id} waits for the blocks of {before.id} with its {where} alone, and these two differ "
        f"({source}: {_blocks(source)}; {sink}: {_blocks(sink)})",
        a.statement.accesses[a.slot].array, cell, kind, source, sink, tuple(dict.fromkeys((a.leaf.id, b.leaf.id))), lines,
        (f"join('{kernel.id}', 'grid')", f"join('{kernel.id}', 'launch')"))


def _instance(site: Site, values: tuple[int, ...]) -> Instance:
    place = tuple((x.role, v) for x, v in zip(site.above, values, strict=True) if x.is_place)
    time = tuple(v for x, v in zip(site.above, values, strict=True) if not x.is_place)
    return Instance(site.statement.name, site.instance(values), place, time)


def _blocks(x: Instance) -> str:
    return ", ".join(f"{role} {value}" for role, value in x.place if role in BLOCK_ROLES) or "block 0 alone, or every block"
