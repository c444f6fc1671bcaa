"""Sites: one access of one leaf, over the variables of the leaf's own loops, with the cell it touches and who runs it.

Loop variables lie in boxes and statement dimensions are mostly affine in them, so questions about pairs of accesses
have far fewer floors here than over the statements' dimensions.  An instance of the leaf is a point of the boxes
whose statement dimensions lie in the domain (question *cover* sees to it that this is one to one).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..ir.expr import ZERO, Expr, Ranges, const, quotient, remainder, var
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.program import Constraint, Statement
from ..ir.tree import WARP_ROLES, WARP_SIZE, Kernel, Leaf, Loop, ranges, walk
from .linear import Case, Tuple, box, holds
from .matrix_move import LOAD
from .relations import boxes_of, idle
from .tensor import operand_places

Place = tuple[Expr | None, ...]
"""Coordinates (see :data:`AXES`) of an access over its loops' variables; None where every place along the axis runs it."""


Run = tuple[Statement, tuple[tuple[str, Expr], ...], tuple[tuple[str, Expr], ...], tuple[tuple[str, int, int], ...]]
"""A statement without values and accesses, the maps between its dimensions and a leaf's loops, and the boxes of these."""


@dataclass(frozen=True, eq=False)
class Site:
    """An access of a leaf.

    Attributes
    ----------
    leaf, above, statement, slot
        The access; slot ``len(reads)`` is the target.
    storage : str
        Buffer or array that is really used.
    space : str
        ``"register"``, ``"shared"`` or ``"global"``.
    cell : tuple of (Expr or None)
        Physical index over the loops' variables; None along a data-dependent axis (any index).
    place : Place
        Where the access happens.
    reads_at : Place
        Where it needs the value it reads.  A collect updates the register of every thread that it serves, but each of its
        instances needs the old value in its own thread alone: who reads a result elsewhere needs all writes behind it there.
    reads, writes : bool
    atomic : str
        Name of the reduction when the target is updated atomically.
    """

    leaf: Leaf
    above: tuple[Loop, ...]
    statement: Statement
    slot: int
    storage: str
    space: str
    cell: tuple[Expr | None, ...]
    place: Place
    reads_at: Place
    reads: bool
    writes: bool
    atomic: str

    @property
    def cells(self) -> tuple[str, bool]:
        """Which cells these are: a buffer and an array of one name are two storages."""
        return self.storage, self.leaf.view(self.slot) is not None

    @cached_property
    def guards(self) -> tuple[Constraint, ...]:
        """Constraints of the domain over the loops' variables that the boxes do not imply."""
        scope, at = ranges(self.above), dict(self.leaf.at)
        substituted = [(c, c.expr.substitute(at, scope)) for c in self.statement.domain]
        return tuple(Constraint(e, c.equality, c.text) for c, e in substituted if c.equality or e.interval(scope)[0] < 0)

    @cached_property
    def run(self) -> Run:
        """The instances of the leaf, whatever they access and wherever they run: what relations between leaves depend on."""
        return idle(self.statement), self.leaf.at, self.leaf.when, boxes_of(self.above)

    def loops(self, side: str) -> Tuple:
        """The loops' variables on one side of a relation: ``A[i, j]``."""
        return Tuple(side.upper(), side, tuple(x.id for x in self.above))

    def names(self, side: str) -> Tuple:
        """The same in alphabetical order: what is asked of it is asked once, whichever of the loops is around the other."""
        return Tuple(side.upper(), side, tuple(sorted(x.id for x in self.above)))

    @cached_property
    def _conditions(self) -> dict[str, Case]:
        return {}

    def conditions(self, side: str) -> Case:
        """The instances of the leaf, as conditions on its variables."""
        if side not in self._conditions:
            boxes = box(((var(name), start, extent) for name, start, extent in boxes_of(self.above)), side)
            self._conditions[side] = (*boxes, *(holds(c, side) for c in self.guards))
        return self._conditions[side]

    def instance(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """The statement instance at these values of the loops' variables."""
        point = {loop.id: v for loop, v in zip(self.above, values, strict=True)}
        at = dict(self.leaf.at)
        return tuple(int(at[d].evaluate(point)) for d in self.statement.dims)


AXES = 7
"""Coordinates of a place here: block x, y, z; thread.x in two digits (warp, lane) where a kernel binds warps or
lanes, else (thread.x, 0); thread y, z.  With the digits apart, a leaf can be replicated over lanes alone."""
THREAD_X = (3, 4)
"""The coordinates that are thread.x together."""


@per_program(1024)
def launch_extents(plan: Plan, kernel: Kernel) -> tuple[int, ...]:
    """Extents of the seven coordinates, of the places that run the kernel."""
    *grid, x, y, z = plan.extents[kernel.id]
    split = any(isinstance(n, Loop) and n.role in WARP_ROLES for n in walk(kernel.body))
    return (*grid, *((-(-x // WARP_SIZE), min(x, WARP_SIZE)) if split else (x, 1)), y, z)


def thread_weights(launch: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Factors that make the thread coordinates (the last four) the number of a thread in its block."""
    return launch[4], 1, launch[3] * launch[4], launch[3] * launch[4] * launch[5]


def _bound(above: tuple[Loop, ...], split: bool) -> dict[int, Expr]:
    """Coordinates that the loops bind, over their variables."""
    axis_of = {"block.x": 0, "block.y": 1, "block.z": 2, "warp": 3, "lane": 4, "thread.y": 5, "thread.z": 6}
    out = {axis_of[x.role]: var(x.id) for x in above if x.role in axis_of}
    for loop in above:
        if loop.role == "thread.x":
            scope = ranges(above)
            out[3] = quotient(var(loop.id), WARP_SIZE, scope) if split else var(loop.id)
            out[4] = remainder(var(loop.id), WARP_SIZE, scope) if split else ZERO
    return out


def _leaf_place(bound: dict[int, Expr], space: str, launch: tuple[int, ...]) -> Place:
    """Where a leaf with a target in this space runs: None (every place) or 0 (one place) where nothing is bound."""
    replicated = {"register": AXES, "shared": 3, "global": 0}[space]
    return tuple(bound.get(i, None if size > 1 and i < replicated else ZERO) for i, size in enumerate(launch))


def _target_place(place: Place, leaf: Leaf, above: tuple[Loop, ...], space: str, split: bool) -> Place:
    """Where the target is written: a collect serves the register of every thread (or block), or writes memory once."""
    out = list(place)
    collected = {loop for loop, how in leaf.collect if how != "atomic"}
    for loop in above:
        if loop.id not in collected or not (loop.is_thread or loop.is_block):
            continue
        digits = THREAD_X if split and loop.role == "thread.x" else ()  # all threads along x, whatever warps the loop reaches
        for axis, at in enumerate(place):
            if at is not None and (loop.id in at.variables() or axis in digits):
                out[axis] = None if space == "register" else at.substitute({loop.id: const(loop.start)})
    return tuple(out)


@per_program(256)
def sites(plan: Plan) -> dict[str, tuple[Site, ...]]:
    """Every access of every leaf, by kernel."""
    out: dict[str, tuple[Site, ...]] = {}
    for kernel in plan.kernels:
        launch, found = launch_extents(plan, kernel), []
        for leaf, above, owner in plan.leaves:
            if owner.id != kernel.id:
                continue
            statement = plan.statement_of[leaf.statement]
            spaces = tuple((slot, plan.buffer_of[v.buffer].space) for slot, v in leaf.views)
            found += _leaf_sites(leaf, tuple(_bare(x) for x in above), statement, spaces, launch)
        out[kernel.id] = tuple(found)
    return out


def _bare(loop: Loop) -> Loop:
    """The loop without its body: cheap to hash, and all that a site needs."""
    return Loop(loop.id, loop.extent, (), loop.role, loop.start)


def _asked(place: Place, lane: Expr, launch: tuple[int, ...], scope: Ranges) -> Place:
    """The place in which a lane of the same warp has its register."""
    x = place[3]
    if launch[4] > 1 or x is None:
        return (*place[:4], lane, *place[5:])
    return (*place[:3], quotient(x, WARP_SIZE, scope) * WARP_SIZE + lane, *place[4:])


@lru_cache(maxsize=4096)
def _leaf_sites(leaf: Leaf, above: tuple[Loop, ...], statement: Statement, spaces: tuple[tuple[int, str], ...],
                launch: tuple[int, ...]) -> tuple[Site, ...]:
    scope, at, space_of = ranges(above), leaf.places, dict(spaces)
    bound, space_of_target = _bound(above, launch[4] > 1), space_of.get(len(statement.reads), "global")
    place, held = _leaf_place(bound, space_of_target, launch), operand_places(leaf, above, launch[4] > 1)
    found = []
    for slot, use in enumerate(statement.accesses):
        view, target = leaf.view(slot), slot == len(statement.reads)
        if view:
            storage, space, cell = view.buffer, space_of[slot], view.index
        else:
            storage, space = use.array, "global"
            cell = tuple(e.substitute(at, scope) if isinstance(e, Expr) else None for e in use.index)
        where = _target_place(place, leaf, above, space, launch[4] > 1) if target else place
        if view and view.lane is not None:  # a shuffle: the lane that has the register takes part in it
            where = _asked(where, view.lane, launch, scope)
        if held:  # the lane that has the element, whoever asks
            where = (*place[:5 - len(held[slot])], *held[slot], *place[5:])
        elif leaf.mechanism == LOAD and not target:  # a lane names a row, of which others get parts
            where = (*place[:4], None, *place[5:])
        own = place if target and leaf.collect and space == "register" else where
        atomic = statement.update or "" if target and any(how == "atomic" for _, how in leaf.collect) else ""
        found.append(Site(leaf, above, statement, slot, storage, space, tuple(cell), where, own,
                          not target or bool(statement.update), target, atomic))
    return tuple(found)
