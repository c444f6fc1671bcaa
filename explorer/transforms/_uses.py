"""What storage transformations ask of a plan: who uses an array, where, and which cells it touches there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from ..ir.expr import ZERO, Atom, Expr, Quotient, Ranges, const, quotient, rejoin, remainder
from ..ir.finding import Verdict, no
from ..ir.plan import Buffer, Plan
from ..ir.program import Access, Indirect, Statement
from ..ir.tree import Kernel, Leaf, Loop, View, ranges


@dataclass(frozen=True)
class Use:
    """One access of a leaf, with the loops around the leaf (outermost first)."""

    leaf: Leaf
    above: tuple[Loop, ...]
    kernel: Kernel
    statement: Statement
    slot: int

    @property
    def access(self) -> Access:
        return self.statement.accesses[self.slot]

    @property
    def view(self) -> View | None:
        return self.leaf.view(self.slot)

    @property
    def writes(self) -> bool:
        return self.slot == len(self.statement.reads)

    def index(self) -> tuple[Expr, ...]:
        """The array's element over the loops' variables; the access must be affine."""
        at, scope = self.leaf.places, ranges(self.above)
        return tuple(e.substitute(at, scope) for e in self.access.index if not isinstance(e, Indirect))


def uses(plan: Plan, array: str) -> tuple[Use, ...]:
    """Every access of an array, in order of execution."""
    return tuple(
        Use(leaf, above, kernel, plan.statement_of[leaf.statement], slot)
        for leaf, above, kernel in plan.leaves
        for slot, access in enumerate(plan.statement_of[leaf.statement].accesses)
        if access.array == array
    )


def array_verdict(plan: Plan, array: str, temporary: bool | None = None) -> Verdict | None:
    """A refusal when there is no such array, or when it is (not) a temporary; else None."""
    names = [a.name for a in plan.program.arrays if temporary is None or (a.role == "temporary") == temporary]
    listed = f"one of {', '.join(names)}" if names else ""
    none = "the program has no temporaries" if temporary and not names else ""
    if array not in plan.array_of:
        return no(f"there is no array {array!r}", none, listed)
    if temporary is None or (plan.array_of[array].role == "temporary") == temporary:
        return None
    kind = "a parameter of the program" if temporary else "a temporary"
    return no(f"{array} is {kind}", none, listed)


def indirect_use(found: Iterable[Use]) -> Use | None:
    """The first use with a data-dependent index."""
    return next((u for u in found if not u.access.affine), None)


def common_loops(paths: Sequence[tuple[Loop, ...]]) -> tuple[Loop, ...]:
    """The loops that all paths begin with."""
    shared: list[Loop] = []
    for level in zip(*paths, strict=False):
        if len({loop.id for loop in level}) > 1:
            break
        shared.append(level[0])
    return tuple(shared)


def parts(expr: Expr, inner: Iterable[str]) -> tuple[Expr, Expr] | None:
    """`expr` as (part without `inner` variables) + (part with them only, and the constant); None where a floor mixes both."""
    names = frozenset(inner)
    outside, inside = list[tuple[Atom, int]](), list[tuple[Atom, int]]()
    for atom, c in expr.terms:
        used = frozenset([atom]) if isinstance(atom, str) else atom.expr.variables()
        if used and not used <= names and used & names:
            return None
        (inside if used <= names else outside).append((atom, c))
    return Expr(tuple(outside)), Expr(tuple(inside), expr.const)


def stride(expr: Expr, name: str) -> float:
    """How far a step of one variable moves the value, floors taken as exact division (their steps are averages)."""
    total = 0.0
    for atom, c in expr.terms:
        if isinstance(atom, str):
            total += c * (atom == name)
        elif isinstance(atom, Quotient):
            total += c * stride(atom.expr, name) / atom.by
        else:
            total += c * stride(atom.expr, name)
    return total


@dataclass(frozen=True)
class Box:
    """The smallest set of cells around several indices, and how it lies in the array.

    An axis that all indices run through without gaps makes one dimension; one that they all run through in the same
    strides makes a dimension for each stride (``64*a + b`` with four values of ``b``: no cells for the gaps).

    Attributes
    ----------
    extents : tuple of int
        Of the dimensions, those with one element left out.
    places : tuple of (int, int)
        For each dimension the array's axis it belongs to, and its stride there.
    offset : tuple of Expr
        First element, all axes of the array, over the outer variables.
    cells : tuple of tuple of Expr
        For each index, its cell.
    runs : tuple of tuple of int
        For each dimension the extents of those that it joins, in their order; nothing where none is joined.  `places` has one
        entry for each of these.
    axes : tuple of tuple of int
        Where axes of the array are taken as one: for each of those that are left the extents of the axes in it.
    """

    extents: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    offset: tuple[Expr, ...]
    cells: tuple[tuple[Expr, ...], ...]
    runs: tuple[tuple[int, ...], ...] = ()
    axes: tuple[tuple[int, ...], ...] = ()

    @property
    def apart(self) -> tuple[tuple[int, ...], ...]:
        """For each dimension the extents of those that it joins: its own where it joins none."""
        return self.runs or tuple((n,) for n in self.extents)

    def element(self, coordinates: Sequence[Expr]) -> tuple[Expr, ...]:
        """The array's element that a cell holds (the offset's variables are the outer ones)."""
        out = list(self.offset)
        single = [e for whole, run in zip(coordinates, self.apart, strict=True) for e in _taken_apart(whole, run)]
        for (axis, step), coordinate in zip(self.places, single, strict=True):
            if step:
                out[axis] = out[axis] + coordinate * step
        return tuple(out)

    def clipped(self, shape: Sequence[int], scope: Ranges, vector: int = 1) -> Box:
        """The box without cells that never lie in an array of this shape, where most cells of a dimension are such.

        Some zeros beyond the edge spare the readers their guards.  The last dimension stays a multiple of `vector`.
        """
        extents, offset, cells = list(self.extents), list(self.offset), [list(c) for c in self.cells]
        for d, (axis, step) in enumerate(self.places):
            if step != 1 or [a for a, _ in self.places].count(axis) > 1 or extents[d] <= 2 * shape[axis]:
                continue
            low, high = offset[axis].interval(scope)
            first, last = max(0, -high), min(extents[d], shape[axis] - low)
            wide = vector if d == len(extents) - 1 else 1
            first = first // wide * wide
            size = min(extents[d] - first, -(-(last - first) // wide) * wide)
            if size < 1:
                continue
            extents[d], offset[axis] = size, offset[axis] + first
            for cell in cells:
                cell[d] = cell[d] - first
        return replace(self, extents=tuple(extents), offset=tuple(offset), cells=tuple(map(tuple, cells)))

    def joined(self, scopes: Sequence[Ranges], last: bool = True) -> Box:
        """The box with neighbouring dimensions as one, where every index has them as quotient and remainder of one number.

        A tile of 4 x 16 pixels that a loop of 64 runs through is 64 rows then.  The last dimension stays by itself unless `last`.
        """
        runs, first, end = list[tuple[int, ...]](), 0, len(self.extents) - (not last)
        while first < len(self.extents):
            stop = next((n for n in range(end, first + 1, -1) if self._is_one(first, n, scopes)), first + 1)
            runs.append(self.extents[first:stop])
            first = stop
        if len(runs) == len(self.extents):
            return self
        starts = [sum(map(len, runs[:n])) for n in range(len(runs))]
        cells = tuple(tuple(rejoin(row_major(cell[at:at + len(run)], run), scope) for at, run in zip(starts, runs, strict=True))
                      for cell, scope in zip(self.cells, scopes, strict=True))
        return replace(self, extents=tuple(map(prod, runs)), cells=cells, runs=tuple(runs))

    def _is_one(self, first: int, stop: int, scopes: Sequence[Ranges]) -> bool:
        """Whether some neighbouring dimensions are parts of one number in every index."""
        for cell, scope in zip(self.cells, scopes, strict=True):
            whole = rejoin(row_major(cell[first:stop], self.extents[first:stop]), scope)
            if not all(_divided(e) for e in cell[first:stop]) or _divided(whole):
                return False
        return True

    def padded(self) -> Box:
        """The box with at least one dimension, of one cell, so that its coordinate can tell the thread that fills it."""
        return self if self.extents else replace(self, extents=(1,), places=((0, 0),), cells=tuple((ZERO,) for _ in self.cells))


Digit = tuple[int, int, Expr]
"""A stride, the number of its values, and the value from 0."""


def box(indices: Sequence[tuple[Expr, ...]], scopes: Sequence[Ranges], inner: Sequence[Iterable[str]]) -> Box | str:
    """The box around `indices`, whose `inner` variables move within it; a sentence where there is none.

    Parameters
    ----------
    indices : sequence of tuple of Expr
        One per use, over loop variables.
    scopes : sequence of Ranges
        Intervals of the variables of each use.
    inner : sequence of iterables of str
        The variables that move within the box, for each use; the rest only place it.
    """
    extents, places, offset = list[int](), list[tuple[int, int]](), list[Expr]()
    cells: list[list[Expr]] = [[] for _ in indices]
    for axis in range(len(indices[0])):
        split: list[tuple[Expr, Expr]] = []
        for index, scope, names in zip(indices, scopes, inner, strict=True):
            pair = parts(index[axis].simplify(scope), names)
            if pair is None:
                return f"its index {index[axis]} mixes variables inside and outside of the scope in one // or %"
            split.append(pair)
        if len({outside for outside, _ in split}) > 1:
            shown = " and ".join(sorted({str(index[axis]) for index in indices}))
            return f"its indices {shown} move apart along axis {axis}, so no box of fixed size holds them"
        insides = [inside for _, inside in split]
        bounds = [inside.interval(scope) for inside, scope in zip(insides, scopes, strict=True)]
        low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
        offset.append(split[0][0] + low)
        found = [digits(inside, scope) for inside, scope in zip(insides, scopes, strict=True)]
        shapes = {None if d is None else tuple(x[:2] for x in d) for d in found}
        if len(shapes) > 1 or None in shapes or len({b[0] for b in bounds}) > 1 or not gaps(found[0] or []):
            found = [[(1, high - low + 1, inside - low)] for inside in insides]
        for cell, mine in zip(cells, found, strict=True):
            cell += [value for _, n, value in mine or [] if n > 1]
        kept = [(step, n) for step, n, _ in found[0] or [] if n > 1]
        extents += [n for _, n in kept]
        places += [(axis, step) for step, _ in kept]
    return Box(tuple(extents), tuple(places), tuple(offset), tuple(map(tuple, cells)))


def _divided(expr: Expr) -> bool:
    """Whether a quotient or a remainder stands in it."""
    return any(not isinstance(atom, str) for atom, _ in expr.terms)


def _taken_apart(whole: Expr, run: Sequence[int]) -> tuple[Expr, ...]:
    """The coordinates of dimensions that are joined."""
    return coordinates(whole, run) if len(run) > 1 else (whole,)


def row_major(index: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """An element's place in its array."""
    total = ZERO
    for e, n in zip(index, shape, strict=True):
        total = total * n + e
    return total


def coordinates(place: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
    """The element at a place of an array."""
    inside = [prod(shape[axis + 1:]) for axis in range(len(shape))]
    return tuple(quotient(place, n) if axis == 0 else remainder(quotient(place, n), shape[axis])
                 for axis, n in enumerate(inside))


def digits(expr: Expr, scope: Ranges) -> list[Digit] | None:
    """The value as a sum of strides times independent values from 0, contiguous ones joined; None where a stride is negative."""
    out: list[Digit] = []
    for atom, c in sorted(expr.terms, key=lambda t: -t[1]):
        single = Expr(((atom, 1),))
        low, high = single.interval(scope)
        if c < 0:
            return None
        value = single - low
        if out and out[-1][0] == c * (high - low + 1):
            step, n, outer = out.pop()
            out.append((c, n * (high - low + 1), outer * (step // c) + value))
        else:
            out.append((c, high - low + 1, value))
    return out


def gaps(found: Sequence[Digit]) -> bool:
    """Whether these strides reach every element at most once and leave some out."""
    moving = [d for d in found if d[1] > 1]
    apart = all(outer[0] >= inner[0] * inner[1] for outer, inner in pairwise(moving))
    return apart and (len(moving) > 1 or any(d[0] > 1 for d in moving))


def at_start(expr: Expr, loops: Iterable[Loop], scope: Ranges) -> Expr:
    """The expression with these loops at their first iteration."""
    return expr.substitute({loop.id: const(loop.start) for loop in loops}, scope) if expr.terms else expr


def with_view(leaf: Leaf, slot: int, view: View | None) -> Leaf:
    """The leaf with another view of one access (None: the array itself)."""
    kept = tuple((s, v) for s, v in leaf.views if s != slot)
    return replace(leaf, views=tuple(sorted((*kept, (slot, view)), key=lambda t: t[0])) if view else kept)


def without_unused(plan: Plan) -> Plan:
    """The plan without buffers that no view uses."""
    used = {v.buffer for leaf, _, _ in plan.leaves for _, v in leaf.views}
    return replace(plan, buffers=tuple(b for b in plan.buffers if b.name in used))


def put_buffer(plan: Plan, buffer: Buffer) -> Plan:
    """The plan with this buffer, in place of one of the same name."""
    if buffer.name not in plan.buffer_of:
        return replace(plan, buffers=(*plan.buffers, buffer))
    return replace(plan, buffers=tuple(buffer if b.name == buffer.name else b for b in plan.buffers))


def no_temporary(plan: Plan, node_id: str) -> Verdict:
    """The refusal of a node that uses no temporary, with the statements that do, or the move that makes one."""
    known = {a.name for a in plan.program.temporaries}
    users = [leaf.id for leaf, _, _ in plan.leaves if known & {a.array for a in plan.statement_of[leaf.statement].accesses}]
    sums = [s.target.array for leaf, _, _ in plan.leaves if (s := plan.statement_of[leaf.statement]).update]
    makes = f"accumulate('{sums[0]}') first, which makes one" if sums else ""
    kind = "loop" if node_id in plan.loops else "kernel" if any(k.id == node_id for k in plan.kernels) else ""
    what = f"{node_id} is a {kind}, not a statement that uses a temporary" if kind else f"{node_id} uses no temporary"
    return no(what, "only a temporary can be put elsewhere, or written into its readers",
              f"select one of {', '.join(users)}" if users else makes)
