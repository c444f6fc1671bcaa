"""Products of matrices among a kernel's nests: recognised from accesses, whatever the names and the order of the loops.

``c[b…, i, j] = sum over k… of x[b…, i, k…] * y[b…, k…, j]``, started before and used behind.  Loops that both factors and the
result have are batches, a loop of the result and one factor runs over rows or columns, one of both factors alone over the depth.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.dtype import DType
from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Leaf, Loop
from ...poly.tensor import is_product
from ...schedule import Schedule
from .._steps import chain, leaves_of

NARROW = 8
"""Rows and columns from which on a product is no row of sums, which other strategies do better."""


@dataclass(frozen=True)
class Factor:
    """One of the two factors.

    Attributes
    ----------
    array : str
    dtype : DType
    free : str
        The loop over its rows (of the left factor) or columns (of the right one).
    along : str
        The loop along which its elements follow each other in memory; "" where that is another loop than these.
    pitch : int
        Bytes from one row of the array to the next.
    """

    array: str
    dtype: DType
    free: str
    along: str
    pitch: int


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
    rows, columns, depth : str
        Loops.
    outer_depth, outer_extents : tuple of str, and of int
        Further loops over the depth.
    extents : tuple of int
        Of rows, columns and depth.
    batches : int
        Iterations of the loops in `batch`.
    left, right : Factor
    accumulator : DType
    """

    kernel: str
    update: str
    total: str
    batch: tuple[str, ...]
    rows: str
    columns: str
    depth: str
    outer_depth: tuple[str, ...]
    outer_extents: tuple[int, ...]
    extents: tuple[int, int, int]
    batches: int
    left: Factor
    right: Factor
    accumulator: DType


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
    if len(updates) != 1 or any(x.role != "seq" for x in nest):
        return None
    (update,) = updates
    statement, hit = plan.statement_of[update.statement], plan.find(update.id)
    assert hit is not None
    if not is_product(statement) or plan.array_of[statement.target.array].role != "temporary":
        return None
    above = hit[1]
    indices = [_index(plan, update, slot) for slot in range(3)]
    if None in indices:
        return None
    left, right, target = ([e.variables() for e in index or ()] for index in indices)
    used = [frozenset[str]().union(*v) for v in (left, right, target)]
    around = [x for x in above if x in nest]
    inner = [x for x in above if x not in nest]
    if not inner or any(len(x.body) != 1 for x in inner):
        return None
    result = used[2] | {x.id for x in around}  # a scalar temporary stands for one element of each of the loops around
    rows = [x for x in around if x.id in used[0] and x.id not in used[1] and x.id in result]
    columns = [x for x in around if x.id in used[1] and x.id not in used[0] and x.id in result]
    depth = [x for x in inner if x.id in used[0] & used[1]]
    if not rows or not columns or not depth or len(depth) < len(inner):
        return None
    row, column = _best(rows, plan, update, 0), _best(columns, plan, update, 1)
    k = _deepest(depth, plan, update)
    batch = tuple(x.id for x in around if x not in (row, column))
    count = 1
    for x in around:
        count *= x.extent if x.id in batch else 1
    factors = [_factor(plan, update, slot, free.id, k.id) for slot, free in ((0, row), (1, column))]
    if None in factors:
        return None
    first, second = factors
    assert first is not None
    assert second is not None
    target_type = plan.array_of[statement.target.array].dtype
    others = [x for x in inner if x is not k]
    return ProductForm(kernel, update.id, statement.target.array, batch, row.id, column.id, k.id,
                       tuple(x.id for x in others), tuple(x.extent for x in others),
                       (row.extent, column.extent, k.extent), count, first, second, target_type)


def _index(plan: Plan, leaf: Leaf, slot: int) -> tuple[Expr, ...] | None:
    """The element of an access over the loops around, or None where it is data-dependent."""
    at, access = dict(leaf.at), plan.statement_of[leaf.statement].accesses[slot]
    found = [e.substitute(at) if isinstance(e, Expr) else None for e in access.index]
    return None if None in found else tuple(e for e in found if e is not None)


def _strides(plan: Plan, leaf: Leaf, slot: int) -> dict[str, int]:
    """Elements from one iteration of each loop to the next."""
    index, out = _index(plan, leaf, slot) or (), dict[str, int]()
    shape, step = plan.array_of[plan.statement_of[leaf.statement].accesses[slot].array].shape, 1
    for e, extent in zip(reversed(index), reversed(shape), strict=True):
        for atom, c in e.terms:
            if isinstance(atom, str):
                out[atom] = out.get(atom, 0) + c * step
        step *= extent
    return out


def _best(loops: list[Loop], plan: Plan, leaf: Leaf, slot: int) -> Loop:
    """Of several loops over rows the one with most iterations; the inner one of as many."""
    return max(enumerate(loops), key=lambda x: (x[1].extent, x[0]))[1]


def _deepest(loops: list[Loop], plan: Plan, leaf: Leaf) -> Loop:
    """Of several loops over the depth the one with most iterations; of as many the one along memory."""
    along = [_strides(plan, leaf, slot) for slot in (0, 1)]
    return max(loops, key=lambda x: (x.extent, sum(s.get(x.id) == 1 for s in along)))


def _factor(plan: Plan, leaf: Leaf, slot: int, free: str, depth: str) -> Factor | None:
    """A factor with how it lies in memory; None where a loop of the tile does not walk it by whole steps."""
    array = plan.array_of[plan.statement_of[leaf.statement].accesses[slot].array]
    index = _index(plan, leaf, slot)
    if index is None or any(not isinstance(atom, str) for e in index for atom, _ in e.terms):
        return None
    if any(sum(name in e.variables() for e in index) != 1 for name in (free, depth)):
        return None
    if any({free, depth} <= e.variables() for e in index):
        return None
    steps = _strides(plan, leaf, slot)
    along = next((name for name in (depth, free) if steps.get(name) == 1), "")
    return Factor(array.name, array.dtype, free, along, array.shape[-1] * array.dtype.bytes)
