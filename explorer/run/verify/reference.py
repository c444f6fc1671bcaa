"""Expected outputs, computed without the schedule: the program's own loops in float64, compiled as plain C.

Without a compiler, tiny sizes are interpreted.  Where all cells would take too long, a seeded sample is computed, if the
program's outer loops allow it (:mod:`explorer.kernel.reference.slices`).  Every result says which of these it is.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CompilerMissing, DeviceError, KernelFault
from ...ir.interpret import interpret
from ...ir.program import Program
from ...kernel.reference.program import parameters, reference_text
from ...kernel.reference.slices import Slice, cells, cost, sample, slices
from ...system.cache import key_of
from ..cpu.compiler import BUILDS, find_compiler, run_compiler
from ..device import plain
from ..inputs.arguments import poisoned, reference_dtype, widened

BUDGET = 10**9
"""Operations up to which every cell is computed (about one second); beyond, a sample of about so many."""

LIMIT = 2 * 10**10
"""Operations up to which a program that cannot be sampled is computed nevertheless (about two minutes)."""

INTERPRETER_LIMIT = 10**6
"""Operations that the interpreter may take (some seconds)."""

_FLAGS = ("-std=c++17", "-w", "-O2", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=off", "-fno-exceptions", "-fwrapv")

_NAMES = {False: "reference_given", True: "reference_random"}
"""The namespaces of the compiled text, by whether the inputs are random."""

NumpyReference = Callable[..., Any]
"""``function(arrays, sizes)``: from the inputs by name (floats as float64) and the sizes to the outputs: one array, a tuple in
the parameters' order, or a mapping by name."""


@dataclass(frozen=True)
class Reference:
    """Expected values of the outputs.

    Attributes
    ----------
    values : mapping of str to ndarray
        float64, int64 or (bools) uint8; a sample is compact: the cross product of its indices.
    bounds : mapping of str to ndarray
        First-order rounding error bounds of the same shape; empty where there are none.
    cells : mapping of str to tuple of ndarray
        Per output the indices of the sample along each dimension; empty for all cells.
    source : str
        What computed them, in words.
    numpy : bool
        Whether a function of the caller's computed them, whose float64 rounds elsewhere.
    """

    values: Mapping[str, np.ndarray]
    bounds: Mapping[str, np.ndarray]
    cells: Mapping[str, tuple[np.ndarray, ...]]
    source: str
    numpy: bool = False

    @property
    def complete(self) -> bool:
        """Whether every cell is there."""
        return not self.cells


def reference(program: Program, arrays: Mapping[str, np.ndarray], *, budget: int = BUDGET, seed: int = 0,
              random: bool = False) -> Reference:  # fmt: skip
    """Compute what the program's outputs should be.

    Parameters
    ----------
    program : Program
        The user's program.
    arrays : mapping of str to ndarray
        Every "in" and "inout" parameter, in its dtype (bf16 as bits).
    budget : int
        Operations for which all cells are computed; a sample takes about as many.
    seed : int
        Of the sample.
    random : bool
        The arrays hold random numbers (they were made from a seed), so that sums have sharper bounds.

    Raises
    ------
    KernelFault
        If a data-dependent index leaves its array.
    CompilerMissing
        If there is no compiler and the sizes are too large to interpret.
    DeviceError
        If the sizes are too large to compute and the program cannot be sampled.
    """
    try:
        find_compiler()
    except CompilerMissing:
        if cost(program) > INTERPRETER_LIMIT:
            raise
        return _interpreted(program, arrays)
    chosen = None if cost(program) <= budget else sample(program, budget, seed)
    if chosen is None and cost(program) > max(LIMIT, budget):
        raise DeviceError(f"{program.name} takes {cost(program):.2g} operations, too many to check on the CPU.",
                          why="no outer loop can be sampled: every iteration needs the others",
                          hint="check at smaller sizes, or pass reference= a NumPy function")
    return compiled(program, arrays, chosen, random=random)


def references(program: Program, arrays: Mapping[str, np.ndarray], function: NumpyReference | None = None, *,
               budget: int = BUDGET, seed: int = 0, random: bool = False) -> tuple[list[Reference], tuple[str, ...]]:  # fmt: skip
    """Every reference there is: the loops, and a NumPy function; with a note in words where the loops are not one of them."""
    found: list[Reference] = []
    notes: tuple[str, ...] = ()
    try:
        found.append(reference(program, arrays, budget=budget, seed=seed, random=random))
    except KernelFault:
        raise
    except DeviceError as error:
        notes = (f"not checked against the loops: {error.what}",)
    if function is not None:
        found.append(with_numpy(program, function, arrays, found[0] if found else None))
    return found, notes


def compiled(program: Program, arrays: Mapping[str, np.ndarray], chosen: Sequence[np.ndarray] | None = None, *,
             random: bool = False) -> Reference:  # fmt: skip
    """The float64 C loops, all of them (`chosen` is None) or with the chosen values of each slice group."""
    groups = slices(program) if chosen is not None else ()
    held: dict[str, np.ndarray] = {}
    for a in program.parameters:
        wide = widened(a, arrays[a.name] if a.role != "out" else poisoned(a))
        own = a.role != "in" and a.name in arrays and np.shares_memory(wide, arrays[a.name])
        wide = wide.copy() if own else wide
        held[a.name] = wide if wide.size else np.zeros(1, wide.dtype)
        if a.role != "in":
            held[f"{a.name}_bound"] = np.zeros(max(a.size, 1))
    picks = [np.asarray(values, dtype=np.int64, order="C") for values in chosen or ()]
    faults = _call(_library(program, groups), random, list(held.values()), picks)
    if faults < 0:
        raise DeviceError("There is not enough memory for the reference's temporaries.", hint="check at smaller sizes")
    if faults:
        raise KernelFault(f"{program.name} uses an index outside its array.", where="in the reference, before any schedule",
                          why=f"{faults} data-dependent reads leave their array", hint="check the index arrays that were passed")
    outputs = [a for a in program.parameters if a.role != "in"]
    places = {a.name: cells(program, a.name, chosen) for a in outputs} if chosen is not None else {}

    def picked(name: str, suffix: str) -> np.ndarray:
        shape = program.array_of[name].shape
        whole = held[name + suffix][: int(np.prod(shape))].reshape(shape) if 0 in shape else held[name + suffix].reshape(shape)
        return whole[np.ix_(*places[name])] if name in places and shape else whole

    values = {a.name: picked(a.name, "") for a in outputs}
    some = "all cells"
    if chosen is not None:
        some = f"{sum(v.size for v in values.values()):,} sampled cells{_density(program, places)}"
    bounds = {a.name: picked(a.name, "_bound") for a in outputs}
    return Reference(values, bounds, places, f"the loops as written in float64 C ({some})")


def with_numpy(program: Program, function: NumpyReference, arrays: Mapping[str, np.ndarray], like: Reference | None) -> Reference:
    """The expected values from a NumPy function, at the cells and with the bounds of `like`.

    Parameters
    ----------
    program : Program
    function : callable
        As :data:`NumpyReference` says; every workload has one.
    arrays : mapping of str to ndarray
    like : Reference or None
        None: all cells, no bounds.

    Raises
    ------
    DeviceError
        If the function returns something else than the outputs.
    """
    inputs = [a for a in program.parameters if a.role != "out"]
    given = {a.name: np.array(widened(a, arrays[a.name]), dtype=np.bool_ if a.dtype.kind == "bool" else None) for a in inputs}
    found = function(given, dict(program.sizes))
    outputs = [a for a in program.parameters if a.role != "in"]
    if not isinstance(found, Mapping):
        several = found if isinstance(found, (tuple, list)) else (found,)
        found = dict(zip([a.name for a in outputs], several, strict=False)) if len(several) == len(outputs) else {}
    values: dict[str, np.ndarray] = {}
    for a in outputs:
        if a.name not in found or np.shape(found[a.name]) != a.shape:
            what = f"shape {list(np.shape(found[a.name]))}" if a.name in found else "nothing"
            raise DeviceError(f"The NumPy reference returns {what} for {a.name}.", why=f"{a.name} has shape {list(a.shape)}",
                              hint="return one array per output, in the parameters' order, or a dict by name")
        whole = plain(found[a.name], f"The reference's {a.name}")
        whole = whole.astype(reference_dtype(a.dtype))
        values[a.name] = whole[np.ix_(*like.cells[a.name])] if like is not None and a.name in like.cells and a.shape else whole
    source = "the NumPy reference"
    return Reference(values, {}, {}, source, True) if like is None else replace(like, values=values, source=source, numpy=True)


def _interpreted(program: Program, arrays: Mapping[str, np.ndarray]) -> Reference:
    given = {a.name: arrays[a.name] if a.role != "out" else poisoned(a) for a in program.parameters}
    found = interpret(program, given, exact=True)
    values = {a.name: found[a.name].view(np.uint8) if a.dtype.kind == "bool" else
              np.asarray(found[a.name], dtype=reference_dtype(a.dtype))
              for a in program.parameters if a.role != "in"}  # fmt: skip
    return Reference(values, {}, {}, "the loops as written, interpreted in float64 (all cells)")


def _density(program: Program, places: Mapping[str, tuple[np.ndarray, ...]]) -> str:
    """The smallest box of each output that cannot be wrong everywhere without a sampled cell in it, in words."""
    boxes = []
    for name, chosen in places.items():
        sides = [int(np.diff([-1, *at, n]).max()) for at, n in zip(chosen, program.array_of[name].shape, strict=True)]
        if max(sides, default=1) > 1:
            boxes.append(f"{' × '.join(map(str, sides))} of {name}")
    return f", at least one in any {', '.join(boxes)}" if boxes else ""


def _library(program: Program, groups: Sequence[Slice]) -> Path:
    """The compiled reference for inputs of both kinds, which a run needs both, made once per program and set of slice groups."""
    compiler = find_compiler()
    parts = ["#include <math.h>", "#include <stdlib.h>", ""]
    for random in (False, True):
        body = reference_text(program, groups, bounds=True, random=random)
        parts += [f"namespace {_NAMES[random]} {{", body, _entry(program, groups, _NAMES[random]), "}"]
    text = "\n".join(parts)

    def make(folder: Path) -> None:
        (folder / "reference.cpp").write_text(text)
        answer = run_compiler(compiler, (*_FLAGS, "reference.cpp", "-o", "reference.so"), folder)
        if answer.returncode:
            raise CompilerMissing(f"{compiler.version} cannot compile the float64 reference.", why=answer.stderr[-2000:],
                                  hint="it needs C++17: g++ 9 or newer, or clang++ 10 or newer; set CXX to choose one")

    return BUILDS.made(key_of(text, _FLAGS, compiler.identity), make) / "reference.so"


def _entry(program: Program, groups: Sequence[Slice], suffix: str) -> str:
    """The exported function: arrays, then choices, then their numbers."""
    arguments, held, picked = [], 0, 0
    for kind, name in parameters(program, groups, bounds=True):
        if re.fullmatch(r"pick_\d+", name):
            arguments.append(f"picks[{picked}]")
        elif re.fullmatch(r"count_\d+", name):
            arguments.append(f"counts[{picked}]")
            picked += 1
        else:
            arguments.append(f"({kind})arrays[{held}]")
            held += 1
    return (f'extern "C" long long run_{suffix}(void** arrays, const long long** picks, const long long* counts) {{\n'
            f"    reference_faults = 0;\n    reference({', '.join(arguments)});\n    return reference_faults;\n}}\n")


def _call(library: Path, random: bool, held: Sequence[np.ndarray], picks: Sequence[np.ndarray]) -> int:
    run = getattr(ctypes.CDLL(str(library)), f"run_{_NAMES[random]}")
    run.restype = ctypes.c_longlong
    arrays = (ctypes.c_void_p * max(len(held), 1))(*(a.ctypes.data for a in held))
    chosen = (ctypes.c_void_p * max(len(picks), 1))(*(p.ctypes.data for p in picks))
    counts = (ctypes.c_longlong * max(len(picks), 1))(*(p.size for p in picks))
    return int(run(arrays, chosen, counts))
