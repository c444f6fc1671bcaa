"""The move ``swap_axes``: two axes of the grid, or of the block, exchange their loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import BLOCK_ROLES, THREAD_ROLES, WARP_ROLES, Kernel, Loop, Node, walk
from .base import Transform, no_kernel
from .bind import BLOCK_LIMITS, GRID_LIMITS


@dataclass(frozen=True)
class SwapAxes(Transform):
    """Let two axes of the grid, or of the block, trade their loops: what ran along one runs along the other.

    Which loop has ``thread.x`` decides what the 32 threads of a warp take: neighbours along x are neighbours in a warp.  A
    reduction with its reduced loop along x is combined by shuffles; with its parallel loop along x, neighbouring lanes have
    neighbouring results, and the threads along y meet in shared memory.  Panamera binds reduced loops to x and parallel ones to
    y, or the other way round; this is the way round, for all loops of a launch at once, where `bind` takes one loop and refuses
    a place that another one has.  Every instance keeps its block or thread up to the order of their numbers, so no order between
    instances is lost; barriers are derived anew, as other threads share a warp.

    Before::

        kernel rows
            for i in 0…8  block.x
                for i.i in 0…8  thread.y
                    for k in 0…32  thread.x
                        y[8*i + i.i] += x[8*i + i.i, k]  # k combined by shuffle

    After ``swap_axes('rows', 'thread.x', 'thread.y')``::

        kernel rows
            for i in 0…8  block.x
                for i.i in 0…8  thread.x
                    for k in 0…32  thread.y
                        y[8*i + i.i] += x[8*i + i.i, k]  # k combined by shuffle

    References
    ----------
    Zhao et al., "Parallelizing Neural Network Models Effectively on GPU by Implementing Reductions Atomically" (Panamera), PACT
    2022, section 4: parallel loops on the y axes of grid and block, reduced ones on the x axes.
    """

    name = "swap_axes"
    group = "Places"
    aliases = ("swap", "swapaxes", "swap_binding", "transpose_block")

    kernel: str = field(metadata={"kind": "kernel", "help": "the kernel; of several phases of one launch the first"})
    first: str = field(metadata={"kind": "choice", "choices": (*BLOCK_ROLES, *THREAD_ROLES), "help": "an axis"})
    second: str = field(metadata={"kind": "choice", "choices": (*BLOCK_ROLES, *THREAD_ROLES), "help": "the axis to swap it with"})

    def check(self, plan: Plan) -> Verdict:
        kernel = next((k for k in plan.kernels if k.id == self.kernel), None)
        if kernel is None:
            return no(f"there is no kernel {self.kernel!r}", hint=f"one of {', '.join(k.id for k in plan.kernels)}")
        group = next(g for g in plan.launched if kernel in g)
        if kernel.join:
            return no(f"{kernel.id} runs in the launch of {group[0].id}", "the axes are those of the launch",
                      f"swap_axes('{group[0].id}', '{self.first}', '{self.second}')")
        axes = (self.first, self.second)
        kind = next((roles for roles in (BLOCK_ROLES, THREAD_ROLES) if set(axes) <= set(roles)), None)
        if kind is None or self.first == self.second:
            return no(f"{self.first} and {self.second} are not two axes of the grid, or two of the block",
                      hint=f"two of {', '.join(BLOCK_ROLES)}, or two of {', '.join(THREAD_ROLES)}")
        found = [n for k in group for n in walk(k.body) if isinstance(n, Loop)]
        if "thread.x" in axes and (narrow := next((n for n in found if n.role in WARP_ROLES), None)):
            return no(f"{narrow.id} is a {narrow.role}", why="warps and their lanes are along thread.x",
                      hint=f"bind('{narrow.id}', 'seq') first")
        if not any(n.role in axes for n in found):
            return no(f"no loop of {kernel.id} is along {self.first} or {self.second}",
                      hint=f"bind a loop to {self.first} or {self.second} first")
        return self._fits(found)

    def _fits(self, found: list[Loop]) -> Verdict:
        """Limits of the axes that hold on every GPU."""
        names, limits = self._names, {**BLOCK_LIMITS, **GRID_LIMITS}
        for loop in found:
            if loop.role in names and loop.extent > limits[names[loop.role]]:
                other = names[loop.role]
                return no(f"{loop.id} runs {loop.extent} times; {other} has at most {limits[other]} places",
                          hint=f"split('{loop.id}', …) first")
        return YES

    @property
    def _names(self) -> dict[str, str]:
        return {self.first: self.second, self.second: self.first}

    def rewrite(self, plan: Plan) -> Plan:
        names = self._names

        def turned(node: Node) -> Node:
            if not isinstance(node, Loop):
                return node
            return replace(node, role=names.get(node.role, node.role), body=tuple(map(turned, node.body)))

        group = {k.id for g in plan.launched if g[0].id == self.kernel for k in g}
        return replace(plan, kernels=tuple(replace(k, body=tuple(map(turned, k.body))) if k.id in group else k
                                           for k in plan.kernels))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        kernel = next((k for k in plan.kernels if k.id == node_id), None)
        if kernel is None:
            return no_kernel(plan, node_id)
        return cls(node_id, *_likely(kernel)).check(plan)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[SwapAxes]:
        kernel = next((k for k in plan.kernels if k.id == node_id), None)
        if kernel is None:
            return
        roles = {n.role for n in walk(kernel.body) if isinstance(n, Loop)}
        both = [pair for axes in (THREAD_ROLES, BLOCK_ROLES) for pair in combinations(axes, 2) if roles.issuperset(pair)]
        yield from (step for pair in dict.fromkeys((_likely(kernel), *both)) if (step := cls(node_id, *pair)).check(plan))


def _likely(kernel: Kernel) -> tuple[str, str]:
    """The two axes of the block, or else of the grid, that one would swap."""
    roles = {n.role for n in walk(kernel.body) if isinstance(n, Loop)}
    threads = bool(roles & set(THREAD_ROLES)) or not roles & set(BLOCK_ROLES)
    return ("thread.x", "thread.y") if threads else ("block.x", "block.y")
