"""The rows of the loops and of the schedule tree: the fragment of each, and what the front end asks of it."""

from __future__ import annotations

from functools import lru_cache

from ...ir.plan import Plan
from ...poly.isl_outline import TreeRow, outline
from ...views import loops
from ...views.rows import Chip, code, piece
from ...views.rows import Row as Line
from ...views.style import ROLE_GLYPHS
from ..protocol import Row
from .walks import walks

MOST = 400
"""Rows sent at most: more than anyone reads, and the text of the schedule has them all."""
KEPT = 64
"""Plans whose rows are kept: undo, redo and a return to a state of the history show them again."""
_GLYPHS = {"domain": "◇", "sequence": "⇣", "filter": "▽", "band": "═"}


@lru_cache(maxsize=KEPT)
def loop_rows(plan: Plan) -> list[Row]:
    """Every kernel, loop, buffer, statement and wait of a plan; statements with how the loops around them walk their arrays."""
    walked = walks(plan)
    rows = [_sent(line) for line in loops.loop_rows(plan, MOST)]
    for row in rows:
        if row["kind"] == "statement" and row["node"] in walked:
            row["walk"] = walked[row["node"]]
    return rows


@lru_cache(maxsize=KEPT)
def tree_rows(plan: Plan) -> list[Row]:
    """Domain, sequences, filters, marks and bands of the plan's isl schedule tree, with the node ids of the loops."""
    lines = [_line(number, found) for number, found in enumerate(outline(plan))]
    return [_sent(line) for line in loops.shortened(lines, MOST, "more nodes of the tree")]


def _sent(line: Line) -> Row:
    return {"key": line.key, "node": line.node, "kind": line.kind, "depth": line.depth, "label": line.label,
            "html": line.html(live=True)}


def _line(number: int, found: TreeRow) -> Line:
    key = f"{number}:{found.kind}"
    if found.kind == "mark":
        glyph, colour = ROLE_GLYPHS.get(found.role, ("•", ""))
        chips = (Chip(found.role, colour),) if found.role != "seq" else ()
        text = f'{piece("mark", "kw")} {piece(found.text, "name")}'
        return Line(key, found.node, "mark", found.depth, glyph, colour, text, f"mark {found.text}, {found.role}", chips)
    text = f'{piece(found.kind, "kw")} {code(found.text)}'
    label = f"{found.kind} {found.text}".strip()
    return Line(key, found.node, found.kind, found.depth, _GLYPHS.get(found.kind, "•"), "", text, label)
