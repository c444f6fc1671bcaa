"""Run the copies of a loop ahead of the computation that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from ..gpu.units import counted
from ..ir.expr import ZERO, Expr, remainder, var
from ..ir.finding import YES, Finding, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, Node, Sync, View, leaves, ranges, retime, walk
from ..poly.mechanism import moved_by
from ..poly.pure_load import Never
from ._carried_prologue import can_be_carried, carried, fewest_slots
from ._copy_groups import Ahead, closed, groups_of, later, together
from ._cut import rename_loops
from ._landing import without_landings
from ._nest import enclosing
from ._room import no_room
from ._uses import put_buffer
from .base import Transform, get_loop


@dataclass(frozen=True)
class Pipeline(Transform):
    """Let the staged copies of a loop run ``stages - 1`` iterations ahead (software pipelining, multi-buffering).

    The copy for iteration ``k + stages - 1`` runs in iteration ``k``; a prologue makes the first ``stages - 1``
    copies.  Iteration ``k`` uses slot ``k % buffers`` of each buffer.  By default ``buffers`` is `stages`, so that a copy
    overwrites the slot that the previous iteration read.  Copies past the last iteration do not run: their domain ends there.

    Asynchronous copies (``cp.async``) bypass the registers and are waited for in groups.  One pipeline commits one group per
    iteration: at the top of iteration ``k`` at most ``stages - 2`` groups may be pending.  They must be pure loads from global
    to shared memory of 4, 8 or 16 bytes, with zeros beyond the edge (the rule of ALCOP: the buffer of a pipeline
    is filled by asynchronous copies alone).  Copies staged with the engine ``bulk`` stay bulk copies.  Plain copies have no
    such conditions and work between any two storages; a loop with buffers in registers is unrolled, because registers have
    no addresses.

    Copies of one loop may have different stages, each by a step of its own with `copies`.  The copy with fewer stages is
    committed first.  A wait for ``cp.async`` counts all groups, so it leaves only those pending that are younger than what the
    iteration reads; bulk copies are waited for group by group.

    The prologue of an inner loop runs again in each iteration of the loop around it.  With ``across``, that loop, it does not:
    the last ``stages - 1`` iterations load the first tiles of its next iteration, after its wait.  This needs
    ``asynchronous=False``, and more iterations than ``stages - 1``.

    Before::

        for k in 0…8
            A_s[…] = A[…, 16*k + …]
            acc += A_s[…]

    After ``pipeline('k', 3)``::

        for k.pro in 0…2
            async A_s[k.pro % 3, …] = A[…, 16*k.pro + …]
            commit
        for k in 0…8
            wait 1
            async A_s[(k + 2) % 3, …] = A[…, 16*k + 32 + …]     # where k < 6
            commit
            acc += A_s[k % 3, …]

    After ``pipeline('k.i', 2, asynchronous=False, across='k')`` of registers that four steps ``k.i`` read::

        wait 1
        A_r[0] = A_s[0, …, 0]
        for k in 0…8
            async A_s[(k + 2) % 3, …] = A[…, 16*k + 32 + …]     # where k < 6
            commit
            for k.i in 0…3  unroll
                A_r[(k.i + 1) % 2] = A_s[k % 3, …, k.i + 1]
                acc += A_r[k.i % 2]
            wait 1
            A_r[0] = A_s[(k + 1) % 3, …, 0]                     # where k < 7
            acc += A_r[1]

    References
    ----------
    Huang et al., "ALCOP: Automatic Load-Compute Pipelining in Deep Learning Compiler for AI-GPUs", MLSys 2023.
    """

    name = "pipeline"
    group = "Storage"
    aliases = ("software_pipeline", "double_buffer", "multi_buffer", "inject_software_pipeline", "num_stages")
    elsewhere = {"Halide": "async, fold_storage", "TVM": "software_pipeline_stage", "isl": "band_shift"}

    loop: str = field(metadata={"kind": "loop", "help": "the loop whose copies run ahead"})
    stages: int = field(metadata={"kind": "int", "min": 2, "max": 8, "help": "iterations in flight, the computing one included"})
    copies: tuple[str, ...] = field(default=(), metadata={
        "kind": "arrays", "help": "copies to run ahead (default: the shared ones made in this loop, else all)"})
    asynchronous: bool = field(default=True, metadata={"kind": "bool", "help": "use asynchronous copies and waits"})
    buffers: int = field(default=0, metadata={"kind": "int", "min": 0, "help": "slots of each buffer (0: as many as stages)"})
    across: str = field(default="", metadata={
        "kind": "loop", "help": "the loop around it, whose next iteration's first copies the last iterations make"})

    def check(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if loop.role not in ("seq", "unroll"):
            return no(f"{loop.id} is bound or vectorised ({loop.role}), so its iterations are not one after the other",
                      hint="pipeline a sequential loop inside of it")
        if type(self.stages) is not int or self.stages < 2:
            return no(f"a pipeline has 2 stages or more, not {self.stages!r}", hint="stages=2 or more")
        if any(isinstance(n, Sync) and n.kind == "acquire" for n in loop.body):
            return no(f"{loop.id} has a producer, which runs ahead of the others already",
                      hint="undo specialise, and choose more stages there")
        if self.stages > loop.extent + 1:
            return no(f"{self.stages} stages are more than {loop.id} has work for",
                      f"{counted(loop.extent, 'iteration')} can fill at most {loop.extent + 1} stages",
                      f"stages={loop.extent + 1} or fewer")
        if self.buffers < 0:
            return no("the number of slots is positive", hint="leave `buffers` out for one slot per stage")
        chosen = self._chosen(plan, loop)
        if isinstance(chosen, Verdict):
            return chosen
        if self.across and not (verdict := self._across(plan, loop)):
            return verdict
        for nest in chosen:
            for leaf, _ in leaves((nest,)):
                if dict(leaf.at)[scope_dim(plan, leaf)] != var(loop.id):
                    return no(f"{leaf.statement} already runs ahead in {loop.id}",
                              hint="undo the first pipeline and choose more stages")
                if sum(1 for x, _, _ in plan.leaves if x.statement == leaf.statement) > 1:
                    return no(f"{leaf.statement} stands in several places of the tree",
                              "its copies for later iterations may be made there",
                              "pipeline before cut")
                if self.asynchronous and (refusal := _not_asynchronous(plan, leaf)) is not None:
                    return refusal
                if leaf.mechanism == "bulk" and not self.asynchronous:
                    return no(f"{leaf.statement} is a bulk copy, which always is asynchronous", "one thread asks for a whole box",
                              "asynchronous=True, or stage it with another engine")
        full = no_room(plan, self.rewrite(plan), "fewer stages, or a smaller tile")
        return YES if full is None else full

    def rewrite(self, plan: Plan) -> Plan:
        loop, nests = get_loop(plan, self.loop), None
        assert isinstance(loop, Loop)
        nests = self._chosen(plan, loop)
        assert not isinstance(nests, Verdict)
        hit = plan.find(loop.id)
        assert hit is not None
        above, outside = hit[1], enclosing(plan, self.across) if self.across else hit[1]
        ahead, slots = self.stages - 1, self.buffers or self.stages
        filled = {view.buffer: plan.statement_of[leaf.statement].dims.index(scope_dim(plan, leaf))
                  for nest in nests for leaf, _ in leaves((nest,)) if (view := leaf.view(1))}
        role = "unroll" if any(plan.buffer_of[b].space == "register" for b in filled) else loop.role

        there = groups_of(plan, loop, nests, copy_nests(plan, loop)) if self.asynchronous else None
        shared = there.prologue if there else None
        early = shared or Loop(plan.fresh(f"{loop.id}.pro"), ahead, (), role, loop.start)
        most = max(ahead, early.extent)
        names = {loop.id: early.id} | {n.id: plan.fresh(f"{n.id}.pro") for nest in nests for n in walk((nest,))}
        scope = {**ranges(above), early.id: early.range}
        first = tuple(self._started(_leaf_ids(rename_loops(nest, names, scope), names)) for nest in nests)
        scope = {**ranges(above), loop.id: loop.range}
        v = var(loop.id)
        steady = tuple(self._started(n) for n in retime(nests, {loop.id: v + ahead}, {loop.id: v - ahead}, scope))
        groups = (Ahead(ahead, later(first, early, most - ahead), steady),)
        rest = there.rest if there else without_landings(loop.body, nests)
        if there:
            groups = together((*(replace(g, early=later(g.early, early, most - early.extent)) for g in there.groups), *groups))
        if shared:
            plan = plan.replace_node(loop.id, replace(loop, body=())).replace_node(early.id, replace(early, body=()))
        before, body = self._closed(plan, early, loop, groups)
        early = replace(early, extent=most, body=before)
        new = plan.replace_node(loop.id, *(() if shared else (early,)), replace(loop, role=role, body=(*body, *rest)))
        new = new.replace_node(early.id, early)
        for name in {view.buffer for nest in nests for leaf, _ in leaves((nest,)) for slot, view in leaf.views if slot == 0}:
            source = new.buffer_of[name]
            if source.scope == loop.id:  # what is copied before the loop begins lives there: a longer life is always correct
                holder = next((x.id for x in reversed(outside) if source.space == "register" or not x.is_thread), "")
                new = put_buffer(new, replace(source, scope=holder))
        new = slotted(new, filled, slots, outside)
        return carried(new, loop.id, early.id, self.across) if self.across else new

    def _across(self, plan: Plan, loop: Loop) -> Verdict:
        if self.asynchronous:
            return no("groups of asynchronous copies are counted in each run of a loop",
                      "those of the next iteration would be counted with this one's", "asynchronous=False")
        return can_be_carried(plan, loop, self.across, self.stages - 1)

    def _closed(self, plan: Plan, early: Loop, loop: Loop,
                groups: tuple[Ahead, ...]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """What the prologue and the loop copy; asynchronous copies in groups, with their waits."""
        if not self.asynchronous:
            (only,) = groups
            return only.early, only.steady

        def sync(of: Loop, kind: Literal["commit", "wait"], number: int, left: int = 0) -> Sync:
            return Sync(plan.fresh(f"{of.id}.{kind}{f'_{number + 1}' if number else ''}"), kind, left)

        before = tuple(n for place, g in enumerate(groups) for n in (*g.early, sync(early, "commit", place)))
        return before, closed(groups, lambda n, left: sync(loop, "wait", n, left), lambda n: sync(loop, "commit", n))

    def eases(self, plan: Plan, finding: Finding) -> Iterator[str]:
        """As many slots as stages; slots that a tile fills evenly, and the outer loop pipelined, where it is carried."""
        if self.buffers and self.buffers != self.stages:
            yield f"{replace(self, buffers=0)} instead"
        loop = get_loop(plan, self.loop)
        if self.across and isinstance(loop, Loop):
            slots = fewest_slots(loop.extent, self.stages - 1)
            if slots > (self.buffers or self.stages):
                yield str(replace(self, buffers=slots))
            yield from (f"pipeline({self.across!r}, 2{plain}) first" for plain in ("", ", asynchronous=False"))

    def _started(self, node: Node) -> Node:
        """The copy, asynchronous or not; a bulk copy stays one, and so do loads of matrices."""
        if isinstance(node, Loop):
            return replace(node, body=tuple(self._started(n) for n in node.body))
        if not isinstance(node, Leaf) or node.mechanism not in ("plain", "async"):
            return node
        return replace(node, mechanism="async" if self.asynchronous else "plain")

    def _chosen(self, plan: Plan, loop: Loop) -> tuple[Node, ...] | Verdict:
        """The copy nests of the loop that will run ahead."""
        found = copy_nests(plan, loop)
        if not found:
            return no(f"no copies are made in the body of {loop.id}", "a pipeline needs a copy that can run ahead of its readers",
                      f"stage('…', '{loop.id}') an array that it reads")
        by_name = {leaf.statement: nest for nest in found for leaf, _ in leaves((nest,))}
        if odd := next((c for c in self.copies if c not in by_name), None):
            return no(f"{odd} is not a copy made in the body of {loop.id}",
                      hint=f"one of {', '.join(by_name)}; pipeline_verdicts('{loop.id}') says why the others are none")
        if self.copies:
            return tuple(n for n in found if any(by_name[c] is n for c in self.copies))
        shared = tuple(n for n in found if all(plan.buffer_of[view.buffer].space == "shared"
                                               for leaf, _ in leaves((n,)) for view in (leaf.view(1),) if view))
        return shared or found

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Pipeline]:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Loop):
            for asynchronous in (True, False):
                for stages in (2, 3, 4):
                    step = cls(node_id, stages, asynchronous=asynchronous)
                    if step.check(plan):
                        yield step

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        return YES if copy_nests(plan, loop) else no(
            f"no copies are made in the body of {loop.id}", "a pipeline needs a copy that can run ahead of its readers",
            f"stage('…', '{loop.id}') first")


def scope_dim(plan: Plan, leaf: Leaf) -> str:
    """The dimension of a copy that is the loop it was made in (its last one before the box)."""
    rank = plan.array_of[leaf.statement].given
    dims = plan.statement_of[leaf.statement].dims
    return dims[len(dims) - rank - 1] if len(dims) > rank else ""


def copy_nests(plan: Plan, loop: Loop) -> tuple[Node, ...]:
    """The children of a loop that hold nothing but copies made for its iterations."""
    copies = {c.name for c in plan.copies}

    def made_here(leaf: Leaf) -> bool:
        return leaf.statement in copies and dict(leaf.at).get(scope_dim(plan, leaf), var("")).variables() == frozenset((loop.id,))

    return tuple(n for n in loop.body if (inside := [leaf for leaf, _ in leaves((n,))]) and all(map(made_here, inside)))


def _not_asynchronous(plan: Plan, leaf: Leaf) -> Verdict | None:
    """Why a copy cannot be asynchronous, or None."""
    above = next(above for x, above, _ in plan.leaves if x.id == leaf.id)
    found = moved_by(plan, leaf, above)
    if not isinstance(found, Never):
        return None
    return no(found.what, found.why, "; or ".join(filter(None, (found.hint, "asynchronous=False runs plain copies ahead"))))


def _leaf_ids(node: Node, names: dict[str, str]) -> Node:
    if isinstance(node, Loop):
        return replace(node, body=tuple(_leaf_ids(n, names) for n in node.body))
    return replace(node, id=names[node.id])


def slotted(plan: Plan, filled: dict[str, int], slots: int, above: tuple[Loop, ...], before: Expr = ZERO) -> Plan:
    """Give the filled buffers a leading dimension, and every access of them its slot.

    `filled` says which coordinate of a buffer's logical elements is the pipelined loop's value; to that comes what is used
    `before`, over the loops around it.
    """
    for name in filled:
        buffer = plan.buffer_of[name]
        holder = next((x.id for x in reversed(above) if buffer.space == "register" or not x.is_thread), "")
        plan = put_buffer(plan, replace(buffer, shape=(slots, *buffer.shape), scope=holder))
    around = {leaf.id: ranges(loops) for leaf, loops, _ in plan.leaves}

    def in_slot(leaf: Leaf, view: View) -> View:
        if view.buffer not in filled:
            return view
        value = view.element[filled[view.buffer]]
        return replace(view, index=(remainder(value + before, slots, around[leaf.id]), *view.index))

    return plan.map_leaves(lambda leaf: replace(leaf, views=tuple((s, in_slot(leaf, v)) for s, v in leaf.views)))
