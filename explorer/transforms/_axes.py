"""Axes of an array that coalesced loops walk as one, where the indices apart are no sums of outer and inner loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ..ir.expr import Expr, Ranges, rejoin
from ._uses import parts

Axes = tuple[tuple[int, ...], ...]
"""For each axis that is left the extents of those that it joins."""


def walked_as_one(indices: Sequence[tuple[Expr, ...]], shape: Sequence[int], scopes: Sequence[Ranges],
                  inner: Sequence[Iterable[str]] = ()) -> tuple[Axes, list[tuple[Expr, ...]]]:
    """The array with such axes as one, and the indices in it: ``x[f // 56, f % 56]`` is ``x[f]``.

    An element beyond the array is then beyond one of its axes, and the other way round.

    Parameters
    ----------
    indices : sequence of tuple of Expr
        What is read, over loop variables.
    shape : sequence of int
        Of the array.
    scopes : sequence of Ranges
        Intervals of the variables of each read.
    inner : sequence of iterables of str
        The loops of each read that move within a copy: then axes are joined only where a floor mixes them with others.
    """
    axes, left = list[tuple[int, ...]](), [list[Expr]() for _ in indices]
    for axis, n in enumerate(shape):
        here = [index[axis] for index in indices]
        if axes:
            before = [mine[-1] for mine in left]
            whole = [rejoin(f * n + e, scope) for f, e, scope in zip(before, here, scopes, strict=True)]
            mixed = not inner or any(parts(e.simplify(scope), names) is None for pair in (before, here)
                        for e, scope, names in zip(pair, scopes, inner, strict=True))
            fewer = all(_divisions(w) < _divisions(f) + _divisions(e) for w, f, e in zip(whole, before, here, strict=True))
            within = all(e.interval(scope)[0] >= 0 and e.interval(scope)[1] < n for e, scope in zip(here, scopes, strict=True))
            if mixed and fewer and within:
                axes[-1] = (*axes[-1], n)
                for mine, e in zip(left, whole, strict=True):
                    mine[-1] = e
                continue
        axes.append((n,))
        for mine, e in zip(left, here, strict=True):
            mine.append(e)
    return tuple(axes), [tuple(mine) for mine in left]


def extents_of(axes: Axes) -> tuple[int, ...]:
    """Of the axes that are left."""
    return tuple(map(prod, axes))


def _divisions(e: Expr) -> int:
    """How many quotients and remainders there are in a sum."""
    return sum(not isinstance(atom, str) for atom, _ in e.terms)
