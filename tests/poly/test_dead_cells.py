"""Cells that nobody reads: found before and after a tile is an instruction, and not where somebody reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import product_programs
from explorer.ir.instructions import instruction
from explorer.ir.plan import Plan
from explorer.poly.dead_cells import dead_cells
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling

SIZES = {"B": 1, "H": 5, "W": 6, "C": 64, "R": 3, "S": 3, "P": 5, "Q": 6, "T": 1, "A": 1, "K": 64, "D": 64, "E": 64}


def plan_of(tiling: Tiling) -> Plan:
    schedule = product_programs.conv_nhwc.schedule(**SIZES)
    form = product_form(schedule, "conv_nhwc")
    assert form is not None
    return build(schedule, form, tiling).plan


def found(plan: Plan) -> dict[str, bool]:
    """For each condition of the update whether it only leaves out cells that nobody reads."""
    leaf = next(leaf for leaf, _, _ in plan.leaves if instruction(leaf.mechanism))
    return {str(c.expr): dead_cells(plan).dead(leaf, c) for c in plan.statement_of[leaf.statement].domain}


@pytest.mark.parametrize("tiling", [Tiling("warpgroup", 64, 64, 64, 1, 1, 2), Tiling("warp", 64, 64, 64, 2, 2, 2, 16)],
                         ids=["warpgroup", "warp"])
def test_pixels_beyond_the_result_are_read_by_nobody(tiling: Tiling) -> None:
    plan = plan_of(tiling)
    answers = found(plan)
    assert answers["-h + 4"]
    assert answers["-w + 5"]
    assert not answers["h + r - 1"]  # the padding: every cell gets other terms
    (reader,) = [s for s in plan.program.statements if s.target.array == "y"]
    loose = replace(reader, domain=tuple(c for c in reader.domain if str(c.expr) != "-w + 5"))
    statements = tuple(loose if s is reader else s for s in plan.program.statements)
    wider = found(replace(plan, program=replace(plan.program, statements=statements)))
    assert not wider["-w + 5"]  # now a cell beyond the result is read
    assert wider["-h + 4"]
