"""A refused step, executed all the same: the illegal order at the smallest sizes that show a wrong cell.

The step is taken without judgement, its plan is run in orders that a machine may choose (:mod:`explorer.run.lockstep`), and the
outputs are compared with the program's own loops, all in float64.  Sizes are tried from small to large and then made smaller
one by one.  Not every illegal order shows: the value that it spoils may never be used.  Then the result says so.
"""

from __future__ import annotations

import textwrap
import time as clock
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import DeviceError, ExplorerError
from ..ir.finding import Finding, Verdict
from ..ir.interpret import interpret
from ..ir.plan import Plan
from ..ir.program import Program
from ..ir.tree import Loop, walk
from ..poly.count import instances
from ..poly.judge import judge
from ..schedule import Schedule, Step
from .inputs import poisoned, seeded_arrays, widened
from .lockstep import Order, run_lockstep
from .ragged import Again

TRIED = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 33, 40, 48, 64, 65, 96, 128, 129, 256, 300)
"""Values of every size, one after the other: small ones, and a little more than the usual tiles."""
MOST_INSTANCES = 20_000
"""Statement instances that are interpreted in one attempt."""
SECONDS = 5.0
"""After which the search ends."""
RELATIVE = 1e-6
"""Larger differences than this between two orders in float64 are not rounding."""
SHOWN = 8
"""Cells shown around the first wrong one."""
WIDTH = 100
"""Characters of a line of text."""


@dataclass(frozen=True)
class Counterexample:
    """What an illegal order computes.

    Attributes
    ----------
    step : str
    caught : bool
        Whether an output cell is wrong.
    verdict : str
        In words; also why there was nothing to run, or nothing to see.
    sizes : tuple of (str, int)
        The sizes it was run at (the last ones tried, where nothing was caught).
    array : str
    element : tuple of int
        The first wrong cell; `got` and `expected` are its values in words.
    cells : tuple of (str, str, str, str)
        Cells around it: name, got, expected, ``"wrong"`` or ``"right"``.
    finding : Finding or None
        The pair of instances at these sizes.
    """

    step: str
    caught: bool
    verdict: str
    sizes: tuple[tuple[str, int], ...] = ()
    array: str = ""
    element: tuple[int, ...] = ()
    got: str = ""
    expected: str = ""
    cells: tuple[tuple[str, str, str, str], ...] = ()
    finding: Finding | None = None

    def __str__(self) -> str:
        wrong = [f"  {cell}: {got}, should be {expected}" for cell, got, expected, mark in self.cells if mark == "wrong"]
        verdict = textwrap.wrap(self.verdict, WIDTH, subsequent_indent="  ")
        return "\n".join([*verdict, *wrong, *([f"  because {self.finding.what}"] if self.finding else [])])


@dataclass(frozen=True)
class _Trial:
    """The step at some sizes: the plan it would make, and what speaks against it."""

    sizes: dict[str, int]
    program: Program
    plan: Plan
    finding: Finding


def counterexample(schedule: Schedule, step: Step, *, again: Again | None = None, seed: int = 0,
                   seconds: float = SECONDS) -> Counterexample:  # fmt: skip
    """Run the order that a refused step would make.

    Parameters
    ----------
    schedule : Schedule
        The schedule that the step was refused on.
    step : Step
        A transformation; also one that is legal but leaves updates that nothing collects.
    again : callable, optional
        ``again(sizes)`` gives the schedule at other sizes; without it only its own sizes are tried.
    seed : int
        Of the inputs.
    seconds : float
        After which the search ends.

    Returns
    -------
    Counterexample
    """
    refusal = _refusal(schedule, step)
    if isinstance(refusal, str):
        return Counterexample(str(step), False, refusal)
    end, last = clock.monotonic() + seconds, None
    for sizes in _sizes(schedule, again):
        if clock.monotonic() > end:
            break
        trial = _trial(schedule, step, again, sizes)
        if trial is None:
            continue
        last = trial
        if found := _run(step, trial, seed):
            return _smaller(schedule, step, again, seed, found, end)
    if last is None:
        return Counterexample(str(step), False, "the step is refused only at sizes that are too large to interpret here",
                              finding=refusal)
    where = _words(last.sizes)
    return Counterexample(
        str(step), False, f"no output cell is wrong in any order that was tried, up to {where}: the value that the order would "
        "spoil is not used later, or the result does not depend on it; the order is illegal all the same",
        tuple(last.sizes.items()), finding=last.finding)  # fmt: skip


def _refusal(schedule: Schedule, step: Step) -> Finding | str:
    """What speaks against the step, or why there is no order to run."""
    verdict: Verdict = step.check(schedule.plan)
    if not verdict:
        return f"{step} cannot be made at all, so there is no order to run: {verdict.what}"
    judgement = judge(step.rewrite(schedule.plan))
    if judgement.refusals:
        return judgement.refusals[0]
    if judgement.obligations:
        return judgement.obligations[0]
    return f"{step} is legal: every order that it allows computes what the program says"


def _sizes(schedule: Schedule, again: Again | None) -> Iterator[dict[str, int]]:
    """Sizes from small to large, none larger than the schedule's own."""
    own = dict(schedule.source.sizes)
    seen = set()
    for value in TRIED if again is not None else ():
        sizes = {name: min(value, most) for name, most in own.items()}
        if tuple(sizes.values()) not in seen:
            seen.add(tuple(sizes.values()))
            yield sizes
    if tuple(own.values()) not in seen:
        yield own


def _trial(schedule: Schedule, step: Step, again: Again | None, sizes: Mapping[str, int]) -> _Trial | None:
    """The step at these sizes; None where it does not apply, is legal there, or is too large."""
    own = dict(schedule.source.sizes)
    try:
        smaller = schedule if again is None or dict(sizes) == own else again(sizes)
        plan = smaller.plan
        if not step.check(plan):
            return None
        new = step.rewrite(plan)
        if sum(instances(new).values()) > MOST_INSTANCES or _places(new) > MOST_INSTANCES:
            return None
        judgement = judge(new)
    except ExplorerError:
        return None
    finding = next(iter((*judgement.refusals, *judgement.obligations)), None)
    return _Trial(dict(sizes), smaller.source, new, finding) if finding else None


def _places(plan: Plan) -> int:
    """Iterations of all loops, as a bound on what the interpreter goes through."""
    def count(nodes: tuple) -> int:
        return sum(max(n.extent, 1) * max(count(n.body), 1) if isinstance(n, Loop) else 1 for n in nodes)

    return sum(count(k.body) for k in plan.kernels)


def _orders(plan: Plan) -> tuple[Order, ...]:
    """The orders that are tried: several only where blocks, threads or asynchronous copies leave them open."""
    loops = [n for k in plan.kernels for n in walk(k.body) if isinstance(n, Loop)]
    orders = [Order()]
    if any(x.is_place for x in loops):
        orders.append(Order("together", False))
    if any(x.is_block for x in loops):
        orders += [Order("last to first"), Order("first to last")]
    if any(leaf.mechanism == "async" for leaf, _, _ in plan.leaves):
        orders.append(Order(early=True))
    return tuple(orders)


def _run(step: Step, trial: _Trial, seed: int) -> Counterexample | None:
    """The first order with a wrong cell, if any."""
    try:
        held = seeded_arrays(trial.program, seed)
    except DeviceError:
        return None
    given = {a.name: held[a.name] if a.role != "out" else poisoned(a) for a in trial.program.parameters}
    expected = interpret(trial.program, given, exact=True)
    for order in _orders(trial.plan):
        try:
            got = run_lockstep(trial.plan, held, order)
        except DeviceError as error:
            return Counterexample(str(step), True, f"at {_words(trial.sizes)}, {error.what}: {error.why}",
                                  tuple(trial.sizes.items()), finding=trial.finding)
        if found := _compared(step, trial, order, got, expected):
            return found
    return None


def _compared(step: Step, trial: _Trial, order: Order, got: Mapping[str, np.ndarray],
              expected: Mapping[str, np.ndarray]) -> Counterexample | None:  # fmt: skip
    """The first wrong cell with the cells around it."""
    for array in trial.program.parameters:
        if array.role == "in":
            continue
        want = np.asarray(widened(array, expected[array.name]), np.float64).reshape(-1)
        have = np.asarray(got[array.name], np.float64).reshape(-1)
        wrong = ~_equal(have, want)
        if not wrong.any():
            continue
        first = int(np.flatnonzero(wrong)[0])
        start = max(0, min(first - SHOWN // 2, want.size - SHOWN))
        cells = tuple((_cell(array.name, array.shape, n), _number(have[n]), _number(want[n]), "wrong" if wrong[n] else "right")
                      for n in range(start, min(start + SHOWN, want.size)))
        element = tuple(int(i) for i in np.unravel_index(first, array.shape)) if array.shape else ()
        verdict = (f"at {_words(trial.sizes)}, {_cell(array.name, array.shape, first)} is {_number(have[first])} and should be "
                   f"{_number(want[first])}; {int(wrong.sum())} of {want.size} cells are wrong ({order})")
        return Counterexample(str(step), True, verdict, tuple(trial.sizes.items()), array.name, element, _number(have[first]),
                              _number(want[first]), cells, trial.finding)
    return None


def _equal(have: np.ndarray, want: np.ndarray) -> np.ndarray:
    scale = max(float(np.max(np.abs(want), initial=0.0, where=np.isfinite(want))), 1e-300)
    with np.errstate(invalid="ignore"):
        return (np.abs(have - want) <= RELATIVE * scale) | (have == want) | (np.isnan(have) & np.isnan(want))


def _smaller(schedule: Schedule, step: Step, again: Again | None, seed: int, found: Counterexample, end: float) -> Counterexample:
    """The same at sizes of which none can be one smaller (as far as time allows)."""
    if again is None:
        return found
    for name, value in found.sizes:
        for less in range(1, value):
            if clock.monotonic() > end:
                return found
            trial = _trial(schedule, step, again, {**dict(found.sizes), name: less})
            if trial and (better := _run(step, trial, seed)):
                found = better
                break
    return found


def _words(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items()) or "its own sizes"


def _cell(name: str, shape: tuple[int, ...], flat: int) -> str:
    return f"{name}[{', '.join(str(int(i)) for i in np.unravel_index(flat, shape))}]" if shape else name


def _number(value: float) -> str:
    return f"{float(value):.6g}"
