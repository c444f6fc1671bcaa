"""What a step would do, before it is taken: the loops' difference, and its effect on launches, memory and traffic."""

from __future__ import annotations

import difflib
from dataclasses import replace

from ...errors import ExplorerError
from ...ir.plan import Plan
from ...ir.text import loops_text
from ...kernel.resources import resources
from ...poly.traffic import bank_passes
from ...run.facts import scaled
from ...schedule import Schedule
from ...transforms.base import Transform
from ..protocol_moves import DiffLine, Preview
from . import problems

CONTEXT = 2
"""Unchanged lines shown around a change."""


def preview(schedule: Schedule, step: Transform) -> Preview:
    """The step's verdict and difference; an illegal one shows what it would do, too."""
    verdict, plan = schedule.try_step(step)
    lines = diff(loops_text(schedule.plan), loops_text(plan)) if plan is not None else []
    problem = None if verdict else problems.of_verdict(verdict, schedule, step)
    return {"call": str(step), "applies": bool(verdict), "diff": lines, "problem": problem, "errors": {},
            "effects": effects(schedule, plan) if verdict and plan is not None else []}


def refused(call: str, error: ExplorerError, schedule: Schedule) -> Preview:
    """A step that cannot even be made from what was given."""
    return {"call": call, "applies": False, "diff": [], "problem": problems.of_error(error, schedule),
            "errors": dict(error.details.get("errors", {})), "effects": []}


def diff(before: str, after: str) -> list[DiffLine]:
    """The lines that differ, with a little context; a gap is a line with an ellipsis."""
    old, new = before.splitlines(), after.splitlines()
    out: list[DiffLine] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        if out:
            out.append({"sign": " ", "text": "…"})
        for tag, a, b, c, d in group:
            if tag == "equal":
                out += _signed(" ", old[a:b])
            else:
                out += [*_signed("-", old[a:b]), *_signed("+", new[c:d])]
    return out


def _signed(sign: str, lines: list[str]) -> list[DiffLine]:
    return [{"sign": sign, "text": line} for line in lines]


def effects(schedule: Schedule, plan: Plan) -> list[str]:
    """What changes for the machine: launches, blocks, threads, shared memory, registers, obligations."""
    after = replace(schedule, plan=plan)
    out = []
    before_counts, after_counts = _counts(schedule.plan), _counts(plan)
    for name, old in before_counts.items():
        new = after_counts[name]
        if old != new:
            unit = "B" if name.endswith("memory") else ""
            out.append(f"{name} {scaled(old, unit)} → {scaled(new, unit)}".replace("  ", " "))
    for b in plan.buffers:
        old_b = schedule.plan.buffer_of.get(b.name)
        if old_b and b.space == "shared" and (old_b.panel, old_b.swizzle) != (b.panel, b.swizzle):
            (old_n, best), (new_n, _) = bank_passes(schedule.plan, b.name), bank_passes(plan, b.name)
            out.append(f"passes over the banks for {b.name} {scaled(old_n)} → {scaled(new_n)}, {scaled(best)} at best")
    opened = len(after.obligations) - len(schedule.obligations)
    if opened > 0:
        tries = next(iter(after.obligations[-1].hints), "")
        out.append(f"{opened} reduction{'s' * (opened > 1)} still to be collected: {tries}")
    elif opened < 0:
        out.append("a reduction is collected")
    return out


def _counts(plan: Plan) -> dict[str, int]:
    """Totals over the kernels; of blocks and memory the largest."""
    found = [resources(plan, kernel) for kernel in plan.kernels]

    def most(values: list[int]) -> int:
        return max(values, default=0)

    return {
        "kernels": len(plan.kernels), "blocks": most([r.grid[0] * r.grid[1] * r.grid[2] for r in found]),
        "threads per block": most([r.threads_per_block for r in found]), "shared memory": most([r.shared_bytes for r in found]),
        "register words": most([r.register_words for r in found]),
    }
