"""Block several loops of a perfect nest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import Loop
from ._nest import nest
from .base import Transform, get_loop, is_several
from .reorder import Reorder, perfect_below
from .split import Split


@dataclass(frozen=True)
class Tile(Transform):
    """Run a perfect nest block by block: split each loop by its size, then all outer loops before all inner ones.

    ``v = size * v + v.i`` for each loop; the instances run in the order ``(i, j, …, i.i, j.i, …)``.  Partial
    blocks at the edges are guarded.  Loops between the listed ones that are not listed stay at their depth.

    Before::

        for i in 0…1000
            for j in 0…1000
                S(i, j)

    After ``tile(('i', 'j'), (32, 64))``::

        for i in 0…32
            for j in 0…16
                for i.i in 0…32
                    for j.i in 0…64
                        S(32*i + i.i, 64*j + j.i)      # where 32*i + i.i < 1000 and 64*j + j.i < 1000
    """

    name = "tile"
    group = "Loops"
    aliases = ("block", "blocking", "strip_mine_and_interchange", "band_tile")
    elsewhere = {"Halide": "tile", "TVM": "split, reorder", "Exo": "divide_loop, reorder_loops", "isl": "band_tile",
                 "Clay": "tile"}

    loops: tuple[str, ...] = field(metadata={"kind": "loops", "help": "the loops to tile, outermost first"})
    sizes: tuple[int, ...] = field(metadata={"kind": "ints", "min": 1,
                                             "help": "iterations of each tile: one per loop, or one for all"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_several(self.sizes) and is_several(self.loops) and len(self.sizes) == 1:
            object.__setattr__(self, "sizes", self.sizes * len(self.loops))

    def check(self, plan: Plan) -> Verdict:
        if not self.loops:
            return no("tile takes at least one loop")
        if len(self.loops) != len(self.sizes):
            return no(f"{len(self.loops)} loops cannot be tiled by {len(self.sizes)} sizes", hint="give one size per loop")
        chain = nest(plan, tuple(self.loops))
        if isinstance(chain, Verdict):
            return chain
        for name, size in zip(self.loops, self.sizes, strict=True):
            if not (verdict := Split(name, size).check(plan)):
                return verdict
            plan = Split(name, size).rewrite(plan)
        return YES

    def rewrite(self, plan: Plan) -> Plan:
        inners: list[str] = []
        for name, size in zip(self.loops, self.sizes, strict=True):
            inners.append(plan.fresh(f"{name}.i"))
            plan = Split(name, size, inners[-1]).rewrite(plan)
        order = Reorder((*self.loops, *inners))
        return order.rewrite(plan) if len(inners) > 1 else plan

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        if len(perfect_below(loop)) < 2:
            return no(f"{loop.id} has no loop perfectly nested in it", hint="split tiles a single loop")
        if not next(cls.candidates(plan, node_id), None):
            chain = perfect_below(loop)
            if odd := next((x for x in chain[:2] if x.role != "seq"), None):
                return no(f"{odd.id} is {odd.role}", "only loops in time are divided", f"bind('{odd.id}', 'seq') first")
            sizes = ", ".join(f"{x.id} runs {x.extent} time{'s' * (x.extent != 1)}" for x in chain[:2])
            return no(f"{chain[0].id} and {chain[1].id} are too short for tiles", sizes)
        return YES

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Tile]:
        loop = get_loop(plan, node_id)
        if not isinstance(loop, Loop):
            return
        band = [n for n in perfect_below(loop) if n.role == "seq" and n.extent > 1]
        for depth in range(2, min(len(band), 3) + 1):
            shortest = min(n.extent for n in band[:depth])
            sizes = [size for size in (8, 16, 32, 64) if size < shortest] or [size for size in (2, 4) if size < shortest]
            yield from (cls(tuple(n.id for n in band[:depth]), (size,) * depth) for size in sizes)
