"""The loops of a copy, sequential and private, or distributed over the threads of a block; and its leaf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..ir.expr import ZERO, Expr, quotient, remainder, var
from ..ir.finding import Verdict, no
from ..ir.plan import Plan, block_extents
from ..ir.tree import WARP_SIZE, Leaf, Loop, Node, View, ranges
from ._copies import cell_of, filling
from ._domain import wrapped
from ._uses import with_view

UNROLL_LIMIT = 16
"""Longest loop of a distributed copy that is unrolled: its loads are then all in flight together."""


@dataclass(frozen=True)
class CopyNest:
    """Loops around a copy's leaf.

    Attributes
    ----------
    loops : tuple of Loop
        New ones, outermost first.
    at, when : tuple of (str, Expr)
        Of the leaf; its dimensions are ``copy.loop`` for the scope's loops and ``copy[axis]`` for the box.
    rank : int
        Axes of the box.
    lane : str
        The loop over the elements of one access, or empty.
    """

    loops: tuple[Loop, ...]
    at: tuple[tuple[str, Expr], ...]
    when: tuple[tuple[str, Expr], ...]
    rank: int
    lane: str = ""

    def around(self, leaf: Leaf) -> Node:
        return wrapped(self.loops, leaf)


@dataclass(frozen=True)
class _Digit:
    """One coordinate of a thread: a loop that is there already, or a new one."""

    loop: Loop
    new: bool


def copy_nest(plan: Plan, name: str, path: tuple[Loop, ...], outer: tuple[Loop, ...], extents: tuple[int, ...], vector: int,
              distributed: bool, place: str) -> CopyNest | Verdict:
    """The nest that runs through a box of these extents; it will stand in the body of the last loop of `path`."""
    if idle := next((x.id for x in path if x.extent < 1), ""):
        return no(f"{idle} has no iterations, so that nothing is copied in it")
    if extents and min(extents) < 1:
        shown = "×".join(map(str, extents))
        return no(f"the copy {name} has no cells", f"its box is {shown}: a loop around the read has no iterations")
    row = (prod(extents) if distributed else extents[-1]) if extents else 1  # whole rows may follow each other in the array
    if row % vector:
        shown = "×".join(map(str, extents)) or "1"
        return no(f"the copy {name} has rows of {extents[-1] if extents else 1} elements, which {vector} does not divide",
                  f"its box is {shown}", "a smaller vector, or tile sizes that it divides")
    scope_at = [(f"{name}.{x.id}", var(x.id)) for x in outer]
    scope_when = [(x.id, var(f"{name}.{x.id}")) for x in outer]
    dims = [f"{name}[{axis}]" for axis in range(len(extents))]
    nest = (_distributed(plan, name, path, extents, dims, vector, place) if distributed
            else _private(plan, name, extents, dims, vector))
    return CopyNest(nest.loops, (*scope_at, *nest.at), tuple(sorted((*scope_when, *nest.when))), len(extents), nest.lane)


def _private(plan: Plan, name: str, extents: tuple[int, ...], dims: list[str], vector: int) -> CopyNest:
    """One unrolled loop for each axis; the last one split into accesses and lanes."""
    loops, at, when = list[Loop](), list[tuple[str, Expr]](), list[tuple[str, Expr]]()
    for axis, (d, n) in enumerate(zip(dims, extents, strict=True)):
        if vector > 1 and axis == len(dims) - 1:
            lane = Loop(plan.fresh(f"{name}.v"), vector, ())
            value: Expr = var(lane.id)
            if n > vector:
                step = Loop(plan.fresh(f"{name}.{axis}"), n // vector, (), "unroll")
                loops.append(step)
                value = var(step.id) * vector + value
                when.append((step.id, quotient(var(d), vector)))
            loops.append(lane)
            at.append((d, value))
            when.append((lane.id, remainder(var(d), vector)))
            return CopyNest(tuple(loops), tuple(at), tuple(when), len(dims), lane.id)
        loop = Loop(plan.fresh(f"{name}.{axis}"), n, (), "unroll")
        loops.append(loop)
        at.append((d, var(loop.id)))
        when.append((loop.id, var(d)))
    return CopyNest(tuple(loops), tuple(at), tuple(when), len(dims))


def _distributed(plan: Plan, name: str, path: tuple[Loop, ...], extents: tuple[int, ...], dims: list[str], vector: int,
                 place: str) -> CopyNest:
    """Element ``(r*T + t)*V + v`` of the flat box goes to thread t: neighbouring threads copy neighbouring elements."""
    digits = _threads(plan, name, path, place)
    threads = prod(x.loop.extent for x in digits)
    rounds = -(-prod(extents) // (threads * vector))
    new = [x.loop for x in reversed(digits) if x.new]
    flat: Expr = ZERO
    if rounds > 1:
        new.insert(0, Loop(plan.fresh(f"{name}.r"), rounds, (), "unroll" if rounds <= UNROLL_LIMIT else "seq"))
        flat = var(new[0].id) * (threads * vector)
    step = vector
    for x in digits:
        flat = flat + (var(x.loop.id) - x.loop.start) * step
        step *= x.loop.extent
    lane = ""
    if vector > 1:
        lane = plan.fresh(f"{name}.v")
        new.append(Loop(lane, vector, ()))
        flat = flat + var(lane)
    scope = {**ranges(path), **ranges(tuple(new))}
    at, stride = list[tuple[str, Expr]](), prod(extents)
    for axis, (d, n) in enumerate(zip(dims, extents, strict=True)):
        stride //= n
        e = quotient(flat, stride, scope)
        at.append((d, e if axis == 0 else remainder(e, n, scope)))
    return CopyNest(tuple(new), tuple(at), tuple(_inverse(dims, extents, digits, vector, lane, new[0].id if rounds > 1 else "")),
                    len(dims), lane)


def _inverse(dims: list[str], extents: tuple[int, ...], digits: Sequence[_Digit], vector: int, lane: str, rounds: str):
    """Every loop as a function of the box's coordinates."""
    box = {d: (0, n - 1) for d, n in zip(dims, extents, strict=True)}
    flat, stride = ZERO, prod(extents)
    for d, n in zip(dims, extents, strict=True):
        stride //= n
        flat = flat + var(d) * stride
    if lane:
        yield lane, remainder(flat, vector, box)
    rest = quotient(flat, vector, box)
    for n, x in enumerate(digits):
        last = n == len(digits) - 1 and not rounds
        yield x.loop.id, (rest if last else remainder(rest, x.loop.extent, box)) + x.loop.start
        rest = quotient(rest, x.loop.extent, box)
    if rounds:
        yield rounds, rest


def _threads(plan: Plan, name: str, path: tuple[Loop, ...], place: str) -> list[_Digit]:
    """The coordinates of a thread, fastest first: loops around the copy where they bind it, else new ones."""
    kernel = plan.kernel_of(place)
    assert kernel is not None
    here = {x.role: x for x in path if x.is_thread}
    wide = block_extents(kernel)
    out: list[_Digit] = []
    if here.keys() & {"warp", "lane"}:
        wanted = [("lane", min(WARP_SIZE, wide[0]), "lane"), ("warp", wide[0] // WARP_SIZE, "warp")]
    else:
        wanted = [("thread.x", wide[0], "t")]
    for role, extent, suffix in (*wanted, ("thread.y", wide[1], "ty"), ("thread.z", wide[2], "tz")):
        if role in here:
            out.append(_Digit(here[role], False))
        elif extent > 1:
            out.append(_Digit(Loop(plan.fresh(f"{name}.{suffix}"), extent, (), role), True))
    return out


def copy_leaf(plan: Plan, name: str, nest: CopyNest, dims: tuple[str, ...], index: tuple[Expr, ...], source: str,
               path: tuple[Loop, ...], order: tuple[int, ...]) -> Leaf:
    """The leaf of a copy: its place, the cell it fills, and where its source is a copy's buffer, the cell it reads."""
    at, scope = dict(nest.at), {**ranges(path), **ranges(nest.loops)}
    own = tuple(at[d] for d in dims)
    cell = tuple(own[len(own) - nest.rank + n] for n in order)
    leaf = with_view(Leaf(name, name, nest.at, nest.when), 1, View(name, cell, own))
    if filling(plan, source) is None:
        return leaf
    element = tuple(e.substitute(at, scope) for e in index)
    return with_view(leaf, 0, View(source, tuple(e.simplify(scope) for e in cell_of(plan, source, element)), element))
