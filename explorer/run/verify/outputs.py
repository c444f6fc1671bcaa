"""Whether a run's outputs are right: how much rounding may explain, and the first cell that it does not.

Where the float64 reference ran with bounds (:mod:`explorer.kernel.reference.error_bound`), a cell is right if it lies between
the ends of

    [round(expected - SAFETY * bound), round(expected + SAFETY * bound)]

with the cell's running error bound (any order of summation; sharper where the inputs are random) and `round` to the nearest
number of the output's type: rounding is monotonic, so whatever a device had before it stored lies there.  Where nothing rounds
before the store the bound is 0, one number is right, and the comparison is bit for bit.  Without bounds (interpreter or NumPy
alone) the tolerance is a priori:

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
from typing import TYPE_CHECKING

import numpy as np

from ...ir.coding import coded, decoded, encoded
from ...ir.dtype import DType
from ...ir.operations import OPERATIONS
from ...ir.program import Array, Program, Statement
from ...ir.scalar import Call, walk
from ...ir.tree import leaves
from ...kernel.reference.error_bound import SAFETY, gamma, unit, updates_per_cell
from ..inputs.arguments import widened

if TYPE_CHECKING:
    from .reference import Reference

SMALLEST = {"f8e4m3": 2.0**-9, "f8e5m2": 2.0**-16, "f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}
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
    unbounded : int
        Cells with a finite value that nothing bounds the error of: anything is within their tolerance.
    """

    dtype: DType
    terms: int
    relative: float
    absolute: float
    per_cell: bool
    unbounded: int = 0

    def __str__(self) -> str:
        if self.unbounded:
            return f"{replace(self, unbounded=0)}; except {self.unbounded:,} cells that nothing bounds"
        if self.relative == self.absolute == 0.0:
            return "exact"
        if self.per_cell and self.absolute == 0.0:
            return f"none: each cell is the number of {self.dtype} nearest to the expected one, bit for bit"
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
        Largest error over its tolerance: 1 is the limit.  Where each cell has a bound, both beyond the rounding of the store.
    tolerance : Tolerance
    reference : str
        What the expected values come from.
    exact : int
        Cells for which one value alone is right.
    index : tuple of int or None
        The first wrong cell; `got`, `expected` and `allowed` are its values and its tolerance.
    inputs : str
        The kind of inputs, in words, where they are not the seeded or the given ones.
    size : float
        Root of the mean square of the expected values.
    unwritten : int
        Cells that no instance of the program writes: an output holds no value there.
    """

    array: str
    checked: int
    total: int
    wrong: int
    max_error: float
    worst: float
    tolerance: Tolerance
    reference: str
    exact: int = 0
    index: tuple[int, ...] | None = None
    got: float | int = 0
    expected: float | int = 0
    allowed: float = 0.0
    inputs: str = ""
    size: float = 0.0
    unwritten: int = 0

    def __bool__(self) -> bool:
        return self.wrong == 0

    @property
    def cells(self) -> str:
        """How many cells were compared, and of how many where it is a sample; those that nothing writes do not count."""
        return f"{self.checked - self.unwritten:,}" if self.checked == self.total else f"{self.checked:,} of {self.total:,}"

    @property
    def leaves_out_store(self) -> bool:
        """Whether `worst` compares errors and tolerances beyond the rounding of the store."""
        return self.tolerance.per_cell and self.tolerance.dtype.kind == "float" and self.exact < self.checked

    @property
    def only_stored(self) -> bool:
        """Whether each value is the expected one as its type can store it, and some are not the expected one itself."""
        return self.leaves_out_store and self.worst == 0.0 < self.max_error and not self.tolerance.unbounded

    @property
    def share(self) -> str:
        """What the largest error is of its tolerance, in words that say what they leave out."""
        if self.only_stored:
            return "all of it the rounding of the store"
        left = " beyond the rounding of the store" if self.leaves_out_store else ""
        return f"{self.worst:.2g} of the tolerance{left}"

    @property
    def blind(self) -> bool:
        """Whether the tolerance allows errors of the size of the values: being within it then says nothing."""
        return 0.0 < self.size <= 4 * self.tolerance.absolute or 0 < self.checked == self.tolerance.unbounded

    @property
    def sharpness(self) -> str:
        """How much an error could hide, in words: nothing where a cell is compared bit for bit."""
        if self.exact == self.checked:
            return f"{self.array} bit for bit"
        if self.checked == self.tolerance.unbounded:
            return f"{self.array} not checked: its errors have no bound"
        if self.blind:
            return f"{self.array} not checked: the bound allows errors of {self.tolerance.absolute:.2g}, as large as its values"
        bits = f"{self.exact:,} of {self.checked:,} cells bit for bit, " if self.exact else ""
        if self.only_stored:
            return f"{self.array} {bits}equal after the rounding of the store (largest error {self.max_error:.2g})"
        return f"{self.array} {bits}largest error {self.max_error:.2g}" + (f", {self.share}" if self.max_error else "")

    def __str__(self) -> str:
        if self:
            return (f"{self.array}: {self.cells} cells right against {self.reference}; "
                    f"largest error {self.max_error:.3g}, {self.share}; tolerance {self.tolerance}")
        cell = f"{self.array}[{', '.join(map(str, self.index or ()))}]"
        on = f" on {self.inputs}" if self.inputs else ""
        return (f"{self.array}: {self.wrong:,} of {self.cells} cells wrong{on} against {self.reference}; "
                f"first {cell} = {self.got:.9g}, expected {self.expected:.9g}, allowed error {self.allowed:.3g}")


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
    slack = _numpy_slack(array, flat) if reference.numpy else 0.0
    wrong, exact, first, max_error, worst = 0, 0, None, 0.0, 0.0
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        got, want = widened(array, native[part]), flat[part]
        error, allowed = _errors(array, tolerance, got, want, None if bounds is None else bounds[part] + slack)
        bad = np.flatnonzero(~(error <= allowed))
        bad = bad[~_same(array.dtype, got[bad], want[bad])]
        wrong += bad.size
        exact += int(np.count_nonzero(bounds[part] == 0.0)) if bounds is not None else 0
        if bad.size and first is None:
            first = (start + int(bad[0]), got[bad[0]].item(), want[bad[0]].item(), abs(float(allowed[bad[0]])))
        finite = error[np.isfinite(error)]
        max_error = max(max_error, float(finite.max(initial=0.0)))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = _share(array.dtype, error, allowed, got, None if bounds is None else SAFETY * (bounds[part] + slack))
        worst = max(worst, float(share[np.isfinite(error)].max(initial=0.0)))
    check = Check(array.name, int(flat.size), array.size, wrong, max_error, worst, tolerance, reference.source, exact,
                  size=_size(flat))
    if first is None:
        return check
    where = tuple(int(i) for i in np.unravel_index(first[0], expected.shape))
    index = where if cells is None else tuple(int(c[i]) for c, i in zip(cells, where, strict=True))
    return replace(check, index=index, got=first[1], expected=first[2], allowed=first[3])


def _tolerance(program: Program, array: Array, expected: np.ndarray, bounds: np.ndarray | None) -> Tolerance:
    terms = longest_path(program, array.name)
    store = unit(array.dtype) if array.dtype.kind == "float" else 0.0
    if bounds is not None:
        largest = SAFETY * float(np.max(bounds, initial=0.0, where=np.isfinite(bounds)))
        unbounded = int(np.count_nonzero(np.isinf(bounds) & np.isfinite(expected)))
        return Tolerance(array.dtype, terms, store, largest, True, unbounded)
    if array.dtype.kind != "float":
        return Tolerance(array.dtype, terms, 0.0, 0.0, False)
    computed = [unit(a.dtype.wide) for a in program.arrays if a.dtype.kind == "float"]
    stored = [unit(a.dtype) for a in program.temporaries if a.dtype.kind == "float"]
    g = gamma(terms, max(computed + stored))
    largest = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)))
    return Tolerance(array.dtype, terms, g + store, g * largest + SMALLEST[array.dtype.name], False)


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
        own, unknown = SAFETY * np.where(np.isnan(bounds), 0.0, bounds), np.isinf(bounds)
        above = got >= expected
        end = rounded_to(array.dtype, np.where(above, expected + own, expected - own))
        allowed = np.where(unknown, np.inf, np.where(above, end - expected, expected - end))
        return np.where(unknown & np.isnan(error), 0.0, error), allowed  # the operand may have been on the other side of 0


def _share(dtype: DType, error: np.ndarray, allowed: np.ndarray, got: np.ndarray, own: np.ndarray | None) -> np.ndarray:
    """How much of its tolerance each error is; a store rounds by half of the distance between two numbers at most."""
    if own is not None and dtype.kind == "float":
        half = np.maximum(np.ldexp(dtype.digits, np.frexp(got)[1] - 1), SMALLEST[dtype.name] / 2)
        error, allowed = np.where(error > allowed, error, np.maximum(error - half, 0.0)), own
    return np.divide(error, allowed, out=np.zeros_like(error), where=error > 0)


def rounded_to(dtype: DType, values: np.ndarray) -> np.ndarray:
    """The nearest numbers of a float type, as float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        if coded(dtype):
            return decoded(encoded(values, dtype, moved=True), dtype).astype(np.float64)
        return values.astype(dtype.numpy).astype(np.float64)


def _size(values: np.ndarray) -> float:
    """Root of the mean square of the finite values."""
    finite = values[np.isfinite(values)].astype(np.float64) if values.dtype.kind == "f" else values[:0].astype(np.float64)
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(finite * finite))) if finite.size else 0.0


def _numpy_slack(array: Array, expected: np.ndarray) -> float:
    """How far a formula of NumPy's, in float64 too, may be off."""
    largest = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)))
    return 2.0**-40 * largest if array.dtype.kind == "float" else 0.0


def _distance(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """|got - expected| of integers as float64, 0 only where they are equal."""
    return np.where(got == expected, 0.0, np.maximum(np.abs(got.astype(np.float64) - expected.astype(np.float64)), 1.0))


def _same(dtype: DType, got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where both are NaN, or the expected value rounds to the infinity that was got."""
    if dtype.kind != "float":
        return got == expected
    rounded = rounded_to(dtype, expected)
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
    return sum(int(OPERATIONS[c.op].roundings) for c in calls) + 1


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
