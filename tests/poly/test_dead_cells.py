"""Cells that nobody reads: found before and after a tile is an instruction, and not where somebody reads them.

In shared memory, too, where each run of the leaf that writes an array has a cell of its own.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import product_programs
from explorer.ir.instructions import instruction
from explorer.ir.plan import Plan
from explorer.ir.tree import Leaf, Loop, Node
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


def results(**sizes: int) -> Plan:
    """A product whose results go through shared memory, in tiles that are cut at the end of rows and columns."""
    schedule = product_programs.product_nn.schedule(**sizes)
    form = product_form(schedule, "product_nn")
    assert form is not None
    return build(schedule, form, Tiling("warpgroup", 64, 64, 64, 1, 1, 2, through=True)).plan


def answers_of(plan: Plan) -> dict[str, bool]:
    """For each condition of what writes the results to shared memory whether it only leaves out cells that nobody reads."""
    shared = {b.name for b in plan.buffers if b.space == "shared"} - {"a_s", "b_s"}
    leaf = next(leaf for leaf, _, _ in plan.leaves
                if (v := leaf.view(len(plan.statement_of[leaf.statement].reads))) is not None and v.buffer in shared)
    return {str(c.expr): dead_cells(plan).dead(leaf, c) for c in plan.statement_of[leaf.statement].domain}


def test_results_beyond_the_last_row_are_read_by_nobody_in_shared_memory() -> None:
    plan = results(M=100, N=72, K=128)
    answers = answers_of(plan)
    assert answers["-i + 99"]
    assert answers["-j + 71"]
    (reader,) = [s for s in plan.program.statements if s.target.array == "c"]
    loose = replace(reader, domain=tuple(c for c in reader.domain if str(c.expr) != "-j + 71"))
    statements = tuple(loose if s is reader else s for s in plan.program.statements)
    wider = answers_of(replace(plan, program=replace(plan.program, statements=statements)))
    assert not wider["-j + 71"]
    assert wider["-i + 99"]


def test_a_cell_that_two_runs_write_is_not_dead() -> None:
    """Rows in half of the array: a run beyond the last row writes a cell that another one's result is read from."""
    plan = results(M=100, N=72, K=128)
    name = next(b.name for b in plan.buffers if b.space == "shared" and b.name not in ("a_s", "b_s"))

    def folded(node: Node) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(map(folded, node.body)))
        views = tuple((slot, replace(v, index=(v.index[0] % 32, *v.index[1:]))) if isinstance(node, Leaf) and v.buffer == name
                      else (slot, v) for slot, v in node.views) if isinstance(node, Leaf) else ()
        return replace(node, views=views) if isinstance(node, Leaf) else node

    half = replace(plan, kernels=tuple(replace(k, body=tuple(map(folded, k.body))) for k in plan.kernels))
    assert not any(answers_of(half).values())
