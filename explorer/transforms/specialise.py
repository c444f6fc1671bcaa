"""Give bulk copies a warp of their own, which runs ahead of the threads that compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ..gpu.units import counted
from ..ir.expr import ZERO, Expr, remainder, var
from ..ir.finding import YES, Verdict, no
from ..ir.layout import GROUP
from ..ir.plan import Plan
from ..ir.tree import Kernel, Leaf, Loop, Node, Sync, leaves, ranges, walk
from ..poly.roles import UNIT, mixed, shares
from ._landing import without_landings
from ._room import no_room
from ._uses import put_buffer
from .base import Transform, get_loop
from .bind import THREADS_PER_BLOCK
from .launch_bounds import MOST_BLOCKS, MOST_THREADS
from .pipeline import copy_nests, scope_dim, slotted

TURNS = 2
"""Slots of what is copied in front of the loop, once a tile."""
LEAST, MOST = 24, 240
"""Registers of a thread that ``setmaxnreg`` can ask for here (PTX ISA, "setmaxnreg": 24 to 256; a thread uses 255 at most)."""


@dataclass(frozen=True)
class Specialise(Transform):
    """Divide the threads of a block into roles: a producer issues the loop's bulk copies, the others, consumers, compute.

    The block has one more row of threads, along y, of which one thread runs the copies of all iterations, as far ahead as there
    are slots; the rest of the kernel is run by the threads that it had.  Neither meets the other in a barrier: a consumer waits
    at the group's mbarrier, and *releases* its slot when it has read it, on another mbarrier, where the producer *acquires* it
    before it writes the slot again.  In a loop around, over tiles that a block takes in turn (`persist`), the producer goes on
    with the next tile while consumers still store their results.

    In the tree the two stand in one body; a kernel with an acquire has roles.  Releases are counted as groups of copies are, so
    that it is proved for all trip counts: no slot is written before everybody has read it, no wait takes one phase for another,
    and nobody waits for ever.

    Bulk copies in front of the loop, in loops around it, are the producer's, too.  If a block makes them several times, their
    buffers have two slots: the producer asks for the next tile's while the others still use this one's.  They need no acquire,
    as the loop's own slots are released later.  No other bulk copies may be in the kernel, and the loop is not pipelined:
    `specialise` takes the place of `pipeline`.
    `tensorize` comes before it, so that the block's threads are known, `overlap` behind.  With `registers` a consumer's thread
    takes so many, of those that the producer's warpgroup gives away (``setmaxnreg``).  A multiprocessor then holds one block, or
    as many as `blocks` says: some compute while others wait, and each has a part of the registers.

    Before::

        for k in 0…64
            bulk A_s[…] = A[…, 64*k + …]
            commit
            wait 0
            acc += A_s[…]

    After ``specialise('k', 4)``::

        for k in 0…64
            acquire 3                           # producer: all but the last 3 slots are released
            bulk A_s[k % 4, …] = A[…, 64*k + …] # producer
            commit                              # producer
            wait 0
            acc += A_s[k % 4, …]
            release

    References
    ----------
    Bauer, Cook and Khailany, "CudaDMA: optimizing GPU memory bandwidth via warp specialization", SC 2011.  NVIDIA, PTX ISA,
    "mbarrier", "setmaxnreg" (sm_90a).
    """

    name = "specialise"
    group = "Hardware"
    aliases = ("specialize", "warp_specialize", "warp_specialization", "producer_consumer", "setmaxnreg")

    loop: str = field(metadata={"kind": "loop", "help": "the loop whose bulk copies a producer issues"})
    stages: int = field(metadata={"kind": "int", "min": 2, "max": 12, "help": "slots of each buffer"})
    registers: int = field(default=0, metadata={"kind": "int", "min": 0, "max": MOST,
                                                "help": "of a consumer's thread (0: all threads have as many)"})
    blocks: int = field(default=0, metadata={"kind": "int", "min": 0, "max": MOST_BLOCKS,
                                             "help": "blocks that a multiprocessor holds at least (0: nothing is said)"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        kernel = plan.kernel_of(loop.id)
        assert kernel is not None
        if loop.role != "seq":
            return no(f"{loop.id} is {loop.role}, so its iterations are not one after the other",
                      hint="specialise a sequential loop")
        if kernel.has_roles:
            return no(f"{kernel.id} has roles already", "one producer issues all bulk copies",
                      "undo the first specialise, and choose its stages anew")
        if self.stages < 2:
            return no(f"with {counted(self.stages, 'slot')} nobody runs ahead", hint="stages=2 or more")
        every = loop.extent * prod(x.extent for x in _around(plan, loop))
        if self.stages > every:
            if every < 2:
                return no(f"nobody runs ahead in {loop.id}", "a block runs one iteration of it", "smaller tiles, or another loop")
            return no(f"{self.stages} slots are more than {loop.id} fills", f"a block runs {every} iterations of it",
                      f"stages={every} or fewer")
        if (bad := _copies(plan, kernel, loop)) is not None:
            return bad
        if why := mixed(plan, kernel):
            return no(f"{kernel.id} cannot have a producer beside its consumers", why, "pipeline instead")
        if (bad := self._threads(plan, kernel)) is not None:
            return bad
        full = no_room(plan, self.rewrite(plan), "fewer stages, or a smaller tile")
        return YES if full is None else full

    def _threads(self, plan: Plan, kernel: Kernel) -> Verdict | None:
        """Why the block cannot have another row of threads, or not these registers; None if it can."""
        x, y, _ = plan.extents[kernel.id][3:]
        if x * (y + 1) > THREADS_PER_BLOCK:
            return no(f"a block would have {x * (y + 1)} threads with its producer", f"it has at most {THREADS_PER_BLOCK}",
                      "fewer threads")
        blocks = self.blocks or kernel.resident or 1
        if self.blocks < 0:
            return no("a multiprocessor holds a number of blocks", hint="blocks=0: as many as there is room for")
        if self.blocks > MOST_BLOCKS or self.blocks * x * (y + 1) > MOST_THREADS:
            return no(f"a multiprocessor cannot hold {self.blocks} blocks of {x * (y + 1)} threads",
                      f"it holds {MOST_THREADS:,} threads at most", f"blocks={MOST_THREADS // (x * (y + 1))} or fewer")
        if not self.registers:
            return None
        if x != GROUP:
            return no(f"rows of {x} threads are no warpgroups", "registers move between warpgroups of 128 threads",
                      "registers=0")
        share, left = shares(y, self.registers, blocks)
        if share > MOST:
            return no(f"a consumer's thread cannot have {self.registers} registers",
                      f"{(y + 1) * GROUP} threads have {share} each, more than one can take", "registers=0, or more blocks")
        if self.registers % UNIT or not share <= self.registers <= MOST or left < LEAST:
            most = min(MOST, (share * (y + 1) - LEAST) // y // UNIT * UNIT)
            return no(f"a consumer's thread cannot have {self.registers} registers",
                      f"{(y + 1) * GROUP} threads have {share} each, and the producer keeps {LEAST} at least",
                      f"a multiple of {UNIT} from {share} to {most}, or registers=0")
        return None

    def rewrite(self, plan: Plan) -> Plan:
        loop, kernel = plan.loops[self.loop], plan.kernel_of(self.loop)
        assert kernel is not None
        nests, hit = copy_nests(plan, loop), plan.find(loop.id)
        assert hit is not None
        filled = {view.buffer: plan.statement_of[leaf.statement].dims.index(scope_dim(plan, leaf))
                  for nest in nests for leaf, _ in leaves((nest,)) if (view := leaf.view(1))}
        before = _iterations_before(_around(plan, loop), loop.extent)
        rest = without_landings(loop.body, nests)
        body: tuple[Node, ...] = (
            Sync(plan.fresh(f"{loop.id}.acquire"), "acquire", self.stages - 1), *nests,
            Sync(plan.fresh(f"{loop.id}.commit"), "commit"), Sync(plan.fresh(f"{loop.id}.wait"), "wait"), *rest,
            Sync(plan.fresh(f"{loop.id}.release"), "release"))
        new = plan.replace_node(loop.id, replace(loop, body=body))
        new = _in_turn(slotted(new, filled, self.stages, hit[1], before), loop)
        made = replace(new.kernel_of(loop.id) or kernel, registers=self.registers, resident=self.blocks or kernel.resident)
        return replace(new, kernels=tuple(made if k.id == kernel.id else k for k in new.kernels))

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Specialise]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop) and copy_nests(plan, loop):
            yield from (step for stages in (2, 3, 4, 6) if (step := cls(node_id, stages)).check(plan))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        kernel = plan.kernel_of(loop.id)
        assert kernel is not None
        bad = _copies(plan, kernel, loop)
        return YES if bad is None else bad


def _copies(plan: Plan, kernel: Kernel, loop: Loop) -> Verdict | None:
    """Why the loop's copies are not what a producer issues, or None."""
    nests = copy_nests(plan, loop)
    made = [leaf for nest in nests for leaf, _ in leaves((nest,))]
    if not any(leaf.mechanism == "bulk" for leaf in made):
        return no(f"no bulk copies are made in the body of {loop.id}", "a producer asks for whole boxes",
                  f"stage('…', '{loop.id}', engine='bulk'); or copy what it reads in boxes first: stage with engine='bulk'")
    if odd := next((leaf for leaf in made if leaf.mechanism != "bulk"), None):
        return no(f"{odd.statement} is no bulk copy", "the producer is one thread", "stage it with engine='bulk'")
    known = {leaf.id for leaf in made} | {leaf.id for leaf, _ in _in_front(plan, loop)}
    if odd := next((leaf for leaf, _ in leaves(kernel.body) if leaf.mechanism == "bulk" and leaf.id not in known), None):
        return no(f"{odd.id} is a bulk copy neither in {loop.id} nor in front of it",
                  "one producer issues all bulk copies of a kernel",
                  "specialise before pipeline, and stage in this loop or in those around it")
    syncs = [n for n in walk(loop.body) if isinstance(n, Sync)]
    groups = sum(n.kind == "commit" for n in syncs)
    if groups > 1 and all(n.kind in ("commit", "wait") and not n.pending for n in syncs):
        return no(f"{loop.id} makes its copies in {groups} groups", "a producer fills one slot in an iteration, with one group",
                  f"stage them all at {loop.id} before its statements have loops of their own (distribute)")
    early = any(dict(leaf.at)[scope_dim(plan, leaf)] != var(loop.id) for leaf in made)
    if early or len(syncs) != 2 or any(n.pending for n in syncs) or any(n.kind not in ("commit", "wait") for n in syncs):
        return no(f"the copies or products of {loop.id} run ahead already", hint="specialise before pipeline and overlap")
    return None


def _iterations_before(loops: Sequence[Loop], each: int = 1) -> Expr:
    """How many iterations of nested loops, outermost first, have run before this one, counted `each` times."""
    total = ZERO
    for x in reversed(loops):
        total, each = total + (var(x.id) - x.start) * each, each * x.extent
    return total


def _around(plan: Plan, loop: Loop) -> tuple[Loop, ...]:
    """The loops in time around a loop, outermost first."""
    hit = plan.find(loop.id)
    return tuple(x for x in (hit[1] if hit else ()) if not x.is_place and x.role != "launch")


def _in_front(plan: Plan, loop: Loop) -> list[tuple[Leaf, tuple[Loop, ...]]]:
    """Bulk copies in front of a loop, in the body of one around it or in loops of their own there; with the loops around both."""
    hit = plan.find(loop.id)
    around = {x.id for x in hit[1]} if hit else set[str]()
    copies = {c.name for c in plan.copies}
    found = [(leaf, tuple(x for x in above if x.id in around), [x for x in above if x.id not in around])
             for leaf, above, _ in plan.leaves if leaf.mechanism == "bulk"]
    return [(leaf, above) for leaf, above, own in found if _precedes(plan, leaf.id, loop.id)
            and all(inner.statement in copies for inner, _ in leaves(tuple(own[:1])))]


def _precedes(plan: Plan, first: str, second: str) -> bool:
    """Whether one node stands before another in the plan's text."""
    kernel = plan.kernel_of(first)
    ids = [n.id for n in walk(kernel.body)] if kernel else []
    return second in ids and ids.index(first) < ids.index(second)


def _in_turn(plan: Plan, loop: Loop) -> Plan:
    """Two slots for the buffers of copies in front of a loop, one tile's and the next one's, where a block makes them several
    times.
    """
    for leaf, above in _in_front(plan, loop):
        view = leaf.view(1)
        times = [x for x in above if not x.is_place and x.role != "launch"]
        if view is None or prod(x.extent for x in times) < 2:
            continue
        outside = above[:above.index(times[0])]
        buffer = plan.buffer_of[view.buffer]
        plan = put_buffer(plan, replace(buffer, shape=(TURNS, *buffer.shape),
                                        scope=next((x.id for x in reversed(outside) if not x.is_thread), "")))
        slot = remainder(_iterations_before(times), TURNS, ranges(above))

        def turned(user: Leaf, name: str = view.buffer, slot: Expr = slot) -> Leaf:
            views = ((n, replace(v, index=(slot, *v.index)) if v.buffer == name else v) for n, v in user.views)
            return replace(user, views=tuple(views))

        plan = plan.map_leaves(turned)
    return plan
