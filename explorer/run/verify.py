"""Whether a run's outputs are right: how much rounding may explain, and the first cell that it does not.

Where the float64 reference ran with bounds (:mod:`explorer.codegen.error_bound`), every cell has a tolerance of its own:

    |got - expected| <= SAFETY * bound + u_store * |expected| + smallest

with the cell's running error bound (any order of summation; sharper where the inputs are random), the unit roundoff of the
output's type and its smallest positive number.  Without bounds (interpreter or NumPy alone) the tolerance is a priori:

    |got - expected| <= gamma_n * (|expected| + largest |expected|) + u_store * |expected| + smallest

with n the roundings on the longest path to the output.  For terms of one sign gamma_n |expected| is the theorem (N. J. Higham,
Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2); where they cancel, the largest output stands in for the
sum of the terms' magnitudes, of which for random signs it is about one part in sqrt(n)/4, as the random error is of the bound.

Infinities and NaN must be equal; an infinity is also right where the expected value rounds to it.  Integers and bools are
exact unless they were made from rounded floats (a cast, a comparison), which the bound knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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

_CHUNK = 1 << 18  # cells compared at a time: what fits a processor's cache


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
        most, form = ("at most ", "each cell's running error bound") if self.per_cell else ("", "a priori")
        return f"{self.relative:.2g}·|expected| + {most}{self.absolute:.2g} ({form}, {self.terms} roundings in {self.dtype})"


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
                    f"largest error {self.max_error:.3g}, {self.worst:.2g} of the tolerance; tolerance {self.tolerance}")
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
    cells, bound = reference.cells.get(array.name), reference.bounds.get(array.name)
    native = np.asarray(output).reshape(array.shape)
    native = (native[np.ix_(*cells)] if cells is not None and array.shape else native).reshape(-1)
    flat, bounds = expected.reshape(-1), None if bound is None else bound.reshape(-1)
    tolerance = _tolerance(program, array, flat, bounds)
    wrong, first, max_error, worst = 0, None, 0.0, 0.0
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        got, want = widened(array, native[part]), flat[part]
        error, allowed = _errors(array, tolerance, got, want, None if bounds is None else bounds[part])
        bad = np.flatnonzero(~(error <= allowed))
        bad = bad[~_same(array.dtype, got[bad], want[bad])]
        wrong += bad.size
        if bad.size and first is None:
            first = (start + int(bad[0]), got[bad[0]].item(), want[bad[0]].item(), float(allowed[bad[0]]))
        finite = error[np.isfinite(error)]
        max_error = max(max_error, float(finite.max(initial=0.0)))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.divide(error, allowed, out=np.zeros_like(error), where=error > 0)
        worst = max(worst, float(share[np.isfinite(error)].max(initial=0.0)))
    check = Check(array.name, int(flat.size), array.size, wrong, max_error, worst, tolerance, reference.source)
    if first is None:
        return check
    where = tuple(int(i) for i in np.unravel_index(first[0], expected.shape))
    index = where if cells is None else tuple(int(c[i]) for c, i in zip(cells, where, strict=True))
    return replace(check, index=index, got=first[1], expected=first[2], allowed=first[3])


def _tolerance(program: Program, array: Array, expected: np.ndarray, bounds: np.ndarray | None) -> Tolerance:
    terms = longest_path(program, array.name)
    store = unit(array.dtype) if array.dtype.kind == "float" else 0.0
    floor = SMALLEST.get(array.dtype.name, 0.0)
    if bounds is not None:
        largest = SAFETY * float(np.max(bounds, initial=0.0, where=np.isfinite(bounds)))
        return Tolerance(array.dtype, terms, store, largest + floor, True)
    if array.dtype.kind != "float":
        return Tolerance(array.dtype, terms, 0.0, 0.0, False)
    computed = [unit(a.dtype.wide) for a in program.arrays if a.dtype.kind == "float"]
    stored = [unit(a.dtype) for a in program.temporaries if a.dtype.kind == "float"]
    g = gamma(terms, max(computed + stored))
    largest = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)))
    return Tolerance(array.dtype, terms, g + store, g * largest + floor, False)


def _errors(array: Array, tolerance: Tolerance, got: np.ndarray, expected: np.ndarray,
            bounds: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The error of each cell, and what is allowed."""
    if array.dtype.kind != "float":
        error = _distance(got, expected)
        return error, np.zeros_like(error) if bounds is None else SAFETY * bounds
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.where(np.isfinite(expected), np.abs(expected), 0.0)
        error = np.abs(got - expected)
        if bounds is None:
            return error, tolerance.relative * size + tolerance.absolute
        own = SAFETY * np.where(np.isnan(bounds), 0.0, bounds)
        return error, own + tolerance.relative * size + SMALLEST[array.dtype.name]


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
