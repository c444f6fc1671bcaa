"""Three of the four questions: cover, order, obligations.  (The fourth, flow, is in flow.py.)

*cover*: every instance of every statement runs exactly once.
*order*: every dependence's source runs before its sink, where "before" means an earlier launch, or the same block
at an earlier time.  Two blocks of one launch have no order; two threads at one time have none either.
*obligations*: updates of one element that may run in any order still must not race: each place coordinate in which
two of them differ has to be collected (warp shuffle, shared memory, atomics) or cut away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from ..ir.expr import Expr
from ..ir.finding import Finding, Instance
from ..ir.plan import Plan
from ..ir.program import Array, Statement
from ..ir.tree import Kernel, Leaf, Loop
from .dependence import Dependence
from .isl import conjunction, read_map, smallest, text
from .plan_facts import facts, run_set_of
from .relations import PLACE, Where, access, dim_names, domain, space, time_depth, where


@dataclass(frozen=True, eq=False)
class Placed:
    """A leaf with everything the questions need to know about it."""

    leaf: Leaf
    above: tuple[Loop, ...]
    kernel: Kernel
    launch: int
    statement: Statement
    where: Where


def place_leaves(plan: Plan) -> dict[str, list[Placed]]:
    """Statement name to its placed leaves, in order of execution."""
    out: dict[str, list[Placed]] = {}
    depths = {k.id: time_depth(k) for k in plan.kernels}
    number = {k.id: i for i, k in enumerate(plan.kernels)}
    for leaf, above, kernel in plan.leaves:
        statement = plan.statement_of[leaf.statement]
        placed = Placed(leaf, above, kernel, number[kernel.id], statement, where(plan, leaf, above, kernel, depths[kernel.id]))
        out.setdefault(statement.name, []).append(placed)
    return out


def check_cover(plan: Plan, placed: dict[str, list[Placed]]) -> tuple[Finding, ...]:
    """Every instance runs exactly once: leaf maps invert each other, leaves are disjoint, together they are the domain."""
    found: list[Finding] = []
    for name, statement in plan.statement_of.items():
        parts = placed.get(name, [])
        total = None
        for p in parts:
            boxes = tuple((x.id, x.start, x.extent) for x in p.above)
            if (bad := _inverse_failure(statement, p.leaf.at, p.leaf.when, boxes)) is not None:
                found.append(_cover_finding(statement, bad, p, "runs more than once, or at a place its loops do not name"))
                return tuple(found)
            if total is not None and not total.is_disjoint(p.where.run):
                twice = smallest(total.intersect(p.where.run))
                found.append(_cover_finding(statement, twice, p, "would run twice"))
                return tuple(found)
            total = p.where.run if total is None else total.union(p.where.run)
        missing = domain(statement) if total is None else domain(statement).subtract(total)
        if not missing.is_empty():
            found.append(_cover_finding(statement, smallest(missing), None, "would never run"))
    return tuple(found)


@lru_cache(maxsize=8192)
def _inverse_failure(statement: Statement, at: tuple[tuple[str, Expr], ...], inverse: tuple[tuple[str, Expr], ...],
                     boxes: tuple[tuple[str, int, int], ...]) -> tuple[int, ...] | None:
    """An instance for which the two maps between loops and dimensions do not invert each other, or None."""
    names, when, forward = dim_names(statement), dict(inverse), dict(at)
    loops = {loop: f"v{i}" for i, (loop, _, _) in enumerate(boxes)}
    inside = [f"{start} <= v{i} < {start + extent}" for i, (_, start, extent) in enumerate(boxes)]
    vector = ", ".join(loops.values())
    by_at = [f"{names[d]} = {text(forward[d], loops)}" for d in statement.dims]
    by_when = [f"{loops[loop]} = {text(when[loop], names)}" for loop, _, _ in boxes]
    one = read_map(f"{{ {space(statement)} -> V[{vector}]{conjunction(by_at + inside)} }}").intersect_domain(domain(statement))
    two = read_map(f"{{ {space(statement)} -> V[{vector}]{conjunction(by_when + inside)} }}").intersect_domain(domain(statement))
    if one.is_equal(two):
        return None
    odd = one.subtract(two).union(two.subtract(one))
    return smallest(odd.domain())


def _cover_finding(statement: Statement, point: tuple[int, ...], placed: Placed | None, how: str) -> Finding:
    instance = Instance(statement.name, point)
    return Finding("cover", f"{instance} {how}", source=instance, array=statement.target.array,
                   nodes=(placed.leaf.id,) if placed else (), lines=(statement.line,) if statement.line else ())


def check_order(plan: Plan, placed: dict[str, list[Placed]]) -> tuple[Finding, ...]:
    """Every dependence is respected; each finding has the smallest violating pair."""
    found: list[Finding] = []
    for d in facts(plan).ordered:
        for a in placed.get(d.source, []):
            for b in placed.get(d.sink, []):
                if (finding := _order_pair(plan, d, a, b)) is not None:
                    found.append(finding)
    return tuple(found)


def _order_pair(plan: Plan, d: Dependence, a: Placed, b: Placed) -> Finding | None:
    if a.launch < b.launch:
        return None
    pairs = d.relation.intersect_domain(a.where.run).intersect_range(b.where.run)
    if pairs.is_empty():
        return None
    if a.launch > b.launch:
        return _order_finding(plan, d, a, b, pairs, "a later launch")
    axes = [i for i in range(3) if not (_own_copy(plan, d, a, i) or _own_copy(plan, d, b, i))]
    everywhere = any(_replicated(plan, p) and p.where.free[i] for i in axes for p in (a, b))
    together = pairs.intersect(same_launch(a, b)) if launch_loops(a.above) else pairs
    across = together if everywhere else together.intersect(_differs(a, b, axes)) if axes else None
    if across is not None and not across.is_empty():
        return _order_finding(plan, d, a, b, across, "another block of the same launch")
    late = pairs.intersect(a.where.time.lex_ge_map(b.where.time))
    if late.is_empty():
        return None
    same_time = late.intersect(a.where.time.apply_range(b.where.time.reverse()))
    only_same = same_time.is_equal(late)
    return _order_finding(plan, d, a, b, late, "another thread at the same time" if only_same else "a later time")


def launch_loops(above: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """The enclosing loops that the host runs (always outermost)."""
    return tuple(x for x in above if x.role == "launch")


def same_launch(a: Placed, b: Placed) -> isl.Map:
    """Pairs of instances of two leaves of one kernel that run in one launch of it."""
    return _launch_of(a).apply_range(_launch_of(b).reverse())


def _launch_of(p: Placed) -> isl.Map:
    names, when = dim_names(p.statement), dict(p.leaf.when)
    values = ", ".join(text(when[x.id], names) for x in launch_loops(p.above))
    return read_map(f"{{ {space(p.statement)} -> N[{values}] }}")


def _replicated(plan: Plan, p: Placed) -> bool:
    """Whether every place runs the leaf along unbound coordinates: its target is in registers or shared memory."""
    view = p.leaf.view(len(p.statement.reads))
    return view is not None and plan.buffer_of[view.buffer].space in ("register", "shared")


def _own_copy(plan: Plan, d: Dependence, p: Placed, axis: int) -> bool:
    """Whether each block along an unbound axis runs the leaf on its own copy of the dependence's array."""
    if not (p.where.free[axis] and _replicated(plan, p)):
        return False
    slots = [slot for slot, use in enumerate(p.statement.accesses) if use.array == d.array]
    views = [p.leaf.view(slot) for slot in slots]
    return bool(views) and all(v is not None and plan.buffer_of[v.buffer].space in ("register", "shared") for v in views)


def _differs(a: Placed, b: Placed, axes: list[int]) -> isl.Map:
    """Pairs whose places differ in one of these coordinates."""
    names = ", ".join(f"p{i}" for i in range(6))
    other = ", ".join(f"q{i}" for i in range(6))
    unequal = " or ".join(f"p{i} != q{i}" for i in axes)
    apart = read_map(f"{{ P[{names}] -> P[{other}] : {unequal} }}")
    return a.where.place.apply_range(apart).apply_range(b.where.place.reverse())


_WORDS = {"flow": ("writes", "reads"), "anti": ("reads", "overwrites"), "output": ("writes", "overwrites")}


def _order_finding(plan: Plan, d: Dependence, a: Placed, b: Placed, pairs: isl.Map, when: str) -> Finding:
    point = smallest(pairs)
    n = len(a.statement.dims)
    source, sink = _instance(a, point[:n]), _instance(b, point[n:])
    element = _element(plan, a.statement, d.array, source.point)
    cell = f"{d.array}[{', '.join(map(str, element))}]" if element else d.array
    first, second = _WORDS[d.kind]
    what = f"{source} {first} {cell}, which {sink} {second}: this order would be lost"
    why = {
        "a later launch": f"in the program {source} runs first; now it would run in a later launch than {sink}",
        "another block of the same launch": f"now they would run in different blocks of one launch ({_where_text(source, sink)}), which have no order",
        "another thread at the same time": f"now they would run at the same time in different threads ({_where_text(source, sink)})",
        "a later time": f"in the program {source} runs first; now {sink} would run before it",
    }[when]
    carrying = _carrier(a, b, source, sink)
    return Finding("order", what, why, d.array, element, d.kind, source, sink, (a.leaf.id, b.leaf.id, *carrying),
                   tuple(sorted({s.line for s in (a.statement, b.statement) if s.line})), _hints(a, b, when, carrying))


def _carrier(a: Placed, b: Placed, source: Instance, sink: Instance) -> tuple[str, ...]:
    """The outermost common loop in which the two instances differ."""
    when_a, when_b = dict(a.leaf.when), dict(b.leaf.when)
    for x, y in zip(a.above, b.above, strict=False):
        if x.id != y.id:
            break
        at_a = when_a[x.id].evaluate(dict(zip(a.statement.dims, source.point, strict=True)))
        at_b = when_b[x.id].evaluate(dict(zip(b.statement.dims, sink.point, strict=True)))
        if at_a != at_b:
            return (x.id,)
    return ()


def _hints(a: Placed, b: Placed, when: str, carrying: tuple[str, ...]) -> tuple[str, ...]:
    if when == "another block of the same launch":
        return (f"launch('{a.kernel.id}', after='…') to cut the kernel between the two", "bind the loop that carries it to threads or leave it sequential")
    if when == "another thread at the same time":
        return (f"bind('{carrying[0]}', 'seq')" if carrying else "leave the loop sequential", "skew the nest so that another loop is parallel")
    if carrying and a.leaf.id == b.leaf.id:
        return (f"skew an inner loop by '{carrying[0]}' first",)
    return ("distribute the loop, or shift the consumer, before fusing",) if a.leaf.id != b.leaf.id else ()


def _instance(p: Placed, point: tuple[int, ...]) -> Instance:
    values = dict(zip(p.statement.dims, point, strict=True))
    when = dict(p.leaf.when)
    place = tuple((x.role, int(when[x.id].evaluate(values))) for x in p.above if x.is_place)
    time = tuple(int(when[x.id].evaluate(values)) for x in p.above if not x.is_place)
    return Instance(p.statement.name, point, place, time)


def _where_text(source: Instance, sink: Instance) -> str:
    def one(x: Instance) -> str:
        return ", ".join(f"{role} {value}" for role, value in x.place) or "no bound loop"

    return f"{source}: {one(source)}; {sink}: {one(sink)}"


def _element(plan: Plan, statement: Statement, array: str, point: tuple[int, ...]) -> tuple[int, ...]:
    values = dict(zip(statement.dims, point, strict=True))
    uses = [u for u in (statement.target, *statement.reads) if u.array == array]
    if not uses:
        return ()
    return tuple(int(e.evaluate(values)) if isinstance(e, Expr) else 0 for e in uses[0].index)


@dataclass(frozen=True)
class Obligation:
    """Updates of one element that differ in a bound loop, and whether a strategy collects them."""

    leaf: str
    array: str
    loop: str
    role: str
    how: str

    @property
    def open(self) -> bool:
        return not self.how


def obligations(plan: Plan, placed: dict[str, list[Placed]] | None = None) -> tuple[Obligation, ...]:
    """Every (update leaf, bound loop) in which two updates of one element differ, with its strategy if it has one."""
    found = []
    for parts in (placed or place_leaves(plan)).values():
        for p in parts:
            if p.statement.update:
                chosen = dict(p.leaf.collect)
                found += [
                    Obligation(p.leaf.id, p.statement.target.array, x.id, x.role, chosen.get(x.id, ""))
                    for x in p.above if x.is_place and _carries(plan, p, x)
                ]
    return tuple(found)


def _carries(plan: Plan, p: Placed, loop: Loop) -> bool:
    """Whether two updates of one element that differ in `loop` can coincide: in one launch, for a thread loop at one time."""
    array = plan.array_of[p.statement.target.array]
    other = tuple(x for x in p.above if (x.role == "launch" if loop.is_block else not x.is_place))
    boxes = tuple((x.id, x.start, x.extent) for x in p.above)
    return _carried(p.statement, array, loop.id, tuple(x.id for x in other), p.leaf.when, boxes)


@lru_cache(maxsize=4096)
def _carried(statement: Statement, array: Array, loop: str, equal: tuple[str, ...], inverse: tuple[tuple[str, Expr], ...],
             boxes: tuple[tuple[str, int, int], ...]) -> bool:
    names, when = dim_names(statement), dict(inverse)
    touch = access(statement, len(statement.reads), array).intersect_domain(run_set_of(statement, inverse, boxes))
    pairs = touch.apply_range(touch.reverse())
    values = ", ".join(text(when[x], names) for x in (loop, *equal))
    at = read_map(f"{{ {space(statement)} -> L[{values}] }}")
    rest = [f"e{i}" for i in range(len(equal))]
    apart = read_map(f"{{ L[{', '.join(['p', *rest])}] -> L[{', '.join(['q', *rest])}] : p != q }}")
    return not pairs.intersect(at.apply_range(apart).apply_range(at.reverse())).is_empty()


def check_obligations(plan: Plan, placed: dict[str, list[Placed]]) -> tuple[Finding, ...]:
    """A finding for every open obligation (a schedule may hold them; a kernel may not be emitted with one)."""
    out = []
    for o in obligations(plan, placed):
        if not o.open:
            continue
        statement = plan.statement_of[plan.resolve(o.leaf)[0].statement]  # type: ignore[index]
        thread = not o.role.startswith("block")
        hows = ("shuffle", "shared", "atomic") if thread else ("atomic", "kernel")
        out.append(Finding(
            "obligation",
            f"updates of {o.array} from different iterations of {o.loop} ({o.role}) would race",
            f"{o.leaf} updates one element of {o.array} in several {'threads' if thread else 'blocks'} at once",
            o.array, (), "reduction", None, None, (o.leaf, o.loop), (statement.line,) if statement.line else (),
            tuple(f"collect('{o.array}', '{how}')" for how in hows),
        ))
    return tuple(out)


__all__ = ["PLACE", "Obligation", "Placed", "check_cover", "check_obligations", "check_order", "obligations", "place_leaves"]
