"""The loop nest as rows: one for each kernel, loop, buffer, statement and stated wait, its role as glyph, word and colour.

The rows are lines of a ``pre`` with real spaces before them, hidden where the stylesheet draws the indentation: a host
that strips styles (GitHub, a notebook that is not trusted) still shows a loop nest.
"""

from __future__ import annotations

from html import escape

from ..ir.plan import Plan
from ..ir.text import guard_text, kernel_note, statement_text, sum_note
from ..ir.tree import Leaf, Loop, Node, Sync, ranges
from .style import ROLE_GLYPHS

LONGEST = 120
"""Rows shown at most; a person does not read more, and the text has them all."""


def loops_html(plan: Plan) -> str:
    """Rows for every kernel, loop, statement and stated synchronisation of a plan; each carries its node's id."""
    rows: list[str] = []
    for kernel in plan.kernels:
        note = kernel_note(kernel)
        soft = f'&ensp;<span class="soft">{escape(note)}</span>' if note else ""
        rows.append(_row(0, kernel.id, f'{_glyph("▸", "launch")}kernel <span class="var">{escape(kernel.id)}</span>{soft}'))
        used = {v.buffer for leaf, _, k in plan.leaves if k.id == kernel.id for _, v in leaf.views}
        rows += [_buffer(plan, b.name, 1) for b in plan.buffers if b.scope == kernel.id or (not b.scope and b.name in used)]
        _nodes(plan, kernel.body, (), rows)
    more = len(rows) - LONGEST
    if more > 0:
        rows[LONGEST:] = [_row(1, "", f'<span class="soft">… {more} more rows: print(schedule) shows all</span>')]
    return f'<pre class="tree" role="list" aria-label="loops">{"".join(rows)}</pre>'


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
            rows.append(_row(depth, node.id, f'{_glyph("◇", "soft")}<span class="soft">{_sync(node)}</span>'))


def _row(depth: int, node: str, inner: str) -> str:
    named = f' data-node="{escape(node)}"' if node else ""
    indent = f'<span class="in">{"    " * depth}</span>' if depth else ""
    return f'<span class="row" role="listitem"{named} style="--d:{depth}">{indent}{inner}\n</span>'


def _glyph(glyph: str, colour: str) -> str:
    return f'<span class="g {colour}" aria-hidden="true">{glyph}</span> '


def _chip(text: str, colour: str) -> str:
    return f' <span class="chip {colour}">{escape(text)}</span>'


def _loop(loop: Loop) -> str:
    glyph, colour = ROLE_GLYPHS[loop.role]
    chip = _chip(loop.role, colour) if loop.role != "seq" else ""
    return (f'{_glyph(glyph, colour)}for <span class="var">{escape(loop.id)}</span> '
            f'<span class="soft">in {loop.start} … {loop.start + loop.extent}</span>{chip}')


def _sync(sync: Sync) -> str:
    if sync.kind == "commit":
        return "commit: the copies above are one group"
    but = f", except the last {sync.pending} group{'s' * (sync.pending > 1)}" if sync.pending else ""
    return f"wait for the copies{but}"


def _leaf(plan: Plan, leaf: Leaf, above: tuple[Loop, ...]) -> str:
    statement = plan.statement_of[leaf.statement]
    chips = "".join(_chip(f"Σ {how} over {loop}", "thread") for loop, how in leaf.collect)
    if statement.update and not leaf.collect:
        chips += _chip(f"Σ {statement.update}", "soft")
    if leaf.mechanism == "async":
        chips += _chip("cp.async", "vector")
    if note := sum_note(leaf):
        chips += _chip(note, "soft")
    guard = guard_text(statement.domain, dict(leaf.at), ranges(above))
    where = f'&ensp;<span class="soft">where <code>{escape(guard)}</code></span>' if guard else ""
    name = f'<span class="soft">{escape(leaf.id)}</span>&ensp;'
    return f"{name}<code>{escape(statement_text(plan, leaf))}</code>{chips}{where}"


def _buffer(plan: Plan, name: str, depth: int) -> str:
    b = plan.buffer_of[name]
    shape = " × ".join(map(str, b.shape)) or "one value"
    pad = f" + {b.pad} padding" if b.pad else ""
    return _row(depth, name, f'{_glyph("☐", "soft")}<span class="var">{escape(name)}</span> '
                             f'<span class="soft">{shape}{pad} {b.dtype}</span>{_chip(b.space, "soft")}')
