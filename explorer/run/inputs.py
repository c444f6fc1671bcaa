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

from ..codegen.error_bound import updates_per_cell
from ..codegen.module import Buffer
from ..errors import DeviceError
from ..ir.dtype import bf16_to_f32, f32_to_bf16
from ..ir.program import Array, Indirect, Program, Statement
from ..ir.scalar import Call, Cast, IndexValue, Literal, Read, Scalar
from .cuda import as_numpy
from .seeded import Seeded


@dataclass(frozen=True)
class Recipe:
    """How one array is filled.

    Attributes
    ----------
    kind : str
        ``"normal"``: ``offset + scale * z`` with z of mean 0 and variance 1 within ±3.47; ``"integers"``: in [low, high).
    stream : int
        Added to the run's seed times 1000, so that arrays differ.
    offset, scale : float
        Powers of two or 0, so that both only round once.
    low, high : int
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

    def seeded(self, seed: int) -> Seeded:
        """The array described: a GPU makes the same bits of it."""
        return Seeded(seed * 1000 + self.stream, self.kind, self.low, self.high, self.offset, self.scale)

    def fill(self, array: Array, seed: int) -> np.ndarray:
        """The array's contents in its own dtype (bf16 as its bits)."""
        return self.seeded(seed).host(Buffer(array.name, array.dtype, array.shape, "in"))


def recipes(program: Program) -> dict[str, Recipe]:
    """How each input of the program is filled ("in" and "inout" parameters, by name).

    Raises
    ------
    DeviceError
        If an array is used as an index through an expression that does not say which values are valid.
    """
    indices = _index_ranges(program)
    positive = _positive(program)
    factors = _factors(program)
    out: dict[str, Recipe] = {}
    for stream, array in enumerate(a for a in program.parameters if a.role != "out"):
        name = array.name
        if name in indices:
            low, high = indices[name]
            out[name] = Recipe("integers", stream, low=low, high=max(high, low + 1), why=f"{name} indexes another array")
        elif array.dtype.kind == "bool":
            out[name] = Recipe("integers", stream, low=0, high=2)
        elif array.dtype.kind == "int":
            bounds = (1, 2) if name in factors else (1, 9) if name in positive else (-8, 9)
            out[name] = Recipe("integers", stream, low=bounds[0], high=bounds[1])
        elif name in factors:
            scale = 2.0 ** -(3 + factors[name].bit_length() // 2)
            out[name] = Recipe("normal", stream, 1.0, scale, why=f"{name} is multiplied up")
        elif name in positive:
            out[name] = Recipe("normal", stream, 1.0, 0.125, why=f"{name} must stay away from 0")
        else:
            out[name] = Recipe("normal", stream)
    return out


def seeded_arrays(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Every parameter of the program: inputs by their recipes, outputs poisoned.

    Parameters
    ----------
    program : Program
    seed : int

    Returns
    -------
    dict of str to ndarray
        In the parameters' dtypes (bf16 as ``uint16`` bits) and shapes.
    """
    made = recipes(program)
    return {a.name: poisoned(a) if a.role == "out" else made[a.name].fill(a, seed) for a in program.parameters}


def poisoned(array: Array) -> np.ndarray:
    """What devices fill outputs with, so that a cell that was not written shows: 0xFF bytes (NaN, -1, and no bool at all)."""
    return np.full(array.nbytes, 0xFF, dtype=np.uint8).view(array.dtype.numpy).reshape(array.shape)


def widened(array: Array, values: np.ndarray) -> np.ndarray:
    """The values as the reference takes them: float64, int64, or the bytes of bools; contiguous."""
    if array.dtype.name == "bf16":
        return np.ascontiguousarray(bf16_to_f32(values).astype(np.float64)).reshape(np.shape(values))
    if array.dtype.kind == "bool":
        return np.ascontiguousarray(values).view(np.uint8)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return np.ascontiguousarray(values, dtype=np.float64 if array.dtype.kind == "float" else np.int64)


def _index_ranges(program: Program) -> dict[str, tuple[int, int]]:
    """Valid half-open range of each array whose values index another."""
    found: dict[str, tuple[int, int]] = {}
    for statement in program.statements:
        for access in statement.reads:
            for index, extent in zip(access.index, program.array_of[access.array].shape, strict=True):
                if not isinstance(index, Indirect):
                    continue
                line = _linear(index.value)
                if line is None or program.array_of[statement.reads[line[0]].array].role in ("temporary", "out"):
                    raise DeviceError(f"No seeded input for {program.name}: which values index {access.array} is not plain.",
                                      where=f"source line {statement.line}" if statement.line else "",
                                      hint="pass arrays of your own to run()")
                slot, factor, shift = line
                ends = sorted((-shift / factor, (extent - 1 - shift) / factor))
                low, high = int(np.ceil(ends[0])), int(np.floor(ends[1])) + 1
                name = statement.reads[slot].array
                old = found.get(name, (low, high))
                found[name] = (max(old[0], low), min(old[1], high))
    return found


def _linear(value: Scalar) -> tuple[int, int, int] | None:
    """``(slot, factor, shift)`` when `value` is ``factor * read + shift`` with integers, else None."""
    if isinstance(value, Cast):
        return _linear(value.arg)
    if isinstance(value, Read):
        return value.slot, 1, 0
    if isinstance(value, Call) and value.op in ("add", "sub", "mul") and len(value.args) == 2:
        for inner, other, swapped in ((value.args[0], value.args[1], False), (value.args[1], value.args[0], True)):
            number = _integer(other)
            if number is None or (line := _linear(inner)) is None:
                continue
            slot, factor, shift = line
            if value.op == "mul":
                return (slot, factor * number, shift * number) if number else None
            if value.op == "add":
                return slot, factor, shift + number
            return (slot, -factor, number - shift) if swapped else (slot, factor, shift - number)
    return None


def _integer(value: Scalar) -> int | None:
    if isinstance(value, Literal) and float(value.value).is_integer():
        return int(value.value)
    return value.expr.const if isinstance(value, IndexValue) and value.expr.is_constant else None


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
            here = value.op in ("sqrt", "rsqrt", "log") or (value.op in ("div", "pow") and n == (value.op == "div"))
            passes = demanded and value.op not in ("exp", "abs", "not") and not square
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


def arguments(program: Program, arrays: Mapping[str, Any] | None, seed: int = 0) -> dict[str, np.ndarray]:
    """The program's arguments as NumPy arrays of its dtypes, made from `seed` or converted from what was given.

    Raises
    ------
    DeviceError
        For a missing, unknown or misshapen array, or values that the dtype cannot hold.
    """
    if arrays is None:
        return seeded_arrays(program, seed)
    if not isinstance(arrays, Mapping):
        raise DeviceError(f"The arrays are given by name, not as a {type(arrays).__name__}.",
                          hint=f"run({{{', '.join(f'{a.name!r}: …' for a in program.parameters if a.role != 'out')}}})")
    given = {name: as_numpy(value) for name, value in arrays.items()}
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

    Raises
    ------
    DeviceError
        As :func:`arguments` and :func:`recipes` say.
    """

    program: Program
    seed: int = 0
    given: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _ = self._recipes if self.given is None else self.arrays  # what does not fit is refused now

    @property
    def own(self) -> bool:
        """Whether they are the seed's."""
        return self.given is None

    @cached_property
    def _recipes(self) -> dict[str, Recipe]:
        return recipes(self.program)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """On the host, in the program's dtypes; a seed's also have the outputs, poisoned."""
        return arguments(self.program, self.given, self.seed)

    @property
    def for_gpu(self) -> dict[str, np.ndarray | Seeded]:
        """For the GPU, which makes a seed's itself: no copy has to be made and moved there."""
        if self.own:
            return {name: recipe.seeded(self.seed) for name, recipe in self._recipes.items()}
        return {name: values for name, values in self.arrays.items() if self.program.array_of[name].role != "out"}


def _converted(array: Array, values: np.ndarray) -> np.ndarray:
    wanted = array.dtype.numpy
    if values.dtype == wanted:
        return np.ascontiguousarray(values)
    number = np.issubdtype(values.dtype, np.number) and not np.issubdtype(values.dtype, np.complexfloating)
    whole = np.issubdtype(values.dtype, np.integer)
    if array.dtype.name == "bf16" and number:
        return f32_to_bf16(values.astype(np.float32))
    fits = whole and array.dtype.kind == "int" and np.array_equal(values.astype(wanted), values)
    if fits or (array.dtype.kind == "float" and number):
        return np.ascontiguousarray(values, dtype=wanted)
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
                raise DeviceError(f"The argument {array.name} is missing.",
                                  hint=f"pass {array.name}: {array.dtype}{list(array.shape)}")
            continue
        shape = tuple(np.shape(arrays[array.name]))
        if shape != array.shape:
            raise DeviceError(f"{array.name} has shape {list(shape)}, the program has {list(array.shape)}.",
                              hint="make the schedule with the sizes of the arrays")


__all__ = ["Inputs", "Recipe", "arguments", "check_arrays", "poisoned", "recipes", "seeded_arrays", "widened"]
