"""The loop nest as rows: one for each kernel, loop, buffer, statement and stated wait, its role as glyph, word and colour.

The rows are lines of a ``pre`` with real spaces before them, hidden where the stylesheet draws the indentation: a host
that strips styles (GitHub, a notebook that is not trusted) still shows a loop nest.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..gpu.units import counted
from ..ir.expr import Expr, Ranges
from ..ir.instructions import instruction
from ..ir.plan import Plan
from ..ir.program import Constraint
from ..ir.text import by_one, guard_text, kernel_note, layout_text, mates_note, statement_text, sum_note
from ..ir.tree import Kernel, Leaf, Loop, Node, Sync, ranges
from ..poly.early_end import end_of
from .rows import Chip, Row, code, piece
from .style import ROLE_GLYPHS

LONGEST = 120
"""Rows that a picture shows at most; a person does not read more, and the text has them all."""
ROLE_WORDS = {
    "seq": "sequential", "unroll": "unrolled", "vector": "vector lanes of one access",
    "tensor": "one instruction, for a tile or a box", "launch": "run by the host, one launch each",
    **{f"block.{x}": f"spread over the blocks of the grid, axis {x}" for x in "xyz"},
    **{f"thread.{x}": f"spread over the threads of a block, axis {x}" for x in "xyz"},
    "warp": "spread over the warps of a block", "lane": "spread over the 32 lanes of a warp",
}
_PLACES = {"register": ("registers", "one for each thread"), "shared": ("shared", "one for each block"),
           "global": ("global", "one workspace")}  # fmt: skip


def loops_html(plan: Plan) -> str:
    """Rows for every kernel, loop, statement and stated synchronisation of a plan; each carries its node's id."""
    rows = "".join(row.html(live=False) for row in loop_rows(plan, LONGEST))
    return f'<pre class="tree" role="list" aria-label="loops">{rows}</pre>'


def loop_rows(plan: Plan, most: int) -> list[Row]:
    """Every kernel, loop, buffer, statement and wait of a plan; a row says so where some are left out."""
    rows: list[Row] = []
    for kernel in plan.kernels:
        rows.append(_kernel(plan, kernel))
        used = {v.buffer for leaf, _, k in plan.leaves if k.id == kernel.id for _, v in leaf.views}
        rows += [_buffer(plan, b.name, 1) for b in plan.buffers if b.scope == kernel.id or (not b.scope and b.name in used)]
        rows += _nodes(plan, kernel.body, ())
    return shortened(rows, most, "more rows: print(schedule) shows all")


def shortened(rows: list[Row], most: int, words: str) -> list[Row]:
    """The first rows, and one that says how many are left out."""
    if len(rows) <= most:
        return rows
    text = f"{len(rows) - most} {words}"
    return [*rows[:most], Row("more", None, "mark", 1, "…", "soft", piece(text, "note"), text)]


def _nodes(plan: Plan, nodes: tuple[Node, ...], above: tuple[Loop, ...]) -> Iterator[Row]:
    depth = len(above) + 1
    for node in nodes:
        if isinstance(node, Loop):
            yield _loop(plan, node, above, depth)
            yield from (_buffer(plan, b.name, depth + 1) for b in plan.buffers if b.scope == node.id)
            yield from _nodes(plan, node.body, (*above, node))
        elif isinstance(node, Leaf):
            yield _leaf(plan, node, above, depth)
        elif isinstance(node, Sync):
            text = _sync(node)
            yield Row(node.id, node.id, "sync", depth, "◇", "soft", piece(text, "note"), text)


def _kernel(plan: Plan, kernel: Kernel) -> Row:
    number = f", launch {plan.kernels.index(kernel) + 1} of {len(plan.kernels)}" if len(plan.kernels) > 1 else ""
    note = kernel_note(kernel)
    short = f"same launch: {kernel.join}" if kernel.join else f"{kernel.resident} a multiprocessor" if kernel.resident else note
    chips = (Chip(short, "launch", note, note),) if note else ()
    return Row(kernel.id, kernel.id, "kernel", 0, ROLE_GLYPHS["launch"][0], "launch",
               piece("kernel", "kw") + " " + piece(kernel.id, "name"), f"kernel {kernel.id}{number}{note and f', {note}'}", chips)


def _loop(plan: Plan, loop: Loop, above: tuple[Loop, ...], depth: int) -> Row:
    glyph, colour = ROLE_GLYPHS[loop.role]
    tight = tight_bounds(plan, loop, above)
    text = (f'{piece("for", "kw")} {piece(loop.id, "name")} {piece("in", "kw")} {loop.start} … {loop.start + loop.extent}'
            + (piece(f"  where {tight}", "guard") if tight else ""))
    words = ROLE_WORDS.get(loop.role, loop.role)
    chips = () if loop.role == "seq" else (Chip(loop.role, colour, words),)
    if loop.trimmed and (kernel := plan.kernel_of(loop.id)) is not None:
        last = end_of(plan, kernel, loop)
        early = isinstance(last, Expr)
        ends = f"ends with iteration {last} in each block" if early else f"runs all iterations: {last}"
        words = f"{words}, {ends}"
        chips = (*chips, Chip("trimmed" if early else "trim without effect", "soft", ends, ends))
    said = f"loop {loop.id}, {counted(loop.extent, 'iteration')}, {words}"
    return Row(loop.id, loop.id, "loop", depth, glyph, colour, text, said, chips)


def tight_bounds(plan: Plan, loop: Loop, above: tuple[Loop, ...]) -> str:
    """The conditions that every statement below puts on this loop and those around it, beyond the loops' boxes."""
    scope = ranges((*above, loop))
    common: list[str] | None = None
    for leaf, path, _ in plan.leaves:
        if loop in path:
            at = dict(by_one(leaf, path).at)
            found = [text for c in plan.statement_of[leaf.statement].domain if (text := _holds_on(c, at, scope, loop.id))]
            common = found if common is None else [t for t in common if t in found]
    return " and ".join(dict.fromkeys(common or []))


def _holds_on(constraint: Constraint, at: dict[str, Expr], scope: Ranges, loop: str) -> str:
    """The condition as text, if it speaks of the loop, and of nothing inside it."""
    used = constraint.expr.substitute(at).variables()
    return guard_text((constraint,), at, scope) if loop in used and used <= scope.keys() else ""


def _sync(sync: Sync) -> str:
    if sync.kind == "commit":
        return "commit: the copies above are one group"
    if sync.kind == "release":
        return "release: consumers have read the slot"
    if sync.kind == "acquire":
        return f"producer waits until all slots but the last {sync.pending} are released"
    if sync.kind in ("turn", "pass"):
        return "pass: the next warpgroup has its turn" if sync.kind == "pass" else "turn: wait until the warpgroup before passes"
    if sync.kind == "wait_products":
        return "wait for the products" + (f", except the last {sync.pending}" if sync.pending else "")
    but = f", except the last {sync.pending} group{'s' * (sync.pending > 1)}" if sync.pending else ""
    return f"wait for the copies{but}"


def _leaf(plan: Plan, leaf: Leaf, above: tuple[Loop, ...], depth: int) -> Row:
    statement = plan.statement_of[leaf.statement]
    text = statement_text(plan, leaf)
    guard = guard_text(statement.domain, dict(by_one(leaf, above).at), ranges(above))
    chips = [Chip(f"Σ {how}", "thread", f"updates from different {loop} are combined by {how}", f"Σ {how} over {loop}")
             for loop, how in leaf.collect]
    if statement.update and not leaf.collect:
        chips.append(Chip(f"Σ {statement.update}", "soft", "a reduction: its updates may run in any order"))
    if leaf.mechanism == "async":
        chips.append(Chip("cp.async", "vector", "an asynchronous copy: it lands at the wait for its group"))
    if leaf.mechanism == "bulk":
        chips.append(Chip("TMA", "vector", "a bulk copy of a box, which one thread asks for: it lands at the wait for its group"))
    if leaf.mechanism == "bulk_store":
        chips.append(Chip("TMA", "vector", "a bulk store of a box, which one thread asks for: threads go on meanwhile"))
    if leaf.multicast:
        chips.append(Chip(f"multicast {leaf.multicast[1]}", "vector", f"{mates_note(leaf)}: a cluster of blocks"))
    if row := instruction(leaf.mechanism):
        chips.append(Chip(row.shape, "vector", f"a tensor instruction of {row.lanes} lanes: {row.a} * {row.b} into {row.c}"))
    if note := sum_note(leaf):
        chips.append(Chip(note, "soft", f"one thread adds its terms {note}: the error is smaller"))
    if statement.origin != "program":
        chips.append(Chip(statement.origin, "soft", f"added by the schedule: {statement.origin}"))
    line = f", source line {statement.line}" if statement.line else ""
    where = f", where {guard}" if guard else ""
    label = ", ".join((f"statement {leaf.id}: {text}{where}{line}", *(chip.title for chip in chips)))
    shown = f'{piece(leaf.id, "note")}\u2002{code(text)}' + (piece(f"  where {guard}", "guard") if guard else "")
    return Row(leaf.id, leaf.id, "statement", depth, "Σ" if statement.update else "·", "", shown, label, tuple(chips))


def _buffer(plan: Plan, name: str, depth: int) -> Row:
    buffer = plan.buffer_of[name]
    shape = " × ".join(map(str, buffer.shape)) or "one value"
    pad = f" + {buffer.pad} padding" if buffer.pad else ""
    lies = f", {layout_text(buffer)}" if buffer.is_placed else ""
    place, owner = _PLACES.get(buffer.space, (buffer.space, ""))
    text = f'{piece(name, "name")}  {piece(f"{shape}{pad} ", "note")}{piece(str(buffer.dtype), "type")}'
    text += piece(lies, "note") if lies else ""
    label = f"buffer {name}, {shape}{pad} {buffer.dtype}{lies}, {buffer.nbytes:,} bytes in {place} memory, {owner}"
    chips = (Chip(place, "soft", f"{buffer.nbytes:,} bytes, {owner}"),)
    return Row(f"buffer:{name}", name, "buffer", depth, "☐", "", text, label, chips)
