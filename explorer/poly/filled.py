"""Which groups of bulk copies are counted: those in which a copy is made, or for which a wait is.

In its last iterations a pipeline copies nothing more.  The plan closes a group there all the same, and threads that wait for
their own copies count it.  An mbarrier must not: a phase that nobody waits for is an error (compute-sanitizer's synccheck calls
it a missing wait), and its arrival is for nothing.  So a loop closes groups of bulk copies in its first iterations alone, as long
as there is something to copy, and groups are numbered without the others::

    plan       0 1 | 2 3 4 (5) (6)    0 1 | 2 3 4 (5) (6)       stages 3, five iterations, a tile after another
    counted    0 1 | 2 3 4            5 6 | 7 8 9

Numbers stay affine in the loops around: a loop that stops closing groups contributes a constant to whatever comes after it.
Where that cannot be said of all waits of a kernel, every group is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..ir.expr import ZERO, Expr, Ranges, var
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.tree import Kernel, Leaf, Loop, Node, Sync, leaves, walk
from ..ir.tree import ranges as loop_ranges
from .groups import Step, closed_before, closed_in, is_once, path_to


@dataclass(frozen=True)
class Counted:
    """The groups of bulk copies that a kernel counts.

    Attributes
    ----------
    kernel : Kernel
    cut : tuple of (str, int)
        Loops that close groups in their first iterations only, and in how many.
    """

    kernel: Kernel
    cut: tuple[tuple[str, int], ...] = ()

    @property
    def all(self) -> int:
        """How many groups there are."""
        return self._in(self.kernel.body)

    def group_of(self, node_id: str) -> Expr:
        """The group to which a copy belongs, or which a commit closes where it :meth:`closes` one, over the loops around it."""
        return self._before(path_to(self.kernel, node_id))

    def closes(self, commit_id: str) -> tuple[Expr, ...]:
        """A commit closes a group where all of these are at least 0."""
        most = dict(self.cut)
        loops = (step.loop for step in path_to(self.kernel, commit_id) if step.loop is not None)
        return tuple(-var(x.id) + (x.start + most[x.id] - 1) for x in loops if x.id in most)

    def awaited(self, wait: Sync) -> Expr:
        """The youngest group that a wait lets through: the one that it is for."""
        path = path_to(self.kernel, wait.id)
        found = self._awaited(path, wait.pending)
        return closed_before(path) - (wait.pending + 1) if found is None else found

    def known(self, wait: Sync) -> bool:
        """Whether the group of a wait is counted, and its number affine."""
        return self._awaited(path_to(self.kernel, wait.id), wait.pending) is not None

    # -- counting ------------------------------------------------------------------------------------------------------

    def _in(self, nodes: tuple[Node, ...]) -> int:
        return sum(segment.counted for segment in self._segments(nodes))

    def _before(self, path: tuple[Step, ...]) -> Expr:
        total = ZERO
        for step in path:
            loop = step.loop
            if loop is not None and not is_once(loop) and loop.role != "launch":
                total = total + (var(loop.id) - loop.start) * self._in(loop.body)
            total = total + self._in(step.body[: step.index])
        return total

    def _segments(self, nodes: tuple[Node, ...]) -> Iterator[_Segment]:
        """What nodes of a body close, one after the other."""
        most = dict(self.cut)
        for node in nodes:
            if isinstance(node, Loop) and is_once(node):
                yield from self._segments(node.body if node.extent > 0 else ())
            elif isinstance(node, Loop):
                every, inside = closed_in(node.body), self._in(node.body)
                yield _Segment(node.extent * every, min(node.extent, most.get(node.id, node.extent)) * inside, every == inside)
            elif isinstance(node, Sync) and node.kind == "commit":
                yield _Segment(1, 1)

    def _awaited(self, path: tuple[Step, ...], pending: int) -> Expr | None:
        """In the innermost body in which the group was closed, its number there without those that are not counted."""
        scope = loop_ranges(tuple(s.loop for s in path if s.loop is not None))
        for depth in reversed(range(len(path))):
            step = path[depth]
            local = closed_before((replace(step, loop=None), *path[depth + 1:])) - (pending + 1)
            first, last = local.interval(scope)
            if first < 0:
                continue
            if any(s.loop is not None and s.loop.id in dict(self.cut) for s in path[: depth + 1]):
                return None
            gone = self._not_counted(step.body, first, last)
            around = self._before((*path[:depth], replace(step, index=0)))
            return None if gone is None else around + local - gone
        return None

    def _not_counted(self, body: tuple[Node, ...], first: int, last: int) -> int | None:
        """How many groups before each of some are not counted; None if that is no one number, or if some of them are not."""
        start, counted, found = 0, 0, set[int | None]()
        for s in self._segments(body):
            if max(first, start) < min(last + 1, start + s.closed):
                whole = s.closed == s.counted or (s.first_ones and last < start + s.counted)
                found.add(start - counted if whole else None)
            start, counted = start + s.closed, counted + s.counted
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class _Segment:
    """Groups that a node closes, how many of them count, and whether these are the first ones."""

    closed: int
    counted: int
    first_ones: bool = True


@per_program(256)
def counted(plan: Plan, kernel: Kernel) -> Counted:
    """The groups of bulk copies that a kernel of a plan counts."""
    if kernel.has_roles or not _at_home(kernel):  # where there are roles, every group is waited for
        return Counted(kernel)
    cut = {loop.id: count for loop in walk(kernel.body) if isinstance(loop, Loop)
           for count in (_filled(plan, loop, kernel),) if count < loop.extent}
    found = Counted(kernel, tuple(cut.items()))
    waits = (n for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "wait")
    return found if all(map(found.known, waits)) else Counted(kernel)


def _filled(plan: Plan, loop: Loop, kernel: Kernel) -> int:
    """In how many of its first iterations a loop that closes groups itself may make a bulk copy."""
    if is_once(loop) or loop.role == "launch" or not _closes(loop.body):
        return loop.extent
    found = 0
    for leaf, above in leaves(kernel.body):
        if leaf.mechanism == "bulk" and any(x.id == loop.id for x in above) and all(x.extent > 0 for x in above):
            found = max(found, _iterations(plan, leaf, loop, loop_ranges(above)))
    return found


def _closes(nodes: tuple[Node, ...]) -> bool:
    """Whether nodes of a body close groups, and no loop among them several."""
    below = (n for n in nodes if isinstance(n, Loop))
    alone = all(_closes(n.body) if is_once(n) and closed_in(n.body) else not closed_in(n.body) for n in below)
    return alone and closed_in(nodes) > 0


def _iterations(plan: Plan, leaf: Leaf, loop: Loop, scope: Ranges) -> int:
    """The first iterations of the loop in which the leaf may run: up to the last one that its conditions allow."""
    last = loop.start + loop.extent - 1
    for c in plan.statement_of[leaf.statement].domain:
        e = c.expr.substitute(leaf.places, scope)
        if (by := e.coefficient(loop.id)) < 0:
            rest = e - var(loop.id) * by
            if loop.id not in rest.variables():
                last = min(last, rest.interval(scope)[1] // -by)
    return max(last - loop.start + 1, 0)


def _at_home(kernel: Kernel) -> bool:
    """Whether the groups of all copies are closed in the iteration of a loop in which they are made."""
    waiting = set[str | None]()
    for node, home in _homes(kernel.body, None):
        if isinstance(node, Leaf):
            waiting.add(home)
        elif waiting - {home}:
            return False
        else:
            waiting.clear()
    return not waiting


def _homes(nodes: tuple[Node, ...], home: str | None) -> Iterator[tuple[Leaf | Sync, str | None]]:
    """Bulk copies and commits in order of the text, each with the innermost loop around it that closes groups."""
    for node in nodes:
        if isinstance(node, Loop):
            yield from _homes(node.body, home if is_once(node) or not closed_in(node.body) else node.id)
        elif node.mechanism == "bulk" if isinstance(node, Leaf) else node.kind == "commit":
            yield node, home
