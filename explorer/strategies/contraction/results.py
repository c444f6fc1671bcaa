"""Results on their way out through shared memory: lanes leave what they hold there, and store neighbours side by side.

A lane of a tensor instruction holds pairs of neighbours, so that a warp's store writes halves of sectors.  With the results in
shared memory, a temporary of their own (`outline`), each lane stores 16 bytes, and a warp whole lines; where rows begin at no
multiples of 16 bytes, each lane stores 8, 4 or 2, and a warp a run of a row.
"""

from __future__ import annotations

from math import gcd, prod

from ...ir.expr import Expr
from ...ir.layout import GROUP, LANES
from ...ir.swizzle import MODES
from ...ir.tree import Leaf, Loop, leaves
from .._steps import Builder

WIDEST = 16
"""Bytes of one access of a thread."""
RUN_BYTES = 64
"""Of a row, those that lanes side by side store together at least, unless it is shorter."""
MOST_TURNS = 16
"""Turns of a lane's stores that are written out: 1000 x 1536 x 832 took 8.3 µs with loops of 12 turns whose bounds depend on the
block, 180 x 2841 x 2896 22 µs with 96 turns written out and 14 in such loops (f16, H100)."""
FRAGMENT = 8
"""Registers of results that a lane holds beside its sums before one instruction stores them: four words of pairs (PTX ISA,
"stmatrix")."""


def outlined(b: Builder, update: str, twice: bool = False) -> tuple[str, str]:
    """Give the last result behind the sums a temporary, and its store a nest of its own.

    Parameters
    ----------
    b : Builder
    update : str
        The sums' statement.
    twice : bool
        Whether there is a temporary in front of that one, for the results as lanes hold them.

    Returns
    -------
    store, copy : str
        What stores the temporary, and what copies to it from the other one; "" where there is none.
    """
    kernel = b.plan.kernel_of(update)
    assert kernel is not None
    inside = [(leaf, above) for leaf, above, k in b.plan.leaves if k is kernel]
    total = next(b.plan.statement_of[leaf.statement].target.array for leaf, _ in inside if leaf.id == update)
    leaf, above = next(((leaf, above) for leaf, above in reversed(inside) if not _sums(b, leaf, total)), inside[-1])
    statement = b.plan.statement_of[leaf.statement]
    if not b.plan.array_of[statement.target.array].shape or len(above) < 2:
        return "", ""  # a scalar stays in registers
    summed = above[-1].body[above[-1].body.index(leaf) + 1:]
    if not all(isinstance(x, Leaf) and _sums(b, x, total) for x in summed):
        return "", ""
    if summed:
        b.do("distribute", above[-1].id, after=leaf.id).do("distribute", above[-2].id, after=above[-1].id)
    store = _outline(b, leaf.id)
    if not store:
        return "", ""
    copy = _outline(b, leaf.id) if twice else ""
    b.do("distribute", above[-1].id, after=copy or leaf.id)
    body = b.plan.loops[above[-2].id].body
    b.do("distribute", above[-2].id, after=body[-2].id)
    if summed:  # what follows for the row sums comes before the store, which may be no warpgroup's
        *_, around, outer, _ = _above(b, store)
        if around.body[-1] is not outer:
            b.do("sequence", outer.id, after=around.body[-1].id)
    return store, copy


def _sums(b: Builder, leaf: Leaf, total: str) -> bool:
    """Whether a statement adds up results of a row, or starts or joins such a sum; what writes out the product's own is none."""
    s = b.plan.statement_of[leaf.statement]
    return bool(s.update) or (s.origin in ("init", "combine") and all(r.array != total for r in s.reads))


def _outline(b: Builder, leaf: str) -> str:
    """The store that gets a statement of its own; "" where it cannot."""
    known = set(b.plan.statement_of)
    return next(iter(set(b.plan.statement_of) - known)) if b.attempt("outline", leaf) else ""


def in_fragments(b: Builder, copy: str, role: str) -> None:
    """Results in registers as lanes hold them, some columns at a time, and then their copy to shared memory.

    Before::

        for c in 0…32                   # registers
            for t in 0…128  thread.x
                S2: z_t_t[…] = …
                S2_store_2: z_t[…] = z_t_t[…]

    After, 8 registers at a time::

        for c in 0…4
            for c.r in 0…8
                for t in 0…128  thread.x
                    S2: z_t_t[…] = …
            for c.r in 0…8
                for t in 0…128  thread.x
                    S2_store_2: z_t[…] = z_t_t[…]
    """
    temporary = b.plan.statement_of[copy].reads[0].array
    leaf = next(leaf.id for leaf, _, _ in b.plan.leaves if b.plan.statement_of[leaf.statement].target.array == temporary)
    *_, columns, parts, lanes = (x.id for x in _above(b, leaf))
    if role == "thread.x":
        columns = parts
    else:
        b.do("coalesce", (columns, parts))
    if b.extent(columns) > FRAGMENT and b.extent(columns) % FRAGMENT == 0:
        inner = b.plan.fresh(f"{columns}.r")
        b.do("split", columns, FRAGMENT, inner=inner)
        columns = inner
    b.do("distribute", lanes, after=leaf).do("distribute", columns, after=lanes)
    b.do("contract", temporary, "register")


def _above(b: Builder, name: str) -> tuple[Loop, ...]:
    """The loops around a statement."""
    hit = b.plan.resolve(name)
    assert hit is not None
    return hit[1]


def stored(b: Builder, name: str, role: str, aligned: int = WIDEST, ragged: bool = False) -> None:
    """The store's temporary in shared memory, its loops spread over the lanes of a warp or a warpgroup.

    Lanes side by side store neighbours along a row, each as many bytes as the tile and the beginnings of rows allow.

    Parameters
    ----------
    b : Builder
    name : str
        The store's statement.
    role : str
        Of the loop over lanes.
    aligned : int
        Bytes of an access that begins where any row does.
    ragged : bool
        Whether tiles are cut at the ends of rows or columns.  A few turns are unrolled there: with bounds known only when
        the kernel runs, a turn's store waits for its own load.
    """
    temporary = b.plan.statement_of[name].reads[0].array
    b.do("contract", temporary, "shared")
    outer, inner = (x.id for x in _above(b, name)[-2:])
    if _step(b, name, outer) == 1:
        b.do("reorder", (inner, outer))
        outer, inner = inner, outer
    size = b.plan.array_of[temporary].dtype.bytes
    keep = b.schedule
    for width in (n for n in (16, 8, 4, 2, 1) if n * size <= max(aligned, size)):
        if _side_by_side(b, outer, inner, width, role, size):
            break
        b.schedule = keep
    b.attempt("swizzle", temporary)
    turns = [x for x in _above(b, name) if x.role == "seq" and [n.statement for n, _ in leaves((x,))] == [name]]
    for loop in turns if ragged and prod(x.extent for x in turns) <= MOST_TURNS else ():
        b.attempt("unroll", loop.id)


def for_one_thread(b: Builder, name: str) -> bool:
    """The store in a nest of its own that is no warpgroup's, before anything is counted in theirs: one thread stores for all.

    Returns
    -------
    bool
        Whether the loop over rows is outermost, as it was: the last one is that along which results follow each other in memory.

    Before::

        for w in 0…2  thread.y
            …
            for i in 0…64
                for j in 0…128
                    S2_store: z[128*i.b + 64*w + i, 128*j.b + j] = z_t[64*w + i, j]

    After::

        for w in 0…2  thread.y
            …
        for w.i in 0…128
            for j in 0…128
                S2_store: z[128*i.b + w.i, 128*j.b + j] = z_t[w.i, j]
    """
    outer, inner = (x.id for x in _above(b, name)[-2:])
    if turned := _step(b, name, outer) == 1:
        b.do("reorder", (inner, outer))
        outer, inner = inner, outer
    for group in [x.id for x in reversed(_above(b, name)[:-2]) if x.role == "thread.y"]:
        b.do("distribute", group, after=b.plan.loops[group].body[-2].id)
        own = _above(b, name)[-3].id
        b.do("bind", own, "seq").do("coalesce", (own, outer))
        outer = own
    return not turned


def by_bulk_stores(b: Builder, name: str, box: tuple[int, ...]) -> bool:
    """The store's temporary in shared memory, and the engine for bulk copies stores it, a panel of its swizzle at a time.

    Parameters
    ----------
    b : Builder
    name : str
        The store.
    box : tuple of int
        How many iterations of each loop of the result its outer loop takes, as one: pixels of an image are a box.

    Returns
    -------
    bool
        Whether it can.
    """
    temporary = b.plan.statement_of[name].reads[0].array
    b.do("contract", temporary, "shared")
    outer, inner = (x.id for x in _above(b, name)[-2:])
    size, row = b.plan.array_of[temporary].dtype.bytes, b.extent(inner)
    mode = next((mode for mode in reversed(MODES) if row * size % mode == 0), 0)
    if mode and b.attempt("swizzle", temporary, mode) and row * size > mode:
        panel = b.plan.fresh(f"{inner}.p")
        b.do("split", inner, mode // size, inner=panel).do("reorder", (inner, outer, panel))
    if prod(box) == b.extent(outer):
        for size in reversed([n for n in box if n > 1][1:]):
            b.do("split", outer, size, inner=b.plan.fresh(f"{outer}.b"))
    return b.attempt("store_bulk", name)


def _side_by_side(b: Builder, outer: str, inner: str, width: int, role: str, size: int) -> bool:
    """Lanes along a tile's rows, so many elements of so many bytes each; whether one access of a lane may be as wide."""
    vector, lanes = inner, GROUP if role == "thread.x" else LANES
    if width > 1 and (b.extent(inner) % width or b.extent(outer) * b.extent(inner) // width % lanes):
        return False
    if b.extent(inner) > width:
        if width > 1:
            vector = b.plan.fresh(f"{inner}.v")
            b.do("split", inner, width, inner=vector)
        part = part_of(b.extent(inner), width * size, lanes)
        if part < b.extent(inner) and b.extent(outer) % (lanes // part) == 0:
            whole, inner = inner, b.plan.fresh(f"{inner}.l")
            b.do("split", whole, part, inner=inner).do("reorder", (whole, outer))
        b.do("coalesce", (outer, inner))
    lane = b.plan.fresh(f"{outer}.l")
    b.do("split", outer, lanes, inner=lane).do("bind", lane, role)
    return width == 1 or b.attempt("vectorize", vector)


def part_of(row: int, nbytes: int, lanes: int) -> int:
    """Of the accesses of so many bytes that a tile's row takes, those that lanes side by side make in one turn.

    Where a row does not take all lanes or a part of them, as one of 192 elements in 24 accesses does not, lanes would divide for
    their places, each in a condition of its own: as many of them as divide both take a part of the row, if that is long enough.
    """
    part = gcd(row, lanes)
    return part if part * nbytes >= RUN_BYTES else row


def _step(b: Builder, name: str, loop: str) -> int:
    """Elements of the result from one iteration of a loop to the next."""
    hit = b.plan.resolve(name)
    assert hit is not None
    at, target = dict(hit[0].at), b.plan.statement_of[name].target
    shape = b.plan.array_of[target.array].shape
    strides = [prod(shape[n + 1:]) for n in range(len(shape))]
    index = [e.substitute(at) for e in target.index if isinstance(e, Expr)]
    return sum(c * stride for e, stride in zip(index, strides, strict=True) for atom, c in e.terms if atom == loop)


def pairs(b: Builder, kernel: str, vectors: bool = True) -> None:
    """What writes results takes the two neighbours that a lane holds together, or with `vectors` all that a thread's tile has."""
    for leaf, above, owner in b.plan.leaves:
        if owner.id != kernel or len(above) < 2 or not _writes_result(b, leaf):
            continue
        registers, lanes = above[-2:]
        if vectors and lanes.role == "seq" and not lanes.is_place:  # a thread's own tile: as many neighbours as 16 bytes hold
            _vectors(b, lanes)
        if lanes.role not in ("lane", "thread.x") or registers.role != "seq" or registers.extent % 2:
            continue
        keep, pair = b.schedule, b.plan.fresh(f"{registers.id}.v")
        b.do("split", registers.id, 2, inner=pair)
        if not (b.attempt("reorder", (lanes.id, pair)) and b.attempt("vectorize", pair)):
            b.schedule = keep


def _vectors(b: Builder, loop: Loop) -> None:
    """The widest accesses along a loop, of those that its extent allows."""
    for width in (8, 4, 2):
        keep, inner = b.schedule, loop.id
        if loop.extent % width:
            continue
        if loop.extent > width:
            inner = b.plan.fresh(f"{loop.id}.v")
            b.do("split", loop.id, width, inner=inner)
        if b.attempt("vectorize", inner):
            return
        b.schedule = keep


def _writes_result(b: Builder, leaf: Leaf) -> bool:
    """Whether a leaf writes to global memory, or what is stored from there to shared memory."""
    view = leaf.view(len(b.plan.statement_of[leaf.statement].reads))
    copies = {c.name for c in b.plan.copies}
    return view is None or (b.plan.buffer_of[view.buffer].space == "shared" and leaf.statement not in copies)
