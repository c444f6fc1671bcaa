"""A program as whole-array NumPy: what somebody would write by hand, to hold a schedule of any program against.

Loops become axes of arrays wherever the exact dependences allow it: a statement then runs for all iterations before the next
one begins, so nothing may flow backwards through the text, and no statement may depend on itself but by a reduction.  Loops
outside of those stay loops of Python, if they are few.  Indices of one variable are slices, a sum of products is a
matrix product or :func:`numpy.einsum`, other reductions are a ufunc's ``reduce``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ...errors import DeviceError
from ...ir.dtype import DType
from ...ir.expr import Expr, var
from ...ir.operations import OPERATIONS
from ...ir.plan import Plan
from ...ir.program import Access, Program, Statement
from ...ir.scalar import REDUCTIONS, Call, Cast, IndexValue, Literal, Read, Scalar, argument_types
from ...ir.tree import Leaf, Loop, Node, leaves
from ...poly.distances import distances
from ...schedule import Schedule
from ..verify.reference import NumpyReference

PYTHON_LOOPS = 4096
"""Most iterations of loops that stay in Python; with more, what is timed is the interpreter."""
MOST_CELLS = 1 << 27
"""Largest intermediate array: a gigabyte of float64."""

Env = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A leaf whose `axes` are computed at once, inside loops of Python."""

    leaf: Leaf
    axes: tuple[Loop, ...]


@dataclass(frozen=True)
class Repeat:
    """A loop of Python."""

    loop: Loop
    body: tuple[Step | Repeat, ...]


def vectorised(schedule: Schedule) -> NumpyReference | str:
    """The schedule's program as written, in whole arrays.

    Parameters
    ----------
    schedule : Schedule
        Only its program counts.

    Returns
    -------
    callable or str
        ``function(arrays, sizes)`` as any NumPy reference, from the inputs (floats as float64) to the outputs by name; or
        why whole arrays cannot compute it.
    """
    program = schedule.source
    plan = Schedule.of(program).plan
    steps = tuple(_steps(plan, program.body))
    slow = _iterations(steps)
    if slow > PYTHON_LOOPS:
        names = ", ".join(dict.fromkeys(_kept(steps)))
        return f"{names} must run one iteration after the other, {slow:,} in all, which whole arrays cannot"
    return lambda arrays, sizes: _Arrays(program, arrays).run(steps)


# ---- which loops become axes ----


def _steps(plan: Plan, nodes: tuple[Node, ...]) -> Iterator[Step | Repeat]:
    for node in nodes:
        if isinstance(node, Leaf):
            yield Step(node, ())
        elif isinstance(node, Loop):
            if _at_once(plan, node):
                yield from (Step(leaf, above) for leaf, above in leaves((node,)))
            else:
                yield Repeat(node, tuple(_steps(plan, node.body)))


def _at_once(plan: Plan, loop: Loop) -> bool:
    """Whether all loops from this one inwards may become axes, statement after statement."""
    below = list(leaves((loop,)))
    place = {leaf.statement: n for n, (leaf, _) in enumerate(below)}
    inner = {x.id for _, above in below for x in above}
    for d in distances(plan):
        if d.kind == "reduction" or d.source not in place or d.sink not in place:
            continue
        if not d.carried or (place[d.source] >= place[d.sink] and any(c in inner for c in d.carried)):
            return False
    return True


def _iterations(steps: tuple[Step | Repeat, ...]) -> int:
    return sum(s.loop.extent * max(_iterations(s.body), 1) for s in steps if isinstance(s, Repeat))


def _kept(steps: tuple[Step | Repeat, ...]) -> Iterator[str]:
    for s in steps:
        if isinstance(s, Repeat):
            yield s.loop.id
            yield from _kept(s.body)


# ---- one run ----


class _Arrays:
    """The arrays of a run, and the statements that change them."""

    def __init__(self, program: Program, given: Mapping[str, np.ndarray]) -> None:
        self.program = program
        self.held = {a.name: np.array(given[a.name]) if a.role in ("in", "inout") else np.empty(a.shape, _wide(a.dtype))
                     for a in program.arrays}  # fmt: skip

    def run(self, steps: tuple[Step | Repeat, ...]) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            self.steps(steps, {})
        return {a.name: self.held[a.name] for a in self.program.parameters if a.role != "in"}

    def steps(self, steps: tuple[Step | Repeat, ...], env: Env) -> None:
        for step in steps:
            if isinstance(step, Repeat):
                for value in range(step.loop.start, step.loop.start + step.loop.extent):
                    self.steps(step.body, {**env, step.loop.id: value})
            else:
                _Statement(self, step, env).run()


class _Statement:
    """One statement with its axes: what it reads, computes and writes."""

    def __init__(self, arrays: _Arrays, step: Step, env: Env) -> None:
        self.held, self.axes = arrays.held, step.axes
        self.s: Statement = arrays.program.statement_of[step.leaf.statement]
        self.shape = tuple(x.extent for x in step.axes)
        grid = {x.id: np.arange(x.start, x.start + x.extent).reshape([-1 if y is x else 1 for y in step.axes]) for x in step.axes}
        self.point: Env = {d: e.evaluate({**env, **grid}) for d, e in step.leaf.at}
        self.plain = dict(step.leaf.at)
        self.fixed = env
        self.types = [arrays.program.array_of[r.array].dtype for r in self.s.reads]
        self.dtype = arrays.program.array_of[self.s.target.array].dtype

    def run(self) -> None:
        mask = self.mask()
        if mask is not None and not mask.any():
            return
        if self.s.update is None:
            self.assign(self.value(mask).astype(_wide(self.dtype), copy=False), mask)
        else:
            self.reduce(mask)

    def mask(self) -> np.ndarray | None:
        """Where there are instances; None for everywhere."""
        out: Any = True
        ranges = {x.id: (x.start, x.start + x.extent - 1) for x in self.axes} | {n: (v, v) for n, v in self.fixed.items()}
        for c in self.s.domain:
            low, high = c.expr.substitute(self.plain).interval(ranges)
            if low == high == 0 or (low >= 0 and not c.equality):
                continue
            value = c.expr.evaluate(self.point)
            out = out & ((value == 0) if c.equality else (value >= 0))
        return None if np.all(out) else np.broadcast_to(out, self.shape)

    def value(self, mask: np.ndarray | None) -> np.ndarray:
        reads: list[Any] = [None] * len(self.s.reads)
        for slot in sorted(range(len(reads)), key=lambda n: not self.s.reads[n].affine):
            access = self.s.reads[slot]
            view = self.view(access)
            reads[slot] = view if view is not None else self.held[access.array][self.places(access, reads, mask)]
        return np.asarray(self.evaluate(self.s.value, reads))

    def assign(self, value: np.ndarray, mask: np.ndarray | None) -> None:
        view = self.view(self.s.target)
        if view is not None and mask is None:
            view[...] = value
        elif view is not None and view.shape == self.shape:
            np.copyto(view, value, where=mask)  # type: ignore[arg-type]
        else:
            chosen = np.ones(self.shape, bool) if mask is None else mask
            places = self.places(self.s.target, [], mask)
            self.held[self.s.target.array][tuple(np.broadcast_to(p, self.shape)[chosen] for p in places)] = (
                np.broadcast_to(value, self.shape)[chosen])

    def reduce(self, mask: np.ndarray | None) -> None:
        """Combine along the axes that the target does not have."""
        if 0 in self.shape:  # there is nothing to combine
            return
        row = REDUCTIONS[self.s.update or ""]
        combine, view = OPERATIONS[row.operation].numpy, self.view(self.s.target)
        if view is None or not isinstance(combine, np.ufunc):
            raise DeviceError(f"NumPy has no whole-array form of {self.s.name}.")
        over = tuple(n for n, size in enumerate(view.shape) if size == 1 and self.shape[n] > 1)
        total = self.product(view.shape) if row.name == "sum" and over and mask is None else None
        if total is None:
            if prod(self.shape) > MOST_CELLS:
                raise DeviceError(f"{self.s.name} as whole arrays takes {prod(self.shape):,} cells at once.")
            value = np.broadcast_to(self.value(mask).astype(view.dtype, copy=False), self.shape)
            if mask is not None:
                value = np.where(mask, value, row.identity(self.dtype))
            total = combine.reduce(value, axis=over, keepdims=True) if over else value
        view[...] = combine(view, total)

    def product(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """The sum of a product of two or more reads, contracted; None for any other value."""
        factors = list(_factors(self.s.value))
        views = [self.view(self.s.reads[f.slot]) if isinstance(f, Read) else None for f in factors]
        if len(views) < 2 or any(v is None for v in views):
            return None
        operands: list[Any] = []
        for v in views:
            kept = [n for n, size in enumerate(v.shape) if size > 1]  # type: ignore[union-attr]
            operands += [v.reshape([v.shape[n] for n in kept]), kept]  # type: ignore[union-attr]
        there = {n for kept in operands[1::2] for n in kept}
        wanted = [n for n, size in enumerate(shape) if size > 1]
        if not set(wanted) <= there or {n for n, size in enumerate(self.shape) if size > 1} != there:
            return None
        contracted = (_matmul(operands[0], operands[1], operands[2], operands[3], wanted) if len(views) == 2 else
                      np.einsum(*operands, wanted, optimize=True))
        return contracted.reshape(shape)

    # -- accesses --

    def view(self, access: Access) -> np.ndarray | None:
        """The elements of an access as a view with one dimension for each axis; None where slices do not do."""
        array = self.held[access.array]
        parts: list[Any] = []
        order: list[int] = []
        for e, extent in zip(access.index, array.shape, strict=True):
            if not isinstance(e, Expr):
                return None
            e = e.substitute(self.plain)
            own = [n for n, x in enumerate(self.axes) if x.id in e.variables()]
            rest = e - var(self.axes[own[0]].id) if own else e
            if len(own) > 1 or (own and (own[0] in order or self.axes[own[0]].id in rest.variables())):
                return None
            at = int(rest.evaluate(self.fixed))
            if own:
                x = self.axes[own[0]]
                first, last = x.start + at, x.start + at + x.extent
                if first < 0 or last > extent:
                    return None
                parts.append(slice(first, last))
                order += own
            elif 0 <= at < extent:
                parts.append(at)
            else:
                return None
        ranked = array[(*parts, ...)].transpose([order.index(n) for n in sorted(order)])
        return ranked[(*(slice(None) if n in order else None for n in range(len(self.axes))), ...)]

    def places(self, access: Access, reads: list[Any], mask: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """The index arrays of an access, kept inside the array where the mask leaves instances out."""
        shape = self.held[access.array].shape
        index = [e.evaluate(self.point) if isinstance(e, Expr) else self.evaluate(e.value, reads) for e in access.index]
        found = [np.asarray(i, np.int64) for i in index]
        return tuple(np.clip(i, 0, n - 1) if mask is not None else i for i, n in zip(found, shape, strict=True))

    def evaluate(self, node: Scalar, reads: list[Any]) -> Any:
        """A scalar expression for all points at once."""
        if isinstance(node, Literal):
            return np.asarray(node.value, _wide(node.dtype))
        if isinstance(node, IndexValue):
            return np.asarray(node.expr.evaluate(self.point), np.int64)
        if isinstance(node, Read):
            return reads[node.slot]
        if isinstance(node, Cast):
            value = np.asarray(self.evaluate(node.arg, reads))
            return (value if node.dtype.kind == "float" else value.astype(node.dtype.numpy)).astype(_wide(node.dtype), copy=False)
        assert isinstance(node, Call)
        kinds = [_wide(t) for t in argument_types(node, self.types)]
        parts = [np.asarray(self.evaluate(a, reads)).astype(k, copy=False) for a, k in zip(node.args, kinds, strict=True)]
        return OPERATIONS[node.op].numpy(*parts)


def _wide(dtype: DType) -> np.dtype:
    return np.dtype(np.float64) if dtype.kind == "float" else dtype.wide.numpy


def _matmul(a: np.ndarray, in_a: list[int], b: np.ndarray, in_b: list[int], wanted: list[int]) -> np.ndarray:
    """``einsum`` of two arrays as one (batched) matrix product."""
    a, b = (v.sum(axis=tuple(p for p, n in enumerate(own) if n not in other and n not in wanted))
            for v, own, other in ((a, in_a, in_b), (b, in_b, in_a)))  # fmt: skip
    both = [n for n in in_a if n in in_b and n in wanted]
    inner = [n for n in in_a if n in in_b and n not in wanted]
    rows, columns = ([n for n in own if n in wanted and n not in both] for own in (in_a, in_b))
    size = {**dict(zip([n for n in in_a if n in in_b or n in wanted], a.shape, strict=True)),
            **dict(zip([n for n in in_b if n in in_a or n in wanted], b.shape, strict=True))}  # fmt: skip

    def matrix(v: np.ndarray, own: list[int], left: list[int], right: list[int]) -> np.ndarray:
        kept = [n for n in own if n in size]
        shape = [*(size[n] for n in both), prod(size[n] for n in left), prod(size[n] for n in right)]
        return v.transpose([kept.index(n) for n in (*both, *left, *right)]).reshape(shape)

    out = matrix(a, in_a, rows, inner) @ matrix(b, in_b, inner, columns)
    order = [*both, *rows, *columns]
    return out.reshape([size[n] for n in order]).transpose([order.index(n) for n in wanted])


def _factors(value: Scalar) -> Iterator[Scalar]:
    """The factors of a product, casts between floats left out."""
    if isinstance(value, Call) and value.op == "mul":
        for arg in value.args:
            yield from _factors(arg)
    elif isinstance(value, Cast) and value.dtype.kind == "float":
        yield from _factors(value.arg)
    else:
        yield value
