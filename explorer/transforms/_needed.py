"""Which iteration of a consumer needs which element: its loops' values, told from the elements that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..ir.digits import digits, told
from ..ir.expr import Atom, Expr, Quotient, Remainder, const, var
from ..ir.program import Indirect, Statement
from ..ir.tree import Loop
from ._domain import dim_ranges
from ._uses import Use


@dataclass(frozen=True)
class Axis:
    """An axis of an array whose index in the producer is one of its dimensions, up to a constant.

    Attributes
    ----------
    dim : str
        The producer's dimension; the element's index is ``dim + shift``.
    shift : int
    step : int
        The consumers' indices are multiples of it, up to less than it: ``2*c`` and ``2*c + 1`` have the step 2.  Negative
        where they run backwards.
    base : int or None
        What the indices are multiples from; None where each consumer has its own (of step 1 or -1).
    """

    dim: str
    shift: int
    step: int = 1
    base: int | None = None

    @property
    def element(self) -> Expr:
        """The element's index, over the producer's dimensions."""
        return var(self.dim) + self.shift

    def place(self, own: int) -> Expr:
        """How far the element is along the consumers' indices, for one whose index has the constant `own`."""
        base = own if self.base is None else self.base
        return self.element - base if self.step > 0 else base - self.element


def axes_of(statement: Statement, uses: Sequence[Use]) -> dict[int, Axis]:
    """The axes of a producer's target that its dimensions alone index, with the steps of the consumers' indices."""
    known = dim_ranges(statement)
    out: dict[int, Axis] = {}
    for number, e in enumerate(statement.target.index):
        if isinstance(e, Expr) and len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1:
            axis = Axis(e.terms[0][0], e.const)
            out[number] = replace(axis, **_steps(axis.element.interval(known)[0], [_index(u, number) for u in uses], uses))
    return out


def _index(u: Use, axis: int) -> Expr:
    e = u.access.index[axis]
    assert not isinstance(e, Indirect)
    return e


def _steps(first: int, indices: Sequence[Expr], uses: Sequence[Use]) -> dict[str, int]:
    """Step and base of indices that lie within one step of each other; `first` is the lowest element that is written."""
    found = {min((abs(c) for _, c in e.terms), default=0) * (-1 if all(c < 0 for _, c in e.terms) else 1) for e in indices}
    step = found.pop() if len(found) == 1 else 1
    offsets = [e.const if step > 0 else -e.const for e in indices]
    if step == 0 or max(offsets) - min(offsets) >= abs(step):
        return {"step": -1 if step < 0 else 1}
    if abs(step) == 1:
        return {"step": step}
    e, u = indices[0], uses[0]
    lowest = (e - e.const).interval(dim_ranges(u.statement))[0]
    base = max(max(offsets) - abs(step) + 1, min(min(offsets), first - lowest if step > 0 else min(offsets)))
    return {"step": step, "base": base if step > 0 else -base}


def names_of(u: Use, axes: Mapping[int, Axis]) -> dict[Atom, Expr]:
    """What the element that a consumer reads tells: the dimensions of the consumer, their quotients and remainders.

    Returns
    -------
    dict
        Variables, quotients and remainders over the consumer's dimensions to expressions over the producer's.
    """
    known, out = dim_ranges(u.statement), dict[Atom, Expr]()
    for number, axis in axes.items():
        e = _index(u, number)
        sign = 1 if axis.step > 0 else -1
        plain = Expr(tuple((a, c * sign) for a, c in e.terms))
        out |= digits(plain, axis.place(e.const), known) or {}
    for atom in [a for a in out if isinstance(a, Quotient)]:
        e, rest = atom.expr, Remainder(atom.expr, atom.by)
        single = len(e.terms) == 1 and isinstance(e.terms[0][0], str) and e.terms[0][1] == 1 and rest in out
        if single:
            out.setdefault(e.terms[0][0], out[atom] * atom.by + out[rest] - e.const)
    return out


def value_of(loop: Loop, u: Use, names: Mapping[Atom, Expr], statement: Statement) -> Expr | None:
    """The loop's value where the consumer reads an element, over the producer's dimensions; None where that does not tell it."""
    if loop.extent == 1:
        return const(loop.start)
    found = told(dict(u.leaf.when)[loop.id], names)
    return None if found is None else found.simplify(dim_ranges(statement))
