"""The move ``collect``: how the partial results of threads or blocks are combined, by shuffles, shared memory or atomics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ..ir.finding import YES, Finding, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import BLOCK_ROLES, MOST_CLUSTER, Leaf, Loop
from ._cut import cut_off
from ._parts import bound, combined_in_cluster, in_time, joined_parts, marked, moving, parts_verdict
from ._reduction import Updates, update_verdict
from .base import Transform
from .join import FORMERLY
from .rfactor import factor_verdict, factored

HOWS = ("shuffle", "shared", "atomic", "kernel", "last_block", "handoff", "grid", "cluster")
JOINED = ("last_block", "handoff", "grid")
"""Those that join the parts of the blocks in the launch of the updates."""


@dataclass(frozen=True)
class Collect(Transform):
    """Choose how the updates of one element from several threads or blocks are combined.

    ``shuffle`` and ``shared`` combine the threads of a block.  A target in registers: every thread of the group gets the
    result.  A target in memory: one thread updates it.

    The others combine blocks.  With ``atomic``, every block (or thread) updates the memory by atomic operations.  Their order
    is not fixed, so floating-point sums differ in their last bits from run to run.  The other ways add in a fixed order:

    - ``kernel``: each block writes a partial result to global memory, and a second launch combines them.
    - ``last_block``: the same, but the last block to finish combines them, in the same launch.
    - ``handoff``: one block combines them in the same launch; it waits for each part, which comes in one word with its flag.
    - ``grid``: all blocks wait at a barrier of the grid, then combine the parts.
    - ``cluster`` (sm_90 and newer): up to 8 blocks, 16 on some GPUs, become a cluster and combine their parts in distributed
      shared memory, without a workspace; one thread updates the memory.

    For ``last_block``, ``handoff`` and ``grid`` see `join`.  The nest that combines the parts is spread over the blocks and
    threads of the updates; an initialisation that was a launch of its own moves into it.

    If sequential loops carry the reduction too, each thread first accumulates in a register (`rfactor` over the bound loops, and
    `contract`), and only those results are combined; not by ``atomic`` where such a loop also moves the element, as tiles that a
    block takes in turn do (`persist`).  For ``atomic`` and ``cluster`` over blocks, other statements that use
    the target move to an earlier or later launch.

    Before::

        for i in 0…M                                # block.x
            total[i] = 0
            for k in 0…4
                for k.i in 0…256                    # thread.x
                    total[i] += x[i, 256*k + k.i]

    After ``collect('total', 'shuffle')``::

        for i in 0…M                                # block.x
            total[i] = 0
            for k.i.z in 0…256                      # thread.x
                total_p = 0                         # total_p: a register of each thread
            for k in 0…4
                for k.i in 0…256                    # thread.x
                    total_p += x[i, 256*k + k.i]
            for k.i.c in 0…256                      # thread.x
                total[i] += total_p                 # k.i.c combined by shuffle
    """

    name = "collect"
    group = "Reductions"
    aliases = ("reduce_threads", "allreduce", "cross_thread_reduction", "atomic_add", "combine")

    target: str = field(metadata={"kind": "leaf", "help": "the reduction: its statement, or the array it updates"})
    how: str = field(metadata={"kind": "choice", "choices": HOWS, "formerly": FORMERLY,
                               "help": "shuffle, shared: over threads; atomic; the others: over blocks"})
    loops: tuple[str, ...] = field(default=(),
                                   metadata={"kind": "loops", "help": "bound loops to combine (default: all that fit)"})

    def check(self, plan: Plan) -> Verdict:
        u = update_verdict(plan, self.target)
        if isinstance(u, Verdict):
            return u
        if self.how not in HOWS:
            return no(f"there is no way {self.how!r} to combine updates", hint=f"one of {', '.join(HOWS)}")
        chosen = self._chosen(u)
        if isinstance(chosen, Verdict):
            return chosen
        target = u.leaf.view(len(u.statement.reads))
        if self.how in ("atomic", "kernel", "cluster", *JOINED) and target and plan.buffer_of[target.buffer].space == "register":
            name = u.statement.target.array
            return no(f"{name} is in registers, which other places cannot update", hint=f"contract('{name}', 'global') first")
        if self.how == "kernel":
            return factor_verdict(replace(u, factored=chosen), apart=True)
        if self.how in JOINED:
            if {x.id for x in chosen} != {x.id for x in bound(u) if x.is_block}:
                return no(f"{self.how} joins the parts of all blocks", hint="leave `loops` out")
            return parts_verdict(u, self.how)
        if self.how == "cluster":
            return self._check_cluster(u, chosen)
        if not in_time(u):
            return _one_element(u, chosen, self.how)
        done = marked(u, chosen, self.how)
        return done if isinstance(done, Verdict) else YES

    def eases(self, plan: Plan, finding: Finding) -> Iterator[str]:
        """The other ways to join the parts of blocks, where this one is refused for what it makes."""
        if self.how in (*JOINED, "cluster"):
            yield from (str(replace(self, how=way, loops=())) for way in ("last_block", "kernel") if way != self.how)

    def _check_cluster(self, u: Updates, chosen: tuple[Loop, ...]) -> Verdict:
        """Whether the blocks can be a cluster: few enough, the whole grid along their axes."""
        kernel = u.plan.kernel_of(u.leaf.id)
        assert kernel is not None
        grid: dict[str, int] = dict(zip(BLOCK_ROLES, u.plan.extents[kernel.id][:3], strict=True))
        blocks = prod(grid[x.role] for x in chosen)
        if blocks > MOST_CLUSTER:
            return no(f"{', '.join(x.id for x in chosen)} would make clusters of {blocks} blocks",
                      f"a cluster has at most 8, {MOST_CLUSTER} on some GPUs, and takes the whole grid along its axes",
                      f"divide {chosen[-1].id} before it is bound: one part for the cluster, the other by atomics")
        if not (verdict := _one_element(u, chosen, self.how)):
            return verdict
        spread = combined_in_cluster(u, chosen)
        return spread if isinstance(spread, Verdict) else YES

    def rewrite(self, plan: Plan) -> Plan:
        u = update_verdict(plan, self.target)
        assert isinstance(u, Updates)
        chosen = self._chosen(u)
        assert not isinstance(chosen, Verdict)
        if self.how == "kernel":
            return factored(replace(u, factored=chosen), apart=True).plan
        if self.how in JOINED:
            joined = joined_parts(u, self.how)
            assert not isinstance(joined, Verdict)
            return joined
        done = combined_in_cluster(u, chosen) if self.how == "cluster" else marked(u, chosen, self.how)
        assert not isinstance(done, Verdict)
        plan, leaf = done
        blocks = self.how in ("atomic", "cluster") and any(x.is_block for x in chosen)
        return own_launch(plan, leaf) if blocks else plan

    def _chosen(self, u: Updates) -> tuple[Loop, ...] | Verdict:
        """The loops to combine, all of a kind that `how` can combine."""
        found, target = bound(u), u.statement.target.array
        if not found:
            if u.carrying:
                return no(f"{target} is updated in one place only",
                          f"no loop that carries the reduction is bound ({u.carrying[0].id} is sequential)",
                          f"bind('{u.carrying[-1].id}', 'thread.x')")
            return no(f"each element of {target} is updated once")
        threads, blocks = tuple(x for x in found if x.is_thread), tuple(x for x in found if x.is_block)
        kinds = {"shuffle": threads, "shared": threads, "kernel": blocks, "cluster": blocks, **dict.fromkeys(JOINED, blocks)}
        fits = kinds.get(self.how, found)
        if not self.loops:
            fresh = tuple(x for x in fits if dict(u.leaf.collect).get(x.id) != self.how)
            if self.how == "atomic":
                fresh = tuple(x for x in fresh if x.is_block) or fresh
            if fresh:
                return fresh
        names = [x.id for x in fits]
        if not fits:
            over_threads = self.how in ("shuffle", "shared")
            kind, other = ("block", "atomic', 'kernel', or 'last_block") if over_threads else ("thread", "shuffle")
            return no(f"{self.how} cannot combine {', '.join(x.id for x in found)}", f"{kind} loops carry the reduction",
                      f"collect('{self.target}', '{other}')")
        if not self.loops:
            return no(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} already combined by {self.how}")
        if odd := next((x for x in self.loops if x not in names), None):
            return no(f"{self.how} cannot combine {odd}",
                      f"it is not a bound loop of the right kind that carries the reduction of {target}",
                      f"one of {', '.join(names)}")
        return tuple(x for x in fits if x.id in self.loops)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Collect]:
        u = update_verdict(plan, node_id)
        if isinstance(u, Updates):
            for how in HOWS:
                step = cls(node_id, how)
                if step.check(plan):
                    yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        u = update_verdict(plan, node_id)
        if isinstance(u, Verdict):
            return u
        if bound(u):
            return YES
        carrying = [x for x in reversed(u.above) if x.role == "seq" and not u.parallel(x)]
        return no(f"no bound loop carries the reduction of {u.statement.target.array}",
                  "collect combines what several threads or blocks have added up",
                  "; or ".join(f"bind('{x.id}', 'thread.x'{', 256' * (x.extent > 256)})" for x in carrying))


def _one_element(u: Updates, chosen: tuple[Loop, ...], how: str) -> Verdict:
    """Whether the threads that would be combined update one element: a sum over them cannot tell several apart."""
    mixed = ", ".join(x.id for x in chosen if x.id in moving(u))
    if how == "atomic" or not mixed:
        return YES
    target = u.statement.target.array
    return no(f"{how} cannot combine {mixed}", f"its threads update several elements of {target}", "how='atomic'")


def own_launch(plan: Plan, leaf_id: str) -> Plan:
    """The plan in which no other statement uses an update's target in the launch of the update."""
    hit = plan.find(leaf_id)
    kernel = plan.kernel_of(leaf_id)
    assert hit is not None
    assert kernel is not None
    here = [x.id for x in hit[1]] + [leaf_id]
    order = [leaf.id for leaf, _, k in plan.leaves if k.id == kernel.id]
    leaf = hit[0]
    assert isinstance(leaf, Leaf)
    target = plan.statement_of[leaf.statement].target.array
    others = [(x.id, [loop.id for loop in above] + [x.id]) for x, above, k in plan.leaves
              if k.id == kernel.id and x.id != leaf_id
              and any(a.array == target for a in plan.statement_of[x.statement].accesses)]

    def beside(path: list[str]) -> str:
        """The node around a leaf that is next to (a node around) the update."""
        return next(a for a, b in zip(path, here, strict=False) if a != b)

    place = order.index(leaf_id)
    early = [path for name, path in others if order.index(name) < place]
    late = [path for name, path in others if order.index(name) > place]
    if early:
        plan = cut_off(plan, beside(early[-1]), after=True, keep_rest=True)
    if late:
        plan = cut_off(plan, beside(late[0]), after=False, keep_rest=True)
    return plan


