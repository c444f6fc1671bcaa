"""The loop nest as rows: kernels, loops, buffers, statements and stated waits, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ...ir.expr import Expr, Ranges
from ...ir.plan import Plan
from ...ir.program import Constraint
from ...ir.text import guard_text, kernel_note, statement_text, sum_note
from ...ir.tree import Kernel, Leaf, Loop, Node, Sync, ranges
from ...views.style import ROLE_GLYPHS
from ..protocol import Chip, Row, Span
from .spans import code_spans, span
from .walks import walks

MOST = 400
"""Rows sent at most: more than anyone reads, and the text of the schedule has them all."""
KEPT = 64
"""Plans whose rows are kept: undo, redo and a return to a state of the history show them again."""


@lru_cache(maxsize=KEPT)
def loop_rows(plan: Plan) -> list[Row]:
    """Every kernel, loop, buffer, statement and wait of a plan; a row says so where some are left out."""
    rows: list[Row] = []
    walked = walks(plan)
    for kernel in plan.kernels:
        rows.append(_kernel(plan, kernel))
        used = {v.buffer for leaf, _, k in plan.leaves if k.id == kernel.id for _, v in leaf.views}
        rows += [_buffer(plan, b.name, 1) for b in plan.buffers if b.scope == kernel.id or (not b.scope and b.name in used)]
        rows += _nodes(plan, kernel.body, ())
    if len(rows) > MOST:
        rest = len(rows) - MOST
        rows = [*rows[:MOST], more(f"{rest} more rows: print(schedule) shows all")]
    for one in rows:
        if one["kind"] == "statement" and one["node"] in walked:
            one["walk"] = walked[one["node"]]
    return rows


def more(text: str) -> Row:
    """The row that says what is left out."""
    return row("more", None, "mark", 1, "soft", "…", [span(text, "note")])


def row(key: str, node: str | None, kind: str, depth: int, role: str, glyph: str, spans: list[Span],
        chips: list[Chip] | None = None, label: str = "") -> Row:  # fmt: skip
    """One row; without a label it is read out as its text."""
    words = label or "".join(s["text"] for s in spans)
    return {"key": key, "node": node, "kind": kind, "depth": depth, "role": role, "glyph": glyph, "spans": spans,
            "chips": chips or [], "label": words}


def chip(text: str, role: str, title: str = "") -> Chip:
    """A small label."""
    return {"text": text, "role": role, "title": title or text}


def _nodes(plan: Plan, nodes: tuple[Node, ...], above: tuple[Loop, ...]) -> Iterator[Row]:
    depth = len(above) + 1
    for node in nodes:
        if isinstance(node, Loop):
            yield _loop(plan, node, above, depth)
            for buffer in plan.buffers:
                if buffer.scope == node.id:
                    yield _buffer(plan, buffer.name, depth + 1)
            yield from _nodes(plan, node.body, (*above, node))
        elif isinstance(node, Leaf):
            yield _leaf(plan, node, above, depth)
        else:
            yield _sync(node, depth)


def _kernel(plan: Plan, kernel: Kernel) -> Row:
    count = f"kernel {kernel.id}"
    number = f", launch {plan.kernels.index(kernel) + 1} of {len(plan.kernels)}" if len(plan.kernels) > 1 else ""
    spans, note, chips = [span("kernel ", "kw"), span(kernel.id, "name")], kernel_note(kernel), []
    if kernel.join:
        chips = [chip(f"same launch: {kernel.join}", "launch", note)]
    elif kernel.resident:
        chips = [chip(f"{kernel.resident} a multiprocessor", "launch", note)]
    return row(kernel.id, kernel.id, "kernel", 0, "launch", ROLE_GLYPHS["launch"][0], spans, chips,
               f"{count}{number}{note and f', {note}'}")


def _loop(plan: Plan, loop: Loop, above: tuple[Loop, ...], depth: int) -> Row:
    glyph, _ = ROLE_GLYPHS[loop.role]
    tight = tight_bounds(plan, loop, above)
    first, last = str(loop.start), str(loop.start + loop.extent)
    spans = [span("for ", "kw"), span(loop.id, "name"), span(" in ", "kw"), span(first, "num"), span(" … ", "op"),
             span(last, "num")]
    if tight:
        spans.append(span(f"  where {tight}", "guard"))
    chips = [] if loop.role == "seq" else [chip(loop.role, loop.role, _ROLE_WORDS.get(loop.role, loop.role))]
    words = _ROLE_WORDS.get(loop.role, loop.role)
    label = f"loop {loop.id}, {loop.extent} iterations, {words}"
    found = row(loop.id, loop.id, "loop", depth, loop.role, glyph, spans, chips, label)
    found["bounds"] = tight or f"{first} … {last}"
    found["trip"] = loop.extent
    return found


_ROLE_WORDS = {
    "seq": "sequential", "unroll": "unrolled", "vector": "vector lanes of one access",
    "launch": "run by the host, one launch each",
    **{f"block.{x}": f"spread over the blocks of the grid, axis {x}" for x in "xyz"},
    **{f"thread.{x}": f"spread over the threads of a block, axis {x}" for x in "xyz"},
    "warp": "spread over the warps of a block", "lane": "spread over the 32 lanes of a warp",
}


def tight_bounds(plan: Plan, loop: Loop, above: tuple[Loop, ...]) -> str:
    """The conditions that every statement below puts on this loop and those around it, beyond the loops' boxes."""
    scope = ranges((*above, loop))
    common: list[str] | None = None
    for leaf, path, _ in plan.leaves:
        if loop in path:
            found = [text for c, at in _bound_conditions(plan, leaf) if (text := _holds_on(c, at, scope, loop.id))]
            common = found if common is None else [t for t in common if t in found]
    return " and ".join(dict.fromkeys(common or []))


def _bound_conditions(plan: Plan, leaf: Leaf) -> Iterator[tuple[Constraint, dict[str, Expr]]]:
    at = dict(leaf.at)
    for constraint in plan.statement_of[leaf.statement].domain:
        yield constraint, at


def _holds_on(constraint: Constraint, at: dict[str, Expr], scope: Ranges, loop: str) -> str:
    """The condition as text, if it speaks of the loop, and of nothing inside it."""
    used = constraint.expr.substitute(at).variables()
    return guard_text((constraint,), at, scope) if loop in used and used <= scope.keys() else ""


def _leaf(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], depth: int) -> Row:
    statement = plan.statement_of[leaf.statement]
    text = statement_text(plan, leaf)
    guard = guard_text(statement.domain, dict(leaf.at), ranges(above))
    spans = [span(f"{leaf.id}  ", "note"), *code_spans(text, python=True)]
    if guard:
        spans.append(span(f"  where {guard}", "guard"))
    chips = [chip(f"Σ {how}", "collect", f"updates from different {loop} are combined by {how}") for loop, how in leaf.collect]
    if statement.update and not leaf.collect:
        chips.append(chip(f"Σ {statement.update}", "reduce", "a reduction: its updates may run in any order"))
    if leaf.mechanism == "async":
        chips.append(chip("cp.async", "async", "an asynchronous copy: it lands at the wait for its group"))
    if note := sum_note(leaf):
        chips.append(chip(note, "reduce", f"one thread adds its terms {note}: the error is smaller"))
    if statement.origin != "program":
        chips.append(chip(statement.origin, "origin", f"added by the schedule: {statement.origin}"))
    line = f", source line {statement.line}" if statement.line else ""
    role, glyph = ("update", "Σ") if statement.update else ("statement", "·")
    where = f", where {guard}" if guard else ""
    label = ", ".join((f"statement {leaf.id}: {text}{where}{line}", *(c["title"] for c in chips)))
    return row(leaf.id, leaf.id, "statement", depth, role, glyph, spans, chips, label)


def _sync(node: Sync, depth: int) -> Row:
    text = "commit: close the group of copies" if node.kind == "commit" else f"wait: at most {node.pending} groups of copies open"
    return row(node.id, node.id, "sync", depth, "sync", "◇", [span(text, "note")])


def _buffer(plan: Plan, name: str, depth: int) -> Row:
    buffer = plan.buffer_of[name]
    shape = " × ".join(map(str, buffer.shape)) or "one value"
    pad = f" + {buffer.pad} padding" if buffer.pad else ""
    place = {"register": "registers", "shared": "shared", "global": "global"}.get(buffer.space, buffer.space)
    owner = {"register": "one for each thread", "shared": "one for each block", "global": "one workspace"}.get(buffer.space, "")
    spans = [span(name, "name"), span(f"  {shape}{pad} ", "note"), span(str(buffer.dtype), "type")]
    return row(f"buffer:{name}", name, "buffer", depth, f"space.{buffer.space}", "☐", spans,
               [chip(place, f"space.{buffer.space}", f"{buffer.nbytes:,} bytes, {owner}")],
               f"buffer {name}, {shape}{pad} {buffer.dtype}, {buffer.nbytes:,} bytes in {place} memory, {owner}")
