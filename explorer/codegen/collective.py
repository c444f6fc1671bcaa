"""Updates of one cell by many threads or blocks: reductions by shuffles and shared memory, and atomics."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..errors import ScheduleError
from ..ir.expr import Expr
from ..ir.scalar import REDUCTIONS, Read
from ..ir.scalar import type_of as scalar_type
from ..ir.tree import WARP_SIZE
from .access import access_text, value_of
from .device import reduce_scratch_elements
from .guards import Condition, condition, guard_text
from .lower import Lowered, Site, Store
from .scalar import CONDITIONAL, PRIMARY, cast, enclose, literal, narrow, update_text

ATOMIC = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}


class Collective:
    """The text of an update whose values are combined across places.

    Parameters
    ----------
    low : Lowered
    site : Site
        A leaf with `collect`.
    library : set of str
        Parts of the device library in use; added to.
    scratch : dict
        Shared arrays that reductions work in, by element type; added to.
    """

    def __init__(self, low: Lowered, site: Site, library: set[str], scratch: dict[str, Store]) -> None:
        self.low, self.site, self.library, self.scratch = low, site, library, scratch
        loops = {loop.id: loop for loop in site.loops}
        ways = [(loops[loop_id], how) for loop_id, how in site.leaf.collect if loop_id in loops]
        self.threads = {loop.role: how for loop, how in ways if loop.is_thread and how != "atomic"}
        self.atomic = any(how == "atomic" for _, how in ways)
        self.update = site.statement.update or "sum"
        self.target_slot = len(site.statement.reads)
        self.target = low.store(site.leaf, self.target_slot)
        self.wide = self.target.dtype.wide
        self.lvalue = access_text(low, site, self.target_slot)
        kind = scalar_type(site.statement.value, low.dtypes(site)).wide
        if isinstance(read := site.statement.value, Read) and low.dtypes(site)[read.slot].kind == "int":
            kind = low.dtypes(site)[read.slot]  # only floats are widened where they are read
        value = value_of(low, site, site.statement.value)
        self.value = value if kind.name == self.wide.name else cast(value, self.wide, kind)

    def apply(self, value: tuple[str, int]) -> str:
        """The update of the target by a combined value."""
        if self.atomic:
            self.library.add("atomic")
            dtype = self.target.dtype
            stored = narrow(value, dtype) if dtype.kind == "float" else cast(value, dtype, self.wide)
            return f"atomic_{ATOMIC[self.update]}(&{self.lvalue}, {stored[0]});"
        return update_text(self.update, self.lvalue, value, self.target.dtype, self.wide)

    def alone(self) -> list[str]:
        """The text when nothing is combined between threads: every thread updates by itself."""
        return [f"{self.apply(self.value)}  // {self.site.leaf.id}"]

    def together(self, guards: tuple[Condition, ...]) -> list[str]:
        """The text of a reduction over threads, which all threads of the block reach; `guards` say who contributes."""
        low, site = self.low, self.site
        value = self.value
        if guards:
            identity = literal(REDUCTIONS[self.update].identity(self.wide), self.wide)
            test = guard_text(guards, site.around, enclosed=True)
            value = f"{test} ? {enclose(value, CONDITIONAL + 1)} : {enclose(identity, CONDITIONAL)}", CONDITIONAL
        result = low.taken.take(f"{self.target.name}_{self.update}")
        update = self.apply((result, PRIMARY))
        if self.target.space != "register":
            writers = self.writers(guards)
            update = f"if ({guard_text(writers, site.around)}) {update}" if writers else update
        return [f"const {self.wide.cuda} {result} = {self.call(value[0])};  // {site.leaf.id}", update]

    def writers(self, guards: Sequence[Condition]) -> tuple[Condition, ...]:
        """Which thread of a group updates memory: the first one, where the group's own conditions hold and the cell exists.

        Conditions on the collected places only say who contributes, so they are left out here; what they proved about
        the target's index is tested again.
        """
        low, site = self.low, self.site
        names = {low.role_name[role] for role in self.threads}
        first = [Condition(Expr(((name, 1),)), True) for name in sorted(names)]
        own = [c for c in guards if not (c.variables() & names)]
        if len(own) < len(guards):
            extents = self.target.buffer.shape if self.target.buffer else self.target.shape
            for e, extent in zip(low.index(site, self.target_slot), extents, strict=True):
                if isinstance(e, Expr):
                    own += [c for c in (condition(e, False, site.ranges), condition(-e + (extent - 1), False, site.ranges)) if c]
        return tuple(dict.fromkeys([*first, *own]))

    def call(self, value: str) -> str:
        """The call of the device library that combines `value` over the collected places of a block."""
        self.library.add("reduce")
        roles, kind = set(self.threads), self.wide.cuda
        if roles == {"lane"} and "shared" not in self.threads.values():
            return f"warp_reduce<reduce_{self.update}, {WARP_SIZE}>({value})"
        box, axes = self.box(roles)
        if "shared" in self.threads.values():
            function, elements = "block_reduce_shared", prod(box)
        else:
            function, elements = "block_reduce", reduce_scratch_elements(box, axes)
        scratch = self.scratch_name(elements) if elements else f"({kind}*)nullptr"
        extents = ", ".join([*map(str, box), *("true" if a in axes else "false" for a in "xyz")])
        return f"{function}<reduce_{self.update}, {extents}>({value}, {scratch})"

    def box(self, roles: set[str]) -> tuple[tuple[int, int, int], str]:
        """The block as a box of threads, and the letters of its axes that are combined."""
        if roles & {"warp", "lane"} == {"warp", "lane"}:
            roles = roles - {"warp", "lane"} | {"thread.x"}
        x, y, z = self.low.block
        if not roles & {"warp", "lane"}:
            return (x, y, z), "".join(sorted(role[-1] for role in roles))
        if y * z > 1:
            raise ScheduleError(
                f"{self.site.leaf.id} combines {', '.join(sorted(roles))} in a block of {x}×{y}×{z} threads",
                where=self.site.statement.text, why="warps or lanes alone are combined in blocks with one dimension",
                hint="bind the other thread loops to warps or blocks")
        axis = {"lane": "x", "warp": "y"}
        return (WARP_SIZE, -(-x // WARP_SIZE), 1), "".join(sorted(axis[role] for role in roles))

    def scratch_name(self, elements: int) -> str:
        """The shared array that reductions of this type work in, at least this large."""
        old = self.scratch.get(self.wide.name)
        name = old.name if old else self.low.taken.take("scratch")
        self.scratch[self.wide.name] = Store(name, self.wide, (max(elements, old.shape[0] if old else 0),), "shared")
        return name
