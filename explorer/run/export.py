"""Export of a schedule as one ``.cu`` file that compiles with nvcc alone and checks itself."""

from __future__ import annotations

from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np

from ..errors import CompilerMissing, DeviceError, ExportError
from ..gpu.occupancy import check_launch
from ..gpu.spec import Gpu, target_gpu
from ..ir.program import Array, Program
from ..ir.text import loops_text
from ..kernel.emit import emit
from ..kernel.emittable import require_emittable
from ..kernel.export.text import Allowance, Sample, Trial, export_text, other_than
from ..kernel.reference.error_bound import SAFETY, gamma, unit
from ..kernel.reference.slices import cost
from ..kernel.reference.slices import sample as sampled
from ..schedule import Schedule
from ..steps.saved import script as schedule_script
from ..system.files import place_for, write_file
from ..transforms.approximate import as_computed
from .inputs.arguments import NORMAL, recipes, seeded_arrays
from .inputs.exact import KINDS
from .nvrtc.compiler import target as compiler_target
from .verify.outputs import SMALLEST, longest_path, rounded_to
from .verify.reference import LIMIT, Reference, compiled

BUDGET = 10**9
"""Operations of the reference that the exported program runs by default: about a second."""

_UNSEEN = 1.5
"""Factor on tolerances taken from a sample of the cells: ``--full`` checks the others too."""


def export(schedule: Schedule, path: str | PathLike[str], *, seed: int = 0, gpu: Gpu | str | None = None, budget: int = BUDGET,
           overwrite: bool = False, parents: bool = False) -> Path:
    """Write `schedule` to a file.

    Parameters
    ----------
    schedule : Schedule
    path : str or path
        Where to; ``.cu`` is appended if it has no suffix.
    seed : int
        Of the inputs that the program makes.
    gpu : Gpu or str, optional
        The target; by default the H200.
    budget : int
        Operations that the check in the file may take by default; beyond, it checks a sample and ``--full`` checks all.
    overwrite : bool
        Replace whatever file stands there; without it, only an export of the same program that nobody has changed since.
    parents : bool
        Make the folder if it is not there, and those above it.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    IllegalSchedule, ResourceError
        As for running it.
    ExportError
        If the file cannot be written, another one stands there, or no inputs can be made for the program.  A file that stood
        there is then as it was.
    """
    name = schedule.source.name
    file = place_for(path, f"{name}.cu", suffix=".cu", parents=parents)
    text = exported(schedule, seed=seed, gpu=gpu, budget=budget, file=file.name)
    write_file(file, text, overwrite=overwrite, ours=partial(other_than, name))
    return file


def exported(schedule: Schedule, *, seed: int = 0, gpu: Gpu | str | None = None, budget: int = BUDGET, file: str = "") -> str:
    """The text that :func:`export` writes to a file of this name."""
    require_emittable(schedule)
    program = as_computed(schedule.source, schedule.plan)
    target = target_gpu(gpu)
    module = emit(schedule.plan, arch=target.arch)
    for launch in module.launches:
        check_launch(target, launch)
    try:
        kinds = {"integers": KINDS["integers"], NORMAL: ""}
        fills = {kind: recipes(program, kind) for kind in kinds}
    except DeviceError as error:
        raise ExportError(f"{program.name} cannot check itself: {error.what}", where=error.where,
                          hint="rewrite the index as a plain read of an index array") from error
    chosen = None if cost(program) <= budget else sampled(program, budget, seed)
    sample = None if chosen is None else Sample(tuple(len(values) for values in chosen), seed)
    own = getattr(schedule, "script", None)
    script = own() if own else schedule_script(program, schedule.steps)  # type: ignore[arg-type]
    trials = [Trial(fills[kind], _allowances(program, chosen, seed, kind), name) for kind, name in kinds.items()]
    return export_text(module, program, trials=trials, sample=sample,
                       loops=loops_text(schedule.plan), script=script, target=target.name,
                       arch=compiler_target(module.text, target.arch), seed=seed, file=file)


def _allowances(program: Program, chosen: tuple[np.ndarray, ...] | None, seed: int, kind: str) -> dict[str, Allowance]:
    """Per output the tolerance that the running error bounds ask for on these very inputs; a priori where they cannot be had."""
    outputs = [a for a in program.parameters if a.role != "in"]
    found: Reference | None = None
    if chosen is not None or cost(program) <= LIMIT:
        try:
            found = compiled(program, seeded_arrays(program, seed, kind), chosen, random=kind == NORMAL)
        except (CompilerMissing, DeviceError, MemoryError):
            found = None
    if found is None:
        return {a.name: _a_priori(program, a) for a in outputs}
    whole = chosen is None
    return {a.name: _fitted(a, found.values[a.name], found.bounds[a.name], longest_path(program, a.name), whole) for a in outputs}


def _fitted(array: Array, expected: np.ndarray, bound: np.ndarray, terms: int, complete: bool) -> Allowance:
    """The tighter of two forms that cover every cell's bound: mostly absolute, or mostly relative."""
    size = np.abs(expected.astype(np.float64)).ravel()
    need = SAFETY * np.where(np.isfinite(bound), bound, 0.0).ravel() * (1.0 if complete else _UNSEEN)
    finite = np.isfinite(size)
    size, need = size[finite], need[finite]
    store = unit(array.dtype) if array.dtype.kind == "float" else 0.0
    floor = SMALLEST.get(array.dtype.name, 0.0)
    if array.dtype.kind == "float" and not need.any() and complete and (rounded_to(array.dtype, size) == size).all():
        return Allowance(0.0, 0.0, 0.0, f"{array.name}: exact")
    plain = (store, float(need.max(initial=0.0)) + floor)
    known = size > 0
    slope = float((need[known] / size[known]).max(initial=0.0))
    sloped = (store + slope, float(need[~known].max(initial=0.0)) + floor)
    mean = float(size.mean()) if size.size else 0.0
    relative, absolute = min((plain, sloped), key=lambda form: form[0] * mean + form[1])
    why = (f"{array.name}: running error bound in {array.dtype} with up to {terms} roundings, any order of summation, "
           "probabilistic for these random inputs, times 2")  # fmt: skip
    return Allowance(relative, absolute, 0.0, why if need.any() or store else f"{array.name}: exact")


def _a_priori(program: Program, array: Array) -> Allowance:
    if array.dtype.kind != "float":
        return Allowance(0.0, 0.0, 0.0, f"{array.name}: exact")
    terms = longest_path(program, array.name)
    g = max(gamma(terms, unit(a.dtype)) for a in (array, *program.temporaries) if a.dtype.kind == "float")
    g = max(g, gamma(terms, unit(array.dtype.wide)))
    why = f"{array.name}: a priori, gamma_n with n = {terms} roundings"
    return Allowance(g + unit(array.dtype), SMALLEST[array.dtype.name], g, why)
