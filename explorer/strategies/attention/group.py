"""An attention's schedule on warpgroups (Hopper): tiles by bulk copies, both products by ``wgmma``, weights from registers.

Scores lie in the registers of a warpgroup as the left factor of the next product does, so that weights never leave the lanes that
compute them (the form of Shah et al., "FlashAttention-3", NeurIPS 2024).  Moves are those of the form for warps
(:mod:`~explorer.strategies.attention.moves`), but for what copies, what multiplies, and over which threads rows lie.
"""

from __future__ import annotations

from ...errors import TransformError
from ...ir.expr import Expr
from ...ir.layout import GROUP
from ...ir.swizzle import MODES
from ...schedule import Schedule
from .._steps import Builder
from ..contraction.lanes import rows_over_group
from ..contraction.shapes import GROUP_ROWS, ROW_BYTES
from .form import AttentionForm
from .moves import Attending, Tiling

DEPTHS, MOST_DEPTH = (64, 48, 32, 16), 256
"""Elements of 16 bits along the depth that one text multiplies: up to a swizzled row, or where rows run across the depth."""


def depth_of(extent: int, row: int = 0) -> int:
    """The deepest text that divides an extent, and a row of so many elements that lies along it; 0 where none does."""
    return next((n for n in DEPTHS if extent % n == 0 and row % n == 0), 0)


def build_of_groups(schedule: Schedule, form: AttentionForm, t: Tiling, approximate: bool = True) -> Schedule:
    """The schedule of a tiling whose rows are those of warpgroups.

    Parameters
    ----------
    schedule : Schedule
        As :func:`~explorer.strategies.attention.form.ready_form` left it.
    form : AttentionForm
    t : Tiling
        With ``groups``.
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
    if t.rows != t.groups * GROUP_ROWS or not depth_of(t.keys) or not depth_of(form.extents[2]) or form.extents[3] % 16:
        raise TransformError(f"{form.kernel} cannot have {t}",
                             why="a warpgroup multiplies 64 rows, and a depth of multiples of 16",
                             hint="64 rows for each warpgroup, and keys in multiples of 16")
    return _OfGroups(Builder(schedule, judged=False), form, t).schedule(approximate)


class _OfGroups(Attending):
    """The steps that are other ones for warpgroups."""

    role, fused_masks = "thread.y", True

    @property
    def rows_of_place(self) -> int:
        """Rows of a warpgroup."""
        return GROUP_ROWS

    def products(self) -> None:
        """Factors in shared memory, keys and values by bulk copies; weights from the registers they are in."""
        b, f = self.b, self.form
        b.do("contract", b.plan.statement_of[f.scores].target.array, "register")
        b.do("contract", b.plan.statement_of[f.output].target.array, "register", fold=True)
        if self.t.stages > 1 and not self.t.persistent:
            self._queries()
        else:
            self._boxes(f.left, self.place)
        self._boxes(f.right, self.tile)
        self._boxes(f.values, self.tile)
        depth = self._in_steps(f.scores)
        b.do("tensorize", f.scores)
        if self.t.stages > 1:
            b.do("specialise", self.tile, self.t.stages, registers=self.t.registers, blocks=self.t.blocks)
        key = self._in_steps(f.output, across=self.t.turns)
        self._staged(f.weights, key, space="register")
        b.do("tensorize", f.output)
        if self.t.turns:  # one wait for the products of a tile, in which other warpgroups could not multiply
            if b.extent(depth) > 1:
                b.attempt("overlap", depth)
            b.attempt("take_turns", self.tile)

    def _boxes(self, array: str, at: str) -> None:
        """A factor in shared memory as instructions read it, by the widest swizzle of which its rows have whole patterns."""
        if not any(self.b.attempt("stage", array, at, engine="bulk", swizzle=mode, early=True) for mode in reversed(MODES)):
            self.b.do("stage", array, at, engine="bulk", swizzle=MODES[0], early=True)  # says why not

    def _queries(self) -> None:
        """Queries by the threads themselves: by the producer, one copy took as long (2,048 keys 487 and 480 µs, H200)."""
        b, f = self.b, self.form
        name = self._copied(f.left, self.place)
        loop = self.inside(name)[0]
        if b.extent(loop) % GROUP == 0:
            inner = b.plan.fresh(f"{loop}.t")
            b.do("split", loop, GROUP, inner=inner).do("bind", inner, "thread.x")
        b.do("swizzle", name, _mode(f.extents[2] * b.plan.array_of[f.left].dtype.bytes))

    def _in_steps(self, leaf: str, across: bool = False) -> str:
        """A product's loops with the depth of its instructions innermost; the loop over these.

        Where the right factor's rows run `across` the depth, and no swizzled row ends, all of the depth is one.
        """
        depth, i, j = self.inside(leaf, self.tile)
        inner, extent = self.b.plan.fresh(f"{depth}.i"), self.b.extent(depth)
        along = depth in self._right(leaf)[-1].variables()
        size = self.b.plan.array_of[self.form.right].dtype.bytes
        text = depth_of(extent, _mode(extent * size) // size if along else 0)
        rows = across and extent <= MOST_DEPTH and not along
        self.b.do("split", depth, extent if rows else text, inner=inner).do("reorder", (depth, i, j, inner))
        return depth

    def _right(self, leaf: str) -> list[Expr]:
        """The index of a product's right factor, over the loops."""
        node = next(node for node, _, _ in self.b.plan.leaves if node.id == leaf)
        index = self.b.plan.statement_of[node.statement].reads[1].index
        return [e.substitute(node.places) for e in index if isinstance(e, Expr)]

    def lane_of(self, row: str, lane: str) -> None:
        """Rows as a warpgroup's accumulator has them."""
        rows_over_group(self.b, row, lane)


def _mode(nbytes: int) -> int:
    """The widest swizzle of which a row has whole patterns."""
    return next((n for n in (ROW_BYTES, 64, 32) if nbytes % n == 0), 32)
