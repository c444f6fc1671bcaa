"""One file that stands alone: kernels, a launcher, the float64 reference, inputs, tolerances, a timing loop and ``main``."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import PurePath
from typing import Protocol

from ...ir.dtype import DType
from ...ir.program import Array, Program
from ...ir.tree import PORTABLE_CLUSTER
from ..module import CudaModule, Launch
from ..names import Names
from ..preamble import headers
from ..reference.program import c_name, c_type, reference_text
from ..reference.slices import Slice, slices
from .host import COMPARE, CONVERSIONS, INPUTS, MAIN_HEAD, MAIN_TAIL
from .tensor_maps import ENCODE, encode_lines

_DIGEST = "SHA-256 of everything below this comment: "
_DYNAMIC_BY_DEFAULT = 48 * 1024
"""Bytes of shared memory that a kernel may ask for without an attribute (CUDA C++ Programming Guide, compute capabilities)."""
_INLINE_LAUNCHES = 32
"""Launches written out one by one; more become a table."""


class Fill(Protocol):
    """How an input is made (``explorer.run.inputs.arguments.Recipe``)."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def stream(self) -> int: ...  # noqa: D102
    @property
    def offset(self) -> float: ...  # noqa: D102
    @property
    def scale(self) -> float: ...  # noqa: D102
    @property
    def low(self) -> int: ...  # noqa: D102
    @property
    def high(self) -> int: ...  # noqa: D102
    @property
    def every(self) -> int: ...  # noqa: D102
    @property
    def rest(self) -> int: ...  # noqa: D102


@dataclass(frozen=True)
class Allowance:
    """What rounding may explain in one output: ``relative * |expected| + absolute + of_largest * largest |expected|``.

    Attributes
    ----------
    relative, absolute, of_largest : float
    why : str
        The argument, in one line.
    """

    relative: float
    absolute: float
    of_largest: float
    why: str


@dataclass(frozen=True)
class Trial:
    """Inputs, and what rounding may explain of the outputs on them.

    Attributes
    ----------
    fills : mapping of str to Fill
        For every "in" and "inout" parameter.
    allowances : mapping of str to Allowance
        For every "out" and "inout" parameter.
    name : str
        Of the inputs, in words; empty for those that look like data.
    """

    fills: Mapping[str, Fill]
    allowances: Mapping[str, Allowance]
    name: str = ""


@dataclass(frozen=True)
class Sample:
    """How many values of each slice group are checked, and the seed of their choice."""

    counts: tuple[int, ...]
    seed: int


def export_text(
    module: CudaModule, program: Program, *, trials: Sequence[Trial], sample: Sample | None,
    loops: str, script: str, target: str, arch: str, seed: int = 0, file: str = "",
) -> str:
    """The text of a ``.cu`` file that compiles with nvcc alone and checks itself.

    Parameters
    ----------
    module : CudaModule
    program : Program
        The user's program, which the reference runs.
    trials : sequence of Trial
        What is run and compared, in this order; the last one's inputs are timed.
    sample : Sample or None
        What is checked by default; None for every cell.
    loops, script : str
        The schedule as loops, and as Python that rebuilds it; both become comments.
    target, arch : str
        The GPU it was made for, and nvcc's name of its architecture.
    seed : int
        Of the inputs.
    file : str
        The name of the file, which the command in the header compiles; by default the module's name.

    Returns
    -------
    str
        The program exits with 0 when every checked cell is right, 1 when one is not, 2 on a CUDA error.
    """
    types = {a.dtype.cuda for a in program.parameters}
    needed = [line for line in headers(types) if line not in module.text]  # where no kernel runs
    body = "\n".join([
        "#include <cuda_runtime.h>", "#include <math.h>", "#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>",
        *needed, "", _section("The kernels"), module.text.strip("\n"), "",
        _section("The launcher: all kernels on one stream"), *([ENCODE] if module.tensor_maps else []), _launcher(module), "",
        _section("The reference: the loops as written, in float64, without the schedule"), "namespace self_check {", "",
        reference_text(program, slices(program) if sample else ()), "",
        _section("Inputs and comparison"), _host(program), "}  // namespace self_check", "",
        _section("main"), _main(module, program, trials, sample, seed), ""])  # fmt: skip
    return _header(module, program, loops, script, target, arch, body, file) + body


def launcher_name(module: CudaModule) -> str:
    """The C function that runs everything."""
    return f"launch_{c_name(module.name)}"


def _header(module: CudaModule, program: Program, loops: str, script: str, target: str, arch: str, body: str, file: str) -> str:
    sizes = ", ".join(f"{n} = {v}" for n, v in program.sizes)
    digest = hashlib.sha256(body.encode()).hexdigest()
    lines = [f"{module.name}: {sizes}".rstrip(": "), f"Made for {target} ({arch}).", "",
             f"    nvcc -std=c++17 -O3 {_target_flags(arch)} {_build(file, c_name(module.name))}", "",
             "checks the outputs against the float64 loops below, times the kernels, and exits with 0 if they are right,",
             "1 if not, 2 on a CUDA error.  --full checks every cell.  -DEXPLORER_NO_MAIN leaves out main.", "",
             "The schedule:", "", *(f"    {line}" for line in loops.rstrip().splitlines()), "",
             "Python that rebuilds it:", "", *(f"    {line}" for line in script.rstrip().splitlines()), "",
             f"{_DIGEST}{digest}"]
    return "".join(f"// {line}".rstrip().replace("\\", "/") + "\n" for line in lines)


def _build(file: str, module: str) -> str:
    """The rest of the command that compiles a file of this name, in its folder, and runs it; by the module's name for one that
    cannot stand in a comment.
    """
    plain = PurePath(file if file.isprintable() and "\\" not in file else "")
    source = plain if plain.stem else PurePath(f"{module}.cu")
    program = source.with_suffix("") if source.suffix == ".cu" else PurePath(f"{source.name}.out")
    written, made = (shlex.quote(f"./{p}" if p.name.startswith("-") else str(p)) for p in (source, program))
    return f"{'' if source.suffix == '.cu' else '-x cu '}{written} -o {made} && {shlex.quote(f'./{program}')}"


def _target_flags(arch: str) -> str:
    """What tells nvcc the architecture.

    Instructions of one architecture alone (``sm_90a``) need both halves spelled: nvcc 13.0 takes ``-arch=sm_90a`` for the generic
    one as well, whose assembler refuses them.
    """
    number = arch.removeprefix("sm_")
    return f"-gencode arch=compute_{number},code=sm_{number}" if number.endswith("a") else f"-arch={arch}"


def other_than(name: str, text: str) -> str:
    """What a file holds if it is no unchanged export of the program of this name, in words; empty if it is one."""
    head, found, rest = text.partition(f"// {_DIGEST}")
    digest, _, body = rest.partition("\n")
    if not found or not all(line.startswith("//") for line in head.splitlines()):
        return "it was not exported from a schedule"
    if hashlib.sha256(body.encode()).hexdigest() != digest:
        return "it has been changed since it was exported"
    other = re.match(r"// (\w*)", head)
    return "" if other and other[1] == name else f"it is the export of {other[1] if other else 'another program'}"


def _section(title: str) -> str:
    return f"// ---- {title} ----\n"


# ---- the launcher ----


def _launcher(module: CudaModule) -> str:
    pointer = _pointers(module)
    arguments = [f"{'const ' if b.kind == 'in' else ''}{b.dtype.cuda}* {pointer[b.name]}" for b in module.buffers]
    lines = [f'extern "C" cudaError_t {launcher_name(module)}({", ".join([*arguments, "cudaStream_t stream"])}) {{',
             "    cudaError_t error = cudaSuccess;"]
    asked: dict[str, int] = {}
    for launch in module.launches:
        asked[launch.kernel] = max(asked.get(launch.kernel, 0), launch.dynamic_shared_bytes)
    for kernel, size in asked.items():
        if size > _DYNAMIC_BY_DEFAULT:
            lines += [f"    error = cudaFuncSetAttribute({kernel}, cudaFuncAttributeMaxDynamicSharedMemorySize, {size});",
                      "    if (error != cudaSuccess) return error;"]
    for kernel in dict.fromkeys(x.kernel for x in module.launches if prod(x.cluster) > PORTABLE_CLUSTER):
        lines += [f"    error = cudaFuncSetAttribute({kernel}, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);",
                  "    if (error != cudaSuccess) return error;"]
    runs = [launch for launch in module.launches if min(*launch.grid, *launch.block) > 0]
    passed = {name for launch in runs for name in launch.arguments}
    passed |= {m.buffer for m in module.tensor_maps if m.name in passed}
    idle = [*(pointer[b.name] for b in module.buffers if b.name not in passed), *([] if runs else ["stream"])]
    lines += [f"    {' '.join(f'(void){name};' for name in idle)}  // nothing runs that uses them"] if idle else []
    for m in module.tensor_maps:
        lines += encode_lines(module, m, pointer) if m.name in passed else []
    inline = len(runs) <= _INLINE_LAUNCHES or any(x.cooperative for x in runs)
    lines += _inline(runs, pointer) if inline else _table(runs, pointer)
    return "\n".join([*lines, "    return error;", "}"])


def _inline(launches: Sequence[Launch], pointer: Mapping[str, str]) -> list[str]:
    lines: list[str] = []
    for launch in launches:
        if launch.cooperative:
            lines += _cooperative(launch, pointer)
            continue
        lines += [f"    {_call(launch, pointer, [str(v) for v in launch.scalars])}", "    error = cudaGetLastError();",
                  "    if (error != cudaSuccess) return error;"]
    return lines


def _cooperative(launch: Launch, pointer: Mapping[str, str]) -> list[str]:
    """A launch whose blocks wait for each other: CUDA refuses it where they do not all fit the GPU at once."""
    grid, block = (f"dim3({', '.join(map(str, e))})" for e in (launch.grid, launch.block))
    arguments = ", ".join(f"&{pointer[name]}" for name in launch.arguments)
    return [f"    void* arguments_{launch.kernel}[] = {{{arguments}}};",
            f"    error = cudaLaunchCooperativeKernel((const void*){launch.kernel}, {grid}, {block}, arguments_{launch.kernel}, "
            f"{launch.dynamic_shared_bytes}, stream);", "    if (error != cudaSuccess) return error;"]


def _table(launches: Sequence[Launch], pointer: Mapping[str, str]) -> list[str]:
    """Launches that differ in their scalars alone share a case; the table says which case runs with which scalars."""
    shapes = list(dict.fromkeys(replace(x, scalars=(0,) * len(x.scalars)) for x in launches))
    width = 1 + max(len(shape.scalars) for shape in shapes)
    rows: list[str] = []
    for x in launches:
        row = [shapes.index(replace(x, scalars=(0,) * len(x.scalars))), *x.scalars]
        rows.append("{" + ", ".join(map(str, row + [0] * (width - len(row)))) + "}")
    lines = [f"    static const int order[][{width}] = {{"]
    lines += [f"        {', '.join(rows[i : i + 12])}," for i in range(0, len(rows), 12)]
    lines += ["    };", "    for (const auto& at : order) {", "        switch (at[0]) {"]
    for n, shape in enumerate(shapes):
        lines.append(f"            case {n}: {_call(shape, pointer, [f'at[{k + 1}]' for k in range(len(shape.scalars))])} break;")
    lines += ["        }", "        error = cudaGetLastError();", "        if (error != cudaSuccess) return error;", "    }"]
    return lines


def _call(launch: Launch, pointer: Mapping[str, str], scalars: Sequence[str]) -> str:
    grid, block = (f"dim3({', '.join(map(str, e))})" for e in (launch.grid, launch.block))
    arguments = ", ".join([*(pointer[name] for name in launch.arguments), *scalars])
    return f"{launch.kernel}<<<{grid}, {block}, {launch.dynamic_shared_bytes}, stream>>>({arguments});"


def _pointers(module: CudaModule) -> dict[str, str]:
    """The launcher's parameters by their buffers: none hides a kernel, or a variable of the launcher's own."""
    names = Names({"stream", "error", "order", "at", *(x.kernel for x in module.launches)})
    names.taken |= {f"arguments_{x.kernel}" for x in module.launches}
    pointers = {b.name: names.take(b.name) for b in module.buffers}
    return pointers | {m.name: names.take(m.name.rpartition(".")[2]) for m in module.tensor_maps}


# ---- the host part ----


def _host(program: Program) -> str:
    used = {a.dtype.name for a in program.parameters}
    return "\n".join([INPUTS, *(text for name, text in CONVERSIONS.items() if name in used), COMPARE])


def _main(module: CudaModule, program: Program, trials: Sequence[Trial], sample: Sample | None, seed: int) -> str:
    lines = ["#ifndef EXPLORER_NO_MAIN", MAIN_HEAD]
    groups = slices(program) if sample else ()
    for n, group in enumerate(groups):
        assert sample is not None
        lines.append(f"    const Choice pick_{n} = choose({group.start}, {group.extent}, "
                     f"full ? {group.extent} : {sample.counts[n]}, {sample.seed + n}ULL);  // values of {', '.join(group.loops)}")
    for array in program.parameters:
        lines += _held(array)
    for buffer in module.buffers:
        size, name = max(buffer.size, 1), f"device_{c_name(buffer.name)}"
        lines += [f"    {buffer.dtype.cuda}* {name} = on_device<{buffer.dtype.cuda}>({size}ULL);"]
    call = f"{launcher_name(module)}({', '.join([*(f'device_{c_name(b.name)}' for b in module.buffers), '0'])})"
    lines += ["    bool right = true;"]
    for trial in trials:
        lines += ["", "    if (right) {", *(f"        {line}" for line in _tried(trial, program, call, groups, seed)), "    }"]
    timing = ["if (right) {", "    Timer timer;", "    for (int repeat = 0; repeat < WARMUP + REPEATS; ++repeat) {"]
    for array in program.parameters:
        if array.role == "inout":
            name = c_name(array.name)
            timing.append(f"        to_device(device_{name}, first_{name}, {array.size}ULL);")
    timing += ["        timer.start();", f"        CHECK({call});", "        timer.stop(repeat - WARMUP);", "    }",
               "    timer.print();", "}"]
    lines += ["", *(f"    {line}" for line in timing), ""]
    lines += [f"    CHECK(cudaFree(device_{c_name(b.name)}));" for b in module.buffers]
    lines += [f"    free({copy}_{c_name(a.name)});" for a in program.parameters
              for copy in ("host", "wide", *(("first",) if a.role == "inout" else ()))]
    lines += [f"    free(pick_{n}.values);" for n in range(len(groups))]
    return "\n".join([*lines, MAIN_TAIL])


def _held(array: Array) -> list[str]:
    """The host's copies of a parameter: in its own type, widened for the reference, and (inout) as it was at first."""
    name, kind, wide = c_name(array.name), array.dtype.cuda, c_type(array.dtype)
    size = f"{array.size}ULL"
    lines = [f"    {kind}* host_{name} = on_host<{kind}>({size});", f"    {wide}* wide_{name} = on_host<{wide}>({size});"]
    return [*lines, f"    {kind}* first_{name} = on_host<{kind}>({size});"] if array.role == "inout" else lines


def _tried(trial: Trial, program: Program, call: str, groups: Sequence[Slice], seed: int) -> list[str]:
    """Make the inputs, launch, and compare the outputs with the reference's."""
    lines = [f'printf("on {trial.name}:\\n");'] if trial.name else []
    for array in program.parameters:
        lines += _made(array, trial.fills.get(array.name), seed)
    outputs = [a for a in program.parameters if a.role != "in"]
    lines += [f"CHECK({call});", "CHECK(cudaDeviceSynchronize());"]
    lines += [f"to_host(host_{c_name(a.name)}, device_{c_name(a.name)}, {a.size}ULL);" for a in outputs]
    arguments = [f"wide_{c_name(a.name)}" for a in program.parameters]
    arguments += [part for n in range(len(groups)) for part in (f"pick_{n}.values", f"pick_{n}.count")]
    checks = [line for a in outputs for line in _compared(a, trial.allowances[a.name], groups)]
    return [*lines, f"reference({', '.join(arguments)});", "right = !reference_faults;", "if (right) {",
            *(f"    {line}" for line in checks), "} else {",
            '    printf("the reference failed: %lld\\n", reference_faults);', "}"]


def _made(array: Array, fill: Fill | None, seed: int) -> list[str]:
    """A parameter's contents, on the host and on the device; of one without elements, nothing."""
    if not array.size:
        return []
    name, kind, wide = c_name(array.name), array.dtype.cuda, c_type(array.dtype)
    size = f"{array.size}ULL"
    if fill is None:
        lines = [f"memset((void*)host_{name}, 0xFF, sizeof({kind}) * {size});"]
    else:
        stream = f"{seed * 1000 + fill.stream}ULL"
        span = f"{fill.low}LL, {fill.high - fill.low}ULL"
        drawn = {"integers": f"integer(i, {stream}, {span})",
                 "sparse": f"sparse(i, {stream}, {span}, {fill.every}ULL, {fill.rest}LL)"}.get(fill.kind)
        drawn = drawn or _normal(array.dtype, fill, stream)
        lines = [f"for (unsigned long long i = 0; i < {size}; ++i) host_{name}[i] = from_number<{kind}>({drawn});"]
    lines.append(f"for (unsigned long long i = 0; i < {size}; ++i) wide_{name}[i] = ({wide})to_number(host_{name}[i]);")
    if array.role == "inout":
        lines.append(f"memcpy((void*)first_{name}, host_{name}, sizeof({kind}) * {size});")
    return [*lines, f"to_device(device_{name}, host_{name}, {size});"]


def _normal(dtype: DType, fill: Fill, stream: str) -> str:
    drawn = f"normal{'' if dtype.name == 'f64' else '_f32'}(i, {stream})"
    if (fill.offset, fill.scale) == (0.0, 1.0):
        return drawn
    f = "" if dtype.name == "f64" else "f"
    return f"{fill.offset!r}{f} + {fill.scale!r}{f} * {drawn}"


def _compared(array: Array, allowed: Allowance, groups: Sequence[Slice]) -> list[str]:
    name, rank = c_name(array.name), len(array.shape)
    choices, own = list[str](), list[tuple[str, int]]()
    for position, extent in enumerate(array.shape or (1,)):
        n = next((n for n, g in enumerate(groups) if dict(g.positions).get(array.name) == position), None)
        choices.append(f"pick_{n}" if n is not None else f"all_{position}")
        own += [(f"all_{position}", extent)] if n is None else []
    shape = ", ".join(map(str, array.shape)) or "1"
    return [f"{{  // {allowed.why}", f"    const long long shape[] = {{{shape}}};",
            *(f"    const Choice {choice} = choose(0, {extent}, {extent}, 0);" for choice, extent in own),
            f"    const Choice picks[] = {{{', '.join(choices)}}};",
            f'    right &= compare("{array.name}", host_{name}, wide_{name}, {max(rank, 1)}, shape, picks, '
            f"{allowed.relative!r}, {allowed.absolute!r}, {allowed.of_largest!r});",
            *(f"    free({choice}.values);" for choice, _ in own), "}"]
