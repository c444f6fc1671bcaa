"""Reductions of any shape: canonical rows and columns, spread over threads and, where there are few results, over blocks.

Panamera (Zhu et al.) brings every reduction into one of three forms by coalescing neighbouring axes of one role: all-, x- (rows)
and y-reductions (columns), parallel loops on the block's y axis and reduced ones on x, or the other way round.  Here the
contiguous axis decides: where it is reduced, a group of lanes walks it (rows); where it is parallel, neighbouring lanes take
neighbouring results and the block's y axis walks the reduced loops (columns).  Few results mean few blocks: then each block
reduces a part and a second launch joins the parts, always in one order.
How many threads, parts and loads in flight: the cheapest by the model of reduction_model.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import TypeVar

from ..gpu.spec import Gpu, default_gpu
from ..ir.expr import Expr
from ..ir.program import Statement
from ..ir.tree import Leaf, Loop
from ..schedule import Schedule
from ._steps import Builder, chain
from .reduction_model import Problem, Shape, cost, shapes
from .rows import WIDE

S = TypeVar("S", bound=Schedule)
BLOCK = 256
"""Threads of a block that joins parts."""


@dataclass(frozen=True)
class ReductionForm:
    """Parallel loops around one reduction.

    Attributes
    ----------
    kernel : str
    parallel, reduced : tuple of str
        Loops, outermost first.
    update : str
        The statement.
    start : str
        The statement that starts the results, in the body before the reduced loops.
    array : str
        The largest array that the update reads.
    axes : tuple of str
        The loops that walk its axes, in order, without those of one iteration.
    """

    kernel: str
    parallel: tuple[str, ...]
    reduced: tuple[str, ...]
    update: str
    start: str
    array: str
    axes: tuple[str, ...]

    @property
    def rows(self) -> bool:
        """Whether the contiguous axis is reduced."""
        return self.axes[-1] in self.reduced


def reduction_form(schedule: Schedule, kernel: str) -> ReductionForm | None:
    """The form of a kernel as written; None where it is not one reduction under parallel loops."""
    plan = schedule.plan
    body = next(k.body for k in plan.kernels if k.id == kernel)
    outer: list[Loop] = []
    while len(body) == 1 and isinstance(body[0], Loop) and len(body[0].body) > 1:
        outer.append(body[0])
        body = body[0].body
    while len(body) == 1 and isinstance(body[0], Loop):
        outer.append(body[0])
        body = body[0].body
    nests = [node for node in body if isinstance(node, Loop)]
    early = [n for n in body[: body.index(nests[0])] if isinstance(n, Leaf)] if nests else []
    if len(nests) != 1 or len(early) != 1:
        return None
    inner = chain(nests[0])
    leaf = inner[-1].body[0] if len(inner[-1].body) == 1 else None
    if not isinstance(leaf, Leaf) or any(x.role != "seq" or x.extent == 0 for x in (*outer, *inner)):
        return None
    statement = plan.statement_of[leaf.statement]
    walked = _axes(plan.array_of, statement, leaf)
    if not statement.update or walked is None:
        return None
    several = {x.id for x in (*outer, *inner) if x.extent > 1}
    array, axes = walked[0], tuple(name for name in walked[1] if name in several)
    form = ReductionForm(kernel, tuple(x.id for x in outer), tuple(x.id for x in inner), leaf.id, early[0].id, array, axes)
    return form if set(axes) == several and several & set(form.reduced) else None


def _axes(arrays: dict, statement: Statement, leaf: Leaf) -> tuple[str, tuple[str, ...]] | None:
    """The largest array read and the loop of each of its axes; None where an axis is not walked by one loop."""
    reads = [r for r in statement.reads if arrays[r.array].role != "temporary"]
    if not reads:
        return None
    access, at = max(reads, key=lambda r: arrays[r.array].size), dict(leaf.at)
    loops = []
    for e in access.index:
        index = e.substitute(at) if isinstance(e, Expr) else None
        name = next(iter(index.variables()), "") if index else ""
        if index != Expr(((name, 1),)):
            return None
        loops.append(name)
    return (access.array, tuple(loops)) if len(set(loops)) == len(loops) else None


def choose(schedule: Schedule, form: ReductionForm, gpu: Gpu) -> Shape:
    """The cheapest shape by the model (:mod:`explorer.strategies.reduction_model`); of equal ones, the one with fewer parts."""
    loops, array = schedule.plan.loops, schedule.plan.array_of[form.array]
    length, results = prod(loops[n].extent for n in form.reduced), prod(loops[n].extent for n in form.parallel)
    run = 1
    for name in reversed(form.axes):
        if (name in form.reduced) != form.rows:
            break
        run *= loops[name].extent
    problem = Problem(form.rows, length, results, run, array.dtype.bytes)
    vector = gcd(run, WIDE // array.dtype.bytes)
    return min(shapes(problem, vector, gpu), key=lambda s: (round(cost(problem, s, gpu).total, 2), s.parts, s.x, -s.unroll))


def reduce(schedule: S, kernel: str = "", gpu: Gpu | None = None, shape: Shape | None = None) -> S:
    """Schedule one reduction.

    Parameters
    ----------
    schedule : Schedule
    kernel : str
        Which kernel (default: the first).
    gpu : Gpu, optional
        By default the H200.
    shape : Shape, optional
        By default the one that :func:`choose` gives.

    Returns
    -------
    Schedule
        Legal; the same schedule where the kernel is not one reduction under parallel loops.
    """
    kernel = kernel or schedule.plan.kernels[0].id
    form = reduction_form(schedule, kernel)
    if form is None:
        return schedule
    shape = shape or choose(schedule, form, gpu or default_gpu())
    b = Builder(schedule)
    target = b.plan.statement_of[b.plan.resolve(form.update)[0].statement].target.array  # type: ignore[index]
    if b.plan.array_of[target].role != "temporary":
        b.do("accumulate", target)
    return (_rows if form.rows else _columns)(b, form, shape)


def _flat(b: Builder, loops: tuple[str, ...]) -> str:
    """One loop of several; "" of none."""
    if len(loops) > 1:
        b.do("coalesce", loops)
    return loops[0] if loops else ""


def _split(b: Builder, loop: str, size: int, suffix: str) -> str:
    """An inner loop of so many iterations; "" where it would be one."""
    if size <= 1:
        return ""
    name = b.plan.fresh(f"{loop}.{suffix}")
    b.do("split", loop, size, inner=name)
    return name


def _in_order(b: Builder, loops: list[str]) -> None:
    """Reorder a perfect nest, unless it stands in that order."""
    wanted = tuple(x for x in loops if x)
    if len(wanted) > 1:
        b.attempt("reorder", wanted)


def _rows(b: Builder[S], form: ReductionForm, shape: Shape) -> S:
    p, r = _flat(b, form.parallel), _flat(b, form.reduced)
    lanes = _split(b, r, shape.vector, "v")
    thread = _split(b, r, shape.x, "t")
    part = _split(b, r, shape.parts, "s")
    several = _split(b, r, shape.unroll, "u")
    _in_order(b, [part, r, thread, several, lanes])
    target = form.update
    if part:
        target = _apart(b, form, part, [p] if p else [])
    if p:
        row = _split(b, p, min(shape.y, b.extent(p)), "r")
        b.do("bind", p, "block.x")
        if row:
            b.do("bind", row, "thread.y")
    if part:
        b.do("bind", part, "block.y")
    if thread:
        b.do("bind", thread, "thread.x").do("collect", target, "shuffle")
    _contract(b, form.kernel)
    if lanes:
        b.attempt("vectorize", lanes)
    if several:
        b.do("unroll", several)
    if part:
        _join_rows(b, form)
    return b.schedule


def _columns(b: Builder[S], form: ReductionForm, shape: Shape) -> S:
    last = max(form.axes.index(name) for name in form.reduced)
    outer = tuple(n for n in form.parallel if n in form.axes[:last])
    inner = tuple(n for n in form.parallel if n not in outer)
    if form.parallel != (*outer, *inner):
        b.do("reorder", (*outer, *inner))
    r, batch, p = _flat(b, form.reduced), _flat(b, outer), _flat(b, inner)
    lanes = _split(b, p, shape.vector, "v")
    column = _split(b, p, shape.x, "x")
    row = _split(b, r, shape.y, "y")
    part = _split(b, r, shape.parts, "s")
    several = _split(b, r, shape.unroll, "u")
    walk = [r, row, several]
    _in_order(b, [part, *walk])
    target, start = form.update, form.start
    if part:
        target = _apart(b, form, part, [x for x in (lanes, column, p, batch) if x])
        start = _first_leaf(b, part)
        _in_order(b, [part, batch, p, column, lanes])
    if lanes:
        b.do("distribute", lanes, after=start)
        lanes = b.parent(r)
        if b.plan.loops[lanes].body[-1].id != r:
            b.do("distribute", lanes, after=r)
        _in_order(b, [*walk, lanes])
    for loop, place in ((batch, "block.z"), (p, "block.x"), (column, "thread.x"), (part, "block.y"), (row, "thread.y")):
        if loop:
            b.do("bind", loop, place)
    if row:
        b.do("collect", target, "shared")
    _contract(b, form.kernel)
    if lanes:
        b.attempt("vectorize", lanes)
    if several:
        b.do("unroll", several)
    if part:
        _join_columns(b, form)
    return b.schedule


def _first_leaf(b: Builder, loop: str) -> str:
    """The statement that starts a part: the first leaf below the loop of the parts."""
    node = b.plan.loops[loop]
    while isinstance(node, Loop):
        node = node.body[0]
    return node.id


def _apart(b: Builder, form: ReductionForm, part: str, around: list[str]) -> str:
    """Parts in a launch of their own, each accumulated on its own; the statement that accumulates."""
    before = {a.name for a in b.plan.program.arrays}
    b.do("rfactor", form.update, part).do("sequence", form.start, after=part)
    partial = next(a.name for a in b.plan.program.arrays if a.name not in before)
    for loop in around:
        b.do("distribute", loop, after=part)
    top = around[-1] if around else part
    b.do("launch", form.kernel, after=top)
    b.do("accumulate", partial)
    return form.update


def _contract(b: Builder, kernel: str) -> None:
    """The temporaries of a kernel that have no storage yet into registers, where that is legal."""
    used: dict[str, set[str]] = {}
    for leaf, _, owner in b.plan.leaves:
        for access in b.plan.statement_of[leaf.statement].accesses:
            used.setdefault(access.array, set()).add(owner.id)
    for temporary in list(b.plan.program.temporaries):
        if temporary.name not in b.plan.buffer_of and used.get(temporary.name) == {kernel}:
            b.attempt("contract", temporary.name, "register")


def _joining(b: Builder, form: ReductionForm) -> tuple[str, list[str], str]:
    """The launch that joins the parts: its kernel, the loops around, and the loop over the parts."""
    names = [k.id for k in b.plan.kernels]
    kernel = b.plan.kernels[names.index(form.kernel) + 1]
    body, around = kernel.body, []
    while len(body) == 1 and isinstance(body[0], Loop):
        around.append(body[0].id)
        body = body[0].body
    return kernel.id, around, next(n.id for n in body if isinstance(n, Loop))


def _combine(b: Builder, loop: str) -> str:
    """The statement that joins the parts below a loop."""
    return next(leaf.id for leaf, above, _ in b.plan.leaves if above and above[-1].id == loop)


def _join_rows(b: Builder, form: ReductionForm) -> None:
    kernel, around, parts = _joining(b, form)
    p = _flat(b, tuple(around))
    if p:
        b.do("bind", p, "block.x")
    statement = _combine(b, parts)
    threads = _split(b, parts, BLOCK, "t") if b.extent(parts) > BLOCK else parts
    b.do("bind", threads, "thread.x").do("collect", statement, "shuffle")
    _contract(b, kernel)


def _join_columns(b: Builder, form: ReductionForm) -> None:
    kernel, around, parts = _joining(b, form)
    statement = _combine(b, parts)
    p = _flat(b, tuple(around))
    column = _split(b, p, 32, "x") if b.extent(p) > 32 else ""
    if column:
        b.do("bind", p, "block.x").do("bind", column, "thread.x")
    else:
        b.do("bind", p, "thread.x")
    rows = _split(b, parts, 8, "y") if b.extent(parts) > 8 else parts
    b.do("bind", rows, "thread.y").do("collect", statement, "shared")
    _contract(b, kernel)
    if rows != parts:
        several = _split(b, parts, 8, "u") if b.extent(parts) > 16 else parts
        b.attempt("unroll", several or parts)
