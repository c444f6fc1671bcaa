"""How values of threads and blocks are combined: which function of the device library, in which shared array.

Before::

    collect acc += x           # over thread.x by shuffles

After::

    sum = block_reduce<reduce_sum, 64, 1, 1, true, false, false>(x, scratch);
    acc += sum;

An unrolled loop over nothing but such an update is one call for all of its iterations.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...ir.expr import Expr, var
from ...ir.tree import WARP_SIZE
from ..conditions import Condition
from ..device import reduce_lanes_scratch_elements, reduce_scratch_elements
from ..lower import Context
from ..nodes import Apply, Collect, Combine, Contribute, Declare, Do, For, Held, If, Local, Node, Way
from ..scratch import OWN, Scratch
from ..sites import Site, Store
from ..traverse import map_bodies


def collectives(body: tuple[Node, ...], context: Context) -> tuple[Node, ...]:
    """The body with every collective's way decided, in the order of the text."""
    out: list[Node] = []
    for node in body:
        if isinstance(node, For) and (lanes := _lanes(node, context)):
            out += lanes
        elif isinstance(node, Collect):
            out.append(_one(node, context))
        else:
            out.append(map_bodies(node, lambda inner: collectives(inner, context)))
    return tuple(out)


class Ways:
    """What a leaf asks to be combined, and by what.

    Parameters
    ----------
    context : Context
    site : Site
        A leaf with `collect`.
    """

    def __init__(self, context: Context, site: Site) -> None:
        self.context, self.low, self.site = context, context.low, site
        loops = {loop.id: loop for loop in site.loops}
        ways = [(loops[loop_id], how) for loop_id, how in site.leaf.collect if loop_id in loops]
        self.threads = {loop.role: how for loop, how in ways if loop.is_thread and how != "atomic"}
        self.blocks = tuple(loop.role for loop, how in ways if how == "cluster")
        self.atomic = any(how == "atomic" for _, how in ways)
        self.first = not _spread(context, site)
        self.wide = self.low.store(site.leaf, len(site.statement.reads)).dtype.wide

    @property
    def takes_lanes(self) -> bool:
        """Whether the values of all lanes of a loop can be combined by one call."""
        alone = bool(self.threads) and not self.blocks
        return alone and set(self.threads.values()) == {"shuffle"} and set(self.threads) != {"lane"}

    @property
    def in_a_warp(self) -> bool:
        """Whether only the lanes of each warp combine, by shuffles."""
        return set(self.threads) == {"lane"} and "shared" not in self.threads.values()

    def elements(self, count: int = 0) -> int:
        """Elements of shared memory that the call of one value, or of `count` lanes, works in."""
        if not self.threads or self.in_a_warp:
            return 0
        box, axes = self.box()
        if "shared" in self.threads.values():
            return prod(box)
        return reduce_lanes_scratch_elements(box, axes, count) if count else reduce_scratch_elements(box, axes, self.first)

    def way(self, count: int = 0, together: str = "") -> tuple[Way, bool]:
        """The call, and whether its scratch array has been used before.

        To be asked in the order of the text; `together` is a loop all of whose iterations are one call.
        """
        elements, scratch = self.elements(count), self.context.scratch
        again = any(self.low.is_counter(loop) and loop.extent > 1 for loop in self.site.loops if loop.id != together)
        key = f"{self.wide.name} of {self.site.leaf.id}" if elements <= OWN and not again else self.wide.name
        waits = elements > 0 and (not scratch.use(key) or again)
        way = self._call(count)
        if elements:
            way = replace(way, scratch=self._take(scratch, key, elements))
        blocks = prod(self.low.plan.clusters[self.low.kernel.id])
        if self.blocks and blocks > 1:
            wanted = tuple(Condition(Expr(((self.low.role_name[role], 1),)), True) for role in sorted(self.threads))
            way = replace(way, blocks=blocks, slots=self._slots(scratch), wanted=wanted)
        return way, waits

    def _call(self, count: int) -> Way:
        if not self.threads:
            return Way()
        if self.in_a_warp:
            return Way("warp_reduce")
        box, axes = self.box()
        if count:
            return Way("block_reduce_lanes_first" if self.first else "block_reduce_lanes", box, axes)
        if "shared" in self.threads.values():
            return Way("block_reduce_shared", box, axes)
        return Way("block_reduce_first" if self.first else "block_reduce", box, axes)

    def _take(self, scratch: Scratch, key: str, elements: int) -> str:
        old = scratch.get(key)
        name = old.name if old else scratch.take(self.low.taken)
        scratch[key] = Store(name, self.wide, (max(elements, old.shape[0] if old else 0),), "shared")
        return name

    def _slots(self, scratch: Scratch) -> str:
        key = f"{self.wide.name} of a cluster"
        name = scratch[key].name if key in scratch else self.low.taken.take("slots")
        scratch[key] = Store(name, self.wide, (prod(self.low.block),), "shared")
        return name

    def box(self) -> tuple[tuple[int, int, int], str]:
        """The block as a box of threads, and the letters of its axes that are combined."""
        roles = set(self.threads)
        if roles & {"warp", "lane"} == {"warp", "lane"}:
            roles = roles - {"warp", "lane"} | {"thread.x"}
        x, y, z = self.low.block
        if not roles & {"warp", "lane"}:
            return (x, y, z), "".join(sorted(role[-1] for role in roles))
        assert y * z == 1, "judged: warps or lanes alone are combined in blocks with one dimension"
        axis = {"lane": "x", "warp": "y"}  # an axis of the block has one thread here
        return (WARP_SIZE, -(-x // WARP_SIZE), 1), "".join(sorted(axis[role] for role in roles & axis.keys()))


def _one(node: Collect, context: Context) -> Node:
    """A collective of one value; an ordinary update where nothing is combined between threads."""
    ways, site = Ways(context, node.site), node.site
    if not ways.threads and not ways.blocks:
        guards = context.redundant.kept(site)
        do = Do(site, node.target, node.operands, atomic=ways.atomic, ids=(site.leaf.id,))
        return If(guards, (do,)) if guards else do
    way, waits = ways.way()
    result = context.low.taken.take(f"{node.target.store.name}_{site.statement.update}")
    return replace(node, way=way, first_waits=waits, result=result, atomic=ways.atomic, of_cluster=bool(ways.blocks))


def _lanes(loop: For, context: Context) -> list[Node]:
    """One call for all iterations of an unrolled loop; none where it holds anything else."""
    if loop.role not in ("vector", "unroll") or loop.start or loop.extent < 2 or len(loop.body) != 1:
        return []
    node = loop.body[0]
    if not isinstance(node, Collect):
        return []
    ways, site = Ways(context, node.site), node.site
    if not ways.takes_lanes:
        return []
    way, waits = ways.way(loop.extent, loop.loop.id)
    update = site.statement.update or "sum"
    name = context.low.taken.take(f"{node.target.store.name}_{update}")
    local, ids = Local(name, ways.wide, (loop.extent,), wide=True), (loop.loop.id, *node.ids)
    mine, inner = Held(local, (var(loop.var),)), (site.leaf.id,)

    def every(statement: Node) -> Node:
        return replace(loop, body=(statement,), role="unroll", settled=True, ids=ids)

    return [
        Declare(local, ids),
        every(Contribute(mine, site, node.operands, node.guards, inner)),
        Combine(local, loop.extent, way, update, waits, ids),
        every(Apply(site, node.target, mine, way, node.guards, ways.atomic, inner)),
    ]


def _spread(context: Context, site: Site) -> bool:
    """Whether other threads than the first of a group need what is combined: it is in registers, and they read it."""
    low, slot = context.low, len(site.statement.reads)
    view = site.leaf.view(slot)
    if view is None or low.store(site.leaf, slot).space != "register":
        return False
    loops = {loop.id: loop for loop in site.loops}
    places = [loops[name].role for name, _ in site.leaf.collect if name in loops and loops[name].is_thread]
    first = {Condition(Expr(((low.role_name[role], 1),)), True) for role in places}
    readers = [s for s in context.sites.values() if s is not site and any(
        v.buffer == view.buffer and n % len(s.statement.accesses) < len(s.statement.reads) for n, v in s.leaf.views)]
    return any(not first <= set(context.redundant.kept(reader)) for reader in readers)
