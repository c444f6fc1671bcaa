"""The text of one launch before it is printed: its kernels' bodies, what they declare, and what they are handed."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.tree import THREAD_ROLES, Kernel
from ..poly.roles import with_producer
from .launches import LaunchIR
from .lines import Lines, Out
from .lower import Context
from .names import Names, kernel_identifier
from .nodes import TensorMap
from .phases import Phase, joined, slots_store
from .printer import BodyPrinter, Written
from .resources import carve
from .roles import apart
from .sites import Lowered, Store
from .stamped import STAMPS, Stamped


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
    maps: tuple[TensorMap, ...] = ()

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


def function_of(launch: LaunchIR, names: Names, stamped: Stamped | None = None) -> Function:
    """The kernels of one launch as one function, which notes the time where it is to be `stamped`."""
    name, plan, kernels = kernel_identifier(names, launch.kernels[0].id), launch.plan, launch.kernels
    contexts, bodies, stores, scratch = launch.contexts, launch.bodies, launch.stores, launch.scratch
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
    declarations, static_bytes, dynamic_bytes = carve(plan, shared, [*scratch.values()], aligned)
    lows, maps = tuple(c.low for c in contexts), tuple(bulk.maps.values())
    mapped = {m.store.name for m in maps}
    parameters = tuple((key, s) for key, s in stores.items()
                       if s.space == "global" and not s.handed and (s.name in used or s.name not in mapped))
    parameters += (((STAMPS, logs.name), logs.store),) if logs else ()
    waits = any(c.before for c in contexts)
    if len(kernels) == 1:
        head = (*_roles(contexts[0], texts[0]), *declarations)
        return Function(kernels, name, lows, parameters, head, texts[0].lines, library, static_bytes, dynamic_bytes, waits, used,
                        maps=maps)
    phases = [Phase(low, (*roles, *([Lines(("",))] if roles else []), *text.lines))
              for c, low, text in zip(contexts, lows, texts, strict=True) for roles in (_roles(c, text),)]
    text = joined(plan, phases, lambda kernel, kind: names.take(f"{kernel.id}_{kind}"))
    head = (*declarations, *(Lines((line,)) for line in text.head))
    return Function(kernels, name, lows, parameters, head, text.body, library | text.library, static_bytes,
                    dynamic_bytes, True, used, text.counters, maps)


def _roles(context: Context, text: Written) -> list[Out]:
    """Declarations of the role variables that a kernel's body uses, with the bounds by which the compiler may drop guards."""
    low = context.low
    declared: list[Out] = [Lines((line,), ids) for line, ids in low.role_declarations(text.used, "same_in_warp" in text.library)]
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
