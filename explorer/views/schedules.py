"""Programs, schedules, moves and dependences as static pictures."""

from __future__ import annotations

from html import escape

from ..frontend.definition import Definition
from ..ir.program import Program
from ..moves import Move, Moves
from ..poly.dependence import ProgramFacts
from ..schedule import Schedule
from .code import code_html
from .findings import tries
from .loops import loops_html
from .style import definitions, mark, page, table

MOST_ROWS = 60
"""Rows of a table shown at most."""


def sizes_text(sizes: tuple[tuple[str, int], ...]) -> str:
    """``M = 16384 · N = 1024``."""
    return " · ".join(f"{name} = {value}" for name, value in sizes)


def definition_html(definition: Definition) -> str:
    """A program as the user wrote it."""
    sizes = f"sizes {', '.join(definition.sizes)}" if definition.sizes else "no sizes"
    return page(definition.name, f"program · {sizes}", code_html(definition.source, first=definition.text.first_line))


def program_html(program: Program) -> str:
    """A program at concrete sizes: its arrays and its text."""
    rows = [(f"<code>{escape(a.name)}</code>", escape(a.role), f"{a.dtype}", " × ".join(map(str, a.shape)) or "one value", f"{a.nbytes:,}")
            for a in program.arrays]
    arrays = table(("array", "role", "type", "shape", "bytes"), rows[:MOST_ROWS], frozenset({"bytes"}))
    return page(program.name, sizes_text(program.sizes), code_html(program.source, first=program.first_line or 1), arrays)


def schedule_html(schedule: Schedule) -> str:
    """A schedule: the loops, what is proved, the steps that made it."""
    judgement = schedule.judgement
    proved = mark(judgement.legal, "legal: cover, order, flow" if judgement.legal else "not legal")
    parts = [proved, *(mark(None, f"to do: {finding.what}") + _hint(finding.hints) for finding in judgement.obligations)]
    if judgement.emittable:
        parts[0] = mark(True, "proved: cover, order, flow, obligations")
    steps = [f"<code>{escape(str(step))}</code>" for step in schedule.steps]
    listed = " <span class='soft'>→</span> ".join(steps[-MOST_ROWS:])
    count = f"{len(steps)} step{'s' * (len(steps) != 1)}"
    history = f'<details><summary>{count}</summary><div class="body" style="white-space:normal">{listed}</div></details>' if steps else ""
    small = sizes_text(schedule.source.sizes) + ("" if steps else " · as written")
    return page(schedule.source.name, small, loops_html(schedule.plan), "<br>".join(parts), history)


def moves_html(moves: Moves) -> str:
    """The moves at a node: those that apply, then those that do not, with the reason and what to try."""
    applying = [m for m in moves if m.applies]
    refused = _grouped([m for m in moves if not m.applies])
    names = dict.fromkeys(m.name for m in applying)
    calls = {n: " &nbsp; ".join(f"<code>{escape(str(m.step))}</code>" for m in applying if m.name == n) for n in names}
    good = table(("applies", "as"), [(mark(True, n), calls[n]) for n in names], wide="as") if names else ""
    rows = [(mark(False, m.name), _reason(m) + (f' <span class="soft">(and {more} more like it)</span>' if more else "")) for m, more in refused]
    bad = table(("does not apply", "because"), rows, wide="because") if rows else ""
    small = f"{len(applying)} apply · {len(moves) - len(applying)} do not, and say why"
    return page(f"moves at {moves.node}", small, good, bad)


def move_html(move: Move) -> str:
    """One move with its verdict."""
    return page(str(move.step or move.name), "applies" if move.applies else "does not apply",
                "" if move.applies else _reason(move), bar="good" if move.applies else "bad")


def dependences_html(facts: ProgramFacts) -> str:
    """Every dependence: kind, statements, array, and its first pair of instances."""
    rows = []
    for d in (*facts.ordered, *facts.reductions):
        first = str(d).partition(", first ")[2]
        rows.append((escape(d.kind), f"<code>{escape(d.source)} → {escape(d.sink)}</code>", f"<code>{escape(d.array)}</code>", f"<code>{escape(first)}</code>"))
    legend = definitions(("flow", "written, then read"), ("anti", "read, then overwritten"), ("output", "written twice"),
                         ("reduction", "updates of one element, which may run in any order"))
    names = definitions(*((s.name, f"<code>{escape(s.text)}</code>") for s in facts.program.statements[:MOST_ROWS]))
    listed = table(("kind", "from → to", "through", "first pair"), rows[:MOST_ROWS]) if rows else "no dependences"
    more = f'<span class="soft">… {len(rows) - MOST_ROWS} more: print the value</span>' if len(rows) > MOST_ROWS else ""
    return page("dependences", f"{facts.program.name} · exact, for every instance", listed + more, names, legend)


def _hint(hints: tuple[str, ...]) -> str:
    return f'<br><span class="soft">  try</span> {tries(hints).replace("<br>", " or ")}' if hints else ""


def _reason(move: Move) -> str:
    text = move.verdict.what.removeprefix(f"{move.step} is not legal: ")
    step = f"<code>{escape(str(move.step))}</code>: " if move.step is not None else ""
    hint = f' <span class="soft">try</span> {tries((move.verdict.hint,))}' if move.verdict.hint else ""
    return f"{step}{escape(text)}.{hint}" if text[-1:].isalnum() else f"{step}{escape(text)}{hint}"


def _grouped(refused: list[Move]) -> list[tuple[Move, int]]:
    """One move for each transformation and reason, and how many more have the same."""
    found: dict[tuple[str, str], list[Move]] = {}
    for move in refused:
        key = (move.name, move.verdict.what.removeprefix(f"{move.step} is not legal: "))
        found.setdefault(key, []).append(move)
    return [(moves[0], len(moves) - 1) for moves in found.values()][:MOST_ROWS]
