"""Whether a run's outputs are right: how much rounding may explain, and the first cell that it does not.

Where the float64 reference ran with bounds (:mod:`explorer.codegen.error_bound`), every cell has a tolerance of its own:

    |got - expected| <= SAFETY * bound + u_store * |expected| + smallest

with the cell's running error bound (any order of summation), the unit roundoff of the output's type and its smallest
positive number.  Without bounds (interpreter or NumPy alone) the tolerance is a priori:

    |got - expected| <= gamma_n * (|expected| + largest |expected|) + u_store * |expected| + smallest

with n the roundings on the longest path to the output.  For terms of one sign gamma_n |expected| is the theorem (N. J. Higham,
Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2); where they cancel, the largest output stands in for the
sum of the terms' magnitudes, of which for random signs it is about one part in sqrt(n)/4, as the random error is of the bound.

Infinities and NaN must be equal; an infinity is also right where the expected value rounds to it.  Integers and bools are
exact unless they were made from rounded floats (a cast, a comparison), which the bound knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..codegen.error_bound import ROUNDINGS, SAFETY, gamma, unit, updates_per_cell
from ..ir.dtype import DType, bf16_to_f32, f32_to_bf16
from ..ir.program import Array, Program, Statement
from ..ir.scalar import Call, walk
from ..ir.tree import leaves
from .inputs import widened
from .reference import Reference

SMALLEST = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}
"""Smallest positive (subnormal) number of each float type."""


@dataclass(frozen=True)
class Tolerance:
    """What rounding may explain in one output.

    Attributes
    ----------
    dtype : DType
        Of the output.
    terms : int
        Roundings on the longest path from the inputs to a cell, reductions counted with their length.
    relative, absolute : float
        Of the a-priori form; `absolute` is the largest of the cells' where each has its own.
    per_cell : bool
        Whether each cell has a bound of its own.
    """

    dtype: DType
    terms: int
    relative: float
    absolute: float
    per_cell: bool

    def __str__(self) -> str:
        if self.relative == self.absolute == 0.0:
            return "exact"
        form = "running error bound of each cell, at most" if self.per_cell else "a priori,"
        return f"{self.relative:.2g}·|expected| + {self.absolute:.2g} ({form} n={self.terms}, {self.dtype})"


@dataclass(frozen=True)
class Check:
    """The verdict on one output; true when every checked cell is within its tolerance.

    Attributes
    ----------
    array : str
    checked, total : int
        Cells compared, and cells there are.
    wrong : int
        Cells outside the tolerance.
    max_error : float
        Largest |got - expected| of the finite cells.
    worst : float
        Largest error over its tolerance: 1 is the limit.
    tolerance : Tolerance
    reference : str
        What the expected values come from.
    index : tuple of int or None
        The first wrong cell; `got`, `expected` and `allowed` are its values and its tolerance.
    """

    array: str
    checked: int
    total: int
    wrong: int
    max_error: float
    worst: float
    tolerance: Tolerance
    reference: str
    index: tuple[int, ...] | None = None
    got: float | int = 0
    expected: float | int = 0
    allowed: float = 0.0

    def __bool__(self) -> bool:
        return self.wrong == 0

    def __str__(self) -> str:
        some = f"{self.checked:,}" if self.checked == self.total else f"{self.checked:,} of {self.total:,}"
        if self:
            return (f"{self.array}: {some} cells right against {self.reference}; "
                    f"largest error {self.max_error:.3g}, {self.worst:.2g} of the tolerance {self.tolerance}")
        cell = f"{self.array}[{', '.join(map(str, self.index or ()))}]"
        return (f"{self.array}: {self.wrong:,} of {some} cells wrong against {self.reference}; first {cell} = {self.got:.9g}, "
                f"expected {self.expected:.9g}, allowed error {self.allowed:.3g}")


def check_outputs(program: Program, outputs: Mapping[str, np.ndarray], *references: Reference) -> tuple[Check, ...]:
    """Compare every output with every reference.

    Parameters
    ----------
    program : Program
    outputs : mapping of str to ndarray
        What the device wrote ("out" and "inout" parameters), in the parameters' dtypes.
    *references : Reference

    Returns
    -------
    tuple of Check
        One per reference and output, in the parameters' order.
    """
    written = [a for a in program.parameters if a.role != "in"]
    return tuple(check_output(program, a, outputs[a.name], r) for r in references for a in written)


def worst_of(several: Sequence[tuple[Check, ...]]) -> tuple[Check, ...]:
    """Of several runs of the same checks, each check's worst."""
    return tuple(max(column, key=lambda c: (c.wrong, c.worst)) for column in zip(*several, strict=True))


def check_output(program: Program, array: Array, output: np.ndarray, reference: Reference) -> Check:
    """Compare one output with the reference; see :func:`check_outputs`."""
    expected = reference.values[array.name]
    cells = reference.cells.get(array.name)
    got = widened(array, np.asarray(output)).reshape(array.shape)
    got = got[np.ix_(*cells)] if cells is not None else got
    bound = reference.bounds.get(array.name)
    tolerance, allowed = _allowed(program, array, expected, bound)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got - expected) if array.dtype.kind == "float" else _distance(got, expected)
        right = (error <= allowed) | _same(array.dtype, got, expected)
        finite = np.isfinite(error)
        ratio = np.where(error > 0, error / np.where(allowed > 0, allowed, np.finfo(np.float64).tiny), 0.0)
    wrong = np.flatnonzero(~right)
    check = Check(array.name, int(expected.size), array.size, int(wrong.size), float(error[finite].max(initial=0.0)),
                  float(ratio[finite].max(initial=0.0)), tolerance, reference.source)
    if not wrong.size:
        return check
    where = np.unravel_index(wrong[0], expected.shape)
    index = tuple(int(c[i]) if cells is not None else int(i) for c, i in zip(cells or where, where, strict=True))
    return Check(check.array, check.checked, check.total, check.wrong, check.max_error, check.worst, tolerance, check.reference,
                 index, got[where].item(), expected[where].item(), float(np.broadcast_to(allowed, expected.shape)[where]))


def _allowed(program: Program, array: Array, expected: np.ndarray, bound: np.ndarray | None) -> tuple[Tolerance, np.ndarray]:
    terms = longest_path(program, array.name)
    store = unit(array.dtype) if array.dtype.kind == "float" else 0.0
    floor = SMALLEST.get(array.dtype.name, 0.0)
    size = np.abs(expected.astype(np.float64))
    size = np.where(np.isfinite(size), size, 0.0)
    if bound is not None:
        own = SAFETY * np.where(np.isnan(bound), 0.0, bound)
        tolerance = Tolerance(array.dtype, terms, store, float(own[np.isfinite(own)].max(initial=0.0)), True)
        return tolerance, own + store * size + floor
    if array.dtype.kind != "float":
        return Tolerance(array.dtype, terms, 0.0, 0.0, False), np.zeros(expected.shape)
    g = gamma(terms, max(unit(a.dtype.wide) for a in program.arrays if a.dtype.kind == "float"))
    g = max([g, *(gamma(terms, unit(a.dtype)) for a in program.temporaries if a.dtype.kind == "float")])
    absolute = g * float(size.max(initial=0.0)) + floor
    return Tolerance(array.dtype, terms, g + store, absolute, False), (g + store) * size + absolute


def _distance(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """|got - expected| of integers as float64, 0 only where they are equal."""
    return np.where(got == expected, 0.0, np.maximum(np.abs(got.astype(np.float64) - expected.astype(np.float64)), 1.0))


def _same(dtype: DType, got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where both are NaN, or the expected value rounds to the infinity that was got."""
    if dtype.kind != "float":
        return got == expected
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.name == "bf16":
            rounded = bf16_to_f32(f32_to_bf16(expected.astype(np.float32))).reshape(expected.shape).astype(np.float64)
        else:
            rounded = expected.astype(dtype.numpy).astype(np.float64)
    return (np.isnan(got) & np.isnan(expected)) | (np.isinf(got) & (rounded == got))


def longest_path(program: Program, array: str) -> int:
    """Roundings on the longest path from the inputs to a cell of `array`, reductions and repeated writes counted in full."""
    written = {s.target.array for s in program.statements}

    def depth(name: str, path: tuple[str, ...]) -> int:
        if name not in written or name in path:
            return 0
        deepest = 0
        for s in program.statements:
            if s.target.array == name:
                before = max((depth(a.array, (*path, name)) for a in s.reads), default=0)
                deepest = max(deepest, before + _repeats(program, s) * _roundings(s))
        return deepest

    return max(depth(array, ()), 1)


def _roundings(statement: Statement) -> int:
    calls = [n for n in walk(statement.value) if isinstance(n, Call)]
    return sum(ROUNDINGS.get(c.op, 1) for c in calls) + 1


def _repeats(program: Program, statement: Statement) -> int:
    """Times that the statement passes a value on to itself: updates of a cell, repeated writes, and steps along a recurrence."""
    count = updates_per_cell(statement, program)
    target = statement.target
    if statement.update:
        return count
    moved = {n for a in statement.reads if a.array == target.array for e, f in zip(a.index, target.index, strict=True) if e != f
             for n in getattr(f, "variables", frozenset)()}  # fmt: skip
    for leaf, above in leaves(program.body):
        if leaf.statement == statement.name:
            for loop in above:
                count *= loop.extent if loop.id in moved else 1
    return max(count, 1)
