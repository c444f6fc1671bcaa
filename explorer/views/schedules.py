"""Programs, schedules, moves and dependences as static pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..frontend.definition import Definition
from ..ir.program import Array, Program
from ..poly.dependence import Dependence, ProgramFacts
from ..schedule import Schedule
from ..steps.hints import open_findings
from ..steps.moves import Move, Moves
from .code import code_html
from .findings import tries
from .loops import loops_html
from .reprs import picture_of
from .style import definitions, mark, page, table

MOST_ROWS = 60
"""Rows of a table shown at most."""


def sizes_text(sizes: tuple[tuple[str, int], ...]) -> str:
    """``M = 16384 · N = 1024``."""
    return " · ".join(f"{name} = {value}" for name, value in sizes)


@picture_of("frontend.definition.Definition")
def definition_html(definition: Definition) -> str:
    """A program as the user wrote it."""
    sizes = f"sizes {', '.join(definition.sizes)}" if definition.sizes else "no sizes"
    code = code_html(definition.source, first=definition.text.first_line, python=True)
    return page(definition.name, f"program · {sizes}", code)


@picture_of("ir.program.Program")
def program_html(program: Program) -> str:
    """A program at concrete sizes: its arrays and its text."""
    rows = [_array(a) for a in program.arrays[:MOST_ROWS]]
    arrays = table(("array", "role", "type", "shape", "bytes"), rows, frozenset({"bytes"}))
    code = code_html(program.source, first=program.first_line or 1, python=True)
    return page(program.name, sizes_text(program.sizes), code, arrays)


@picture_of("schedule.schedule.Schedule")
def schedule_html(schedule: Schedule) -> str:
    """A schedule: the loops, what is proved, the steps that made it."""
    judgement = schedule.judgement
    proved = mark(judgement.legal, "legal: cover, order, flow" if judgement.legal else "not legal")
    parts = [proved, *(mark(None, f"to do: {finding.what}") + _hint(finding.hints) for finding in open_findings(schedule))]
    if judgement.emittable:
        parts[0] = mark(True, "proved: cover, order, flow, obligations")
    steps = [f"<code>{escape(str(step))}</code>" for step in schedule.steps]
    listed = " <span class='soft'>→</span> ".join(steps[-MOST_ROWS:])
    skipped = f"the last {MOST_ROWS} of " if len(steps) > MOST_ROWS else ""
    count = f"{skipped}{len(steps)} step{'s' * (len(steps) != 1)}"
    history = f'<details><summary>{count}</summary><div class="body">{listed}</div></details>' if steps else ""
    small = sizes_text(schedule.source.sizes) + ("" if steps else " · as written")
    return page(schedule.source.name, small, loops_html(schedule.plan), "<br>".join(parts), history)


@picture_of("steps.moves.Moves")
def moves_html(moves: Moves) -> str:
    """The moves at a node: those that apply, then those that do not, with the reason and what to try."""
    applying = [m for m in moves if m.applies]
    names = dict.fromkeys(m.name for m in applying)
    calls = {n: " &nbsp; ".join(f"<code>{escape(str(m.step))}</code>" for m in applying if m.name == n) for n in names}
    good = table(("applies", "as"), [(mark(True, n), calls[n]) for n in names], wide=("as",)) if names else ""
    rows = [(mark(False, m.name), _reason(m) + _more(more)) for m, more in _grouped([m for m in moves if not m.applies])]
    bad = table(("does not apply", "because"), rows, wide=("because",)) if rows else ""
    small = f"{len(applying)} apply · {len(moves) - len(applying)} do not, and say why"
    return page(f"moves at {moves.node}", small, good, bad)


@picture_of("steps.moves.Move")
def move_html(move: Move) -> str:
    """One move with its verdict."""
    return page(str(move.step or move.name), "applies" if move.applies else "does not apply",
                "" if move.applies else _reason(move), bar="good" if move.applies else "bad")


@picture_of("poly.dependence.ProgramFacts")
def dependences_html(facts: ProgramFacts) -> str:
    """Every dependence: kind, statements, array, and its first pair of instances."""
    found = (*facts.ordered, *facts.reductions)
    rows = [_dependence(d) for d in found[:MOST_ROWS]]
    legend = definitions(("flow", "written, then read"), ("anti", "read, then overwritten"), ("output", "written twice"),
                         ("reduction", "updates of one element, which may run in any order"))
    names = definitions(*((s.name, f"<code>{escape(s.text)}</code>") for s in facts.program.statements[:MOST_ROWS]))
    listed = table(("kind", "from → to", "through", "first pair"), rows) if rows else "no dependences"
    more = len(found) - len(rows)
    note = f'<span class="soft">… {more} more: print the value</span>' if more else ""
    return page("dependences", f"{facts.program.name} · exact, for every instance", listed + note, names, legend)


def _array(array: Array) -> tuple[str, ...]:
    shape = " × ".join(map(str, array.shape)) or "one value"
    return f"<code>{escape(array.name)}</code>", escape(array.role), f"{array.dtype}", shape, f"{array.nbytes:,}"


def _dependence(d: Dependence) -> tuple[str, ...]:
    first = str(d).partition(", first ")[2]
    return (escape(d.kind), f"<code>{escape(d.source)} → {escape(d.sink)}</code>", f"<code>{escape(d.array)}</code>",
            f"<code>{escape(first)}</code>")


def _hint(hints: Sequence[str]) -> str:
    return f'<br>&emsp;<span class="soft">try</span> {tries(hints).replace("<br>", " or ")}' if hints else ""


def _reason(move: Move) -> str:
    text = _plain_reason(move)
    step = f"<code>{escape(str(move.step))}</code>: " if move.step is not None else ""
    hint = f' <span class="soft">Hint: {tries((move.verdict.hint,))}</span>' if move.verdict.hint else ""
    return f"{step}{escape(text)}.{hint}"


def _plain_reason(move: Move) -> str:
    """The reason without the name of the move, which stands beside it."""
    return move.verdict.what.removeprefix(f"{move.step} is not legal: ").removeprefix(f"{move.step} does not apply: ").rstrip(".")


def _more(count: int) -> str:
    return f' <span class="soft">(and {count} more like it)</span>' if count else ""


def _grouped(refused: list[Move]) -> list[tuple[Move, int]]:
    """One move for each transformation and reason, and how many more have the same."""
    found: dict[tuple[str, str], list[Move]] = {}
    for move in refused:
        found.setdefault((move.name, _plain_reason(move)), []).append(move)
    return [(moves[0], len(moves) - 1) for moves in found.values()][:MOST_ROWS]
