"""One kernel in C terms: a name for every variable and array, the role variables, storage and the leaves' accesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from ..ir.dtype import DType
from ..ir.expr import Expr, Places, Ranges, const, rejoin, var
from ..ir.plan import Buffer, Plan
from ..ir.program import Access, Array, Constraint, Indirect, Statement
from ..ir.regroup import extract_sums
from ..ir.rounding import SUMS
from ..ir.tree import BLOCK_ROLES, WARP_SIZE, Kernel, Leaf, Loop, leaves, walk
from ..ir.tree import ranges as loop_ranges
from ..poly.early_end import end_of
from .cluster_layout import Slots, slots_of
from .conditions import Condition, condition, conjunction
from .index import linear, rename
from .names import Names

_SHORT = {**{f"block.{a}": f"b{a}" for a in "xyz"}, **{f"thread.{a}": f"t{a}" for a in "xyz"}, "warp": "warp", "lane": "lane"}
_BUILTIN = {
    **{f"block.{a}": f"blockIdx.{a}" for a in "xyz"}, **{f"thread.{a}": f"threadIdx.{a}" for a in "xyz"},
    "warp": f"threadIdx.x / {WARP_SIZE}", "lane": f"threadIdx.x % {WARP_SIZE}",
}


@dataclass(frozen=True)
class Store:
    """Storage that an access uses.

    Attributes
    ----------
    name : str
        C identifier.
    dtype : DType
    shape : tuple of int
        Declared extents, padding included.
    space : str
        ``"global"``, ``"shared"`` or ``"register"``.
    buffer : Buffer or None
    array : Array or None
        One of the two is set.
    method : str
        How a register's terms are added: one of :data:`~explorer.ir.rounding.SUMS`, or nothing.
    terms : int
        At most so many.
    handed_off : bool
        Whether its elements are handed from block to block, each in one word with its flag (``handoff.cuh``).
    slots, slots_name : Slots or None, and str
        Where its elements lie in the shared memory of one block of a cluster (``cluster_parts.cuh``), and that array.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    space: str
    buffer: Buffer | None = None
    array: Array | None = None
    method: str = ""
    terms: int = 0
    handed_off: bool = False
    slots: Slots | None = None
    slots_name: str = ""

    @property
    def handed(self) -> bool:
        """Whether its elements go from block to block, not through global memory as they are."""
        return self.handed_off or self.slots is not None

    @property
    def placed(self) -> Buffer | None:
        """The buffer, where its elements lie in panels or swizzled: the text has one dimension for it, and computes the place."""
        return self.buffer if self.buffer and self.buffer.is_placed else None

    @property
    def declared(self) -> tuple[int, ...]:
        """Extents in the text."""
        return (prod(self.shape),) if self.placed else self.shape

    @property
    def cuda(self) -> str:
        """The type of an element as it is declared."""
        if self.method == "pairwise":
            return f"pairwise_sum<{self.dtype.cuda}, {max(self.terms.bit_length(), 1)}>"
        return f"kahan_sum<{self.dtype.cuda}>" if self.method == "kahan" else self.dtype.cuda


@dataclass(frozen=True)
class Site:
    """A leaf with everything over C variables.

    Attributes
    ----------
    leaf, statement
    loops : tuple of Loop
        Enclosing loops, outermost first.
    at : mapping of str to Expr
        Statement dimensions.
    ranges : Ranges
        Intervals of the C variables here.
    around : Ranges
        The same without the guards on places: what is known where a guard is tested.
    conditions : tuple of Condition
        When the leaf runs.
    named : tuple of (Condition, Constraint)
        Those of them that are constraints of the statement's domain.
    """

    leaf: Leaf
    statement: Statement
    loops: tuple[Loop, ...]
    at: dict[str, Expr]
    ranges: Ranges
    around: Ranges
    conditions: tuple[Condition, ...]
    named: tuple[tuple[Condition, Constraint], ...] = ()


def _used(plan: Plan, kernel: Kernel) -> frozenset[tuple[str, str]]:
    """The storage that a kernel's leaves use: ``("array", name)`` or ``("buffer", name)``."""
    used: set[tuple[str, str]] = set()
    for leaf, _ in leaves(kernel.body):
        for slot, access in enumerate(plan.statement_of[leaf.statement].accesses):
            view = leaf.view(slot)
            used.add(("buffer", view.buffer) if view else ("array", access.array))
    return frozenset(used)


def declared_for(plan: Plan, store: Store) -> tuple[str, ...]:
    """What the line that declares it belongs to: its buffer, where no copy into it is a node of that name."""
    name = store.buffer.name if store.buffer else ""
    return (name,) if name and all(leaf.id != name for leaf, _, _ in plan.leaves) else ()


def stores_of(plan: Plan, kernels: Sequence[Kernel]) -> dict[tuple[str, str], Store]:
    """The storage that the kernels of one launch use, by ``("array", name)`` or ``("buffer", name)``, in order of declaration."""
    used, names = frozenset[tuple[str, str]]().union(*(_used(plan, k) for k in kernels)), Names()
    out: dict[tuple[str, str], Store] = {}
    for name, array in plan.array_of.items():
        if ("array", name) in used:
            out["array", name] = Store(names.take(name), array.dtype, array.stored, "global", array=array,
                                       handed_off=("array", name) in plan.handed_off)
    for name, buffer in plan.buffer_of.items():
        if ("buffer", name) in used:
            out["buffer", name] = Store(names.take(name), buffer.dtype, buffer.padded_shape, buffer.space, buffer=buffer,
                                        handed_off=("buffer", name) in plan.handed_off, **_summed(plan, buffer))
    for key, slots in slots_of(plan, kernels).items():
        out[key] = replace(out[key], slots=slots, slots_name=names.take(f"{out[key].name}_slots"))
    return out


def _summed(plan: Plan, buffer: Buffer) -> dict[str, Any]:
    """How the terms of a buffer are added, and how many there are at most."""
    for leaf, above, _ in plan.leaves:
        view = leaf.view(len(plan.statement_of[leaf.statement].reads))
        if leaf.mechanism in SUMS and view is not None and view.buffer == buffer.name:
            return {"method": leaf.mechanism, "terms": prod(x.extent for x in above if not x.is_place)}
    return {}


class Lowered:
    """A kernel's names, extents and stores, from which its text is written.

    Parameters
    ----------
    plan : Plan
    kernel : Kernel
    stores : mapping of (str, str) to Store, optional
        Those of the whole launch, where the kernel is one of its phases.
    """

    def __init__(self, plan: Plan, kernel: Kernel, stores: Mapping[tuple[str, str], Store] | None = None) -> None:
        self.plan, self.kernel = plan, kernel
        self.indices: dict[tuple[str, int, tuple[str, ...]], tuple[Expr | Indirect, ...]] = {}
        extents = plan.extents[kernel.id]
        self.grid, self.block = extents[:3], extents[3:]
        self.loops = tuple(n for n in walk(kernel.body) if isinstance(n, Loop))
        known = stores_of(plan, (kernel,)) if stores is None else stores
        self.taken = Names()
        self.taken.taken |= {name for s in known.values() for name in (s.name, s.slots_name) if name}
        used = _used(plan, kernel)
        self.stores = {key: s for key, s in known.items() if key in used}
        self.launch_loops = tuple(loop for loop in self.loops if loop.role == "launch")
        present = {loop.role for loop in self.loops}
        bound = [role for role in _SHORT if role in present]
        self.role_name = {role: self.taken.take(self._wanted(role)) for role in bound}
        sequential = {loop.id: self.taken.take(loop.id) for loop in self.loops if not loop.is_place}
        self.role_name |= {role: self.taken.take(_SHORT[role]) for role in _SHORT if role not in bound}
        self.variable = {**{loop.id: self.role_name[loop.role] for loop in self.loops if loop.is_place}, **sequential}
        self.thread_variables = frozenset(name for role, name in self.role_name.items() if role not in BLOCK_ROLES)

    def _wanted(self, role: str) -> str:
        loops = [loop.id for loop in self.loops if loop.role == role]
        return loops[0] if len(loops) == 1 else _SHORT[role]

    @staticmethod
    def is_counter(loop: Loop) -> bool:
        """Whether the loop is a loop of the text: places, the host's loops and loops of one iteration are not."""
        return not loop.is_place and loop.role != "launch" and loop.extent != 1

    def in_c(self, expr: Expr, loops: Sequence[Loop]) -> Expr:
        """An expression of loop variables over C variables; a loop of one iteration is its start."""
        used = expr.variables()
        single = {x.id: const(x.start) for x in loops if x.id in used and x.extent == 1 and x.role != "launch"
                  and (not x.is_place or self.role_extents[x.role] == 1)}
        expr = expr.substitute(single, loop_ranges(tuple(loops))) if single else expr
        return rename(expr, {x.id: self.variable[x.id] for x in loops})

    # -- storage ------------------------------------------------------------------------------------------------

    @cached_property
    def written(self) -> Counter[tuple[str, str]]:
        """Stores that the kernel writes, and how many leaves write each."""
        return Counter(self.key(leaf, len(self.plan.statement_of[leaf.statement].reads)) for leaf, _ in leaves(self.kernel.body))

    @cached_property
    def read(self) -> frozenset[tuple[str, str]]:
        """Stores that the kernel reads, or updates."""
        out: set[tuple[str, str]] = set()
        for leaf, _ in leaves(self.kernel.body):
            statement = self.plan.statement_of[leaf.statement]
            out |= {self.key(leaf, slot) for slot in range(len(statement.reads) + bool(statement.update))}
        return frozenset(out)

    def key(self, leaf: Leaf, slot: int) -> tuple[str, str]:
        """The store of one access of a leaf, in :attr:`stores`."""
        view = leaf.view(slot)
        return ("buffer", view.buffer) if view else ("array", self.plan.statement_of[leaf.statement].accesses[slot].array)

    def store(self, leaf: Leaf, slot: int) -> Store:
        """The storage of one access of a leaf."""
        return self.stores[self.key(leaf, slot)]

    def keeps_more(self, site: Site) -> bool:
        """Whether the leaf uses what is more than its value: a sum with its error, an element with its mark."""
        return any((s := self.store(site.leaf, slot)).method or s.handed for slot in range(len(site.statement.accesses)))

    # -- leaves -------------------------------------------------------------------------------------------------

    def site(self, leaf: Leaf, loops: tuple[Loop, ...], first_lane: bool = True) -> Site:
        """The leaf over C variables; under a vector loop its conditions are those of the first lane."""
        statement = self.plan.statement_of[leaf.statement]
        at = {dim: self.in_c(e, loops) for dim, e in leaf.at}
        ranges = self.ranges(loops)
        lane = {self.variable[loop.id]: Expr((), loop.start) for loop in loops if loop.role == "vector"} if first_lane else {}
        found: list[Condition | None] = list(self._place_conditions(leaf, statement, loops))
        named: list[tuple[Condition, Constraint]] = []
        for c in statement.domain:
            e = c.expr.substitute(at, ranges)
            found.append(condition(e.substitute(lane, ranges) if lane else e, c.equality, ranges))
            if found[-1] is not None:
                named.append((found[-1], c))
        ends = [c for i, x in enumerate(loops) for c in self.end(x, loops[:i])]
        left = [None if c and any(implied(c, end, ranges) for end in ends) else c for c in found]
        return Site(leaf, statement, loops, at, ranges, self.ranges(loops, boxes=False), conjunction(left), tuple(named))

    def end(self, loop: Loop, above: tuple[Loop, ...]) -> tuple[Condition, ...]:
        """Where a trimmed loop ends, as a condition on its variable."""
        if not loop.trimmed or not self.is_counter(loop):
            return ()
        last = end_of(self.plan, self.kernel, loop)
        if isinstance(last, str):
            return ()
        found = condition(self.in_c(last - var(loop.id), (*above, loop)), False, self.ranges((*above, loop)))
        return (found,) if found else ()

    def _place_conditions(self, leaf: Leaf, statement: Statement, loops: tuple[Loop, ...]) -> Iterator[Condition | None]:
        """Loops smaller than the launch, and missing dimensions of a leaf that is not replicated."""
        size = self.role_extents
        roles = {loop.role for loop in loops}
        for loop in loops:
            if not loop.is_place:
                continue
            launch = {self.role_name[loop.role]: (0, size[loop.role] - 1)}
            v = Expr(((self.role_name[loop.role], 1),))
            yield condition(v - loop.start, False, launch)
            yield condition(-v + (loop.start + loop.extent - 1), False, launch)
        space = self.store(leaf, len(statement.reads)).space
        for role in self.missing_roles(roles):
            if space == "register" or (space == "shared" and role in BLOCK_ROLES):
                continue
            yield Condition(Expr(((self.role_name[role], 1),)), True)

    def ranges(self, loops: Sequence[Loop], boxes: bool = True) -> dict[str, tuple[int, int]]:
        """Intervals of the C variables: the loops', and the whole launch's for every place.

        Without `boxes`, place loops that are narrower than the launch do not count: where a guard is hoisted, the
        places beyond them are still running.
        """
        launch = {self.role_name[role]: (0, n - 1) for role, n in self.role_extents.items()}
        counted = [loop for loop in (*self.launch_loops, *loops) if boxes or not loop.is_place]
        return launch | {self.variable[loop.id]: loop.range for loop in counted}

    @cached_property
    def role_extents(self) -> dict[str, int]:
        """Launch extent of every role (warps and lanes are parts of thread.x)."""
        size = dict(zip(("thread.x", "thread.y", "thread.z"), self.block, strict=True))
        size |= dict(zip(BLOCK_ROLES, self.grid, strict=True))
        return {**size, "warp": -(-size["thread.x"] // WARP_SIZE), "lane": min(WARP_SIZE, size["thread.x"])}

    def missing_roles(self, roles: set[str]) -> tuple[str, ...]:
        """Roles with more than one place in the launch that `roles` do not fix."""
        size = self.role_extents
        out = [r for r in (*BLOCK_ROLES, "thread.y", "thread.z") if size[r] > 1 and r not in roles]
        if "thread.x" not in roles and size["thread.x"] > 1:
            have = roles & {"warp", "lane"}
            out += [r for r in ("warp", "lane") if r not in have and size[r] > 1] if have else ["thread.x"]
        return tuple(out)

    def index(self, site: Site, slot: int, lane: Mapping[str, Expr] | None = None) -> tuple[Expr | Indirect, ...]:
        """Index of one access over C variables: physical cell of a view, else element of the array.

        `lane` replaces a vector loop's variable.
        """
        key = site.leaf.id, slot, tuple(lane) if lane else ()
        if key not in self.indices:
            index = self._index(site, slot)
            if lane:
                index = tuple(e.substitute(lane, site.ranges) if isinstance(e, Expr) else e for e in index)
            self.indices[key] = index
        return self.indices[key]

    def _index(self, site: Site, slot: int) -> tuple[Expr | Indirect, ...]:
        view, slots = site.leaf.view(slot), self.store(site.leaf, slot).slots
        if slots:
            return (self.in_c(slots.at[site.leaf.id, slot], site.loops),)
        if view:
            return tuple(self.in_c(e, site.loops) for e in view.index)
        access: Access = site.statement.accesses[slot]
        whole = Places(site.at, {e: self.in_c(var(loop), site.loops) for loop, e in site.leaf.when
                                 if any(not isinstance(a, str) for a, _ in e.terms)})
        return tuple(e.substitute(whole, site.ranges) if isinstance(e, Expr) else e for e in access.index)

    def other_lane(self, site: Site, slot: int) -> Expr | None:
        """The lane whose register one access reads, over C variables; None for the thread's own."""
        view = site.leaf.view(slot)
        return self.in_c(view.lane, site.loops) if view is not None and view.lane is not None else None

    def offset(self, site: Site, slot: int, lane: Mapping[str, Expr] | None = None) -> Expr | None:
        """Row-major offset of an element of an array, put together before the loops were taken apart; None for a view.

        A coalesced loop over neighbouring axes is one index there, where the indices alone hold its quotients and remainders;
        and so is one whose inner part is a vector's lanes, before one of them is put in.
        """
        access, shape = site.statement.accesses[slot], self.store(site.leaf, slot).shape
        affine = [e for e in access.index if isinstance(e, Expr)]
        placed = site.leaf.view(slot) or self.store(site.leaf, slot).slots
        if placed or not (site.leaf.sums or lane) or len(affine) != len(access.index) or not affine:
            return None
        if site.leaf.sums:
            sums = [(e, self.in_c(value, site.loops)) for e, value in site.leaf.sums]
            rest, whole = extract_sums(linear(affine, shape), sums)
            flat = rejoin(rest.substitute(site.at, site.ranges) + whole)
        else:
            flat = linear([e for e in self.index(site, slot) if isinstance(e, Expr)], shape)
        return flat.substitute(lane, site.ranges) if lane else flat

    def dtypes(self, site: Site) -> tuple[DType, ...]:
        """Types of the statement's reads as stored."""
        return tuple(self.store(site.leaf, slot).dtype for slot in range(len(site.statement.reads)))

    def role_declarations(self, words: Collection[str], uniform: bool = False) -> list[tuple[str, tuple[str, ...]]]:
        """Declarations of the role variables among the `words` of the text, with the ids of their loops.

        `uniform`: the compiler is told which of them are the same in a warp.
        """
        out: list[tuple[str, tuple[str, ...]]] = []
        for role, name in self.role_name.items():
            bound = tuple(dict.fromkeys(loop.id for loop in self.loops if loop.role == role))
            if name in words:
                names = f"{role}: {', '.join(bound)}" if bound else role
                same = uniform and role in ("thread.y", "thread.z") and self.block[0] % WARP_SIZE == 0
                value = f"same_in_warp({_BUILTIN[role]})" if same else _BUILTIN[role]
                out.append((f"const int {name} = {value};  // {names}", bound))
        once = tuple(loop.id for loop in self.loops if loop.extent == 1 and not loop.is_place and loop.role != "launch")
        return [*out, (f"// one iteration: {', '.join(once)}", once)] if once else out


def implied(c: Condition, end: Condition, ranges: Ranges) -> bool:
    """Whether a condition holds wherever a loop's end allows an iteration."""
    return not c.equality and (c.expr - end.expr).interval(ranges)[0] >= 0
