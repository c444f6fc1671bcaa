"""A copy with a cell for each iteration of some loops, where what they read is no box of the array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..ir.expr import Expr, var
from ..ir.finding import Verdict, no
from ..ir.tree import Loop
from ._uses import Use


@dataclass(frozen=True)
class Iterations:
    """The cells of such a copy, and the elements in them.

    Attributes
    ----------
    loops : tuple of Loop
        One for each dimension.
    index : tuple of Expr
        The element that an iteration reads.
    """

    loops: tuple[Loop, ...]
    index: tuple[Expr, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """Of the dimensions."""
        return tuple(x.extent for x in self.loops)

    @property
    def axes(self) -> tuple[tuple[int, ...], ...]:
        """None of the array's is taken as one with another."""
        return ()

    @property
    def cells(self) -> tuple[tuple[Expr, ...], ...]:
        """The one reader's cell."""
        return (tuple(var(x.id) - x.start for x in self.loops),)

    def element(self, coordinates: Sequence[Expr]) -> tuple[Expr, ...]:
        """The element that a cell holds."""
        at = {x.id: e + x.start for x, e in zip(self.loops, coordinates, strict=True)}
        return tuple(e.substitute(at) for e in self.index)


def iterations(array: str, names: Sequence[str], reads: Sequence[Use], indices: Sequence[tuple[Expr, ...]],
               inner: Sequence[Iterable[str]]) -> Iterations | Verdict:
    """The cells for the iterations of these loops, in this order; a refusal where one of them would hold several elements.

    Parameters
    ----------
    array : str
    names : sequence of str
        Loops.
    reads : sequence of Use
    indices : sequence of tuple of Expr
        What each read reads, over the loops around it.
    inner : sequence of iterables of str
        The loops of each read that lie inside of the scope.
    """
    if len(reads) != 1:
        return no(f"{array} is read in {len(reads)} places", "a cell for each iteration belongs to one reader",
                  "leave `loops` out, or stage one of them by its name")
    (read,), (index,), (inside,) = reads, indices, (set(x) for x in inner)
    by_name = {x.id: x for x in read.above if x.id in inside}
    if odd := next((n for n in names if n not in by_name), None):
        return no(f"{odd} is no loop around {read.leaf.id} inside of the copy's scope", hint=f"some of {', '.join(by_name)}")
    moved = frozenset[str]().union(*(e.variables() for e in index)) & inside
    if left := sorted(moved - set(names)):
        return no(f"{read.leaf.id} reads another element of {array} in each iteration of {', '.join(left)}",
                  "a cell holds one element", f"loops={(*names, *left)!r}")
    if len(set(names)) < len(names):
        return no(f"a loop is named twice in {', '.join(names)}", "each makes one dimension of the copy")
    return Iterations(tuple(by_name[n] for n in names), index)
