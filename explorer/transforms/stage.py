"""Copy what a loop reads of an array into shared memory or registers first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from ..ir.expr import Expr, rejoin, var
from ..ir.finding import YES, Verdict, no
from ..ir.plan import Buffer, Plan
from ..ir.program import Access, Array, Statement
from ..ir.scalar import Read
from ..ir.swizzle import MODES
from ..ir.tree import Leaf, Loop, View, leaves, ranges
from ..poly.mechanism import settled
from ..poly.overapproximated import overapproximates
from ._axes import extents_of, walked_as_one
from ._bulk_nest import bulk_nest, panel_width
from ._copies import copy_into, read_below, readers
from ._copy_nest import copy_leaf, copy_nest
from ._domain import bounds, dim_ranges
from ._engine import ENGINES, misfit, not_moved
from ._iterations import Iterations, iterations
from ._landing import inserted
from ._masks import beyond, leaves_out, wanted
from ._nest import with_role
from ._once import once
from ._room import no_room
from ._uses import Box, Use, box, coordinates, put_buffer, row_major, with_view
from .base import Transform, get_loop
from .trim import ended
from .vectorize import WIDTHS, Vectorize


@dataclass(frozen=True)
class Stage(Transform):
    """Copy the part of an array that one iteration of a loop reads, and read the copy.

    The scope is the body that gets the copy.  Each index is the sum of a part over the loops outside of it and a part over
    the loops inside.  The copied box is the exact range of the inner part over all reads, and its offset is the outer part.
    Gaps of equal strides are not copied, and unless `whole`, the box has at most twice the elements of the array.
    Neighbouring dimensions that every reader has as quotient and remainder of one number are one dimension of the copy, as a
    coalesced loop over a tile is.  For a shared copy axes of the array that a coalesced loop walks as one are one axis.  The
    copy is one contiguous run of the array where only the element's linear address is such a sum (coalesced loops), and where
    the vector does not divide the length of whole rows that follow each other.

    Thread loops are inside of the scope for ``shared`` (one copy per block) and outside for ``register`` (one per thread).
    Shared copies are distributed over the block's T threads, V = `vector` elements at a time: element ``f`` of the flat box
    is ``f = (r*T + t)*V + v``.  T is what the block has now: where `tensorize` adds lanes later, ``engine="bulk"`` needs none, or
    `bind` gives them the copy's loop then.  Beyond the array's edge the copy holds zeros, so its readers need no guards, and for
    elements that no reader uses.  An asynchronous copy that reads it becomes a plain one where the hardware cannot do that.

    With `axes` the copy is stored with its own axes in another order, as by NumPy's ``transpose``: ``(1, 0)`` stores the columns
    of a tile one after the other.  The copying threads read the array in its order and write to transposed cells; `pad` keeps
    these writes free of bank conflicts.  Vectors need the last axis to stay the last.

    With `masked` it holds zeros, too, where the conditions of its readers leave an element out: a tile on the diagonal of a
    triangle is then whole, with terms that add nothing, as a tensor instruction needs it.

    With `loops` the copy has a cell for each of their iterations instead, zeros in those that the reader does not run: rows and
    columns of a matrix whose elements are not a box of the array (im2col).

    With the engine ``async`` each thread copies asynchronously (``cp.async``), with ``bulk`` one thread asks for whole boxes of
    the array (TMA, sm_90), at most 256 elements along a dimension.  Without `pipeline` such a copy is waited for at once, and
    overlaps nothing.  A bulk copy needs rows of a multiple of 16 bytes, and zeros beyond the array's edge alone;
    along any axis but the last, it may stride by 2 to 8 elements.
    Where one statement reads two tiles of an array, as ``x[i, k] * x[j, k]``, `read` says which of its reads goes to the copy.
    A swizzle exchanges units of 16 bytes within its rows (:mod:`~explorer.transforms.swizzle`), so that a column of them lies in
    different banks; longer rows become panels of this width.

    Before::

        for i in 0…4                                        # block.x
            for k in 0…8
                for i.i in 0…32                             # thread.x
                    for k.i in 0…16
                        acc[i.i] += A[32*i + i.i, 16*k + k.i] * B[16*k + k.i]

    After ``stage('A', 'k')``::

        for i in 0…4                                        # block.x
            for k in 0…8
                for A_s.r in 0…16                           # unroll
                    for A_s.t in 0…32                       # thread.x
                        A_s[2*A_s.r + A_s.t // 16, A_s.t % 16] = A[…, …]
                for i.i in 0…32                             # thread.x
                    for k.i in 0…16
                        acc[i.i] += A_s[i.i, k.i] * B[16*k + k.i]
    """

    name = "stage"
    group = "Storage"
    aliases = ("cache_read", "stage_mem", "prefetch", "add_prefetch", "promote", "local_copy", "compute_at_copy")
    elsewhere = {"Halide": "compute_at, store_in", "TVM": "cache_read", "Exo": "stage_mem",
                 "loopy": "add_prefetch"}

    array: str = field(metadata={"kind": "array", "help": "the array that is read (or a staged copy of one)"})
    at: str = field(metadata={"kind": "loop", "help": "loop (or kernel) in whose body the copy is made"})
    space: str = field(default="shared", metadata={"kind": "choice", "choices": ("shared", "register"),
                                                   "help": "where the copy lives"})
    vector: int = field(default=1, metadata={"kind": "int", "min": 1, "max": 16, "help": "elements of one access of the copy"})
    pad: int = field(default=0, metadata={"kind": "int", "min": 0, "help": "unused elements after each row (shared memory)"})
    fill: bool = field(default=True, metadata={"kind": "bool",
                                               "help": "zeros beyond the array's edge; else those cells stay unwritten"})
    threads: bool = field(default=True, metadata={"kind": "bool", "help": "distribute a shared copy over the block's threads"})
    early: bool = field(default=False, metadata={
        "kind": "bool", "help": "copy at the start of the body, behind other copies, not right before the first read"})
    engine: str = field(default="thread", metadata={"kind": "choice", "choices": ENGINES, "help": "what moves a shared copy"})
    swizzle: int = field(default=0, metadata={"kind": "int", "min": 0, "max": 128,
                                              "help": "bytes of a row of the shared copy's swizzle: 32, 64 or 128; 0 for none"})
    loops: tuple[str, ...] = field(default=(), metadata={
        "kind": "loops", "help": "a cell for each iteration of these loops, in this order (default: one for each element)"})
    axes: tuple[int, ...] = field(default=(), metadata={
        "kind": "ints", "help": "the order in which a shared copy's own axes are stored (default: that of the array)"})
    read: int = field(default=-1, metadata={"kind": "int", "min": -1,
                                            "help": "the read of a statement that uses the copy, from 0 (default: all of them)"})
    whole: bool = field(default=False, metadata={"kind": "bool", "help": "all of a tile, also where most is outside the array"})
    masked: bool = field(default=False, metadata={
        "kind": "bool", "help": "zeros also where its readers' conditions leave an element out, as behind a diagonal"})

    def check(self, plan: Plan) -> Verdict:
        return self._checked(plan)

    @once
    def _checked(self, plan: Plan) -> Verdict:
        if self.space not in ("shared", "register"):
            return no(f"a copy cannot live in {self.space!r}", hint="'shared' or 'register'")
        if self.vector != 1 and self.vector not in WIDTHS:
            return no(f"one access has 1, 2, 4, 8 or 16 elements, not {self.vector}", hint="vector=8, or fewer")
        if type(self.read) is not int or self.read < -1:
            return no(f"read={self.read!r} is no read of a statement", hint="read=0 or 1, or -1 for all of them")
        if self.pad < 0 or (self.pad and self.space == "register"):
            return no("padding is a number of elements, and only rows in shared memory have it", hint="pad=0")
        if (odd := misfit(self)) is not None:
            return odd
        made = self._make(plan)
        if isinstance(made, Verdict):
            return made
        new, lane = made
        full = no_room(plan, new, "stage it at an inner loop, or split the loops so that an iteration reads less")
        if full is not None:
            return full
        if not lane or (refusal := Vectorize(lane).check(new)):
            return not_moved(self, with_role(new, lane, "vector") if lane else new)
        row = new.buffers[-1].shape[-1]
        if row % self.vector and not self.pad:
            return no(f"the copy of {self.array} has rows of {row} elements, which {self.vector} does not divide",
                      f"nor are they one run of vectors: {refusal.what}", "a smaller vector, or tile sizes that it divides")
        return replace(refusal, what=f"the copy of {self.array} cannot move {self.vector} elements at once: {refusal.what}",
                       hint=refusal.advice or "leave `axes` out, or vector=1" * bool(self.axes))

    def rewrite(self, plan: Plan) -> Plan:
        made = self._make(plan)
        assert not isinstance(made, Verdict)
        new, lane = made
        return ended(plan, with_role(new, lane, "vector") if lane else new)

    @once
    def _make(self, plan: Plan) -> tuple[Plan, str] | Verdict:
        """The plan with the copy (its lanes still a sequential loop), and the name of the loop over the lanes."""
        scope = self._scope(plan)
        if isinstance(scope, Verdict):
            return scope
        path, reads = scope
        source = self._source(plan, reads)
        if isinstance(source, Verdict):
            return source
        indices = [u.view.element if u.view else u.index() for u in reads]
        own = self._own_threads(plan, path, reads)
        if isinstance(own, Verdict):
            return own
        indices = [tuple(e.substitute({old: var(new.id) for new, old in zip(own, mine, strict=True)}) for e in index)
                   for index, mine in zip(indices, self._thread_names(path, reads, own), strict=True)]
        inner = [[x.id for n, x in enumerate(u.above) if n >= len(path) or (self.space == "shared" and x.is_thread)]
                 for u in reads]
        around = [{**ranges(u.above), **ranges(own)} for u in reads]
        if (refusal := self._placed(path, reads, indices)) is not None:
            return refusal
        found = self._cells(plan, path, reads, source, indices, around, inner)
        if isinstance(found, Verdict):
            return found
        outer = tuple(x for x in path if not (self.space == "shared" and x.is_thread))
        made = self._rebuild(plan, path, outer, own, reads, source, found, masked=self.masked or bool(self.loops))
        if isinstance(made, Verdict) or not overapproximates(made[0], made[0].copies[-1].name):
            return made
        masked = self._rebuild(plan, path, outer, own, reads, source, found, masked=True)
        return made if isinstance(masked, Verdict) or overapproximates(masked[0], masked[0].copies[-1].name) else masked

    def _cells(self, plan: Plan, path: tuple[Loop, ...], reads: tuple[Use, ...], source: str, indices: list[tuple[Expr, ...]],
               around: list[dict[str, tuple[int, int]]], inner: list[list[str]]) -> Box | Iterations | Verdict:
        """What the copy has cells for: the elements of a box, or the iterations of the loops that are asked for."""
        if self.loops:
            return iterations(self.array, self.loops, reads, indices, inner)
        found = box(indices, around, inner)
        shape = plan.array_of[self.array].shape if source == self.array in plan.array_of else ()
        shared = self.space == "shared" and all(shape) and bool(shape)
        if shared and isinstance(found, str):
            axes, joined = walked_as_one(indices, shape, around, inner)
            if len(axes) < len(shape) and isinstance(part := box(joined, around, inner), Box):
                found = replace(part, axes=axes)
        if shared and (isinstance(found, str) or self._breaks(found)):
            places = [(rejoin(row_major(index, shape), scope),) for index, scope in zip(indices, around, strict=True)]
            run = box(places, around, inner)
            if isinstance(run, Box) and (isinstance(found, str) or len(run.extents) == 1):
                found = replace(run, axes=(shape,))
        if isinstance(found, str):
            return no(f"the part of {self.array} that {self._where(path)} reads is not a box", found,
                      "stage it at another loop, or undo the skew or coalesce of these loops, or say `loops`"
                      + ", or copy one read at a time (read=0)" * ("move apart" in found and len({u.slot for u in reads}) > 1))
        whole = plan.array_of[copy_into(plan, source) or source].shape
        if not self.whole:
            found = found.clipped(extents_of(found.axes) if found.axes else whole, around[0], self.vector)
        found = found.padded() if self.space == "shared" and self.threads else found
        return found.joined(around, last=self.engine != "bulk")

    def _breaks(self, found: Box) -> bool:
        """Whether vectors would end in the midst of a row."""
        return not self.pad and bool(found.extents) and found.extents[-1] % self.vector > 0

    def _own_threads(self, plan: Plan, path: tuple[Loop, ...], reads: tuple[Use, ...]) -> tuple[Loop, ...] | Verdict:
        """For registers: new loops bound as the thread loops between the copy and its readers are."""
        if self.space != "register":
            return ()
        bound = [[(x.role, x.start, x.extent) for x in u.above[len(path):] if x.is_thread] for u in reads]
        if any(sorted(b) != sorted(bound[0]) for b in bound):
            shown = " and ".join(dict.fromkeys(f"{u.leaf.id} in {', '.join(f'{r} × {n}' for r, _, n in b) or 'one thread'}"
                                               for u, b in zip(reads, bound, strict=True)))
            return no(f"the readers of {self.array} are spread differently over threads ({shown})",
                      "registers belong to one thread: each reader has to find its part in its own",
                      "bind their loops to the same places and sizes")
        stem = plan.fresh(_stem(self.array) + "_r")
        return tuple(Loop(plan.fresh(f"{stem}.{role[-1]}"), extent, (), role, start) for role, start, extent in bound[0])

    def _thread_names(self, path: tuple[Loop, ...], reads: tuple[Use, ...], own: tuple[Loop, ...]) -> list[list[str]]:
        """For each reader, its loops that correspond to `own`."""
        return [[next(x.id for x in u.above[len(path):] if x.role == mine.role) for mine in own] for u in reads]

    def _scope(self, plan: Plan) -> tuple[tuple[Loop, ...], tuple[Use, ...]] | Verdict:
        """The loops around the body that gets the copy, and the reads below that will use it."""
        if self.array not in plan.array_of and not copy_into(plan, self.array):
            return no(f"there is no array {self.array!r}", hint=f"one of {', '.join(plan.array_of)}")
        kernel = next((k for k in plan.kernels if k.id == self.at), None)
        hit = plan.find(self.at)
        if not kernel and not (hit and isinstance(hit[0], Loop)):
            what = f"{self.at} is a statement, not a loop" if hit else f"there is no loop {self.at!r}"
            return no(what, hint=f"one of {', '.join((*plan.loops, *(k.id for k in plan.kernels)))}")
        body = kernel.body if kernel else (hit[0],) if hit else ()
        below = {leaf.id for leaf, _ in leaves(body)}
        found = tuple(u for u in readers(plan, self.array) if u.leaf.id in below)
        if not found:
            return no(f"nothing below {self.at} reads {self.array}", hint=read_below(plan, self.array))
        if self.read >= 0 and not (found := tuple(u for u in found if u.slot == self.read)):
            return no(f"no statement below {self.at} has {self.array} as read {self.read}", hint="leave `read` out")
        if odd := next((u for u in found if u.view and not u.view.element), None):
            return no(f"{self.array} already lives in {plan.buffer_of[odd.view.buffer].space} memory" if odd.view else "")
        odd = next((u for u in found if not u.access.affine), None)
        found = tuple(u for u in found if u.access.affine)  # the others go on reading the array itself
        if odd and not found:
            return no(f"{odd.leaf.id} reads {self.array} at a data-dependent element",
                      "which part it reads is not known before it runs")
        direct = tuple(u for u in found if not u.view)
        found = direct or found
        if kernel:
            common = tuple(x for x in found[0].above if x.is_block and all(x in u.above for u in found))
            if odd := next((x for u in found for x, y in zip(u.above, common, strict=False) if x != y), None):
                return no(f"{odd.id} lies around loops over blocks, so a copy in {self.at} has no place outside of it",
                          hint=f"stage it at {odd.id} or below, or interchange the loops")
            return common, found
        assert hit is not None
        assert isinstance(hit[0], Loop)
        return (*hit[1], hit[0]), found

    def _source(self, plan: Plan, reads: tuple[Use, ...]) -> str | Verdict:
        """The buffer of the copy through which all of these reads go, or the array itself."""
        through = {u.view.buffer if u.view else self.array for u in reads}
        if len(through) == 1:
            return through.pop()
        return no(f"{self.array} is read through several copies ({', '.join(sorted(through))})",
                  hint="stage one of them by its name")

    def _placed(self, path: tuple[Loop, ...], reads: tuple[Use, ...], indices: list[tuple[Expr, ...]]) -> Verdict | None:
        """A refusal where loops in places stand between the copy and its readers in a way that storage cannot follow."""
        for u, index in zip(reads, indices, strict=True):
            used = frozenset[str]().union(*(e.variables() for e in index))
            for x in u.above[len(path):]:
                if x.is_block and x.id in used:
                    return no(f"{self.at} lies outside of {x.id}", f"each block of {x.id} reads another part of {self.array}",
                              f"stage it at {x.id} or below")
        if self.space == "shared" and (lanes := next((x.id for x in path if x.role == "vector"), "")):
            return no(f"{self.at} lies in the vector loop {lanes}", "no barrier can stand between its lanes",
                      f"stage it outside of {lanes}")
        if not self.threads and self.space == "shared" and any(x.is_thread for x in path):
            return no(f"{self.at} lies inside of a thread loop, so all threads have to take part in the copy",
                      hint="threads=True")
        return None

    def _rebuild(self, plan: Plan, path: tuple[Loop, ...], scope: tuple[Loop, ...], own: tuple[Loop, ...], reads: tuple[Use, ...],
                 source: str, found: Box | Iterations, masked: bool = False) -> tuple[Plan, str] | Verdict:
        filled_by = copy_into(plan, source)
        buffer, source = source, filled_by or source
        original, outer = plan.array_of[source], (*scope, *own)
        name = plan.fresh(_stem(source) + ("_s" if self.space == "shared" else "_r"))
        scope_dims = tuple(f"{name}.{x.id}" for x in outer)
        box_dims = tuple(f"{name}[{axis}]" for axis in range(len(found.extents)))
        if self.axes and sorted(self.axes) != list(range(len(found.extents))):
            return no(f"the copy of {self.array} has the axes {', '.join(map(str, range(len(found.extents))))}",
                      f"axes={self.axes} is no order of them", "each of them once")
        order = self.axes or tuple(range(len(found.extents)))
        to_dims = {x.id: var(d) for x, d in zip(outer, scope_dims, strict=True)}
        index, sums = tuple(e.substitute(to_dims) for e in found.element([var(d) for d in box_dims])), dict[Expr, Expr]()
        if found.axes:
            place = row_major(index, extents_of(found.axes))
            index = tuple(e for whole, joined in zip(index, found.axes, strict=True) for e in coordinates(whole, joined))
            sums = {row_major(index, original.shape): place}
        domain = [c for d, x in zip(scope_dims, outer, strict=True) for c in bounds(d, x.start, x.extent)]
        domain += [c for d, n in zip(box_dims, found.extents, strict=True) for c in bounds(d, 0, n)]
        dims = (*scope_dims, *box_dims)
        copy = Statement(name, dims, tuple(domain), Access(name, tuple(map(var, dims)), "write"), Read(0),
                         (Access(source, index),), origin="copy")
        edge = beyond(copy, index, original)
        if masked:
            around = [{**{x.id: d for x, d in zip(scope, scope_dims, strict=False)},
                       **dict(zip(mine, scope_dims[len(scope):], strict=True))} for mine in self._thread_names(path, reads, own)]
            edge = tuple(dict.fromkeys((*edge, *wanted(reads, found.cells, around, box_dims, dim_ranges(copy)))))
        copy = replace(copy, inside=edge) if self.fill else replace(copy, domain=(*copy.domain, *edge))
        extents = tuple(found.extents[n] for n in order)
        row, size = extents[-1] if extents else 1, original.dtype.bytes
        wide = panel_width(row, size, self.swizzle) if self.engine == "bulk" or self.swizzle else row
        if self.swizzle and row * size % self.swizzle:
            return no(f"the copy of {self.array} has rows of {row * size} bytes",
                      f"a row of the swizzle, of {self.swizzle} bytes, does not divide them",
                      "a smaller swizzle, or tile sizes that it divides")
        nest = (bulk_nest(plan, name, path, outer, found, wide) if self.engine == "bulk" and isinstance(found, Box) else
                copy_nest(plan, name, path, outer, found.extents, self.vector, self.space == "shared" and self.threads, self.at))
        if isinstance(nest, Verdict):
            return nest
        nest = replace(nest, loops=(*own, *nest.loops))
        shape = (*(x.start + x.extent for x in outer), *found.extents)
        where = next((x.id for x in reversed(path) if self.space == "register" or not x.is_thread), "")
        new = put_buffer(plan, Buffer(name, original.dtype, extents, self.space, self.pad if extents else 0, where,
                                      wide if wide < row else 0, self.swizzle))
        new = replace(new, copies=(*plan.copies, copy),
                      copied=(*plan.copied, Array(name, original.dtype, shape, "temporary", len(extents))))
        leaf = copy_leaf(plan, name, nest, dims, index, buffer, path, order)
        leaf = replace(leaf, sums=tuple((e, place.substitute(dict(nest.at))) for e, place in sums.items()),
                       mechanism="plain" if self.engine == "thread" else self.engine)
        outside = tuple(var(x.id) for x in scope)
        readers_of = {(u.leaf.id, u.slot): View(name, tuple(cell[n] for n in order), (*outside, *map(var, mine), *cell))
                      for u, mine, cell in zip(reads, self._thread_names(path, reads, own), found.cells, strict=True)}

        def redirect(node: Leaf) -> Leaf:
            for (leaf_id, slot), view in readers_of.items():
                node = with_view(node, slot, view) if leaf_id == node.id else node
            return node

        new = settled(new.map_leaves(redirect), frozenset(leaf_id for leaf_id, _ in readers_of))
        return inserted(new, path, self.at, {u.leaf.id for u in reads}, nest.around(leaf), self.early), nest.lane

    def _where(self, path: tuple[Loop, ...]) -> str:
        return f"an iteration of {self.at}" if path else f"the kernel {self.at}"

    @classmethod
    def candidates(cls, plan: Plan, node_id: str) -> Iterator[Stage]:
        if not isinstance(loop := get_loop(plan, node_id), Loop):
            return
        below = [plan.statement_of[leaf.statement] for leaf, _ in leaves((loop,))]
        names = dict.fromkeys(r.array for s in below for r in s.reads)
        reads = {(r.array, slot) for s in below for slot, r in enumerate(s.reads)}
        slots = {name: sorted(slot for array, slot in reads if array == name) for name in names}
        steps = (cls(name, node_id, space, vector, read=read) for name in list(names)[:4]
                 for read in (-1, *(slots[name] if len(slots[name]) > 1 else ()))
                 for space, vector in (("shared", 4), ("shared", 1), ("register", 1)))
        count = 0
        for step in steps:
            if count < 8 and step.check(plan):
                count += 1
                yield step
        for name in list(names)[:4]:
            bulk = (cls(name, node_id, engine="bulk", swizzle=mode) for mode in (*reversed(MODES), 0))
            yield from islice((step for step in bulk if step.check(plan)), 1)
        cut = dict.fromkeys(r.array for s in below for r in s.reads if any(len(c.expr.variables()) > 1 for c in s.domain))
        yield from (x for x in (cls(name, node_id, masked=True) for name in list(cut)[:4])
                    if x.check(plan) and leaves_out(x.rewrite(plan), replace(x, masked=False).rewrite(plan)))

    @classmethod
    def offers(cls, plan: Plan, node_id: str) -> Verdict:
        if isinstance(loop := get_loop(plan, node_id), Verdict):
            return no(f"{node_id} is a statement", "a copy is made in a loop's body", "select the loop around it") if plan.find(
                node_id) else loop
        if not (read := [r.array for leaf, _ in leaves((loop,)) for r in plan.statement_of[leaf.statement].reads]):
            return no(f"nothing in {node_id} reads an array")
        return YES if next(cls.candidates(plan, node_id), None) else cls(read[0], node_id).check(plan)


def _stem(name: str) -> str:
    """The array behind the name of a copy: ``A`` of ``A_s``."""
    return name.removesuffix("_s").removesuffix("_r")
