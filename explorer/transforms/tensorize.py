"""Make three loops over a tile one tensor instruction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.expr import Expr, var
from ..ir.finding import YES, Verdict, no
from ..ir.instructions import INSTRUCTIONS, Mma
from ..ir.layout import LANES, Layout
from ..ir.plan import Plan
from ..ir.scalar import Call, Read
from ..ir.tree import Leaf, Loop, ranges, retime
from .base import Transform


@dataclass(frozen=True)
class Tensorize(Transform):
    """Compute a tile of a product by one tensor instruction of a warp (``mma.sync``).

    The three innermost loops around ``c[i, j] += a[i, k] * b[k, j]`` become one instruction whose shape they have, such as
    16 x 8 x 16 for halves.  Accumulator and factors have to be register arrays of just that tile (`accumulate` or `contract`, and
    `stage` with ``space='register'``).  Their elements are then spread over the 32 lanes of a warp as the instruction wants them,
    and so are the loops that fill them and store them: a row and a column become a register and a lane.  Which lane holds what is
    a fixed function (:mod:`~explorer.ir.layout`), so the four questions are asked of it as of any other place.

    Before::

        for i.i in 0…16
            for j.i in 0…8
                acc[i.i, j.i] = 0.0
        for k in 0…4
            …                                  # a_r and b_r are filled
            for i.i.3 in 0…16
                for j.i.3 in 0…8
                    for k.i in 0…16
                        acc[i.i.3, j.i.3] += a_r[i.i.3, k.i] * b_r[k.i, j.i.3]

    After ``tensorize('S1')``::

        for i.i in 0…4  unroll                 # registers of a lane
            for j.i in 0…32  lane
                acc[i.i] = 0.0
        for k in 0…4
            …
            m16n8k16: acc += a_r * b_r         # in all lanes at once
    """

    name = "tensorize"
    group = "Hardware"
    aliases = ("tensorise", "tensor_core")
    elsewhere = {"TVM": "tensorize", "Exo": "replace"}

    leaf: str = field(metadata={"kind": "leaf", "help": "the update that multiplies and adds"})

    def check(self, plan: Plan) -> Verdict:
        found = tile_of(plan, self.leaf)
        return found if isinstance(found, Verdict) else YES

    def rewrite(self, plan: Plan) -> Plan:
        tile = tile_of(plan, self.leaf)
        assert isinstance(tile, Tile)
        for part in tile.parts:
            for pair in part.pairs:
                plan = _spread(plan, pair, part)
        by_buffer = {part.buffer: part for part in tile.parts}
        views = tuple((slot, replace(v, index=(*v.index[:-2], by_buffer[v.buffer].register))) for slot, v in tile.leaf.views)
        leaf = replace(tile.leaf, views=views, mechanism=tile.row.name)
        body: tuple[Loop | Leaf, ...] = (leaf,)
        for name in reversed(tile.loops):
            body = (replace(plan.loops[name], body=body, role="tensor"),)
        layouts = {part.buffer: part.layout for part in tile.parts}
        buffers = tuple(replace(x, shape=(*x.shape[:-2], layouts[x.name].registers)) if x.name in layouts else x
                        for x in plan.buffers)
        return replace(plan.replace_node(tile.outermost, *body), buffers=buffers)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Tensorize]:
        for leaf, above, _ in plan.leaves:
            near = {leaf.id, *(x.id for x in above[-3:])}
            if node_id in near and plan.statement_of[leaf.statement].update == "sum" and len(above) > 2:
                yield cls(leaf.id)


@dataclass(frozen=True)
class Pair:
    """Two loops, one around the other alone, that run over a register array of the tile."""

    outer: str
    inner: str
    row: str
    column: str


@dataclass(frozen=True)
class Part:
    """A register array of the tile, its layout, the register of an element, and the loops that run over it elsewhere."""

    buffer: str
    layout: Layout
    register: Expr
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Tile:
    """What the instruction takes the place of; its loops run over rows, columns and depth."""

    leaf: Leaf
    row: Mma
    loops: tuple[str, str, str]
    outermost: str
    parts: tuple[Part, ...]


def tile_of(plan: Plan, name: str) -> Tile | Verdict:
    """The tile of an update, or why it is none."""
    hit = plan.resolve(name)
    if hit is None:
        return no(f"there is no statement {name!r}")
    leaf, above, _ = hit
    statement, scope = plan.statement_of[leaf.statement], ranges(above)
    if leaf.mechanism != "plain" or leaf.collect:
        return no(f"{leaf.id} is {leaf.mechanism if leaf.mechanism != 'plain' else 'collected over threads'} already")
    if statement.update != "sum" or statement.value != Call("mul", (Read(0), Read(1))) or len(statement.reads) != 2:
        return no(f"{leaf.id} is no sum of products", why="a tensor instruction computes c[i, j] += a[i, k] * b[k, j]")
    nest = above[-3:]
    if len(nest) < 3 or any(len(x.body) != 1 or x.role not in ("seq", "unroll") or x.start for x in nest):
        return no(f"{leaf.id} is not alone in three sequential loops", why="the instruction is a whole tile",
                  hint="distribute what stands beside it, and split and reorder the loops of the tile inwards")
    if bound := next((x for x in above if x.role in ("lane", "thread.x")), None):
        return no(f"{bound.id} binds {bound.role} around {leaf.id}", why="the 32 lanes of a warp run the instruction together",
                  hint=f"bind('{bound.id}', 'seq'), and warps instead of threads")
    for c in statement.domain:
        e = c.expr.substitute(dict(leaf.at), scope)
        if c.equality or e.interval(scope)[0] < 0:
            return no(f"{leaf.id} does not run in all iterations of the tile", why="the instruction has no partial tiles",
                      hint="sizes that are multiples of the tile")
    ids = {x.id for x in nest}
    left, right, target = (_axes(plan, leaf, slot, ids) for slot in range(3))
    for axes in (left, right, target):
        if isinstance(axes, Verdict):
            return axes
    assert not isinstance(left, Verdict)
    assert not isinstance(right, Verdict)
    assert not isinstance(target, Verdict)
    shared = set(left[1]) & set(right[1])
    if len(shared) != 1 or set(target[1]) != (set(left[1]) | set(right[1])) - shared or len(ids) != 3:
        return no(f"{leaf.id} is no product of matrices",
                  why="each factor has the loop that is summed over, and one loop of the result")
    (k,), (m,), (n,) = shared, set(left[1]) - shared, set(right[1]) - shared
    row = _instruction(plan, (left[0], right[0], target[0]), tuple(plan.loops[x].extent for x in (m, n, k)))
    if isinstance(row, Verdict):
        return row
    parts: list[Part] = []
    for (buffer, axes), layout, (r, c) in zip((left, right, target), (row.left, row.right, row.accumulator),
                                              ((m, k), (k, n), (m, n)), strict=True):
        pairs = _pairs(plan, buffer, leaf.id, by_row=axes == (r, c))
        if isinstance(pairs, Verdict):
            return pairs
        parts.append(Part(buffer, layout, layout.register.substitute({"row": var(r), "column": var(c)}, scope), pairs))
    return Tile(leaf, row, (m, n, k), nest[0].id, tuple(parts))


def _axes(plan: Plan, leaf: Leaf, slot: int, ids: set[str]) -> tuple[str, tuple[str, str]] | Verdict:
    """The register array of an access and the two loops that are its last two axes."""
    view = leaf.view(slot)
    name = plan.statement_of[leaf.statement].accesses[slot].array
    if view is None or plan.buffer_of[view.buffer].space != "register":
        where = plan.buffer_of[view.buffer].space if view else "global"
        return no(f"{view.buffer if view else name} is in {where} memory",
                  why="the instruction takes its operands from registers",
                  hint=f"accumulate('{name}')" if slot == 2 else f"stage('{name}', …, space='register') around the tile")
    found = tuple(name if e == var(name) else "" for e in view.index[-2:] for name in (next(iter(e.variables()), ""),))
    if len(found) != 2 or not set(found) <= ids or any(e.variables() & ids for e in view.index[:-2]):
        return no(f"the index of {view.buffer} is not two loops of the tile", why="the array has to be just the tile",
                  hint=f"stage {name} at the loop around the tile")
    return view.buffer, (found[0], found[1])


def _instruction(plan: Plan, buffers: tuple[str, str, str], extents: tuple[int, ...]) -> Mma | Verdict:
    """The instruction for these types and extents."""
    types = tuple(plan.buffer_of[b].dtype for b in buffers)
    exact = [row for row in INSTRUCTIONS.values() if not row.significand]  # tf32 drops bits of the factors
    rows = [row for row in exact if (row.a, row.b, row.c) == types]
    if not rows:
        have = "; ".join(dict.fromkeys(f"{r.a} * {r.b} into {r.c}" for r in exact))
        return no(f"no tensor instruction multiplies {types[0]} by {types[1]} into {types[2]}", why=f"there are {have}")
    for row in rows:
        if (row.m, row.n, row.k) == extents:
            return row
    shapes = ", ".join(f"{r.m} x {r.n} x {r.k}" for r in rows)
    return no(f"the tile is {' x '.join(map(str, extents))} (rows of the first factor, columns of the second, depth)",
              why=f"for {types[0]} into {types[2]} there are {shapes}", hint="split the three loops by these")


def _pairs(plan: Plan, buffer: str, tile: str, by_row: bool) -> tuple[Pair, ...] | Verdict:
    """The loops over a register array in all other leaves that use it."""
    found: dict[str, Pair] = {}
    for leaf, above, _ in plan.leaves:
        for _, view in leaf.views if leaf.id != tile else ():
            if view.buffer != buffer:
                continue
            outer, inner = above[-2:] if len(above) > 1 else (None, None)
            if outer is None or inner is None or len(outer.body) != 1 or len(inner.body) != 1 or leaf.collect or (
                    {outer.role, inner.role} - {"seq", "unroll"}) or leaf.mechanism != "plain":
                return no(f"{leaf.id} uses {buffer}, and is not alone in two sequential loops over it",
                          why="the lanes of a warp share the array, and those loops with it",
                          hint=f"distribute the loops around {leaf.id}")
            axes = view.index[-2:]
            if set(axes) != {var(outer.id), var(inner.id)} or outer.start or inner.start or any(
                    e.variables() & {outer.id, inner.id} for e in view.index[:-2]):
                return no(f"the index of {buffer} in {leaf.id} is not the two loops around it",
                          why="a row and a column become a register and a lane")
            first, second = (str(next(iter(e.variables()))) for e in axes)
            row, column = (first, second) if by_row else (second, first)
            found[outer.id] = Pair(outer.id, inner.id, row, column)
    return tuple(found.values())


def _spread(plan: Plan, pair: Pair, part: Part) -> Plan:
    """Two loops over rows and columns become one over registers and one over lanes."""
    hit = plan.find(pair.outer)
    assert hit is not None
    outer, above = hit
    assert isinstance(outer, Loop)
    inner, layout = outer.body[0], part.layout
    assert isinstance(inner, Loop)
    there = {"register": var(outer.id), "lane": var(inner.id)}
    elements = {"row": var(pair.row), "column": var(pair.column)}
    forward = {pair.row: layout.row.substitute(there), pair.column: layout.column.substitute(there)}
    backward = {outer.id: layout.register.substitute(elements), inner.id: layout.lane.substitute(elements)}
    scope = {**ranges(above), outer.id: (0, layout.registers - 1), inner.id: (0, LANES - 1)}
    (leaf,) = retime(inner.body, forward, backward, scope)
    assert isinstance(leaf, Leaf)
    views = tuple((slot, replace(v, index=(*v.index[:-2], var(outer.id))) if v.buffer == part.buffer else v)
                  for slot, v in leaf.views)
    body = replace(inner, extent=LANES, role="lane", body=(replace(leaf, views=views),))
    return plan.replace_node(outer.id, replace(outer, extent=layout.registers, role="unroll", body=(body,)))
