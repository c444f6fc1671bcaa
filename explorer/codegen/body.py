"""From the loop tree to blocks of text: loops, guards and barriers in their places.

A guard moves outwards as long as every leaf below shares it and its variables exist: out of a loop it does not
mention, into the bounds of a loop it is linear in.

Barriers were placed for loops that run their whole box in every thread.  So a guard that depends on a thread never
moves over one, and a guard that is equal for all threads only where no conflict can lose its barrier: as the bounds of
a loop that still runs at least once (the iterations that run are consecutive), or around everything the kernel does.
Commits and waits are counted, so a guard on a loop's variable does not move over those in its body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..errors import IllegalSchedule
from ..ir.expr import Expr, const
from ..ir.plan import Buffer, Plan
from ..ir.tree import Kernel, Leaf, Loop, Node, Sync, leaves
from . import async_copy, collective, vector
from .access import access_text, reader, stored_value, value_of
from .batch import unrolled
from .bounds import bounds, extreme_text, is_linear
from .copied import copied
from .early import early
from .guards import NEVER, Condition, guard_text
from .index import INT_MAX, is_wide, to_c
from .item import BARRIER, Item, mentions
from .lower import Lowered, Site
from .overrun import Overrun
from .printer import Block, Lines, Out, tagged
from .scalar import PRIMARY, update_text
from .scalar import type_of as scalar_type
from .shorten import shortened

FIRST_ASYNC_COPY = 80
"""Compute capability, times ten, of the first GPUs with cp.async (PTX ISA, "cp.async": sm_80)."""


class Builder:
    """Turns the body of one kernel into text.

    Parameters
    ----------
    low : Lowered
    barriers : callable
        ``(plan, kernel)`` to an object whose ``before`` says where barriers stand: before the child of a parent, by
        index; its ``races`` are conflicts that none can order.
    arch : str
    scratch : Scratch, optional
        Shared arrays that reductions of the launch's earlier phases work in; added to.
    """

    def __init__(self, low: Lowered, barriers: Callable[[Plan, Kernel], Any], arch: str = "sm_90",
                 scratch: collective.Scratch | None = None) -> None:
        self.low = low
        self.asynchronous = int(re.sub(r"\D", "", arch) or 0) >= FIRST_ASYNC_COPY
        self.sites = {leaf.id: self.site(leaf, above) for leaf, above in leaves(low.kernel.body)}
        self.overrun = Overrun(low, self.sites)
        self.before = self.positions(barriers)
        self.register_loops = self._register_loops()
        self.library: set[str] = set()
        self.aligned: set[str] = set()
        self.scratch = collective.Scratch() if scratch is None else scratch

    def site(self, leaf: Leaf, above: tuple[Loop, ...]) -> Site:
        """A leaf over C variables, with the first lane's conditions where they are those of all lanes."""
        each = self.low.site(leaf, above, first_lane=False)
        lanes = {self.low.variable[loop.id] for loop in above if loop.role == "vector"}
        return each if any(c.variables() & lanes for c in each.conditions) else self.low.site(leaf, above)

    def limited(self) -> frozenset[str]:
        """Variables of guards that hold in some iterations of an unrolled loop, whatever these variables are."""
        found: set[str] = set()
        for s in self.sites.values():
            names = {self.low.variable[x.id] for x in s.loops if unrolled(self, x)}
            found |= {name for c in s.conditions if not c.equality and c.variables() & names for name in c.variables()}
        return frozenset(found)

    def positions(self, barriers: Callable[[Plan, Kernel], Any]) -> frozenset[tuple[str, int]]:
        """Where barriers stand, leaves that overrun included."""
        plan, kernel = self.low.plan, self.low.kernel
        unsure = self.overrun.unsure()
        if not unsure:
            return self.without_races(barriers(plan, kernel))
        found = barriers(self.overrun.relaxed(unsure), kernel)
        if not found.races:
            return frozenset(found.before)
        self.overrun.refuse(unsure)
        return self.without_races(barriers(plan, kernel))

    def without_races(self, found: Any) -> frozenset[tuple[str, int]]:
        """The barriers' places; a race that none of them can order is no kernel."""
        for race in found.races:
            raise IllegalSchedule(race.what, where=race.where, why=race.why, hint="; or ".join(race.hints), finding=race)
        return frozenset(found.before)

    def _register_loops(self) -> frozenset[str]:
        """Loops whose variables index a register array: they are unrolled, so that the array stays in registers."""
        found: set[str] = set()
        for leaf, _ in leaves(self.low.kernel.body):
            for slot, view in leaf.views:
                if self.low.store(leaf, slot).space == "register":
                    found |= {name for e in view.index for name in e.variables()}
        return frozenset(found)

    # -- bodies -------------------------------------------------------------------------------------------------

    def kernel(self) -> tuple[Out, ...]:
        """The whole kernel's body."""
        return self.grouped(self.items(self.low.kernel.id, self.low.kernel.body, ()))

    def items(self, parent: str, nodes: Sequence[Node], above: tuple[Loop, ...]) -> list[Item]:
        """The pieces of one body, in order, with its declarations and barriers; place loops dissolve into it."""
        scope = "" if parent == self.low.kernel.id else parent
        out = [self.declaration(b) for b in self.low.plan.buffers if b.scope == scope]
        out = [item for item in out if item is not None]
        for position, node in enumerate(nodes):
            if (parent, position) in self.before:
                out.append(BARRIER)
            out += self.node(node, above)
        if (parent, len(nodes)) in self.before:
            out.append(BARRIER)
        return self.initialised(out)

    def initialised(self, items: list[Item]) -> list[Item]:
        """Scalars declared where they are first written: ``float total = 0.0f;``."""
        for declared in [i for i in items if isinstance(i.out, Lines) and i.name]:
            line = declared.out.lines[0] if isinstance(declared.out, Lines) else ""
            name = declared.name
            user = next((n for n, i in enumerate(items) if i is not declared and mentions(i, name)), None)
            if user is None:
                continue
            first = items[user]
            if first.guards or first.render or not isinstance(first.out, Lines) or len(first.out.lines) != 1:
                continue
            text = first.out.lines[0]
            if text.startswith(f"{name} = ") and name not in re.findall(r"\w+", text.split("//")[0])[1:]:
                items[user] = replace(first, out=replace(first.out, lines=(f"{line.removesuffix(f'{name};')}{text}",)))
                items.remove(declared)
        return items

    def node(self, node: Node, above: tuple[Loop, ...]) -> list[Item]:
        """The pieces that one node becomes; places and loops of one iteration dissolve into the body around them."""
        if isinstance(node, Leaf):
            return self.leaf(node)
        if isinstance(node, Sync):
            if not self.asynchronous:
                return []
            text = f"{async_copy.sync_text(node, self.library)}  // {node.id}"
            return [Item(Lines((text,), (node.id,)), barrier=True, neutral=True, counted=True)]
        if node.extent <= 0:
            return []
        if not self.low.is_counter(node):
            inner = self.items(node.id, node.body, (*above, node))
            return [replace(item, out=tagged(item.out, node.id)) for item in inner]
        if node.role == "vector":
            return self.vector_loop(node, above)
        return self.loop(node, above)

    def declaration(self, buffer: Buffer) -> Item | None:
        """A register array, declared in the body it lives in."""
        store = self.low.stores.get(("buffer", buffer.name))
        if store is None or store.space != "register":
            return None
        shape = "".join(f"[{n}]" for n in store.shape)
        self.library |= {"sums"} if store.method else set()
        return Item(Lines((f"{store.cuda} {store.name}{shape};",)), neutral=True, name="" if shape else store.name)

    # -- loops --------------------------------------------------------------------------------------------------

    def loop(self, loop: Loop, above: tuple[Loop, ...]) -> list[Item]:
        """A sequential loop: the guards that all its leaves share become its bounds or move out of it."""
        name = self.low.variable[loop.id]
        if together := self.lanes_collected(loop):
            return together
        if unrolled(self, loop) and (batch := early(self, loop) or copied(self, loop)):
            return batch
        items = self.items(loop.id, loop.body, (*above, loop))
        if all(item.neutral for item in items) and not any(item.barrier or item.counted for item in items):
            return []
        shared = self.shared(items, name)
        outer = tuple(c for c in shared if name not in c.variables())
        limits = () if unrolled(self, loop) else tuple(c for c in shared if is_linear(c, name))
        if any(item.barrier for item in items):
            whole = self.holds_all(loop)
            outer = tuple(c for c in outer if whole and self.ends_well(c, above))
            limits = limits if whole or self.runs(loop, name, limits, self.low.ranges(above, boxes=False)) else ()
        taken = {*outer, *limits}
        items = [i if i.neutral else replace(i, guards=tuple(c for c in i.guards if c not in taken)) for i in items]
        ranges = self.low.ranges((*above, loop), boxes=False)
        header = self.header(loop, name, limits, self.low.ranges(above, boxes=False))
        before = ("#pragma unroll",) if unrolled(self, loop) else ()
        block = Block(header, self.grouped(items), (loop.id,), before, loop.id)
        return [Item(block, outer, ranges, any(i.barrier for i in items), all(i.neutral for i in items))]

    def holds_all(self, loop: Loop) -> bool:
        """Whether the kernel does nothing outside the loop."""
        return self.sites.keys() == {leaf.id for leaf, _ in leaves((loop,))}

    def ends_well(self, c: Condition, above: Sequence[Loop]) -> bool:
        """Whether a guard that moves further out will become bounds of a loop, or stand around the whole kernel."""
        inner = next((x for x in reversed(above) if self.low.is_counter(x) and self.low.variable[x.id] in c.variables()), None)
        if inner is None:
            return True
        return is_linear(c, self.low.variable[inner.id]) and inner.role == "seq" and inner.id not in self.register_loops

    def runs(self, loop: Loop, name: str, limits: Sequence[Condition], ranges: dict[str, tuple[int, int]]) -> bool:
        """Whether the loop surely runs at least once within these bounds."""
        lowers, uppers = bounds(limits, name)
        box = const(loop.start), const(loop.start + loop.extent)
        return all((u - lo).interval(ranges)[0] >= 1 for lo in (box[0], *lowers) for u in (box[1], *uppers))

    def header(self, loop: Loop, name: str, limits: Sequence[Condition], ranges: dict[str, tuple[int, int]]) -> str:
        """``for (int k = 0; k < min(4, 7 - j); ++k)``."""
        lowers, uppers = bounds(limits, name)
        wide = loop.start + loop.extent > INT_MAX
        mixed = wide or any(is_wide(e, ranges) for e in (*lowers, *uppers))
        first = extreme_text("max", loop.start, lowers, ranges, mixed)
        end = extreme_text("min", loop.start + loop.extent, uppers, ranges, mixed)
        test = f"{name} < {end}"
        last = next((to_c(e - 1, ranges)[0] for e in uppers if e.const == 1 and end == to_c(e, ranges)[0]), "")
        if last:
            test = f"{name} <= {last}"
        return f"for ({'long long' if wide else 'int'} {name} = {first}; {test}; ++{name})"

    def uniform(self, c: Condition) -> bool:
        """Whether all threads of a block agree on the condition."""
        return not (c.variables() & self.low.thread_variables)

    def shared(self, items: Sequence[Item], name: str) -> tuple[Condition, ...]:
        """The guards that every piece wants and that may stand around all of them."""
        wanting = [item for item in items if not item.neutral]
        if not wanting:
            return ()
        common = [c for c in wanting[0].guards if all(c in item.guards for item in wanting[1:])]
        if any(item.barrier for item in items):
            common = [c for c in common if self.uniform(c)]
        if any(item.counted for item in items):
            common = [c for c in common if self.uniform(c) and name not in c.variables()]
        return tuple(common)

    def grouped(self, items: Sequence[Item]) -> tuple[Out, ...]:
        """The texts of the pieces; neighbours that share guards stand under one ``if``."""
        out: list[Out] = []
        position = 0
        while position < len(items):
            item, end = items[position], position + 1
            if item.render or not item.guards:
                out.append(item.render(item.guards) if item.render else item.out)
                position = end
                continue
            common = item.guards
            while end < len(items) and not items[end].render and (both := tuple(c for c in common if c in items[end].guards)):
                common, end = both, end + 1
            group = [replace(i, guards=tuple(c for c in i.guards if c not in common)) for i in items[position:end]]
            ranges = {k: v for i in group for k, v in (i.ranges or {}).items()}
            out.append(self.guarded(common, ranges, self.grouped(group)))
            position = end
        return tuple(out)

    def guarded(self, guards: tuple[Condition, ...], ranges: dict, body: Sequence[Out]) -> Out:
        """``if (guards) { body }``."""
        ids = tuple(dict.fromkeys(i for o in body for i in o.ids)) if len(body) == 1 else ()
        return Block(f"if ({guard_text(guards, ranges)})", tuple(body), ids)

    # -- leaves -------------------------------------------------------------------------------------------------

    def leaf(self, leaf: Leaf) -> list[Item]:
        """The piece of one leaf; none if it never runs."""
        site = self.sites[leaf.id]
        if site.conditions == (NEVER,):
            return []
        if leaf.collect:
            return self.collected(site)
        if leaf.mechanism == "async" and self.asynchronous and async_copy.possible(self.low, site):
            lines = async_copy.lines(self.low, site, 1, self.library)
        else:
            lines = self.plain(site)
        return [self.piece(site, shortened(self.low, site, lines))]

    def piece(self, site: Site, lines: Sequence[str]) -> Item:
        """The item of one leaf's text: guards that may be overrun are left out."""
        return Item(Lines(tuple(lines), (site.leaf.id,)), self.overrun.kept(site), dict(site.around))

    def plain(self, site: Site, element: Callable[[int], str] | None = None, target: str | None = None) -> list[str]:
        """The statement itself; `element` and `target` replace the text of its accesses (in vector lanes)."""
        low, statement = self.low, site.statement
        slot = len(statement.reads)
        target = target or access_text(low, site, slot)
        if statement.update:
            value = value_of(low, site, statement.value, reader(low, site, element))
            kind = scalar_type(statement.value, low.dtypes(site))
            text = update_text(statement.update, target, value, low.store(site.leaf, slot).dtype, kind)
        else:
            text = f"{target} = {stored_value(low, site, element)[0]};"
        return [f"{text}  // {site.leaf.id}"]

    def vector_loop(self, loop: Loop, above: tuple[Loop, ...]) -> list[Item]:
        """The lanes of a vector loop, under the first lane's guard; lane by lane where guards differ or a loop is inside."""
        if any(isinstance(node, Loop) for node in loop.body):
            return self.loop(replace(loop, role="unroll"), above)
        sites = [s for node in loop.body if isinstance(node, Leaf) and (s := self.sites[node.id]).conditions != (NEVER,)]
        if not sites:
            return []
        kept = {self.overrun.kept(site) for site in sites}
        if len(kept) > 1 or any(site.leaf.collect or self.low.keeps_more(site) for site in sites):
            return self.loop(replace(loop, role="unroll"), above)
        guards, each = kept.pop(), ()
        if any(self.low.variable[loop.id] in c.variables() for c in guards):
            if len(sites) > 1 or (apart := vector.partial(self.low, sites[0], loop)) is None:
                return self.loop(replace(loop, role="unroll"), above)
            guards, each = apart.some, apart.each
        ranges = {k: v for s in sites for k, v in s.around.items()}
        lanes = vector.Lanes(self.low, loop, sites, self.library, self.aligned, self.asynchronous)
        return [Item(out, guards, ranges) for out in lanes.text(self.plain, lambda body: self.with_registers(loop, body), each)]

    def with_registers(self, loop: Loop, body: Sequence[Out]) -> list[Out]:
        """One lane's text behind the declarations of the registers that belong to a lane."""
        declared = [self.declaration(b) for b in self.low.plan.buffers if b.scope == loop.id]
        return [item.out for item in self.initialised([*(d for d in declared if d), *map(Item, body)])]

    def collected(self, site: Site) -> list[Item]:
        """An update whose values are combined across threads or blocks."""
        collect = collective.Collective(self.low, site, self.library, self.scratch, not self.spread(site))
        if not collect.threads and not collect.blocks:
            return [self.piece(site, collect.alone())]
        collect.claim(collect.scratch_elements())

        def render(guards: tuple[Condition, ...]) -> Out:
            return Lines(tuple(collect.together(site.conditions if collect.blocks else guards)), (site.leaf.id, *places))

        places = [loop.id for loop in site.loops if not self.low.is_counter(loop)]
        placeholder = Lines((collect.value[0], collect.lvalue))
        guards = () if collect.blocks else site.conditions  # that a block does not contribute is nothing to the others
        return [Item(placeholder, guards, dict(site.around), barrier=True, render=render)]

    def spread(self, site: Site) -> bool:
        """Whether other threads than the first of a group need what is combined: it is in registers, and they read it."""
        slot = len(site.statement.reads)
        view = site.leaf.view(slot)
        if view is None or self.low.store(site.leaf, slot).space != "register":
            return False
        loops = {loop.id: loop for loop in site.loops}
        places = [loops[name].role for name, _ in site.leaf.collect if name in loops and loops[name].is_thread]
        first = {Condition(Expr(((self.low.role_name[role], 1),)), True) for role in places}
        readers = [s for s in self.sites.values() if s is not site and any(
            v.buffer == view.buffer and n % len(s.statement.accesses) < len(s.statement.reads) for n, v in s.leaf.views)]
        return any(not first <= set(self.overrun.kept(reader)) for reader in readers)

    def lanes_collected(self, loop: Loop) -> list[Item]:
        """An unrolled loop over nothing but an update that threads combine: one call for all its iterations."""
        node: Node = loop
        while isinstance(node, Loop) and len(node.body) == 1 and (node is loop or node.is_place):
            node = node.body[0]
        written_out = loop.role == "vector" or unrolled(self, loop)
        if not isinstance(node, Leaf) or not node.collect or not written_out or loop.start or loop.extent < 2:
            return []
        site = self.sites[node.id]
        collect = collective.Collective(self.low, site, self.library, self.scratch, not self.spread(site))
        if site.conditions == (NEVER,) or not collect.takes_lanes():
            return []
        collect.claim(collect.scratch_elements(loop.extent), loop.id)
        name, values = self.low.variable[loop.id], self.low.taken.take(f"{collect.target.name}_{collect.update}")
        ids = (loop.id, site.leaf.id, *(x.id for x in site.loops if not self.low.is_counter(x)))

        def every(text: str) -> Out:
            header = f"for (int {name} = 0; {name} < {loop.extent}; ++{name})"
            return Block(header, (Lines((f"{text}  // {site.leaf.id}",), (site.leaf.id,)),), ids, ("#pragma unroll",), loop.id)

        mine = f"{values}[{name}]"
        around = dict(site.around)
        return [
            Item(Lines((f"{collect.wide.cuda} {values}[{loop.extent}];",), ids), neutral=True),
            Item(every(collect.value[0]), site.conditions, around,
                 render=lambda guards: every(f"{mine} = {collect.contribution(guards)[0]};")),
            Item(Lines((*collect.before(), collect.call_lanes(values, loop.extent)), ids), barrier=True,
                 neutral=True),
            Item(every(collect.lvalue), site.conditions, around, barrier=True,
                 render=lambda guards: every(collect.written((mine, PRIMARY), guards))),
        ]
