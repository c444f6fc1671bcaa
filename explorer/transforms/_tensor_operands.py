"""The operands of a tensor instruction: which arrays they are, and the loops that run over their register arrays elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from ..ir.expr import Expr, var
from ..ir.finding import Verdict, no
from ..ir.layout import Layout
from ..ir.plan import Buffer, Plan
from ..ir.tree import Leaf, Loop, View, ranges, retime
from .reorder import permuted, reordered
from .split import Split


@dataclass(frozen=True)
class Operand:
    """A factor or the accumulator of a product: its array, and the loops of the tile that run over its last two axes."""

    buffer: Buffer
    axes: tuple[str, str]


@dataclass(frozen=True)
class Part:
    """A register array that holds tiles, its layout within one, and the extents of one along its last two axes.

    `by_row` says whether these two axes are a tile's rows and columns, or the other way round.
    """

    buffer: Buffer
    layout: Layout
    extents: tuple[int, int]
    by_row: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the array of fragments: tiles along both axes, where there are several, and the registers of one."""
        tiles = (n // size for n, size in zip(self.buffer.shape[-2:], self.extents, strict=True))
        return (*self.buffer.shape[:-2], *(n for n in tiles if n > 1), self.layout.registers)

    def index(self, index: tuple[Expr, ...], inside: tuple[Expr, Expr], register: Expr) -> tuple[Expr, ...]:
        """The place of an element of the array in the array of fragments; `inside` are its coordinates within a tile."""
        tiles = [divided(e - place, size) for e, place, size in zip(index[-2:], inside, self.extents, strict=True)]
        counts = [n // size for n, size in zip(self.buffer.shape[-2:], self.extents, strict=True)]
        return (*index[:-2], *(e for e, n in zip(tiles, counts, strict=True) if n > 1), register)


@dataclass(frozen=True)
class Pair:
    """Two loops over one tile of a register array, one around the other alone, and around nothing but leaves."""

    outer: str
    inner: str
    row: str
    column: str


def operand(plan: Plan, leaf: Leaf, slot: int, tile: set[str]) -> Operand | Verdict:
    """The array of an access, and the loops of the tile that are its last two axes.

    Parameters
    ----------
    plan : Plan
    leaf : Leaf
    slot : int
    tile : set of str
        The three loops.
    """
    view, name = leaf.view(slot), plan.statement_of[leaf.statement].accesses[slot].array
    spaces = ("register",) if slot == 2 else ("register", "shared")
    if view is None or plan.buffer_of[view.buffer].space not in spaces:
        where = plan.buffer_of[view.buffer].space if view else "global"
        return no(f"{view.buffer if view else name} is in {where} memory",
                  why="the instruction takes its operands from registers" if slot == 2 else
                  "the instruction of a warp takes its factors from registers, that of a warpgroup from shared memory, the first "
                  "one from registers, too",
                  hint=_nearer(plan, leaf, name, slot))
    used = [sorted(e.variables() & tile) for e in view.index[-2:]]
    plain = len(used) == 2 and all(len(names) == 1 and e.coefficient(names[0]) == 1
                                   and names[0] not in (e - var(names[0])).variables()
                                   for e, names in zip(view.index[-2:], used, strict=True))
    if not plain or any(e.variables() & tile for e in view.index[:-2]):
        return no(f"the index of {view.buffer} is not two loops of the tile", why="its last two axes have to be rows and columns",
                  hint=f"stage {name} at the loop around the tile")
    return Operand(plan.buffer_of[view.buffer], (used[0][0], used[1][0]))


def _nearer(plan: Plan, leaf: Leaf, name: str, slot: int) -> str:
    """The step that brings an operand where an instruction takes it from."""
    if slot == 2:
        own = any(a.name == name for a in plan.program.temporaries)
        return f"contract('{name}', 'register')" if own else f"accumulate('{name}')"
    hit = plan.find(leaf.id)
    around = hit[1][:-3] if hit else ()
    if not around:
        return f"stage('{name}', …, space='register') around the tile"
    at = f"stage('{name}', '{around[-1].id}'"
    return f"{at}, engine='bulk', swizzle=128); or {at}, space='register')"


def part(found: Operand, leaf: Leaf, slot: int, layout: Layout, rows: str, extents: dict[str, int]) -> Part | Verdict:
    """A register array as tiles of the instruction, or why it is not that."""
    sizes = (extents[found.axes[0]], extents[found.axes[1]])
    made, view = Part(found.buffer, layout, sizes, found.axes[0] == rows), leaf.view(slot)
    assert view is not None
    for e, name, n, size in zip(view.index[-2:], found.axes, found.buffer.shape[-2:], sizes, strict=True):
        if n % size or not divides(size, e - var(name)):
            return no(f"{found.buffer.name} is not a whole number of tiles", f"it has {n} elements along {name}, a tile {size}, "
                      f"and its index there is {e}", "split its loops by the tile's extents")
    return made


def divides(number: int, e: Expr) -> bool:
    """Whether each term is a multiple."""
    return gcd(e.const, *(c for _, c in e.terms)) % number == 0


def divided(e: Expr, number: int) -> Expr:
    """The quotient, where each term is a multiple."""
    return Expr(tuple((atom, c // number) for atom, c in e.terms), e.const // number)


def in_tiles(plan: Plan, made: Part, tile: str) -> tuple[Plan, tuple[Pair, ...]] | Verdict:
    """The plan in which the loops over a register array, in all other leaves, run over one tile innermost; and these loops.

    Parameters
    ----------
    plan : Plan
    made : Part
    tile : str
        The leaf that becomes the instruction.
    """
    found: dict[str, Pair] = {}
    for first, _, _ in plan.leaves:
        for slot, view in first.views if first.id != tile else ():
            if view.buffer != made.buffer.name:
                continue
            ready = _tiled(plan, first.id, slot, made)
            if isinstance(ready, Verdict):
                return ready
            plan, pair = ready
            found[pair.outer] = pair
    return plan, tuple(found.values())


def _tiled(plan: Plan, leaf_id: str, slot: int, made: Part) -> tuple[Plan, Pair] | Verdict:
    """The loops of one leaf over one tile, split off and innermost."""
    inner: list[str] = []
    for axis, size in zip((-2, -1), made.extents, strict=True):
        leaf, above, view = _use(plan, leaf_id, slot)
        if len(view.index) < 2 or leaf.collect or leaf.mechanism != "plain":
            return _refused(plan, leaf_id, made)
        e = view.index[axis]
        loop = next((x for x in reversed(above) if e.coefficient(x.id) == 1 and x.extent % size == 0
                     and divides(size, e - var(x.id)) and x.id not in inner), None)
        if loop is None or loop.start or loop.role not in ("seq", "unroll"):
            return _refused(plan, leaf_id, made)
        if loop.extent == size:
            inner.append(loop.id)
        else:
            name = plan.fresh(f"{loop.id}.i")
            plan = Split(loop.id, size, name).rewrite(plan)
            inner.append(name)
    _, above, _ = _use(plan, leaf_id, slot)
    depth = min(n for n, x in enumerate(above) if x.id in inner)
    chain = above[depth:]
    together = chain[-1].body
    if any(len(x.body) != 1 for x in chain[:-1]) or any(x.role not in ("seq", "unroll") for x in chain) or not all(
            isinstance(n, Leaf) and n.mechanism == "plain" and not n.collect for n in together):
        return _refused(plan, leaf_id, made)
    order = (*(x.id for x in chain if x.id not in inner), *inner)
    if order != tuple(x.id for x in chain):
        plan = reordered(plan, chain, permuted(chain, order))
    row, column = inner if made.by_row else reversed(inner)
    return plan, Pair(inner[0], inner[1], row, column)


def _use(plan: Plan, leaf_id: str, slot: int) -> tuple[Leaf, tuple[Loop, ...], View]:
    leaf, above = next((leaf, above) for leaf, above, _ in plan.leaves if leaf.id == leaf_id)
    view = leaf.view(slot)
    assert view is not None
    return leaf, above, view


def _refused(plan: Plan, leaf_id: str, made: Part) -> Verdict:
    name = made.buffer.name
    return no(f"{leaf_id} uses {name}, and is not alone in sequential loops over its tiles of "
              f"{' x '.join(map(str, made.extents))}",
              why="the lanes that multiply share the array, and those loops with it: a row and a column become a register and a "
              "lane",
              hint=f"distribute the loops around {leaf_id}, and leave them sequential")


def spread(plan: Plan, pair: Pair, made: Part, role: str) -> Plan:
    """Two loops over rows and columns of a tile become one over registers and one over lanes."""
    hit = plan.find(pair.outer)
    assert hit is not None
    outer, above = hit
    assert isinstance(outer, Loop)
    inner, layout = outer.body[0], made.layout
    assert isinstance(inner, Loop)
    there = {"register": var(outer.id), "lane": var(inner.id)}
    elements = {"row": var(pair.row), "column": var(pair.column)}
    forward = {pair.row: layout.row.substitute(there), pair.column: layout.column.substitute(there)}
    backward = {outer.id: layout.register.substitute(elements), inner.id: layout.lane.substitute(elements)}
    scope = {**ranges(above), outer.id: (0, layout.registers - 1), inner.id: (0, layout.lanes - 1)}
    inside, moved = (var(outer.id), var(inner.id)), list[Leaf]()
    for leaf in inner.body:
        assert isinstance(leaf, Leaf)
        places = {slot: made.index(v.index, inside, var(outer.id)) for slot, v in leaf.views if v.buffer == made.buffer.name}
        (elsewhere,) = retime((leaf,), forward, backward, scope)
        assert isinstance(elsewhere, Leaf)
        views = tuple((slot, replace(v, index=places.get(slot, v.index))) for slot, v in elsewhere.views)
        moved.append(replace(elsewhere, views=views))
    body = replace(inner, extent=layout.lanes, role=role, body=tuple(moved))
    return plan.replace_node(outer.id, replace(outer, extent=layout.registers, role="seq", body=(body,)))
