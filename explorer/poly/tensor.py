"""Leaves that are tensor instructions: the lanes that hold their operands, and whether they still are whole tiles."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ..ir.expr import ZERO, Expr, quotient, remainder, var
from ..ir.instructions import TF32, Instruction, Wgmma, instruction, stays_in_flight
from ..ir.layout import Layout
from ..ir.plan import Plan
from ..ir.program import Constraint, Statement
from ..ir.scalar import Call, Read
from ..ir.tree import WARP_SIZE, Leaf, Loop, ranges
from .bulk_store import IN_BOXES
from .dead_cells import dead_cells, in_cells, of_a_copy
from .matrix_move import MOVES, NoMove, matrix_move
from .shared_tile import NoTile, shared_tile
from .zero_fill import fills

WHOLE = Call("mul", (Read(0), Read(1)))
SHORT = Call("mul", (Call("tf32", (Read(0),)), Call("tf32", (Read(1),))))
"""What a product adds: of two elements, or of their first 11 bits."""
Held = tuple[Layout | None, str, str]
"""An operand's layout (None: it is in shared memory), and the loops over its rows and columns."""


def operands(leaf: Leaf, above: tuple[Loop, ...]) -> tuple[Held, Held, Held] | None:
    """Factors and accumulator of a tensor instruction; None for other leaves, and where its three loops are gone."""
    row = instruction(leaf.mechanism)
    if row is None or [x.role for x in above[-3:]] != ["tensor"] * 3:
        return None
    m, n, k = (x.id for x in above[-3:])
    left, right = row.left, None if isinstance(row, Wgmma) else row.right
    return (left, m, k), (right, k, n), (row.accumulator, m, n)


def operand_places(leaf: Leaf, above: tuple[Loop, ...], split: bool) -> tuple[tuple[Expr | None, ...], ...]:
    """For each access the coordinates of ``thread.x`` that it fixes, over the three loops; nothing for other leaves.

    They are (warp, lane) where these are `split`, else (thread.x, 0): just the lane for an instruction of a warp; both for one
    of a warpgroup.  What it reads in shared memory some thread of the group reads, nobody knows which: None.
    """
    row, scope = instruction(leaf.mechanism), ranges(above)
    out: list[tuple[Expr | None, ...]] = []
    for layout, i, j in operands(leaf, above) or ():
        at = layout.lane.substitute({"row": var(i), "column": var(j)}, scope) if layout else None
        if row is None or row.lanes == WARP_SIZE:
            out.append((at,))
        elif at is None:
            out.append((None, None if split else ZERO))
        else:
            out.append((quotient(at, WARP_SIZE, scope), remainder(at, WARP_SIZE, scope)) if split else (at, ZERO))
    return tuple(out)


def is_product(statement: Statement) -> bool:
    """Whether a statement adds up products of two elements, or of what is left of them as tf32, as tensor instructions do."""
    return statement.update == "sum" and len(statement.reads) == 2 and statement.value in (WHOLE, SHORT)


def significand_of(statement: Statement) -> int:
    """Bits that a product's factors keep of their significands, 0 for all."""
    return TF32 if statement.value == SHORT else 0


def is_harmless(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], constraint: Constraint) -> bool:
    """Whether an update changes nothing that is read where the constraint, of its domain, fails.

    It only uses cells that there are, and adds the identity there, or adds to cells that nobody reads.
    """
    if not in_cells(plan, leaf, above):
        return False
    staged = all(of_a_copy(plan, leaf, above, slot) for slot in range(len(plan.statement_of[leaf.statement].reads)))
    return fills(plan).is_identity(leaf, above, constraint) or (staged and dead_cells(plan).dead(leaf, constraint))


def misshapen_tiles(plan: Plan) -> Iterator[tuple[str, str]]:
    """Leaves that are marked as tensor instructions and are none, and why: a step that makes one is not taken."""
    for leaf, above, kernel in plan.leaves:
        if leaf.mechanism in MOVES and isinstance(lost := matrix_move(plan, leaf, above, leaf.mechanism), NoMove):
            yield leaf.id, f"{lost.what}: {lost.why}"
        if leaf.mechanism in MOVES and (len(above) < 2 or above[-2].role != "tensor"):
            yield leaf.id, "its loop over registers is the instruction's"
        if row := instruction(leaf.mechanism):
            yield from ((leaf.id, why) for why in _misshapen(plan, row, leaf, above, plan.extents[kernel.id][3]))


def ordinary_in_tiles(plan: Plan) -> Iterator[tuple[str, str]]:
    """Leaves in a loop of an instruction or of a bulk copy's box that are neither, and that loop: a step that makes one is not
    taken.
    """
    for leaf, above, _ in plan.leaves:
        if instruction(leaf.mechanism) is None and leaf.mechanism not in (*MOVES, *IN_BOXES):
            yield from ((leaf.id, x.id) for x in above if x.role == "tensor")


@lru_cache(maxsize=1024)
def _register(layout: Layout, i: str, rows: tuple[int, int], j: str, columns: tuple[int, int]) -> Expr:
    """The register of an element, over the loops of its rows and columns."""
    return layout.register.substitute({"row": var(i), "column": var(j)}, {i: rows, j: columns})


def _misshapen(plan: Plan, row: Instruction, leaf: Leaf, above: tuple[Loop, ...], threads: int) -> Iterator[str]:
    held, tile = operands(leaf, above), above[-3:]
    if row.significand != significand_of(plan.statement_of[leaf.statement]):
        yield f"the instruction reads {row.significand or 'all'} bits of a factor's significand, and the statement does not"
    if held is None or any(len(x.body) != 1 or x.start for x in tile) or tuple(x.extent for x in tile) != (row.m, row.n, row.k):
        yield f"its three innermost loops have to be a whole tile of {row.m} x {row.n} x {row.k}, and nothing else in them"
        return
    scope, inside = ranges(above), {x.id for x in tile}
    for slot, (layout, i, j) in enumerate(held):
        view = leaf.view(slot)
        buffer = plan.buffer_of[view.buffer] if view else None
        if layout is None:
            yield from _not_shared(row, leaf, slot, plan, (j, i) if slot else (i, j))
            continue
        register = _register(layout, i, scope[i], j, scope[j])
        if view is None or buffer is None or buffer.space != "register" or buffer.padded_shape[-1:] != (layout.registers,) or (
                not view.index or view.index[-1] != register or any(e.variables() & inside for e in view.index[:-1])):
            yield f"operand {slot} has to be a register array of the tile, as the instruction's layout has it"
    for c in plan.statement_of[leaf.statement].domain:
        e = c.expr.substitute(dict(leaf.at), scope)
        if (not c.equality and e.interval(scope)[0] >= 0) or is_harmless(plan, leaf, above, c):
            continue
        if e.variables() & inside:
            yield "a tile is computed as a whole, and a condition asks for a part of one"
            return
        if stays_in_flight(leaf.mechanism):
            yield "products in flight are counted, and a condition keeps some from running"
            return
    if leaf.collect or any(x.role in ("lane", "thread.x") for x in above):
        yield f"all {row.lanes} lanes run it together"
    elif row.lanes > WARP_SIZE and (warp := next((x.id for x in above if x.role == "warp"), "")):
        yield f"its {row.lanes} threads are four warps, and {warp} gives each of them another iteration"
    elif row.lanes == WARP_SIZE and threads % WARP_SIZE:
        yield "all 32 lanes of a warp run it together"
    elif row.lanes > WARP_SIZE and threads != row.lanes:
        yield f"the {row.lanes} threads of thread.x are a warpgroup, and run it together"


def _not_shared(row: Instruction, leaf: Leaf, slot: int, plan: Plan, loops: tuple[str, str]) -> Iterator[str]:
    """Why a factor is not in shared memory as the instruction reads it."""
    view = leaf.view(slot)
    buffer = plan.buffer_of[view.buffer] if view else None
    assert isinstance(row, Wgmma)
    if view is None or buffer is None or buffer.space != "shared":
        yield f"operand {slot} has to be in shared memory"
    elif isinstance(found := shared_tile(row, buffer, view, *loops), NoTile):
        yield found.why
