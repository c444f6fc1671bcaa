"""Whether a trimmed loop may end early: what it counts, and what it leaves in flight, must not depend on how often it ran.

A loop that ends early runs a prefix of its iterations, so the groups, slots and phases of those that run are what they were: all
numbers of groups are affine in the loops around (:mod:`~explorer.poly.groups`).  Two things are different behind it:

- how many groups there are.  Threads that wait for their own copies may still wait for all of them; an mbarrier's phase, and a
  wait that leaves some groups open, would be others in each block;
- what is still in flight.  A copy for an iteration that does not run any more has nobody who waits for it, and would land in
  whatever its cells are then, or in a block that has ended.  So the last wait that runs must land all that was issued.

The producer and the consumers of a kernel with roles run the same loop of the plan, to the same end.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.expr import Expr, Ranges, const, var
from ..ir.instructions import stays_in_flight
from ..ir.memo import per_program
from ..ir.plan import Plan
from ..ir.program import Constraint
from ..ir.tree import Kernel, Leaf, Loop, Node, Sync, leaves, ranges, walk
from .ends import last_iteration
from .feasible import feasible
from .groups import COPIES, PRODUCTS, Queue, closed_before, path_to
from .linear import Case, Condition, Tuple, at_least, box, equal, holds
from .mechanism import ASYNCHRONOUS

TURNS = ("turn", "pass")
"""Of warpgroups, all of which run as many iterations as their block."""


@per_program(1024)
def end_of(plan: Plan, kernel: Kernel, loop: Loop) -> Expr | str:
    """The last iteration that a trimmed loop runs in each block, or why it runs all of them, as a sentence."""
    hit = plan.find(loop.id)
    assert hit is not None
    above = hit[1]
    if loop.role != "seq":
        return f"{loop.id} is {loop.role}: the iterations of a sequential loop can end early"
    views = (v for leaf, _ in leaves((loop,)) for _, v in leaf.views if plan.buffer_of[v.buffer].space == "register")
    if held := next((v.buffer for v in views if any(loop.id in e.variables() for e in v.index)), ""):
        return f"{loop.id} says which register {held} is, so it is unrolled"
    last = last_iteration(plan, loop.id)
    if isinstance(last, str):
        return last
    low, high = last.interval(ranges(above))
    if high < loop.start or low >= loop.range[1]:
        return f"{loop.id} ends with iteration {loop.range[1]} in every block"
    if low < loop.start:
        return f"in some block nothing runs in {loop.id}, and its barriers and waits stand for those around it"
    return _counts(kernel, loop, above) or _leaves_open(plan, kernel, loop, last) or last


def ends_before(plan: Plan, scope: Ranges, e: Expr) -> bool:
    """Whether ``e >= 0``, over loops with these ranges, in all iterations that the trimmed ones among them run."""
    for loop in (x for name in scope if (x := plan.loops.get(name)) is not None and x.trimmed):
        kernel = plan.kernel_of(loop.id)
        last = end_of(plan, kernel, loop) if kernel else ""
        if isinstance(last, Expr) and (e - last + var(loop.id)).interval(scope)[0] >= 0:
            return True
    return False


def _counts(kernel: Kernel, loop: Loop, above: tuple[Loop, ...]) -> str:
    """Why fewer groups of the loop would be miscounted behind it, as a sentence; empty if they would not."""
    products = any(stays_in_flight(leaf.mechanism) for leaf, _ in leaves(loop.body))
    if not products and not any(isinstance(n, Sync) for n in walk(loop.body)):
        return ""
    if again := next((x for x in above if not x.is_place and x.extent > 1), None):
        return f"{loop.id} has waits and runs again in {again.id}, where its groups would be others in each block"
    behind = [n for n in _behind(kernel, loop) if isinstance(n, Sync) and n.kind not in TURNS]
    if any(n.kind != "commit" and n.pending for n in behind):
        return f"behind {loop.id} stands a wait for all but some groups, of which it makes fewer in some blocks"
    if any(leaf.mechanism == "bulk" for leaf, _ in leaves(kernel.body)) and any(n.kind != PRODUCTS.wait for n in behind):
        return f"behind {loop.id} bulk copies are counted, of whose groups it makes fewer in some blocks"
    return ""


def _behind(kernel: Kernel, loop: Loop) -> Iterator[Node]:
    """The nodes behind a loop, in order of the text."""
    inside = {n.id for n in walk((loop,))}
    order = list(walk(kernel.body))
    last = max(i for i, n in enumerate(order) if n.id in inside)
    return iter(order[last + 1:])


# -- what is in flight ---------------------------------------------------------------------------------------------------


def _leaves_open(plan: Plan, kernel: Kernel, loop: Loop, last: Expr) -> str:
    """What may still be in flight where a loop ends early, as a sentence; empty for nothing."""
    for queue in (COPIES, PRODUCTS):
        if not _issues(loop, queue) or _awaits_all(kernel, loop, queue):
            continue
        for leaf, above in _issued(kernel, loop, queue):
            if _open(plan, kernel, loop, last, (leaf, above), queue):
                return (f"{leaf.id} may still be in flight behind the last iteration of {loop.id}, {last}, "
                        "with no wait for it any more")
    return ""


def _issues(loop: Loop, queue: Queue) -> bool:
    """Whether anything in a loop is of a queue: an asynchronous leaf, the end of a group, or a wait."""
    return any(_flies(n, queue) if isinstance(n, Leaf) else isinstance(n, Sync) and (n.kind == queue.wait or queue.closes(n))
               for n in walk(loop.body))


def _flies(leaf: Leaf, queue: Queue) -> bool:
    return stays_in_flight(leaf.mechanism) if queue == PRODUCTS else leaf.mechanism in ASYNCHRONOUS


def _issued(kernel: Kernel, loop: Loop, queue: Queue) -> Iterator[tuple[Leaf, tuple[Loop, ...]]]:
    """The asynchronous leaves of a queue in a loop or before it, with the loops around them."""
    behind = {n.id for n in _behind(kernel, loop)}
    for leaf, above in leaves(kernel.body):
        if _flies(leaf, queue) and leaf.id not in behind and all(x.extent > 0 for x in above):
            yield leaf, above


def _awaits_all(kernel: Kernel, loop: Loop, queue: Queue) -> bool:
    """Whether what comes next behind a loop is a wait for all that is in flight."""
    step = path_to(kernel, loop.id)[-1]
    behind = step.body[step.index + 1:]
    return bool(behind) and isinstance(n := behind[0], Sync) and n.kind == queue.wait and n.pending == 0


def _open(plan: Plan, kernel: Kernel, loop: Loop, last: Expr, issued: tuple[Leaf, tuple[Loop, ...]], queue: Queue) -> bool:
    """Whether some instance of a leaf belongs to a group that no wait has landed when the loop ends."""
    leaf, above = issued
    scope, at = ranges(above), dict(leaf.at)
    domain = (Constraint(c.expr.substitute(at, scope), c.equality) for c in plan.statement_of[leaf.statement].domain)
    mine = (*box(((var(x.id), x.start, x.extent) for x in above), "a"), *(holds(c, "a") for c in domain))
    hit = plan.find(loop.id)
    assert hit is not None
    around = (*hit[1], loop)
    shared = {x.id for x in above} & {x.id for x in hit[1]}
    here = (*box(((var(x.id), x.start, x.extent) for x in around), "b"), *(equal(var(x), "a", var(x), "b") for x in shared))
    if any(x.id == loop.id for x in above):  # it has been issued by then
        here = (*here, Condition(((var(loop.id), "b", 1), (var(loop.id), "a", -1)), 0, False))
    tuples = Tuple("A", "a", tuple(x.id for x in above)), Tuple("B", "b", tuple(x.id for x in around))
    group = closed_before(path_to(kernel, leaf.id), queue)
    return any(feasible(tuples, (*mine, *here, *end, *_beyond(kernel, loop, group, queue))) for end in _ends(loop, last))


def _ends(loop: Loop, last: Expr) -> tuple[Case, Case]:
    """The loop's last iteration: that of the statements below it, or of its box."""
    by_box = at_least(last, "b", loop.range[1])
    return (equal(var(loop.id), "b", last, "b"),), (equal(var(loop.id), "b", const(loop.range[1]), "b"), by_box)


def _beyond(kernel: Kernel, loop: Loop, group: Expr, queue: Queue) -> Iterator[Condition]:
    """That a group has not been landed by any wait in an iteration of the loop."""
    for node in walk(loop.body):
        if isinstance(node, Sync) and node.kind == queue.wait:
            path = path_to(kernel, node.id)
            below = [s.loop for s in path if s.loop is not None]
            below = below[next(i for i, x in enumerate(below) if x.id == loop.id) + 1:]
            if all(x.extent > 0 for x in below):
                ends = {x.id: const(x.range[1]) for x in below}
                landed = closed_before(path, queue).substitute(ends) - node.pending
                yield Condition(((group, "a", 1), (landed, "b", -1)), 0, False)
