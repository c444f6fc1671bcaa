"""What an attention is: scores of two rows' product, a maximum and sums of exponentials of each row, weights times values.

It is recognised from accesses.  Any element by element work may stand between: a scale, a mask, a bias.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.program import Statement
from ...ir.scalar import Call, walk
from ...ir.tree import Leaf, Loop
from ...poly.tensor import is_product
from ...schedule import Schedule
from ...transforms.rescale import exponential
from .._steps import Builder
from .spellings import HALVES, respelled


@dataclass(frozen=True)
class AttentionForm:
    """The statements of an attention, and its loops.

    Attributes
    ----------
    kernel : str
    scores, maximum, total, output : str
        The updates: the first product, the maximum of a row, the sum of its weights, the second product.
    starts : tuple of str
        What starts these, in this order.
    last : str
        What reads the second product's sums.
    outer : tuple of str
        Loops around the row's, outermost first.
    row : str
    keys : tuple of str
        The loop over keys around each of the four updates.
    depth, columns : str
        Loops of the products.
    left, right, values : str
        Their factors in memory: queries, keys, values.
    weights : str
        The factor that is computed between.
    dtype : str
        Of the factors.
    extents : tuple of int
        Rows, keys, depth and columns.
    batch : int
        How many such there are.
    triangular : bool
        Whether later keys are left out.
    """

    kernel: str
    scores: str
    maximum: str
    total: str
    output: str
    starts: tuple[str, str, str, str]
    last: str
    outer: tuple[str, ...]
    row: str
    keys: tuple[str, str, str, str]
    depth: str
    columns: str
    left: str
    right: str
    values: str
    weights: str
    dtype: str
    extents: tuple[int, int, int, int]
    batch: int
    triangular: bool


def ready_form(schedule: Schedule, kernel: str) -> tuple[Schedule, AttentionForm] | None:
    """The schedule with what stands between scores and weights computed where it is used, and its form; None for others."""
    b = Builder(schedule)
    plan = b.plan
    if any(x.role != "seq" or not x.extent for leaf, above, k in plan.leaves if k.id == kernel for x in above):
        return None
    form = _read(b, kernel)
    if form is None:
        b.schedule = schedule
        form = _read(b, kernel) if respelled(b, kernel) else None
    return (b.schedule, form) if form is not None else None


def _read(b: Builder, kernel: str) -> AttentionForm | None:
    """The form of a kernel, once what stands between scores and weights is computed where it is used."""
    plan = b.plan
    mine = [leaf for leaf, _, k in plan.leaves if k.id == kernel]
    products = [leaf for leaf in mine if is_product(plan.statement_of[leaf.statement])]
    if len(products) != 2 or not any(exponential(plan.statement_of[leaf.statement]) for leaf in mine):
        return None
    for name in _between(plan, plan.statement_of[products[0].statement].target.array, mine):
        b.attempt("inline", name)
    _apart(b, products[0].id)
    return _form(b.plan, kernel)


def _apart(b: Builder, product: str) -> None:
    """The loop over keys of the first product to itself, where what uses the scores stands in it, too."""
    hit = b.plan.find(product)
    if hit is None or len(hit[1]) < 2:
        return
    keys, depth = hit[1][-2:]
    if depth in keys.body[:-1]:
        b.attempt("distribute", keys.id, after=depth.id)


def _between(plan: Plan, scores: str, mine: list[Leaf]) -> list[str]:
    """Temporaries that a plain statement computes from scores alone, without an exponential."""
    found, known = list[str](), {scores}
    for leaf in mine:
        s = plan.statement_of[leaf.statement]
        plain = s.update is None and not any(isinstance(n, Call) and n.op in ("exp", "div") for n in walk(s.value))
        if plain and {r.array for r in s.reads} & known and plan.array_of[s.target.array].role == "temporary":
            known.add(s.target.array)
            found.append(s.target.array)
    return found


def _form(plan: Plan, kernel: str) -> AttentionForm | None:
    """The form of a kernel, or None."""
    leaves = [(leaf, above) for leaf, above, k in plan.leaves if k.id == kernel]
    said = {leaf.id: plan.statement_of[leaf.statement] for leaf, _ in leaves}
    above_of = {leaf.id: above for leaf, above in leaves}
    products = [n for n, s in said.items() if is_product(s)]
    maxima = [n for n, s in said.items() if s.update == "max"]
    shifted = [n for n, s in said.items() if exponential(s) is not None]
    sums = [n for n, s in said.items() if s.update == "sum" and n not in products]
    if (len(products), len(maxima), len(shifted), len(sums)) != (2, 1, 1, 1):
        return None
    (first, second), (maximum,), (weight,), (total,) = products, maxima, shifted, sums
    scores, out = said[first].target.array, said[second].target.array
    if scores not in {r.array for r in said[maximum].reads} or scores not in {r.array for r in said[weight].reads}:
        return None
    updates = (first, maximum, total, second)
    starts = tuple(_start(said, n) for n in updates)
    readers = [n for n, s in said.items() if out in {r.array for r in s.reads}]
    divided = [n for n, s in said.items() if said[total].target.array in {r.array for r in s.reads}]
    if "" in starts or len(readers) != 1 or divided != readers or len(above_of[maximum]) < 2:
        return None  # weights that are divided by their sum have to wait for it
    *outer, row, _ = above_of[maximum]
    depth = len(outer) + 1
    if any([x.id for x in above[:depth]] != [*(x.id for x in outer), row.id] for above in above_of.values()):
        return None
    inside = {n: above_of[n][depth:] for n in updates}
    if [len(inside[n]) for n in updates] != [2, 1, 1, 2] or len(above_of[readers[0]]) != depth + 1:
        return None
    return _with_factors(plan, kernel, updates, starts, readers[0], outer, row, inside, said)


def _start(said: dict[str, Statement], update: str) -> str:
    """The statement that starts an update's target; "" where it is not one."""
    found = [n for n, s in said.items() if s.target.array == said[update].target.array and n != update]
    return found[0] if len(found) == 1 and said[found[0]].update is None else ""


def _with_factors(plan: Plan, kernel: str, updates: tuple[str, ...], starts: tuple[str, ...], last: str, outer: list[Loop],
                  row: Loop, inside: dict[str, tuple[Loop, ...]], said: dict[str, Statement]) -> AttentionForm | None:
    """The form, once the factors of both products are known."""
    first, maximum, total, second = updates
    (key, depth), (columns, last_key) = inside[first], inside[second]
    at = {leaf.id: dict(leaf.at) for leaf, _, _ in plan.leaves}

    def reads(name: str, loop: Loop) -> list[str]:
        dims = {d for d, e in at[name].items() if loop.id in e.variables()}
        return [r.array for r in said[name].reads if any(isinstance(e, Expr) and dims & e.variables() for e in r.index)]

    left, right, weights, values = reads(first, row), reads(first, key), reads(second, row), reads(second, columns)
    if not len(left) == len(right) == len(weights) == len(values) == 1:
        return None
    if len({key.id, inside[maximum][0].id, inside[total][0].id, last_key.id}) < 4:
        return None
    if said[first].reads[0].array != left[0] or said[second].reads[0].array != weights[0]:
        return None  # the rows of its accumulator would be keys
    roles = [plan.array_of[x[0]].role for x in (left, right, values, weights)]
    dtypes = {plan.array_of[x[0]].dtype.name for x in (left, right, values, weights)}
    sums = {plan.array_of[said[n].target.array].dtype.name for n in updates}
    if roles != ["in", "in", "in", "temporary"] or len(dtypes) != 1 or not dtypes <= set(HALVES) or sums != {"f32"}:
        return None
    batch = 1
    for x in outer:
        batch *= x.extent
    bounded = any(c.expr.variables() > {d for d, e in at[maximum].items() if inside[maximum][0].id in e.variables()}
                  for c in said[maximum].domain)
    a, b, c, d = starts
    return AttentionForm(kernel, first, maximum, total, second, (a, b, c, d), last, tuple(x.id for x in outer), row.id,
                         (key.id, inside[maximum][0].id, inside[total][0].id, last_key.id), depth.id, columns.id,
                         left[0], right[0], values[0], weights[0], dtypes.pop(),
                         (row.extent, inside[maximum][0].extent, depth.extent, columns.extent), batch, bounded)
