"""Let a fixed number of blocks take the tiles of a grid one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from ..gpu.units import counted
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Plan
from ..ir.tree import BLOCK_ROLES, Loop
from ._nest import nest
from .base import Transform, get_loop, is_whole
from .bind import Bind
from .coalesce import Coalesce
from .reorder import Reorder, perfect_below
from .split import Split

ORDERS = ("rows", "columns", "grouped")
WAVE = 132
"""Blocks that candidates have: one for each multiprocessor of an H200 (the catalogue of GPUs)."""
MOST_OFFERED = 3
"""Loops of a nest that are offered together."""


@dataclass(frozen=True)
class Persist(Transform):
    """Deal the tiles of a grid out to `blocks` resident blocks, each of which takes one after the other (a persistent kernel).

    The loops over tiles, nested and nothing between them, become one loop over ``t``, and block ``b`` of ``g`` takes
    ``t = b, g + b, 2*g + b, …``: ``t = g*n + b``.  Where `g` does not divide the number of tiles, the last ones are guarded.
    Loops that are bound to blocks are loops in time first.  What a block sets up, it sets up once; and blocks that run at the
    same time have tiles that are neighbours in the order chosen:

    - ``"rows"``: the last loop runs fastest, as the loops are nested;
    - ``"columns"``: of the last two loops, the first one runs fastest;
    - ``"grouped"``: `rows` iterations of the last loop but one run fastest, then the last loop, then the groups: blocks in
      flight share few rows and few columns of tiles, which the second-level cache then keeps.  A last group that is not whole
      has tiles that do nothing.

    It is `split`, `reorder`, `coalesce` and ``bind(…, count=…)`` in one step; whether tiles may run in another order, and in
    other blocks, is judged.  With `tensorize` it comes first: a guard would take a tile of an instruction apart.  Orders that
    change direction from row to row are no schedule here: their place is no sum of quotients and remainders of ``t``.

    Before::

        for i in 0…64  block.y
            for j in 0…32  block.x
                S(i, j)

    After ``persist(('i', 'j'), 132, order='grouped')``::

        for i in 0…16
            for i.b in 0…132  block.x
                # t = 132*i + i.b < 2048
                S(t // 256 * 8 + t % 8, t % 256 // 8)

    References
    ----------
    Tillet, Kung and Cox, "Triton: an intermediate language and compiler for tiled neural network computations", MAPL 2019;
    Triton's tutorials "Matrix Multiplication" (grouped order) and "Persistent Matmul".
    """

    name = "persist"
    group = "Places"
    aliases = ("persistent", "persistent_kernel", "grouped_order", "supertile", "rasterize", "tile_scheduler")

    loops: tuple[str, ...] = field(metadata={"kind": "loops", "help": "the loops over tiles, outermost first"})
    blocks: int = field(metadata={"kind": "int", "min": 1, "help": "blocks of the grid: as many as the GPU holds at a time"})
    order: str = field(default="rows", metadata={"kind": "choice", "choices": ORDERS, "help": "the order of the tiles"})
    rows: int = field(default=8, metadata={"kind": "int", "min": 2, "help": "iterations of the last loop but one in a group"})

    def check(self, plan: Plan) -> Verdict:
        if len(self.loops) < 1:
            return no("no loop over tiles is named", hint="the loops over tiles, outermost first")
        chain = nest(plan, self.loops) if self.loops[1:] else get_loop(plan, self.loops[0])
        if isinstance(chain, Verdict):
            return chain
        if self.order not in ORDERS:
            return no(f"there is no order {self.order!r}", hint=f"one of {', '.join(map(repr, ORDERS))}")
        if self.order != "rows" and len(self.loops) < 2:
            return no(f"tiles of one loop have no order {self.order!r}", "it is one of rows and columns of tiles",
                      "order='rows', or both loops over tiles")
        if not is_whole(self.blocks) or self.blocks < 1:
            return no(f"tiles are dealt out to at least 1 block, not {self.blocks!r}",
                      hint=f"{replace(self, blocks=WAVE)} instead")
        if self.order == "grouped" and (not is_whole(self.rows) or self.rows < 2):
            return no(f"a group has at least 2 rows of tiles, not {self.rows!r}", hint="order='columns' for groups of all rows")
        chosen = [plan.loops[name] for name in self.loops]
        if odd := next((x for x in chosen if x.role not in ("seq", *BLOCK_ROLES)), None):
            return no(f"{odd.id} is {odd.role}", "blocks take tiles, and a tile has all its threads",
                      f"the loops over tiles alone, or bind('{odd.id}', 'seq') first")
        tiles = prod(x.extent for x in chosen)
        if self.blocks >= tiles:
            return no(f"there {'is' if tiles == 1 else 'are'} {counted(tiles, 'tile')} for {counted(self.blocks, 'block')}",
                      "each block would take one at most", f"bind('{self.loops[0]}', 'block.x') instead"
                      + (f"; or fewer blocks than {tiles}" if tiles > 1 else ""))
        return self._steps(plan)[1]

    def rewrite(self, plan: Plan) -> Plan:
        return self._steps(plan)[0]

    def _steps(self, plan: Plan) -> tuple[Plan, Verdict]:
        """The plan after the steps that this one is made of, up to the first that does not apply, and what that one says."""
        for step in self._parts(plan):
            if not (verdict := step.check(plan)):
                return plan, verdict
            plan = step.rewrite(plan)
        return plan, YES

    def _parts(self, plan: Plan) -> Iterator[Transform]:
        loops = self.loops
        yield from (Bind(name, "seq") for name in loops if plan.loops[name].role != "seq")
        if self.order != "rows":
            *outer, i, j = loops
            fast = i
            if self.order == "grouped" and plan.loops[i].extent > self.rows:
                fast = plan.fresh(f"{i}.g")
                yield Split(i, self.rows, fast)
            inside = (j, i) if fast == i else (i, j, fast)
            yield Reorder(inside)
            loops = (*outer, *inside)
        if len(loops) > 1:
            yield Coalesce(loops)
        yield Bind(next(iter(loops)), "block.x", self.blocks)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        loop = get_loop(plan, node_id)
        if isinstance(loop, Verdict):
            return loop
        if not (chain := _tiles(loop)):
            return no(f"{loop.id} is {loop.role}", "blocks take tiles, and a tile has all its threads",
                      "select the outermost loop over tiles")
        if next(cls.candidates(plan, node_id), None):
            return YES
        chain = chain[:MOST_OFFERED]
        names, tiles = ", ".join(x.id for x in chain), prod(x.extent for x in chain)
        return no(f"there {'is' if tiles == 1 else 'are'} {counted(tiles, 'tile')} in {names}",
                  f"with {WAVE} blocks, one for each multiprocessor of an H200, each would take one at most",
                  f"bind('{loop.id}', 'block.x') instead, a block for each"
                  + (f"; or fewer blocks than {tiles}" if tiles > 1 else ""))

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Persist]:
        loop = get_loop(plan, node_id)
        chain = _tiles(loop) if isinstance(loop, Loop) else []
        for depth in range(min(len(chain), MOST_OFFERED), 0, -1):
            if prod(x.extent for x in chain[:depth]) <= WAVE:
                return
            names = tuple(x.id for x in chain[:depth])
            yield from (cls(names, WAVE, order) for order in (ORDERS if depth > 1 else ORDERS[:1]))


def _tiles(loop: Loop) -> list[Loop]:
    """The loops of a perfect nest that blocks can take, from this one inwards; of several, those on blocks if there are."""
    chain = perfect_below(loop)
    bound = [x for x in chain if x.is_block]
    roles = BLOCK_ROLES if bound else ("seq",)
    end = next((n for n, x in enumerate(chain) if x.role not in roles), len(chain))
    return chain[:end]
