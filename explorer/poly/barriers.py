"""Where the threads of a block must wait for each other: exact conflicts, and the cheapest set of barriers that covers them.

Two accesses conflict when two different threads of one block touch one cell, at least one of them writing.  Each kind
of conflict is a separate, exact question about two accesses:

- *independent*: all common loops are at the same iteration; a barrier must stand textually between the two leaves;
- *carried* by a common sequential loop: the first access in an earlier iteration than the second.  From one iteration
  to the next a barrier must stand in that loop after the first or before the second; two iterations apart any barrier
  in the loop will do;
- *equal time*: nothing can stand between the two; that is a race.

Only the questions that are not already answered by a stricter one are asked.  The positions are then a minimum
hitting set, weighted by how often a barrier would run.  The textual rule is sufficient because every thread walks the
same loops (boxes) in the same order; no warp is assumed to be in lockstep (CUDA C++ Programming Guide, "Independent
Thread Scheduling").  Reference for the conflict relation: Verdoolaege et al., "Polyhedral Parallel Code Generation
for CUDA" (TACO 2013), section on synchronisation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from ..ir.expr import ZERO, Expr, var
from ..ir.finding import Finding, Instance
from ..ir.instructions import stays_in_flight
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.tree import Kernel, Loop
from .arrivals import copies_in_bulk, reuses
from .bulk_store import BULK_STORE
from .decide import Meet, decide
from .groups import COPIES, PRODUCTS, Queue
from .isl import Undecided, alone, smallest
from .linear import Case, Cases, Condition, build_map, differ, equal, less
from .sites import Site, launch_extents, sites, thread_weights
from .slots import Slot, TextOrder, choose, latest, text_order

BUDGET = 400_000
"""Operations of isl for one question (a few hundred milliseconds at most); beyond, the conflict is assumed."""


@dataclass(frozen=True)
class Barriers:
    """The barriers of a kernel.

    Attributes
    ----------
    before : frozenset of (str, int)
        A barrier stands in the body of this parent (kernel or loop) before the child with this index.  A parent may
        lie inside a thread loop that is narrower than the launch, if no other place will do: the leaves there then
        need the guard, not the loop.
    races : tuple of Finding
        Conflicts that no barrier can order.
    undecided : int
        Questions that isl could not answer within its budget; a barrier was placed for each.
    """

    before: frozenset[tuple[str, int]] = frozenset()
    races: tuple[Finding, ...] = ()
    undecided: int = 0


@dataclass(frozen=True)
class Question:
    """Whether two accesses conflict in one way, and which positions would order them.

    `relation` lists what holds between the loops of the two: ``("=", loop)`` same iteration, ``("+1", loop)`` the
    next one, ``("+2", loop)`` a later one still.
    """

    first: Site
    second: Site
    relation: tuple[tuple[str, str], ...]
    positions: frozenset[Slot]


@per_program(512)
@alone
def barriers(plan: Plan, kernel: Kernel) -> Barriers:
    """Barriers that a kernel needs, exactly.

    Parameters
    ----------
    plan : Plan
    kernel : Kernel
        One of the plan's kernels.

    Returns
    -------
    Barriers
    """
    launch = launch_extents(plan, kernel)
    if prod(launch[3:]) == 1:
        return Barriers()
    order = text_order(kernel, launch, _may_skip(plan, kernel))
    needed: list[frozenset[Slot]] = []
    undecided = 0
    for q in sorted(_questions(plan, kernel, order), key=lambda q: len(q.positions)):
        positions = _positions(q, order)
        if not positions or any(known <= positions for known in needed):
            continue
        answer = conflict(q, launch)
        undecided += answer is None
        if answer is not False:
            needed.append(positions)
    for positions in reuses(plan, kernel, order) if copies_in_bulk(kernel) and not kernel.has_roles else ():
        assert positions, "a barrier can stand in every body that is no vector's"
        if not any(s.given and s.always for s in positions):
            needed.append(frozenset(s for s in positions if not s.given))
    chosen = choose(needed)
    return Barriers(frozenset((s.parent, s.index) for s in chosen), races(plan, kernel), undecided)


@per_program(512)
@alone
def races(plan: Plan, kernel: Kernel) -> tuple[Finding, ...]:
    """Conflicts of a kernel's threads that no barrier can order: only pairs between which none can stand are asked about."""
    launch = launch_extents(plan, kernel)
    if prod(launch[3:]) == 1:
        return ()
    order = text_order(kernel, launch, _may_skip(plan, kernel))
    found = [Finding("race", f"{leaf} makes all threads of a block meet, while one warpgroup has its turn",
                     "the others wait for theirs, and nobody goes on", nodes=(leaf,),
                     hints=("take_turns is the last move of such a loop",)) for leaf in order.stuck]
    found += [_race(plan, q, launch) for q in _questions(plan, kernel, order, True)
              if _positions(q, order) == frozenset() and conflict(q, launch)]
    return _distinct(found)


def check_races(plan: Plan) -> tuple[Finding, ...]:
    """Conflicts of threads that no barrier can order, in any kernel of a plan without open obligations."""
    return tuple(race for kernel in plan.kernels for race in races(plan, kernel))


def _positions(q: Question, order: TextOrder) -> frozenset[Slot] | None:
    """Where a barrier could order the two accesses of a question; None where one that stands anyway does."""
    if any(s.given and (s.always or s.parent in (q.first.leaf.id, q.second.leaf.id)) for s in q.positions):
        return None
    positions = frozenset(s for s in q.positions if not s.given)
    return latest(positions, order.at(q.second)) if q.first.leaf.mechanism == BULK_STORE else positions


def _may_skip(plan: Plan, kernel: Kernel) -> frozenset[str]:
    """Leaves that whole blocks may skip in some iteration: a guard on them mentions no thread."""
    out = set()
    for site in sites(plan)[kernel.id]:
        threads = {x.id for x in site.above if x.is_thread}
        if any(not (c.expr.variables() & threads) for c in site.guards):
            out.add(site.leaf.id)
    return frozenset(out)


def _distinct(races: list[Finding]) -> tuple[Finding, ...]:
    return tuple({(f.nodes, f.array, f.kind): f for f in reversed(races)}.values())[::-1]


def _questions(plan: Plan, kernel: Kernel, order: TextOrder, no_room: bool = False) -> Iterator[Question]:
    """All pairs of accesses to one storage of the block or of the grid, in every way they could meet; with `no_room`, in those
    ways alone in which no further barrier could stand between the two.
    """
    by_storage: dict[tuple[str, bool], list[Site]] = {}
    for site in sites(plan)[kernel.id]:
        if site.space != "register":
            by_storage.setdefault(site.cells, []).append(site)
    for group in by_storage.values():
        for i, a in enumerate(group):
            for b in group[i:]:
                if kernel.has_roles and "bulk" in (a.leaf.mechanism, b.leaf.mechanism):
                    continue  # mbarriers alone order the producer with consumers: see `roles`
                if (a.writes or b.writes) and not (a.atomic and a.atomic == b.atomic):
                    found = _pair_questions(a, b, order, no_room)
                    yield from (q for q in found if all(s.given for s in q.positions)) if no_room else found


def _pair_questions(a: Site, b: Site, order: TextOrder, no_room: bool) -> Iterator[Question]:
    common = _common(a.above, b.above)
    same = tuple(("=", x.id) for x in common)
    every = not no_room or any(_queue(x) for x in (a, b))
    if a.leaf.id == b.leaf.id:
        first, second = (a, b) if order.at(a) <= order.at(b) else (b, a)
        yield Question(first, second, same, order.between(order.at(first), order.at(second)))
    else:
        first, second = (a, b) if order.at(a) < order.at(b) else (b, a)
        if every or not order.can(order.at(first), order.at(second)):
            yield from _ordered(first, second, same, order, order.between(order.at(first), order.at(second)))
    for depth, loop in enumerate(common):
        if loop.extent < 2 or loop.role == "launch":
            continue
        outer = tuple(("=", x.id) for x in common[:depth])
        for first, second in ((a, b),) if a is b else ((a, b), (b, a)):
            if every or not order.can_around(loop.id, order.at(first), order.at(second)):
                around = order.around(loop.id, order.at(first), order.at(second))
                yield from _ordered(first, second, (*outer, ("+1", loop.id)), order, around)
            if every or not order.can_inside(loop.id):
                yield from _ordered(first, second, (*outer, ("+2", loop.id)), order, order.inside(loop.id))


def _queue(site: Site) -> Queue | None:
    """What counts the work that an access leaves in flight; its thread waits for that."""
    mechanism = site.leaf.mechanism
    return COPIES if mechanism == "async" else PRODUCTS if stays_in_flight(mechanism) else None


def _ordered(first: Site, second: Site, relation: tuple, order: TextOrder, positions: frozenset[Slot]) -> Iterator[Question]:
    """The question itself; what a ``cp.async`` does ends at its own thread's wait, so a barrier must follow that wait as well.

    So it is with a product in flight and its warpgroup's wait.
    What a bulk copy does ends at a wait of every thread (:mod:`~explorer.poly.asynchronous`): nothing has to stand behind it.
    """
    if first.leaf.mechanism == "bulk":
        return
    yield Question(first, second, relation, positions)
    queue = _queue(first)
    for after_wait in order.after_waits(second, queue.wait) if queue else ():
        yield Question(first, second, relation, after_wait)


def _common(a: tuple[Loop, ...], b: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Time loops around both."""
    shared = []
    for x, y in zip(a, b, strict=False):
        if x.id != y.id:
            break
        shared.append(x)
    return tuple(x for x in shared if not x.is_place)


# -- one question ------------------------------------------------------------------------------------------------


def conflict(q: Question, launch: tuple[int, ...]) -> bool | None:
    """Whether different threads of one block meet as the question says; None when isl gave up."""
    try:
        if q.first.writes and q.second.writes and not _meets(replace(q, relation=()), launch):
            return False
        return _meets(q, launch)
    except Undecided:
        return None


def _meets(q: Question, launch: tuple[int, ...]) -> bool:
    return _pair_meets(q.first, q.second, q.relation, launch)


@lru_cache(maxsize=16384)
def _pair_meets(first: Site, second: Site, relation: tuple[tuple[str, str], ...], launch: tuple[int, ...]) -> bool:
    q = Question(first, second, relation, frozenset())
    return decide(Meet(first.names("a"), second.names("b"), _same_cell(q), _different_threads(q, launch), BUDGET))


def _same_cell(q: Question) -> Case:
    """Both leaves on one cell in one block, their loops related as the question says."""
    a, b = q.first, q.second
    related = [_related(var(loop), how) for how, loop in sorted(q.relation)]
    cells = [(e, f) for e, f in zip(a.cell, b.cell, strict=True) if e is not None and f is not None]
    blocks = [(e, f) for e, f in zip(a.place[:3], b.place[:3], strict=True)
              if e is not None and f is not None and not (e == f and e.is_constant)]
    launches = [(var(x.id), var(x.id)) for x in _common(a.above, b.above) if x.role == "launch"]
    alike = [equal(e, "a", f, "b") for e, f in (*cells, *blocks, *launches)]
    return (*a.conditions("a"), *b.conditions("b"), *related, *alike)


def _related(loop: Expr, how: str) -> Condition:
    """The same iteration of a loop, the next one, or one two or more later."""
    return {"=": equal(loop, "a", loop, "b"), "+1": equal(loop + 1, "a", loop, "b"), "+2": less(loop, "a", loop, "b", 2)}[how]


def _different_threads(q: Question, launch: tuple[int, ...]) -> Cases:
    """Cases in which the two threads differ; one empty case when replicas alone make them differ."""
    axes = [i for i in range(3, 7) if launch[i] > 1]
    ours, theirs = [q.first.place[i] for i in axes], [q.second.place[i] for i in axes]
    if None in ours or None in theirs:
        return ((),)
    weights = dict(zip(range(3, 7), thread_weights(launch), strict=True))
    left = sum((e * weights[i] for i, e in zip(axes, ours, strict=True) if e is not None), ZERO)
    right = sum((e * weights[i] for i, e in zip(axes, theirs, strict=True) if e is not None), ZERO)
    symmetric = q.first is q.second and all(how == "=" for how, _ in q.relation)
    both = differ(left, "a", right, "b")
    return both[:1] if symmetric else both


# -- findings ----------------------------------------------------------------------------------------------------


def _race(plan: Plan, q: Question, launch: tuple[int, ...]) -> Finding:
    """The smallest pair that races, in words."""
    a, b = q.first, q.second
    found = (build_map(a.loops("a"), b.loops("b"), [*_same_cell(q), *case]) for case in _different_threads(q, launch))
    values = min(smallest(pairs) for pairs in found if not pairs.is_empty())
    at_a, at_b = values[: len(a.above)], values[len(a.above):]
    source, sink = _instance(a, at_a), _instance(b, at_b)
    cell = tuple(0 if e is None else int(e.evaluate(dict(zip((x.id for x in a.above), at_a, strict=True)))) for e in a.cell)
    name = f"{a.storage}[{', '.join(map(str, cell))}]" if cell else a.storage
    verbs = {True: "writes", False: "reads"}
    kind = "output" if a.writes and b.writes else "flow" if a.writes else "anti"
    lines = tuple(sorted({s.statement.line for s in (a, b) if s.statement.line}))
    return Finding(
        "race",
        f"{source} {verbs[a.writes]} {name} and {sink} {verbs[b.writes]} it in another thread at the same time",
        f"no barrier can stand between {_place_text(source, a)} and {_place_text(sink, b)}",
        a.statement.accesses[a.slot].array, cell, kind, source, sink,
        tuple(dict.fromkeys((a.leaf.id, b.leaf.id))), lines, _hints(plan, q),
    )


def _hints(plan: Plan, q: Question) -> tuple[str, ...]:
    a, b = q.first, q.second
    if a.writes and b.writes and a.statement.update and a.leaf.id == b.leaf.id:
        return tuple(f"collect('{a.statement.target.array}', '{how}')" for how in ("shuffle", "shared", "atomic"))
    if any(x.role == "vector" for x in _common(a.above, b.above)):
        return ("leave the vector loop sequential, or distribute its statements",)
    bound = [x.id for x in a.above if x.is_thread]
    return tuple(f"bind('{name}', 'seq')" for name in bound[-1:]) or ("distribute the loop so that a barrier can stand between",)


def _instance(site: Site, values: tuple[int, ...]) -> Instance:
    place = tuple((x.role, v) for x, v in zip(site.above, values, strict=True) if x.is_place)
    time = tuple(v for x, v in zip(site.above, values, strict=True) if not x.is_place)
    return Instance(site.statement.name, site.instance(values), place, time)


def _place_text(x: Instance, site: Site) -> str:
    unbound = "every thread" if None in site.place else "thread 0"
    return f"{x} ({', '.join(f'{role} {value}' for role, value in x.place) or unbound})"


__all__ = ["BUDGET", "Barriers", "Question", "barriers", "conflict"]
