"""Products of matrices among a kernel's nests: recognised from accesses, whatever the names and the order of the loops.

``c[b…, i…, j…] = sum over k… of x[b…, i…, k…] * y[b…, k…, j…]``, started before and used behind.  Loops that both factors and the
result have are batches, loops of the result and one factor run over rows or columns, those of both factors alone over the depth.
A loop over rows may share an axis of its factor with a loop over the depth, as the pixels of a convolution do with the filter's:
``x[n, p + r, q + s, c]`` is a matrix whose rows are all of n, p and q, for each of r and s another one (an implicit product).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd, prod

from ...ir.dtype import DType
from ...ir.expr import Expr, const, var
from ...ir.plan import Plan
from ...ir.tree import Leaf, Loop
from ...poly.bulk import MOST_STEP
from ...poly.relations import domain
from ...poly.tensor import is_product, significand_of
from ...schedule import Schedule
from .._steps import chain, leaves_of
from ..counts import operations_of
from .accesses import index_of, strides_of, vector_of, walked, written
from .epilogue_facts import aligned_bytes, are_spaced, is_long, lies_across, result_steps, row_sums, sums_rows
from .triangles import cut_factors, share_of_depth, zeros_first

VECTOR_BYTES = 16
"""Of the widest store of a thread."""
SHORT = 8
"""Iterations of a loop over the depth with which an instruction would multiply more zeros than elements."""
NARROW, WHOLE = 2, 8
"""Rows and columns from which on a product is no row of sums, which other strategies do better; and from which on at most half
of an instruction's tile lies beyond it.  4 x 4096 x 4096 of f16 takes 10.5 µs in tiles of 16 rows, 187 as sums (price, H200)."""


@dataclass(frozen=True)
class Factor:
    """One of the two factors.

    Attributes
    ----------
    array : str
    dtype : DType
    free : tuple of str
        The loops over its rows (of the left factor) or columns (of the right one), outermost first.
    along : str
        The loop along which its elements follow each other in memory; "" where that is another loop than these and the depth.
    pitch : int
        Bytes from one row of the array to the next.
    nbytes : int
        Of the array.
    even : bool
        Whether a bulk copy brings a tile: from one iteration of a loop to the next are few elements of an axis, in a row one.
    vector : int
        Elements that one access of a thread can copy.
    beside : tuple of bool
        For each of `free` whether it lies on the same side of the depth in memory as the last one: only these make one tile.
    transposed : bool
        Whether its copy in shared memory is stored across the depth though its own rows lie along it.
    """

    array: str
    dtype: DType
    free: tuple[str, ...]
    along: str
    pitch: int
    nbytes: int
    even: bool
    vector: int
    beside: tuple[bool, ...]
    transposed: bool = False

    @property
    def together(self) -> int:
        """Rows or columns that one access of a thread to a copy in shared memory reads, at most."""
        return VECTOR_BYTES // self.dtype.bytes if self.transposed or self.along == self.free[-1] else 1

    @property
    def padding(self) -> int:
        """Elements between a copy's rows where those of the factor lie along the depth: so they begin in other banks."""
        return VECTOR_BYTES // self.dtype.bytes if self.transposed or self.together == 1 else 0


@dataclass(frozen=True)
class ProductForm:
    """A product of matrices.

    Attributes
    ----------
    kernel : str
    update : str
        The leaf that adds up.
    total : str
        The temporary that it adds into.
    batch : tuple of str
        Loops around, outermost first, that neither run over rows nor over columns.
    rows, columns : tuple of str
        Loops, outermost first.
    row_extents, column_extents : tuple of int
        Theirs.
    depth : str
        The loop that is divided into steps.
    outer_depth, outer_extents : tuple of str, and of int
        Further loops over the depth.
    extents : tuple of int
        Of all rows, all columns and the depth.
    batches : int
        Iterations of the loops in `batch`.
    left, right : Factor
    accumulator : DType
    flat : tuple of tuple of str
        Loops over rows, or over columns, that walk their factor as one loop would: they are one, with the first one's name.
    grouped : bool
        Whether the left factor is another one for each so many columns, so that tiles have to divide these.
    depths : tuple of str
        All loops over the depth in the order in which a product runs through them: the longest strides outermost, so that what
        lies between the elements of one step belongs to the next ones.
    gathered : tuple of str
        All loops over the depth, outermost first, where they are taken as one, whose name is `depth`: a step of it takes elements
        from several of them, and a copy gathers what is no box.  Nothing where `depth` alone is long enough.
    aligned : int
        Bytes of the widest access along the columns that all rows of the results allow, where these have 2 bytes and follow each
        other along the columns; else 0.  Pairs that lanes hold are half a sector there, and from shared memory a warp stores
        runs of a row.
    across : bool
        Whether results follow each other in memory along the rows instead.
    spaced : bool
        Whether rows of the results lie some elements of an axis apart, as those of a transposed convolution with a stride do: a
        bulk store has one row then.
    long : bool
        Whether more is done with each sum than a few additions and a store: operations of many instructions, or reads of arrays
        that have an element for each result.
    work : int
        Operations that follow each sum, by what each takes in additions.
    significand : int
        Bits that a factor keeps of its significand (tf32), 0 for all.
    sums : tuple of str
        Leaves behind the product that sum over its columns, an element for each row (and batch).
    cut : tuple of bool
        For each factor whether a condition leaves some of its elements out, as behind the diagonal of a triangle: its tiles have
        zeros there.
    first : tuple of bool
        For each factor that is cut whether the zeros stand before the elements of a run of memory.
    filled : float
        How much of the depth the rows (or columns) have on average.
    result_steps : tuple of tuple of (int, int)
        For each loop over rows, and over columns: elements of the results' array from one iteration to the next, and for how many
        iterations this holds.  Nothing where data choose the element.
    """

    kernel: str
    update: str
    total: str
    batch: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_extents: tuple[int, ...]
    column_extents: tuple[int, ...]
    depth: str
    outer_depth: tuple[str, ...]
    outer_extents: tuple[int, ...]
    extents: tuple[int, int, int]
    batches: int
    left: Factor
    right: Factor
    accumulator: DType
    depths: tuple[str, ...]
    flat: tuple[tuple[str, ...], ...] = ()
    gathered: tuple[str, ...] = ()
    grouped: bool = False
    aligned: int = 0
    across: bool = False
    spaced: bool = False
    long: bool = False
    work: int = 0
    significand: int = 0
    sums: tuple[str, ...] = ()
    cut: tuple[bool, bool] = (False, False)
    first: tuple[bool, bool] = (False, False)
    filled: float = 1.0
    result_steps: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]] = ((), ())

    @property
    def types(self) -> tuple[DType, DType, DType, int]:
        """What an instruction has to have: types of the factors and the sums, and bits of the significands."""
        return self.left.dtype, self.right.dtype, self.accumulator, self.significand


def product_form(schedule: Schedule, kernel: str) -> ProductForm | None:
    """The product that a kernel of one nest is, or None.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Nothing of it is spread yet.
    """
    plan = schedule.plan
    body = next(k.body for k in plan.kernels if k.id == kernel)
    nest = chain(body[0]) if len(body) == 1 else []
    updates = [leaf for leaf in leaves_of(body[0]) if plan.statement_of[leaf.statement].update] if nest else []
    sums = [leaf for leaf in updates if is_product(plan.statement_of[leaf.statement])]
    if len(sums) != 1 or any(x.role != "seq" for x in nest):
        return None
    (update,) = sums
    if any(leaf is not update and leaf not in nest[-1].body for leaf in updates):
        return None
    statement, hit = plan.statement_of[update.statement], plan.find(update.id)
    assert hit is not None
    if plan.array_of[statement.target.array].role != "temporary" or domain(statement).is_empty():
        return None
    above = hit[1]
    indices = [index_of(plan, update, slot) for slot in range(3)]
    if None in indices:
        return None
    left, right, target = ([e.variables() for e in index or ()] for index in indices)
    used = [frozenset[str]().union(*v) for v in (left, right, target)]
    around = [x for x in above if x in nest]
    inner = [x for x in above if x not in nest]
    if not inner or any(len(x.body) != 1 for x in inner):
        return None
    result = used[2] | {x.id for x in around}  # a scalar temporary stands for one element of each of the loops around
    wide = [x.id for x in around if x.id in used[1] and x.id not in used[0]]
    tall = [x.id for x in around if x.id in used[0] and x.id not in used[1]]
    rows = [x for x in around if x.id in used[0] and x.id not in used[1] and x.id in result]
    columns = [x for x in around if x.id in used[1] and x.id not in used[0] and x.id in result]
    depth = [x for x in inner if x.id in used[0] & used[1]]
    if not rows or not columns or not depth or len(depth) < len(inner) or not all(x.extent for x in above):  # or runs never
        return None
    cut = cut_factors(plan, update, above, {x.id for x in rows}, {x.id for x in columns}, {x.id for x in depth})
    if cut is None or (any(cut) and len(depth) > 1):
        return None
    batch = [x for x in around if x not in rows and x not in columns]
    steps = [x for x in depth if all(_alone(plan, update, slot, x.id, free) for slot, free in ((0, rows), (1, columns)))]
    k = _deepest(steps or depth, plan, update)
    free = [tuple(x.id for x in loops) for loops in (rows, columns)]
    factors = [_factor(plan, update, slot, loops, k.id) for slot, loops in enumerate(free)] if steps else [None, None]
    gathered = ()
    if len(depth) > 1 and (None in factors or k.extent < SHORT):
        gathered, k = tuple(x.id for x in depth), replace(depth[0], extent=prod(x.extent for x in depth))
        factors = [_scattered(plan, update, slot, loops, depth) for slot, loops in enumerate(free)]
    first, second = factors
    if first is None or second is None:
        return None
    flat = tuple(run for slot, loops in enumerate((rows, columns)) for run in runs_of(plan, update, slot, loops, around))
    if not gathered:
        first, second = _flattened(plan, update, 0, first, flat), _flattened(plan, update, 1, second, flat)
        rows, columns = _merged(rows, flat), _merged(columns, flat)
    others = [x for x in inner if not gathered and x is not k]
    heights, widths = tuple(x.extent for x in rows), tuple(x.extent for x in columns)
    every = [*leaves_of(body[0])]
    after = every[every.index(update) + 1:]
    last = next((x for x in reversed(after) if not sums_rows(plan, x, {y.id for y in columns})), None)
    grouped = any(x.id in e.substitute(update.places).variables() for x in columns for e in written(plan, update, 0))
    return ProductForm(kernel, update.id, statement.target.array, tuple(x.id for x in batch), first.free, second.free, heights,
                       widths, k.id, tuple(x.id for x in others), tuple(x.extent for x in others),
                       (prod(heights), prod(widths), k.extent), prod(x.extent for x in batch), first, second,
                       plan.array_of[statement.target.array].dtype, gathered or _by_stride(plan, update, inner),
                       () if gathered else flat, gathered, grouped, aligned_bytes(plan, last, wide, flat, tall) if last else 0,
                       last is not None and lies_across(plan, last, tall), last is not None and are_spaced(plan, last, tall),
                       is_long(plan, after, update, {*wide}, {*tall}),
                       sum(operations_of(plan.statement_of[x.statement]) for x in after), significand_of(statement),
                       row_sums(plan, after, {x.id for x in (*batch, *rows)}, {*wide}), cut,
                       zeros_first(plan, update, above, (first.along, second.along)) if any(cut) else (False, False),
                       share_of_depth(plan, update, above) if any(cut) else 1.0,
                       (result_steps(plan, last, first.free, flat),
                        result_steps(plan, last, second.free, flat)) if last else ((), ()))


def _deepest(loops: list[Loop], plan: Plan, leaf: Leaf) -> Loop:
    """Of several loops over the depth the one with most iterations; of as many the one along memory."""
    along = [strides_of(plan, leaf, slot) for slot in (0, 1)]
    return max(loops, key=lambda x: (x.extent, sum(s.get(x.id) == 1 for s in along)))


def runs_of(plan: Plan, leaf: Leaf, slot: int, loops: list[Loop], around: list[Loop]) -> list[tuple[str, ...]]:
    """Loops side by side that walk a factor as one loop would: over whole axes of it, with no other loop and no condition."""
    steps, (_, index) = strides_of(plan, leaf, slot), walked(plan, leaf, slot) or ((), ())
    still = {name: const(0) for name in steps if plan.loops[name].extent == 1 and not plan.loops[name].start}
    scope = {x.id: x.range for x in plan.loops.values()}
    asked = [c.expr.substitute(leaf.places) for c in plan.statement_of[leaf.statement].domain]
    held = frozenset[str]().union(*(e.variables() for e in asked if e.interval(scope)[0] < 0))
    plain = {x.id for x in loops if any(e.substitute(still) == var(x.id) for e in index) and x.id not in held}
    out: list[tuple[str, ...]] = []
    for x, y in pairwise(around):
        if {x.id, y.id} <= plain and steps[x.id] == steps[y.id] * y.extent:
            before = out.pop() if out and out[-1][-1] == x.id else (x.id,)
            out.append((*before, y.id))
    return out


def _merged(loops: list[Loop], flat: tuple[tuple[str, ...], ...]) -> list[Loop]:
    """The loops with those of a run as one."""
    later, size = {name for run in flat for name in run[1:]}, {x.id: x.extent for x in loops}
    runs = {run[0]: prod(size[name] for name in run) for run in flat if run[0] in size}
    return [replace(x, extent=runs.get(x.id, x.extent)) for x in loops if x.id not in later]


def _flattened(plan: Plan, leaf: Leaf, slot: int, factor: Factor, flat: tuple[tuple[str, ...], ...]) -> Factor:
    """The factor with loops that are one, and bytes that divide what its axes are apart, of those that are left."""
    first = {name: run[0] for run in flat for name in run}
    inside = {name for run in flat for name in run[:-1]}
    array, (shape, index) = plan.array_of[factor.array], walked(plan, leaf, slot) or ((), ())
    apart = [prod(shape[axis + 1:]) * array.dtype.bytes for axis, (n, e) in enumerate(zip(shape, index, strict=True))
             if n > 1 and not e.variables() & inside]
    free = tuple(dict.fromkeys(first.get(name, name) for name in factor.free))
    beside = tuple(x for name, x in zip(factor.free, factor.beside, strict=True) if name in free)
    pitch = gcd(*(n for n in apart if n > array.dtype.bytes))
    return replace(factor, free=free, along=first.get(factor.along, factor.along), pitch=pitch, beside=beside)


def _by_stride(plan: Plan, leaf: Leaf, loops: list[Loop]) -> tuple[str, ...]:
    """Loops by how far apart in memory their iterations are, the farthest first."""
    left, right = (strides_of(plan, leaf, slot) for slot in (0, 1))
    return tuple(x.id for x in sorted(loops, key=lambda x: -abs(left.get(x.id, 0)) - abs(right.get(x.id, 0))))


def _alone(plan: Plan, leaf: Leaf, slot: int, depth: str, free: list[Loop]) -> bool:
    """Whether a loop over the depth walks an axis that no loop of the tile shares."""
    _, index = walked(plan, leaf, slot) or ((), ())
    mine = [e.variables() for e in index if depth in e.variables()]
    return len(mine) == 1 and not mine[0] & {x.id for x in free}


def _factor(plan: Plan, leaf: Leaf, slot: int, free: tuple[str, ...], depth: str) -> Factor | None:
    """A factor with how it lies in memory; None where a loop of the tile does not walk it by whole steps."""
    array = plan.array_of[plan.statement_of[leaf.statement].accesses[slot].array]
    shape, index = walked(plan, leaf, slot) or ((1,), ())
    if not index or any(not isinstance(atom, str) for e in index for atom, _ in e.terms):
        return None
    tile = (*free, depth)
    if any(sum(name in e.variables() for e in index) != 1 for name in tile):
        return None
    if any(len(e.variables() & frozenset(tile)) > 1 for e in index):
        return None
    steps = strides_of(plan, leaf, slot)
    along = next((name for name in (depth, *free) if steps.get(name) == 1), "")
    even = all(0 <= e.coefficient(name) <= (MOST_STEP if e is not index[-1] else 1) for e in index for name in tile)
    return Factor(array.name, array.dtype, free, along, shape[-1] * array.dtype.bytes, array.nbytes, even,
                  vector_of(plan, leaf, slot, {along}), _beside(index, free, depth))


def _scattered(plan: Plan, leaf: Leaf, slot: int, free: tuple[str, ...], depth: list[Loop]) -> Factor:
    """A factor whose elements are gathered over all loops over the depth, unless they are one run of memory."""
    array = plan.array_of[plan.statement_of[leaf.statement].accesses[slot].array]
    steps, runs = strides_of(plan, leaf, slot), [prod(x.extent for x in depth[n + 1:]) for n in range(len(depth))]
    along = depth[0].id if [steps.get(x.id) for x in depth] == runs else ""
    return Factor(array.name, array.dtype, free, along, array.stored[-1] * array.dtype.bytes, array.nbytes, False,
                  vector_of(plan, leaf, slot, {x.id for x in depth}) if along else 1, (True,) * len(free))


def _beside(index: Sequence[Expr], free: Sequence[str], depth: str) -> tuple[bool, ...]:
    """Which loops walk axes on the same side of the depth's as the last one does."""
    axis = {name: n for n, e in enumerate(index) for name in e.variables() & {*free, depth}}
    return tuple((axis[name] > axis[depth]) == (axis[free[-1]] > axis[depth]) for name in free)
