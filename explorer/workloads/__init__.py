"""Ready programs, one file each: the loops, an independent NumPy reference, and sizes.

A file defines one decorated program, ``reference(arrays, sizes)``, ``TINY`` and ``TYPICAL`` sizes, and, where random
numbers will not do, ``inputs(rng, sizes)`` for some arrays.  To add a workload, add a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np

from ..errors import ProgramError, outspoken, shown, spoken
from ..frontend.definition import Definition
from ..ir.dtype import f32_to_bf16
from ..ir.program import Array

Arrays = Mapping[str, np.ndarray]
Sizes = Mapping[str, int]


__all__ = ["Workload", "get", "names"]


@outspoken(ProgramError)
@dataclass(frozen=True)
class Workload:
    """A program with what is needed to check it.

    Attributes
    ----------
    name : str
        The file's and the program's name.
    title : str
        One sentence.
    definition : Definition
    reference : callable
        ``reference(arrays, sizes)``: the outputs in float64, computed by NumPy independently of the loops.
    tiny : mapping of str to int
        Sizes for an interpreter.
    typical : mapping of str to int
        Sizes as the field has them.
    inputs : callable
        ``inputs(rng, sizes)``: arrays that may not be arbitrary.
    """

    name: str
    title: str
    definition: Definition
    reference: Callable[[Arrays, Sizes], dict[str, np.ndarray]]
    tiny: Sizes
    typical: Sizes
    inputs: Callable[[np.random.Generator, Sizes], dict[str, np.ndarray]]

    def arrays(self, sizes: Sizes, seed: int = 0) -> dict[str, np.ndarray]:
        """Inputs at given sizes: those of :attr:`inputs`, standard normal numbers for the others.

        Parameters
        ----------
        sizes : mapping of str to int
        seed : int
            The same seed gives the same arrays.

        Returns
        -------
        dict of str to ndarray
            Every parameter that the program reads or updates.
        """
        rng = np.random.default_rng(seed)
        special = self.inputs(rng, sizes)
        wanted = [a for a in self.definition.at(**sizes).parameters if a.role != "out"]
        return {a.name: special[a.name] if a.name in special else _normal(a, rng) for a in wanted}


@spoken(ProgramError)
def names() -> tuple[str, ...]:
    """All workloads, in the order of the alphabet."""
    return tuple(sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_")))


@spoken(ProgramError, 'ex.workloads.get("softmax")')
def get(name: str) -> Workload:
    """The workload of this name.

    Raises
    ------
    ProgramError
        If there is none.
    """
    if not isinstance(name, str) or name not in names():
        raise ProgramError(f"no workload is called {shown(name)}", hint=", ".join(names()))
    return _known(name)


@cache
def _known(name: str) -> Workload:
    return _workload(import_module(f"{__name__}.{name}"), name)


def _workload(module: ModuleType, name: str) -> Workload:
    definitions = [v for v in vars(module).values() if isinstance(v, Definition)]
    if len(definitions) != 1 or definitions[0].name != name:
        raise ProgramError(f"{name}.py must define one program called {name}, not {[d.name for d in definitions]}")
    title = (module.__doc__ or "").strip().splitlines()[0]
    inputs = getattr(module, "inputs", _no_inputs)
    return Workload(name, title, definitions[0], module.reference, module.TINY, module.TYPICAL, inputs)


def _no_inputs(rng: np.random.Generator, sizes: Sizes) -> dict[str, np.ndarray]:
    return {}


def _normal(array: Array, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind == "float":
        wide = np.float64 if array.dtype.name == "f64" else np.float32
        values = rng.standard_normal(array.shape, dtype=wide)
        return f32_to_bf16(values) if array.dtype.name == "bf16" else values.astype(array.dtype.numpy)
    if array.dtype.kind == "bool":
        return rng.random(array.shape) < 0.5
    return rng.integers(-8, 8, array.shape).astype(array.dtype.numpy)
