"""The least pair of accesses that race, and for which trip counts there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ....errors import Undecided
from ....ir.expr import Expr, const
from ....ir.finding import Act, Proof
from ....poly.linear import Case
from ....poly.linear import Condition as Row
from ....poly.symbolic_trips import SHOWN, Failing, condition, failing, least
from ..points import Coordinates
from ..steps import Step, common
from ..symbolic_loop import sized
from ..touches import Touch, meetings_of, wait_for
from .lifted import judged_as_plan

Way = tuple[Touch, Touch, Callable[[], tuple[Row, ...]]]
"""Two accesses, the first of which comes first, and what holds of their loops."""


def raced(ways: Sequence[Way], more: tuple[Row, ...], apart: tuple[Case, ...], steps: Sequence[Step], coordinates: Coordinates,
          why: str) -> Proof | None:
    """What shows that two accesses race.

    Parameters
    ----------
    ways : sequence of Way
        How the two may come one after the other with nothing between them.
    more : tuple of Row
        What holds of every pair.
    apart : tuple of Case
        One of which holds, too.
    steps : sequence of Step
        Of the whole text.
    coordinates : Coordinates
    why : str
        What is missing between them.
    """
    found: list[tuple[Failing, Touch, Touch]] = []
    around = ways[0][0].step.loops[: common(ways[0][0].step, ways[0][1].step)]
    loop = sized(steps, coordinates.low.kernel, around)
    if loop is None:
        return None
    try:
        for x, y, rows in ways:
            tuples, cases = meetings_of(x, y, (*more, *rows()), apart, loop)
            order = [(side, name) for side, t in (("a", x), ("b", y)) for name in shown(t.step, coordinates)]
            if (one := failing(tuples, cases, order)) is not None:
                found.append((one, x, y))
        if not found:
            return None
        first, at = least([f for f, _, _ in found], [f"a:{r.node.var}" for r in around])
        _, x, y = next(f for f in found if f[0] is first)
        points = [{n: at[f"{side}:{n}"] for n in shown(t.step, coordinates)} for side, t in (("a", x), ("b", y))]
        sides = [act(t.step, point, _does(t, point), coordinates) for t, point in zip((x, y), points, strict=True)]
        ring = _as_ring(x, y, at[SHOWN], steps, coordinates)
        sizes = ((SHOWN, at[SHOWN]), *((r.node.var, at[f"a:{r.node.var}"]) for r in around))
        if ring is not None:
            others = (size for size in ring.least if size[0] not in dict(sizes))
            return replace(ring, least=(*others, *sizes), source=sides[0], sink=sides[1], says=why)
        return Proof(condition([f for f, _, _ in found]), sizes, sides[0], sides[1], why)
    except Undecided:
        return None


def _as_ring(x: Touch, y: Touch, trips: int, steps: Sequence[Step], coordinates: Coordinates) -> Proof | None:
    """The condition over stages, too, where the two are a copy or a product in flight and another access of a ring's slot: a wait
    that is no meeting is none for other threads, and the text without such waits fails first with as many iterations.
    """
    kind = next((kind for t in (x, y) if (kind := wait_for(t)) is not None), None)
    if kind is None:
        return None
    proof = judged_as_plan([s for s in steps if not isinstance(s.node, kind)], coordinates)
    return proof if proof and dict(proof.least).get(SHOWN) == trips else None


def shown(step: Step, coordinates: Coordinates) -> tuple[str, ...]:
    """The loops around a step and the coordinates of its thread."""
    return (*(r.node.var for r in step.loops), *coordinates.threads)


def act(step: Step, at: Mapping[str, int], does: str, coordinates: Coordinates, all_threads: bool = False) -> Act:
    """What a step does at some values of its variables."""
    names = tuple(r.node.var for r in step.loops)
    role = {coordinates.low.role_name[f"thread.{a}"]: f"thread.{a}" for a in "xyz"}
    place = () if all_threads else tuple((role[n], at[n]) for n in coordinates.threads)
    who = "every thread" if all_threads else "thread " + ", ".join(f"{n} = {at[n]}" for n in coordinates.threads)
    return Act(step.leaf or next(iter(step.node.ids), "the barrier"), tuple(at[n] for n in names), place, (), does, names, who)


def _does(t: Touch, at: Mapping[str, int]) -> str:
    known = {**dict.fromkeys(t.step.coordinates.shared, const(0)), **{n: const(v) for n, v in at.items()}}
    index = ", ".join(str(e.substitute(known)) if isinstance(e, Expr) else "…" for e in t.ref.index)
    return f"{'writes' if t.writes else 'reads'} {t.store.name}[{index}]"
