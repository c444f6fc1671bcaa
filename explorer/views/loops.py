"""The loop nest as rows: one for each loop and statement, its role as colour and glyph."""

from __future__ import annotations

from html import escape

from ..ir.plan import Plan
from ..ir.text import statement_text
from ..ir.tree import Leaf, Loop, Node, Sync
from .style import ROLE_GLYPHS


def loops_html(plan: Plan) -> str:
    """Rows for every kernel, loop, statement and stated synchronisation of a plan."""
    rows: list[str] = []
    for kernel in plan.kernels:
        rows.append(f'<div class="row" style="--d:0"><span class="launch">⏵</span> kernel <span class="var">{escape(kernel.id)}</span></div>')
        for buffer in plan.buffers:
            if buffer.scope in ("", kernel.id) and _used(plan, kernel.body, buffer.name):
                rows.append(_buffer(plan, buffer.name, 1))
        _nodes(plan, kernel.body, 1, rows)
    return "".join(rows)


def _nodes(plan: Plan, nodes: tuple[Node, ...], depth: int, rows: list[str]) -> None:
    for node in nodes:
        if isinstance(node, Loop):
            glyph, colour = ROLE_GLYPHS[node.role]
            chip = f'<span class="chip {colour}">{escape(node.role)}</span>' if node.role != "seq" else ""
            end = node.start + node.extent
            rows.append(
                f'<div class="row" style="--d:{depth}"><span class="{colour}">{glyph}</span> for <span class="var">{escape(node.id)}</span>'
                f' <span class="soft">in {node.start} … {end}</span>{chip}</div>')
            for buffer in plan.buffers:
                if buffer.scope == node.id:
                    rows.append(_buffer(plan, buffer.name, depth + 1))
            _nodes(plan, node.body, depth + 1, rows)
        elif isinstance(node, Leaf):
            rows.append(_leaf(plan, node, depth))
        elif isinstance(node, Sync):
            what = "commit the copies" if node.kind == "commit" else f"wait until at most {node.pending} groups of copies are open"
            rows.append(f'<div class="row soft" style="--d:{depth}">⧗ {what}</div>')


def _leaf(plan: Plan, leaf: Leaf, depth: int) -> str:
    statement = plan.statement_of[leaf.statement]
    chips = "".join(f'<span class="chip bad">Σ {escape(how)} over {escape(loop)}</span>' for loop, how in leaf.collect)
    if statement.update and not leaf.collect:
        chips += f'<span class="chip soft">Σ {escape(statement.update)}</span>'
    if leaf.mechanism == "async":
        chips += '<span class="chip vector">cp.async</span>'
    return f'<div class="row" style="--d:{depth}"><code>{escape(statement_text(plan, leaf))}</code>{chips}</div>'


def _buffer(plan: Plan, name: str, depth: int) -> str:
    b = plan.buffer_of[name]
    shape = " × ".join(map(str, b.shape)) or "one value"
    pad = f" + {b.pad} padding" if b.pad else ""
    return (f'<div class="row" style="--d:{depth}">☐ <span class="var">{escape(name)}</span> '
            f'<span class="soft">{shape}{pad} {b.dtype}</span><span class="chip soft">{escape(b.space)}</span></div>')


def _used(plan: Plan, nodes: tuple[Node, ...], buffer: str) -> bool:
    for node in nodes:
        if isinstance(node, Loop) and _used(plan, node.body, buffer):
            return True
        if isinstance(node, Leaf) and any(v.buffer == buffer for _, v in node.views):
            return True
    return False
