"""Bulk copies: what one tensor copy of the hardware (TMA) moves, or why a leaf cannot be one.

One thread of a block asks for a box of a global array, and an engine of the multiprocessor brings it to shared memory, with zeros
for what lies beyond the array (PTX ISA, ``cp.async.bulk.tensor``; CUDA C++ Programming Guide, "Tensor Memory Accelerator").  The
elements of the box are the iterations of the leaf's innermost loops, whose role is ``tensor``; the other loops around it place
the box.  What is found here is what is printed, so that a leaf is judged as the very instruction that it becomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import takewhile
from math import prod

from ..ir.expr import ZERO, Expr, Quotient, Ranges, Remainder, const, rejoin, var
from ..ir.plan import Buffer, Plan
from ..ir.program import Access, Array, Constraint, Statement
from ..ir.scalar import Read
from ..ir.swizzle import MODES, offset
from ..ir.tree import Kernel, Leaf, Loop, View, find, ranges
from .feasible import feasible
from .lanes import misaligned
from .linear import Tuple, at_most, holds
from .linear import box as boxed_values
from .pure_load import Never, not_loaded

MOST_AXES = 5
"""Dimensions of a tensor map (CUDA Driver API, ``cuTensorMapEncodeTiled``)."""
MOST_ELEMENTS = 256
"""Elements of a box along one dimension (the same)."""
GRAIN = 16
"""Bytes that divide the strides of the array and the rows of the box (the same)."""
ALIGNMENT = 128
"""Bytes that divide the place in shared memory to which a box is copied (PTX ISA, ``cp.async.bulk.tensor``)."""
MOST_STEP = 8
"""Elements of the array from one of the box to the next (the same)."""
MOST_INDEX = 2**31 - 1
"""Coordinates are 32-bit integers (the same)."""
NEIGHBOURS = "a bulk copy moves a box of neighbouring elements"
OTHERWISE = "stage with engine='async', or with engine='thread'"


@dataclass(frozen=True)
class Bulk:
    """One bulk copy.

    Attributes
    ----------
    array : str
        Where the box lies.
    axes : tuple of tuple of int
        The array as the hardware sees it: for each dimension the extents of the axes that it joins.
    loops : tuple of Loop
        Those over its elements, outermost first.
    box : tuple of int
        Its elements along each dimension.
    steps : tuple of int
        From one element of the box to the next along each dimension, in elements of the array.
    first : tuple of Expr
        Its first element, over the variables of the loops around it; it may lie beyond the array.
    cell : tuple of Expr
        The cell of the shared array to which that goes; the others follow it, row by row.
    when : tuple of Constraint
        When it is made, over the same variables, beside what places say: one thread makes it, the first of each thread loop.
    swizzle : int
        As :attr:`~explorer.ir.plan.Buffer.swizzle`, of the shared array.
    """

    array: str
    axes: tuple[tuple[int, ...], ...]
    loops: tuple[Loop, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    first: tuple[Expr, ...]
    cell: tuple[Expr, ...]
    when: tuple[Constraint, ...]
    swizzle: int


def bulk(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> Bulk | Never:
    """The bulk copy that the leaf is, or why it cannot be one, whatever the leaf says of itself.

    Parameters
    ----------
    plan : Plan
    leaf : Leaf
    above : tuple of Loop
        The loops around it, outermost first.
    """
    if refusal := not_loaded(plan, leaf):
        return refusal
    statement = plan.statement_of[leaf.statement]
    assert isinstance(statement.value, Read)
    access, view = statement.accesses[statement.value.slot], leaf.view(len(statement.reads))
    assert view is not None
    array, buffer = plan.array_of[access.array], plan.buffer_of[view.buffer]
    if not access.affine:
        return Never(f"{leaf.statement} reads {array.name} at a data-dependent element", "a bulk copy moves a box", OTHERWISE)
    return _memory(plan, leaf, array, buffer) or boxed(plan, leaf, above, access, view)


def boxed(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], access: Access, view: View) -> Bulk | Never:
    """The box of a global array that the leaf runs through, and where it lies in shared memory; or why there is none.

    Parameters
    ----------
    plan : Plan
    leaf : Leaf
        It copies elements unchanged.
    above : tuple of Loop
        The loops around it, outermost first.
    access : Access
        Its elements of the array.
    view : View
        Its cells in shared memory.
    """
    statement, array, buffer = plan.statement_of[leaf.statement], plan.array_of[access.array], plan.buffer_of[view.buffer]
    loops = _box_loops(plan, above)
    if not loops:
        last = access.index[-1].substitute(leaf.places) if access.index and isinstance(access.index[-1], Expr) else ZERO
        apart = max((abs(last.coefficient(x.id)) for x in above[-1:]), default=0)
        if apart > 1:
            return Never(f"elements of {array.name} that {leaf.statement} copies lie {apart} apart in a row", NEIGHBOURS,
                         OTHERWISE)
        return Never(f"{leaf.statement} stands in no loops over a box of {array.name} alone", NEIGHBOURS, OTHERWISE)
    if outside := next((x.id for x in above[: -len(loops)] if x.role == "tensor"), ""):
        between = above[-len(loops) - 1].id
        return Never(f"{outside}, over elements of a box, has {between} in it", "one copy moves the elements of all these loops",
                     f"interchange({outside!r}, {between!r})")
    if refusal := _thread(leaf, statement, above):
        return refusal
    scope, at = ranges(above), leaf.places
    start = {x.id: const(x.start) for x in above if x.is_thread}
    stored = access is statement.target
    clipped = edges(array, access)[1::2] if stored else ()  # a store leaves out what lies behind the array
    when = _uniform(statement, leaf, start, loops, scope, clipped)
    if isinstance(when, Never):
        return when
    first = {**start, **{x.id: const(0) for x in loops}}
    index = [e.substitute(at, scope).substitute(start, scope) for e in access.index if isinstance(e, Expr)]
    axes, index = _seen(array, index, loops, scope)
    if refusal := _array(array, (*map(prod, axes[:-1]), array.pitch or prod(axes[-1])) if axes else ()):
        return refusal
    found = _box(array, index, loops, scope)
    if isinstance(found, Never):
        return found
    box, steps = found
    if refusal := _filled(statement, leaf, array, edges(array, access)):
        return refusal
    cell = tuple(e.substitute(start, scope) for e in view.index)
    if refusal := _shape(array, buffer, box, steps) or _place(leaf, buffer, cell, loops, scope):
        return refusal
    begins = tuple(e.substitute(first, scope) for e in index)
    if stored and (before := next((e for e in begins if _may_be_negative(e, when, scope)), None)) is not None:
        return Never(f"boxes may begin before {array.name}, at {before}",
                     "a bulk store with a negative coordinate is an illegal instruction (H200), though a part of it lies inside",
                     f"shift the loops, so that tiles begin in the array; or {OTHERWISE}")
    if odd := misaligned(begins[-1], max(GRAIN // array.dtype.bytes, 1)):
        return Never(f"boxes of {array.name} begin at column {begins[-1]}, of elements of {array.dtype.bytes} bytes",
                     f"{GRAIN} bytes have to divide their place in a row, and do not divide {odd}",
                     f"tiles of a multiple of {GRAIN} bytes, and neighbours on other axes than the last; or {OTHERWISE}")
    return Bulk(array.name, axes, loops, box, steps, begins,
                tuple(e.substitute(first, scope) for e in cell), when, buffer.swizzle)


def _may_be_negative(e: Expr, when: Sequence[Constraint], scope: Ranges) -> bool:
    """Whether an index may be negative where a copy is made."""
    if e.interval(scope)[0] >= 0 or any(c.expr == e for c in when):
        return False
    names = sorted(e.variables().union(*(c.expr.variables() for c in when)))
    inside = boxed_values(((var(x), scope[x][0], scope[x][1] - scope[x][0] + 1) for x in names), "v")
    return feasible((Tuple("", "v", tuple(names)),), (*inside, *(holds(c, "v") for c in when), at_most(e, "v", -1)))


def edges(array: Array, access: Access) -> tuple[Expr, ...]:
    """What is at least 0 where an access lies in its array, over the statement's dimensions."""
    return tuple(e for at, n in zip(access.index, array.shape, strict=True) if isinstance(at, Expr)
                 for e in (at, -at + (n - 1)))


def row_bytes(shape: Sequence[int], size: int) -> list[int]:
    """Bytes from one element to the next along each dimension but the last."""
    return [prod(shape[axis + 1:]) * size for axis in range(len(shape) - 1)]


def _seen(array: Array, index: Sequence[Expr], loops: Sequence[Loop],
          scope: Ranges) -> tuple[tuple[tuple[int, ...], ...], list[Expr]]:
    """The array with some axes as one, and the index in it.

    Axes that a loop of the box runs through together are one, and so is one of a single element with its neighbour.  What is
    beyond the array is then beyond one of its axes, and the other way round.  Rows with a pitch are no run of memory.
    """
    names, axes, found = {x.id for x in loops}, list[tuple[int, ...]](), list[Expr]()
    for axis, (n, e) in enumerate(zip(array.shape, index, strict=True)):
        if found and not (array.pitch and axis == len(index) - 1):
            whole, (low, high) = rejoin(found[-1] * n + e, scope), e.interval(scope)
            mixed = _divisions(e, names)
            together = _divisions(found[-1], names) and _divisions(whole, names) < _divisions(found[-1], names) + mixed
            fewer = together or len(_floors(whole)) < len(_floors(found[-1])) + len(_floors(e))
            single = (prod(axes[-1]) == 1 and found[-1] == ZERO) or (n == 1 and e == ZERO)
            if single or (mixed and low >= 0 and high < n and fewer):
                axes[-1], found[-1] = (*axes[-1], n), whole
                continue
        axes.append((n,))
        found.append(e)
    return tuple(axes), found


def _divisions(e: Expr, names: AbstractSet[str]) -> int:
    """How many quotients and remainders of some loops there are in a sum."""
    return sum(bool(atom.expr.variables() & names) for atom in _floors(e))


def _floors(e: Expr) -> list[Quotient | Remainder]:
    """The quotients and remainders in a sum."""
    return [atom for atom, _ in e.terms if not isinstance(atom, str)]


def _array(array: Array, shape: Sequence[int]) -> Never | None:
    """What a tensor map cannot describe, of the array as it sees it."""
    name, size = array.name, array.dtype.bytes
    if not shape or len(shape) > MOST_AXES:
        return Never(f"{name} has {len(shape)} dimensions", f"a tensor map has 1 to {MOST_AXES}", OTHERWISE)
    if not all(shape) or max(shape) > MOST_INDEX:
        return Never(f"{name} has {' x '.join(map(str, shape))} elements", "a tensor map has 1 to 2**31 - 1 along a dimension",
                     OTHERWISE)
    if odd := next((n for n in row_bytes(shape, size) if n % GRAIN), 0):
        return Never(f"rows of {name} are {odd} bytes apart", f"{GRAIN} has to divide that in a tensor map", OTHERWISE)
    return None


def _memory(plan: Plan, leaf: Leaf, array: Array, buffer: Buffer) -> Never | None:
    """What threads write, the engine sees only behind a fence, and the other way round."""
    kernel = plan.kernel_of(leaf.id)
    together = {k.id for group in plan.launched if kernel in group for k in group}
    for other, _, k in plan.leaves:
        statement = plan.statement_of[other.statement]
        view = other.view(len(statement.reads))
        if k.id in together and view is None and statement.target.array == array.name:
            return Never(f"{other.id} writes {array.name} in the launch in which {leaf.statement} copies it",
                         "a bulk copy sees what launches before have written", f"{_apart(k, other, kernel)}; or {OTHERWISE}")
        if view is not None and view.buffer == buffer.name and other.mechanism != "bulk":
            return Never(f"{other.id} writes {buffer.name}, too, and not by a bulk copy",
                         "what threads write to shared memory is ordered with bulk copies by fences alone", OTHERWISE)
    return None


def _apart(writes: Kernel, leaf: Leaf, copies: Kernel | None) -> str:
    """What makes a launch of its own of what stands behind a leaf."""
    if copies is not None and writes.id != copies.id:
        return f"join({copies.id!r}, 'launch')"
    top = next(n.id for n in writes.body if n.id == leaf.id or (isinstance(n, Loop) and find(n.body, leaf.id)))
    return f"launch({writes.id!r}, after={top!r})"


def _box_loops(plan: Plan, above: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """The innermost loops over the elements of the box; none where something else stands in them."""
    found = tuple(takewhile(lambda x: x.role == "tensor", reversed(above)))[::-1]
    alone = all(len(plan.loops[x.id].body) == 1 and not x.start for x in found)
    vectors = any(x.role == "vector" for x in above)
    return found if alone and not vectors else ()


def _thread(leaf: Leaf, statement: Statement, above: tuple[Loop, ...]) -> Never | None:
    """One thread alone makes the copy, which also counts it: the first one."""
    scope, at = ranges(above), leaf.places
    for x in above:
        if not x.is_thread or (x.extent == 1 and not x.start):
            continue
        others = {**scope, x.id: (x.start + 1, x.start + x.extent - 1)}
        if x.start or not any(c.expr.substitute(at, others).interval(others)[1] < 0 for c in statement.domain):
            return Never(f"several threads of {x.id} make {leaf.statement}", "one thread of a block makes a bulk copy",
                         f"bind({x.id!r}, 'seq'), or stage it outside of {x.id}")
    return None


def _uniform(statement: Statement, leaf: Leaf, start: dict[str, Expr], loops: Sequence[Loop],
             scope: Ranges, clipped: Sequence[Expr]) -> tuple[Constraint, ...] | Never:
    """When the copy is made: as a whole or not at all, but for what the engine leaves out itself."""
    inside, found = {x.id for x in loops}, list[Constraint]()
    for c in statement.domain:
        if not c.equality and c.expr in clipped:
            continue
        e = c.expr.substitute(leaf.places, scope).substitute(start, scope)
        low, high = e.interval(scope)
        if (low >= 0 and not c.equality) or (low == high == 0):
            continue
        if e.variables() & inside:
            return Never(f"{leaf.statement} copies a part of a box", "a bulk copy moves a whole box, and zeros beyond the array",
                         "stage with fill=True, and tile sizes that divide the box")
        found.append(Constraint(e, c.equality))
    return tuple(found)


def _box(array: Array, index: Sequence[Expr], loops: Sequence[Loop],
         scope: Ranges) -> tuple[tuple[int, ...], tuple[int, ...]] | Never:
    """The extents of the box and its steps: each dimension is run through by one of the loops, or by none, in their order."""
    left, box, steps = list(loops), list[int](), list[int]()
    names = {x.id for x in loops}
    for e in index:
        moved = (e - e.substitute({name: ZERO for name in names}, scope)).simplify(scope)
        if moved == ZERO:
            box.append(1)
            steps.append(1)
        elif left and (step := moved.coefficient(left[0].id)) > 0 and moved == var(left[0].id) * step:
            box.append(left.pop(0).extent)
            steps.append(step)
        else:
            return Never(f"what is copied of {array.name} is no box: its index {e} is not a place and a loop of the box",
                         NEIGHBOURS, OTHERWISE)
    if left:
        return Never(f"{left[0].id} is no dimension of {array.name}", NEIGHBOURS, OTHERWISE)
    return tuple(box), tuple(steps)


def _filled(statement: Statement, leaf: Leaf, array: Array, own: Sequence[Expr]) -> Never | None:
    """Zeros stand beyond the array, and nowhere else."""
    if all(not c.equality and c.expr in own for c in statement.inside):
        return None
    return Never(f"{leaf.statement} has zeros inside of {array.name}",
                 "a bulk copy brings zeros for what lies beyond the array alone", OTHERWISE)


def _shape(array: Array, buffer: Buffer, box: Sequence[int], steps: Sequence[int]) -> Never | None:
    """What the engine cannot move at once."""
    shown, row = " x ".join(map(str, box)), box[-1] * array.dtype.bytes
    if max(n * step for n, step in zip(box, steps, strict=True)) > MOST_ELEMENTS:
        return Never(f"the box of {buffer.name} has {shown} elements", f"it spans at most {MOST_ELEMENTS} along a dimension",
                     "stage with engine='bulk' again, which divides it")
    if steps[-1] > 1 or max(steps) > MOST_STEP:
        return Never(f"the elements of {buffer.name} are {' x '.join(map(str, steps))} apart in {array.name}",
                     f"a tensor map has steps of at most {MOST_STEP}, and none within rows", OTHERWISE)
    if row % GRAIN:
        return Never(f"a row of the box of {buffer.name} has {row} bytes", f"{GRAIN} has to divide that",
                     f"tile sizes whose rows have a multiple of {GRAIN} bytes, or {OTHERWISE}")
    if buffer.swizzle and row != buffer.swizzle:
        fitting = f"swizzle={row}" if row in MODES else "swizzle=0"
        return Never(f"a row of the box of {buffer.name} has {row} bytes", f"it has as many as the swizzle's, {buffer.swizzle}",
                     f"stage with {fitting}")
    return None


def _place(leaf: Leaf, buffer: Buffer, cell: Sequence[Expr], loops: Sequence[Loop], scope: Ranges) -> Never | None:
    """The box lies in one piece, as it comes."""
    at = offset(buffer, cell, scope)
    first, step = at.substitute({x.id: ZERO for x in loops}, scope), 1
    rows = ZERO
    for x in reversed(loops):
        rows, step = rows + var(x.id) * step, step * x.extent
    if (at - first - rows).simplify(scope) != ZERO:
        return Never(f"the box of {leaf.statement} does not lie in one piece in {buffer.name}",
                     "a bulk copy writes it row by row", "no padding; stage with engine='bulk' again for a box of another shape")
    size = buffer.dtype.bytes
    if odd := misaligned(first, ALIGNMENT // size):
        return Never(f"boxes of {buffer.name} begin at {odd} elements of {size} bytes", f"{ALIGNMENT} has to divide their place",
                     f"tile sizes whose boxes have a multiple of {ALIGNMENT} bytes")
    return None
