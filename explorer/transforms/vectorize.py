"""Make the iterations of an innermost loop the lanes of wide memory accesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd

from ..ir.expr import Expr, Ranges, const
from ..ir.finding import YES, Verdict, no
from ..ir.inequality import free_of_quotient, linear_in
from ..ir.plan import Plan
from ..ir.program import Constraint
from ..ir.text import access_text, condition_text
from ..ir.tree import Leaf, Loop, ranges
from ._linear import lanes_of, linear_index, misaligned, steps_of
from ._nest import enclosing, from_zero, loop_offer, names_of, with_role
from .base import Transform, get_loop

WIDTHS = (2, 4, 8, 16)
WIDEST_BYTES = 16
"""Most bytes of one load or store of a thread (CUDA C++ Programming Guide, "Device Memory Accesses")."""


@dataclass(frozen=True)
class Vectorize(Transform):
    """Access 2, 4, 8 or 16 neighbouring elements at once: the iterations of an innermost loop become lanes.

    With the linear (row-major, padded) index of each memory access written as ``a*v + c·x + d``: the stride ``a``
    is 1 (a wide access) or 0 (one element for all lanes); the width divides every other coefficient ``c`` and
    ``d``, so that a wide access is aligned; and every guard holds for all lanes or for none.  A guard
    ``g*y + d + e*v >= 0``, g the greatest common divisor of the coefficients of the other variables, does not
    depend on the lane if ``(d + e*v) // g`` does not.  Where all wide accesses read inputs, guards may differ: elements
    beside are loaded and not used (never beyond the array's end).  So they may where the only wide access writes a result:
    where some lanes do not run, the others write one by one.  Registers may be accessed with any stride.

    Before::

        for i in 0…256
            for i.i in 0…4
                y[4*i + i.i] = x[4*i + i.i]

    After ``vectorize('i.i')``::

        for i in 0…256
            for i.i in 0…4  vector            # one load and one store of four elements
                y[4*i + i.i] = x[4*i + i.i]
    """

    name = "vectorize"
    aliases = ("vectorise", "vec")

    loop: str = field(metadata={"kind": "loop", "help": "the innermost loop whose iterations become lanes"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if loop.role != "seq":
            return no(f"{loop.id} is already {loop.role}", hint=f"bind('{loop.id}', 'seq') makes it an ordinary loop again")
        if loop.extent not in WIDTHS:
            return no(f"{loop.id} runs {loop.extent} times; a vector has 2, 4, 8 or 16 lanes",
                      hint=f"split('{loop.id}', 4) and vectorize its inner loop")
        if others := [n for n in loop.body if not isinstance(n, Leaf)]:
            return no(f"{loop.id} holds {names_of(others)} beside or instead of statements",
                      why="the lanes of a vector access have nothing between them",
                      hint=f"interchange or distribute so that {loop.id} is innermost")
        plan = from_zero(plan, loop.id)
        scope = ranges((*enclosing(plan, loop.id), plan.loops[loop.id]))
        wide = False
        for leaf in plan.loops[loop.id].body:
            assert isinstance(leaf, Leaf)
            for test in (_strides, _guards):
                if not (verdict := test(plan, leaf, loop, scope)):
                    return verdict
            wide = wide or any(stride == 1 for _, stride in _memory(plan, leaf, loop, scope))
        if not wide:
            return no(f"no access below {loop.id} reads or writes neighbouring elements",
                      why=f"the linear index of every access in memory is the same for all values of {loop.id}",
                      hint=f"unroll('{loop.id}')")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        return with_role(from_zero(plan, self.loop), self.loop, "vector")

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = loop_offer(plan, node_id, "vectorize")
        if isinstance(loop, Verdict):
            return loop
        if any(isinstance(n, Loop) for n in loop.body):
            return no(f"{loop.id} is not an innermost loop", hint="select the innermost loop, or interchange first")
        return YES if loop.extent in WIDTHS else cls(loop.id).check(plan)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Vectorize]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop) and loop.extent in WIDTHS and all(isinstance(n, Leaf) for n in loop.body):
            yield cls(loop.id)


def _memory(plan: Plan, leaf: Leaf, loop: Loop, scope: Ranges) -> Iterator[tuple[int, int | None]]:
    """Each slot of the leaf that is in memory, with its stride in elements along the loop (None: it varies)."""
    for slot in range(len(plan.statement_of[leaf.statement].accesses)):
        linear = linear_index(plan, leaf, slot, loop, scope)
        if linear is None:
            continue
        if f"]{loop.id}" in "".join(v for v in linear[0].variables() if v.startswith("[")):
            yield slot, None
            continue
        steps = steps_of(lanes_of(linear[0], loop, scope))
        even = steps is not None and all(s == lane * steps[1] for lane, s in enumerate(steps))
        yield slot, steps[1] if steps and even else None


def _strides(plan: Plan, leaf: Leaf, loop: Loop, scope: Ranges) -> Verdict:
    """Whether every access in memory is wide, aligned and not too wide, or the same for all lanes."""
    width = loop.extent
    for slot, stride in _memory(plan, leaf, loop, scope):
        linear = linear_index(plan, leaf, slot, loop, scope)
        assert linear is not None
        index, size, name = linear
        verb = "writes" if slot == len(plan.statement_of[leaf.statement].reads) else "reads"
        text = f"{leaf.id} {verb} {access_text(plan, leaf, slot)}"
        if stride is None:
            return no(f"{text}, whose elements are not evenly spaced along {loop.id}",
                      why="a vector access needs neighbouring elements", hint=_unit(plan, leaf, slot, loop, scope))
        if stride not in (0, 1):
            return no(f"{text}: consecutive iterations of {loop.id} are {stride} elements apart",
                      why="a vector access needs neighbouring elements", hint=_unit(plan, leaf, slot, loop, scope))
        if stride == 0:
            continue
        if width * size > WIDEST_BYTES:
            return no(f"{text}: {width} elements of {size} bytes are {width * size} bytes",
                      why=f"one access has at most {WIDEST_BYTES} bytes",
                      hint=f"split('{loop.id}', {WIDEST_BYTES // size}) and vectorize its inner loop")
        base = lanes_of(index, loop, scope)[0]
        if bad := misaligned(base, width):
            return no(f"{text}, not aligned to {width} elements: its linear index in {name} holds {bad}",
                      why=f"the address of a vector access is a multiple of its {width * size} bytes",
                      hint=f"fewer lanes, a row length (with padding) of {name} that is a multiple of {width}, or stage {name}")
    return YES


def _unit(plan: Plan, leaf: Leaf, slot: int, loop: Loop, scope: Ranges) -> str:
    """The loop along which the access has neighbouring elements, if there is one."""
    linear = linear_index(plan, leaf, slot, loop, scope)
    near = [n for n in enclosing(plan, leaf.id) if linear and linear[0].coefficient(n.id) == 1]
    return f"vectorize along {near[-1].id}, whose iterations are neighbours" if near else "stage it into shared memory first"


def _guards(plan: Plan, leaf: Leaf, loop: Loop, scope: Ranges) -> Verdict:
    """Whether each condition of the statement holds for all lanes or for none, or lanes may be read in vain."""
    statement, at = plan.statement_of[leaf.statement], dict(leaf.at)
    for constraint in (*statement.domain, *statement.inside):
        own = _at_the_end if constraint in statement.inside else _alone
        each_for_itself = own(plan, leaf, loop, scope)
        if not each_for_itself and not _uniform(constraint, at, loop, scope):
            condition = condition_text(constraint, at, scope)
            return no(f"{leaf.id} runs where {condition}: for some lanes of {loop.id}, not for others",
                      why="the lanes of a vector access all run or none does, unless it only reads inputs or writes results",
                      hint=f"cut off the partial iteration, or sizes that are multiples of {loop.extent}")
    return YES


def _alone(plan: Plan, leaf: Leaf, loop: Loop, scope: Ranges) -> bool:
    """Whether each lane can stand under a condition of its own: all wide accesses read inputs, whose neighbouring elements may
    be loaded and not used, or one writes a result, and the lanes can do that one by one.
    """
    statement, target = plan.statement_of[leaf.statement], len(plan.statement_of[leaf.statement].reads)
    wide = [slot for slot, stride in _memory(plan, leaf, loop, scope) if stride == 1]
    inputs = {slot for slot, r in enumerate(statement.reads) if not leaf.view(slot) and plan.array_of[r.array].role == "in"}
    writes = wide == [target] and leaf.mechanism == "plain" and not leaf.collect and not leaf.view(target)
    return len(plan.loops[loop.id].body) == 1 and bool(wide) and (inputs.issuperset(wide) or writes)


def _at_the_end(plan: Plan, leaf: Leaf, loop: Loop, scope: Ranges) -> bool:
    """Whether a copy has its fill just where it would read beyond the array's end, which lies in some vector."""
    statement = plan.statement_of[leaf.statement]
    if statement.origin != "copy" or leaf.view(0) or leaf.mechanism != "plain" or len(statement.inside) != 1:
        return False
    linear, (inside,) = linear_index(plan, leaf, 0, loop, scope), statement.inside
    assert linear is not None
    once = {name: const(low) for name, (low, high) in scope.items() if low == high}
    asked = linear_in(free_of_quotient(inside.expr.substitute(dict(leaf.at), scope)), loop.id).substitute(once, scope)
    return not inside.equality and asked == const(plan.array_of[statement.reads[0].array].size - 1) - linear[0]


def _uniform(constraint: Constraint, at: Mapping[str, Expr], loop: Loop, scope: Ranges) -> bool:
    """Whether the constraint holds for all values of the loop or for none, by intervals or by the common divisor."""
    expr = constraint.expr.substitute(at, scope)
    low, high = expr.interval(scope)
    if high < 0 or (low >= 0 and not constraint.equality) or (low > 0 and constraint.equality):
        return True
    lanes = lanes_of(expr if constraint.equality else linear_in(free_of_quotient(expr), loop.id), loop, scope)
    steps = steps_of(lanes)
    if steps is None:
        return False
    if constraint.equality:
        return not any(steps)
    divisor = gcd(*(c for _, c in lanes[0].terms)) or 1 << 62  # a constant: only its sign counts
    return len({(lanes[0].const + step) // divisor for step in steps}) == 1
