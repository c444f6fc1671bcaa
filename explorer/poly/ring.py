"""The ring of a pipelined loop: what its plan says of tiles, slots, groups and waits, with the trip count left open.

A pipelined loop brings tile after tile into the slots of its buffers, in turns.  Which tile a copy brings and which one a leaf
reads, the group of a copy and what a wait lets through are affine in the iteration, and none of it depends on the trip count.  So
a loop is read off its plan once; :mod:`~explorer.poly.ring_questions` asks for which trip counts and slots it is right.

Iterations count from 0, and so do tiles; trips are counted in tiles (a loop of which a part runs later has more iterations).  A
copy that runs `ahead` iterations ahead brings tile ``k + ahead`` in iteration ``k``; the prologue's copies are those of
iterations before the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from ..ir.expr import Expr, var
from ..ir.instructions import stays_in_flight
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.program import Statement
from ..ir.tree import Kernel, Leaf, Loop, Sync, leaves, ranges, walk
from .groups import COPIES, PRODUCTS, RELEASES, Queue, closed_before, closed_in, path_to
from .isl import alone
from .linear import Tuple, build_set, holds
from .mechanism import ASYNCHRONOUS


@dataclass(frozen=True)
class Copy:
    """A copy in the loop's body: its leaf, its place in the text, and the groups that an iteration closes before it."""

    leaf: str
    statement: str
    position: int
    group: int = 0


@dataclass(frozen=True)
class Use:
    """A leaf that reads a tile.

    Attributes
    ----------
    leaf, statement : str
    position : int
        In the text of the body.
    tile : int
        The tile that it reads in iteration ``k`` is ``k + tile``.
    product : int
        Products that an iteration issues before it, where it stays in flight itself; else -1.
    """

    leaf: str
    statement: str
    position: int
    tile: int = 0
    product: int = -1


@dataclass(frozen=True)
class Wait:
    """A wait in the body: its place, the groups that an iteration closes before it, and how many it leaves open."""

    node: str
    position: int
    before: int
    pending: int


@dataclass(frozen=True)
class Ring:
    """A pipelined loop.

    Attributes
    ----------
    loop : str
    trips : int
        Of the plan that it is read off.
    slots, ahead : int
        Slots of each buffer, and iterations that the copies run ahead.
    mechanism : str
        ``"plain"``, ``"async"`` or ``"bulk"``.
    copies, uses
    commits, products : int
        Groups of copies, and of products in flight, that an iteration closes.
    waits, done, acquires : tuple of Wait
        For copies, for products, and for releases.
    release : int
        Place of the release; -1 where the loop has no roles.
    """

    loop: str
    trips: int
    slots: int
    ahead: int
    mechanism: str
    copies: tuple[Copy, ...]
    uses: tuple[Use, ...]
    commits: int = 0
    products: int = 0
    waits: tuple[Wait, ...] = ()
    done: tuple[Wait, ...] = ()
    acquires: tuple[Wait, ...] = ()
    release: int = -1

    @property
    def has_roles(self) -> bool:
        """Whether a producer makes the copies."""
        return self.release >= 0

    @property
    def reach(self) -> int:
        """Iterations by which copies may be ahead of what is computed; a producer's as far as its acquire lets them."""
        return self.acquires[0].pending + 1 if self.acquires else self.ahead

    @property
    def release_distance(self) -> int:
        """How many iterations old the tile is, at least, whose slot is given to the next copy."""
        return self.slots - self.reach

    @property
    def products_in_flight(self) -> int:
        """Steps whose products may be in flight."""
        return self.done[0].pending // self.products if self.done and self.products else 0

    @property
    def copies_in_flight(self) -> int:
        """Groups of copies that the loop's wait leaves open."""
        return self.waits[0].pending if self.waits else 0

    @property
    def shape(self) -> Ring:
        """What stays the same with other sizes, slots and waits."""
        still = (tuple(replace(w, pending=0) for w in kind) for kind in (self.waits, self.done, self.acquires))
        return replace(self, trips=0, slots=0, ahead=0, waits=next(still), done=next(still), acquires=next(still))


@per_program(128)
@alone
def ring(plan: Plan, loop_id: str, of: tuple[str, ...] = ()) -> Ring | str:
    """The ring of a loop, or a sentence why it is none.

    Parameters
    ----------
    plan : Plan
        It may be illegal.
    loop_id : str
        A sequential loop.
    of : tuple of str
        The copies in question where those of the loop are not made alike; by default all.
    """
    loop, kernel = plan.loops.get(loop_id), plan.kernel_of(loop_id)
    if loop is None or kernel is None or loop.role not in ("seq", "unroll"):
        return f"{loop_id} is no loop in time"
    body = _Body(plan, kernel, loop)
    copied = list(body.copies())
    if not copied or body.tiles is None:
        return f"no copies into shared memory are made in {loop_id}, tile after tile"
    copied = [c for c in copied if not of or c[0].statement in of]
    facts = {(slots, ahead, leaf.mechanism) for leaf, slots, ahead in copied}
    if not facts:
        return f"{' and '.join(of)} is no copy of a tile for each iteration of {loop_id}"
    if len(facts) > 1:
        return (f"the copies in {loop_id} have slots, or run ahead, each in a way of its own: ask for one of them, "
                f"copies=({copied[0][0].statement!r},)")
    (slots, ahead, mechanism), = facts
    own = {leaf.id for leaf, _, _ in copied}
    syncs = [n for n in walk(loop.body) if isinstance(n, Sync)]
    if odd := next((n for n in syncs if n not in loop.body), None):
        return f"{odd.id} stands in a loop of its own in {loop_id}"
    if why := body.odd_prologue(own, ahead):
        return why
    uses = body.uses(own)
    if isinstance(uses, str):
        return uses
    if not uses:
        return f"nothing in {loop_id} reads what is copied there"
    releases = [n for n in syncs if n.kind == "release"]
    copies = tuple(body.copy(leaf) for leaf, _, _ in copied)
    commits = closed_in(loop.body)
    waits = _own_waits(body.waits("wait", COPIES), copies, ahead, commits)
    return Ring(
        loop_id, body.tiles[1] - body.tiles[0] + 1, slots, ahead, mechanism, copies, uses,
        commits, closed_in(loop.body, PRODUCTS), waits, body.waits(PRODUCTS.wait, PRODUCTS),
        body.waits(RELEASES.wait, RELEASES), body.position[releases[0].id] if releases else -1)


class _Body:
    """The body of a loop, and how what stands in it is counted."""

    def __init__(self, plan: Plan, kernel: Kernel, loop: Loop) -> None:
        self.plan, self.kernel, self.loop = plan, kernel, loop
        self.position = {n.id: at for at, n in enumerate(walk(loop.body))}
        self.inside = list(leaves(loop.body))
        self.tiles = next((_tiles(plan.statement_of[leaf.statement], plan.array_of[leaf.statement].given)
                           for leaf in self.made_here()), None)

    def tile(self, e: Expr) -> int | None:
        """How far a tile's number is ahead of the iteration; None where it is no such number."""
        rest = e - var(self.loop.id)
        return rest.const + self.loop.start - self.tiles[0] if self.tiles and rest.is_constant else None

    def made_here(self) -> Iterator[Leaf]:
        """Copies into shared memory."""
        names = {c.name for c in self.plan.copies}
        return (leaf for leaf, _ in self.inside if leaf.statement in names and (view := leaf.view(1)) is not None
                and self.plan.buffer_of[view.buffer].space == "shared" and self.number(leaf) is not None)

    def number(self, leaf: Leaf) -> Expr | None:
        """The tile that a copy brings, over the loops around it: the last of its dimensions before those of its box."""
        array, dims = self.plan.array_of[leaf.statement], self.plan.statement_of[leaf.statement].dims
        at = len(dims) - array.given - 1
        return dict(leaf.at)[dims[at]] if at >= 0 else None

    def copies(self) -> Iterator[tuple[Leaf, int, int]]:
        """Copies into shared memory of a tile for each iteration, with their slots and how far they run ahead."""
        for leaf in self.made_here():
            number, view = self.number(leaf), leaf.view(1)
            if number is not None and view is not None and (ahead := self.tile(number)) is not None:
                shape = self.plan.buffer_of[view.buffer].shape
                yield leaf, shape[0] if len(shape) > self.plan.array_of[leaf.statement].given else 1, ahead

    def uses(self, copies: set[str]) -> tuple[Use, ...] | str:
        """Leaves that read the buffers, each with the tile that it reads; or why that is no one tile of an iteration."""
        filled = {_brought(self.plan, leaf.statement): leaf.statement for leaf, _ in self.inside if leaf.id in copies}
        here, out = {leaf.id for leaf, _ in self.inside}, list[Use]()
        for leaf, _, _ in self.plan.leaves:
            found = set[int | None]()
            for slot, view in leaf.views:
                if slot < len(self.plan.statement_of[leaf.statement].reads) and view.buffer in filled:
                    name = filled[view.buffer]
                    at = len(self.plan.statement_of[name].dims) - self.plan.array_of[name].given - 1
                    found.add(self.tile(view.element[at]) if leaf.id in here else None)
            if None in found:
                return f"{leaf.id} reads tiles of several iterations of {self.loop.id}, or outside of it"
            product = self.before(leaf.id, PRODUCTS) if found and stays_in_flight(leaf.mechanism) else -1
            tiles = sorted(t for t in found if t is not None)
            out += [Use(leaf.id, leaf.statement, self.position[leaf.id], t, product) for t in tiles]
        return tuple(out)

    def copy(self, leaf: Leaf) -> Copy:
        """Its place and group."""
        return Copy(leaf.id, leaf.statement, self.position[leaf.id], self.before(leaf.id, COPIES))

    def waits(self, kind: str, queue: Queue) -> tuple[Wait, ...]:
        """The waits of a kind."""
        found = (n for n in self.loop.body if isinstance(n, Sync) and n.kind == kind)
        return tuple(Wait(n.id, self.position[n.id], self.before(n.id, queue), n.pending) for n in found)

    def before(self, node: str, queue: Queue) -> int:
        """How many groups an iteration closes before a node, at most."""
        path = path_to(self.kernel, node)
        depth = next(n for n, s in enumerate(path) if s.loop is not None and s.loop.id == self.loop.id)
        inner = tuple(s.loop for s in path[depth + 1:] if s.loop is not None)
        return closed_before((replace(path[depth], loop=None), *path[depth + 1:]), queue).interval(ranges(inner))[1]

    def odd_prologue(self, own: set[str], ahead: int) -> str:
        """What keeps the copies before the loop from being those of its iterations before the first one; empty: nothing."""
        made = {leaf.statement for leaf, _ in self.inside if leaf.id in own}
        started = set[str]()
        for leaf, above, kernel in self.plan.leaves:
            if leaf.statement not in made or leaf.id in own or kernel.id != self.kernel.id:
                continue
            first = next(((x, rest.const) for x in above if (n := self.number(leaf)) is not None
                          and (rest := n - var(x.id)).is_constant), None)
            if first is None or first[0].extent + first[1] != ahead or closed_in(first[0].body) != closed_in(self.loop.body):
                return f"{leaf.id} is copied before {self.loop.id} otherwise than in it"
            started.add(leaf.statement)
        if ahead and started != made:
            return f"the first tiles of {', '.join(sorted(made - started))} are not copied before {self.loop.id}"
        return ""


@per_program(128)
def ways(plan: Plan, loop_id: str) -> tuple[tuple[str, ...], ...]:
    """The copies of a loop that have a ring in common: as many slots, as far ahead, by the same mechanism."""
    loop, kernel = plan.loops.get(loop_id), plan.kernel_of(loop_id)
    if loop is None or kernel is None:
        return ()
    by = dict[tuple[int, int, str], list[str]]()
    for leaf, slots, ahead in _Body(plan, kernel, loop).copies():
        by.setdefault((slots, ahead, leaf.mechanism), []).append(leaf.statement)
    return tuple(tuple(dict.fromkeys(names)) for names in by.values())


def leads(plan: Plan, loop_id: str, of: tuple[str, ...]) -> tuple[int, ...]:
    """How many iterations ahead the other copies of a loop are made, the fewest first."""
    loop, kernel = plan.loops.get(loop_id), plan.kernel_of(loop_id)
    assert loop is not None
    assert kernel is not None
    return tuple(sorted({ahead for leaf, _, ahead in _Body(plan, kernel, loop).copies() if leaf.statement not in of}))


def _own_waits(waits: tuple[Wait, ...], copies: tuple[Copy, ...], ahead: int, commits: int) -> tuple[Wait, ...]:
    """Of several waits those for a ring's own groups: that leave open what is younger, or as much of it as one does."""
    def spare(wait: Wait) -> int:
        return ahead * commits - 1 - max(c.group for c in copies) + wait.before - wait.pending

    enough = [w for w in waits if spare(w) >= 0]
    return tuple(w for w in enough if spare(w) == min(map(spare, enough))) or waits


@lru_cache(maxsize=256)
def _tiles(statement: Statement, given: int) -> tuple[int, int] | None:
    """The first and the last tile that a copy brings; None where it brings none."""
    known = build_set(Tuple("", "a", statement.dims), [holds(c, "a") for c in statement.domain])
    at = len(statement.dims) - given - 1
    if known.is_empty():
        return None
    first, last = known.dim_min_val(at), known.dim_max_val(at)
    return int(cast("int", first.to_python())), int(cast("int", last.to_python()))


def _brought(plan: Plan, statement: str) -> str:
    """The buffer that a copy fills."""
    return next((v.buffer for leaf, _, _ in plan.leaves if leaf.statement == statement for s, v in leaf.views if s == 1), "")


def is_asynchronous(ring: Ring) -> bool:
    """Whether its copies land behind a wait alone."""
    return ring.mechanism in ASYNCHRONOUS
