"""Updates that change nothing where a condition fails, because a staged copy has its fill there.

Beyond an array's edge a copy holds zeros.  A product is zero where one factor is such a zero and the other one is an element of a
staged copy (real data, never uninitialised memory): zero times a finite number is zero.  Only an infinity or NaN in the input
would show, as it does in every convolution that pads with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..ir.expr import Expr, Ranges, const, var
from ..ir.memo import per_program
from ..ir.operations import OPERATIONS
from ..ir.plan import Plan
from ..ir.program import Constraint, Statement
from ..ir.scalar import REDUCTIONS, Call, Cast, Literal, Read, Scalar, argument_types
from ..ir.tree import Leaf, Loop, ranges
from .early_end import ends_before
from .feasible import feasible
from .linear import Tuple, at_least, at_most, box


def _fails_with(inside: Expr, failing: Expr, scope: Ranges) -> bool:
    """Whether one condition, ``inside >= 0``, fails wherever another one does."""
    if (inside - failing).interval(scope)[1] <= 0:
        return True
    names = inside.variables() | failing.variables()
    known = tuple(sorted((name, *scope[name]) for name in names if name in scope))
    return len(known) == len(names) and _never_apart(inside, failing, known)


@lru_cache(maxsize=4096)
def _never_apart(inside: Expr, failing: Expr, known: tuple[tuple[str, int, int], ...]) -> bool:
    """The same, exactly: quotients that were put together in different ways do not cancel term by term."""
    everywhere = box(((var(name), low, high - low + 1) for name, low, high in known), "e")
    at = (Tuple("", "e", tuple(name for name, _, _ in known)),)
    return not feasible(at, (*everywhere, at_least(inside, "e", 0), at_most(failing, "e", -1)))


class Data:
    """A number of the program's input, not known here."""


DATA = Data()


@per_program(256)
def fills(plan: Plan) -> Fills:
    """The copies of a plan and what they hold beyond the edges."""
    return Fills(plan)


class Fills:
    """What staged copies hold where conditions fail.

    Parameters
    ----------
    plan : Plan
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @cached_property
    def copy_of(self) -> dict[str, Statement]:
        """The copy that fills a buffer."""
        found = ((leaf, self.plan.statement_of[leaf.statement]) for leaf, _, _ in self.plan.leaves)
        return {view.buffer: s for leaf, s in found if s.origin == "copy" and (view := leaf.view(len(s.reads)))}

    def is_identity(self, leaf: Leaf, above: tuple[Loop, ...], constraint: Constraint) -> bool:
        """Whether an update's value is the identity of its reduction wherever the constraint, of its domain, fails.

        Parameters
        ----------
        leaf : Leaf
        above : tuple of Loop
            The loops around it.
        constraint : Constraint
        """
        statement, scope = self.plan.statement_of[leaf.statement], ranges(above)
        if statement.update is None or constraint.equality:
            return False
        fixed = {x.id: const(x.start) for x in above if x.extent == 1}
        failing = constraint.expr.substitute(dict(leaf.at), scope).substitute(fixed, scope)
        elements = {slot: (self.copy_of.get(view.buffer), tuple(e.substitute(fixed, scope) for e in view.element))
                    for slot, view in leaf.views}
        value = self._fold(statement.value, statement, elements, failing, scope)
        view = leaf.view(len(statement.reads))
        target = self.plan.buffer_of[view.buffer].dtype if view else self.plan.array_of[statement.target.array].dtype
        return value is not None and value is not DATA and bool(value == REDUCTIONS[statement.update].identity(target))

    def _fold(self, value: Scalar, statement: Statement, elements: Mapping[int, tuple[Statement | None, tuple[Expr, ...]]],
              failing: Expr, scope: Ranges) -> Any:
        """The value where ``failing < 0``, or None if it is not known."""
        if isinstance(value, Literal):
            return value.dtype.wide.numpy.type(value.value)
        if isinstance(value, Read):
            copy, element = elements.get(value.slot, (None, ()))
            return None if copy is None or not element else self._copied(copy, element, failing, scope)
        if isinstance(value, Cast):
            arg = self._fold(value.arg, statement, elements, failing, scope)
            return None if arg is None or arg is DATA else value.dtype.wide.numpy.type(arg)
        if not isinstance(value, Call):
            return None
        args = [self._fold(a, statement, elements, failing, scope) for a in value.args]
        if any(a is None for a in args):
            return None
        if any(a is DATA for a in args):
            zero = value.op == "mul" and any(a is not DATA and a == 0 for a in args)
            return 0 if zero else DATA if OPERATIONS[value.op].keeps_finite else None
        kinds = argument_types(value, [self.plan.array_of[a.array].dtype for a in statement.reads])
        with np.errstate(all="ignore"):
            return OPERATIONS[value.op].numpy(*(kind.numpy.type(a) for kind, a in zip(kinds, args, strict=True)))

    def _copied(self, copy: Statement, element: Sequence[Expr], failing: Expr, scope: Ranges) -> Any:
        """The value of an element of a staged copy where ``failing < 0``: its fill, :data:`DATA`, or None if it may not exist."""
        at = dict(zip(copy.dims, element, strict=True))
        asked = [(c, c.expr.substitute(at, scope)) for c in copy.domain]
        if any(c.equality or (e.interval(scope)[0] < 0 and not ends_before(self.plan, scope, e)) for c, e in asked):
            return None
        for c in copy.inside:
            if not c.equality and _fails_with(c.expr.substitute(at, scope), failing, scope):
                return self.plan.array_of[copy.target.array].dtype.wide.numpy.type(copy.fill)
        values: list[Any] = []
        for leaf, _, _ in self.plan.leaves:
            if leaf.statement == copy.name:
                when = dict(leaf.when)
                elements = {
                    slot: (self.copy_of.get(view.buffer), tuple(e.substitute(when).substitute(at, scope) for e in view.element))
                    for slot, view in leaf.views if slot < len(copy.reads)
                }
                values.append(self._fold(copy.value, copy, elements, failing, scope))
        known = bool(values) and not copy.inside and all(v is not None and v is not DATA and v == values[0] for v in values)
        return values[0] if known else DATA
