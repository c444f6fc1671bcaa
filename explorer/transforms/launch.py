"""Cut a kernel in two, or pack two into one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Kernel, Loop, Node, leaves, walk
from ..poly.parting import parted_behind
from ._nest import enclosing, names_of, numbered
from .base import Transform
from .distribute import child

MOST_PROPOSED = 2
"""Places at which a refusal proposes to part a loop."""


@dataclass(frozen=True)
class Launch(Transform):
    """Start a new kernel behind a node, or put the next kernel's work into this one.

    Kernels run one after the other, all blocks of one before any block of the next: a cut is a barrier for the
    whole grid.  Packing saves a launch; the bodies then run one after the other in each block, so blocks must
    not depend on each other.  Only nodes at the top of a kernel can be cut apart; `distribute` brings them there.

    Before::

        kernel softmax
            for i in 0…64
                S1(i)
            for j in 0…64
                S2(j)

    After ``launch('softmax', after='i')``::

        kernel softmax
            for i in 0…64
                S1(i)
        kernel softmax.2
            for j in 0…64
                S2(j)
    """

    name = "launch"
    group = "Places"
    aliases = ("cut_kernel", "pack", "pack_kernels", "kernel_packing")

    kernel: str = field(metadata={"kind": "kernel", "help": "the kernel to cut, or to pack the next one into"})
    after: str = field(default="", metadata={"kind": "node", "help": "the last node that stays in the first kernel"})
    pack: str = field(default="", metadata={"kind": "kernel", "help": "the kernel directly behind it, to pack into it"})

    def check(self, plan: Plan) -> Verdict:
        kernel = _kernel(plan, self.kernel)
        if kernel is None:
            return no(f"there is no kernel {self.kernel!r}", hint=f"one of {', '.join(k.id for k in plan.kernels)}")
        if bool(self.after) == bool(self.pack):
            return no("launch either cuts a kernel (after=…) or packs one into it (pack=…)", hint="give one of the two")
        return self._check_pack(plan, kernel) if self.pack else self._check_cut(plan, kernel)

    def _check_cut(self, plan: Plan, kernel: Kernel) -> Verdict:
        tops = names_of(kernel.body[:-1])
        place = child(plan, kernel.body, self.after)
        if place is None:
            return no(f"{self.after!r} is not in {kernel.id}", hint=f"after one of {tops}" if len(kernel.body) > 1 else "")
        top = kernel.body[place]
        target = plan.resolve(self.after)
        wanted = self.after if any(n.id == self.after for n in walk((top,))) else target[0].id if target else ""
        if wanted != top.id:
            calls, cut = parted_behind(enclosing(plan, wanted), wanted), f"launch('{kernel.id}', after='{top.id}')"
            return no(
                f"{self.after} is not at the top of {kernel.id}: {top.id} is around it",
                why="a kernel is cut between nodes at its top, since all blocks of one kernel finish before the next starts",
                hint=f"{' and '.join((*calls, cut))} instead" + ("" if calls else f" cuts behind all of {top.id}"),
            )
        if place + 1 == len(kernel.body):
            return no(f"nothing stands behind {self.after} in {kernel.id}", hint=f"after one of {tops}" if place else
                      _parts(kernel.body, " first"))
        first, rest = _stored(kernel.body[: place + 1]), _stored(kernel.body[place + 1 :])
        for buffer in plan.buffers:
            if buffer.space != "global" and buffer.name in first & rest:
                return no(
                    f"{buffer.name} in {buffer.space} memory is used on both sides of the cut",
                    why=f"{buffer.space} memory does not outlive a kernel",
                    hint=f"contract('{_array(plan, buffer.name)}', 'global') first; or cut elsewhere",
                )
        return YES

    def _check_pack(self, plan: Plan, kernel: Kernel) -> Verdict:
        other = _kernel(plan, self.pack)
        if other is None:
            return no(f"there is no kernel {self.pack!r}", hint=f"one of {', '.join(k.id for k in plan.kernels)}")
        places = [k.id for k in plan.kernels]
        if places.index(other.id) != places.index(kernel.id) + 1:
            return no(f"{other.id} does not come directly after {kernel.id}", why=f"the kernels run as {', '.join(places)}",
                      hint="pack a kernel into the one before it")
        for one in (kernel, other):
            if hosted := next((n for n in walk(one.body) if isinstance(n, Loop) and n.role == "launch"), None):
                return no(f"the host runs {hosted.id} of {one.id}, which is then alone in its kernel",
                          hint=f"bind('{hosted.id}', 'seq') first")
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        kernel = _kernel(plan, self.kernel)
        assert kernel is not None
        kernels = list(plan.kernels)
        here = kernels.index(kernel)
        if self.pack:
            kernels[here : here + 2] = [replace(kernel, body=kernel.body + kernels[here + 1].body)]
            scopes = {self.pack: kernel.id}
        else:
            place = child(plan, kernel.body, self.after)
            assert place is not None
            new = Kernel(numbered(plan, kernel.id, set()), kernel.body[place + 1 :])
            kernels[here : here + 1] = [replace(kernel, body=kernel.body[: place + 1]), new]
            scopes = {kernel.id: ""}
        buffers = tuple(replace(b, scope=scopes.get(b.scope, b.scope)) for b in plan.buffers)
        return replace(plan, kernels=tuple(kernels), buffers=buffers)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        kernel = plan.kernel_of(node_id)
        if kernel is None:
            return no(f"there is no node {node_id!r}")
        if node_id != kernel.id and node_id not in [n.id for n in kernel.body]:
            above = enclosing(plan, node_id)
            return no(f"{node_id} is not at the top of {kernel.id}", "a kernel ends between two nodes of its own body",
                      " and ".join(parted_behind(above, node_id)) or (
                          f"select {above[0].id}, which ends with {node_id}" if above[0] is not kernel.body[-1] else ""))
        if len(kernel.body) == 1 and kernel is plan.kernels[-1]:
            return no(f"{kernel.id} has one part only and no kernel comes behind it", "launch parts a kernel behind a node",
                      _parts(kernel.body))
        if node_id == kernel.body[-1].id:
            return no(f"nothing stands behind {node_id} in {kernel.id}", "launch begins a kernel behind the node",
                      f"select {kernel.body[0].id}" if len(kernel.body) > 1 else "")
        return YES

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Launch]:
        kernel = plan.kernel_of(node_id)
        if kernel is None:
            return
        tops = [n.id for n in kernel.body[:-1]]
        if kernel.id == node_id:
            yield from (cls(kernel.id, after=top) for top in tops[:6])
            places = [k.id for k in plan.kernels]
            following = places[places.index(kernel.id) + 1 :]
            yield from (cls(kernel.id, pack=name) for name in following[:1])
        elif node_id in tops:
            yield cls(kernel.id, after=node_id)


def _kernel(plan: Plan, name: str) -> Kernel | None:
    return next((k for k in plan.kernels if k.id == name), None)


def _parts(body: tuple[Node, ...], behind: str = "") -> str:
    """The calls that make several parts of the one in a kernel, for each place where its loops can be parted."""
    chain: list[Loop] = []
    while len(body) == 1 and isinstance(body[0], Loop):
        chain.append(body[0])
        body = body[0].body
    return "; or ".join(" and ".join(parted_behind(chain, n.id)) + behind for n in body[:-1][:MOST_PROPOSED])


def _stored(nodes: tuple[Node, ...]) -> set[str]:
    return {view.buffer for leaf, _ in leaves(nodes) for _, view in leaf.views}


def _array(plan: Plan, buffer: str) -> str:
    """The array that a buffer stores."""
    for leaf, _, _ in plan.leaves:
        for slot, view in leaf.views:
            if view.buffer == buffer:
                return plan.statement_of[leaf.statement].accesses[slot].array
    return buffer
