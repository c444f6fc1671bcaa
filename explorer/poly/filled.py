"""Which groups of bulk copies are counted: those in which a copy is made, or for which a wait is.

In its last iterations a pipeline copies nothing more.  The plan closes a group there all the same, and threads that wait for
their own copies count it.  An mbarrier must not: a phase that nobody waits for is an error (compute-sanitizer's synccheck calls
it a missing wait), and its arrival is for nothing.  So a loop closes groups of bulk copies in its first iterations alone, as long
as there is something to copy, and groups are numbered without the others::

    plan       0 1 | 2 3 4 (5) (6)    0 1 | 2 3 4 (5) (6)       stages 3, five iterations, a tile after another
    counted    0 1 | 2 3 4            5 6 | 7 8 9

Numbers stay affine in the loops around: a loop that stops closing groups contributes a constant to whatever comes after it.
An iteration may close several groups, of pipelines of different depths: the shallow ones copy nothing in the first iterations of
the prologue, and some hold copies of each thread alone.  Its c groups of bulk copies are then counted one apart from the other:
the p-th one of the n-th iteration that has it is group ``c * n + p``.
Where that cannot be said of all waits of a kernel, every group is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from ..ir.expr import ZERO, Expr, Ranges, const, var
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
    cut : mapping of str to range
        Loops that close groups in some iterations only, and in which, counted from their first one.
    apart : tuple of Counted or None
        For each place of a commit in an iteration its groups alone, in kernels without the others, or None where none of them has
        bulk copies; empty where all are numbered together.
    """

    kernel: Kernel
    cut: Mapping[str, range] = field(default_factory=dict[str, range])
    apart: tuple[Counted | None, ...] = ()

    @property
    def all(self) -> int:
        """How many groups there are."""
        return sum(one.all for one in self._numbered) if self.apart else self._in(self.kernel.body)

    @property
    def _numbered(self) -> list[Counted]:
        return [one for one in self.apart if one is not None]

    def mbarriers(self) -> int:
        """How many mbarriers the groups take in turn: two more than a wait leaves open, or one for each where there are fewer."""
        open_ = max((n.pending for n in walk(self.kernel.body) if isinstance(n, Sync) and n.kind == "wait" and self.asked(n)),
                    default=0)
        if not self.apart:
            return max(min(open_ + 2, self.all), 1)
        return len(self._numbered) * max(min(open_ // len(self.apart) + 2, max(one.all for one in self._numbered)), 1)

    def group_of(self, node_id: str) -> Expr:
        """The group to which a copy belongs, or which a commit closes where it :meth:`closes` one, over the loops around it."""
        if self.apart:
            one = self._of(node_id)
            return ZERO if one is None else self._number(one, one.group_of(node_id))
        return self._before(path_to(self.kernel, node_id))

    def closes(self, commit_id: str) -> tuple[Expr, ...]:
        """A commit closes a group where all of these are at least 0."""
        if self.apart:
            one = self._of(commit_id)
            return (const(-1),) if one is None else one.closes(commit_id)
        loops = [step.loop for step in path_to(self.kernel, commit_id) if step.loop is not None and step.loop.id in self.cut]
        return (*(var(x.id) - (x.start + self.cut[x.id].start) for x in loops if self.cut[x.id].start),
                *(-var(x.id) + (x.start + self.cut[x.id].stop - 1) for x in loops if self.cut[x.id].stop < x.extent))

    def asked(self, wait: Sync) -> bool:
        """Whether a wait is for a group of bulk copies."""
        return not self.apart or self.apart[self._place(wait)] is not None

    def awaited(self, wait: Sync) -> Expr:
        """The youngest group that a wait lets through: the one that it is for, where it is :meth:`asked` for."""
        found = self._counted(wait)
        return closed_before(path_to(self.kernel, wait.id)) - (wait.pending + 1) if found is None else found

    def known(self, wait: Sync) -> bool:
        """Whether the group of a wait is counted, and its number affine; also where it is for no bulk copies."""
        return not self.asked(wait) or self._counted(wait) is not None

    def _of(self, node_id: str) -> Counted | None:
        """How the groups are counted to which a copy or a commit belongs."""
        return next((one for one in self._numbered if any(n.id == node_id for n in walk(one.kernel.body))), None)

    def _place(self, wait: Sync) -> int:
        return (closed_before(path_to(self.kernel, wait.id)).const - (wait.pending + 1)) % len(self.apart)

    def _number(self, one: Counted, n: Expr) -> Expr:
        return n * len(self._numbered) + self._numbered.index(one)

    def _counted(self, wait: Sync) -> Expr | None:
        if not self.apart:
            return self._awaited(path_to(self.kernel, wait.id), wait.pending)
        one = self.apart[self._place(wait)]
        found = one and one._awaited(path_to(one.kernel, wait.id), wait.pending // len(self.apart))
        return None if one is None or found is None else self._number(one, found)

    # -- counting ------------------------------------------------------------------------------------------------------

    def _in(self, nodes: tuple[Node, ...]) -> int:
        return sum(segment.counted for segment in self._segments(nodes))

    def _before(self, path: tuple[Step, ...]) -> Expr:
        total = ZERO
        for step in path:
            loop = step.loop
            if loop is not None and not is_once(loop) and loop.role != "launch":
                skipped = self.cut[loop.id].start if loop.id in self.cut else 0
                total = total + (var(loop.id) - (loop.start + skipped)) * self._in(loop.body)
            total = total + self._in(step.body[: step.index])
        return total

    def _segments(self, nodes: tuple[Node, ...]) -> Iterator[_Segment]:
        """What nodes of a body close, one after the other."""
        for node in nodes:
            if isinstance(node, Loop) and is_once(node):
                yield from self._segments(node.body if node.extent > 0 else ())
            elif isinstance(node, Loop):
                every, inside = closed_in(node.body), self._in(node.body)
                some = self.cut.get(node.id, range(node.extent))
                yield _Segment(node.extent * every, some.start * every, len(some) * inside, every == inside)
            elif isinstance(node, Sync) and node.kind == "commit":
                yield _Segment(1, 0, 1)

    def _awaited(self, path: tuple[Step, ...], pending: int) -> Expr | None:
        """In the innermost body in which the group was closed, its number there without those that are not counted."""
        scope = loop_ranges(tuple(s.loop for s in path if s.loop is not None))
        for depth in reversed(range(len(path))):
            step = path[depth]
            local = closed_before((replace(step, loop=None), *path[depth + 1:])) - (pending + 1)
            first, last = local.interval(scope)
            if first < 0:
                continue
            if any(s.loop is not None and s.loop.id in self.cut for s in path[: depth + 1]):
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
                counts = range(start + s.skipped, start + s.skipped + s.counted)
                whole = s.closed == s.counted or (s.together and max(first, start) >= counts.start
                                                and min(last, start + s.closed - 1) < counts.stop)
                found.add(start + s.skipped - counted if whole else None)
            start, counted = start + s.closed, counted + s.counted
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class _Segment:
    """Groups that a node closes, how many before the first that counts, how many count, and whether these are side by side."""

    closed: int
    skipped: int
    counted: int
    together: bool = True


@per_program(256)
def counted(plan: Plan, kernel: Kernel) -> Counted:
    """The groups of bulk copies that a kernel of a plan counts."""
    if kernel.has_roles or not _at_home(kernel):  # where there are roles, every group is waited for
        return Counted(kernel)
    apart = tuple(Counted(one, _cut(plan, one)) if _in_bulk(one) else None for one in _places(kernel))
    alike = len({None if one is None else tuple(one.cut.items()) for one in apart}) < 2
    ways = (None if alike else Counted(kernel, apart=apart), Counted(kernel, _cut(plan, kernel)))
    waits = [n for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "wait"]
    return next((found for found in ways if found is not None and all(map(found.known, waits))), Counted(kernel))


def _in_bulk(kernel: Kernel) -> bool:
    return any(leaf.mechanism == "bulk" for leaf, _ in leaves(kernel.body))


def _places(kernel: Kernel) -> tuple[Kernel, ...]:
    """A kernel for each place of a commit in an iteration, without the commits at other places and their bulk copies."""
    before = {n.id: closed_before(path_to(kernel, n.id)) for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "commit"}
    each = {closed_in(n.body) for n in walk(kernel.body) if isinstance(n, Loop) and not is_once(n) and _closes(n.body)}
    if len(each) != 1 or any(e.coefficient(v) % min(each) for e in before.values() for v in e.variables()):
        return ()
    n = each.pop()
    place = {name: e.const % n for name, e in before.items()}
    waiting = list[str]()
    for node, _ in _homes(kernel.body, None):
        waiting.append(node.id)
        if isinstance(node, Sync):
            place |= dict.fromkeys(waiting, place[node.id])
            waiting.clear()
    return tuple(replace(kernel, body=_without(kernel.body, {x for x in place if place[x] != p})) for p in range(n))


def _without(nodes: tuple[Node, ...], gone: Set[str]) -> tuple[Node, ...]:
    return tuple(replace(n, body=_without(n.body, gone)) if isinstance(n, Loop) else n for n in nodes if n.id not in gone)


def _cut(plan: Plan, kernel: Kernel) -> dict[str, range]:
    """The loops that close groups of bulk copies in some of their iterations only."""
    return {loop.id: some for loop in walk(kernel.body) if isinstance(loop, Loop)
            for some in (_filled(plan, loop, kernel),) if len(some) < loop.extent}


def _filled(plan: Plan, loop: Loop, kernel: Kernel) -> range:
    """From which of its iterations to which one a loop that closes groups itself may make a bulk copy."""
    if is_once(loop) or loop.role == "launch" or not _closes(loop.body):
        return range(loop.extent)
    found = [_iterations(plan, leaf, loop, loop_ranges(above)) for leaf, above in leaves(kernel.body)
             if leaf.mechanism == "bulk" and any(x.id == loop.id for x in above) and all(x.extent > 0 for x in above)]
    some = [r for r in found if r]
    return range(min(r.start for r in some), max(r.stop for r in some)) if some else range(0)


def _closes(nodes: tuple[Node, ...]) -> bool:
    """Whether nodes of a body close groups, and no loop among them several."""
    below = (n for n in nodes if isinstance(n, Loop))
    alone = all(_closes(n.body) if is_once(n) and closed_in(n.body) else not closed_in(n.body) for n in below)
    return alone and closed_in(nodes) > 0


def _iterations(plan: Plan, leaf: Leaf, loop: Loop, scope: Ranges) -> range:
    """The iterations of the loop, counted from its first one, in which its conditions let the leaf run."""
    first, last = loop.start, loop.start + loop.extent - 1
    for c in plan.statement_of[leaf.statement].domain:
        e = c.expr.substitute(leaf.places, scope)
        if by := e.coefficient(loop.id):
            rest = e - var(loop.id) * by
            if loop.id not in rest.variables():
                most = rest.interval(scope)[1]
                first, last = (first, min(last, most // -by)) if by < 0 else (max(first, -(most // by)), last)
    return range(first - loop.start, max(last - loop.start, first - loop.start - 1) + 1)


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
