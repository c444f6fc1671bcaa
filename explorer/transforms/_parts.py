"""Reductions over blocks in one move: a part for each block, and a phase of the same launch that joins the parts.

The steps are those that one would take by hand: the updates of a block become one value (registers, then shuffles), each block
writes it into a workspace, and a nest of its own reads the parts of an element: its parallel loops are bound to the block axes
of the updates' loops, its loop over parts to threads.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod

from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan, block_extents
from ..ir.tree import THREAD_ROLES, WARP_SIZE, Kernel, Leaf, Loop, Node, leaves, ranges, walk
from ..poly.judge import Judgement, judge
from ._reduction import Updates, updates
from .accumulate import Accumulate
from .bind import Bind
from .coalesce import Coalesce
from .contract import Contract
from .rfactor import factor_verdict, factored
from .split import Split

MOST_THREADS = 256
"""Threads that join the parts where the updates run in one thread of each block."""


def bound(u: Updates) -> tuple[Loop, ...]:
    """The loops that carry the reduction and are spread over places."""
    return tuple(x for x in u.carrying if x.is_place)


def in_time(u: Updates) -> bool:
    """Whether a loop in time carries the reduction, so that combining would happen again and again."""
    return any(not x.is_place for x in u.carrying)


def moving(u: Updates) -> frozenset[str]:
    """The loops that move the element."""
    at, scope = dict(u.leaf.at), ranges(u.above)
    index = [e.substitute(at, scope) for e in u.statement.target.index if isinstance(e, Expr)]
    return frozenset(name for e in index for name in e.variables())


def marked(u: Updates, chosen: tuple[Loop, ...], how: str) -> tuple[Plan, str] | Verdict:
    """The plan in which the updates that differ in some bound loops are combined, and the leaf that does it.

    Where loops in time carry the reduction too, each place first accumulates in registers of its own.  Where such a loop goes
    from element to element, as tiles in turn do, it adds by atomic operations each time.
    """
    plan, leaf, names = u.plan, u.leaf.id, {x.id: x.id for x in chosen}
    mixed = any(not x.is_place and x.id in moving(u) for x in u.carrying)
    if in_time(u) and not (how == "atomic" and mixed):
        mine = bound(u)
        alone = replace(u, factored=mine)
        if not (verdict := factor_verdict(alone)):
            return verdict
        made = factored(alone)
        if not (verdict := Contract(made.array).check(made.plan)):
            return verdict
        plan = Contract(made.array).rewrite(made.plan)
        names = {old: new for old, new in zip((x.id for x in mine), made.loops, strict=True) if old in names}
        leaf = made.combine
    ways = dict.fromkeys(names.values(), how)

    def mark(node: Leaf) -> Leaf:
        return node if node.id != leaf else replace(node, collect=tuple(sorted({**dict(node.collect), **ways}.items())))

    return plan.map_leaves(mark), leaf


def combined_in_cluster(u: Updates, chosen: tuple[Loop, ...]) -> tuple[Plan, str] | Verdict:
    """The plan in which blocks are combined as a cluster, each block's value once over its threads, and the leaf that does it."""
    own = dict(u.leaf.collect)
    spread = marked(u, tuple(x for x in bound(u) if x.is_thread and own.get(x.id, "atomic") == "atomic"), "shuffle")
    if isinstance(spread, Verdict):
        return spread
    u = _again(*spread)
    roles = {x.role for x in chosen}
    return marked(u, tuple(x for x in bound(u) if x.role in roles), "cluster")


def parts_verdict(u: Updates, how: str) -> Verdict:
    """Whether every block can have a part of its own, and the parts can be joined in the same launch."""
    plan = _joined(u, how, frozenset())
    return plan if isinstance(plan, Verdict) else YES


@lru_cache(maxsize=64)
def joined_parts(u: Updates, how: str) -> Plan | Verdict:
    """The plan in which every block has a part of its own, joined in the same launch.

    Parameters
    ----------
    u : Updates
        Blocks carry the reduction.
    how : str
        ``"last_block"``, ``"handoff"`` or ``"grid"``: see :class:`~explorer.ir.tree.Kernel`.
    """
    plain = _joined(u, how, frozenset())
    if isinstance(plain, Verdict):
        return plain
    for wanted in ({"parts", "results"}, {"parts"}):
        better = _joined(u, how, frozenset(wanted))
        if not isinstance(better, Verdict) and better != plain and _races_nowhere(judge(better)):
            return better
    return plain


def _races_nowhere(found: Judgement) -> bool:
    """Whether a plan is legal and no update is left to collect; limits of what can be joined are said of the plan itself."""
    return found.legal and all(f.kind == "kernel" for f in found.obligations)


def _joined(u: Updates, how: str, in_registers: frozenset[str]) -> Plan | Verdict:
    """The plan, with the ``"parts"`` or the ``"results"`` in a register of every thread until they are written once."""
    own = dict(u.leaf.collect)
    threads = tuple(x for x in bound(u) if x.is_thread)
    if threads or how != "handoff":  # a handed_off part is written once: what a thread adds up alone goes to a register below
        spread = marked(u, tuple(x for x in threads if own.get(x.id, "atomic") == "atomic"), "shuffle")
        if isinstance(spread, Verdict):
            return spread
        u = _again(*spread)
    parts = replace(u, factored=tuple(x for x in bound(u) if x.is_block))
    if not (verdict := factor_verdict(parts, apart=True)):
        return verdict
    lanes = any(x.role in ("thread.x", "lane") and u.parallel(x) for x in u.above)
    made = factored(parts, apart=True, axes=tuple(range(len(parts.factored))) if lanes else ())
    kernel = made.plan.kernel_of(made.combine)
    before = u.plan.kernel_of(u.leaf.id)
    assert kernel is not None
    assert before is not None
    if hosted := next((x.id for k in (before, kernel) for x in walk(k.body) if isinstance(x, Loop) and x.role == "launch"), ""):
        return no(f"the host runs {hosted}: each of its iterations is a launch of its own", hint="how='kernel'")
    spread = _spread(_with_starts(made.plan, made.combine), made.combine, made.loops, block_extents(before))
    if isinstance(spread, Verdict):
        return spread
    plan = replace(spread, kernels=tuple(replace(k, join=how) if k.id == kernel.id else k for k in spread.kernels))
    for array, name in ((made.array, "parts"), (u.statement.target.array, "results")):
        plan = _accumulated(plan, array) if name in in_registers else plan
    return plan


def _accumulated(plan: Plan, array: str) -> Plan:
    """The plan in which the updates of an array run in registers, where that can be; else the plan as it is."""
    if not Accumulate(array).check(plan):
        return plan
    new = Accumulate(array).rewrite(plan)
    name = next(a.name for a in new.program.arrays if a.name not in plan.array_of)
    return Contract(name).rewrite(new) if Contract(name).check(new) else plan


def _again(plan: Plan, leaf_id: str) -> Updates:
    """The updates of a leaf in a new plan."""
    hit = plan.find(leaf_id)
    assert hit is not None
    assert isinstance(hit[0], Leaf)
    return updates(plan, hit[0], hit[1])


# -- the loop over parts -----------------------------------------------------------------------------------------


def _spread(plan: Plan, combine: str, loops: tuple[str, ...], block: tuple[int, int, int]) -> Plan | Verdict:
    """The loops over parts as one, over the threads that are free in the launch's blocks; else each thread adds in a register."""
    if len(loops) > 1:
        if not (verdict := Coalesce(loops).check(plan)):
            return verdict
        plan = Coalesce(loops).rewrite(plan)
    name = next(iter(loops))
    count = plan.loops[name].extent
    used = {x.role for x in _again(plan, combine).above if x.is_thread}
    axis, most = _free_threads(used, block, count)
    if most > 1:
        if count > most:
            inner = plan.fresh(f"{name}.t")
            plan = Split(name, most, inner).rewrite(plan)
            name = inner
        if not (verdict := Bind(name, axis).check(plan)):
            return verdict
        plan = Bind(name, axis).rewrite(plan)
    u = _again(plan, combine)
    done = marked(u, tuple(x for x in bound(u) if x.is_thread), "shuffle")
    return done if isinstance(done, Verdict) else done[0]


def _free_threads(used: set[str], block: tuple[int, int, int], parts: int) -> tuple[str, int]:
    """A thread axis that no parallel loop has, and how many of its threads join parts."""
    if not used and prod(block) == 1:
        return "thread.x", min(MOST_THREADS, -(-parts // WARP_SIZE) * WARP_SIZE)
    taken = used | ({"thread.x"} if used & {"warp", "lane"} else set[str]())
    free = [(role, n) for role, n in zip(THREAD_ROLES, block, strict=True) if role not in taken]
    return max(free, key=lambda x: x[1], default=("thread.x", 1))


# -- the start of the elements -----------------------------------------------------------------------------------


def _with_starts(plan: Plan, combine: str) -> Plan:
    """The plan in which the launch that only starts the elements is gone: they start where their parts are joined."""
    u = _again(plan, combine)
    kernel = plan.kernel_of(combine)
    assert kernel is not None
    place = plan.kernels.index(kernel)
    if place < 2 or plan.kernels[place - 1].join or kernel.join:
        return plan
    start = _started(plan, plan.kernels[place - 2], u)
    if start is None:
        return plan
    anchor = u.anchor()

    def with_start(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        out: list[Node] = []
        for n in nodes:
            if n.id == anchor:
                out.append(start)
            out.append(replace(n, body=with_start(n.body)) if isinstance(n, Loop) and n.id != anchor else n)
        return tuple(out)

    kernels = [replace(k, body=with_start(k.body)) if k.id == kernel.id else k for k in plan.kernels]
    del kernels[place - 2]
    return replace(plan, kernels=tuple(kernels))


def _started(plan: Plan, kernel: Kernel, u: Updates) -> Leaf | None:
    """The only leaf of a kernel, moved to where parts are joined, if it starts just the elements that are joined there."""
    found = list(leaves(kernel.body))
    s = plan.statement_of[found[0][0].statement] if len(found) == 1 else None
    if s is None or s.update or s.target.array != u.statement.target.array or s.reads:
        return None
    at, when, values = dict(u.leaf.at), dict(u.leaf.when), dict[str, Expr]()
    inverse: dict[str, Expr] = {}
    scope = ranges(u.above)
    for mine, theirs in zip(s.target.index, u.statement.target.index, strict=True):
        if not isinstance(mine, Expr) or not isinstance(theirs, Expr):
            return None
        if mine.is_constant and mine == theirs:
            continue
        one, other = _plain(mine), _plain(theirs)
        if not one or not other or one in values:
            return None
        values[one] = (at[other] + theirs.const - mine.const)
        inverse[other] = var(one) + mine.const - theirs.const
    around = u.above[: u.outside()]
    same = {c.expr for c in s.domain} == {c.expr.substitute(inverse) for c in u.statement.domain
                                          if c.expr.variables() <= inverse.keys()}
    if set(values) != set(s.dims) or not same or any(not when[x.id].variables() <= inverse.keys() for x in around):
        return None
    if any(not e.variables() <= {x.id for x in around} for e in values.values()):  # an element would need an inner loop
        return None
    leaf = found[0][0]
    return replace(leaf, at=tuple((d, values[d].substitute({}, scope)) for d in s.dims), sums=(),
                   when=tuple(sorted((x.id, when[x.id].substitute(inverse)) for x in around)))


def _plain(e: Expr) -> str:
    """The dimension that an index is, up to a constant; empty for any other index."""
    plain = len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1
    return str(e.terms[0][0]) if plain else ""
