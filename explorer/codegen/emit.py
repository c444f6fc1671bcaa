"""The CUDA text of a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from ..ir.plan import Plan
from ..ir.tree import THREAD_ROLES, Kernel, Leaf, walk
from .body import Builder
from .collective import Scratch
from .joined import Phase, all_ids, joined, require_clusters, slots_store
from .lower import Lowered, Store, stores_of
from .module import Buffer, CudaModule, Launch
from .names import Names, kernel_identifier
from .preamble import preamble
from .printer import Lines, Out, Printer, code
from .resources import carve

LINE = 120
"""Columns beyond which a function's parameters stand on lines of their own."""


@dataclass(frozen=True)
class Function:
    """One launch's text before printing: a kernel, or several that are its phases."""

    kernels: tuple[Kernel, ...]
    name: str
    lows: tuple[Lowered, ...]
    parameters: tuple[tuple[tuple[str, str], Store], ...]
    head: tuple[Out, ...]
    body: tuple[Out, ...]
    library: frozenset[str]
    static_bytes: int
    dynamic_bytes: int
    waits: bool
    counters: tuple[str, ...] = ()

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks of the launch (the first phase has them all)."""
        return self.lows[0].grid

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of its blocks."""
        return self.lows[0].block

    @property
    def cluster(self) -> tuple[int, int, int]:
        """Blocks of a cluster."""
        return self.lows[0].plan.clusters[self.kernels[0].id]

    @property
    def cooperative(self) -> bool:
        """Whether all blocks wait for each other."""
        return any(k.join == "grid" for k in self.kernels[1:])


def emit(plan: Plan, *, arch: str = "sm_90", min_blocks: int = 0,
         barriers: Callable[[Plan, Kernel], Any] | None = None) -> CudaModule:
    """Write a legal plan as CUDA C++.

    Parameters
    ----------
    plan : Plan
    arch : str
        Compute capability the text may use (cp.async needs ``sm_80``; below it, copies are plain).
    min_blocks : int
        Blocks per multiprocessor to ask the compiler for (``__launch_bounds__``) where the schedule does not say
        (:class:`~explorer.transforms.occupy.Occupy`); 0 leaves it free.
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
    for kernels in plan.launched:
        function = _function(plan, kernels, names, barriers, arch)
        if function is not None:
            functions.append(function)
    printer = Printer()
    code = "\n".join(_all_text(f) for f in functions)
    for line in preamble(plan, code, frozenset().union(*(f.library for f in functions)) if functions else frozenset()):
        printer.line(line)
    for function in functions:
        printer.line()
        for line in function.counters:
            printer.line(line)
        _print(printer, function, min_blocks)
    buffers, launches = _buffers(plan, functions), tuple(_launches(plan, functions))
    return CudaModule(plan.program.name, printer.text(), buffers, launches, printer.source_map())


def _function(plan: Plan, kernels: tuple[Kernel, ...], names: Names, barriers: Callable[[Plan, Kernel], Any],
              arch: str) -> Function | None:
    """The kernels of one launch, or None if none of their leaves runs."""
    require_clusters(plan, kernels[0], arch)
    name = kernel_identifier(names, kernels[0].id)
    stores = stores_of(plan, kernels)
    scratch = Scratch()
    builders = [Builder(Lowered(plan, k, stores), barriers, arch, scratch) for k in kernels]
    bodies = [b.kernel() for b in builders]
    leaf_ids = {n.id for k in kernels for n in walk(k.body) if isinstance(n, Leaf)}
    if not any(leaf_ids & {*all_ids(out)} for body in bodies for out in body):
        return None
    shared = [slots_store(s) if s.slots else s for s in stores.values() if s.slots or s.space == "shared"]
    aligned, library = frozenset().union(*(b.aligned for b in builders)), frozenset().union(*(b.library for b in builders))
    declarations, static_bytes, dynamic_bytes = carve(shared, [*scratch.values()], aligned)
    lows = tuple(b.low for b in builders)
    declared = [Lines((line,)) for line in declarations]
    parameters = tuple((key, s) for key, s in stores.items() if s.space == "global" and not s.handed)
    waits = any(b.before for b in builders)
    if len(kernels) == 1:
        head = (*_roles(builders[0], bodies[0]), *declared)
        return Function(kernels, name, lows, parameters, head, bodies[0], library, static_bytes, dynamic_bytes, waits)
    phases = [Phase(low, (*roles, *([Lines(("",))] if roles else []), *body))
              for b, low, body in zip(builders, lows, bodies, strict=True) for roles in (_roles(b, body),)]
    text = joined(plan, phases, lambda kernel, kind: names.take(f"{kernel.id}_{kind}"))
    head = (*declared, *(Lines((line,)) for line in text.head))
    return Function(kernels, name, lows, parameters, head, text.body, library | text.library, static_bytes,
                    dynamic_bytes, True, text.counters)


def _roles(builder: Builder, body: tuple[Out, ...]) -> list[Out]:
    """Declarations of the role variables that a kernel's body uses, with the bounds by which the compiler may drop guards."""
    low = builder.low
    words = set(re.findall(r"\w+", "\n".join(code(body))))
    declared: list[Out] = [Lines((line,), ids) for line, ids in low.role_declarations(words)]
    sizes = zip(THREAD_ROLES, low.block, strict=True)
    known = {low.role_name[role]: size for role, size in sizes if role in low.role_name}
    bounds = [f"{name} < {size}" for name, size in known.items() if name in words & builder.limited()]
    return [*declared, *([Lines((f"__builtin_assume({' && '.join(bounds)});  // the block's size",))] if bounds else [])]


def _all_text(function: Function) -> str:
    return "\n".join([*code(function.head), *code(function.body), *(s.dtype.cuda for _, s in function.parameters)])


def _print(printer: Printer, function: Function, min_blocks: int) -> None:
    first = len(printer.lines) + 1
    threads, min_blocks = prod(function.block), function.kernels[0].resident or min_blocks
    bounds = f"{threads}, {min_blocks}" if min_blocks else str(threads)
    pointers = [_pointer(function, key, s) for key, s in function.parameters]
    counters = [f"const int {low.variable[loop.id]}" for low in function.lows for loop in low.launch_loops]
    parameters = [*pointers, *counters]
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
    written = any(key in low.written for low in function.lows)
    several = sum(low.written[key] for low in function.lows) > 1
    passed_on = written and function.waits and (several or any(key in low.read for low in function.lows))
    return f"{'' if written else 'const '}{store.dtype.cuda}*{'' if passed_on else ' __restrict__'} {store.name}"


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
        hosted = [range(x.start, x.start + x.extent) for low in function.lows for x in low.launch_loops]
        for counters in product(*hosted):
            yield Launch(function.name, function.grid, function.block, arguments,
                         function.static_bytes, function.dynamic_bytes, counters, function.cooperative,
                         function.cluster)

