"""Products among other nests: each gets a kernel of its own, with what follows it element by element.

``for i: (for j: total = sum over k …; row[j] = total + r[i, j]); square = sum over j …; for j: y[i, j] = …`` computes a product,
and something else of its rows.  Taken apart, the product is a kernel in tiles whose last statement is ``row``, and the rest is a
kernel over rows.  Where the loops inside allow it, other nests that go over the product's elements one by one come with it.
"""

from __future__ import annotations

from ...errors import ScheduleError
from ...ir.plan import Plan
from ...ir.program import Statement
from ...ir.tree import Leaf, Loop
from ...poly.tensor import is_product
from ...schedule import Schedule
from .._steps import Builder, leaves_of
from ..stitching.moves import body_of, join_inside, separate_leaves
from .epilogue_facts import variables_of, walked
from .form import WHOLE, product_form

FIRST, PRODUCT, LAST = range(3)
"""Kernels: of what the product needs, of the product, of the rest."""


def products_apart(schedule: Schedule) -> Schedule:
    """Give each product that shares a kernel with other statements one of its own.

    Parameters
    ----------
    schedule : Schedule
        Nothing of it is spread.

    Returns
    -------
    Schedule
        Legal; the same schedule where there is no such product.
    """
    b = Builder(schedule)
    for update in [leaf.id for leaf, _, _ in b.plan.leaves if is_product(b.plan.statement_of[leaf.statement])]:
        keep, kernel = b.schedule, b.plan.kernel_of(update)
        if kernel is not None and product_form(b.schedule, kernel.id) is not None:
            continue
        if not any(_taken(b, update, followed, summed) for summed in (True, False) for followed in (True, False)):
            b.schedule = keep
    return b.schedule


def used_by_products(schedule: Schedule) -> frozenset[str]:
    """Arrays that the kernels of products use, where there are others beside: each is written and read as the program says."""
    plan = schedule.plan
    if len(plan.kernels) < 2:
        return frozenset()
    products = {k.id for k in plan.kernels if product_form(schedule, k.id) is not None}
    return frozenset(a.array for leaf, _, k in plan.leaves if k.id in products
                     for a in plan.statement_of[leaf.statement].accesses)


def _taken(b: Builder, update: str, followed: bool, summed: bool) -> bool:
    """Take one product apart, with or without other nests that follow it, and sums over its rows; whether it came of it."""
    tile, kernel = _tile(b.plan, update), b.plan.kernel_of(update)
    assert kernel is not None
    if tile is None or any(x.role != "seq" for _, above, k in b.plan.leaves if k.id == kernel.id for x in above):
        return False
    keep = b.schedule
    if summed:
        _read_before_stored(b, update, kernel.id)
    number, sums = _numbered(b, update, tile, kernel.id, followed, summed)
    if set(number.values()) == {PRODUCT} or summed > bool(sums):
        b.schedule = keep
        return False
    try:
        separate_leaves(b, kernel.id, number)
        own = b.plan.kernel_of(update)
        assert own is not None
        join_inside(b, own.id)
        for leaf in sums:
            _joined(b, update, leaf)
        _accumulated(b, update, number)
        form = product_form(b.schedule, own.id)
    except ScheduleError:
        form = None
    if form is None or min(form.extents[:2]) < WHOLE or not sums <= set(form.sums):
        b.schedule = keep
        return False
    return True


def _read_before_stored(b: Builder, update: str, kernel: str) -> None:
    """Sums read what is stored of a product as it is before: rounded, and in registers."""
    statements = [b.plan.statement_of[leaf.statement] for leaf, _, k in b.plan.leaves if k.id == kernel]
    total = b.plan.statement_of[_leaf(b.plan, update).statement].target.array
    stored = [s.target.array for s in statements if not s.update and total in {r.array for r in s.reads}]
    summed = {r.array for s in statements if s.update for r in s.reads}
    for name in stored:
        if name in summed and b.plan.array_of[name].role == "out":
            b.attempt("inline", name)


def _joined(b: Builder, update: str, leaf: str) -> None:
    """Fuse what is left of a sum's own loops, which carry it, with those of the product."""
    while True:
        one, other = ([x.id for x in hit[1]] for hit in (b.plan.find(update), b.plan.find(leaf)) if hit is not None)
        apart = next(((x, y) for x, y in zip(one, other, strict=False) if x != y), None)
        if apart is None:
            return
        b.do("fuse", *apart)


def _accumulated(b: Builder, update: str, number: dict[str, int]) -> None:
    """A sum that others read too gets a temporary that is the product's own."""
    total = b.plan.statement_of[_leaf(b.plan, update).statement].target.array
    others = [leaf for leaf, _, _ in b.plan.leaves if number.get(leaf.id) != PRODUCT]
    if any(a.array == total for leaf in others for a in b.plan.statement_of[leaf.statement].accesses):
        b.do("accumulate", total)


def _tile(plan: Plan, update: str) -> Loop | None:
    """The innermost loop over a sum's elements, with all that is done for one of them inside; None where there are not two."""
    hit = plan.find(update)
    assert hit is not None
    leaf, above = hit
    assert isinstance(leaf, Leaf)
    kept = walked(plan, leaf)
    around = [x for x in above if x.id in kept]
    if len(around) < 2 or tuple(around) != above[: len(around)] or len(around) == len(above):
        return None
    return around[-1]


def _numbered(b: Builder, update: str, tile: Loop, kernel: str, followed: bool,
              summed: bool) -> tuple[dict[str, int], set[str]]:
    """Which kernel each statement goes to, and the sums over rows of the product that go to its own.

    These are worth it where nothing else needs what they sum: it is not stored then.
    """
    plan, inside = b.plan, {leaf.id for leaf in leaves_of(tile)}
    leaves = [leaf for node in body_of(b, kernel) for leaf in leaves_of(node)]
    statement = {leaf.id: plan.statement_of[leaf.statement] for leaf in leaves}
    here, total = [leaf.id for leaf in leaves].index(update), _leaf(plan, update)
    element, made = walked(plan, total), {plan.statement_of[total.statement].target.array}
    number, late, sums = {update: PRODUCT}, set[str](), set[str]()
    for n, leaf in enumerate(leaves):
        s = statement[leaf.id]
        if not (leaf.id in inside or (followed and n > here)) or late & {a.array for a in s.accesses}:
            follows = False
        elif s.update:
            follows = summed and n > here and _sums_one_by_one(plan, leaf, made, element, leaf.id in inside)
            sums |= {leaf.id} if follows else set()
        elif leaf.id in inside:
            follows = element <= walked(plan, leaf)
        else:
            follows = _one_by_one(plan, leaf, made, len(element))
        if follows:
            number[leaf.id] = PRODUCT
            if not s.update:
                made.add(s.target.array)
        elif n > here and not (summed and s.target.array not in made and _starts(s)):
            late.add(s.target.array)
    used = [a.array for leaf in number for a in {x.array: x for x in statement[leaf].accesses}.values()]
    number = {leaf: n for leaf, n in number.items()  # another sum's start stays with that
              if leaf == update or not _starts(statement[leaf]) or used.count(statement[leaf].target.array) > 1}
    needed = {r.array for leaf in leaves if leaf.id not in number for r in statement[leaf.id].reads}
    summed_up = {r.array for leaf in sums for r in statement[leaf].reads}
    if made & needed or any(plan.array_of[name].role != "temporary" for name in made & summed_up):
        sums = set()
    added = {statement[leaf].target.array for leaf in sums}
    needed = {r.array for leaf, n in number.items() if n == PRODUCT for r in statement[leaf].reads}
    for n, leaf in reversed([*enumerate(leaves)]):
        s = statement[leaf.id]
        first = n < here and s.target.array in needed - made
        if leaf.id not in number and (first or (s.target.array in added and _starts(s))):
            number[leaf.id] = FIRST
            needed |= {r.array for r in s.reads}
    return {leaf.id: number.get(leaf.id, LAST) for leaf in leaves}, sums


def _starts(s: Statement) -> bool:
    """Whether a statement needs nothing that others compute."""
    return not s.update and not s.reads


def _sums_one_by_one(plan: Plan, leaf: Leaf, made: set[str], element: frozenset[str], inside: bool) -> bool:
    """Whether a statement adds up what there is for each element, to fewer ones."""
    s, hit = plan.statement_of[leaf.statement], plan.find(leaf.id)
    assert hit is not None
    loops, read = frozenset(x.id for x in hit[1]), [r for r in s.reads if r.array in made]
    if s.update != "sum" or not read or (loops != element if inside else len(loops) != len(element)):
        return False
    return bool(walked(plan, leaf)) and walked(plan, leaf) < loops and all(variables_of(leaf, r.index) == loops for r in read)


def _one_by_one(plan: Plan, leaf: Leaf, made: set[str], axes: int) -> bool:
    """Whether a statement of another nest makes one element of each of some arrays, over as many loops as they have."""
    s, hit = plan.statement_of[leaf.statement], plan.find(leaf.id)
    assert hit is not None
    loops, read = {x.id for x in hit[1]}, [r for r in s.reads if r.array in made]
    return len(loops) == axes and bool(read) and walked(plan, leaf) == loops and all(
        variables_of(leaf, r.index) == loops for r in read)


def _leaf(plan: Plan, name: str) -> Leaf:
    return next(leaf for leaf, _, _ in plan.leaves if leaf.id == name)
