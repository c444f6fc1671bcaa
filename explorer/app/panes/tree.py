"""The schedule tree pane: the derived isl tree as rows, with the node ids of the loops."""

from __future__ import annotations

from functools import lru_cache

from ...ir.plan import Plan
from ...poly.isl_outline import TreeRow, outline
from ...views.style import ROLE_GLYPHS
from ..protocol import Row
from .loops import KEPT, MOST, chip, more, row
from .spans import code_spans, span

_GLYPHS = {"domain": "◇", "sequence": "⇣", "filter": "▽", "band": "═"}


@lru_cache(maxsize=KEPT)
def tree_rows(plan: Plan) -> list[Row]:
    """Domain, sequences, filters, marks and bands of the plan's isl schedule tree."""
    rows = [_row(number, found) for number, found in enumerate(outline(plan))]
    if len(rows) > MOST:
        rest = len(rows) - MOST
        rows = [*rows[:MOST], more(f"{rest} more nodes of the tree")]
    return rows


def _row(number: int, found: TreeRow) -> Row:
    key = f"{number}:{found.kind}"
    if found.kind == "mark":
        glyph, _ = ROLE_GLYPHS.get(found.role, ("•", ""))
        chips = [chip(found.role, found.role)] if found.role != "seq" else []
        marked = [span("mark ", "kw"), span(found.text, "name")]
        return row(key, found.node, "mark", found.depth, found.role, glyph, marked, chips, f"mark {found.text}, {found.role}")
    spans = [span(f"{found.kind} ", "kw"), *code_spans(found.text, python=True)]
    return row(key, found.node, found.kind, found.depth, found.kind, _GLYPHS.get(found.kind, "•"), spans,
               label=f"{found.kind} {found.text}".strip())
