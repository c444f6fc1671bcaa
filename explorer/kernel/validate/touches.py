"""Who touches which memory, when and where: the accesses of the steps to the stores that threads or leaves share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ...ir.expr import Expr, var
from ...ir.instructions import stays_in_flight
from ...ir.program import Indirect
from ...poly.feasible import feasible
from ...poly.linear import Condition as Row
from ...poly.linear import Tuple, equal
from ..conditions import Condition
from ..nodes import Apply, Collect, Contribute, Copy, Do, Get, Load, Put, Ref, Wait, WaitProducts
from ..printer import cells_of, writers_of
from ..sites import Store
from .held import LANE, flat
from .points import EVERYWHERE, Cases, Space, both, none_of, rows
from .steps import Step
from .symbolic_loop import SymbolicLoop

LATE = 2
"""By so much a collective's write comes after its reads: the threads meet in between."""


@dataclass(frozen=True, eq=False)
class Touch:
    """An access of a step to memory or to a register array of the plan.

    Attributes
    ----------
    step : Step
    store : Store
    ref : Ref
        The first of its lanes.
    writes : bool
    number : int
        In order of the text, within the step too.
    cases : Cases
        Where it happens.
    atomic : str
        The reduction, where it is an atomic update.
    lanes_read : Cases
        Which of its lanes are really touched.
    """

    step: Step
    store: Store
    ref: Ref
    writes: bool
    number: int
    cases: Cases
    atomic: str = ""
    lanes_read: Cases = EVERYWHERE

    @property
    def lanes(self) -> int:
        """How many neighbours it touches."""
        return self.ref.lanes


def touches(steps: Sequence[Step]) -> tuple[Touch, ...]:
    """The accesses of all steps, in order."""
    return tuple(touch for step in steps for touch in _of(step))


def _of(step: Step) -> Iterator[Touch]:
    node, number = step.node, step.number
    match node:
        case Do():
            inside = both(step.cases, (node.inside,))
            yield from (_touch(step, o, False, number, inside) for o in node.operands if isinstance(o, Ref))
            if isinstance(node.target, Ref):
                atomic = node.site.statement.update or "" if node.atomic else ""
                yield _touch(step, node.target, True, number + 1, step.cases, atomic)
        case Load(value=Get() as get):
            yield from _get(step, get)
        case Put():
            if isinstance(node.value, Get):
                yield from _get(step, node.value)
            yield _touch(step, node.to, True, number + 1, step.cases)
        case Copy():
            lane = var(LANE) if node.lanes > 1 else Expr()
            read = (*(Condition(lane - e) for e in node.begins), *(Condition(e - 1 - lane) for e in node.ends))
            lanes, few = ((read,), step.cases) if node.lanes > 1 else (EVERYWHERE, both(step.cases, (read,)))
            yield _touch(step, node.source, False, number, both(few, (node.inside,)), lanes=lanes)
            yield _touch(step, node.to, True, number + 1, step.cases)
        case Collect() | Contribute():
            inside = both(step.cases, (node.guards,))
            yield from (_touch(step, o, False, number, inside) for o in node.operands if isinstance(o, Ref))
        case _:
            pass
    if isinstance(node, (Collect, Apply)) and node.target.store.space == "register":
        exists = _told(step, cells_of(step.coordinates.low, node))
        yield _touch(step, node.target, True, number + LATE, both(step.cases, (exists,)))
    elif isinstance(node, (Collect, Apply)):
        atomic = node.site.statement.update or "" if node.atomic else ""
        first = _told(step, writers_of(step.coordinates.low, node))
        yield _touch(step, node.target, True, number + LATE, both(step.cases, (first,)), atomic)


def _told(step: Step, conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    return tuple(Condition(c.expr.substitute(step.coordinates.values), c.equality) for c in conditions)


def _touch(step: Step, ref: Ref, writes: bool, number: int, cases: Cases, atomic: str = "",
           lanes: Cases = EVERYWHERE) -> Touch:
    return Touch(step, ref.store, ref, writes, number, cases, atomic, lanes)


def _get(step: Step, get: Get) -> Iterator[Touch]:
    cases = step.cases
    for conj in get.when:
        cases = both(cases, (conj,))
    lanes = EVERYWHERE if get.count is None else ((Condition(get.count - 1 - var(LANE)),),)
    if get.within:  # where it is not asked, the vector lies inside
        inside = Condition(prod(get.ref.store.shape) - 1 - flat(get.ref) - var(LANE))
        asked = tuple((*conj, inside) for conj in get.edge or EVERYWHERE)
        lanes = both(lanes, (*asked, *none_of(get.edge))) if get.edge else both(lanes, asked)
    yield _touch(step, get.ref, False, step.number, cases, lanes=lanes)


def index(touch: Touch) -> tuple[Expr | None, ...]:
    """The cell over the step's variables and its lane: an offset where there are lanes, None along a data-dependent axis."""
    if touch.lanes > 1:
        return (flat(touch.ref) + var(LANE),)
    return tuple(None if isinstance(e, Indirect) else e for e in touch.ref.index)


def wait_for(x: Touch) -> type[Wait | WaitProducts] | None:
    """The kind of waits behind which an access of something in flight is over; None where it is over at once."""
    node = x.step.node
    if isinstance(node, Copy):
        return Wait
    return WaitProducts if isinstance(node, Do) and stays_in_flight(node.site.leaf.mechanism) else None


def conflict(a: Touch, b: Touch, more: tuple[Row, ...], apart: tuple[tuple[Row, ...], ...] = ((),)) -> bool:
    """Whether two touches meet in one cell where further conditions hold between the first (side ``a``) and the second (``b``).

    `apart` are cases, one of which holds as well.
    """
    tuples, cases = meetings_of(a, b, more, apart)
    return any(feasible(tuples, case) for case in cases)


def meetings_of(a: Touch, b: Touch, more: tuple[Row, ...], apart: tuple[tuple[Row, ...], ...] = ((),),
                sized: SymbolicLoop | None = None) -> tuple[tuple[Tuple, Tuple], Iterator[tuple[Row, ...]]]:
    """The variables of two touches, and the cases in which they meet in one cell; with the trip count of a loop left open, where
    `sized` says how.
    """
    left, right = index(a), index(b)
    if len(left) != len(right) or a.ref.flat != b.ref.flat or a.lanes != b.lanes:
        left, right = (_offset(a),), (_offset(b),)
    cells = [equal(e, "a", f, "b") for e, f in zip(left, right, strict=True) if e is not None and f is not None]
    spaces, first, second = [space_of(t) for t in (a, b)], a.cases, b.cases
    bounds = (*spaces[0].rows("a"), *spaces[1].rows("b"))
    tuples = (spaces[0].side("a"), spaces[1].side("b"))
    if sized:
        tuples = (sized.side(spaces[0], "a"), sized.side(spaces[1], "b"))
        bounds = (*sized.rows(spaces[0], "a"), *sized.rows(spaces[1], "b"), sized.one("a", "b"))
        first, second = sized.moved(a.cases, a.step.ranges), sized.moved(b.cases, b.step.ranges)
    base = (*bounds, *cells, *more)
    return tuples, ((*base, *rows(x, "a"), *rows(y, "b"), *case) for x in first for y in second for case in apart)


def _offset(touch: Touch) -> Expr | None:
    if any(isinstance(e, Indirect) for e in touch.ref.index):
        return None
    return flat(touch.ref) + (var(LANE) if touch.lanes > 1 else Expr())


def space_of(touch: Touch) -> Space:
    """The variables of a touch, its lane included."""
    more = {LANE: (0, touch.lanes - 1)} if touch.lanes > 1 else {}
    return Space.of(touch.step.ranges | more)
