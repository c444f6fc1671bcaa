"""Groups of bulk copies in shared memory: the mbarrier of each, the wait that is for it, and when an mbarrier is free again.

A bulk copy lands by itself, whatever was issued before it; its group completes a phase of an mbarrier on which every thread waits
(PTX ISA, "mbarrier").  Group ``g`` has the mbarrier ``g % n`` of `n`, in the phase with parity ``g // n % 2``; numbers of groups
are affine in the loops, and those without a copy are not counted (:mod:`~explorer.poly.filled`).  So that this counts right,

- every group in which a copy is made has a wait for just this group, not for a later one;
- a thread that waits for group ``g`` has gone on before group ``g + n`` is closed, else it would take one phase for the other: a
  barrier of the block stands between.  With `n` two more than the groups that are ever left open, the barriers that order the
  cells of a pipeline are mostly enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from ..ir.expr import Expr, var
from ..ir.plan import Plan
from ..ir.tree import Kernel, Leaf, Loop, Sync, leaves, walk
from ..ir.tree import ranges as loop_ranges
from .decide import Question, decide
from .feasible import feasible
from .filled import counted
from .groups import Step, closed_in, is_once, path_to
from .linear import Case, Tuple, at_least, box, build_map, build_set, equal, less
from .sites import Site, sites
from .slots import Slot, TextOrder

MOST_PER_TILE = 128
"""Groups of a tile up to which each has its own mbarrier."""


@dataclass(frozen=True)
class Awaited:
    """A wait, the group it is for, and the loops around it (without their bodies), outermost first."""

    wait: Sync
    group: Expr
    above: tuple[Loop, ...]

    def loops(self, side: str) -> Tuple:
        """The loops' variables on one side of a relation."""
        return Tuple(side.upper(), side, tuple(x.id for x in self.above))

    def box(self, side: str) -> Case:
        """Their ranges."""
        return box(((var(x.id), x.start, x.extent) for x in self.above), side)


def copies_in_bulk(kernel: Kernel) -> bool:
    """Whether a leaf of the kernel is a bulk copy."""
    return any(leaf.mechanism == "bulk" for leaf, _ in leaves(kernel.body))


def mbarriers(plan: Plan, kernel: Kernel) -> int:
    """How many mbarriers its groups take in turn: two more than a wait leaves open, or one for each where there are fewer.

    Where the kernel has roles: as many as :func:`release_mbarriers`, and two more for each commit without an acquire.  If that
    commit is in a loop over tiles, each group of a tile has its own mbarrier, up to `MOST_PER_TILE`: its index does not depend on
    the tile then, and 2,048 keys take 3 % less (attention, heads of 128, H200).
    """
    if kernel.has_roles:
        least, tile = release_mbarriers(kernel) + 2 * len(alone := _without_acquire(kernel)), 0
        for path in alone:
            loops = [s.loop for s in path if s.loop is not None and not is_once(s.loop) and s.loop.role != "launch"]
            tile = closed_in(loops[-1].body) if loops else tile
        return tile if least <= tile <= MOST_PER_TILE else least
    return counted(plan, kernel).mbarriers()


def _without_acquire(kernel: Kernel) -> list[tuple[Step, ...]]:
    """Paths to the commits that have no acquire in their body."""
    paths = (path_to(kernel, n.id) for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "commit")
    return [path for path in paths if not any(isinstance(n, Sync) and n.kind == "acquire" for n in path[-1].body)]


def release_mbarriers(kernel: Kernel) -> int:
    """How many mbarriers consumers release slots on: one more than the releases that may be pending at an acquire."""
    ahead = (n.pending for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "acquire")
    return max((0, *ahead)) + 1


def waits(plan: Plan, kernel: Kernel) -> tuple[Awaited, ...]:
    """The waits for bulk copies that ever run."""
    groups = counted(plan, kernel)
    found = [n for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "wait" and groups.asked(n)]
    return tuple(Awaited(n, groups.awaited(n), loops) for n in found
                 for loops in (_loops(path_to(kernel, n.id)),) if all(x.extent > 0 for x in loops))


def _loops(path: tuple[Step, ...]) -> tuple[Loop, ...]:
    return tuple(Loop(s.loop.id, s.loop.extent, (), s.loop.role, s.loop.start) for s in path if s.loop is not None)


# -- is every group waited for? ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Miscount:
    """What keeps a bulk copy from being counted: nodes, and the reason with what would help."""

    leaf: Leaf
    nodes: tuple[str, ...]
    what: str
    why: str
    hint: str


def miscounts(plan: Plan) -> Iterator[Miscount]:
    """Bulk copies whose groups have no wait of their own, and waits that come before the first group."""
    for kernel in plan.kernels:
        bulk = [s for s in sites(plan)[kernel.id] if s.leaf.mechanism == "bulk" and s.writes]
        if not bulk:
            continue
        known, groups = waits(plan, kernel), counted(plan, kernel)
        alone = (s for s in bulk if decide(_Unawaited(s, groups.group_of(s.leaf.id), known)))
        for site in {s.statement.name: s for s in alone}.values():  # one for its prologue and its body
            name = site.statement.name
            yield Miscount(site.leaf, (site.leaf.id, *(w.wait.id for w in known)),
                           f"no wait is for the groups of {name} alone: one goes on to a later group, or there is none",
                           "bulk copies land in any order, so that each group is waited for by itself",
                           "pipeline the bulk copies of a loop together")
        for w in known:
            if w.group.interval(loop_ranges(w.above))[0] < 0:
                yield Miscount(bulk[0].leaf, (w.wait.id,), f"{w.wait.id} may run before there is a group that it waits for",
                               "a wait for bulk copies is for one group", "a commit before it")


@dataclass(frozen=True)
class _Unawaited(Question[bool]):
    """Whether some instance of a copy belongs to a group that none of the waits is for."""

    site: Site
    group: Expr
    waits: tuple[Awaited, ...]

    def by_isl(self) -> bool:
        copy = self.site.loops("a")
        left = build_set(copy, self.site.conditions("a"))
        for w in self.waits:
            left = left.subtract(build_map(copy, w.loops("w"), self._same(w)).domain())
        return not left.is_empty()

    def _same(self, w: Awaited) -> Case:
        mine = {x.id for x in self.site.above}
        shared = [x for x in w.above if x.id in mine and ((x.is_place and not x.is_thread) or x.role == "launch")]
        return (*self.site.conditions("a"), *w.box("w"), equal(self.group, "a", w.group, "w"),
                *(equal(var(x.id), "a", var(x.id), "w") for x in shared))


# -- is an mbarrier free when it is used again? --------------------------------------------------------------------------


def reuses(plan: Plan, kernel: Kernel, order: TextOrder) -> Iterator[frozenset[Slot]]:
    """Positions of which one must have a barrier, so that no thread still waits where an mbarrier begins its phase after next."""
    count, groups = mbarriers(plan, kernel), counted(plan, kernel)
    for w in waits(plan, kernel):
        for commit in (n for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "commit"):
            closing = Awaited(commit, groups.group_of(commit.id), _loops(path_to(kernel, commit.id)))
            first, second = order.wait_number[w.wait.id], order.wait_number[commit.id]
            again = (equal(w.group + count, "a", closing.group, "b"), *(at_least(e, "b", 0) for e in groups.closes(commit.id)))
            for way in _ways(w.above, closing.above, first < second):
                if feasible((w.loops("a"), closing.loops("b")), (*w.box("a"), *closing.box("b"), *again, *way.same)):
                    yield (order.between(first, second) if not way.carried else order.inside(way.carried) if way.later
                           else order.around(way.carried, first, second))


@dataclass(frozen=True)
class _Way:
    """How one node can come before another: in one iteration of all common loops, or in an earlier one of the loop that carries
    it, the one just before or `later`.
    """

    same: Case
    carried: str = ""
    later: bool = False


def _ways(a: tuple[Loop, ...], b: tuple[Loop, ...], first: bool) -> Iterator[_Way]:
    """All of them, for the node in the loops `a` to come before the one in `b`; it stands `first` in the text or behind."""
    common = [x for x, y in takewhile(lambda pair: pair[0].id == pair[1].id, zip(a, b, strict=False))]
    time = [x for x in common if not x.is_place and x.role != "launch"]
    level = tuple(equal(var(x.id), "a", var(x.id), "b") for x in common if not x.is_thread and x not in time)
    if first:
        yield _Way((*level, *(equal(var(x.id), "a", var(x.id), "b") for x in time)))
    for loop in time:
        v = var(loop.id)
        yield _Way((*level, equal(v + 1, "a", v, "b")), loop.id)
        yield _Way((*level, less(v, "a", v, "b", 2)), loop.id, True)
        level = (*level, equal(v, "a", v, "b"))
