"""Parities of mbarrier waits for a symbolic number S of mbarriers.

Groups use S mbarriers round robin: group g is on mbarrier ``g % S``, in phase ``g // S``.  Neither is affine where S is a
variable.  But let ``k = S q + r`` and ``K = S Q + P`` with r and P below S: then a quotient by S of ``a k + b K + c`` is
``a q + b Q + m``, and m, the quotient of ``a r + b P + c``, is one of a few numbers, each with an affine condition.  Parities
need no more than whether S is odd.  So whether a wait asks for the parity of its group is a Presburger question over S, Q and
P, which isl answers for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from ..ir.expr import ZERO, Expr, Quotient, Remainder, const, remainder, var
from .isl import alone
from .linear import Case, Tuple, at_least, build_set, equal
from .ring_text import texts
from .symbolic_trips import TRIPS

S, Q, P, q, r = (var(name) for name in ("S", "Q", "P", "q", "r"))
SIZES = ("S", "Q", "P")
MBARRIERS = (1 << 61) - 1
"""A large prime that stands for S, so that simplification cannot cancel it with a factor of the kernel."""
_D = isl.dim_type


class Unknown(Exception):
    """A number that has no digits of this kind."""


@dataclass(frozen=True)
class _Digits:
    """A number in digits, modulo 2, where some conditions hold."""

    value: Expr
    when: Case = ()


@alone
def parities(differences: Sequence[Expr], iteration: str) -> str | None:
    """For which K and S numbers are even in every iteration below K; None where they have no digits.

    Parameters
    ----------
    differences : sequence of Expr
        The parity that is asked for minus that of the group, over the iteration and
        :data:`~explorer.poly.symbolic_trips.TRIPS`, with :data:`MBARRIERS` for S.
    iteration : str
    """
    here = Tuple("", "a", (*SIZES, "q", "r"))
    sizes = _sizes()
    first = build_set(here, (*_below(S, P, r), at_least(q, "a", 0), at_least(Q - q, "a", 1)))  # q < Q, or the same and r < P
    last = build_set(here, (*_below(S, P, r), at_least(q, "a", 0), equal(Q, "a", q, "a"), at_least(P - r, "a", 1)))
    wrong = isl.Set.empty(first.get_space())
    try:
        for e in differences:
            for odd in (0, 1):
                for one in _digits(e, iteration, odd):
                    rows = (equal(remainder(x, 2), "a", const(n), "a") for x, n in ((S, odd), (one.value, 1)))
                    wrong = wrong.union(build_set(here, (*one.when, *rows)))
    except Unknown:
        return None
    bad = wrong.intersect(first.union(last)).project_out(_D.set, len(SIZES), 2).coalesce()
    right = sizes.subtract(bad).coalesce()
    return "never" if right.is_empty() else _text(right)


def _below(s: Expr, *digits: Expr) -> Case:
    return (at_least(s, "a", 1), *(c for d in digits for c in (at_least(d, "a", 0), at_least(s - d, "a", 1))))


def _sizes() -> isl.Set:
    return build_set(Tuple("", "a", SIZES), (*_below(S, P), at_least(Q, "a", 0), at_least(Q + P, "a", 1)))


def _digits(e: Expr, iteration: str, odd: int) -> Iterator[_Digits]:
    """A number modulo 2, in every way in which its quotients can come out."""
    found = [_Digits(const(e.const))]
    for atom, c in e.terms:
        if isinstance(atom, str):
            high, low = _parts(atom, iteration)
            more = [_Digits(high * (odd * c) + low * c)]
        elif isinstance(atom, Remainder) and atom.by == 2:
            more = [_Digits(d.value * c, d.when) for d in _digits(atom.expr, iteration, odd)]
        elif isinstance(atom, Quotient) and atom.by == MBARRIERS:
            more = [_Digits(d.value * c, d.when) for d in _quotients(atom.expr, iteration)]
        else:
            raise Unknown
        found = [_Digits(a.value + b.value, (*a.when, *b.when)) for a in found for b in more]
    yield from found


def _parts(name: str, iteration: str) -> tuple[Expr, Expr]:
    if name == iteration:
        return q, r
    if name == TRIPS:
        return Q, P
    raise Unknown


def _quotients(e: Expr, iteration: str) -> Iterator[_Digits]:
    """The quotient by S of a sum of iteration and trip count."""
    high, low, most = ZERO, const(e.const), max(e.const, 0)
    for atom, c in e.terms:
        if not isinstance(atom, str) or c < 0:
            raise Unknown
        mine = _parts(atom, iteration)
        high, low, most = high + mine[0] * c, low + mine[1] * c, most + c
    for m in range(min(e.const, 0), most + 1):
        yield _Digits(high + m, (at_least(low - S * m, "a", 0), at_least(S * (m + 1) - low, "a", 1)))


def _text(right: isl.Set) -> str:
    """A condition on K and S: where K is below S, where it is a multiple of S, and elsewhere."""
    below, whole = (build_set(Tuple("", "a", SIZES), (*_below(S, P), equal(n, "a", ZERO, "a"))) for n in (Q, P))
    parts = [_part(isl.Set.from_basic_set(b)) for within in (below, whole, _sizes().subtract(below).subtract(whole))
             for b in _simple(right, within)]
    return " or ".join(f"({p})" if len(parts) > 1 and " and " in p else p for p in sorted(parts, key=len))


def _simple(right: isl.Set, within: isl.Set) -> list[isl.BasicSet]:
    """The parts of a set within another one, without divisibilities that do not matter."""
    found, here = list[isl.Set](), right.intersect(within).coalesce()
    for part in _list(here):
        wide = isl.Set.from_basic_set(part.remove_divs()).intersect(within).intersect(_sizes())
        found.append(wide if wide.is_subset(right) else isl.Set.from_basic_set(part))
    return _list(reduce(isl.Set.union, found, isl.Set.empty(right.get_space())).coalesce())


def _list(points: isl.Set) -> list[isl.BasicSet]:
    found = list[isl.BasicSet]()
    points.foreach_basic_set(found.append)
    return found


def _part(points: isl.Set) -> str:
    """A conjunction, in K where K is below S or a multiple of it, else in its digits."""
    def fixed(place: int) -> int | None:
        value = points.plain_get_val_if_fixed(_D.set, place)
        return None if value.is_nan() else int(value.to_python())

    def rest(kept: tuple[str, ...], words: dict[str, str]) -> str:
        positive, left = build_set(Tuple("", "a", kept), [at_least(var(n), "a", 1) for n in kept]), points
        for place in (2, 1, 0):
            if SIZES[place] not in kept:
                left = left.project_out(_D.set, place, 1)
        return texts(left, kept, positive, words)

    if fixed(1) == 0:
        return rest(("S", "P"), {"S": "S", "P": "K"})
    if fixed(2) == 0:
        if fixed(0) == 1:
            told = rest(("Q",), {"Q": "K"})
            return "S == 1" if told == "always" else f"S == 1 and {told}"
        if (times := fixed(1)) is not None:
            equals, told = "K == S" if times == 1 else f"K == {times} * S", rest(("S",), {"S": "S"})
            return equals if told == "always" else f"{equals} and {told}"
        told = rest(("S", "Q"), {"S": "S", "Q": "K // S"})
        return {"K // S % 2 == 0": "K % (2 * S) == 0", "always": "K % S == 0"}.get(told, f"K % S == 0 and {told}")
    return texts(points, SIZES, _sizes(), {"S": "S", "Q": "K // S", "P": "K % S"})
