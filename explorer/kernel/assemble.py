"""Functions as one module: the CUDA text, the buffers it is handed, its launches, and where each node stands in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from ..ir.plan import Plan
from .function import Function
from .launches import LaunchIR
from .lines import Printer, code
from .module import Buffer, CudaModule, Launch, SharedArray, TensorMap
from .nodes import TensorMap as Mapped
from .preamble import preamble
from .sites import Store
from .stamped import STAMPS

LINE = 120
"""Columns beyond which a function's parameters stand on lines of their own."""


def module_of(plan: Plan, launched: Sequence[tuple[LaunchIR, Function]], min_blocks: int = 0) -> CudaModule:
    """The module of a plan's launches, which ask for so many blocks per multiprocessor where the schedule does not say."""
    functions, printer, above = [f for _, f in launched], Printer(), 0
    code = "\n".join(_all_text(f) for f in functions)
    for line in preamble(plan, code, frozenset[str]().union(*(f.library for f in functions))):
        printer.line(line)
    for function in functions:
        printer.line()
        for line in function.counters:
            printer.line(line)
        above = above or len(printer.lines)
        _print(printer, function, min_blocks)
    buffers, launches = _buffers(plan, functions), tuple(_launches(plan, functions))
    shared = tuple(SharedArray(f.name, s.name, s.dtype, s.declared) for launch, f in launched for s in launch.shared)
    return CudaModule(plan.program.name, printer.text(), buffers, launches, printer.source_map(), _maps(plan, functions),
                      above or len(printer.lines), shared)


def _all_text(function: Function) -> str:
    return "\n".join([*_parameters(function), *code(function.head), *code(function.body)])


def _parameters(function: Function) -> list[str]:
    """Of a function's head: pointers, descriptions of arrays for bulk copies, counters of the loops that the host runs."""
    pointers = [_pointer(function, key, s) for key, s in function.parameters]
    counters = [f"const int{f' {name}' if name in function.used else ''}" for low in function.lows for loop in low.launch_loops
                for name in (low.variable[loop.id],)]
    return [*pointers, *(f"const __grid_constant__ tensor_map {m.name}" for m in function.maps), *counters]


def _print(printer: Printer, function: Function, min_blocks: int) -> None:
    first = len(printer.lines) + 1
    threads, min_blocks = prod(function.block), function.kernels[0].resident or min_blocks or function.kernels[0].registers > 0
    bounds = f"{threads}, {int(min_blocks)}" if min_blocks else str(threads)
    parameters = _parameters(function)
    clusters = f"__cluster_dims__({', '.join(map(str, function.cluster))}) " if prod(function.cluster) > 1 else ""
    start = f'extern "C" __global__ void {clusters}__launch_bounds__({bounds}) {function.name}('
    if len(start) + sum(len(p) + 2 for p in parameters) <= LINE:
        printer.line(f"{start}{', '.join(parameters)}) {{")
    else:
        printer.line(start)
        for position, parameter in enumerate(parameters):
            printer.line(f"{parameter}{',' if position + 1 < len(parameters) else ') {'}", 2)
    for out in function.head:
        printer.print(out, 1)
    if function.head:
        printer.line()
    for out in function.body:
        printer.print(out, 1)
    printer.line("}")
    printer.mark((function.kernels[0].id,), first)


def _pointer(function: Function, key: tuple[str, str], store: Store) -> str:
    """A parameter: constant if the launch never writes it, restricted unless a thread may read what another one has written.

    To the compiler a restricted array is nobody else's: it may load an element before the barrier behind which another thread's
    value stands there (ISO C 6.7.3.1; seen with NVRTC 13: a mean in global memory, read by the threads that did not write it).
    """
    written = key[0] == STAMPS or any(key in low.written for low in function.lows)
    several = sum(low.written[key] for low in function.lows) > 1
    passed_on = written and function.waits and (several or any(key in low.read for low in function.lows))
    name = f" {store.name}" if store.name in function.used else ""
    return f"{'' if written else 'const '}{store.dtype.cuda}*{'' if passed_on else ' __restrict__'}{name}"


def _buffers(plan: Plan, functions: Sequence[Function]) -> tuple[Buffer, ...]:
    """The user's arrays in the order of the signature, then every workspace that a kernel uses."""
    out = [Buffer(a.name, a.dtype, a.shape, a.role) for a in plan.program.parameters]
    stores = {key: s for f in functions for key, s in (*f.parameters, *((("array", m.array), m.store) for m in f.maps))}
    used = {key: s for key, s in stores.items() if s.array is None or s.array.role == "temporary"}
    return (*out, *(Buffer(_buffer_name(key, plan), s.dtype, s.shape, "out" if key[0] == STAMPS else "workspace")
                    for key, s in used.items()))


def _buffer_name(key: tuple[str, str], plan: Plan) -> str:
    """A workspace's name: the array's, or the buffer's unless an array has it too."""
    kind, name = key
    return f"{name}.buffer" if kind == "buffer" and name in plan.array_of else name


def _maps(plan: Plan, functions: Sequence[Function]) -> tuple[TensorMap, ...]:
    """What the host describes to the hardware, each once; launches name it."""
    return tuple(TensorMap(_map_name(f, m), _array_of(plan, m), m.shape, m.box, m.steps, m.swizzle, m.stored[-1])
                 for f in functions for m in f.maps)


def _map_name(function: Function, m: Mapped) -> str:
    return f"{function.name}.{m.name}"


def _array_of(plan: Plan, m: Mapped) -> str:
    """The buffer of the module that an array with a tensor map is."""
    assert m.store.array is not None
    return _buffer_name(("array", m.store.array.name), plan)


def _launches(plan: Plan, functions: Sequence[Function]) -> Iterator[Launch]:
    """The launches in order: one for each kernel, or one for each iteration of the loops that the host runs."""
    for function in functions:
        arguments = (*(_buffer_name(key, plan) for key, _ in function.parameters),
                     *(_map_name(function, m) for m in function.maps))
        hosted = [range(x.start, x.start + x.extent) for low in function.lows for x in low.launch_loops]
        for counters in product(*hosted):
            yield Launch(function.name, function.grid, function.block, arguments,
                         function.static_bytes, function.dynamic_bytes, counters, function.cooperative,
                         function.cluster)
