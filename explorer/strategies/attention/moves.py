"""An attention's schedule by moves: rows over blocks and warps, all that is done for a tile of keys in one loop."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ...errors import ScheduleError
from ...ir.instructions import INSTRUCTIONS, Mma
from ...ir.swizzle import MODES
from ...schedule import Schedule
from .._steps import Builder
from ..contraction.lanes import quads, rows_over_warp
from ..contraction.results import WIDEST, outlined, pairs, stored
from .form import AttentionForm

BLOCK_AXES = ("block.x", "block.y", "block.z")


@dataclass(frozen=True)
class Tiling:
    """Rows of a block, its warps that compute, keys of a tile, and tiles that are on their way at a time.

    With `groups` the warps are those of so many warpgroups, beside a producer where there are stages; with `registers` a thread
    takes so many, of those that the producer gives away; with `blocks` a multiprocessor holds so many.  With `turns` one
    warpgroup multiplies at a time.  With `through` results go through shared memory on their way out.  A warp's instruction is
    `depth` elements deep.
    """

    rows: int
    warps: int
    keys: int
    stages: int
    groups: int = 0
    registers: int = 0
    blocks: int = 0
    turns: bool = False
    through: bool = False
    persistent: int = 0
    depth: int = 16

    def __str__(self) -> str:
        places = f"{self.groups} warpgroups" if self.groups else f"{self.warps} warps"
        several = (f", {self.blocks} blocks at a time" if self.blocks else "") + ", in turns" * self.turns
        several += ", results through shared memory" * self.through
        several += f", {self.persistent} blocks take tiles in turn" * (self.persistent > 0)
        return f"{self.rows} rows in {places}, {self.keys} keys, {self.stages} stages{several}"


def step_of(form: AttentionForm, depth: int) -> Mma | None:
    """The instruction of a warp for both products, of so many elements along the depth."""
    return INSTRUCTIONS.get(f"m16n8k{depth}_{form.dtype}_{form.dtype}_f32")


def build(schedule: Schedule, form: AttentionForm, t: Tiling, approximate: bool = True) -> Schedule:
    """The schedule of a tiling.

    Parameters
    ----------
    schedule : Schedule
        As :func:`~explorer.strategies.attention.form.ready_form` left it.
    form : AttentionForm
    t : Tiling
    approximate : bool
        Whether the exponentials may use the special-function unit.

    Returns
    -------
    Schedule
        Not judged yet.

    Raises
    ------
    TransformError
        If the program does not allow it.
    """
    return Attending(Builder(schedule, judged=False), form, t).schedule(approximate)


class Attending:
    """The steps of one schedule, in the order in which they stand here."""

    role = "warp"
    """Of the loop over the places of a block that have rows of their own."""
    fused_masks = False
    """Whether the weights behind a triangle's diagonal are one multiply-add and one power of two, too."""

    def __init__(self, b: Builder, form: AttentionForm, t: Tiling) -> None:
        self.b, self.form, self.t = b, form, t
        self.place = self.tile = self.result = ""

    @property
    def rows_of_place(self) -> int:
        """Rows of a warp."""
        return self.t.rows // self.t.warps

    def schedule(self, approximate: bool) -> Schedule:
        """All of them."""
        self.rows()
        self.result = outlined(self.b, self.form.output)[0] if self.t.through else ""
        self.partial_maxima()
        self.parts()
        self.one_loop()
        self.products()
        self.lanes()
        self.results()
        self.storage()
        if approximate:
            for leaf in [leaf.id for leaf, _, k in self.b.plan.leaves if k.id == self.form.kernel]:
                # of the scales both maxima may be the least number; weights behind a diagonal spill so (ptxas, sm_90a)
                fused = leaf != f"{self.row_peak}_scale" and (not self.form.triangular or self.fused_masks)
                self.b.attempt("approximate", leaf, fused=fused)
        pairs(self.b, self.form.kernel)
        if self.form.triangular:
            self.b.attempt("trim", self.tile)
        return self.b.schedule

    def inside(self, leaf: str, of: str = "") -> list[str]:
        """The loops around a statement, inside of one."""
        hit = self.b.plan.resolve(leaf)
        assert hit is not None
        names = [x.id for x in hit[1]]
        return names[names.index(of or self.place) + 1:]

    def alone(self, loop: str) -> None:
        """Each node of a loop's body gets a loop of its own."""
        for n in reversed(range(1, len(self.b.plan.loops[loop].body))):
            self.b.do("distribute", loop, after=self.b.plan.loops[loop].body[n - 1].id)

    def rows(self) -> None:
        """Rows over blocks and warps, keys in tiles; every statement in rows of its own, the keys outside of them."""
        b, f, t = self.b, self.form, self.t
        self.place, rows = b.plan.fresh(f"{f.row}.w"), b.plan.fresh(f"{f.row}.r")
        for key in f.keys:  # before the rows: that a triangle's keys end with the last row is not seen behind
            b.do("split", key, t.keys)
        b.do("split", f.row, t.rows, inner=self.place).do("split", self.place, self.rows_of_place, inner=rows)
        if f.triangular:  # the last rows have most keys: they start first
            b.attempt("reverse", f.row)
        if len(f.outer) > 1:
            b.do("coalesce", f.outer)
        if t.persistent:
            b.do("persist", (*f.outer[:1], f.row), t.persistent)
        for loop, role in zip((f.row, *f.outer[:1]) if not t.persistent else (), BLOCK_AXES, strict=False):
            b.do("bind", loop, role)
        b.do("bind", self.place, self.role)
        self.alone(rows)
        row, tile, key, depth = self.inside(f.scores)
        b.do("reorder", (tile, row, key))
        self.alone(key)
        self.alone(row)
        row, key, depth = self.inside(f.scores, tile)
        b.do("reorder", (depth, row, key))
        for leaf in (f.maximum, f.total):
            row, tile, key = self.inside(leaf)
            b.do("reorder", (tile, row, key))
        self.alone(self.inside(f.output)[1])
        self.alone(self.inside(f.output)[0])
        row, column, tile, key = self.inside(f.output)
        b.do("reorder", (tile, key, row, column))

    def quads(self, loop: str) -> tuple[str, str, str]:
        """A loop over columns of accumulators as tiles of 8, the lanes of a quad, and the two neighbours of each."""
        return quads(self.b, loop)

    def partial_maxima(self) -> None:
        """Maxima and sums of each lane's columns, maxima of each tile."""
        b, f = self.b, self.form
        tile, _, key = self.inside(f.maximum)
        taken = self.quads(key)
        b.do("rfactor", f.maximum, tile).do("rfactor", f.maximum, taken[1])
        self.lane_peak, self.maximum_columns = b.plan.statement_of[f.maximum].target.array, taken
        self.total_columns = self.quads(self.inside(f.total)[2])
        b.do("rfactor", f.total, self.total_columns[1])

    def parts(self) -> None:
        """The running form; what rows have in common computed by each lane of a quad for itself."""
        b, f = self.b, self.form
        joins = [s.name for s in b.plan.program.statements if s.origin == "combine"]
        self.row_peak = next(n for n in joins if b.plan.statement_of[n].target.array not in {
            r.array for s in b.plan.program.statements for r in s.reads if s.origin == "combine"}
            and b.plan.statement_of[n].update == "max")
        self.tile_peak = next(n for n in joins if self.lane_peak in {r.array for r in b.plan.statement_of[n].reads})
        self.row_total = next(n for n in joins if b.plan.statement_of[n].update == "sum")
        row, tile = self.inside(self.row_peak)
        b.do("reorder", (tile, row)).do("running", self.row_peak, tile)
        b.attempt("factor_out", f.maximum)  # scores are scaled where they are compared once, not each
        b.do("coalesce", self.maximum_columns)
        reads = {n: b.plan.statement_of[n].reads for n in (f"{self.row_peak}_scale", f"{f.output}_start")}
        self.before, self.run = (r.array for r in reads[f"{self.row_peak}_scale"])
        self.grown = reads[f"{f.output}_start"][1].array
        last, carried = self.quads(self.inside(f.last)[-1]), self.quads(self.inside(f"{f.output}_start")[-1])
        self.sum = b.plan.statement_of[self.row_total].target.array
        self.tile_max = b.plan.statement_of[self.tile_peak].target.array
        b.do("replicate", self.sum, last[1])
        b.do("replicate", self.grown, (carried[1], self.inside(f"{f.total}_start")[-1]))
        b.do("replicate", self.before, f"{self.row_peak}_scale.z")
        b.do("replicate", self.run, (f"{self.row_peak}_scale.z", f"{self.row_peak}_before.z", self.total_columns[1]))
        b.do("replicate", self.tile_max, f"{self.row_peak}.z")
        for columns in (last, carried, self.total_columns):
            b.do("coalesce", columns)

    def one_loop(self) -> None:
        """All that is done for a tile of keys in one loop over tiles."""
        b, f = self.b, self.form
        top = {n: self.inside(n)[0] for n in (self.row_total, f.scores, f.maximum, self.row_peak, f.total, f.output, f.starts[3])}
        b.do("sequence", top[self.row_total], after=top[f.output])
        tiles = [top[n] for n in (f.scores, f.maximum, self.row_peak, f.total, f.output)]
        for tile in reversed(tiles[:-1]):
            b.do("sequence", tile, after=top[f.starts[3]])
        for tile in tiles[1:]:
            b.do("fuse", tiles[0], tile)
        self.tile = tiles[0]
        for leaf in (f.maximum, f"{self.row_peak}_before"):
            self.alone(self.inside(leaf, self.tile)[0])
        row, part, lane = self.inside(self.tile_peak, self.tile)
        b.do("reorder", (row, lane, part))
        row, part, lane = self.inside(self.row_total)
        b.do("reorder", (row, lane, part))

    def products(self) -> None:
        """Factors in shared memory, those of keys on their way ahead; fragments, and the instructions."""
        b, f, row = self.b, self.form, step_of(self.form, self.t.depth)
        assert row is not None
        out = b.plan.statement_of[f.output].target.array
        b.do("contract", b.plan.statement_of[f.scores].target.array, "register").do("contract", out, "register", fold=True)
        queries, keys, values = (self._copied(x, at) for x, at in (
            (f.left, self.place), (f.right, self.tile), (f.values, self.tile)))
        depth = self._in_tiles(f.scores, row)
        key = self._in_tiles(f.output, row)
        for copy in (queries, keys, values):
            any(b.attempt("swizzle", copy, mode) for mode in reversed(MODES))
        if self.t.stages > 1:
            b.attempt("pipeline", self.tile, self.t.stages)
        fragments = [self._staged(queries, self.place, space="register"), self._staged(keys, depth, space="register")]
        b.do("tensorize", f.scores)
        self._staged(f.weights, key, space="register")
        fragments.append(self._staged(values, key, space="register"))
        b.do("tensorize", f.output)
        for name in fragments:
            b.attempt("load_matrix", name)

    def _in_tiles(self, leaf: str, row: Mma) -> str:
        """A product's loops split by the instruction, tiles outermost; the loop over its depth."""
        depth, i, j = self.inside(leaf, self.tile)
        inner = [self.b.plan.fresh(f"{x}.i") for x in (depth, i, j)]
        for loop, size, name in zip((depth, i, j), (row.k, row.m, row.n), inner, strict=True):
            self.b.do("split", loop, size, inner=name)
        self.b.do("reorder", (depth, j, i, inner[1], inner[2], inner[0]))
        return depth

    def _copied(self, array: str, at: str) -> str:
        """A copy in shared memory by the widest accesses that rows allow; its name."""
        width = WIDEST // self.b.plan.array_of[array].dtype.bytes
        while width > 1:
            try:
                return self._staged(array, at, vector=width)
            except ScheduleError:
                width //= 2
        return self._staged(array, at)

    def _staged(self, array: str, at: str, **options: object) -> str:
        before = {c.name for c in self.b.plan.copies}
        self.b.do("stage", array, at, **options)
        return next(c.name for c in self.b.plan.copies if c.name not in before)

    def lanes(self) -> None:
        """What each lane of a quad computes of its rows, in the lane that has these rows in its accumulators."""
        b, f = self.b, self.form
        of_rows = [leaf.id for leaf, above, k in b.plan.leaves if k.id == f.kernel and leaf.id != self.result
                   and not any(x.role in ("lane", "thread.x", "tensor") for x in above)]
        for leaf in of_rows:
            names = self.inside(leaf, self.tile if self.tile in self.inside(leaf) else "")
            self.lane_of(*names[:2])

    def lane_of(self, row: str, lane: str) -> None:
        """A row of lanes that are each one of a quad."""
        rows_over_warp(self.b, row, lane)

    def results(self) -> None:
        """What goes through shared memory is stored by lanes side by side."""
        if self.result:
            f, plan = self.form, self.b.plan
            row = f.extents[3] * plan.array_of[plan.statement_of[self.result].target.array].dtype.bytes
            role = "thread.x" if self.t.groups else "lane"
            stored(self.b, self.result, role, gcd(row, WIDEST), f.extents[0] % self.t.rows > 0)

    def storage(self) -> None:
        """Everything else in registers of the lanes that make it; parts of rows by shuffles, or through shared memory."""
        b, f = self.b, self.form
        parts = [(self.lane_peak, False), (b.plan.statement_of[f.total].target.array, True)]
        b.do("contract", f.weights, "register")
        for name in (self.tile_max, self.run, self.grown, self.before, self.sum):
            b.do("contract", name, "register", fold=name == self.run)
        for name, fold in parts:
            if not b.attempt("shuffle", name, fold=fold):
                b.do("contract", name, "shared", fold=fold)
        for temporary in [a.name for a in b.plan.program.temporaries if a.name not in b.plan.buffer_of]:
            if any(leaf for leaf, _, k in b.plan.leaves if k.id == f.kernel and any(
                    a.array == temporary for a in b.plan.statement_of[leaf.statement].accesses)):
                b.do("contract", temporary, "register")
        for leaf in (self.tile_peak, self.row_total):
            b.attempt("unroll", self.inside(leaf)[-1])
