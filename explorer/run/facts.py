"""What is known of a schedule without running it: traffic, sectors, bank conflicts, arithmetic intensity, launch limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import ScheduleError, outspoken
from ..gpu.occupancy import Occupancy, occupancy
from ..gpu.roofline import Roofline, roofline
from ..gpu.spec import Breach, Gpu
from ..gpu.units import time_text
from ..ir.plan import Plan
from ..ir.program import Program
from ..ir.text import access_text
from ..kernel.cluster_layout import slots_of
from ..kernel.resources import Resources, resources
from ..poly.count import Elements, arithmetic_type, compulsory, flops
from ..poly.traffic import AccessFacts, traffic
from .engine_accesses import COPY_ENGINE, by_engine, told


def scaled(value: float, unit: str = "") -> str:
    """A quantity with a metric prefix: ``scaled(1.07e9, "B")`` is ``"1.07 GB"``."""
    for prefix, size in (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


@outspoken(ScheduleError)
@dataclass(frozen=True)
class Facts:
    """Static facts of a plan on a GPU.

    Attributes
    ----------
    program : Program
        The user's program, whose inputs and outputs are the compulsory traffic.
    plan : Plan
    gpu : Gpu
    """

    program: Program
    plan: Plan
    gpu: Gpu

    @cached_property
    def elements(self) -> tuple[Elements, ...]:
        """Distinct elements that must be read and written, for each array of the user."""
        return compulsory(self.program)

    @property
    def compulsory_bytes(self) -> int:
        """Bytes that no schedule avoids: each input element read once, each result written once."""
        return sum(e.bytes for e in self.elements)

    @cached_property
    def accesses(self) -> tuple[AccessFacts, ...]:
        """Every access to global and shared memory, in order of the text.

        Partial results that a cluster hands over in shared memory are of the space ``"cluster"``; global memory is not asked.
        Boxes that the copy engine moves, and tiles that tensor cores read, are one request each.
        """
        handed = {name for kernels in self.plan.launched for _, name in slots_of(self.plan, kernels)}
        inside = {"space": "cluster", "sectors_per_request": 0.0, "minimum": 0.0, "conflicts": 1.0}
        engines = by_engine(self.plan)
        return tuple(replace(a, **inside) if a.storage in handed else
                     told(a, *engines[a.leaf, a.slot]) if (a.leaf, a.slot) in engines else a for a in traffic(self.plan))

    @property
    def requested_bytes(self) -> float:
        """Bytes in whole 32-byte sectors that the warps request from global memory, before any cache."""
        return sum(a.bytes for a in self.accesses)

    @cached_property
    def flops(self) -> int:
        """Arithmetic operations of the program."""
        return flops(self.program)

    @property
    def intensity(self) -> float:
        """Operations per compulsory byte."""
        return self.flops / self.compulsory_bytes if self.compulsory_bytes else float("inf")

    @cached_property
    def roofline(self) -> Roofline:
        """The least time on the GPU."""
        return roofline(self.gpu, self.compulsory_bytes, self.flops, arithmetic_type(self.program))

    @cached_property
    def resources(self) -> tuple[Resources, ...]:
        """Launch extents, shared memory and register arrays of each kernel."""
        return tuple(resources(self.plan, k) for k in self.plan.kernels)

    @cached_property
    def occupancy(self) -> Mapping[str, Occupancy]:
        """The most each kernel can fill the GPU, from threads and shared memory alone: the compiler may ask for more."""
        return {r.kernel: occupancy(self.gpu, r.threads_per_block, 0, r.shared_bytes) for r in self.resources}

    @property
    def breaches(self) -> tuple[Breach, ...]:
        """Limits of the GPU that a launch exceeds."""
        return tuple(b for r in self.resources
                     for b in self.gpu.limits_check(r.grid, r.block, dynamic_shared_bytes=r.shared_bytes))

    def text_of(self, access: AccessFacts) -> str:
        """The access as it stands in the loops."""
        leaf = next(leaf for leaf, _, _ in self.plan.leaves if leaf.id == access.leaf)
        return access_text(self.plan, leaf, access.slot)

    def __str__(self) -> str:
        exact = "" if all(e.exact for e in self.elements) else " at most"
        roof = self.roofline
        lines = [f"{self.program.name} on {self.gpu}",
                 f"  traffic{exact}: {scaled(self.compulsory_bytes, 'B')} compulsory, "
                 f"{scaled(self.requested_bytes, 'B')} requested by warps",
                 f"  {scaled(self.flops, 'flop')}, {self.intensity:.3g} per byte; "
                 f"floor {time_text(roof.floor_us, 4)} ({roof.bound}-bound)"]
        for r in self.resources:
            grid, block = ("×".join(map(str, n)) for n in (r.grid, r.block))
            lines.append(f"  {r.kernel}: grid {grid}, block {block}, {r.shared_bytes:,} B shared, "
                         f"{r.register_words} register words; occupancy at most {self.occupancy[r.kernel]}")
        lines += [f"  exceeds {b}: {b.shrink}" for b in self.breaches]
        for a in self.accesses:
            way = f"  {a.leaf} {'writes' if a.writes else 'reads '} {self.text_of(a)} ({a.space}, "
            if a.by:
                lines.append(f"{way}{'boxes' if a.by == COPY_ENGINE else 'tiles'} of {a.width_bytes:,} B): {scaled(a.requests)} "
                             f"by the {a.by}")
                continue
            cost = (f"{a.sectors_per_request:.3g} sectors, {a.minimum:.3g} at best" if a.space == "global"
                    else f"{a.conflicts:.3g} passes over the banks")
            lines.append(f"{way}{a.width_bytes} B): {cost}, {a.active:.0%} of lanes, {scaled(a.requests)} requests"
                         f"{' (sampled)' if a.sampled else ''}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)
