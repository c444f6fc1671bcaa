"""The CUDA text of a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..ir.plan import Plan
from ..ir.tree import Kernel, Leaf, walk
from .body import Builder
from .lower import Lowered, Store
from .module import Buffer, CudaModule, Launch
from .names import Names, kernel_identifier
from .preamble import preamble
from .printer import Lines, Out, Printer, code
from .resources import carve

LINE = 120
"""Columns beyond which a function's parameters stand on lines of their own."""


@dataclass(frozen=True)
class Function:
    """One kernel's text before printing."""

    kernel: Kernel
    name: str
    low: Lowered
    parameters: tuple[tuple[tuple[str, str], Store], ...]
    head: tuple[Out, ...]
    body: tuple[Out, ...]
    library: frozenset[str]
    static_bytes: int
    dynamic_bytes: int


def emit(plan: Plan, *, arch: str = "sm_90", min_blocks: int = 0,
         barriers: Callable[[Plan, Kernel], Any] | None = None) -> CudaModule:
    """Write a legal plan as CUDA C++.

    Parameters
    ----------
    plan : Plan
    arch : str
        Compute capability the text may use (cp.async needs ``sm_80``; below it, copies are plain).
    min_blocks : int
        Blocks per multiprocessor to ask the compiler for (``__launch_bounds__``); 0 leaves it free.
    barriers : callable, optional
        ``(plan, kernel)`` to an object whose ``before`` says where ``__syncthreads()`` stands.  Default: the exact
        analysis of :mod:`explorer.poly.barriers`.

    Returns
    -------
    CudaModule
        The text, its buffers and launches, and the lines of every node.
    """
    if barriers is None:
        from ..poly.barriers import barriers as exact

        barriers = exact
    names = Names()
    functions = []
    for kernel in plan.kernels:
        function = _function(plan, kernel, kernel_identifier(names, kernel.id), barriers, arch)
        if function is not None:
            functions.append(function)
    printer = Printer()
    code = "\n".join(_all_text(f) for f in functions)
    for line in preamble(plan, code, frozenset().union(*(f.library for f in functions)) if functions else frozenset()):
        printer.line(line)
    for function in functions:
        printer.line()
        _print(printer, function, min_blocks)
    buffers, launches = _buffers(plan, functions), tuple(_launches(plan, functions))
    return CudaModule(plan.program.name, printer.text(), buffers, launches, printer.source_map())


def _function(plan: Plan, kernel: Kernel, name: str, barriers: Callable[[Plan, Kernel], Any], arch: str) -> Function | None:
    """One kernel, or None if none of its leaves runs."""
    low = Lowered(plan, kernel)
    builder = Builder(low, barriers, arch)
    body = builder.kernel()
    leaf_ids = {n.id for n in walk(kernel.body) if isinstance(n, Leaf)}
    if not any(leaf_ids & set(_ids(out)) for out in body):
        return None
    shared = [s for s in low.stores.values() if s.space == "shared"]
    declarations, static_bytes, dynamic_bytes = carve(shared, builder.scratch_stores(), frozenset(builder.aligned))
    words = set(re.findall(r"\w+", "\n".join(code(body))))
    head: list[Out] = [Lines((line,), ids) for line, ids in low.role_declarations(words)]
    head += [Lines((line,)) for line in declarations]
    parameters = tuple((key, s) for key, s in low.stores.items() if s.space == "global")
    return Function(kernel, name, low, parameters, tuple(head), body, frozenset(builder.library), static_bytes, dynamic_bytes)


def _ids(out: Out) -> list[str]:
    return [*out.ids, *([] if isinstance(out, Lines) else [i for child in out.body for i in _ids(child)])]


def _all_text(function: Function) -> str:
    return "\n".join([*code(function.head), *code(function.body), *(s.dtype.cuda for _, s in function.parameters)])


def _print(printer: Printer, function: Function, min_blocks: int) -> None:
    first = len(printer.lines) + 1
    threads = function.low.block[0] * function.low.block[1] * function.low.block[2]
    bounds = f"{threads}, {min_blocks}" if min_blocks else str(threads)
    written = function.low.written
    pointers = [f"{'' if key in written else 'const '}{s.dtype.cuda}* __restrict__ {s.name}" for key, s in function.parameters]
    counters = [f"const int {function.low.variable[loop.id]}" for loop in function.low.launch_loops]
    parameters = [*pointers, *counters]
    start = f'extern "C" __global__ void __launch_bounds__({bounds}) {function.name}('
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
    printer.mark((function.kernel.id,), first)


def _buffers(plan: Plan, functions: list[Function]) -> tuple[Buffer, ...]:
    """The user's arrays in the order of the signature, then every workspace that a kernel uses."""
    out = [Buffer(a.name, a.dtype, a.shape, a.role) for a in plan.program.parameters]
    used = {key: s for f in functions for key, s in f.parameters if s.array is None or s.array.role == "temporary"}
    return (*out, *(Buffer(_buffer_name(key, plan), s.dtype, s.shape, "workspace") for key, s in used.items()))


def _buffer_name(key: tuple[str, str], plan: Plan) -> str:
    """A workspace's name: the array's, or the buffer's unless an array has it too."""
    kind, name = key
    return f"{name}.buffer" if kind == "buffer" and name in plan.array_of else name


def _launches(plan: Plan, functions: list[Function]) -> Iterator[Launch]:
    """The launches in order: one for each kernel, or one for each iteration of the loops that the host runs."""
    for function in functions:
        arguments = tuple(_buffer_name(key, plan) for key, _ in function.parameters)
        for counters in product(*(range(loop.start, loop.start + loop.extent) for loop in function.low.launch_loops)):
            yield Launch(function.name, function.low.grid, function.low.block, arguments,
                         function.static_bytes, function.dynamic_bytes, counters)

