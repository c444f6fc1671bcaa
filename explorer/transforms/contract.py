"""Give a temporary its storage: registers, shared memory, or back to global memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Buffer, Plan
from ..ir.tree import Leaf, Loop, View, ranges
from ._uses import (
    Use,
    array_verdict,
    at_start,
    box,
    common_loops,
    indirect_use,
    put_buffer,
    stride,
    uses,
    with_view,
    without_unused,
)
from .base import Transform

Cell = tuple[tuple[int, ...], tuple[Expr, ...]]
"""Extents of a buffer, and one access's cell in it."""


@dataclass(frozen=True)
class Contract(Transform):
    """Put a temporary into registers or shared memory, with only the cells that live at one time.

    Every access of the array gets a cell instead of its element.  In *registers* (one copy per thread) the cell is
    made of the sequential, unrolled and vector loops that lie inside the scope and move the index: one dimension
    each, in order of falling stride; where those of several accesses differ, it is the element's place in the box of
    what the thread touches.  In *shared* memory (one copy per block) it is the element's place in the footprint's box
    over all loops inside the scope and all thread loops.  The scope is the innermost loop that holds
    every access, or `at`.  Whether each read still finds its value is the question *flow* of the result.

    Before::

        for i in 0…M                            # block.x
            for k.r in 0…4
                for k.t in 0…256                # thread.x
                    e[i, 256*k.r + k.t] = exp(x[i, 256*k.r + k.t])

    After ``contract('e', 'register')``::

        for i in 0…M                            # block.x
            for k.r in 0…4
                for k.t in 0…256                # thread.x
                    e[k.r] = exp(x[i, 256*k.r + k.t])       # e: 4 registers of each thread
    """

    name = "contract"
    aliases = ("store_at", "set_memory", "set_scope", "privatize", "privatize_temporaries", "buffer_at")

    array: str = field(metadata={"kind": "array", "help": "the temporary"})
    space: str = field(default="register",
                       metadata={"kind": "choice", "choices": ("register", "shared", "global"), "help": "where it lives"})
    at: str = field(default="", metadata={"kind": "loop",
                                          "help": "loop in whose body it lives (default: the innermost possible)"})
    pad: int = field(default=0, metadata={"kind": "int", "min": 0, "help": "unused elements after each row (shared memory)"})

    def check(self, plan: Plan) -> Verdict:
        if (refusal := array_verdict(plan, self.array, temporary=True)) is not None:
            return refusal
        if self.space not in ("register", "shared", "global"):
            return no(f"there is no storage {self.space!r}", hint="one of register, shared, global")
        if self.pad < 0 or (self.pad and self.space != "shared"):
            return no("padding is a number of elements, and only rows in shared memory have it", hint="pad=0")
        found = direct(plan, self.array)
        if not found:
            return no(f"no statement uses {self.array}")
        if self.space == "global":
            return YES if any(u.view for u in found) else no(f"{self.array} already lives in global memory")
        if len({u.kernel.id for u in found}) > 1:
            names = ", ".join(dict.fromkeys(u.kernel.id for u in found))
            return no(f"{self.array} is used in several launches ({names})",
                      f"{'registers' if self.space == 'register' else 'shared memory'} do not outlive a launch",
                      "leave it in global memory")
        if use := indirect_use(found):
            return no(f"{use.leaf.id} uses {self.array} at a data-dependent element", hint="leave it in global memory")
        scope = self._scope(plan, found)
        if isinstance(scope, Verdict):
            return scope
        cells = self._cells(found, scope)
        if isinstance(cells, Verdict):
            return cells
        if self.rewrite(plan) == plan:
            return no(f"{self.array} already lives there", hint="another space, or another loop")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        found = direct(plan, self.array)
        views: dict[tuple[str, int], View | None] = {(u.leaf.id, u.slot): None for u in found}
        if self.space != "global":
            scope = self._scope(plan, found)
            assert not isinstance(scope, Verdict)
            cells = self._cells(found, scope)
            assert not isinstance(cells, Verdict)
            old = next((u.view.buffer for u in found if u.view), "")
            name = old or (self.array if self.array not in plan.buffer_of else plan.fresh(self.array))
            shape = cells[0][0]
            pad = self.pad if shape else 0
            where = scope[-1].id if scope else ""
            plan = put_buffer(plan, Buffer(name, plan.array_of[self.array].dtype, shape, self.space, pad, where))
            views = {(u.leaf.id, u.slot): View(name, cell) for u, (_, cell) in zip(found, cells, strict=True)}

        def change(leaf: Leaf) -> Leaf:
            for (leaf_id, slot), view in views.items():
                if leaf_id == leaf.id:
                    leaf = with_view(leaf, slot, view)
            return leaf

        return without_unused(plan.map_leaves(change))

    def _scope(self, plan: Plan, found: tuple[Use, ...]) -> tuple[Loop, ...] | Verdict:
        """The loops around the body in which the buffer lives."""
        shared = common_loops([u.above for u in found])
        if not self.at:
            return _settled(shared) if self.space == "shared" else shared
        if any(k.id == self.at for k in plan.kernels):
            return ()
        names = [loop.id for loop in shared]
        if self.at not in names:
            listed = ", ".join(dict.fromkeys(u.leaf.id for u in found))
            return no(f"{self.array} cannot live in {self.at}", f"{self.at} does not hold all of its accesses ({listed})",
                      f"one of {', '.join(names)}" if names else "leave `at` out")
        return shared[: names.index(self.at) + 1]

    def _cells(self, found: tuple[Use, ...], scope: tuple[Loop, ...]) -> tuple[Cell, ...] | Verdict:
        """Extents and cell of every access; all extents are equal."""
        if self.space == "shared":
            return self._box_cells(found, scope)
        for merged in (False, True):
            cells = tuple(register_cell(u.index(), u.above[len(scope):], merged) for u in found)
            if len({shape for shape, _ in cells}) == 1:
                return cells
        if not isinstance(boxed := self._box_cells(found, scope), Verdict):
            return boxed
        cells = [register_cell(u.index(), u.above[len(scope):]) for u in found]
        first = found[0]
        other, (shape, _) = next((u, c) for u, c in zip(found, cells, strict=True) if c[0] != cells[0][0])
        where = f"inside {scope[-1].id}" if scope else "in the kernel"
        return no(
            f"the accesses of {self.array} need registers of different shapes",
            f"{where}, {first.leaf.id} uses {self.array}[{_text(first)}] in {_extents(cells[0][0])}, "
            f"{other.leaf.id} uses {self.array}[{_text(other)}] in {_extents(shape)}",
            f"split and bind the loops of both alike, or contract('{self.array}', 'shared')",
        )

    def _box_cells(self, found: tuple[Use, ...], scope: tuple[Loop, ...]) -> tuple[Cell, ...] | Verdict:
        """The place of every access in the box around all of them, inside the scope: of a thread or of a block."""
        depth, own = len(scope), self.space == "register"
        indices, inner = [], []
        for u in found:
            fixed = [x for i, x in enumerate(u.above) if not own and (x.is_block or (i < depth and not x.is_thread))]
            indices.append(tuple(at_start(e, fixed, ranges(u.above)) for e in u.index()))
            inner.append([x.id for i, x in enumerate(u.above) if not own or (i >= depth and not x.is_place)])
        if not indices[0]:
            return tuple(((), ()) for _ in found)
        joint = box(indices, [ranges(u.above) for u in found], inner)
        if isinstance(joint, str):
            return no(f"{self.array} has no box of fixed size in {'registers' if own else 'shared memory'}", joint)
        return tuple((joint.extents, cell) for cell in joint.cells)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Contract]:
        for name in _temporaries_at(plan, node_id):
            stored = {plan.buffer_of[u.view.buffer].space for u in direct(plan, name) if u.view}
            yield from (cls(name, space) for space in ("register", "shared") if space not in stored)
            if stored:
                yield cls(name, "global")

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        return YES if _temporaries_at(plan, node_id) else no(f"{node_id} uses no temporary")


def direct(plan: Plan, array: str) -> tuple[Use, ...]:
    """The accesses of an array, without those that read a staged copy of it."""
    return tuple(u for u in uses(plan, array) if not (u.view and u.view.element))


def register_cell(index: tuple[Expr, ...], inside: tuple[Loop, ...], merged: bool = False) -> Cell:
    """A private cell: one dimension for each time loop that moves the index (contiguous loops joined if `merged`)."""
    moving = [x for x in inside if not x.is_place and x.extent > 1]
    groups: list[tuple[int, Expr, float]] = []
    seen: set[str] = set()
    for e in index:
        here = [x for x in moving if x.id in e.variables() and x.id not in seen]
        seen |= {x.id for x in here}
        first = len(groups)
        for x in sorted(here, key=lambda x: -abs(stride(e, x.id))):
            step = stride(e, x.id)
            cell = var(x.id) - x.start
            if merged and len(groups) > first and groups[-1][2] == step * x.extent:
                extent, outer, _ = groups.pop()
                groups.append((extent * x.extent, outer * x.extent + cell, step))
            else:
                groups.append((x.extent, cell, step))
    return tuple(g[0] for g in groups), tuple(g[1] for g in groups)


def _settled(scope: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Shared memory lives outside the thread loops that end a scope."""
    while scope and scope[-1].is_thread:
        scope = scope[:-1]
    return scope


def _temporaries_at(plan: Plan, node_id: str) -> list[str]:
    """Temporaries that the leaf at a node (or the array of that name) uses."""
    names = [a.name for a in plan.program.temporaries]
    if node_id in names:
        return [node_id]
    hit = next((plan.statement_of[leaf.statement] for leaf, _, _ in plan.leaves if leaf.id == node_id), None)
    return [n for n in names if hit and any(a.array == n for a in hit.accesses)]


def _text(use: Use) -> str:
    return ", ".join(map(str, use.index()))


def _extents(shape: tuple[int, ...]) -> str:
    return f"{'×'.join(map(str, shape))} cells" if shape else "one cell"
