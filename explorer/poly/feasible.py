"""Whether conditions have a point in common: by isl within few operations, else by their digits, else by isl.

Most questions about two accesses take isl a fraction of a millisecond.  Those with registers of tensor instructions, slots and
vectors on both sides may take it a hundred times as long, and then follow from their equalities (:mod:`~explorer.poly.radix`).
Each is asked once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from .deduce import Facts
from .isl import Undecided, budget
from .linear import Case, Condition, Tuple, has_point
from .radix import by_digits, what_is_left_by_digits

FEW = 4_000
"""Operations of isl before digits are tried (a millisecond or two, which is what those take)."""
FAR = 1 << 62
"""Beyond every variable."""


def feasible(tuples: Sequence[Tuple], conditions: Iterable[Condition]) -> bool:
    """Whether the variables of these tuples can satisfy the conditions together."""
    return _feasible(tuple(tuples), tuple(conditions))


@lru_cache(maxsize=1 << 15)
def _feasible(tuples: tuple[Tuple, ...], conditions: Case) -> bool:
    try:
        with budget(FEW):
            return has_point(tuples, conditions)
    except Undecided:
        return not contradictory(tuples, conditions) and has_point(tuples, conditions)


def contradictory(tuples: Sequence[Tuple], conditions: Case) -> bool:
    """Whether conditions surely exclude each other, as their equalities say, of variables or of their digits."""
    ranges, rest = _boxes(tuples, conditions)
    if any(low > high for low, high in ranges.values()) or (known := Facts(ranges).given(rest)) is None:
        return True
    digits = by_digits(rest, ranges)
    if digits is not None and digits.given(rest) is None:
        return True
    left = what_is_left_by_digits(known, rest)
    return left is None or left.refutes(c for c in rest if not c.equality)


def _boxes(tuples: Sequence[Tuple], conditions: Case) -> tuple[dict[str, tuple[int, int]], list[Condition]]:
    """Intervals of the marked variables that conditions of one variable give, and the other conditions."""
    ranges = {f"{t.side}:{v}": (-FAR, FAR) for t in tuples for v in t.variables}
    rest: list[Condition] = []
    for c in conditions:
        (e, side, factor), *more = c.parts
        if more or c.equality or len(e.terms) != 1 or not isinstance(e.terms[0][0], str):
            rest.append(c)
            continue
        name, k, bound = f"{side}:{e.terms[0][0]}", e.terms[0][1] * factor, factor * e.const + c.const
        low, high = ranges[name]
        ranges[name] = (max(low, -(bound // k)), high) if k > 0 else (low, min(high, bound // -k))
    return ranges, rest
