"""The moves that fuse column reductions into a row nest: one launch for rows and partial sums, one that joins the parts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...ir.expr import Expr
from ...ir.program import Access
from ...ir.tree import Leaf, Loop
from .._steps import Builder, chain, leaves_of, own_temporaries
from ..rows import UNROLL
from ..rows.form import WIDE
from .form import RowColumn

COLUMNS, PARTS = 32, 16
"""Threads of a block that joins: for neighbouring columns, and for parts of one column."""


@dataclass(frozen=True)
class Spread:
    """How a row kernel with column sums is spread.

    Attributes
    ----------
    threads : int
        For one row.
    vector : int
        Elements of one access.
    rows : int
        Side by side in a block.
    blocks : int
        Each takes every `blocks`-th group of `rows` rows.
    """

    threads: int
    vector: int
    rows: int
    blocks: int


def fold(form: RowColumn, threads: int, rows: int) -> int:
    """How many rows of threads sum over the rows of a block: all take the same number of columns where that leaves few idle."""
    pieces = -(-form.extent // threads)
    even = max(n for n in range(1, rows + 1) if pieces % n == 0)
    return even if 2 * even >= min(rows, pieces) else min(rows, pieces)


class Rider:
    """The steps, in order; `block`, `row` and `time` are the loops that the loop over rows becomes."""

    def __init__(self, b: Builder, form: RowColumn, spread: Spread) -> None:
        self.b, self.form, self.spread = b, form, spread
        self.kernel, self.time = form.kernel, form.outer[0]
        self.block = self.row = ""
        self.partial: list[str] = []
        self.apart: list[str] = []

    def take(self) -> None:
        """Take all steps."""
        b = self.b
        self._distribute_sums()
        self._split()
        self.partial = self._factor(self.block)
        join = self._together(self.kernel, self.block)
        self._launches(join)
        rows_sum = ""
        if self.row:
            self.apart = self._factor(self.row)
            rows_sum = self._together(self.block, self.row)
        for array in (*self.apart, *self.partial):
            b.do("accumulate", array)
        b.do("bind", self.block, "block.x")
        if self.row:
            b.do("bind", self.row, "thread.y")
        home = self.row or self.block
        walks = [n.id for n in self._body(self.time) if isinstance(n, Loop)]
        lanes = [(name, self._spread(name)) for name in (*walks, *self._sides(home))]
        self._stage(home)
        for leaf in [leaf for leaf in leaves_of(b.plan.loops[self.time]) if b.plan.statement_of[leaf.statement].update]:
            if leaf.id not in self.form.sums:
                b.attempt("collect", leaf.id, "shuffle")
        if rows_sum:
            self._flat(rows_sum)
        self._join(join)
        self._contract(join)
        for name, lane in lanes:
            self._write_out(name, lane)

    # -- loops ---------------------------------------------------------------------------------------------------

    def _body(self, node: str) -> tuple:
        loop = self.b.plan.loops.get(node)
        return loop.body if loop else next(k.body for k in self.b.plan.kernels if k.id == node)

    def _distribute_sums(self) -> None:
        """Give each sum a loop of its own: its guards are not those of what is stored in vectors."""
        for update in self.form.sums:
            while True:
                above = [x for x in self.b.plan.find(update)[1] if x.id not in self.form.outer]  # type: ignore[index]
                shared = next((x for x in reversed(above) if len(x.body) > 1), None)
                if shared is None:
                    break
                ids = [n.id for n in shared.body]
                inside = next(i for i, n in enumerate(shared.body) if n.id == update or update in {x.id for x in leaves_of(n)})
                self.b.do("distribute", shared.id, after=ids[max(inside - 1, 0)])

    def _split(self) -> None:
        b, s = self.b, self.spread
        if len(self.form.outer) > 1:
            b.do("coalesce", self.form.outer)
        self.block = b.plan.fresh(f"{self.time}.b")
        b.do("split", self.time, s.blocks * s.rows, inner=self.block)
        order = [self.block]
        if s.rows > 1:
            self.row = b.plan.fresh(f"{self.time}.r")
            b.do("split", self.block, s.rows, inner=self.row)
            order.append(self.row)
        b.do("reorder", (*order, self.time))

    def _factor(self, loop: str) -> list[str]:
        """Partial results for each iteration of a loop; their arrays."""
        before = {a.name for a in self.b.plan.program.arrays}
        for update in self.form.sums:
            self.b.do("rfactor", update, loop, axes=(0,))
        return [a.name for a in self.b.plan.program.arrays if a.name not in before]

    def _together(self, around: str, loop: str) -> str:
        """One loop over the columns behind `loop` that starts and joins all results of the parts; its name."""
        b = self.b
        ids = [n.id for n in self._body(around)]
        place = ids.index(loop)
        joins = [name for name in ids[place + 1 :] if self._joins(name)]
        names = [self._columns(name, 1) for name in joins]
        for other in names[1:]:
            b.do("fuse", names[0], other)
        starts = [name for name in ids[:place] if self._starts(name, names[0])]
        for start in starts:
            self._columns(start, 0)
            b.do("sequence", start, after=loop)
            b.do("fuse", start, names[0])
            names[0] = start
        return names[0]

    def _columns(self, name: str, inner: int) -> str:
        """The loops over the columns of a nest as one; `inner` loops below are something else."""
        nest = [x.id for x in chain(self.b.plan.loops[name])]
        outer = nest[: len(nest) - inner]
        if len(outer) > 1:
            self.b.do("coalesce", tuple(outer))
        return name

    def _joins(self, name: str) -> bool:
        node = self.b.plan.find(name)[0]  # type: ignore[index]
        return isinstance(node, Loop) and all(self.b.plan.statement_of[x.statement].origin == "combine" for x in leaves_of(node))

    def _starts(self, name: str, join: str) -> bool:
        """Whether a nest starts, for every column, what a joining loop updates."""
        plan = self.b.plan
        node = plan.find(name)[0]  # type: ignore[index]
        if not isinstance(node, Loop) or any(isinstance(n, Loop) for n in chain(node)[-1].body):
            return False
        targets = {plan.statement_of[x.statement].target.array for x in leaves_of(plan.loops[join])}
        mine = [plan.statement_of[x.statement] for x in leaves_of(node)]
        size = prod(x.extent for x in chain(node))
        return size == self.form.extent and all(s.target.array in targets and not s.reads and not s.update for s in mine)

    def _launches(self, join: str) -> None:
        """The row nest and the joining loop in launches of their own."""
        b = self.b
        ids = [n.id for n in self._body(self.kernel)]
        place = ids.index(self.block)
        b.do("launch", self.kernel, after=self.block)
        second = b.plan.kernel_of(join).id  # type: ignore[union-attr]
        if self._body(second)[-1].id != join:
            b.do("launch", second, after=join)
        if place:
            b.do("launch", self.kernel, after=ids[place - 1])
            self.kernel = b.plan.kernel_of(self.block).id  # type: ignore[union-attr]

    def _sides(self, home: str) -> list[str]:
        """The nests over the columns before and behind the loop in time."""
        return [self._columns(n.id, 0) for n in self._body(home) if isinstance(n, Loop) and n.id != self.time]

    def _spread(self, loop: str) -> str:
        """Divide a loop over the columns among the threads of a row; its lanes ("" without)."""
        b, lanes = self.b, ""
        self._columns(loop, 0)
        if self.spread.vector > 1:
            lanes = b.plan.fresh(f"{loop}.v")
            b.do("split", loop, self.spread.vector, inner=lanes)
        part = b.plan.fresh(f"{loop}.t")
        b.do("split", loop, self.spread.threads, inner=part).do("bind", part, "thread.x")
        return lanes

    def _flat(self, loop: str) -> None:
        """The sum over the rows of a block: neighbouring threads take neighbouring columns, all the same number of them."""
        b, s = self.b, self.spread
        y, x = b.plan.fresh(f"{loop}.y"), b.plan.fresh(f"{loop}.x")
        most = fold(self.form, s.threads, s.rows)
        b.do("split", loop, s.threads, inner=x).do("bind", x, "thread.x")
        if most > 1:
            b.do("split", loop, most, inner=y).do("bind", y, "thread.y")

    def _write_out(self, name: str, lane: str) -> None:
        """Vectors as wide as their types allow, and all accesses of a thread written out."""
        b = self.b
        if lane and not b.attempt("vectorize", lane):
            arrays = {self.b.plan.statement_of[x.statement].target.array for x in leaves_of(b.plan.loops[lane])}
            width = WIDE // max(b.plan.array_of[a].dtype.bytes for a in arrays)
            if arrays <= {*self.apart, *self.partial} and 1 < width < b.extent(lane):
                part = b.plan.fresh(f"{lane}.w")
                b.do("split", lane, width, inner=part).attempt("vectorize", part)
                b.attempt("unroll", lane)
        b.attempt("unroll", name)

    # -- storage -------------------------------------------------------------------------------------------------

    def _stage(self, home: str) -> None:
        """What several nests read of a row into registers, before all else; what all rows share, once."""
        b, seen = self.b, {}
        fixed: dict[str, bool] = {}
        for node in self._body(self.time):
            for leaf in leaves_of(node):
                for access in b.plan.statement_of[leaf.statement].reads:
                    walked = self._variables(leaf, access)
                    if b.plan.array_of[access.array].role == "in" and isinstance(node, Loop) and node.id in walked:
                        seen.setdefault(access.array, set()).add(node.id)
                        fixed[access.array] = fixed.get(access.array, True) and not walked & {self.time, self.row, self.block}
        for array, nests in seen.items():
            for vector in dict.fromkeys((self.spread.vector, 1)):
                if fixed[array]:
                    done = b.attempt("stage", array, home, space="register", vector=vector)
                else:
                    done = len(nests) < 2 or b.attempt("stage", array, self.time, space="register", vector=vector, early=True)
                if done:
                    break

    def _variables(self, leaf: Leaf, access: Access) -> set[str]:
        at = dict(leaf.at)
        return {name for e in access.index if isinstance(e, Expr) for name in e.substitute(at).variables()}

    def _contract(self, join: str) -> None:
        """Temporaries that one of the two launches has for itself: rows side by side meet in shared memory."""
        b = self.b
        for kernel in dict.fromkeys(b.plan.kernel_of(node).id for node in (self.block, join)):  # type: ignore[union-attr]
            for name in own_temporaries(b.plan, kernel):
                if name not in b.plan.buffer_of:
                    b.attempt("contract", name, "shared" if name in self.apart else "register")

    # -- the second launch ---------------------------------------------------------------------------------------

    def _join(self, join: str) -> None:
        """Sum over the blocks: neighbouring threads take neighbouring columns, rows of threads take parts."""
        b = self.b
        for array in dict.fromkeys(b.plan.statement_of[x.statement].target.array for x in leaves_of(b.plan.loops[join])):
            if b.plan.array_of[array].role != "temporary":
                b.do("accumulate", array)
        x = b.plan.fresh(f"{join}.x")
        b.do("split", join, COLUMNS, inner=x).do("bind", join, "block.x").do("bind", x, "thread.x")
        for loop in [n.id for n in self._body(x) if isinstance(n, Loop)]:
            (leaf,) = leaves_of(b.plan.loops[loop])
            row, several = loop, ""
            if b.extent(loop) > PARTS:
                row = b.plan.fresh(f"{loop}.y")
                b.do("split", loop, PARTS, inner=row)
                if b.extent(loop) > UNROLL:
                    several = b.plan.fresh(f"{loop}.u")
                    b.do("split", loop, UNROLL // 2, inner=several).do("reorder", (row, several))
            b.do("bind", row, "thread.y").do("collect", leaf.id, "shuffle")
            if row != loop:
                b.do("unroll", several or loop)
