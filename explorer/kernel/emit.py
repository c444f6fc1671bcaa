"""The CUDA text of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from ..ir.plan import Plan
from ..ir.tree import THREAD_ROLES, Kernel
from ..poly.roles import with_producer
from .async_copy import for_arch
from .launches import exact_barriers, launch_ir
from .lines import Lines, Out, Printer, code
from .lower import Context
from .module import Buffer, CudaModule, Launch, TensorMap
from .names import Names, kernel_identifier
from .nodes import TensorMap as Mapped
from .phases import Phase, joined, slots_store
from .preamble import preamble
from .printer import BodyPrinter, Written
from .resources import carve, require_tensor
from .roles import apart
from .sites import Lowered, Store
from .stamped import STAMPS, Stamped
from .validate import require_proved

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
    used: frozenset[str]
    counters: tuple[str, ...] = ()
    maps: tuple[Mapped, ...] = ()

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks of the launch (the first phase has them all)."""
        return self.lows[0].grid

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of its blocks, a producer's included."""
        return with_producer(self.kernels[0], self.lows[0].block)

    @property
    def cluster(self) -> tuple[int, int, int]:
        """Blocks of a cluster."""
        return self.lows[0].plan.clusters[self.kernels[0].id]

    @property
    def cooperative(self) -> bool:
        """Whether all blocks wait for each other."""
        return any(k.join == "grid" for k in self.kernels[1:])


def emit(plan: Plan, *, arch: str = "sm_90", min_blocks: int = 0,
         barriers: Callable[[Plan, Kernel], Any] | None = None, after: str = "", stamped: Stamped | None = None) -> CudaModule:
    """Write a legal plan as CUDA C++.

    Parameters
    ----------
    plan : Plan
    arch : str
        Compute capability the text may use (cp.async needs ``sm_80``; below it, copies are plain).
    min_blocks : int
        Blocks per multiprocessor to ask the compiler for (``__launch_bounds__``) where the schedule does not say
        (:mod:`~explorer.transforms.launch_bounds`); 0 leaves it free.
    barriers : callable, optional
        ``(plan, kernel)`` to an object whose ``before`` says where ``__syncthreads()`` stands.  Default: the exact
        analysis of :mod:`explorer.poly.barriers`; what comes out is then compared with the plan
        (:mod:`explorer.kernel.validate`).
    after : str
        The last pass of :mod:`explorer.kernel.passes` to run; by default all do.

    stamped : Stamped, optional
        Notes the time in an instrumented copy (:mod:`explorer.kernel.stamped`); none by default.

    Returns
    -------
    CudaModule
        The text, its buffers and launches, and the lines of every node.

    Raises
    ------
    IllegalSchedule, ScheduleError
        What no kernel can say; a kernel that is not what was proved (a fault of a pass).
    """
    proved = barriers is None and not after
    barriers = barriers or exact_barriers()
    require_tensor(plan, arch)
    names, plan = Names(), for_arch(plan, arch)
    functions: list[Function] = []
    for kernels in plan.launched:
        function = _function(plan, kernels, names, barriers, arch, after, proved, stamped)
        if function is not None:
            functions.append(function)
    printer = Printer()
    code = "\n".join(_all_text(f) for f in functions)
    for line in preamble(plan, code, frozenset[str]().union(*(f.library for f in functions))):
        printer.line(line)
    for function in functions:
        printer.line()
        for line in function.counters:
            printer.line(line)
        _print(printer, function, min_blocks)
    buffers, launches = _buffers(plan, functions), tuple(_launches(plan, functions))
    return CudaModule(plan.program.name, printer.text(), buffers, launches, printer.source_map(), _maps(plan, functions))


def _function(plan: Plan, kernels: tuple[Kernel, ...], names: Names, barriers: Callable[[Plan, Kernel], Any],
              arch: str, after: str, proved: bool, stamped: Stamped | None) -> Function | None:
    """The kernels of one launch, or None if none of their leaves runs."""
    name = kernel_identifier(names, kernels[0].id)
    launch = launch_ir(plan, kernels, barriers, arch, after)
    if launch is None:
        return None
    contexts, bodies, stores, scratch = launch.contexts, launch.bodies, launch.stores, launch.scratch
    if proved:
        require_proved(launch)
    apiece = [apart(c.low, body) for c, body in zip(contexts, bodies, strict=True)]
    logs = None
    if stamped:
        apiece, logs = stamped.bodies(plan, launch.lows, apiece)
    texts = [BodyPrinter(c.low).written(body) for c, body in zip(contexts, apiece, strict=True)]
    shared = [slots_store(s) if s.slots else s for s in stores.values() if s.slots or s.space == "shared"]
    library, used = (frozenset[str]().union(*(getattr(t, what) for t in texts)) for what in ("library", "used"))
    aligned = {name: most for t in texts for name, n in t.aligned.items()
               for most in (max(n, *(other.aligned.get(name, 0) for other in texts)),)}
    bulk = launch.bulk
    shared += [m.store for m in (*bulk.mbarriers.values(), *bulk.released.values())]
    declarations, static_bytes, dynamic_bytes = carve(shared, [*scratch.values()], aligned)
    lows, maps = tuple(c.low for c in contexts), tuple(bulk.maps.values())
    declared = [Lines((line,)) for line in declarations]
    mapped = {m.store.name for m in maps}
    parameters = tuple((key, s) for key, s in stores.items()
                       if s.space == "global" and not s.handed and (s.name in used or s.name not in mapped))
    parameters += (((STAMPS, logs.name), logs.store),) if logs else ()
    waits = any(c.before for c in contexts)
    if len(kernels) == 1:
        head = (*_roles(contexts[0], texts[0]), *declared)
        return Function(kernels, name, lows, parameters, head, texts[0].lines, library, static_bytes, dynamic_bytes, waits, used,
                        maps=maps)
    phases = [Phase(low, (*roles, *([Lines(("",))] if roles else []), *text.lines))
              for c, low, text in zip(contexts, lows, texts, strict=True) for roles in (_roles(c, text),)]
    text = joined(plan, phases, lambda kernel, kind: names.take(f"{kernel.id}_{kind}"))
    head = (*declared, *(Lines((line,)) for line in text.head))
    return Function(kernels, name, lows, parameters, head, text.body, library | text.library, static_bytes,
                    dynamic_bytes, True, used, text.counters, maps)


def _roles(context: Context, text: Written) -> list[Out]:
    """Declarations of the role variables that a kernel's body uses, with the bounds by which the compiler may drop guards."""
    low = context.low
    declared: list[Out] = [Lines((line,), ids) for line, ids in low.role_declarations(text.used)]
    sizes = zip(THREAD_ROLES, low.block, strict=True)
    known = {low.role_name[role]: size for role, size in sizes if role in low.role_name}
    several = low.role_name.get("thread.y") if low.kernel.has_roles else None  # the producer is one row more
    bounds = [f"{name} < {size}" for name, size in known.items() if name in text.used & _limited(context) and name != several]
    return [*declared, *([Lines((f"__builtin_assume({' && '.join(bounds)});  // the block's size",))] if bounds else [])]


def _limited(context: Context) -> frozenset[str]:
    """Variables of guards that hold in some iterations of an unrolled loop, whatever these variables are."""
    low, found = context.low, set[str]()
    for s in context.sites.values():
        names = {low.variable[x.id] for x in s.loops if x.role == "unroll" or x.id in context.register_loops}
        found |= {name for c in s.conditions if not c.equality and c.variables() & names for name in c.variables()}
    return frozenset(found)


def _all_text(function: Function) -> str:
    return "\n".join([*code(function.head), *code(function.body), *(s.dtype.cuda for _, s in function.parameters)])


def _print(printer: Printer, function: Function, min_blocks: int) -> None:
    first = len(printer.lines) + 1
    threads, min_blocks = prod(function.block), function.kernels[0].resident or min_blocks or function.kernels[0].registers > 0
    bounds = f"{threads}, {int(min_blocks)}" if min_blocks else str(threads)
    pointers = [_pointer(function, key, s) for key, s in function.parameters]
    counters = [f"const int{f' {name}' if name in function.used else ''}" for low in function.lows for loop in low.launch_loops
                for name in (low.variable[loop.id],)]
    parameters = [*pointers, *(f"const __grid_constant__ tensor_map {m.name}" for m in function.maps), *counters]
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


def _buffers(plan: Plan, functions: list[Function]) -> tuple[Buffer, ...]:
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


def _maps(plan: Plan, functions: list[Function]) -> tuple[TensorMap, ...]:
    """What the host describes to the hardware, each once; launches name it."""
    return tuple(TensorMap(_map_name(f, m), _array_of(plan, m), m.shape, m.box, m.steps, m.swizzle)
                 for f in functions for m in f.maps)


def _map_name(function: Function, m: Mapped) -> str:
    return f"{function.name}.{m.name}"


def _array_of(plan: Plan, m: Mapped) -> str:
    """The buffer of the module that an array with a tensor map is."""
    assert m.store.array is not None
    return _buffer_name(("array", m.store.array.name), plan)


def _launches(plan: Plan, functions: list[Function]) -> Iterator[Launch]:
    """The launches in order: one for each kernel, or one for each iteration of the loops that the host runs."""
    for function in functions:
        arguments = (*(_buffer_name(key, plan) for key, _ in function.parameters),
                     *(_map_name(function, m) for m in function.maps))
        hosted = [range(x.start, x.start + x.extent) for low in function.lows for x in low.launch_loops]
        for counters in product(*hosted):
            yield Launch(function.name, function.grid, function.block, arguments,
                         function.static_bytes, function.dynamic_bytes, counters, function.cooperative,
                         function.cluster)

