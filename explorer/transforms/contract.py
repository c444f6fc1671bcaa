"""Give a temporary its storage: registers, shared memory, or back to global memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..ir.expr import Expr, remainder, var
from ..ir.finding import YES, Finding, Verdict, no
from ..ir.memo import per_program
from ..ir.plan import Buffer, Plan
from ..ir.tree import Leaf, Loop, View, ranges
from ..poly.agree import cells_agree
from ..poly.judge import judge
from ._home_cells import Cell, by_same_threads, home_cells
from ._once import once
from ._read_cells import only_read
from ._room import no_room
from ._uses import (
    Use,
    array_verdict,
    at_start,
    box,
    common_loops,
    indirect_use,
    no_temporary,
    put_buffer,
    stride,
    uses,
    with_view,
    without_unused,
)
from .base import Transform, get_loop


@dataclass(frozen=True)
class Contract(Transform):
    """Put a temporary into registers or shared memory, with only the cells that live at one time.

    Every access of the array gets a cell instead of its element.  In *registers* (one copy per thread) the array gets one
    dimension for each sequential, unrolled or vector loop inside the scope that occurs in the index, the largest stride first;
    where accesses use different loops, the array is the bounding box of the elements that the thread accesses.  In *shared*
    memory (one copy per block) it is the element's place in the footprint's box over all loops inside the scope and all thread
    loops.  The scope is the innermost loop that holds every access, or `at`.  Cells that nothing reads are left out, and their
    writes with them.  With `fold` each coordinate is taken modulo the few cells that live at one time: a ring under a stencil.
    Whether each read still finds its value is the question *flow* of the result.

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
    group = "Storage"
    aliases = ("store_at", "set_memory", "set_scope", "privatize", "privatize_temporaries", "buffer_at")
    elsewhere = {"Halide": "store_at", "TVM": "set_scope", "Exo": "set_memory",
                 "loopy": "privatize_temporaries_with_inames"}

    array: str = field(metadata={"kind": "array", "help": "the temporary"})
    space: str = field(default="register",
                       metadata={"kind": "choice", "choices": ("register", "shared", "global"), "help": "where it lives"})
    at: str = field(default="", metadata={"kind": "loop",
                                          "help": "loop in whose body it lives (default: the innermost possible)"})
    pad: int = field(default=0, metadata={"kind": "int", "min": 0, "help": "unused elements after each row (shared memory)"})
    fold: bool = field(default=False, metadata={
        "kind": "bool", "help": "cells that never live at one time share storage (indices modulo a number)"})

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
        new = self._made(plan)
        if isinstance(new, Verdict):
            return new
        if new == plan:
            return no(f"{self.array} already lives there", hint="another space, or another loop")
        full = no_room(plan, new, "fuse its producers and consumers, so that fewer cells live at once; or global memory")
        return YES if full is None else full

    def rewrite(self, plan: Plan) -> Plan:
        found = direct(plan, self.array)
        if self.space == "global":
            return self._stored(plan, found, (), (None,) * len(found))
        made = self._made(plan)
        assert not isinstance(made, Verdict)
        return made

    @once
    def _made(self, plan: Plan) -> Plan | Verdict:
        """The plan with the first layout in which reads find what was written for them; where none is such, with the first."""
        found = direct(plan, self.array)
        scope = self._scope(plan, found)
        if isinstance(scope, Verdict):
            return scope
        options = self._cells(found, scope)
        if isinstance(options, Verdict):
            return options
        for n, cells in enumerate(options):
            new = self._stored(plan, found, scope, cells)
            last = n == len(options) - 1
            if (last and n == 0) or (n == 0 and _matched(found, scope)) or cells_agree(new, self._buffer(plan, found)):
                new = only_read(new, self._buffer(plan, found)) if cells[0] else new
                return folded(new, self._buffer(plan, found)) if self.fold else new
        return self._stored(plan, found, scope, options[0])

    def _buffer(self, plan: Plan, found: tuple[Use, ...]) -> str:
        old = next((u.view.buffer for u in found if u.view), "")
        return old or (self.array if self.array not in plan.buffer_of else plan.fresh(self.array))

    def _stored(self, plan: Plan, found: tuple[Use, ...], scope: tuple[Loop, ...], cells: Sequence[Cell | None]) -> Plan:
        """The plan in which each access uses its cell of one buffer (None: its element of the array)."""
        name = self._buffer(plan, found)
        views = {(u.leaf.id, u.slot): View(name, cell[1]) if cell else None for u, cell in zip(found, cells, strict=True)}
        if cells[0]:
            shape, where = cells[0][0], scope[-1].id if scope else ""
            pad = self.pad if shape else 0
            plan = put_buffer(plan, Buffer(name, plan.array_of[self.array].dtype, shape, self.space, pad, where))

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
        if isinstance(there := get_loop(plan, self.at), Verdict):
            return there
        if self.at not in names:
            listed = ", ".join(dict.fromkeys(u.leaf.id for u in found))
            return no(f"{self.array} cannot live in {self.at}", f"{self.at} does not hold all of its accesses ({listed})",
                      f"one of {', '.join(names)}" if names else "leave `at` out")
        return shared[: names.index(self.at) + 1]

    def _cells(self, found: tuple[Use, ...], scope: tuple[Loop, ...]) -> list[tuple[Cell, ...]] | Verdict:
        """Layouts, the best first: extents and cell of every access; all extents of a layout are equal."""
        boxed = self._box_cells(found, scope)
        if self.space == "shared":
            return boxed if isinstance(boxed, Verdict) else [boxed]
        options: list[tuple[Cell, ...]] = []
        for merged in (False, True):
            cells = tuple(register_cell(u.index(), u.above[len(scope):], merged) for u in found)
            if len({shape for shape, _ in cells}) == 1:
                options.append(cells)
        if not isinstance(boxed, Verdict):
            options.append(boxed)
        if first := next((cells for home, cells in home_cells(found, len(scope)) if by_same_threads(home, found)), None):
            options.append(first)
        if options:
            return list(dict.fromkeys(options))
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
        indices, inner = list[tuple[Expr, ...]](), list[list[str]]()
        starts = list[tuple[Expr | None, ...]]()
        for u in found:
            fixed = [x for i, x in enumerate(u.above) if not own and (x.is_block or (i < depth and not x.is_thread))]
            indices.append(tuple(at_start(e, fixed, ranges(u.above)) for e in u.index()))
            starts.append(tuple(_moved(e, first, fixed) for e, first in zip(u.index(), indices[-1], strict=True)))
            inner.append([x.id for i, x in enumerate(u.above) if not own or (i >= depth and not x.is_place)])
        for axis, moves in enumerate(zip(*starts, strict=True)):
            if len(set(moves)) > 1:  # they begin at no element that all of a block have in common: elements are counted from 0
                indices = [(*x[:axis], u.index()[axis], *x[axis + 1:]) for x, u in zip(indices, found, strict=True)]
        if not indices[0]:
            return tuple(((), ()) for _ in found)
        joint = box(indices, [ranges(u.above) for u in found], inner)
        if isinstance(joint, str):
            return no(f"{self.array} has no box of fixed size in {'registers' if own else 'shared memory'}", joint)
        return tuple((joint.extents, cell) for cell in joint.cells)

    def eases(self, plan: Plan, finding: Finding) -> Iterator[str]:
        """The scopes outside of this one, the innermost first: a value may have to outlive one iteration."""
        if self.space == "global" or finding.question != "flow":
            return
        found = direct(plan, self.array)
        scope = self._scope(plan, found)
        outer = [] if isinstance(scope, Verdict) or not scope else [found[0].kernel.id, *(x.id for x in scope[:-1])]
        yield from (str(replace(self, at=name)) for name in reversed(outer))

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Contract]:
        for name in _temporaries_at(plan, node_id):
            stored = {plan.buffer_of[u.view.buffer].space for u in direct(plan, name) if u.view}
            yield from (cls(name, space) for space in ("register", "shared") if space not in stored)
            if stored:
                yield cls(name, "global")

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        return YES if _temporaries_at(plan, node_id) else no_temporary(plan, node_id)


def direct(plan: Plan, array: str) -> tuple[Use, ...]:
    """The accesses of an array, without those that read a staged copy of it."""
    return tuple(u for u in uses(plan, array) if not (u.view and u.view.element))


def _moved(index: Expr, first: Expr, fixed: Sequence[Loop]) -> Expr | None:
    """How far an index moves with fixed loops, those over blocks by their roles; None where that hangs on other loops, too."""
    moved = (index - first).substitute({x.id: var(x.role) for x in fixed if x.is_block})
    return moved if moved.variables() <= {x.role if x.is_block else x.id for x in fixed} else None


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


def _matched(found: tuple[Use, ...], scope: tuple[Loop, ...]) -> bool:
    """Whether all indices are one function of place, scope and cell, which tells cells apart by one step along an axis."""
    forms = set[tuple[Expr, ...]]()
    for u in found:
        inside = u.above[len(scope):]
        moving = [x for x in inside if not x.is_place and x.extent > 1]
        if any(len(mine := [x for x in moving if x.id in e.variables()]) > 1
               or any(x.id in atom.expr.variables() for x in mine for atom, _ in e.terms if not isinstance(atom, str))
               for e in u.index()):
            return False
        _, cell = register_cell(u.index(), inside)
        number = {next(iter(c.variables())): n for n, c in enumerate(cell)}
        names = {x.id: var(f"{number[x.id]}") + x.start for x in moving if x.id in number}
        names |= {x.id: var(x.role) for x in u.above if x.is_place}
        forms.add(tuple(e.substitute(names) for e in u.index()))
    return len(forms) == 1


@per_program(64)
def folded(plan: Plan, name: str) -> Plan:
    """The plan in which each dimension of a buffer, the outer ones first, is a ring of few cells in which every value survives.

    More cells than lie between two that live at one time always do; so the number is searched by halving, and each is judged by
    the reads of this buffer.  The step's own verdict judges the others.
    """
    if not judge(plan, name).legal:
        return plan
    for axis, extent in enumerate(plan.buffer_of[name].shape):
        few, enough, best = 0, extent, plan
        while enough - few > 1:
            size = min(max(2 * few, 1), (few + enough) // 2)
            ring = _ring(plan, name, axis, size)
            if judge(ring, name, True).legal:
                enough, best = size, ring
            else:
                few = size
        plan = best
    return plan


def _ring(plan: Plan, name: str, axis: int, size: int) -> Plan:
    """The plan with one coordinate of a buffer's cells taken modulo a number."""
    buffer = plan.buffer_of[name]
    shape = (*buffer.shape[:axis], size, *buffer.shape[axis + 1:])
    above_of = {leaf.id: ranges(above) for leaf, above, _ in plan.leaves}

    def change(leaf: Leaf) -> Leaf:
        for slot, view in leaf.views:
            if view.buffer == name:
                cell = remainder(view.index[axis], size, above_of[leaf.id])
                leaf = with_view(leaf, slot, replace(view, index=(*view.index[:axis], cell, *view.index[axis + 1:])))
        return leaf

    return put_buffer(plan, replace(buffer, shape=shape)).map_leaves(change)


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
