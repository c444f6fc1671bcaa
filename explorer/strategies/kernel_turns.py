"""The turns that :func:`~explorer.strategies.auto.auto` takes: a program prepared, its nests cut into kernels, each spread."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from ..errors import ScheduleError
from ..gpu.spec import Gpu
from ..ir.tree import Leaf, Loop, Node
from ..schedule import Schedule
from ._steps import Builder, leaves_of
from .contraction import contraction, contraction_us, is_narrow, products_apart, products_summed
from .elementwise import elementwise
from .fuse_reduction import fuse_reduction
from .price import price
from .reductions import reduce
from .row_column import fuse_row_column
from .rows import rows
from .scatter_to_gather import gathered_sums
from .stitch import cut_long_rows
from .windows import windows, windows_us

Decide = Callable[[str, Schedule, str], Schedule | None]
"""``decide(stage, schedule, kernel)``: the schedule with that kernel's turn taken, or None to leave it to the rules."""


def prepared(schedule: Schedule, approximate: bool, gathered: bool = True) -> Builder:
    """The program with its results' nests gathered, products apart and, where that is allowed, approximate functions."""
    b = Builder(products_apart(products_summed(fuse_reduction(gathered_sums(schedule)) if gathered else schedule)))
    if approximate:
        b.judged = False  # another way to compute the same value at the same place
        for leaf, _, _ in b.plan.leaves:
            b.attempt("approximate", leaf.id)
        b.judged = True
    return b


def ridden(b: Builder, target: Gpu, decide: Decide | None) -> None:
    """Column sums along the rows behind which they stand."""
    for kernel in [k.id for k in b.plan.kernels]:
        own = decide("row_column", b.schedule, kernel) if decide else None
        b.schedule = fuse_row_column(b.schedule, kernel, target) if own is None else own


def spread(schedule: Schedule, kernel: str, target: Gpu, whole: bool = False) -> Schedule:
    """The kernel spread by the first strategy that it fits, `whole` or cut; the same schedule if there is none."""
    for strategy in (lambda s, k: _sums_of_products(s, k, target), elementwise, lambda s, k: reduce(s, k, target),
                     lambda s, k: s if whole else cut_long_rows(s, k, target), lambda s, k: rows(s, k, gpu=target)):
        try:
            new = strategy(schedule, kernel)
        except ScheduleError:  # a form it was not made for: the next one may fit
            continue
        if new is not schedule and len(new.judgement.obligations) <= len(schedule.judgement.obligations):
            return new
    return schedule


def _sums_of_products(schedule: Schedule, kernel: str, target: Gpu) -> Schedule:
    """A product in tiles, or sums over windows: whichever its model says takes less; windows no dearer than plain reductions."""
    by_tiles, by_windows = contraction_us(schedule, kernel, target), windows_us(schedule, kernel, target)
    if by_windows is None or (by_tiles is not None and by_tiles <= by_windows):
        return _cheapest(contraction(schedule, kernel, target), schedule, kernel, target)
    made, plain = windows(schedule, kernel, target), schedule
    with suppress(ScheduleError):
        plain = reduce(schedule, kernel, target)
    if made is schedule or (plain is not schedule and _us(plain, target) < _us(made, target)):
        return contraction(schedule, kernel, target)
    return made


def _cheapest(made: Schedule, schedule: Schedule, kernel: str, target: Gpu) -> Schedule:
    """A product in tiles; of few rows or columns the sums of each by themselves, where these take less."""
    if made is schedule or not is_narrow(schedule, kernel):
        return made
    for strategy in (reduce, rows):
        with suppress(ScheduleError):
            other = strategy(schedule, kernel, gpu=target)
            if other is not schedule and not other.obligations and _us(other, target) < _us(made, target):
                made = other
    return made


def _us(schedule: Schedule, target: Gpu) -> float:
    return price(schedule.plan, target).total_us


def cut(b: Builder, but: frozenset[str] = frozenset()) -> None:
    """One launch for each nest at the top, of kernels `but` some.

    A statement beside goes with the nest that it starts, else with the one before.
    """
    number = 0
    while number < len(b.plan.kernels):
        kernel = b.plan.kernels[number]
        loops = [n for n, node in enumerate(kernel.body) if isinstance(node, Loop)]
        if len(loops) > 1 and kernel.id not in but:
            here, following = loops[0], kernel.body[loops[1]]
            wanted = {a.array for leaf in leaves_of(following) for a in b.plan.statement_of[leaf.statement].accesses}
            last = here
            for node in kernel.body[here + 1 : loops[1]]:
                target = b.plan.statement_of[node.statement].target.array if isinstance(node, Leaf) else ""
                if target in wanted and all(target != t for t in _targets(b, kernel.body[: here + 1])):
                    break
                last += 1
            b.attempt("launch", kernel.id, after=kernel.body[last].id)
        number += 1


def _targets(b: Builder, nodes: tuple[Node, ...]) -> set[str]:
    """Arrays that some nodes write."""
    return {b.plan.statement_of[leaf.statement].target.array for node in nodes for leaf in leaves_of(node)}
