"""Small sizes at which the steps of a schedule may apply: of whole vectors, and of a tile and a rest.

Sizes that nothing divides ask most of guards, but few fast schedules exist there: rows of odd lengths are not aligned, so no copy
moves several elements at once, and a pipeline has no iterations for its stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ...errors import ExplorerError
from ...ir.expr import Expr
from ...ir.program import Indirect, Program
from ...ir.tree import Loop, walk
from ...kernel.reference.slices import cost
from ...schedule import Schedule

SMALL = 8
"""Sizes up to this (windows, time steps) are kept."""
ATTEMPTS = 4
"""Sets of sizes that are tried: to replay the steps takes up to a second each."""
_VECTOR_BYTES = 16
_TIMES = (5, 3, 7, 2, 4, 1)
"""Vectors in a size that no tile is known of."""
_CAPS = ((inf, inf), (64, inf), (0, inf), (64, 64), (0, 0))
"""Elements of a tile that a size has beside its rest, at most: of sizes that no rows in memory have, and of those that are rows'
lengths.  64 halves are a row of the widest swizzle.
"""


@dataclass(frozen=True)
class Span:
    """What a schedule divides a size by.

    Attributes
    ----------
    least : int
        Elements of its largest tile, or 1; where copies run ahead over tiles, of as many as they run ahead.
    ahead : bool
        Whether copies run ahead along it: the steps then need that many tiles.
    rows : bool
        Whether rows of an array are as long, so that vectors and boxes lie along it.
    """

    least: int = 1
    ahead: bool = False
    rows: bool = True


def fitting_sizes(schedule: Schedule, limit: float) -> list[dict[str, int]]:
    """Sets of small sizes, at most :data:`ATTEMPTS`, those that ask most of the guards first.

    Every size is a multiple of the elements in a vector of 16 bytes.  The first set has a tile and a vector along each size that
    the schedule divides, and as many tiles as its pipelines have stages; the later ones have smaller tiles.

    Parameters
    ----------
    schedule : Schedule
    limit : float
        Operations; sets that take more are left out.
    """
    program = schedule.source
    unit = max(SMALL, _VECTOR_BYTES // min((a.dtype.bytes for a in program.arrays), default=_VECTOR_BYTES))
    found = spans(schedule)
    chosen: list[dict[str, int]] = []
    for caps in _CAPS:
        sizes = {name: value if value <= SMALL else _size(found.get(name, Span()), value, caps, unit, unit * _TIMES[n % 6])
                 for n, (name, value) in enumerate(program.sizes)}
        if sizes not in chosen and _cost(schedule, sizes) <= limit:
            chosen.append(sizes)
    return chosen[:ATTEMPTS]


def _size(span: Span, value: int, caps: tuple[float, float], unit: int, otherwise: int) -> int:
    tile = span.least if span.ahead else int(min(span.least, caps[span.rows]))
    return -(-tile // unit) * unit + unit if span.ahead or 1 < tile < value else otherwise


def spans(schedule: Schedule) -> dict[str, Span]:
    """What the schedule divides each size by; nothing without the definition, which alone knows the sizes' loops."""
    strides: dict[str, dict[str, int]] = {}
    for leaf, _, _ in schedule.plan.leaves:
        for dim, place in leaf.at:
            for atom, coefficient in place.terms:
                if isinstance(atom, str):
                    row = strides.setdefault(dim, {})
                    row[atom] = max(row.get(atom, 1), abs(coefficient))
    asked = [(getattr(step, "loop", None), getattr(step, "stages", None)) for step in schedule.steps]  # pipeline, specialise
    stages = {loop: count for loop, count in asked if isinstance(loop, str) and isinstance(count, int)}
    along = {v for s in schedule.source.statements for a in s.accesses for v in _variables(a.index[-1:])}
    out: dict[str, Span] = {}
    for name, loops in _loops_of(schedule).items():
        rows = [strides.get(loop, {}) for loop in loops]
        tile = max((c for row in rows for c in row.values()), default=1)
        run = max((row[loop] * (count - 1) for row in rows for loop, count in stages.items() if loop in row), default=0)
        out[name] = Span(max(tile, run), run > 0, not along.isdisjoint(loops))
    return out


def _variables(index: Sequence[Expr | Indirect]) -> Iterator[str]:
    """The loops in an index; of a value that was read, none."""
    for part in index:
        if isinstance(part, Expr):
            yield from part.variables()


def _loops_of(schedule: Schedule) -> dict[str, list[str]]:
    """The loops of the program, by the sizes that they grow with."""
    definition, sizes = schedule.definition, dict(schedule.source.sizes)
    if definition is None:
        return {}
    own, out = _extents(schedule.source), dict[str, list[str]]()
    for name, value in sizes.items():
        try:
            other = _extents(definition.at(**{**sizes, name: value + 1}))
        except ExplorerError:
            continue
        out[name] = [loop for loop, extent in own.items() if other.get(loop, extent) > extent]
    return out


def _extents(program: Program) -> dict[str, int]:
    return {node.id: node.extent for node in walk(program.body) if isinstance(node, Loop)}


def _cost(schedule: Schedule, sizes: Mapping[str, int]) -> float:
    """Operations of the program at these sizes; without its definition, or where it is none there, no limit is known."""
    try:
        return cost(schedule.definition.at(**sizes)) if schedule.definition else 0
    except ExplorerError:
        return inf
