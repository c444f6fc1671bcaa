"""Tables that compare schedules: what each one launches, moves and takes, worked out where the table is made.

Bytes are counted, not estimated: of every access that a kernel's text makes, the different elements it reaches, once.  Times are
taken on a GPU if there is one, and left empty if there is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ExplorerError
from ..ir.tree import JOINED
from ..poly.count import footprint, instances
from ..poly.sites import Site, sites
from ..run.cuda import device as cuda
from ..run.execute import execute
from ..schedule import Schedule
from ..views.style import mark, page, table

Cell = str | bool | None
"""Text; whether something holds; or nothing to say."""
NUMBER = re.compile(r"-?[\d,.]+(e[+-]?\d+)?%?")
BREAK = 40
"""Characters of a cell beyond which its column may break lines."""


@dataclass(frozen=True, repr=False)
class Table:
    """Rows of text and verdicts.

    Attributes
    ----------
    title : str
    columns : tuple of str
        Those whose cells are all numbers stand right.
    rows : tuple of tuple of (str, bool or None)
    note : str
        A sentence below.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @classmethod
    def of(cls, title: str, rows: Sequence[dict[str, Any]], note: str = "") -> Table:
        """From one dictionary for each row; a column that is empty in every row is left out."""
        names = dict.fromkeys(name for row in rows for name, value in row.items() if value not in (None, ""))
        return cls(title, tuple(names), tuple(tuple(_cell(row.get(name)) for name in names) for row in rows), note)

    def __str__(self) -> str:
        lines = [self.columns, *(tuple(_plain(v) for v in row) for row in self.rows)]
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        right = [self._numeric(n) for n in range(len(self.columns))]
        text = ["  ".join(v.rjust(w) if r else v.ljust(w) for v, w, r in zip(line, wide, right, strict=True)).rstrip()
                for line in lines if line]
        return "\n".join(filter(None, [self.title, *text, self.note]))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [tuple(mark(v, "") if isinstance(v, bool) else escape(v or "") for v in row) for row in self.rows]
        numeric = frozenset(name for n, name in enumerate(self.columns) if self._numeric(n))
        note = f'<div class="soft">{escape(self.note)}</div>' if self.note else ""
        wide = tuple(name for n, name in enumerate(self.columns) if any(len(_plain(row[n])) > BREAK for row in self.rows))
        return page(self.title, "", table(self.columns, rows, numeric, wide) if rows else "", note)

    def _numeric(self, column: int) -> bool:
        values = [row[column] for row in self.rows if row[column] not in (None, "")]
        return bool(values) and all(isinstance(v, str) and NUMBER.fullmatch(v) for v in values)


def _cell(value: Any) -> Cell:
    """A value as it is shown: integers with their thousands apart, other numbers with three figures."""
    if value is None or isinstance(value, bool | str):
        return value
    if value != value:  # not a number: not taken
        return None
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _plain(value: Cell) -> str:
    return {True: "✓", False: "✗", None: ""}[value] if value is None or isinstance(value, bool) else value


class Moved(NamedTuple):
    """Bytes to and from global memory, and whether the count is exact (else it is an upper bound)."""

    bytes: int
    exact: bool


def moved(schedule: Schedule) -> Moved:
    """Bytes that the kernels of a schedule move, if what an access repeats comes from a cache.

    Each access in the text of a kernel counts the different elements that it reaches, once; two accesses of one element in one
    iteration count once, an update counts as a read and a write.

    Parameters
    ----------
    schedule : Schedule

    Returns
    -------
    Moved
    """
    plan, total, exact = schedule.plan, 0, True
    ran = instances(plan)
    for kernel in plan.kernels:
        different: dict[Any, Site] = {}
        for site in sites(plan)[kernel.id]:
            if site.space == "global":
                free = None in site.cell
                key = (site.cells, site.cell, tuple(x.id for x in site.above), site.writes, site.slot if free else 0,
                       site.leaf.id if free else "")
                different.setdefault(key, site)
        for site in different.values():
            known = None not in site.cell
            count, sure = footprint(_where_read(site)) if known else (ran[site.statement.name], False)
            exact &= sure
            total += count * _element_bytes(schedule, site) * (1 + (site.reads and site.writes))
    return Moved(total, exact)


def _where_read(site: Site) -> Site:
    """The access with the constraints under which a guarded read happens among its domain's."""
    s = site.statement
    return replace(site, statement=replace(s, domain=(*s.domain, *s.inside))) if site.reads and s.inside else site


def _element_bytes(schedule: Schedule, site: Site) -> int:
    if site.leaf.view(site.slot) is not None:
        return schedule.plan.buffer_of[site.storage].dtype.bytes
    return schedule.plan.array_of[site.storage].dtype.bytes


def launches(schedule: Schedule) -> str:
    """The launches in words: blocks and threads of each, ``"128 × 512, then by the block that finishes last"``."""
    grid = {r.kernel: r for r in schedule.facts.resources}
    out = []
    for group in schedule.plan.launched:
        first = grid[group[0].id]
        ways = [f"then {JOINED[k.join]}" for k in group[1:]]
        out.append(", ".join([f"{prod(first.grid):,} × {first.threads_per_block}", *ways]))
    return "; ".join(out)


def parts(schedule: Schedule) -> int:
    """Partial results in global memory for each result of the program; 1 where a block makes a result alone."""
    plan = schedule.plan
    used = {site.cells: site for k in plan.kernels for site in sites(plan)[k.id] if site.space == "global"}
    held = sum(prod(plan.buffer_of[name].shape if staged else plan.array_of[name].shape) for name, staged in used
               if staged or plan.array_of[name].role == "temporary")
    results = sum(prod(a.shape) for a in plan.program.parameters if a.role == "out")
    return max(1, held // max(1, results))


def time_us(schedule: Schedule, repeats: int = 20) -> float | str | None:
    """Microseconds on the GPU with a cold L2 cache, an empty launch subtracted; None without a GPU.

    Returns
    -------
    float, str or None
        Text where there is no time: the result was wrong, or the run failed and why.
    """
    if cuda.available() is not None:
        return None
    try:
        run = execute(schedule, device="cuda", l2=("cold",), repeats=repeats, ragged=False, seeds=1)
    except ExplorerError as error:
        return error.what
    return "wrong" if run.correct is False else run.timing.net_us if run.timing else None


def measured(paths: Sequence[str | Path], suite: str, start: str = "") -> Table:
    """Times that were stored with the name of the GPU they were taken on.

    Parameters
    ----------
    paths : sequence of path
        Files as `benchmarks/gpu.py --json` writes them; the first that has rows of the suite is shown.
    suite : str
    start : str
        Only cases whose names begin like this.
    """
    for path in map(Path, paths):
        stored = json.loads(path.read_text()) if path.exists() else {"rows": []}
        rows = [r for r in stored["rows"] if r["suite"] == suite and r["name"].startswith(start)]
        if rows:
            peers = [p for p in ("torch", "inductor", "cupy", "xla") if any(p in r for r in rows)]
            shown = [{"case": r["name"].removeprefix(start), "explorer µs": r.get("ours"), **{f"{p} µs": r.get(p) for p in peers},
                      "floor µs": r.get("floor"), "best other / explorer": r.get("ratio")} for r in rows]
            return Table.of(f"{stored['gpu']}: {suite}, as stored in benchmarks/results", shown,
                            "Cold L2 cache, initialisation counted. Floor: the compulsory bytes at the bandwidth of a copy; "
                            "reading alone can be a little faster.")
    how = f"benchmarks/gpu.py --suites {suite} --json FILE takes them on a machine with a GPU."
    return Table("No times are stored", (), (), how)


__all__ = ["Moved", "Table", "launches", "measured", "moved", "parts", "time_us"]
