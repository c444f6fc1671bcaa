"""Parts of a statement's value that depend on the element of one array alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from ..ir.dtype import DTYPES
from ..ir.expr import Expr, var
from ..ir.finding import Verdict, no
from ..ir.plan import Plan
from ..ir.program import Access, Array, Indirect, Statement
from ..ir.scalar import Call, IndexValue, Read, Scalar, children, rebuild, type_of, walk
from ..ir.tree import Leaf
from ._domain import all_dims, bounds

ORIGIN = "precompute"
"""Of the statements that compute a part before."""


@dataclass(frozen=True)
class Part:
    """A part of a statement's value, in a statement of its own.

    Attributes
    ----------
    user : Statement
        As it was.
    rest : Statement
        As it reads the temporary.
    statement : Statement
        What writes the temporary.
    temporary : Array
    kept : mapping of int to int
        Slots of the user that are left, and which they are then.
    """

    user: Statement
    rest: Statement
    statement: Statement
    temporary: Array
    kept: Mapping[int, int]


def part_of(plan: Plan, leaf: Leaf, s: Statement, slot: int, dtype: str) -> Part | Verdict:
    """The part with a read of a statement, its temporary of the type named or else the value's; or why there is none."""
    array, axes = plan.array_of[s.reads[slot].array], s.reads[slot].index
    names = _names(plan, axes)
    told = _Told(s, axes, names)
    node, part = told.largest(s.value, slot)
    if part == [Read(slot)] and dtype in ("", array.dtype.name):
        return no(f"{leaf.id} reads an element of {array.name} and computes nothing of it alone",
                  "what it is combined with depends on other loops", f"stage('{array.name}', …) makes a copy")
    slots = list(dict.fromkeys(n.slot for f in part for n in walk(f) if isinstance(n, Read)))
    if views := [v.buffer for n, v in leaf.views if n in slots]:
        return no(f"{leaf.id} reads {views[0]}, a copy", hint="precompute before stage")
    ranges = {name: (0, size - 1) for name, size in zip(names, array.shape, strict=True)}
    reads = tuple(Access(s.reads[n].array, tuple(told.over(e) or e for e in s.reads[n].index)) for n in slots)
    for r in reads:
        for e, size in zip(r.index, plan.array_of[r.array].shape, strict=True):
            assert isinstance(e, Expr)
            low, high = e.interval(ranges)
            if low < 0 or high >= size:
                return no(f"{r.array} has no element for some of {array.name}", f"its index goes from {low} to {high}",
                          f"precompute('{s.name}', '{r.array}')")
    product = reduce(lambda a, b: Call("mul", (a, b)), part)
    types = [plan.array_of[r.array].dtype for r in s.reads]
    kind = DTYPES[dtype] if dtype else type_of(product, types)
    temporary = Array(plan.fresh(f"{array.name}_p"), kind, array.shape, "temporary", array.given)
    own = Statement(plan.fresh(f"{s.name}_p"), names, tuple(c for n, size in zip(names, array.shape, strict=True)
                                                            for c in bounds(n, 0, size)),
                    Access(temporary.name, tuple(map(var, names)), "write"), told.moved(product, slots), reads, origin=ORIGIN,
                    line=s.line)
    factors = factors_of(node)
    first = next(n for n, f in enumerate(factors) if f in part)
    others = reduce(lambda a, b: Call("mul", (a, b)), [_TEMPORARY if n == first else f for n, f in enumerate(factors)
                                                       if n == first or f not in part])
    value = rebuild(s.value, lambda n: others if n == node else None)
    left = sorted(_used(s, value) - {_TEMPORARY.slot})
    at = sum(n < slots[0] for n in left)  # where the part's first read was
    kept = {n: place + (place >= at) for place, n in enumerate(left)}
    final, old = kept | {_TEMPORARY.slot: at}, {place: n for n, place in kept.items()}
    reads = tuple(in_slots(s.reads[old[place]], kept, {}) if place != at else Access(temporary.name, axes)
                  for place in range(len(left) + 1))
    rest = replace(s, value=renumbered(value, final, {}), reads=reads, target=in_slots(s.target, kept, {}))
    return Part(s, rest, own, temporary, kept | {len(s.reads): len(reads)})


_TEMPORARY = Read(-1)


def _used(s: Statement, value: Scalar) -> set[int]:
    """The slots that a value of a statement reads, and those that data-dependent indices of these and of the target do."""
    found, queue = set[int](), [value, *(e.value for e in s.target.index if isinstance(e, Indirect))]
    while queue:
        for n in walk(queue.pop()):
            if isinstance(n, Read) and n.slot not in found:
                found.add(n.slot)
                queue += [e.value for e in s.reads[n.slot].index if isinstance(e, Indirect)] if n.slot >= 0 else []
    return found


def _names(plan: Plan, axes: tuple[object, ...]) -> tuple[str, ...]:
    """A dimension for each axis, called after the loop that moves it alone, if there is one."""
    taken, out = set(all_dims(plan.program)), list[str]()
    for n, e in enumerate(axes):
        single = isinstance(e, Expr) and len(e.terms) == 1 and isinstance(e.terms[0][0], str)
        out.append(plan.fresh(f"{e.terms[0][0]}.p" if isinstance(e, Expr) and single else f"{n}.p", frozenset(taken)))
        taken.add(out[-1])
    return tuple(out)


def factors_of(node: Scalar) -> list[Scalar]:
    """What is multiplied with each other in a value."""
    return [f for a in node.args for f in factors_of(a)] if isinstance(node, Call) and node.op == "mul" else [node]


class _Told:
    """What an element of an array tells, by the coordinates of its axes."""

    def __init__(self, s: Statement, axes: tuple[object, ...], names: tuple[str, ...]) -> None:
        self.statement = s
        self.axes = [(e, name) for e, name in zip(axes, names, strict=True) if isinstance(e, Expr)]
        self.values = {str(e.terms[0][0]): var(name) - e.const for e, name in self.axes
                       if len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1}

    def over(self, e: object) -> Expr | None:
        """An index over the axes; None where they do not tell it."""
        if not isinstance(e, Expr):
            return None
        for axis, name in self.axes:
            if (e - axis).is_constant and axis.terms:
                return var(name) + (e - axis).const
        return e.substitute(self.values) if e.variables() <= self.values.keys() else None

    def tells(self, node: Scalar) -> bool:
        """Whether an expression depends on nothing else."""
        return all(self.over(n.expr) is not None if isinstance(n, IndexValue) else
                   all(self.over(e) is not None for e in self.statement.reads[n.slot].index)
                   for n in walk(node) if isinstance(n, (IndexValue, Read)))

    def largest(self, node: Scalar, slot: int) -> tuple[Scalar, list[Scalar]]:
        """The largest part with a read of a slot that depends on nothing else: factors of a product."""
        factors = factors_of(node)
        part = [f for f in factors if self.tells(f)]
        if any(Read(slot) in walk(f) for f in part):
            return node, part
        inside = next(f for f in factors if Read(slot) in walk(f))
        return self.largest(next(c for c in children(inside) if Read(slot) in walk(c)), slot)

    def moved(self, node: Scalar, slots: list[int]) -> Scalar:
        """An expression over the axes."""

        def change(n: Scalar) -> Scalar | None:
            if isinstance(n, IndexValue):
                return IndexValue(self.over(n.expr) or n.expr)
            return Read(slots.index(n.slot)) if isinstance(n, Read) else None

        return rebuild(node, change)


def renumbered(value: Scalar, slots: Mapping[int, int], dims: Mapping[str, Expr]) -> Scalar:
    """A value with its reads in other slots, and expressions for dimensions."""

    def change(node: Scalar) -> Scalar | None:
        if isinstance(node, Read):
            return Read(slots[node.slot])
        return IndexValue(node.expr.substitute(dims)) if isinstance(node, IndexValue) else None

    return rebuild(value, change)


def in_slots(access: Access, slots: Mapping[int, int], dims: Mapping[str, Expr]) -> Access:
    """An access whose data-dependent indices read other slots, with expressions for dimensions."""
    index = tuple(Indirect(renumbered(e.value, slots, dims)) if isinstance(e, Indirect) else e.substitute(dims)
                  for e in access.index)
    return replace(access, index=index)
