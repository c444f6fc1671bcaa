"""Make the iterations of an innermost loop the lanes of wide memory accesses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir.expr import Expr, Ranges
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.text import access_text, condition_text
from ..ir.tree import Leaf, Loop, ranges
from ..poly.lanes import lanes_of, linear_index, misaligned, steps_of, uniform
from ._nest import enclosing, from_zero, names_of, with_role
from .base import Transform, by_factor, get_loop
from .split import Split
from .tile import Tile

WIDTHS = (2, 4, 8, 16)
WIDEST_BYTES = 16
"""Most bytes of one load or store of a thread (CUDA C++ Programming Guide, "Device Memory Accesses")."""


@dataclass(frozen=True)
class Vectorize(Transform):
    """Access 2, 4, 8 or 16 neighbouring elements at once: the iterations of an innermost loop become lanes.

    One access has at most 16 bytes: 4 elements of f32, 8 of f16.

    With the linear (row-major, padded) index of each memory access written as ``a*v + c·x + d``: the stride ``a``
    is 1 (a wide access) or 0 (one element for all lanes); the width divides every other coefficient ``c`` and
    ``d``, so that a wide access is aligned; and every guard holds for all lanes or for none.  A guard
    ``g*y + d + e*v >= 0``, g the greatest common divisor of the coefficients of the other variables, does not
    depend on the lane if ``(d + e*v) // g`` does not.

    There are three exceptions.  If all wide accesses read inputs, guards may differ between lanes: a vector then loads
    elements that are not used, but never beyond the array's end.  Guards may also differ if the only wide access writes a
    result, and in staged copies: if some lanes are masked, or outside of what is copied, the others are accessed one by one.
    Registers may be accessed with any stride, and so may inputs with `gather`, which loads one element for each lane (a bias
    along rows of odd length, where a vector can end in the next row).

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
    group = "Loops"
    aliases = ("vectorise", "vec")
    elsewhere = {"Halide": "vectorize", "TVM": "vectorize", "loopy": "tag_inames vec"}

    loop: str = field(metadata={"kind": "loop", "help": "the innermost loop whose iterations become lanes"})
    gather: bool = field(default=False, metadata={"kind": "bool", "help": "read inputs that are not wide one by one"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if loop.role != "seq":
            return no(f"{loop.id} is already {loop.role}", hint=f"bind('{loop.id}', 'seq') makes it an ordinary loop again")
        if others := [n for n in loop.body if not isinstance(n, Leaf)]:
            return no(f"{loop.id} holds {names_of(others)} beside or instead of statements",
                      why="the lanes of a vector access have nothing between them",
                      hint="; or ".join(f"interchange('{loop.id}', '{n.id}') first" for n in others))
        if loop.extent not in WIDTHS:
            width = next((n for n in (4, 2) if loop.extent % n == 0), 0)
            return no(f"{loop.id} runs {loop.extent} times; a vector has 2, 4, 8 or 16 lanes",
                      why="each iteration is a lane of one wide access",
                      hint=f"split('{loop.id}', {width or 4}) and vectorize('{loop.id}.i')"
                      + ("" if width else "; or a size that 2, 4, 8 or 16 divides"))
        plan = from_zero(plan, loop.id)
        scope = ranges((*enclosing(plan, loop.id), plan.loops[loop.id]))
        wide = False
        for leaf in plan.loops[loop.id].body:
            assert isinstance(leaf, Leaf)
            for verdict in (_strides(plan, leaf, loop, scope, self.gather), _guards(plan, leaf, loop, scope)):
                if not verdict:
                    return verdict
            wide = wide or any(stride == 1 for _, stride in _memory(plan, leaf, loop, scope))
        if not wide:
            return no(f"no access below {loop.id} reads or writes neighbouring elements",
                      why=f"the linear index of every access in memory is the same for all values of {loop.id}",
                      hint=f"unroll('{loop.id}') instead")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        return with_role(from_zero(plan, self.loop), self.loop, "vector")

    def mends(self, plan: Plan, earlier: Transform) -> Iterator[Transform]:
        """Where the loop is a part of another and no width divides it: a part of a vector's width, the nearest one first."""
        extent = plan.loops[self.loop].extent if self.loop in plan.loops else 0
        if extent and all(extent % width for width in WIDTHS):
            for width in sorted(WIDTHS, key=lambda n: (abs(n - extent), -n)):
                if isinstance(earlier, Split):
                    yield replace(earlier, factor=width)
                elif isinstance(earlier, Tile):
                    mine = [self.loop.startswith(f"{name}.") for name in earlier.loops]
                    yield replace(earlier, sizes=tuple(width if own else n for own, n in zip(mine, earlier.sizes, strict=True)))

    @classmethod
    def meant(cls, args: tuple[Any, ...]) -> str:
        return by_factor(cls.name, args)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        if any(isinstance(n, Loop) for n in loop.body):
            return no(f"{loop.id} is not an innermost loop", hint="select the innermost loop")
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


def _strides(plan: Plan, leaf: Leaf, loop: Loop, scope: Ranges, gather: bool) -> Verdict:
    """Whether every access in memory is wide, aligned and not too wide, or the same for all lanes, or one that may `gather`."""
    width = loop.extent
    for slot, stride in _memory(plan, leaf, loop, scope):
        if gather and stride not in (0, 1) and _is_input(plan, leaf, slot):
            continue
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
                      hint=f"split('{loop.id}', {WIDEST_BYTES // size}) and vectorize('{loop.id}.i')")
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
    if near:
        return f"vectorize('{near[-1].id}'), whose iterations are neighbours"
    if _is_input(plan, leaf, slot) and any(stride == 1 for _, stride in _memory(plan, leaf, loop, scope)):
        return f"vectorize('{loop.id}', gather=True) reads it one by one"
    return ""


def _is_input(plan: Plan, leaf: Leaf, slot: int) -> bool:
    """Whether a slot reads an input where it lies."""
    reads = plan.statement_of[leaf.statement].reads
    return slot < len(reads) and not leaf.view(slot) and plan.array_of[reads[slot].array].role == "in"


def _guards(plan: Plan, leaf: Leaf, loop: Loop, scope: Ranges) -> Verdict:
    """Whether each condition of the statement holds for all lanes or for none, or lanes may be read in vain."""
    statement, at = plan.statement_of[leaf.statement], dict(leaf.at)
    for constraint in (*statement.domain, *statement.inside):
        if uniform(constraint, at, loop, scope):
            continue
        if not (_filled(plan, leaf, loop) if constraint in statement.inside else _alone(plan, leaf, loop, scope)):
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
    inputs = {slot for slot in range(len(statement.reads)) if _is_input(plan, leaf, slot)}
    plain, view = leaf.mechanism == "plain" and not leaf.collect, leaf.view(target)
    writes = plain and ((wide == [target] and not view) or statement.origin == "copy")
    in_vain = bool(wide) and inputs.issuperset(wide)
    if len(plan.loops[loop.id].body) == 1:
        return in_vain or (bool(wide) and writes)
    return in_vain and plain and _guarded_alike(plan, loop, scope)


def _guarded_alike(plan: Plan, loop: Loop, scope: Ranges) -> bool:
    """Whether all statements of a loop run under the same conditions."""
    found = set[frozenset[tuple[Expr, bool]]]()
    for leaf in plan.loops[loop.id].body:
        assert isinstance(leaf, Leaf)
        at, domain = leaf.places, plan.statement_of[leaf.statement].domain
        asked = {(c.expr.substitute(at, scope), c.equality) for c in domain}
        found.add(frozenset((e, equality) for e, equality in asked if equality or e.interval(scope)[0] < 0))
    return len(found) == 1


def _filled(plan: Plan, leaf: Leaf, loop: Loop) -> bool:
    """Whether a lane can hold the fill of a copy beside lanes that hold elements."""
    alone = len(plan.loops[loop.id].body) == 1 and leaf.mechanism == "plain"
    return alone and plan.statement_of[leaf.statement].origin == "copy"
