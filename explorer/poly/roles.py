"""Roles of a block's warps: a producer that issues bulk copies, and consumers that use them, ordered by mbarriers alone.

In the plan's text the two stand in one body, which is one order in which they may run: what a thread that did everything would
do.  Two threads run it at a time: the producer the copies, their commits and ``acquire``, all consumers the rest.  Edges between
them are counted in groups (:mod:`~explorer.poly.groups`), which are affine in the loops, so that trip counts stay whole:

- group ``g`` of copies is complete before a wait for it returns;
- release ``r`` happens before an acquire that waits for it returns: an acquire with `pending` behind ``n`` releases of the text
  waits for the first ``n - pending`` of them.

What is asked: does every use of a cell end before a release, and does that happen before the acquire in front of the copy that
writes the cell again?  A read ends where it stands; a product in flight at a wait for products; a copy at the wait for its group.
Then whether mbarriers are told apart: the one of a group (and of a release) is used again by the `n`-th group behind it, in the
phase with the other parity, which must not end while somebody still waits for the phase before.

No schedule of the two can block: everything that is waited for stands before the wait in the text, so that the text's order is a
ranking of all events, whatever the trip counts are.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.expr import ZERO, Expr, const, var
from ..ir.finding import Finding
from ..ir.instructions import stays_in_flight
from ..ir.plan import Plan
from ..ir.tree import Kernel, Loop, Sync, leaves, walk
from ..ir.tree import ranges as loop_ranges
from .arrivals import mbarriers, release_mbarriers
from .asynchronous import Points, StillOpen
from .decide import decide
from .events import Event, earlier, events
from .feasible import feasible
from .flow_text import cell_text, element, instance
from .groups import COPIES, PRODUCTS, RELEASES, Landing, Queue, Step, closed_before, closed_in, landings, path_to
from .linear import Case, Condition, Tuple, box, equal, less
from .multicast import check_multicast
from .turns import check_turns

MORE = "a slot is written again when all consumers have released it, and the producer has waited for that"

GROUP_REGISTERS, UNIT, MOST_USED = 512, 8, 255
"""Registers of a thread where a multiprocessor holds one warpgroup (65536 / 128), the unit of ``setmaxnreg``, and what a thread
can use (PTX ISA, "setmaxnreg"; CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""


def with_producer(kernel: Kernel, block: tuple[int, int, int]) -> tuple[int, int, int]:
    """The threads (x, y, z) of a block, with the row of its producer if it has one."""
    x, y, z = block
    return (x, y + 1, z) if kernel.has_roles else block


def shares(rows: int, registers: int, blocks: int = 1) -> tuple[int, int]:
    """Registers of each thread of so many warpgroups and a producer's, and what the producer keeps where the others take more.

    With so many `blocks` on a multiprocessor, each has a part of its registers.
    """
    share = min(MOST_USED, GROUP_REGISTERS // ((rows + 1) * blocks)) // UNIT * UNIT
    return share, min(share, (share * (rows + 1) - registers * rows) // UNIT * UNIT)


def check_roles(plan: Plan) -> tuple[Finding, ...]:
    """Whether mbarriers order every copy of a producer with what its consumers do.

    Parameters
    ----------
    plan : Plan
        A plan that passes *cover*, *order* and *flow*, asynchronous copies and products included.

    Returns
    -------
    tuple of Finding
        One for each pair of a use and a later copy that fails, with the smallest pair of instances; or one for what a kernel with
        roles cannot have at all.
    """
    found: list[Finding] = []
    for number, kernel in enumerate(plan.kernels):
        if kernel.has_roles:
            found += _apart(plan, kernel) or (*_slots(plan, kernel, number), *_phases(plan, kernel))
        found += check_turns(plan, kernel)
    return tuple(found) or check_multicast(plan)


def mixed(plan: Plan, kernel: Kernel) -> str:
    """What keeps a kernel's warps from having roles, in words; empty where nothing does."""
    group = next(g for g in plan.launched if kernel in g)
    if len(group) > 1:
        return f"{', '.join(k.id for k in group)} share one launch, and their phases meet in barriers of all threads"
    for leaf, above in leaves(kernel.body):
        if leaf.mechanism == "async":
            return f"{leaf.id} is copied by the consumers (cp.async), whose groups would be counted with the producer's"
        places = {x.id: x for x in above}
        if odd := next((how for name, how in leaf.collect if not (how == "atomic" and name in places)), ""):
            return f"{leaf.id} is combined by {odd}: all threads of the block would meet"
    x, y, z = plan.extents[kernel.id][3:]
    if z > 1 or x % 32:
        return f"its blocks have {x} x {y} x {z} threads: the producer's warp is another row of them, of whole warps"
    return ""


def _apart(plan: Plan, kernel: Kernel) -> tuple[Finding, ...]:
    """A kernel whose threads cannot be told apart."""
    if not (why := mixed(plan, kernel)):
        return ()
    return (Finding("flow", f"{kernel.id} cannot have a producer beside its consumers", why, nodes=(kernel.id,)),)


# -- slots ---------------------------------------------------------------------------------------------------------------


def _slots(plan: Plan, kernel: Kernel, number: int) -> Iterator[Finding]:
    """Uses that may still go on when the producer writes their cells again."""
    mine = [e for e in events(plan) if e.launch == number]
    copies = [e for e in mine if e.site.leaf.mechanism == "bulk" and e.site.writes]
    for copy in copies:
        waits = landings(kernel, copy.site.leaf.id, RELEASES)
        for use in mine:
            if use.site.cells != copy.site.cells:
                continue
            group = _release_of(kernel, use)
            known = waits if group is not None else ()
            early: Points | None = decide(StillOpen(use.site, copy.site, earlier(use, copy, "a", "b"), group or ZERO, known))
            if early:
                yield _finding(kernel, use, copy, early)


def _release_of(kernel: Kernel, use: Event) -> Expr | None:
    """The release by which a use has ended, over its loops; None where none is known to be."""
    leaf = use.site.leaf
    path = path_to(kernel, leaf.id)
    if leaf.mechanism == "bulk":
        return _through(kernel, COPIES, path)
    if stays_in_flight(leaf.mechanism):
        if _lands_before_release(kernel, path, PRODUCTS):
            return closed_before(path, RELEASES)
        return _through(kernel, PRODUCTS, path)
    return closed_before(path, RELEASES)


def _lands_before_release(kernel: Kernel, path: tuple[Step, ...], queue: Queue) -> bool:
    """Whether a group has surely landed at the next release, in the same iterations of all loops around that."""
    releases = [n.id for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "release"]
    to = path_to(kernel, releases[0]) if len(releases) == 1 else ()
    last = len(to) - 1
    if not to or len(path) <= last or any(a.index != b.index for a, b in zip(path[:last], to, strict=False)) or (
            path[last].index >= to[last].index):
        return False
    scope, group = loop_ranges(tuple(s.loop for s in path if s.loop is not None)), closed_before(path, queue)
    return any(not w.when and (w.landed - group).simplify(scope).interval(scope)[0] >= 1
               for w in landings(kernel, releases[0], queue))


def _through(kernel: Kernel, queue: Queue, path: tuple[Step, ...]) -> Expr | None:
    """The release by which the group of the node at a path's end is complete; None where none is known to be.

    A wait for it behind the node, in the same iterations, tells which.  Else, with ``rate`` groups to each release, release ``r``
    covers those below ``rate * r + ahead``.
    """
    if (found := _waited_behind(kernel, queue, path)) is not None:
        return found
    rate = _rate(kernel, queue)
    ahead, group = _ahead(kernel, queue, rate), closed_before(path, queue)
    if ahead is None:
        return None
    counts = dict(group.terms)
    ends = {s.loop.id: const(s.loop.start + s.loop.extent - 1) for s in path if s.loop and counts.get(s.loop.id, 0) % rate}
    last = group.substitute(ends) - (min(ahead, 1) - 1)  # the last one between two releases
    if any(factor % rate for _, factor in last.terms):
        return None
    return Expr(tuple((atom, factor // rate) for atom, factor in last.terms), -(-last.const // rate))


def _waited_behind(kernel: Kernel, queue: Queue, path: tuple[Step, ...]) -> Expr | None:
    """The release behind the first wait for a node's group, or a later one, in the iteration in which the group is closed; None
    where there is no such wait.
    """
    group, scope = closed_before(path, queue), loop_ranges(tuple(s.loop for s in path if s.loop is not None))
    for step in reversed(path):
        for node in step.body[step.index + 1:]:
            if isinstance(node, Sync) and node.kind == queue.wait:
                to = path_to(kernel, node.id)
                if (closed_before(to, queue) - node.pending - group).simplify(scope).interval(scope)[0] >= 1:
                    return closed_before(to, RELEASES)
        if closed_in(step.body, queue):
            return None
    return None


def _rate(kernel: Kernel, queue: Queue) -> int:
    """Groups of a queue to each release, where the one loop around releases closes several; else 1."""
    loops = [n for n in walk(kernel.body) if isinstance(n, Loop)]
    around = [n.body for n in loops if any(isinstance(x, Sync) and x.kind == "release" for x in n.body)]
    if len(around) != 1 or closed_in(around[0], RELEASES) != 1:
        return 1
    return max(1, closed_in(around[0], queue))


def _ahead(kernel: Kernel, queue: Queue, rate: int = 1) -> int | None:
    """By how many the groups that have landed at a release are at least ahead of `rate` times its number.

    None where no wait surely ran.
    """
    least: int | None = None
    for node, path in ((n, path_to(kernel, n.id)) for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "release"):
        number, scope = closed_before(path, RELEASES) * rate, loop_ranges(tuple(s.loop for s in path if s.loop is not None))
        sure = [(w.landed - number).simplify(scope).interval(scope)[0] for w in landings(kernel, node.id, queue) if not w.when]
        if not sure:
            return None
        least = max(sure) if least is None else min(least, max(sure))
    return least


def _finding(kernel: Kernel, use: Event, copy: Event, early: Points) -> Finding:
    a, b = use.site, copy.site
    source, sink = instance(a, early[0]), instance(b, early[1])
    verb = "writes" if a.writes else "reads"
    acquires = [n for n in walk(kernel.body) if isinstance(n, Sync) and n.kind == "acquire"]
    hints = tuple(f"{n.id} with at most {n.pending - 1} pending releases instead of {n.pending}" for n in acquires if n.pending)
    lines = tuple(sorted({s.statement.line for s in (a, b) if s.statement.line}))
    return Finding("flow", f"{sink} may write {cell_text(b, early[1])} before {source}, which {verb} it, has ended",
                   f"{MORE}; no release behind {source} is waited for before {sink}", b.statement.accesses[b.slot].array,
                   element(b, early[1]), "output" if a.writes else "anti", source, sink,
                   (a.leaf.id, b.leaf.id, *(n.id for n in acquires)), lines, hints or ("an acquire before the copies",))


# -- phases --------------------------------------------------------------------------------------------------------------


def _phases(plan: Plan, kernel: Kernel) -> Iterator[Finding]:
    """Mbarriers that may go on by two phases while somebody waits for the first."""
    count, freed = mbarriers(plan, kernel), release_mbarriers(kernel)
    syncs = [n for n in walk(kernel.body) if isinstance(n, Sync)]
    for w in (n for n in syncs if n.kind == "wait"):
        for c in (n for n in syncs if n.kind == "commit"):
            if not _one_at_a_time(kernel, w, c, count):
                yield _phase(w, c, f"{c.id} may close the group that is {count} behind the one that {w.id} still waits for")
    for q in (n for n in syncs if n.kind == "acquire"):
        path = path_to(kernel, q.id)
        scope = loop_ranges(tuple(s.loop for s in path if s.loop is not None))
        wanted = closed_before(path, RELEASES) - (q.pending + 1)
        if wanted.interval(scope)[0] < -freed:
            yield _phase(q, q, f"{q.id} waits for a release that never was")
        elif any(_overtaken(kernel, q, n, freed) for n in syncs if n.kind == "release"):
            yield _phase(q, q, f"consumers may release {freed} slots more while {q.id} still waits for one")


def _phase(node: Sync, other: Sync, what: str) -> Finding:
    return Finding("flow", what, "a parity tells a phase of an mbarrier from the next one, not from the one behind that",
                   nodes=tuple(dict.fromkeys((node.id, other.id))), hints=("an acquire before the copies of each group",))


def _one_at_a_time(kernel: Kernel, wait: Sync, commit: Sync, count: int) -> bool:
    """Whether all consumers have passed a wait when the group `count` behind its own is closed."""
    at, to = path_to(kernel, wait.id), path_to(kernel, commit.id)
    sides, group = (_side(at, "a"), _side(to, "b")), closed_before(at) - (wait.pending + 1)
    again, passed = equal(group + count, "a", closed_before(to), "b"), closed_before(at, RELEASES)
    held = (*sides[0][1], *sides[1][1], again)
    tuples = (sides[0][0], sides[1][0])
    return not feasible(tuples, held) or any(_always(tuples, held, w, less(w.landed, "b", passed, "a", 0))
                                             for w in landings(kernel, commit.id, RELEASES))


def _always(tuples: tuple[Tuple, Tuple], held: Case, w: Landing, otherwise: Condition) -> bool:
    """Whether, of pairs of which `held` says all, a landing of the second one exists, and never is as `otherwise` says."""
    missing = (less(e, "b", ZERO, "b") for e in w.when)
    return not any(feasible(tuples, (*held, c)) for c in (otherwise, *missing))


def _overtaken(kernel: Kernel, acquire: Sync, release: Sync, count: int) -> bool:
    """Whether a release `count` behind the one that an acquire waits for may come before the producer goes on.

    It does not where consumers have to wait before it for a group that is closed behind the acquire.
    """
    at, to = path_to(kernel, acquire.id), path_to(kernel, release.id)
    sides, wanted = (_side(at, "a"), _side(to, "b")), closed_before(at, RELEASES) - (acquire.pending + 1)
    held = (*sides[0][1], *sides[1][1], equal(wanted + count, "a", closed_before(to, RELEASES), "b"))
    tuples = (sides[0][0], sides[1][0])
    return feasible(tuples, held) and not any(_always(tuples, held, w, less(w.landed, "b", closed_before(at), "a", 0))
                                              for w in landings(kernel, release.id, COPIES))


def _side(path: tuple[Step, ...], side: str) -> tuple[Tuple, Case]:
    """The loops around a synchronisation, on one side of a relation, with their ranges."""
    loops = [s.loop for s in path if s.loop is not None]
    return Tuple(side.upper(), side, tuple(x.id for x in loops)), box(((var(x.id), x.start, x.extent) for x in loops), side)


__all__ = ["UNIT", "check_roles", "mixed", "shares", "with_producer"]
