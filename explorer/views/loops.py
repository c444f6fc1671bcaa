"""The loop nest as rows: one for each kernel, loop, buffer, statement and stated wait, its role as glyph, word and colour."""

from __future__ import annotations

from html import escape

from ..ir.plan import Plan
from ..ir.text import guard_text, statement_text
from ..ir.tree import Leaf, Loop, Node, Sync, ranges
from .style import ROLE_GLYPHS

LONGEST = 120
"""Rows shown at most; a person does not read more, and the text has them all."""


def loops_html(plan: Plan) -> str:
    """Rows for every kernel, loop, statement and stated synchronisation of a plan; each carries its node's id."""
    rows: list[str] = []
    for kernel in plan.kernels:
        rows.append(_row(0, kernel.id, f'{_glyph("▸", "launch")}kernel <span class="var">{escape(kernel.id)}</span>'))
        used = {v.buffer for leaf, _, k in plan.leaves if k.id == kernel.id for _, v in leaf.views}
        rows += [_buffer(plan, b.name, 1) for b in plan.buffers if b.scope == kernel.id or (not b.scope and b.name in used)]
        _nodes(plan, kernel.body, (), rows)
    more = len(rows) - LONGEST
    shown = rows if more <= 0 else [*rows[:LONGEST], f'<div class="row soft" style="--d:1">… {more} more rows: print(schedule) shows all</div>']
    return f'<div role="list" aria-label="loops">{"".join(shown)}</div>'


def _nodes(plan: Plan, nodes: tuple[Node, ...], above: tuple[Loop, ...], rows: list[str]) -> None:
    depth = len(above) + 1
    for node in nodes:
        if isinstance(node, Loop):
            rows.append(_row(depth, node.id, _loop(node)))
            rows += [_buffer(plan, b.name, depth + 1) for b in plan.buffers if b.scope == node.id]
            _nodes(plan, node.body, (*above, node), rows)
        elif isinstance(node, Leaf):
            rows.append(_row(depth, node.id, _leaf(plan, node, above)))
        elif isinstance(node, Sync):
            what = "commit: close the group of copies" if node.kind == "commit" else f"wait: at most {node.pending} groups of copies open"
            rows.append(_row(depth, node.id, f'{_glyph("⧗", "soft")}<span class="soft">{what}</span>'))


def _row(depth: int, node: str, inner: str) -> str:
    return f'<div class="row" role="listitem" data-node="{escape(node)}" style="--d:{depth}">{inner}</div>'


def _glyph(glyph: str, colour: str) -> str:
    return f'<span class="g {colour}" aria-hidden="true">{glyph}</span>'


def _loop(loop: Loop) -> str:
    glyph, colour = ROLE_GLYPHS[loop.role]
    chip = f'<span class="chip {colour}">{escape(loop.role)}</span>' if loop.role != "seq" else ""
    return (f'{_glyph(glyph, colour)}for <span class="var">{escape(loop.id)}</span> '
            f'<span class="soft">in {loop.start} … {loop.start + loop.extent}</span>{chip}')


def _leaf(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> str:
    statement = plan.statement_of[leaf.statement]
    chips = "".join(f'<span class="chip bad">Σ {escape(how)} over {escape(loop)}</span>' for loop, how in leaf.collect)
    if statement.update and not leaf.collect:
        chips += f'<span class="chip soft">Σ {escape(statement.update)}</span>'
    if leaf.mechanism == "async":
        chips += '<span class="chip vector">cp.async</span>'
    guard = guard_text(statement.domain, dict(leaf.at), ranges(above))
    where = f'<span class="soft">  where {escape(guard)}</span>' if guard else ""
    return f"<code>{escape(statement_text(plan, leaf))}</code>{chips}{where}"


def _buffer(plan: Plan, name: str, depth: int) -> str:
    b = plan.buffer_of[name]
    shape = " × ".join(map(str, b.shape)) or "one value"
    pad = f" + {b.pad} padding" if b.pad else ""
    return _row(depth, name, f'{_glyph("☐", "soft")}<span class="var">{escape(name)}</span> '
                             f'<span class="soft">{shape}{pad} {b.dtype}</span><span class="chip soft">{escape(b.space)}</span>')
