"""Lowering from the plan to the kernel IR: loops, guarded leaves, barriers and copies, without optimisation.

Before
------
The plan's tree: loops with roles, leaves with views, commits and waits; and where barriers stand.

After
-----
Loops of places and loops of one iteration are gone; every leaf stands under all of its own conditions, with its accesses over C
variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import IllegalSchedule
from ..ir.expr import ZERO, Expr
from ..ir.instructions import instruction, stays_in_flight
from ..ir.plan import Plan
from ..ir.tree import Kernel, Leaf, Loop, Sync, leaves
from ..ir.tree import Node as Planned
from ..poly.bulk_store import BULK_STORE, stored_in_bulk
from ..poly.groups import PRODUCTS, may_be_open
from ..poly.matrix_move import MOVES, STORE, MatrixMove, matrix_move
from ..poly.shared_tile import read_by_tiles, tiles_of, written_by_threads
from .accesses import copied_slot, inside_conditions, instance, operands, ref
from .async_copy import moved
from .bulk_copy import Launched, begin, copy, end, synchronisation
from .bulk_store import store, with_waits
from .conditions import NEVER
from .nodes import Barrier, Collect, Copy, Declare, For, If, MoveMatrix, Multiply, Node, Ref, WaitProducts, Way
from .redundant import RedundantGuards
from .scratch import Scratch
from .sites import Lowered, Site, declared_for
from .traverse import with_id

Asked = Callable[[Plan, Kernel], Any]


@dataclass
class Context:
    """What the passes know of a kernel beside its tree.

    Attributes
    ----------
    low : Lowered
    sites : dict of str to Site
        Its leaves, by id.
    redundant : RedundantGuards
    scratch : Scratch
        Shared arrays that collectives of the launch work in.
    bulk : Launched
        Tensor maps and mbarriers of the launch.
    before : frozenset of (str, int)
        Where barriers stand: before the child of a parent, by index.
    register_loops : frozenset of str
        Loops whose variables index a register array: they are unrolled, so that the array stays in registers.
    proxy : bool
        Whether threads write shared memory that an engine or a warpgroup's instructions read: their barriers have a fence of its
        own kind.
    """

    low: Lowered
    scratch: Scratch
    bulk: Launched
    sites: dict[str, Site] = field(init=False)
    redundant: RedundantGuards = field(init=False)
    before: frozenset[tuple[str, int]] = field(init=False)
    register_loops: frozenset[str] = field(init=False)
    proxy: bool = field(init=False)

    def __post_init__(self) -> None:
        self.sites = {leaf.id: self._site(leaf, above) for leaf, above in leaves(self.low.kernel.body)}
        self.redundant = RedundantGuards(self.low, self.sites)
        self.register_loops = self._register_loops()
        self.proxy = bool((read_by_tiles(self.low.plan) | stored_in_bulk(self.low.plan)) & written_by_threads(self.low.plan))

    def _site(self, leaf: Leaf, above: tuple[Loop, ...]) -> Site:
        """A leaf over C variables, with the first lane's conditions where they are those of all lanes."""
        each = self.low.site(leaf, above, first_lane=False)
        lanes = {self.low.variable[loop.id] for loop in above if loop.role == "vector"}
        return each if any(c.variables() & lanes for c in each.conditions) else self.low.site(leaf, above)

    def _register_loops(self) -> frozenset[str]:
        found: set[str] = set()
        for leaf, _ in leaves(self.low.kernel.body):
            for slot, view in leaf.views:
                if self.low.store(leaf, slot).space == "register":
                    found |= {name for e in view.index for name in e.variables()}
        return frozenset(found)

    def place_barriers(self, barriers: Asked) -> None:
        """Where barriers stand, leaves that run without their conditions included.

        Raises
        ------
        IllegalSchedule
            A race that no barrier can order is no kernel.
        """
        plan, kernel = self.low.plan, self.low.kernel
        unsure = self.redundant.unsure()
        found = barriers(self.redundant.relaxed(unsure) if unsure else plan, kernel)
        if unsure and found.races:
            self.redundant.refuse(unsure)
            found = barriers(plan, kernel)
        self.before = self.without_races(found)

    def without_races(self, found: Any) -> frozenset[tuple[str, int]]:
        """The barriers' places; a race that none of them can order is no kernel."""
        for race in found.races:
            raise IllegalSchedule(race.what, where=race.where, why=race.why, hint="; or ".join(race.hints), finding=race)
        return frozenset(found.before)


def lower(context: Context) -> tuple[Node, ...]:
    """The kernel's body."""
    body = with_waits(context, _body(context, context.low.kernel.id, context.low.kernel.body, ()))
    return (*begin(context), *body, *end(context))


def _body(c: Context, parent: str, nodes: Sequence[Planned], above: tuple[Loop, ...]) -> tuple[Node, ...]:
    """The nodes of one body, in order, with its register arrays and barriers."""
    scope = "" if parent == c.low.kernel.id else parent
    out: list[Node] = []
    for buffer in c.low.plan.buffers:
        store = c.low.stores.get(("buffer", buffer.name))
        if buffer.scope == scope and store is not None and store.space == "register":
            out.append(Declare(store, declared_for(c.low.plan, store)))
    for position, node in enumerate(nodes):
        if (parent, position) in c.before:
            out.append(Barrier(proxy=c.proxy))
        out += _node(c, node, above)
    return (*out, Barrier(proxy=c.proxy)) if (parent, len(nodes)) in c.before else tuple(out)


def _node(c: Context, node: Planned, above: tuple[Loop, ...]) -> tuple[Node, ...]:
    if isinstance(node, Leaf):
        return _leaf(c, node, above)
    if isinstance(node, Sync):
        return (_wait_for_products(c, node, above),) if node.kind == PRODUCTS.wait else synchronisation(c, node, above)
    if node.extent <= 0:
        return ()
    if not c.low.is_counter(node):
        return tuple(with_id(inner, node.id) for inner in _body(c, node.id, node.body, (*above, node)))
    if node.role == "tensor":
        mechanism = next(leaf.mechanism for leaf, _ in leaves((node,)))
        boxed = {"bulk": copy, BULK_STORE: store}.get(mechanism)
        return boxed(c, node, above) if boxed else _instruction(c, node, above)
    lanes = _one_copy(c, node, above)
    if lanes is not None:
        return lanes
    role = "vector" if node.role == "vector" else "unroll" if node.role == "unroll" or node.id in c.register_loops else "seq"
    body = _body(c, node.id, node.body, (*above, node))
    limits = c.low.end(node, above) if role == "seq" else ()
    return (For(c.low.variable[node.id], node.start, node.extent, body, role, node, limits, ids=(node.id,)),)


def _leaf(c: Context, leaf: Leaf, above: tuple[Loop, ...]) -> tuple[Node, ...]:
    """A leaf under its conditions; nothing if it never runs."""
    site = c.sites[leaf.id]
    if site.conditions == (NEVER,):
        return ()
    if leaf.collect:
        places = [loop.id for loop in site.loops if not c.low.is_counter(loop)]
        target = ref(c.low, site, len(site.statement.reads))
        return (Collect(site, target, operands(c.low, site), Way(), "", False, site.conditions, ids=(leaf.id, *places)),)
    node = _copy(c, site, ids=(leaf.id,)) if leaf.mechanism == "async" else instance(c.low, site)
    return (If(site.conditions, (node,)),) if site.conditions else (node,)


def _instruction(c: Context, outer: Loop, above: tuple[Loop, ...]) -> tuple[Node, ...]:
    """The instruction that some loops, one in the other, are."""
    loops = [outer]
    while isinstance(inner := loops[-1].body[0], Loop):
        loops.append(inner)
    assert isinstance(inner, Leaf)
    return _move_matrix(c, inner, loops, above) if inner.mechanism in MOVES else _multiply(c, inner, loops, above)


def _move_matrix(c: Context, inner: Leaf, loops: list[Loop], above: tuple[Loop, ...]) -> tuple[Node, ...]:
    """Fragments from or to shared memory."""
    site, move = c.sites[inner.id], matrix_move(c.low.plan, inner, (*above, *loops), inner.mechanism)
    assert isinstance(move, MatrixMove), "a leaf that moves matrices can, or the plan was not judged"
    ids = (inner.id, *(x.id for x in (*above, *loops) if x is loops[0] or not c.low.is_counter(x)))
    target, source = ref(c.low, site, len(site.statement.reads)), ref(c.low, site, 0)
    stores = inner.mechanism == STORE
    held, there = (source, target) if stores else (target, source)
    first = Ref(held.store, (*held.index[:-1], c.low.in_c(move.first, site.loops).simplify(site.ranges)))
    row = Ref(there.store, tuple(c.low.in_c(e, site.loops).simplify(site.ranges) for e in move.row))
    node = MoveMatrix(site, target, source, first, row, move.count, move.transposed, stores, loops[0], ids)
    first = {c.low.variable[loops[0].id]: ZERO, c.low.role_name[loops[1].role]: ZERO}
    asked = {known for known, _ in site.named}  # of the statement: alike for all that is moved together, or it was refused
    conditions = tuple(dict.fromkeys(replace(x, expr=x.expr.substitute(first, site.ranges).simplify(site.ranges))
                                     if x in asked else x for x in site.conditions))
    return (If(conditions, (node,)),) if conditions else (node,)


def _multiply(c: Context, inner: Leaf, loops: list[Loop], above: tuple[Loop, ...]) -> tuple[Node, ...]:
    """The tensor instruction that three loops are."""
    rows, columns, depth = loops
    site = c.sites[inner.id]
    target, factors = ref(c.low, site, 2), (ref(c.low, site, 0), ref(c.low, site, 1))
    ids = (inner.id, *(x.id for x in loops), *(x.id for x in above if not c.low.is_counter(x)))
    row = instruction(inner.mechanism)
    assert row is not None, "a leaf in tensor loops is an instruction, or the plan was not judged"
    tiles = tiles_of(c.low.plan, inner, row, (rows.id, columns.id, depth.id))
    node = Multiply(site, row, target, factors, (rows, columns, depth), tiles, ids)
    inside = {c.low.variable[x.id] for x in loops}  # it is a whole tile: a condition on its elements was judged to change nothing
    conditions = tuple(x for x in site.conditions if not x.variables() & inside)
    return (If(conditions, (node,)),) if conditions else (node,)


def _wait_for_products(c: Context, node: Sync, above: tuple[Loop, ...]) -> WaitProducts:
    """A wait, with the accumulators that products in flight may add into there."""
    around, kernel = {"", c.low.kernel.id, *(x.id for x in above)}, c.low.kernel
    products = (c.sites[leaf.id] for leaf, _ in leaves(kernel.body)
                if stays_in_flight(leaf.mechanism) and may_be_open(kernel, leaf.id, node.id, PRODUCTS))
    stores = dict.fromkeys(ref(c.low, site, 2).store for site in products)
    return WaitProducts(node.pending, tuple(s for s in stores if s.buffer is None or s.buffer.scope in around), (node.id,))


def _copy(c: Context, site: Site, ids: tuple[str, ...], first: dict[str, Expr] | None = None) -> Copy:
    """An asynchronous copy of a leaf; of all its lanes, where `first` is the first one."""
    low, copy = c.low, moved(c.low, site)
    target, source = len(site.statement.reads), copied_slot(site)
    together = inside_conditions(replace(site, statement=replace(site.statement, inside=copy.together)), first)
    ends = tuple(low.in_c(e, site.loops).simplify(site.ranges) for e in copy.ends)
    ends = tuple(e for e in ends if e.interval(site.ranges)[0] < copy.lanes)
    begins = tuple(low.in_c(e, site.loops).simplify(site.ranges) for e in copy.begins)
    begins = tuple(e for e in begins if e.interval(site.ranges)[1] > 0)
    to, come = (ref(low, site, slot, first, copy.lanes) for slot in (target, source))
    return Copy(site, to, come, copy.nbytes, copy.lanes, together, begins, ends, ids)


def _one_copy(c: Context, loop: Loop, above: tuple[Loop, ...]) -> tuple[Node, ...] | None:
    """The lanes of an asynchronous copy, where one copy moves them all."""
    if loop.role != "vector" or len(loop.body) != 1 or not isinstance(leaf := loop.body[0], Leaf) or leaf.mechanism != "async":
        return None
    site = c.low.site(leaf, (*above, loop))
    if site.conditions == (NEVER,):
        return ()
    if moved(c.low, site).lanes == 1:
        return None
    node = _copy(c, site, (loop.id, leaf.id), {c.low.variable[loop.id]: Expr((), loop.start)})
    return (If(site.conditions, (node,)),) if site.conditions else (node,)
