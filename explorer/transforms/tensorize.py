"""Make three loops over a tile one tensor instruction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..ir.dtype import DType
from ..ir.expr import var
from ..ir.finding import YES, Verdict, no
from ..ir.instructions import INSTRUCTIONS, MOST_STEPS, STEP_BYTES, Instruction, Wgmma, group_types, wgmma, with_left_held
from ..ir.plan import Plan
from ..ir.tree import Leaf, Loop, View, ranges
from ..poly.shared_tile import NoTile, shared_tile
from ..poly.tensor import is_harmless, is_product, significand_of
from ._tensor_operands import Operand, Pair, Part, in_tiles, operand, part, spread
from .base import Transform, no_leaf


@dataclass(frozen=True)
class Tensorize(Transform):
    """Compute a tile of a product by one tensor instruction, of a warp (``mma.sync``) or of a warpgroup (``wgmma``).

    The three innermost loops around ``c[i, j] += a[i, k] * b[k, j]`` become one instruction whose shape they have.  The
    accumulator has to be a register array of whole tiles (`accumulate` or `contract`).  Where the factors are register arrays,
    too (`stage` with ``space='register'``), it is an instruction of a warp, such as 16 x 8 x 16 for halves.  Where they are
    swizzled arrays in shared memory, it is one of a warpgroup's 128 threads, such as 64 x 256 x 64; and where the first factor
    alone is a register array, one that takes it from there.  The elements of register arrays are then spread over these lanes
    as the instruction wants them, and so are the loops that fill and store them, split by the tile first: a row and a column
    become a register and a lane.  Which lane holds what is a fixed function (:mod:`~explorer.ir.layout`), so the four questions
    are asked of it as of any other place.  A warpgroup's accumulator lies as its first factor does: what one product leaves, the
    next one can take as it is.

    A register array that is too large for one thread can be `contract`-ed or staged for a product: it is the instruction that
    spreads it, and there is no kernel before.

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
        plan, row = tile.plan, tile.row
        for made, pairs in tile.parts:
            for pair in pairs:
                plan = spread(plan, pair, made, row.role)
        by_buffer = {made.buffer.name: made for made, _ in tile.parts}
        rows, columns, depth = tile.loops
        scope = {name: plan.loops[name].range for name in tile.loops}
        axes = ((rows, depth), (depth, columns), (rows, columns))
        views: list[tuple[int, View]] = []
        for slot, view in tile.leaf.views:
            if made := by_buffer.get(view.buffer):
                i, j = axes[slot]
                register = made.layout.register.substitute({"row": var(i), "column": var(j)}, scope)
                inside = (var(i), var(j)) if made.by_row else (var(j), var(i))
                view = replace(view, index=made.index(view.index, inside, register))
            views.append((slot, view))
        leaf = replace(tile.leaf, views=tuple(views), mechanism=row.name)
        body: tuple[Loop | Leaf, ...] = (leaf,)
        for name in reversed(tile.loops):
            body = (replace(plan.loops[name], body=body, role="tensor"),)
        buffers = tuple(replace(x, shape=by_buffer[x.name].shape) if x.name in by_buffer else x for x in plan.buffers)
        return replace(plan.replace_node(tile.outermost, *body), buffers=buffers)

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        if next(cls.candidates(plan, node_id), None):
            return YES
        products = [(leaf, above) for leaf, above, _ in plan.leaves if is_product(plan.statement_of[leaf.statement])]
        if not products:
            return no(f"no product is summed in {plan.program.name}",
                      "tensorize takes t += a * b in a loop k over both factors' elements, with rows and columns around it",
                      "write the product as a statement of its own; or factor_out what else its terms hold")
        shallow = (leaf for leaf, above in products if len(above) < 3 and node_id in {leaf.id, *(x.id for x in above)})
        if near := next(shallow, None):
            return no(f"{near.id} stands in fewer than three loops", "a tile has rows, columns and a depth",
                      "split a loop, so that there is one for each")
        places = "; or ".join(f"select {leaf.id} or a loop around it: {', '.join(x.id for x in above[-3:])}"
                              for leaf, above in products)
        return no(f"no product is summed in the three innermost loops at {node_id}",
                  "tensorize takes t += a * b in loops over rows, columns and the depth of a tile", places)

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Tensorize]:
        for leaf, above, _ in plan.leaves:
            near = {leaf.id, *(x.id for x in above[-3:])}
            if node_id in near and plan.statement_of[leaf.statement].update == "sum" and len(above) > 2:
                yield cls(leaf.id)


@dataclass(frozen=True)
class Tile:
    """What the instruction takes the place of.

    Attributes
    ----------
    plan : Plan
        With the other loops over its register arrays split by the tile.
    leaf : Leaf
    row : Instruction
    loops : tuple of str
        Over rows, columns and depth.
    outermost : str
        The first of these.
    parts : tuple of (Part, tuple of Pair)
        Its register arrays, and the loops over them elsewhere.
    """

    plan: Plan
    leaf: Leaf
    row: Instruction
    loops: tuple[str, str, str]
    outermost: str
    parts: tuple[tuple[Part, tuple[Pair, ...]], ...]


def tile_of(plan: Plan, name: str) -> Tile | Verdict:
    """The tile of an update, or why it is none."""
    hit = plan.resolve(name)
    if hit is None:
        return no_leaf(plan, name)
    leaf, above, _ = hit
    statement, scope = plan.statement_of[leaf.statement], ranges(above)
    if leaf.mechanism != "plain" or leaf.collect:
        return no(f"{leaf.id} is {leaf.mechanism if leaf.mechanism != 'plain' else 'collected over threads'} already")
    if not is_product(statement):
        return no(f"{leaf.id} is no sum of products", why="a tensor instruction computes c[i, j] += a[i, k] * b[k, j]")
    if (refusal := _unmultiplied(plan, leaf)) is not None:
        return refusal
    nest = above[-3:]
    if (refusal := _not_alone(leaf, nest)) is not None:
        return refusal
    if bound := next((x for x in above if x.role in ("lane", "thread.x")), None):
        return no(f"{bound.id} binds {bound.role} around {leaf.id}",
                  why="the lanes of a warp, or of a warpgroup, run it together",
                  hint=f"bind('{bound.id}', 'seq'), and warps, or thread.y for warpgroups, instead of threads")
    for c in statement.domain:
        e = c.expr.substitute(dict(leaf.at), scope)
        if e.variables() & {x.id for x in nest} and (c.equality or e.interval(scope)[0] < 0) and (
                not is_harmless(plan, leaf, above, c)):
            return no(f"{leaf.id} does not run in all iterations of the tile",
                      why="the instruction has no partial tiles, and beyond the edge its factors are not surely zeros",
                      hint="stage both factors (with zeros beyond the edge, and behind a diagonal with masked=True), "
                           "or sizes that are multiples of the tile")
    return _operands(plan, leaf, nest)


def _unmultiplied(plan: Plan, leaf: Leaf) -> Verdict | None:
    """Why no instruction multiplies elements of these types, whatever the loops and places are."""
    statement = plan.statement_of[leaf.statement]
    a, b, c = (plan.array_of[access.array].dtype for access in statement.accesses)
    kept = [row for row in INSTRUCTIONS.values() if row.significand == significand_of(statement)]
    if any((row.a, row.b, row.c) == (a, b, c) for row in kept):
        return None
    have = "; ".join(dict.fromkeys(f"{row.a} * {row.b} into {row.c}" for row in kept))
    factors = list(dict.fromkeys(f"{row.a}" for row in kept if row.a == row.b and row.c == c))
    sums = list(dict.fromkeys(f"{row.c}" for row in kept if (row.a, row.b) == (a, b)))
    hint = f"a sum in {_any_of(sums)}" if sums else f"factors in arrays of {_any_of(factors)}" if factors else ""
    return no(f"no tensor instruction multiplies {a} by {b} into {c}", f"there are {have}",
              ", or ".join(filter(None, (hint, _shorter(leaf, a, b, c)))))


def _any_of(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _not_alone(leaf: Leaf, nest: tuple[Loop, ...]) -> Verdict | None:
    """Why the three innermost loops around a leaf are no tile: what else is in them, and how it gets out."""
    what, why = f"{leaf.id} is not alone in three sequential loops", "the instruction is a whole tile"
    for loop, inner in zip(nest, (*nest[1:], leaf), strict=True):
        if len(loop.body) > 1:
            place = loop.body.index(inner)
            others = ", ".join(n.id for n in loop.body if n is not inner)
            return no(f"{what}: {others} {'stand' if len(loop.body) > 2 else 'stands'} beside it in {loop.id}", why,
                      f"distribute('{loop.id}', '{loop.body[place - 1 if place else 0].id}')")
    if bound := next((x for x in nest if x.role not in ("seq", "unroll")), None):
        return no(f"{what}: {bound.id} is {bound.role}", why,
                  f"bind('{bound.id}', 'seq'); or split a loop of the tile, and reorder the new one inwards")
    if len(nest) < 3 or any(x.start for x in nest):
        return no(what, why, "split loops by the extents of an instruction, and reorder the new ones inwards")
    return None


def _operands(plan: Plan, leaf: Leaf, nest: tuple[Loop, ...]) -> Tile | Verdict:
    """The tile of a product in three loops."""
    ids = {x.id for x in nest}
    found: list[Operand] = []
    for slot in range(3):
        one = operand(plan, leaf, slot, ids)
        if isinstance(one, Verdict):
            return one
        found.append(one)
    left, right, target = (set(x.axes) for x in found)
    shared = left & right
    if len(shared) != 1 or target != (left | right) - shared:
        return no(f"{leaf.id} is no product of matrices",
                  why="each factor has the loop that is summed over, and one loop of the result")
    (k,), (m,), (n,) = shared, left - shared, right - shared
    extents = {x: plan.loops[x].extent for x in (m, n, k)}
    row = _instruction(leaf, found, (extents[m], extents[n], extents[k]), significand_of(plan.statement_of[leaf.statement]))
    if isinstance(row, Verdict):
        return row
    if isinstance(row, Wgmma):
        layouts = {2: (row.accumulator, m)} if row.left is None else {0: (row.left, m), 2: (row.accumulator, m)}
        for slot in row.shared:
            view, free = leaf.view(slot), (m, n)[slot]
            assert view is not None
            if isinstance(tile := shared_tile(row, found[slot].buffer, view, free, k), NoTile):
                return no(f"a warpgroup cannot read {view.buffer} as it lies", tile.why, tile.hint)
    else:
        layouts = {0: (row.left, m), 1: (row.right, k), 2: (row.accumulator, m)}
    parts: list[tuple[Part, tuple[Pair, ...]]] = []
    for slot, (layout, rows) in layouts.items():
        made = part(found[slot], leaf, slot, layout, rows, extents)
        if isinstance(made, Verdict):
            return made
        ready = in_tiles(plan, made, leaf.id)
        if isinstance(ready, Verdict):
            return ready
        plan, pairs = ready
        parts.append((made, pairs))
    held = {made.buffer.name for made, _ in parts}
    for other, _, _ in plan.leaves:
        both = sorted({v.buffer for _, v in other.views} & held) if other.id != leaf.id else []
        if len(both) > 1:
            return no(f"{other.id} uses {', '.join(both)}, too",
                      "each has a layout of its own in the registers of the lanes, and other instructions read one at a time",
                      f"tensorize {leaf.id} before a step makes {other.id} of it, as pipeline with across does"
                      if other.statement == leaf.statement else "stage the factors for it alone")
    return Tile(plan, leaf, row, (m, n, k), nest[0].id, tuple(parts))


def _instruction(leaf: Leaf, found: list[Operand], extents: tuple[int, int, int], significand: int) -> Instruction | Verdict:
    """The instruction for these types, extents and places of the factors."""
    m, n, k = extents
    a, b, c = (x.buffer.dtype for x in found)
    first, second = (x.buffer for x in found[:2])
    if second.space == "shared":
        return _of_group(leaf, found, extents, significand)
    if first.space == "shared":
        return no(f"{first.name} is in shared memory and {second.name} in registers",
                  "of an instruction that reads shared memory the second factor is there, and the first one may be in registers",
                  f"stage {first.name} into registers, too, for a warp's instruction; or leave {second.name} in shared memory "
                  "for a warpgroup's; or commute the factors, if rows may become columns")
    rows = [row for row in INSTRUCTIONS.values() if (row.significand, row.a, row.b, row.c) == (significand, a, b, c)]
    for row in rows:
        if (row.m, row.n, row.k) == (m, n, k):
            return row
    shapes = ", ".join(f"{r.m} x {r.n} x {r.k}" for r in rows)
    return no(f"the tile is {m} x {n} x {k} (rows of the first factor, columns of the second, depth)",
              why=f"for {a} into {c} there are {shapes}", hint="split the three loops by these")


def _shorter(leaf: Leaf, *types: DType) -> str:
    """What lets f32 factors into a tensor instruction."""
    return f"approximate('{leaf.id}', factors='tf32') first, which leaves 11 bits of each" if (
        {t.name for t in types} == {"f32"}) else ""


def _of_group(leaf: Leaf, found: list[Operand], extents: tuple[int, int, int], significand: int) -> Wgmma | Verdict:
    """The instruction of a warpgroup."""
    m, n, k = extents
    a, b, c = (x.buffer.dtype for x in found)
    if (a, b, c) not in group_types() and not significand:
        have = "; ".join(f"{x} * {y} into {z}" for x, y, z in group_types())
        return no(f"no instruction of a warpgroup multiplies {a} by {b} into {c}", why=f"there are {have}",
                  hint="stage the factors into registers for an instruction of a warp")
    if row := wgmma(m, n, k, a, b, c, significand):
        return with_left_held(row) if found[0].buffer.space == "register" else row
    step = STEP_BYTES // a.bytes
    columns = "multiples of 16 from 32 on" if c.kind == "int" else "multiples of 8"
    return no(f"the tile is {m} x {n} x {k} (rows of the first factor, columns of the second, depth)",
              why=f"a warpgroup multiplies 64 rows, 8 to 256 columns ({columns}), and a depth of multiples of {step} up to "
                  f"{step * MOST_STEPS}",
              hint="split the three loops so; or stage the factors into registers for a warp's instruction")
