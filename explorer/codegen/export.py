"""One file that stands alone: kernels, a launcher, the float64 reference, inputs, tolerances, a timing loop and ``main``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

from ..ir.dtype import DType
from ..ir.program import Array, Program
from ..ir.tree import PORTABLE_CLUSTER
from .export_host import COMPARE, CONVERSIONS, INPUTS, MAIN_HEAD, MAIN_TAIL
from .module import CudaModule, Launch
from .preamble import HEADERS
from .reference import c_name, c_type, reference_text
from .slices import Slice, slices

_DYNAMIC_BY_DEFAULT = 48 * 1024
"""Bytes of shared memory that a kernel may ask for without an attribute (CUDA C++ Programming Guide, compute capabilities)."""
_INLINE_LAUNCHES = 32
"""Launches written out one by one; more become a table."""


class Fill(Protocol):
    """How an input is made (``explorer.run.inputs.Recipe``)."""

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
class Sample:
    """How many values of each slice group are checked, and the seed of their choice."""

    counts: tuple[int, ...]
    seed: int


def export_text(
    module: CudaModule, program: Program, *, fills: Mapping[str, Fill], allowances: Mapping[str, Allowance],
    sample: Sample | None, loops: str, script: str, target: str, arch: str, seed: int = 0,
) -> str:
    """The text of a ``.cu`` file that compiles with nvcc alone and checks itself.

    Parameters
    ----------
    module : CudaModule
    program : Program
        The user's program, which the reference runs.
    fills : mapping of str to Fill
        For every "in" and "inout" parameter.
    allowances : mapping of str to Allowance
        For every "out" and "inout" parameter.
    sample : Sample or None
        What is checked by default; None for every cell.
    loops, script : str
        The schedule as loops, and as Python that rebuilds it; both become comments.
    target, arch : str
        The GPU it was made for, and nvcc's name of its architecture.
    seed : int
        Of the inputs.

    Returns
    -------
    str
        The program exits with 0 when every checked cell is right, 1 when one is not, 2 on a CUDA error.
    """
    types = {a.dtype.cuda for a in program.parameters}
    headers = [line for name, line in HEADERS.items() if name in types and line not in module.text]  # where no kernel runs
    body = "\n".join([
        "#include <cuda_runtime.h>", "#include <math.h>", "#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>",
        *headers, "", _section("The kernels"), module.text.strip("\n"), "",
        _section("The launcher: all kernels on one stream"), _launcher(module), "",
        _section("The reference: the loops as written, in float64, without the schedule"), "namespace self_check {", "",
        reference_text(program, slices(program) if sample else ()), "",
        _section("Inputs and comparison"), _host(program), "}  // namespace self_check", "",
        _section("main"), _main(module, program, fills, allowances, sample, seed), ""])  # fmt: skip
    return _header(module, program, loops, script, target, arch, body) + body


def launcher_name(module: CudaModule) -> str:
    """The C function that runs everything."""
    return f"launch_{c_name(module.name)}"


def _header(module: CudaModule, program: Program, loops: str, script: str, target: str, arch: str, body: str) -> str:
    sizes = ", ".join(f"{n} = {v}" for n, v in program.sizes)
    digest = hashlib.sha256(body.encode()).hexdigest()
    name = c_name(module.name)
    lines = [f"{module.name}: {sizes}".rstrip(": "), f"Made for {target} ({arch}).", "",
             f"    nvcc -std=c++17 -O3 -arch={arch} {name}.cu -o {name} && ./{name}", "",
             "checks the outputs against the float64 loops below, times the kernels, and exits with 0 if they are right,",
             "1 if not, 2 on a CUDA error.  --full checks every cell.  -DEXPLORER_NO_MAIN leaves out main.", "",
             "The schedule:", "", *(f"    {line}" for line in loops.rstrip().splitlines()), "",
             "Python that rebuilds it:", "", *(f"    {line}" for line in script.rstrip().splitlines()), "",
             f"SHA-256 of everything below this comment: {digest}"]
    return "".join(f"// {line}".rstrip().replace("\\", "/") + "\n" for line in lines)


def _section(title: str) -> str:
    return f"// ---- {title} ----\n"


# ---- the launcher ----


def _launcher(module: CudaModule) -> str:
    arguments = [f"{'const ' if b.kind == 'in' else ''}{b.dtype.cuda}* {_pointer(b.name)}" for b in module.buffers]
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
    lines += _inline(runs) if len(runs) <= _INLINE_LAUNCHES or any(x.cooperative for x in runs) else _table(runs)
    return "\n".join([*lines, "    return error;", "}"])


def _inline(launches: Sequence[Launch]) -> list[str]:
    lines: list[str] = []
    for launch in launches:
        if launch.cooperative:
            lines += _cooperative(launch)
            continue
        lines += [f"    {_call(launch, [str(v) for v in launch.scalars])}", "    error = cudaGetLastError();",
                  "    if (error != cudaSuccess) return error;"]
    return lines


def _cooperative(launch: Launch) -> list[str]:
    """A launch whose blocks wait for each other: CUDA refuses it where they do not all fit the GPU at once."""
    grid, block = (f"dim3({', '.join(map(str, e))})" for e in (launch.grid, launch.block))
    arguments = ", ".join(f"&{_pointer(name)}" for name in launch.arguments)
    return [f"    void* arguments_{launch.kernel}[] = {{{arguments}}};",
            f"    error = cudaLaunchCooperativeKernel((const void*){launch.kernel}, {grid}, {block}, arguments_{launch.kernel}, "
            f"{launch.dynamic_shared_bytes}, stream);", "    if (error != cudaSuccess) return error;"]


def _table(launches: Sequence[Launch]) -> list[str]:
    """Launches that differ in their scalars alone share a case; the table says which case runs with which scalars."""
    shapes = list(dict.fromkeys(replace(x, scalars=(0,) * len(x.scalars)) for x in launches))
    width = 1 + max(len(shape.scalars) for shape in shapes)
    rows = []
    for x in launches:
        row = [shapes.index(replace(x, scalars=(0,) * len(x.scalars))), *x.scalars]
        rows.append("{" + ", ".join(map(str, row + [0] * (width - len(row)))) + "}")
    lines = [f"    static const int order[][{width}] = {{"]
    lines += [f"        {', '.join(rows[i : i + 12])}," for i in range(0, len(rows), 12)]
    lines += ["    };", "    for (const auto& at : order) {", "        switch (at[0]) {"]
    for n, shape in enumerate(shapes):
        lines.append(f"            case {n}: {_call(shape, [f'at[{k + 1}]' for k in range(len(shape.scalars))])} break;")
    lines += ["        }", "        error = cudaGetLastError();", "        if (error != cudaSuccess) return error;", "    }"]
    return lines


def _call(launch: Launch, scalars: Sequence[str]) -> str:
    grid, block = (f"dim3({', '.join(map(str, e))})" for e in (launch.grid, launch.block))
    arguments = ", ".join([*map(_pointer, launch.arguments), *scalars])
    return f"{launch.kernel}<<<{grid}, {block}, {launch.dynamic_shared_bytes}, stream>>>({arguments});"


def _pointer(name: str) -> str:
    """A buffer's name as a C variable; `stream`, `error`, `order` and `at` are the launcher's own."""
    plain = c_name(name)
    return f"{plain}_" if plain in ("stream", "error", "order") else plain


# ---- the host part ----


def _host(program: Program) -> str:
    used = {a.dtype.name for a in program.parameters}
    return "\n".join([INPUTS, *(text for name, text in CONVERSIONS.items() if name in used), COMPARE])


def _main(module: CudaModule, program: Program, fills: Mapping[str, Fill], allowances: Mapping[str, Allowance],
          sample: Sample | None, seed: int) -> str:  # fmt: skip
    lines = ["#ifndef EXPLORER_NO_MAIN", MAIN_HEAD]
    groups = slices(program) if sample else ()
    for n, group in enumerate(groups):
        assert sample is not None
        lines.append(f"    const Choice pick_{n} = choose({group.start}, {group.extent}, "
                     f"full ? {group.extent} : {sample.counts[n]}, {sample.seed + n}ULL);  // values of {', '.join(group.loops)}")
    for array in program.parameters:
        lines += _made(array, fills.get(array.name), seed)
    for buffer in module.buffers:
        size, name = max(buffer.size, 1), f"device_{c_name(buffer.name)}"
        lines += [f"    {buffer.dtype.cuda}* {name} = on_device<{buffer.dtype.cuda}>({size}ULL);"]
        if buffer.kind in ("in", "inout"):
            lines.append(f"    to_device({name}, host_{c_name(buffer.name)}, {buffer.size}ULL);")
    call = f"{launcher_name(module)}({', '.join([*(f'device_{c_name(b.name)}' for b in module.buffers), '0'])})"
    lines += ["", f"    CHECK({call});", "    CHECK(cudaDeviceSynchronize());"]
    outputs = [a for a in program.parameters if a.role != "in"]
    lines += [f"    to_host(host_{c_name(a.name)}, device_{c_name(a.name)}, {a.size}ULL);" for a in outputs]
    arguments = [f"wide_{c_name(a.name)}" for a in program.parameters]
    arguments += [part for n in range(len(groups)) for part in (f"pick_{n}.values", f"pick_{n}.count")]
    lines += ["", f"    reference({', '.join(arguments)});", "    if (reference_faults) {",
              '        printf("the reference failed: %lld\\n", reference_faults);', "        return 2;", "    }",
              "    bool right = true;"]
    for array in outputs:
        lines += _compared(array, allowances[array.name], groups)
    lines += ["", "    if (right) {", "        Timer timer;",
              "        for (int repeat = 0; repeat < WARMUP + REPEATS; ++repeat) {"]
    for array in outputs:
        if array.role == "inout":
            name = c_name(array.name)
            lines.append(f"            to_device(device_{name}, first_{name}, {array.size}ULL);")
    lines += ["            timer.start();", f"            CHECK({call});", "            timer.stop(repeat - WARMUP);",
              "        }", "        timer.print();", "    }"]
    lines += [f"    CHECK(cudaFree(device_{c_name(b.name)}));" for b in module.buffers]
    return "\n".join([*lines, MAIN_TAIL])


def _made(array: Array, fill: Fill | None, seed: int) -> list[str]:
    """The host's copies of a parameter: in its own type, widened for the reference, and (inout) as it was at first."""
    name, kind, wide = c_name(array.name), array.dtype.cuda, c_type(array.dtype)
    size = f"{array.size}ULL"
    lines = [f"    {kind}* host_{name} = on_host<{kind}>({size});", f"    {wide}* wide_{name} = on_host<{wide}>({size});"]
    if fill is None:
        lines.append(f"    memset(host_{name}, 0xFF, sizeof({kind}) * {size});")
    else:
        stream = f"{seed * 1000 + fill.stream}ULL"
        whole = f"integer(i, {stream}, {fill.low}LL, {fill.high - fill.low}ULL)"
        drawn = whole if fill.kind == "integers" else _normal(array.dtype, fill, stream)
        lines.append(f"    for (unsigned long long i = 0; i < {size}; ++i) host_{name}[i] = from_number<{kind}>({drawn});")
    lines.append(f"    for (unsigned long long i = 0; i < {size}; ++i) wide_{name}[i] = ({wide})to_number(host_{name}[i]);")
    if array.role == "inout":
        lines += [f"    {kind}* first_{name} = on_host<{kind}>({size});",
                  f"    memcpy(first_{name}, host_{name}, sizeof({kind}) * {size});"]
    return lines


def _normal(dtype: DType, fill: Fill, stream: str) -> str:
    drawn = f"normal{'' if dtype.name == 'f64' else '_f32'}(i, {stream})"
    if (fill.offset, fill.scale) == (0.0, 1.0):
        return drawn
    f = "" if dtype.name == "f64" else "f"
    return f"{fill.offset!r}{f} + {fill.scale!r}{f} * {drawn}"


def _compared(array: Array, allowed: Allowance, groups: Sequence[Slice]) -> list[str]:
    name, rank = c_name(array.name), len(array.shape)
    choices = []
    for position, extent in enumerate(array.shape):
        n = next((n for n, g in enumerate(groups) if dict(g.positions).get(array.name) == position), None)
        choices.append(f"pick_{n}" if n is not None else f"choose(0, {extent}, {extent}, 0)")
    shape = ", ".join(map(str, array.shape)) or "1"
    return [f"    {{  // {allowed.why}", f"        const long long shape[] = {{{shape}}};",
            f"        const Choice picks[] = {{{', '.join(choices) or 'choose(0, 1, 1, 0)'}}};",
            f'        right &= compare("{array.name}", host_{name}, wide_{name}, {max(rank, 1)}, shape, picks, '
            f"{allowed.relative!r}, {allowed.absolute!r}, {allowed.of_largest!r});", "    }"]
