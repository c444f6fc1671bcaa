"""What kind of reduction a kernel is: its parallel and reduced loops, and the axis that is contiguous in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...ir.expr import Expr
from ...ir.plan import Plan
from ...ir.tree import Leaf, Loop
from ...schedule import Schedule
from .._steps import chain, own_temporaries

WRITTEN_OUT = 16
"""Iterations of a contiguous loop that one thread runs one after the other, written out."""


@dataclass(frozen=True)
class ReductionForm:
    """Parallel loops around reductions over the same loops.

    Attributes
    ----------
    kernel : str
    parallel, reduced : tuple of str
        Loops, outermost first.
    updates : tuple of str
        The statements that reduce.
    starts : tuple of str
        The statements that start the results, in the body before the reduced loops.
    array : str
        The largest array that the updates read.
    axes : tuple of str
        The loops that walk its axes, in order, without those of one iteration.
    """

    kernel: str
    parallel: tuple[str, ...]
    reduced: tuple[str, ...]
    updates: tuple[str, ...]
    starts: tuple[str, ...]
    array: str
    axes: tuple[str, ...]

    @property
    def rows(self) -> bool:
        """Whether the contiguous axis is reduced."""
        return self.axes[-1] in self.reduced

    @property
    def in_order(self) -> tuple[str, ...]:
        """The parallel loops in the order of the axes they walk, those of one iteration first."""
        return tuple(sorted(self.parallel, key=lambda n: self.axes.index(n) if n in self.axes else -1))

    def short_run(self, loops: Mapping[str, Loop]) -> str:
        """The contiguous reduced loop, if it is short enough to be written out whole; "" else."""
        last = self.axes[-1]
        return last if last in self.reduced and loops[last].extent <= WRITTEN_OUT else ""

    @property
    def nested(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The reduced loops outside of the innermost ones that are next to each other in memory, and those."""
        apart = max((n for n, name in enumerate(self.axes) if name not in self.reduced), default=-1)
        inner = tuple(n for n in self.reduced if n in self.axes[apart + 1 :])
        return tuple(n for n in self.reduced if n not in inner), inner

    @property
    def kept(self) -> tuple[str, ...]:
        """The innermost reduced loops that are next to each other in memory, where others are reduced outside of them."""
        last = max(n for n, name in enumerate(self.axes) if name in self.reduced)
        first = last
        while first and self.axes[first - 1] in self.reduced:
            first -= 1
        return self.axes[first : last + 1] if set(self.axes[:first]) & set(self.reduced) else ()

    @property
    def batches(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The parallel loops outside of the innermost reduced axis, and those inside of it."""
        return self.around(self.reduced)

    def around(self, rows: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The parallel loops outside of the innermost axis of some reduced loops, and those inside of it."""
        last = max(self.axes.index(name) for name in rows if name in self.axes)
        outer = tuple(n for n in self.in_order if n not in self.axes[last:])
        return outer, tuple(n for n in self.in_order if n not in outer)


def reduction_form(schedule: Schedule, kernel: str) -> ReductionForm | None:
    """The form of a kernel as written; None where it is not a nest of reductions under parallel loops."""
    plan = schedule.plan
    body = next(k.body for k in plan.kernels if k.id == kernel)
    outer: list[Loop] = []
    while len(body) == 1 and isinstance(body[0], Loop) and len(body[0].body) > 1 and not _all_updates(plan, body[0]):
        outer.append(body[0])
        body = body[0].body
    while len(body) == 1 and isinstance(body[0], Loop) and not _all_updates(plan, body[0]):
        outer.append(body[0])
        body = body[0].body
    nests = [node for node in body if isinstance(node, Loop)]
    early = [n for n in body[: body.index(nests[0])] if isinstance(n, Leaf)] if nests else []
    if len(nests) != 1:
        return None
    inner = chain(nests[0])
    if not _all_updates(plan, inner[-1]) or any(x.role != "seq" or x.extent == 0 for x in (*outer, *inner)):
        return None
    updates = tuple(n for n in inner[-1].body if isinstance(n, Leaf))
    targets = [plan.statement_of[leaf.statement].target.array for leaf in updates]
    started = [plan.statement_of[leaf.statement].target.array for leaf in early]
    walked = _axes(plan, updates, set(own_temporaries(plan, kernel)))
    if len(set(targets)) != len(targets) or sorted(started) != sorted(targets) or walked is None:
        return None
    several = {x.id for x in (*outer, *inner) if x.extent > 1}
    array, axes = walked[0], tuple(name for name in walked[1] if name in several)
    form = ReductionForm(kernel, tuple(x.id for x in outer), tuple(x.id for x in inner), tuple(x.id for x in updates),
                         tuple(x.id for x in early), array, axes)
    return form if set(axes) == several and several & set(form.reduced) else None


def _all_updates(plan: Plan, loop: Loop) -> bool:
    """Whether a loop holds updates and nothing else."""
    return all(isinstance(n, Leaf) and plan.statement_of[n.statement].update for n in loop.body)


def _axes(plan: Plan, leaves: tuple[Leaf, ...], own: set[str]) -> tuple[str, tuple[str, ...]] | None:
    """The largest array read and the loop of each of its axes; None where an axis, of more than one element, is not
    walked by one loop.
    """
    reads = [(r, leaf) for leaf in leaves for r in plan.statement_of[leaf.statement].reads
             if r.array not in own]
    if not reads:
        return None
    access, leaf = max(reads, key=lambda r: plan.array_of[r[0].array].size)
    loops, at = [], dict(leaf.at)
    for e, extent in zip(access.index, plan.array_of[access.array].shape, strict=True):
        index = e.substitute(at) if isinstance(e, Expr) else None
        if extent == 1 and index is not None and index.is_constant:
            continue
        name = next(iter(index.variables()), "") if index else ""
        if index != Expr(((name, 1),)):
            return None
        loops.append(name)
    return (access.array, tuple(loops)) if len(set(loops)) == len(loops) else None
