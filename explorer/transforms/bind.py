"""Spread the iterations of a loop over blocks, threads, warps or lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from ..ir.finding import YES, Finding, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import BLOCK_ROLES, PLACE_ROLES, WARP_SIZE, Loop, leaves, walk
from ._nest import body_of, enclosing, from_zero, names_of, with_role
from .base import Transform, get_loop, is_whole
from .split import Split, divisible

THREADS_PER_BLOCK = 1024
"""Most threads of a block, on every GPU of compute capability 2.0 or more (CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability"; the next two constants likewise)."""
BLOCK_LIMITS = {"thread.x": 1024, "thread.y": 1024, "thread.z": 64}
GRID_LIMITS = {"block.x": 2**31 - 1, "block.y": 65535, "block.z": 65535}
MOST_LAUNCHES = 1 << 16
"""Most launches of one kernel: at some microseconds each (a queued launch of an empty kernel) some tenths of a second."""
_CHOICES = (*PLACE_ROLES, "launch", "seq")
_CUDA = {f"{place}Idx.{axis}": f"{place}.{axis}" for place in ("block", "thread") for axis in "xyz"}
"""CUDA's own words for places."""
_SAME_AXIS = {"thread.x": ("thread.x", "warp", "lane"), "warp": ("warp", "thread.x"), "lane": ("lane", "thread.x")}


@dataclass(frozen=True)
class Bind(Transform):
    """Run the iterations of a loop in different places at the same time instead of one after the other.

    Iteration ``v`` runs in the block or thread with index ``v``.  With a `count` below the extent the iterations
    are dealt out cyclically (a grid-stride loop): ``v = count * v + v.b`` with ``v.b`` bound.  The place
    ``launch`` is time again: the host launches the kernel once for each iteration of an outermost loop.
    ``bind(loop, 'seq')`` makes an ordinary loop of any loop again.  CUDA's words mean the same: ``blockIdx.x`` is
    ``block.x``, ``threadIdx.x`` is ``thread.x``.

    Several loops are bound in one step and judged together, as ``bind(('i', 'j'), 'block.x')`` or with `also`: where two
    nests of a launch hand values on, neither may be spread over blocks alone, and both may if each block finds its own
    values (loopy tags inames together in this way).

    Before::

        for i in 0…1000
            S(i)

    After ``bind('i', 'thread.x', count=256)``::

        for i in 0…4
            for i.b in 0…256  thread.x
                S(256*i + i.b)      # where 256*i + i.b < 1000
    """

    name = "bind"
    group = "Places"
    aliases = ("map", "tag", "tag_inames", "gpu_blocks", "gpu_threads", "grid_stride", "parallelize")
    elsewhere = {"Halide": "gpu_blocks, gpu_threads", "TVM": "bind", "loopy": "tag_inames", "isl": "mark"}

    loop: str = field(metadata={"kind": "loop", "help": "the loop to spread"})
    to: str = field(metadata={"kind": "choice", "choices": _CHOICES, "also": _CUDA, "help": "where its iterations run"})
    count: int | None = field(default=None, metadata={"kind": "int", "min": 1, "help": "places to use (default: all iterations)"})
    also: tuple[str, ...] = field(default=(), metadata={"kind": "loops", "help": "other loops to spread alike in the same step"})

    def __post_init__(self) -> None:
        """A tuple of loops is the first and those that are bound with it."""
        if isinstance(self.loop, tuple) and self.loop:
            object.__setattr__(self, "also", (*self.loop[1:], *self.also))
            object.__setattr__(self, "loop", self.loop[0])
        super().__post_init__()

    def _each(self) -> tuple[Bind, ...]:
        """One step for each loop."""
        return tuple(replace(self, loop=name, also=()) for name in (self.loop, *self.also))

    def _strided(self, loop: Loop) -> bool:
        return self.to not in ("seq", "launch") and self.count is not None and self.count < loop.extent

    def check(self, plan: Plan) -> Verdict:
        if len({self.loop, *self.also}) <= len(self.also):
            return no(f"a loop is named twice in {', '.join((self.loop, *self.also))}")
        for one in self._each():
            if not (verdict := one._alone(plan)):
                return verdict
            plan = one.rewrite(plan) if self.also else plan
        return YES

    def _alone(self, plan: Plan) -> Verdict:
        loop = get_loop(plan, self.loop)
        if isinstance(loop, Verdict):
            return loop
        if self.to not in _CHOICES:
            return no(f"there is no place {self.to!r}", hint=f"one of {', '.join(_CHOICES)}")
        if self.to == loop.role:
            return no(f"{loop.id} is already {loop.role}")
        launched = [n.id for n in walk(loop.body) if isinstance(n, Loop) and n.role == "launch"]
        if launched and self.to != "launch":
            return no(f"{', '.join(launched)}, inside {loop.id}, is run by the host",
                      why="loops that the host runs are outermost", hint=f"bind('{launched[0]}', 'seq') first")
        if self.to == "seq":
            return YES
        if self.count is not None and (not is_whole(self.count) or self.count < 1):
            return no(f"a loop is spread over at least 1 place, not {self.count!r}",
                      hint=f"{replace(self, count=None)} instead: a place for each iteration")
        if loop.role in ("unroll", "vector", "launch"):
            return no(f"{loop.id} is already {loop.role}", hint=f"bind('{loop.id}', 'seq') makes it an ordinary loop again")
        if self.to == "launch":
            return _outermost(plan, loop, self.count)
        if not (verdict := _free(plan, loop, self.to)) or not (verdict := _private(plan, loop, self.to)):
            return verdict
        if self._strided(loop):
            assert self.count is not None
            if isinstance(ready := divisible(plan, loop, self.count), Verdict):
                return ready
        return self._fits(plan)

    def _fits(self, plan: Plan) -> Verdict:
        """Limits that hold on every GPU; those of one GPU are checked when its kernel is built."""
        new = self.rewrite(plan)
        loop = plan.loops[self.loop]
        size = min(self.count or loop.extent, loop.extent)
        most = {**BLOCK_LIMITS, **GRID_LIMITS, "lane": WARP_SIZE, "warp": THREADS_PER_BLOCK // WARP_SIZE}[self.to]
        hint = f"bind('{loop.id}', '{self.to}', count={most}) instead"
        if size > most:
            return no(f"{loop.id} runs {size} times; {self.to} has at most {most} places", hint=hint)
        kernel = new.kernel_of(self.loop)
        assert kernel is not None
        threads = new.extents[kernel.id][3:]  # the launch's, which kernels that are joined share
        if prod(threads) > THREADS_PER_BLOCK:
            return no(
                f"a block would have {' x '.join(map(str, threads))} = {prod(threads)} threads",
                why=f"a block has at most {THREADS_PER_BLOCK}",
                hint=f"bind('{loop.id}', '{self.to}', count=…) instead",
            )
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        if self.also:
            for one in self._each():
                plan = one.rewrite(plan)
            return plan
        loop = plan.loops[self.loop]
        if not self._strided(loop):
            return with_role(from_zero(plan, loop.id) if self.to != "seq" else plan, loop.id, self.to)
        assert self.count is not None
        inner = plan.fresh(f"{loop.id}.b")
        return with_role(Split(loop.id, self.count, inner).rewrite(with_role(plan, loop.id, "seq")), inner, self.to)

    def eases(self, plan: Plan, finding: Finding) -> Iterator[str]:
        if self.to in BLOCK_ROLES:
            if not self.also:
                yield f"bind('{self.loop}', '{self.to}', also='…') instead"
            yield f"bind('{self.loop}', 'thread.x') instead"

    @classmethod
    def meant(cls, args: tuple[Any, ...]) -> str:
        """One call for each pair of a loop and a place."""
        match args:
            case ((*loops,), (*places,)) if len(loops) == len(places):
                calls = ".".join(f"bind({loop!r}, {place!r})" for loop, place in zip(loops, places, strict=True))
                return f"each bind has one place: {calls}"
            case _:
                return ""

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        return loop if isinstance(loop, Verdict) else YES

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Bind]:
        loop = get_loop(plan, node_id)
        if not isinstance(loop, Loop):
            return
        if loop.role not in ("unroll", "vector", "launch"):
            for role in ("block.x", "block.y", "thread.x", "thread.y", "warp", "lane"):
                if role == loop.role or not _free(plan, loop, role):
                    continue
                most = {**BLOCK_LIMITS, **GRID_LIMITS, "lane": WARP_SIZE, "warp": THREADS_PER_BLOCK // WARP_SIZE}[role]
                yield cls(loop.id, role, None if loop.extent <= most else min(most, 256))
            if _outermost(plan, loop, None):
                yield cls(loop.id, "launch")
        if loop.role != "seq":
            yield cls(loop.id, "seq")


def _outermost(plan: Plan, loop: Loop, count: int | None) -> Verdict:
    """Whether the host can run this loop: its kernel holds nothing else, around it are only such loops."""
    if count is not None:
        return no("the host runs all iterations of a loop", hint=f"bind('{loop.id}', 'launch') instead")
    group = next(g for g in plan.launched if plan.kernel_of(loop.id) in g)
    if len(group) > 1:
        return no(f"{', '.join(k.id for k in group)} share one launch", why="the host runs whole launches",
                  hint=f"join('{group[1].id}', 'launch') first")
    launches = prod(n.extent for n in (loop, *enclosing(plan, loop.id)) if n is loop or n.role == "launch")
    if launches > MOST_LAUNCHES:
        return no(f"that would be {launches:,} launches", why=f"a launch takes some microseconds; {MOST_LAUNCHES:,} is the limit",
                  hint=f"split('{loop.id}', …) first, so that the host runs fewer iterations")
    body, holder = body_of(plan, loop.id)
    if inner := next((n for n in enclosing(plan, loop.id) if n.role != "launch"), None):
        return no(f"{loop.id} is not outermost: {inner.id} is around it", why="the host runs whole kernels",
                  hint=f"interchange('{inner.id}', '{loop.id}') first")
    if len(body) > 1:
        kernel = plan.kernel_of(loop.id)
        assert kernel is not None
        others = names_of(n for n in body if n is not loop)
        return no(f"{holder.id} also holds {others}", why="the host runs whole kernels",
                  hint=f"launch('{kernel.id}', after=…) first: then {loop.id} is alone in its kernel")
    return YES


def _free(plan: Plan, loop: Loop, role: str) -> Verdict:
    """Whether no loop around or inside has this place already (``thread.x`` consists of ``warp`` and ``lane``)."""
    inside = [n for n in walk(loop.body) if isinstance(n, Loop)]
    for other in (*enclosing(plan, loop.id), *inside):
        if other.role in _SAME_AXIS.get(role, (role,)):
            where = "inside" if other in inside else "around"
            return no(
                f"{other.id}, {where} {loop.id}, is already {other.role}",
                why="a place has one index of each kind" if other.role == role else "thread.x is made up of warp and lane",
                hint="another place",
            )
    return YES


def _private(plan: Plan, loop: Loop, role: str) -> Verdict:
    """Whether every buffer indexed by this loop is visible from the places that it is spread over."""
    hidden = ("register", "shared") if role in BLOCK_ROLES else ("register",)
    for leaf, _ in leaves(loop.body):
        for _, view in leaf.views:
            buffer = plan.buffer_of[view.buffer]
            if buffer.space in hidden and any(loop.id in e.variables() for e in view.index):
                each = "thread" if buffer.space == "register" else "block"
                return no(
                    f"{buffer.name} in {buffer.space} memory is indexed by {loop.id}",
                    why=f"each {each} has a {buffer.name} of its own, so places cannot be cells of it",
                    hint=f"bind {loop.id} before {buffer.name} gets its storage",
                )
    return YES
