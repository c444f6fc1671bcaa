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
from .device import reduce_lanes_scratch_elements, reduce_scratch_elements
from .guards import Condition, condition, guard_text
from .lower import Lowered, Site, Store
from .names import Names
from .scalar import CONDITIONAL, PRIMARY, cast, enclose, literal, narrow, update_text

OWN = 512
"""Elements of a scratch array that are few enough for a reduction to have one of its own, which saves a barrier."""
ATOMIC = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}


class Scratch(dict[str, Store]):
    """Shared arrays that the reductions of one launch work in, by what they hold, and which of them have been used so far."""

    def __init__(self) -> None:
        super().__init__()
        self._used: set[str] = set()

    def take(self, names: Names) -> str:
        """A name that none of the arrays has: every phase of a launch has names of its own."""
        held = {store.name for store in self.values()}
        return next(name for name in iter(lambda: names.take("scratch"), "") if name not in held)

    def use(self, key: str) -> bool:
        """Whether this is the first use in the text."""
        first = key not in self._used
        self._used.add(key)
        return first


class Collective:
    """The text of an update whose values are combined across places.

    Parameters
    ----------
    low : Lowered
    site : Site
        A leaf with `collect`.
    library : set of str
        Parts of the device library in use; added to.
    scratch : Scratch
        Added to.
    first : bool
        Only the first thread of each group needs the result.
    """

    def __init__(self, low: Lowered, site: Site, library: set[str], scratch: Scratch, first: bool = False) -> None:
        self.low, self.site, self.library, self.scratch, self.first = low, site, library, scratch, first
        loops = {loop.id: loop for loop in site.loops}
        ways = [(loops[loop_id], how) for loop_id, how in site.leaf.collect if loop_id in loops]
        self.threads = {loop.role: how for loop, how in ways if loop.is_thread and how != "atomic"}
        self.blocks = tuple(loop.role for loop, how in ways if how == "cluster")
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
        self.key, self.waits = self.wide.name, True

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
        """The text of a reduction over threads (and blocks), which all of them reach; `guards` say who contributes."""
        low, site = self.low, self.site
        value = self.contribution(guards)
        result = low.taken.take(f"{self.target.name}_{self.update}")
        return [*self.before(), f"const {self.wide.cuda} {result} = {self.combined(value[0])};  // {site.leaf.id}",
                self.written((result, PRIMARY), guards)]

    def claim(self, elements: int, together: str = "") -> None:
        """Take a scratch array, a small one for this reduction alone; one that has been used is waited for.

        To be called in the order of the text; `together` is a loop all of whose iterations are one call.
        """
        again = any(self.low.is_counter(loop) and loop.extent > 1 for loop in self.site.loops if loop.id != together)
        self.key = f"{self.wide.name} of {self.site.leaf.id}" if elements <= OWN and not again else self.wide.name
        self.waits = elements > 0 and (not self.scratch.use(self.key) or again)

    def before(self) -> list[str]:
        """The barrier behind which the scratch array may be used again, where it has been used."""
        return ["__syncthreads();  // the scratch array is free"] if self.waits else []

    def combined(self, value: str) -> str:
        """The call that combines `value` over threads, and around it the one over the blocks of the cluster."""
        inner = self.call(value) if self.threads else value
        count = prod(self.low.plan.clusters[self.low.kernel.id])
        if not self.blocks or count == 1:
            return inner
        self.library |= {"reduce", "cluster"}
        first = [Condition(Expr(((self.low.role_name[role], 1),)), True) for role in sorted(self.threads)]
        wanted = guard_text(first, self.site.around) if first else "true"
        return f"cluster_reduce<reduce_{self.update}, {count}>({inner}, {self.slots_name()}, {wanted})"

    def slots_name(self) -> str:
        """The shared array in which a cluster's blocks see each other's values of this type."""
        key = f"{self.wide.name} of a cluster"
        name = self.scratch[key].name if key in self.scratch else self.low.taken.take("slots")
        self.scratch[key] = Store(name, self.wide, (prod(self.low.block),), "shared")
        return name

    def contribution(self, guards: tuple[Condition, ...]) -> tuple[str, int]:
        """A thread's own value, or the identity where the guards do not hold."""
        if not guards:
            return self.value
        identity = literal(REDUCTIONS[self.update].identity(self.wide), self.wide)
        test = guard_text(guards, self.site.around, enclosed=True)
        return f"{test} ? {enclose(self.value, CONDITIONAL + 1)} : {enclose(identity, CONDITIONAL)}", CONDITIONAL

    def written(self, value: tuple[str, int], guards: tuple[Condition, ...]) -> str:
        """The update of the target by the combined value: in every thread's register, or by one thread in memory."""
        update = self.apply(value)
        writers = self.writers(guards) if self.target.space != "register" else ()
        return f"if ({guard_text(writers, self.site.around)}) {update}" if writers else update

    def takes_lanes(self) -> bool:
        """Whether the values of all lanes of a loop can be combined by one call."""
        alone = bool(self.threads) and not self.blocks
        return alone and set(self.threads.values()) == {"shuffle"} and set(self.threads) != {"lane"}

    def call_lanes(self, values: str, count: int) -> str:
        """The call of the device library that combines an array of `count` values a thread."""
        self.library |= {"reduce", "reduce_lanes"}
        box, axes = self.box(set(self.threads))
        elements = self.scratch_elements(count)
        scratch = self.scratch_name(elements) if elements else f"({self.wide.cuda}*)nullptr"
        extents = ", ".join([*map(str, box), *("true" if a in axes else "false" for a in "xyz"), str(count)])
        function = "block_reduce_lanes_first" if self.first else "block_reduce_lanes"
        return f"{function}<reduce_{self.update}, {extents}>({values}, {scratch});"

    def writers(self, guards: Sequence[Condition]) -> tuple[Condition, ...]:
        """Which thread of a group updates memory: the first one, where the group's own conditions hold and the cell exists.

        Conditions on the collected places only say who contributes, so here they ask whether anyone could: at the place that is
        best for each.  What they proved about the target's index is tested again.
        """
        low, site = self.low, self.site
        names = {low.role_name[role] for role in (*self.threads, *self.blocks)}
        first = [Condition(Expr(((name, 1),)), True) for name in sorted(names)]
        own = [c for c in guards if not (c.variables() & names)]
        if len(own) < len(guards):
            own += [c for c in (self.anyone(g, names) for g in guards if g.variables() & names) if c]
            extents = self.target.buffer.shape if self.target.buffer else self.target.shape
            for e, extent in zip(low.index(site, self.target_slot), extents, strict=True):
                if isinstance(e, Expr):
                    own += [c for c in (condition(e, False, site.ranges), condition(-e + (extent - 1), False, site.ranges)) if c]
        return tuple(dict.fromkeys([*first, *own]))

    def anyone(self, c: Condition, names: set[str]) -> Condition | None:
        """What a condition asks of the other variables at the best of the collected places; None where it is more than linear."""
        places = [(name, c.expr.coefficient(name)) for name in sorted(c.variables() & names)]
        rest = c.expr - Expr(tuple(places))
        if c.equality or rest.variables() & names:
            return None
        ranges = self.site.ranges
        return condition(rest + sum(max(k * end for end in ranges[name]) for name, k in places), False, ranges)

    def call(self, value: str) -> str:
        """The call of the device library that combines `value` over the collected places of a block."""
        self.library.add("reduce")
        roles, kind = set(self.threads), self.wide.cuda
        if roles == {"lane"} and "shared" not in self.threads.values():
            return f"warp_reduce<reduce_{self.update}, {WARP_SIZE}>({value})"
        box, axes = self.box(roles)
        elements = self.scratch_elements()
        if "shared" in self.threads.values():
            function = "block_reduce_shared"
        else:
            function = "block_reduce_first" if self.first else "block_reduce"
        scratch = self.scratch_name(elements) if elements else f"({kind}*)nullptr"
        extents = ", ".join([*map(str, box), *("true" if a in axes else "false" for a in "xyz")])
        return f"{function}<reduce_{self.update}, {extents}>({value}, {scratch})"

    def scratch_elements(self, count: int = 0) -> int:
        """Elements of shared memory that the call of one value, or of `count` lanes, works in."""
        if not self.threads:
            return 0
        roles = set(self.threads)
        if roles == {"lane"} and "shared" not in self.threads.values():
            return 0
        box, axes = self.box(roles)
        if "shared" in self.threads.values():
            return prod(box)
        return reduce_lanes_scratch_elements(box, axes, count) if count else reduce_scratch_elements(box, axes, self.first)

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
        old = self.scratch.get(self.key)
        name = old.name if old else self.scratch.take(self.low.taken)
        self.scratch[self.key] = Store(name, self.wide, (max(elements, old.shape[0] if old else 0),), "shared")
        return name
