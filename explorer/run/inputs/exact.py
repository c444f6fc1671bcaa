"""Inputs on which a program's arithmetic is exact, or nearly, so that the comparison with the reference is sharp.

A bound of rounding errors must let pass what rounding could have done, and so lets pass a lost addend of a long sum.  Where
nothing rounds there is nothing to excuse: on small integers sums, products, maxima and casts have one right answer in any order.
The reference finds out by itself which cells are exact (:mod:`explorer.kernel.reference.error_bound`); the inputs are chosen
here:

``integers``
    Positive, so that leaving out any addend, or counting one twice, changes the sum; all rows differ, so that swapped ones show;
    as large as the sums stay exact, so that an accumulator with fewer digits does not hold them.
``negatives``
    -4 to -1: ties, and maxima below 0, which an element that should not be there would win.
``groups``
    For programs that divide or take roots: rows that are constant (a layer normalisation is then nothing but its epsilon), of
    small variance, scaled by powers of two, and of an exact mean.  A row is what a reduction of the program combines.
``peaks``
    For maxima, minima and exponentials: in each row the first element, the last, another or a few stand far above -32768.  An
    element that is left out is then missed; differences have the exponentials 1 and 0, and their sums count.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...ir.expr import Expr
from ...ir.memo import per_program
from ...ir.operations import APPROXIMATE, FUSED, OPERATIONS
from ...ir.program import Array, Program, Statement
from ...ir.scalar import Call, Cast, Literal, Read, Scalar, walk
from ...kernel.reference.error_bound import updates_per_cell
from .magnitude import Magnitude, faults, inexact
from .seeded import Seeded

KINDS = {
    "integers": "small integers",
    "negatives": "negative integers with ties",
    "groups": "constant rows, small variances, scaled rows",
    **dict.fromkeys(("peaks", "peaks 1", "peaks 2", "peaks 3"), "lone peaks in rows of -32768"),
}
"""The kinds of inputs, and how a result calls them."""

_EXPONENTIALS = frozenset(("exp", APPROXIMATE["exp"], FUSED))
_LARGEST = {"f16": 10, "bf16": 7, "f8e4m3": 4, "f8e5m2": 3}
"""Bits of the largest integers, of other float types 10 too: more digits than f16 has come about in sums."""
_FORMS = 4
"""Forms that the peaks of a row have in turn: at its start, at its end, anywhere, several."""
_SPREAD = 32
"""Peaks of a row that has a few, about."""


def kinds_for(program: Program) -> tuple[str, ...]:
    """Which of :data:`KINDS` have something to show in a program."""
    operations = {n.op for s in program.statements for n in walk(s.value) if isinstance(n, Call)}
    found = ["integers", "negatives"]
    found += ["groups"] if any(OPERATIONS[op].positive for op in operations) else []
    if peaked := _peaked(program):
        few = min(_groups(program, program.array_of[name])[1] for name in peaked) < _FORMS
        found += [k for k in KINDS if k == "peaks" or (few and k.startswith("peaks"))]  # each row of few takes its turns
    return tuple(found)


@per_program(8)
def magnitude(program: Program, kind: str) -> Magnitude:
    """The largest integers (of ``"negatives"``: the densest) on which everything is exact that can be."""
    best = faults(program, Magnitude(1, 1 << 30))
    dense = [Magnitude(1 << bits, 1) for bits in range(10, 1, -1)] if kind == "integers" else [Magnitude(4, 1)]
    sparse = [Magnitude(3, 1 << bits) for bits in range(16)]
    return next((m for m in (*dense, *sparse) if faults(program, m) == best), Magnitude(3, 1))


def ranges(program: Program, kind: str, array: Array, positive: bool, factors: int) -> Seeded:
    """How an array that is no index is made; the seed is not its own yet.

    Parameters
    ----------
    program : Program
    kind : str
        One of :data:`KINDS`.
    array : Array
    positive : bool
        Whether it stands under roots or fraction lines: then 1 and 4, which have exact roots and reciprocals, and in ``"groups"``
        0 and 4, where an epsilon beside it counts.
    factors : int
        How many of its elements are multiplied up, if not 0: then most are -1.
    """
    if array.dtype.kind == "bool":  # mostly true: what a mask hides cannot be missed
        return Seeded(0, "integers", int(kind != "negatives"), 2)
    if factors:
        return Seeded(0, "sparse", 2, 3, every=max(factors // 16, 2), rest=1 if positive or array.dtype.unsigned else -1)
    if positive:
        zeros = kind == "groups" and array.dtype.kind == "float" and array.size > _FORMS
        return Seeded(0, "sparse", 4, 5, every=2, rest=int(not zeros))
    if array.dtype.kind == "int":
        low = 0 if array.dtype.unsigned else -4
        return Seeded(0, "integers", low, low + 4) if kind == "negatives" else Seeded(0, "integers", 1, 9)
    inner, outer = _groups(program, array)
    if kind == "groups" and array.name not in _weights(program):
        if outer == 1 and _kept(program, array) is None:  # one number, so that what it is added to keeps its form
            return Seeded(0, "integers", 2, 3)
        return Seeded(0, "groups", inner=inner, outer=outer)
    if kind.startswith("peaks") and array.name in _peaked(program):
        peak = -1024 * _peaked(program)[array.name]
        few = max(array.size // max(outer, 1) // _SPREAD, 2)
        turn = int(kind.removeprefix("peaks") or 0)
        return Seeded(0, "peaks", peak, peak + 1 + turn, every=few, rest=32 * peak, inner=inner, outer=outer)
    if array.name in _weights(program):
        return Seeded(0, "sparse", *((-1, 0) if kind == "negatives" else (1, 2)), every=max(array.shape[0], 2))
    size = magnitude(program, "negatives" if kind == "negatives" else "integers")
    top = min(size.top, 1 << _LARGEST.get(array.dtype.name, 10))
    low, high = (-min(top, 4), 0) if kind == "negatives" else (1, top + 1)
    return Seeded(0, "integers", low, high) if size.every == 1 else Seeded(0, "sparse", low, high, every=size.every)


@per_program(1)
def _weights(program: Program) -> frozenset[str]:
    """Inputs that are nothing but factors of sums over values that are not exact: dense, they would blow up their errors."""
    rounded = inexact(program, Magnitude(1, 1 << 30))
    found: set[str] = set()
    for s in program.statements:
        product = s.update == "sum" and isinstance(s.value, Call) and s.value.op == "mul"
        own = {a.array for a in s.reads if program.array_of[a.array].role == "in" and len(a.index) > 1}
        if product and s.name in rounded and any(program.array_of[a.array].role == "temporary" for a in s.reads):
            found |= own
    for s in program.statements:
        if s.update != "sum":
            found -= {a.array for a in s.reads}
    return frozenset(found)


def _groups(program: Program, array: Array) -> tuple[int, int]:
    """``(inner, outer)``: element i is of row ``i // inner % outer``; a row is what one sum (or maximum) takes of the array."""
    kept = _kept(program, array)
    if kept is None:
        kept = list(range(len(array.shape) - 1))
    if not kept:
        return 1, 1
    first = last = kept[-1]
    while first - 1 in kept:
        first -= 1
    return max(prod(array.shape[last + 1 :]), 1), max(prod(array.shape[first : last + 1]), 1)


def _kept(program: Program, array: Array) -> list[int] | None:
    """The dimensions that the first reduction of the array keeps; None if none reads it."""
    for statement in program.statements:
        uses = [a for a in statement.reads if a.array == array.name]
        if statement.update is None or not uses or updates_per_cell(statement, program) == 1:
            continue
        named = {v for e in statement.target.index if isinstance(e, Expr) for v in e.variables()}
        return [p for p, e in enumerate(uses[0].index) if isinstance(e, Expr) and e.variables() and e.variables() <= named]
    return None


@per_program(1)
def _peaked(program: Program) -> dict[str, int]:
    """Arrays that a maximum or minimum is taken of, or that are exponents: 1, or -1 where it is the minimum."""
    signs = {a.array: -1 if s.update == "min" else 1 for s in program.statements if s.update in ("max", "min") for a in s.reads}
    named = dict.fromkeys(_exponents(program), 1) | signs
    return {a.name: named[a.name] for a in program.parameters if a.name in named and a.dtype.kind == "float" and a.role != "out"}


@per_program(1)
def _exponents(program: Program) -> frozenset[str]:
    """Arrays whose elements are exponents but for sums, constants and the choice among them, through temporaries too."""
    found = {name for s in program.statements for n in walk(s.value) if isinstance(n, Call) and n.op in _EXPONENTIALS
             for arg in n.args for name in _straight(s, arg)}  # fmt: skip
    while True:
        more = {name for s in program.statements if s.target.array in found and s.update in (None, "max", "min")
                for name in _straight(s, s.value)}  # fmt: skip
        if more <= found:
            return frozenset(found)
        found |= more


def _straight(statement: Statement, value: Scalar) -> Iterator[str]:
    if isinstance(value, Read):
        yield statement.reads[value.slot].array
    elif isinstance(value, Cast) and value.dtype.kind == "float":
        yield from _straight(statement, value.arg)
    elif isinstance(value, Call):
        scaled = value.op in ("mul", "div") and any(isinstance(a, Literal) and a.value for a in value.args)
        for n, arg in enumerate(value.args):
            if scaled or n in OPERATIONS[value.op].linear:
                yield from _straight(statement, arg)
