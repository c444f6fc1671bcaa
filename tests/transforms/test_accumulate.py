"""Accumulate: an output's reduction runs in a temporary and is written out once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.plan import initial
from explorer.ir.text import loops_text
from explorer.transforms.accumulate import Accumulate
from tests.transforms.programs import all_sum, column_sum, copy, matmul, matmul_direct, row_sum, triangle_sum
from tests.transforms.storage import refusal, rewritten, right

TILES = (("split", "i", 4), ("split", "j", 4), ("split", "k", 2), ("interchange", "i.i", "j"), ("bind", "i", "block.x"),
         ("bind", "j", "block.y"),
         ("bind", "i.i", "thread.y"), ("bind", "j.i", "thread.x"))


def test_the_start_and_the_updates_move_into_registers(golden) -> None:
    plan = right(matmul_direct(), *TILES, ("accumulate", "C"), ("contract", "C_acc"))
    assert plan.buffer_of["C_acc"].shape == ()
    assert plan.program.statement_of["S1_combine"].update is None
    golden(loops_text(plan))


def test_without_a_start_the_output_is_updated_once(golden) -> None:
    plan = right(matmul_direct(init=False), *TILES, ("accumulate", "C"), ("contract", "C_acc"))
    assert plan.program.statement_of["S1_combine"].update == "sum"
    golden(loops_text(plan))


def test_written_out_in_an_outer_loop() -> None:
    plan = right(matmul_direct(init=False), *TILES, ("accumulate", "C", "j"))
    assert [x.id for x in plan.loops["j"].body] == ["i.i.z", "i.i", "i.i.c"]


def test_the_reduced_loop_outside() -> None:
    right(column_sum(), ("accumulate", "y"))
    right(matmul_direct(init=False), ("interchange", "j", "k"), ("interchange", "i", "k"), ("accumulate", "C"),
          ("contract", "C_acc"))


def test_a_start_elsewhere_stays_there() -> None:
    plan = right(triangle_sum(), ("accumulate", "y"))
    assert plan.program.statement_of["S0"].target.array == "y"
    assert plan.program.statement_of["S1_combine"].update == "sum"


def test_one_number() -> None:
    plan = right(all_sum(), ("accumulate", "y"))
    assert plan.program.statement_of["S1_combine"].update is None


def test_narrow_outputs_accumulate_wide() -> None:
    base = matmul_direct()
    narrow = replace(base, arrays=tuple(replace(a, dtype=DTYPES["bf16"]) for a in base.arrays))
    assert rewritten(narrow, ("accumulate", "C")).program.array_of["C_acc"].dtype.name == "f32"


@pytest.mark.parametrize(("base", "call", "words"), [
    (matmul, ("accumulate", "A"), "no reduction updates A"),
    (matmul, ("accumulate", "C"), "no reduction updates C"),
    (matmul, ("accumulate", "Q"), "there is no array 'Q'"),
    (matmul_direct, ("accumulate", "C", "k"), "carries the reduction"),
    (matmul_direct, ("accumulate", "C", "z"), "not a loop around S1"),
])
def test_refusals(base, call: tuple, words: str) -> None:
    assert words in refusal(base(), call)


def test_candidates_apply() -> None:
    assert [c.array for c in Accumulate.candidates(initial(matmul_direct()), "S1")] == ["C"]
    assert not Accumulate.offers(initial(row_sum()), "S1")
    assert not Accumulate.offers(initial(copy()), "S0")
