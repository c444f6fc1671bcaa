"""The IR as lines of CUDA C++, each with the plan's nodes that it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatchmethod

from ..ir.expr import Expr, Ranges, const
from ..ir.instructions import Wgmma
from ..ir.swizzle import UNIT
from .box_call import box_call, store_call
from .conditions import Condition, anyone, condition, conjunction
from .copy_call import copy_call
from .device.mma import mma_name
from .device.wgmma import wgmma_name, wgmma_part
from .lines import Block, Lines, Out
from .nodes import (
    Acquire,
    Apply,
    Arrive,
    Await,
    AwaitTurn,
    Barrier,
    Begin,
    BulkCopy,
    BulkStore,
    CloseLog,
    Collect,
    Combine,
    Commit,
    Contribute,
    Copy,
    Declare,
    Do,
    Drain,
    For,
    Get,
    Held,
    If,
    Let,
    Load,
    Mask,
    Mbarriers,
    MoveMatrix,
    Multiply,
    Node,
    OpenLog,
    PassTurn,
    Put,
    Release,
    Stamp,
    Wait,
    WaitProducts,
    WaitStores,
    Way,
)
from .roles import Roles
from .scalar import PRIMARY
from .sites import Lowered
from .spelling import Speller


@dataclass
class Written:
    """The text of a kernel's body, and what it uses."""

    lines: tuple[Out, ...]
    used: frozenset[str]
    library: frozenset[str]
    aligned: dict[str, int]


class BodyPrinter:
    """Writes the nodes of one kernel.

    Parameters
    ----------
    low : Lowered
    """

    def __init__(self, low: Lowered) -> None:
        self.low, self.spell = low, Speller(low)
        self.ranges = dict(low.ranges((), boxes=False))
        self.meet = 0

    def body(self, nodes: Sequence[Node | Roles]) -> tuple[Out, ...]:
        """The nodes in order."""
        return tuple(out for node in nodes for out in self.node(node))

    def written(self, nodes: Sequence[Node | Roles]) -> Written:
        """The whole body."""
        lines = self.body(nodes)
        return Written(lines, frozenset(self.spell.used), frozenset(self.spell.library), self.spell.aligned)

    @singledispatchmethod
    def node(self, node: Node | Roles) -> list[Out]:
        """The text of one node."""
        raise TypeError(f"the printer has no text for a {type(node).__name__} node")

    # -- control ------------------------------------------------------------------------------------------------

    @node.register
    def _(self, node: For) -> list[Out]:
        header = self.spell.header(node, self.ranges)
        self.ranges[node.var] = node.start, node.start + node.extent - 1
        self.spell.unrolled |= {node.var} if node.role == "unroll" else set()
        body = self.body(node.body)
        del self.ranges[node.var]
        self.spell.unrolled.discard(node.var)
        return [Block(header, body, node.ids, ("#pragma unroll",) * (node.role == "unroll"), node.loop.id)]

    @node.register
    def _(self, node: If) -> list[Out]:
        test = self.spell.conditions(node.conditions, self.ranges)
        self.spell.library |= {"pack_registers"} if node.packed else set()
        body = self.body(node.body) + tuple(Lines((f"pack_registers({store.name});",)) for store in node.packed)
        return [Block(f"if ({test})", body, node.ids, otherwise=self.body(node.otherwise))]

    @node.register
    def _(self, node: Roles) -> list[Out]:
        self.spell.library.add("roles")
        given, taken = ((Lines((f"registers_{v}<{n}>();",)),) * (n > 0) for v, n in (("give", node.given), ("take", node.taken)))
        producer: tuple[Out, ...] = (*given, Block("if (threadIdx.x == 0)", self.body(node.producer), comment="one thread of it"))
        self.meet = node.threads
        consumers: tuple[Out, ...] = (*taken, *self.body(node.consumers))
        self.meet = 0
        return [Block(f"if (threadIdx.y == {node.row})", producer, node.ids, comment="the producer", otherwise=consumers)]

    # -- statements ---------------------------------------------------------------------------------------------

    @node.register
    def _(self, node: Declare) -> list[Out]:
        text = f"{self.spell.declare(node.what)} {node.what.name}{self.spell.shape(node.what)};"
        return [Lines((text,), node.ids, declares=True)]

    @node.register
    def _(self, node: Let) -> list[Out]:
        return [Lines((f"const int {node.name} = {self.spell.expr(node.value, node.site.ranges)[0]};",), node.ids, declares=True)]

    @node.register
    def _(self, node: Do) -> list[Out]:
        return [Lines((f"{self.spell.do(node)}  // {node.site.leaf.id}",), node.ids)]

    @node.register
    def _(self, node: Load) -> list[Out]:
        to = self.spell.operand(node.to, node.site)
        if isinstance(node.value, Get):
            value = self.spell.get(node.value, node.site)
        else:
            value = self.spell.operand(node.value, node.site) + (".lanes()" if node.value.local.packed else "")
        kind = f"{'const ' if node.declares == 'const' else ''}{self.spell.declare(node.to.local)} " if node.declares else ""
        return [Lines((f"{kind}{to} = {value};",), node.ids, declares=bool(kind))]

    @node.register
    def _(self, node: Put) -> list[Out]:
        first = self.spell.element(node.to, node.site)
        value, number = node.value, self.spell.number
        kind = self.spell.vector(node.to.store.dtype.cuda, node.to.lanes, isinstance(value, Get) and value.packed)
        if isinstance(value, Held):
            return [Lines((f"*({kind}*)&{first} = {self.spell.operand(value, node.site)};",), node.ids)]
        text = self.spell.get(value, node.site) if isinstance(value, Get) else number(value, node.to.store, node.to.lanes)
        return [Lines((f"*({kind}*)&{first} = {text};  // {', '.join(node.ids[:2])}",), node.ids)]

    @node.register
    def _(self, node: Mask) -> list[Out]:
        site, store = node.site, node.first.store
        self.spell.library.add("vector_within")
        places = [store.name + (f" + {self.spell.expr(e, site.ranges)[0]}" if e != Expr() else "")
                  for e in (node.begin, node.end)]
        first = self.spell.element(node.first, site)
        other = self.spell.number(node.outside, store)
        text = f"keep_between({self.spell.operand(node.local, site)}, &{first}, {', '.join(places)}, {other});"
        return [Lines((f"if ({self.spell.any_of(node.edge, site.ranges)}) {text}" if node.edge else text,), node.ids)]

    @node.register
    def _(self, node: Copy) -> list[Out]:
        lanes = f", {node.ids[0]}" if node.lanes > 1 else ""
        return [Lines((f"{copy_call(self.spell, node)};  // {node.site.leaf.id}{lanes}",), node.ids)]

    @node.register
    def _(self, node: Multiply) -> list[Out]:
        row = node.instruction
        if isinstance(row, Wgmma):
            return [Lines((f"{self._warpgroup(node, row)};  // {node.site.leaf.id}",), node.ids)]
        self.spell.library.add(mma_name(row))
        fragments = (replace(r, index=r.index[:-1]) for r in (node.target, *node.operands))
        arguments = ", ".join(self.spell.element(r, node.site) for r in fragments)
        return [Lines((f"{mma_name(row)}({arguments});  // {node.site.leaf.id}",), node.ids)]

    @node.register
    def _(self, node: MoveMatrix) -> list[Out]:
        self.spell.library.add("matrix")
        self.spell.aligned.setdefault(node.row.store.name, UNIT)
        row, kind = f"&{self.spell.element(node.row, node.site)}", f"<{node.count}, {'true' if node.transposed else 'false'}>"
        if node.stores:
            call = f"store_matrix{kind}({row}, &{self.spell.element(node.first, node.site)})"
        else:
            to = self.spell.element(replace(node.target, index=node.target.index[:-1]), node.site)
            call = f"load_matrix{kind}({to}, {row})"
        return [Lines((f"{call};  // {node.site.leaf.id}",), node.ids)]

    def _warpgroup(self, node: Multiply, row: Wgmma) -> str:
        """The call of a warpgroup's instructions: the fragments, and where the tiles of factors in shared memory begin."""
        self.spell.library |= {wgmma_part(row), "shared_tile", "same_in_warp"}
        first = {self.low.variable[x.id]: const(x.start) for x in node.loops}
        tiles = [self.spell.tile(node.operands[slot], tile, node.site, first)
                 for slot, tile in zip(row.shared, node.tiles, strict=True)]
        held = (node.target, *(node.operands[:1] if row.held else ()))
        fragments = [self.spell.element(replace(r, index=r.index[:-1]), node.site) for r in held]
        return f"{wgmma_name(row)}<{row.steps}>({', '.join((*fragments, *tiles))})"

    @node.register
    def _(self, node: Commit | Wait) -> list[Out]:
        self.spell.library.add("async_copy")
        call = f"async_wait<{node.pending}>()" if isinstance(node, Wait) else "async_commit()"
        return [Lines((f"{call};  // {', '.join(node.ids[:1])}",), node.ids)]

    @node.register
    def _(self, node: WaitProducts) -> list[Out]:
        self.spell.library.add("wgmma_wait")
        wait = f"wgmma_wait<{node.pending}>({', '.join(s.name for s in node.accumulators)});  // {', '.join(node.ids[:1])}"
        return [Lines((wait, *("fence_reads();",) * node.fenced), node.ids)]

    @node.register
    def _(self, node: BulkCopy) -> list[Out]:
        return [Lines((f"{box_call(self.spell, node)};  // {node.site.leaf.id}",), node.ids)]

    @node.register
    def _(self, node: BulkStore) -> list[Out]:
        return [Lines((f"{store_call(self.spell, node)};  // {node.site.leaf.id}",), node.ids)]

    @node.register
    def _(self, node: WaitStores) -> list[Out]:
        return [Lines(("bulk_stores_read();",), node.ids)]

    def _slot(self, counted: Mbarriers, slot: Expr, ranges: Ranges) -> str:
        return f"{counted.name}[{self.spell.expr(slot, ranges)[0]}]"

    @node.register
    def _(self, node: Begin) -> list[Out]:
        self.spell.library.add("bulk_copy")
        arguments, each = node.mbarriers.name, "one for each group of bulk copies on its way"
        if (wanted := node.mbarriers.arrivals * node.mbarriers.blocks) > 1:
            whose = " of each block of the cluster" * (node.mbarriers.blocks > 1)
            arguments, each = f"{arguments}, {wanted}", f"one for each slot, an arrival of each warp{whose}"
        return [Lines((f"mbarrier_begin({arguments});  // {each}",), node.ids)]

    @node.register
    def _(self, node: Arrive | Release) -> list[Out]:
        slot, blocks = self._slot(node.mbarriers, node.slot, self.ranges), node.mbarriers.blocks
        self.spell.library.add("multicast" if blocks > 1 else "roles" if isinstance(node, Release) else "bulk_copy")
        call = "arrive" if isinstance(node, Arrive) else "release" if blocks == 1 else f"release_all<{blocks}>"
        return [Lines((f"mbarrier_{call}({slot});  // {', '.join(node.ids[:1])}",), node.ids)]

    @node.register
    def _(self, node: AwaitTurn | PassTurn) -> list[Out]:
        self.spell.library.add("roles")
        name, ends = ("wait", node.begun) if isinstance(node, AwaitTurn) else ("pass", node.over)
        return [Lines((f"turn_{name}<{node.groups}{', true' * ends}>();  // {', '.join(node.ids[:1])}",), node.ids)]

    @node.register
    def _(self, node: Await | Acquire) -> list[Out]:
        slot, parity = self._slot(node.mbarriers, node.slot, self.ranges), self.spell.expr(node.parity, self.ranges)[0]
        whose = "_all" * (isinstance(node, Acquire) and node.mbarriers.blocks > 1)
        return [Lines((f"mbarrier_wait{whose}({slot}, {parity});  // {', '.join(node.ids[:1])}",), node.ids)]

    @node.register
    def _(self, node: Drain) -> list[Out]:
        return [Lines((f"mbarrier_drain<{node.releases}>({node.mbarriers.name});  // other blocks arrive here",), node.ids)]

    @node.register
    def _(self, node: Barrier) -> list[Out]:
        call = f"cluster_{node.cluster}s" if node.cluster else f"barrier_of<1, {self.meet}>" if self.meet else "__syncthreads"
        self.spell.library.update(fence := ["fence_proxy_async"] * node.proxy)
        return [Lines((*(f"{x}();" for x in fence), f"{call}();{f'  // {node.comment}' * (node.comment != '')}"), node.ids)]

    # -- stamps -------------------------------------------------------------------------------------------------

    @node.register
    def _(self, node: OpenLog) -> list[Out]:
        self.spell.library.add("stamps")
        self.spell.used.add(node.store)
        return [Lines((f"stamp_log {node.log} = stamp_begin<{node.room}>({node.store}, {node.number});",), node.ids)]

    @node.register
    def _(self, node: Stamp) -> list[Out]:
        at = self.spell.expr(node.at, self.ranges)[0]
        return [Lines((f"stamp_put({node.log}, {node.mark}, {at});",), node.ids)]

    @node.register
    def _(self, node: CloseLog) -> list[Out]:
        return [Lines((f"stamp_end<{node.room}>({node.log});",), node.ids)]

    # -- collectives --------------------------------------------------------------------------------------------

    @node.register
    def _(self, node: Collect) -> list[Out]:
        spell, site = self.spell, node.site
        wide, leaf = node.target.store.dtype.wide, site.leaf.id
        lvalue = spell.element(node.target, site, node.operands)
        value = spell.contribution(site, node.operands, node.guards)[0]
        combined = self._call(node.way, value, site.statement.update or "sum", wide.cuda)
        update = spell.update(node, lvalue, (node.result, PRIMARY), node.atomic)
        waits = ["__syncthreads();  // the scratch array is free"] if node.first_waits else []
        lines = [*waits, f"const {wide.cuda} {node.result} = {combined};  // {leaf}", self._by_writers(node, update)]
        return [Lines(tuple(lines), node.ids)]

    @node.register
    def _(self, node: Contribute) -> list[Out]:
        to = self.spell.operand(node.to, node.site)
        value = self.spell.contribution(node.site, node.operands, node.guards)[0]
        return [Lines((f"{to} = {value};  // {node.site.leaf.id}",), node.ids)]

    @node.register
    def _(self, node: Combine) -> list[Out]:
        self.spell.library |= {"reduce", "reduce_lanes"}
        way, waits = node.way, ["__syncthreads();  // the scratch array is free"] if node.first_waits else []
        scratch = way.scratch or f"({node.local.dtype.cuda}*)nullptr"
        extents = self._extents(way, str(node.count))
        return [Lines((*waits, f"{way.function}<reduce_{node.update}, {extents}>({node.local.name}, {scratch});"), node.ids)]

    @node.register
    def _(self, node: Apply) -> list[Out]:
        lvalue, mine = self.spell.element(node.target, node.site), self.spell.operand(node.value, node.site)
        update = self.spell.update(node, lvalue, (mine, PRIMARY), node.atomic)
        return [Lines((f"{self._by_writers(node, update)}  // {node.site.leaf.id}",), node.ids)]

    def _call(self, way: Way, value: str, update: str, kind: str) -> str:
        """The call that combines `value` over threads, and around it the one over the blocks of the cluster."""
        text = value
        if way.function:
            self.spell.library.add("reduce")
            if way.function == "warp_reduce":
                text = f"warp_reduce<reduce_{update}, 32>({value})"
            else:
                text = f"{way.function}<reduce_{update}, {self._extents(way)}>({value}, {way.scratch or f'({kind}*)nullptr'})"
        if way.blocks > 1:
            self.spell.library |= {"reduce", "cluster"}
            wanted = self.spell.conditions(way.wanted, self.ranges) if way.wanted else "true"
            text = f"cluster_reduce<reduce_{update}, {way.blocks}>({text}, {way.slots}, {wanted})"
        return text

    @staticmethod
    def _extents(way: Way, *more: str) -> str:
        return ", ".join([*map(str, way.box), *("true" if a in way.axes else "false" for a in "xyz"), *more])

    def _by_writers(self, node: Collect | Apply, update: str) -> str:
        """The update in every thread's register, or by one thread in memory."""
        of = cells_of if node.target.store.space == "register" else writers_of
        writers = of(self.low, node)
        return f"if ({self.spell.conditions(writers, node.site.around)}) {update}" if writers else update


def cells_of(low: Lowered, node: Collect | Apply) -> tuple[Condition, ...]:
    """Where the register array has the cell: where nobody contributes there may be none (the last round of a fused loop)."""
    store, around = node.target.store, node.site.around
    found: list[Condition | None] = []
    for e, extent in zip(low.index(node.site, len(node.site.statement.reads)), store.shape, strict=True):
        if isinstance(e, Expr):
            found += [condition(e, False, around), condition(-e + (extent - 1), False, around)]
    return conjunction(found)


def writers_of(low: Lowered, node: Collect | Apply) -> tuple[Condition, ...]:
    """Which thread of a group updates memory: the first one, where the group's own conditions hold and the cell exists.

    Conditions on the collected places only say who contributes, so here they ask whether anyone does.  What they proved about
    the target's index is tested again.
    """
    site, guards = node.site, node.guards
    loops = {loop.id: loop for loop in site.loops}
    roles = {loops[name].role for name, how in site.leaf.collect if name in loops
             and (how == "cluster" or (loops[name].is_thread and how != "atomic"))}
    names = {low.role_name[role] for role in roles}
    first = [Condition(Expr(((name, 1),)), True) for name in sorted(names)]
    own = [c for c in guards if not (c.variables() & names)]
    if len(own) < len(guards):
        own += anyone([g for g in guards if g.variables() & names], names, site.ranges)
        extents = node.target.store.buffer.shape if node.target.store.buffer else node.target.store.shape
        for e, extent in zip(low.index(site, len(site.statement.reads)), extents, strict=True):
            if isinstance(e, Expr):
                own += [c for c in (condition(e, False, site.ranges), condition(-e + (extent - 1), False, site.ranges)) if c]
    return tuple(dict.fromkeys([*first, *own]))
