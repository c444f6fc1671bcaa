"""Seeded arguments of a program: the same numbers in every process, and in the exported file.

What each array holds follows from how the program uses it: an array that indexes another holds valid indices, one whose
root, logarithm or reciprocal is taken holds numbers near 1, one that is multiplied up stays near 1 so that the product
neither vanishes nor overflows; every other float array is close to normal with mean 0 and variance 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import DeviceError
from ...ir.coding import SMALL, coded, decoded, encoded
from ...ir.dtype import DType
from ...ir.operations import OPERATIONS
from ...ir.program import Array, Program, Statement
from ...ir.scalar import Call, Cast, Read, Scalar
from ...kernel.module import Buffer
from ...kernel.reference.error_bound import updates_per_cell
from ..device import as_numpy
from . import exact
from .indexing import index_ranges
from .seeded import Seeded

NORMAL = "normal"
"""The kind of inputs that looks like data."""


@dataclass(frozen=True)
class Recipe:
    """How one array is filled.

    Attributes
    ----------
    kind : str
        ``"normal"``: ``offset + scale * z`` with z of mean 0 and variance 1 within ±3.47; ``"integers"``: in [low, high);
        ``"sparse"`` and ``"groups"`` as :class:`~explorer.run.inputs.seeded.Seeded` says.
    stream : int
        Added to the run's seed times 1000, so that arrays differ.
    offset, scale : float
        Powers of two or 0, so that both only round once.
    low, high, every, rest, inner, outer : int
    why : str
        In words, where it is not the plain case.
    """

    kind: str
    stream: int
    offset: float = 0.0
    scale: float = 1.0
    low: int = 0
    high: int = 0
    why: str = ""
    every: int = 1
    rest: int = 0
    inner: int = 1
    outer: int = 1

    def seeded(self, seed: int) -> Seeded:
        """The array described: a GPU makes the same bits of it."""
        return Seeded(seed * 1000 + self.stream, self.kind, self.low, self.high, self.offset, self.scale, self.every, self.rest,
                      self.inner, self.outer)

    def fill(self, array: Array, seed: int) -> np.ndarray:
        """The array's contents in its own dtype (bf16 and 8-bit floats as their bits)."""
        return self.seeded(seed).host(Buffer(array.name, array.dtype, array.shape, "in"))


def recipes(program: Program, kind: str = NORMAL) -> dict[str, Recipe]:
    """How each input of the program is filled ("in" and "inout" parameters, by name).

    Parameters
    ----------
    program : Program
    kind : str
        ``"normal"``, or one of :data:`explorer.run.inputs.exact.KINDS`.

    Raises
    ------
    DeviceError
        If an array is used as an index through an expression that does not say which values are valid.
    """
    indices = index_ranges(program)
    positive = _positive(program)
    factors = _factors(program)
    out: dict[str, Recipe] = {}
    for stream, array in enumerate(a for a in program.parameters if a.role != "out"):
        name = array.name
        if name in indices:
            low, high = indices[name]
            low = max(low, 0) if array.dtype.unsigned else low
            out[name] = Recipe("integers", stream, low=low, high=max(high, low + 1), why=f"{name} indexes another array")
        elif kind != NORMAL:
            of = exact.ranges(program, kind, array, name in positive, factors.get(name, 0))
            out[name] = Recipe(of.kind, stream, low=of.low, high=of.high, every=of.every, rest=of.rest, inner=of.inner,
                               outer=of.outer)
        elif array.dtype.kind == "bool":
            out[name] = Recipe("integers", stream, low=0, high=2)
        elif array.dtype.kind == "int":
            low = 0 if array.dtype.unsigned else -8
            bounds = (1, 2) if name in factors else (1, 9) if name in positive else (low, 9)
            out[name] = Recipe("integers", stream, low=bounds[0], high=bounds[1])
        elif name in factors:
            scale = 2.0 ** -(3 + factors[name].bit_length() // 2)
            out[name] = Recipe("normal", stream, 1.0, scale, why=f"{name} is multiplied up")
        elif name in positive:
            out[name] = Recipe("normal", stream, 1.0, 0.125, why=f"{name} must stay away from 0")
        else:
            out[name] = Recipe("normal", stream)
    return out


def seeded_arrays(program: Program, seed: int = 0, kind: str = NORMAL) -> dict[str, np.ndarray]:
    """Every parameter of the program: inputs by their recipes, outputs poisoned.

    Parameters
    ----------
    program : Program
    seed : int
    kind : str
        As :func:`recipes` says.

    Returns
    -------
    dict of str to ndarray
        In the parameters' dtypes (bf16 and 8-bit floats as their bits) and shapes.
    """
    made = recipes(program, kind)
    return {a.name: poisoned(a) if a.role == "out" else made[a.name].fill(a, seed) for a in program.parameters}


def poisoned(array: Array) -> np.ndarray:
    """What devices fill outputs with, so that a cell that was not written shows: 0xFF bytes (NaN, -1, and no bool at all)."""
    return np.full(array.nbytes, 0xFF, dtype=np.uint8).view(array.dtype.numpy).reshape(array.shape)


def reference_dtype(dtype: DType) -> np.dtype:
    """The NumPy type of an array of the float64 reference."""
    return np.dtype({"float": "float64", "bool": "uint8"}.get(dtype.kind, "uint64" if dtype.name == "u64" else "int64"))


def widened(array: Array, values: np.ndarray) -> np.ndarray:
    """The values as the reference takes them: float64, int64, or the bytes of bools; contiguous."""
    if coded(array.dtype):
        return np.asarray(decoded(values, array.dtype).astype(np.float64), order="C")
    if array.dtype.kind == "bool":
        return np.asarray(values, order="C").view(np.uint8)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return np.asarray(values, dtype=reference_dtype(array.dtype), order="C")


def _positive(program: Program) -> set[str]:
    """Arrays that must be positive: under a root, a logarithm or a fraction line, through temporaries too."""
    needed: set[str] = set()
    for statement in program.statements:
        needed |= set(_arguments(statement, statement.value, demanded=False))
    while True:
        more = {name for s in program.statements if s.target.array in needed for name in _arguments(s, s.value, demanded=True)}
        if more <= needed:
            return needed
        needed |= more


def _arguments(statement: Statement, value: Scalar, demanded: bool) -> Iterator[str]:
    """Arrays whose sign matters to `value`; `demanded` says that `value` itself must be positive."""
    if isinstance(value, Read):
        if demanded:
            yield statement.reads[value.slot].array
    elif isinstance(value, Cast):
        yield from _arguments(statement, value.arg, demanded)
    elif isinstance(value, Call):
        square = value.op == "mul" and _same(statement, *value.args)
        for n, arg in enumerate(value.args):
            here = n in OPERATIONS[value.op].positive
            passes = demanded and OPERATIONS[value.op].signed and not square
            yield from _arguments(statement, arg, here or (passes and not (value.op == "where" and n == 0)))


def _same(statement: Statement, first: Scalar, second: Scalar) -> bool:
    """Whether two expressions have equal value: equal up to slots that read the same element."""
    if isinstance(first, Read) and isinstance(second, Read):
        return statement.reads[first.slot] == statement.reads[second.slot]
    if isinstance(first, Call) and isinstance(second, Call) and first.op == second.op:
        return all(_same(statement, a, b) for a, b in zip(first.args, second.args, strict=True))
    if isinstance(first, Cast) and isinstance(second, Cast):
        return first.dtype == second.dtype and _same(statement, first.arg, second.arg)
    return first == second


def _factors(program: Program) -> dict[str, int]:
    """Arrays that a product reduction multiplies up, with the number of factors."""
    found: dict[str, int] = {}
    for statement in program.statements:
        if statement.update == "prod":
            for access in statement.reads:
                found[access.array] = max(found.get(access.array, 1), updates_per_cell(statement, program))
    return found


def arguments(program: Program, arrays: Mapping[str, Any] | None, seed: int = 0, kind: str = NORMAL) -> dict[str, np.ndarray]:
    """The program's arguments as NumPy arrays of its dtypes, made from `seed` or converted from what was given.

    Raises
    ------
    DeviceError
        For a missing, unknown or misshapen array, or values that the dtype cannot hold.
    """
    if arrays is None:
        return seeded_arrays(program, seed, kind)
    if not isinstance(arrays, Mapping):
        raise DeviceError(f"The arrays are given by name, not as a {type(arrays).__name__}.",
                          hint=f"run({{{', '.join(f'{a.name!r}: …' for a in program.parameters if a.role != 'out')}}})")
    given = {name: as_numpy(value, str(name)) for name, value in arrays.items()}
    check_arrays(program, given)
    return {a.name: _converted(a, given[a.name]) for a in program.parameters if a.name in given and a.role != "out"}


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a run reads: the caller's arrays, or a seed's, which are made on the host only if somebody needs them there.

    Parameters
    ----------
    program : Program
    seed : int
    given : mapping of str to array, optional
        The caller's, by name.
    kind : str
        Of a seed's: ``"normal"``, or one of :data:`explorer.run.inputs.exact.KINDS`.

    Raises
    ------
    DeviceError
        As :func:`arguments` and :func:`recipes` say.
    """

    program: Program
    seed: int = 0
    given: Mapping[str, Any] | None = None
    kind: str = NORMAL

    def __post_init__(self) -> None:
        _ = self._recipes if self.given is None else self.arrays  # what does not fit is refused now

    @property
    def own(self) -> bool:
        """Whether they are the seed's."""
        return self.given is None

    @property
    def random(self) -> bool:
        """Whether they are random numbers in random order, for which sums have sharper bounds."""
        return self.own and self.kind == NORMAL

    @cached_property
    def _recipes(self) -> dict[str, Recipe]:
        return recipes(self.program, self.kind)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """On the host, in the program's dtypes; a seed's also have the outputs, poisoned."""
        return arguments(self.program, self.given, self.seed, self.kind)

    @property
    def for_gpu(self) -> dict[str, np.ndarray | Seeded]:
        """For the GPU, which makes a seed's itself: no copy has to be made and moved there."""
        if self.own:
            return {name: recipe.seeded(self.seed) for name, recipe in self._recipes.items()}
        return {name: values for name, values in self.arrays.items() if self.program.array_of[name].role != "out"}


def _converted(array: Array, values: np.ndarray) -> np.ndarray:
    wanted = array.dtype.numpy
    if values.dtype == wanted:
        return np.asarray(values, order="C")
    number, whole = values.dtype.kind in "iuf", values.dtype.kind in "iu"  # kinds: a span of time is np.integer too
    with np.errstate(over="ignore", invalid="ignore"):
        if whole and array.dtype.kind == "int" and np.array_equal(values.astype(wanted), values):
            return np.asarray(values, dtype=wanted, order="C")
        if number and array.dtype.kind == "float":
            bits = coded(array.dtype)
            made = np.asarray(encoded(values, array.dtype), order="C") if bits else np.asarray(values, dtype=wanted, order="C")
            back = decoded(made, array.dtype) if bits else made
            if small := SMALL.get(array.dtype.name):
                found = np.flatnonzero(np.abs(values) > small.limit)
            else:
                found = np.flatnonzero(np.isinf(back) & np.isfinite(values))
            if not found.size:
                return made
            becomes = back.ravel()[found[0]] if small else "infinite"
            at = ", ".join(map(str, np.unravel_index(found[0], values.shape)))
            raise DeviceError(f"{array.name} does not fit {array.dtype}.", where=f"{array.name}[{at}]" if at else array.name,
                              why=f"{values.ravel()[found[0]]} would become {becomes}", hint="scale it, or use a wider type")
    raise DeviceError(f"{array.name} is {values.dtype}, the program has {array.dtype}.",
                      hint=f"convert it with .astype({wanted.name!r})")


def check_arrays(program: Program, arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse arguments that are missing, of another shape, or unknown.

    Raises
    ------
    DeviceError
        With the parameter's name, and what is expected of it.
    """
    names = [a.name for a in program.parameters]
    for name in arrays:
        if name not in names:
            raise DeviceError(f"{program.name} has no parameter {name!r}.", hint=f"one of {', '.join(names)}")
    for array in program.parameters:
        if array.name not in arrays:
            if array.role != "out":
                raise DeviceError(f"The argument {array.name} is missing.", why=_goes_in(array),
                                  hint=f"pass {array.name}: {array.dtype}{list(array.shape)}{_start(program, array)}")
            continue
        shape = tuple(np.shape(arrays[array.name]))
        if shape != array.shape:
            raise DeviceError(f"{array.name} has shape {list(shape)}, the program has {list(array.shape)}.",
                              hint="make the schedule with the sizes of the arrays")


def _goes_in(array: Array) -> str:
    """Why an array that the program writes has to be passed."""
    if array.role != "inout":
        return ""
    return f"{array.name} is read before the program writes all of it, or was declared so: it goes in too"


def _start(program: Program, array: Array) -> str:
    """What else helps where sums have no start."""
    sums = any(s.update == "sum" and s.target.array == array.name for s in program.statements)
    place = f"{array.name}[…] = {'0.0' if array.dtype.kind == 'float' else '0'}"
    return f"; or, to start from zero, write {place} before the loop that adds to it" * (sums and array.role == "inout")


__all__ = ["Inputs", "Recipe", "arguments", "check_arrays", "poisoned", "recipes", "seeded_arrays", "widened"]
