"""Sums over windows: ``y[…, i, …] = sum over r of x[…, s*i + r, …] * f[…]``, recognised from accesses.

An axis of one factor, the data, is walked by a loop over results and by a loop over the sum together: neighbours along the first
share what the second runs through.  Loops over results that the data does not have (filters of a group) share all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Leaf
from ...poly.tensor import is_product
from ...schedule import Schedule
from .._steps import chain, leaves_of
from ..contraction.accesses import index_of, strides_of, vector_of
from ..contraction.groups import in_groups

MOST_SHARING, MOST_RUN = 8, 8
"""Results of one window beside each other, and neighbours of one element's sum, that a thread's registers take."""
VECTOR_BYTES = 16
"""Of the widest access."""


@dataclass(frozen=True)
class WindowForm:
    """Sums over windows of a kernel.

    Attributes
    ----------
    kernel, update, total : str
        The leaf that adds up, and the temporary into which.
    data, weights : str
        The factors; `slot` is the data's.
    slot : int
    around : tuple of str
        Loops over results, by how far apart these are in memory, the farthest first.
    slides : tuple of (str, str, int, int)
        A loop over results and one over the sum that walk an axis of the data together, and the steps of both there.
    sharing : tuple of str
        Loops over results that the data does not have.
    sums : tuple of str
        Loops over the sum, outermost first as written.
    run : str
        The loop over the sum along which the data's elements follow each other, where it is short; "" for none.
    vector, run_vector : int
        Elements of one access of the data along the last of `around`, and along `run`.
    result_vector : int
        Results of one access along the last of `around`.
    weights_step : int
        Elements of the weights from one thread's to the next one's; 0 where neighbours read the same.
    weights_last : tuple of int
        The weights' axes with that of the last results last, if they are an input of this kernel alone; else nothing.
    extents : tuple of (str, int)
        Of all loops.
    nbytes : int
        Of data, weights and results.
    itemsize : int
        Bytes of an element of the data.
    """

    kernel: str
    update: str
    total: str
    data: str
    weights: str
    slot: int
    around: tuple[str, ...]
    slides: tuple[tuple[str, str, int, int], ...]
    sharing: tuple[str, ...]
    sums: tuple[str, ...]
    run: str
    vector: int
    run_vector: int
    result_vector: int
    weights_step: int
    weights_last: tuple[int, ...]
    extents: tuple[tuple[str, int], ...]
    nbytes: int
    itemsize: int

    def extent(self, loop: str) -> int:
        """How often a loop runs."""
        return dict(self.extents)[loop]

    @property
    def results(self) -> int:
        """How many there are."""
        return prod(self.extent(x) for x in self.around)


def ready_windows(schedule: Schedule, kernel: str) -> tuple[Schedule, WindowForm | None]:
    """The sums over windows that a kernel is, as it is or with its groups apart, and the schedule in which it is."""
    divided = in_groups(schedule, kernel)
    return divided, window_form(divided, kernel)


def window_form(schedule: Schedule, kernel: str) -> WindowForm | None:
    """The sums over windows that a kernel of one nest is, or None.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Nothing of it is spread yet.
    """
    plan = schedule.plan
    body = next(k.body for k in plan.kernels if k.id == kernel)
    nest = chain(body[0]) if len(body) == 1 else []
    found = [leaf for leaf in leaves_of(body[0]) if plan.statement_of[leaf.statement].update] if nest else []
    if len(found) != 1 or any(x.role != "seq" or x.start for x in nest):
        return None
    (update,) = found
    statement, hit = plan.statement_of[update.statement], plan.find(update.id)
    assert hit is not None
    inner = [x for x in hit[1] if x not in nest]
    target = plan.array_of[statement.target.array]
    if not is_product(statement) or target.role != "temporary" or not inner or any(len(x.body) != 1 or x.start for x in inner):
        return None
    indices = [index_of(plan, update, slot) for slot in (0, 1)]
    last = [*leaves_of(body[0])][-1]
    end = len(plan.statement_of[last.statement].reads)
    written = plan.array_of[plan.statement_of[last.statement].target.array]
    if None in indices or index_of(plan, last, end) is None or written.role not in ("out", "inout"):
        return None
    results, names, sums = strides_of(plan, last, end), [x.id for x in nest], [x.id for x in inner]
    extents = {x.id: x.extent for x in (*nest, *inner)}
    sliding = [_slides(index or (), names, sums, extents) for index in indices]
    if bool(sliding[0]) == bool(sliding[1]) or any(results.get(name, 0) < 1 for name in names):
        return None
    slot = 0 if sliding[0] else 1
    around = tuple(sorted(names, key=lambda name: -results[name]))
    data, weights = (strides_of(plan, update, n) for n in (slot, 1 - slot))
    sharing = tuple(name for name in around if name not in data)
    if results[around[-1]] != 1 or prod(extents[x] for x in sharing) > MOST_SHARING:
        return None
    short = [x for x in sums if data.get(x) == 1 and extents[x] <= MOST_RUN and not any(x == r for _, r, *_ in sliding[slot])]
    run = short[0] if short else ""
    alone = around[-1] not in {a for a, *_ in sliding[slot]}
    item = plan.array_of[statement.reads[slot].array].dtype.bytes
    thread = next((x for x in reversed(around) if x not in sharing), around[-1])
    arrays = [plan.array_of[statement.reads[n].array] for n in (slot, 1 - slot)]
    return WindowForm(
        kernel, update.id, target.name, arrays[0].name, arrays[1].name, slot, around, tuple(sliding[slot]), sharing, tuple(sums),
        run,
        vector_of(plan, update, slot, {around[-1]}) if alone and data.get(around[-1]) == 1 else 1,
        vector_of(plan, update, slot, {run}) if run else 1, vector_of(plan, last, end, {around[-1]}),
        weights.get(thread, 0), _last_axis(plan, update, 1 - slot, around[-1], kernel), tuple(extents.items()),
        sum(a.nbytes for a in (*arrays, written)), item)


def _slides(index: tuple[Expr, ...], around: list[str], sums: list[str],
            extents: dict[str, int]) -> list[tuple[str, str, int, int]]:
    """Loops over results and over the sum that walk an axis together, so that neighbours share elements."""
    return [(a, r, step, e.coefficient(r)) for e in index for a in around for r in sums
            if 0 < (step := e.coefficient(a)) <= e.coefficient(r) * (extents[r] - 1)]


def _last_axis(plan: Plan, leaf: Leaf, slot: int, loop: str, kernel: str) -> tuple[int, ...]:
    """The axes of a factor with that of a loop last."""
    index, array = index_of(plan, leaf, slot) or (), plan.statement_of[leaf.statement].reads[slot].array
    mine = [n for n, e in enumerate(index) if loop in e.variables()]
    readers = {k.id for other, _, k in plan.leaves for r in plan.statement_of[other.statement].reads if r.array == array}
    if plan.array_of[array].role != "in" or len(mine) != 1 or mine[0] == len(index) - 1 or readers != {kernel}:
        return ()
    return (*(n for n in range(len(index)) if n != mine[0]), mine[0])
