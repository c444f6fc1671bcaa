"""The IR of every launch of a plan: what is printed, and what the interpreter runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

from ..ir.plan import Plan
from ..ir.tree import Kernel
from . import passes
from .architecture import for_arch
from .bulk_copy import Launched
from .lower import Context, lower
from .nodes import Barrier, Collect, Combine, Node
from .phases import goes_on, slots_store
from .resources import require_room
from .roles import Roles, apart
from .scratch import Scratch
from .sites import Lowered, Store, stores_of
from .traverse import walk

Barriers = Callable[[Plan, Kernel], Any]


@dataclass(frozen=True)
class LaunchIR:
    """A kernel, or several that are the phases of one launch.

    Attributes
    ----------
    plan : Plan
    kernels : tuple of Kernel
    contexts : tuple of Context
        One for each kernel.
    bodies : tuple of tuple of Node
        One for each kernel.
    stores : mapping of (str, str) to Store
        The storage that all of them use.
    """

    plan: Plan
    kernels: tuple[Kernel, ...]
    contexts: tuple[Context, ...]
    bodies: tuple[tuple[Node, ...], ...]
    stores: Mapping[tuple[str, str], Store]

    @property
    def lows(self) -> tuple[Lowered, ...]:
        """Names and extents of each kernel."""
        return tuple(c.low for c in self.contexts)

    @property
    def bulk(self) -> Launched:
        """Tensor maps and mbarriers."""
        return self.contexts[0].bulk

    @property
    def scratch(self) -> Scratch:
        """Shared arrays that collectives work in."""
        return self.contexts[0].scratch

    @property
    def shared(self) -> tuple[Store, ...]:
        """Every array in shared memory: the plan's, the slots of a cluster's parts, mbarriers, what collectives work in."""
        held = [slots_store(s) if s.slots else s for s in self.stores.values() if s.slots or s.space == "shared"]
        mbarriers = (m.store for m in (*self.bulk.mbarriers.values(), *self.bulk.released.values()))
        return (*held, *mbarriers, *self.scratch.values())

    @property
    def barriers(self) -> int:
        """Barriers of the whole block in its text: the IR's that no role has for itself, and those between phases."""
        inside = (node for low, body in zip(self.lows, self.bodies, strict=True)
                  for top in apart(low, body) if not isinstance(top, Roles) for node in walk((top,)))
        between = sum(goes_on(self.plan, before, kernel) for before, kernel in pairwise(self.kernels))
        return sum(_meets(node) for node in inside) + between

    @property
    def hosted(self) -> Iterator[tuple[int, ...]]:
        """The iterations of the loops that the host runs: a launch for each."""
        loops = [range(x.start, x.start + x.extent) for low in self.lows for x in low.launch_loops]
        return product(*loops)


def _meets(node: Node) -> bool:
    """Whether the threads of a block meet at a node, or in front of it."""
    return node.first_waits if isinstance(node, (Collect, Combine)) else isinstance(node, Barrier) and not node.cluster


def launch_ir(plan: Plan, kernels: tuple[Kernel, ...], barriers: Barriers, after: str) -> LaunchIR | None:
    """The kernels of one launch, or None if none of their leaves runs."""
    stores = stores_of(plan, kernels)
    require_room(kernels[0].id, stores.values())
    scratch = Scratch()
    contexts, bodies = list[Context](), list[tuple[Node, ...]]()
    lows = [Lowered(plan, kernel, stores) for kernel in kernels]
    bulk = Launched(lows)
    for low in lows:
        context = Context(low, scratch, bulk)
        context.place_barriers(barriers)
        contexts.append(context)
        bodies.append(passes.run(lower(context), context, after))
    runs = any(hasattr(node, "site") for body in bodies for node in walk(body))
    return LaunchIR(plan, kernels, tuple(contexts), tuple(bodies), stores) if runs else None


@dataclass(frozen=True)
class PlanIR:
    """The IR of a whole plan: of each launch in which something runs."""

    plan: Plan
    launches: tuple[LaunchIR, ...]


def plan_ir(plan: Plan, *, arch: str = "sm_90", barriers: Barriers | None = None, after: str = "") -> PlanIR:
    """The IR of a plan, launch after launch.

    Parameters
    ----------
    plan : Plan
    arch : str
        Compute capability: asynchronous copies need ``sm_80``, clusters ``sm_90``.
    barriers : callable, optional
        ``(plan, kernel)`` to an object whose ``before`` says where barriers stand; by default
        :func:`explorer.poly.barriers.barriers`.
    after : str
        The last pass to run; by default all do.

    Raises
    ------
    IllegalSchedule, ScheduleError, ResourceError
        What no kernel can say, or the architecture does not have.
    """
    plan = for_arch(plan, arch)
    asked = barriers or exact_barriers()
    found = (launch_ir(plan, kernels, asked, after) for kernels in plan.launched)
    return PlanIR(plan, tuple(launch for launch in found if launch is not None))


def standing(plan: Plan, kernel: Kernel) -> Any:
    """For a plan that may be illegal: barriers where they can stand, and none against races."""
    return replace(exact_barriers()(plan, kernel), races=())


def exact_barriers() -> Barriers:
    """The exact analysis of :mod:`explorer.poly.barriers`."""
    from ..poly.barriers import barriers

    return barriers
