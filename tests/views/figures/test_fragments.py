"""Fragments: each element of an operand with the lane, register or bank that holds it, by the instruction and the buffer."""

from __future__ import annotations

from collections import Counter

import pytest

from explorer.errors import FigureError
from explorer.ir.instructions import INSTRUCTIONS
from explorer.views.figures.asked import Asked, Look
from explorer.views.figures.fragments import Fragments, fragments
from tests.views.figures.support import written
from tests.views.figures.test_timeline import tensor

ROW = INSTRUCTIONS["m16n8k16_f16_f16_f32"]


def of(engine: str = "warp", node: str | None = None, **options: object) -> Fragments:
    found = fragments(tensor(3, engine), Asked(options), Look(node))
    assert isinstance(found, Fragments)
    return found


@pytest.mark.parametrize(("operand", "layout", "buffer"), [
    ("left", ROW.left, "a_r"), ("right", ROW.right, "b_r"), ("sum", ROW.accumulator, "total")])
def test_elements_are_where_the_instruction_has_them(operand: str, layout: object, buffer: str) -> None:
    data = of(operand=operand)
    assert (data.buffer, data.rows, data.columns, data.lanes) == (buffer, layout.rows, layout.columns, 32)  # type: ignore[attr-defined]
    for e in data.elements:
        at = {"lane": e.lane, "register": e.register}
        assert (layout.row.evaluate(at), layout.column.evaluate(at)) == (e.row, e.column)  # type: ignore[attr-defined]
    assert len({(e.lane, e.register) for e in data.elements}) == data.rows * data.columns, "each place once"


def test_a_lane_of_the_left_operand_holds_pairs() -> None:
    lanes = {(e.row, e.column): e.lane for e in of().elements}
    assert [lanes[0, c] for c in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert lanes[9, 12] == 6


def test_a_window_of_what_a_warpgroup_sums_up() -> None:
    data = of("warpgroup", operand="sum", rows=16, columns=32)
    assert (data.rows, data.columns, data.lanes) == (64, 256, 128)
    assert {e.row for e in data.elements} == set(range(16, 32))
    assert {e.column for e in data.elements} == set(range(32, 64))
    assert {e.lane // 32 for e in data.elements} == {1}, "sixteen rows are one warp's"


@pytest.mark.parametrize("operand", ["left", "right"])
def test_eight_rows_of_a_swizzled_tile_lie_in_different_banks(operand: str) -> None:
    swizzled, plain = of("warpgroup", operand=operand), of("warpgroup", operand=operand, swizzle="without")
    assert (swizzled.swizzle, swizzled.passes) == (128, 1)
    assert (plain.swizzle, plain.passes) == (0, 8)
    first = Counter(e.bank for e in plain.elements if e.column == 0)
    assert len(first) == 1
    assert len({e.bank for e in swizzled.elements if e.column == 0 and e.row < 8}) == 8


def test_a_selected_buffer_is_the_operand_that_is_shown() -> None:
    assert of(node="b_r").operand == "right"
    assert of(node="total").operand == "sum"
    assert of(node="S1").operand == "left"


def test_the_picture_has_a_number_in_each_cell_and_says_what_it_is() -> None:
    lanes, registers = tensor(3).plot.fragments(), tensor(3).plot.fragments(show="register")
    (cells,) = lanes.spec["data"]
    assert len(cells["text"]) == 256
    assert cells["hovertext"][17] == "row 1, column 1<br>lane 4, element 1 of its a_r"
    assert set(registers.spec["data"][0]["text"]) == {str(n) for n in range(8)}
    assert lanes.table[17] == ("S1", "1", "1", "4", "1")
    assert "8 passes over the banks" in tensor(3, "warpgroup").plot.fragments(swizzle="without").note


def test_without_a_tensor_instruction_there_is_a_sentence() -> None:
    shown = written("matmul").plot.fragments()
    assert not shown.spec
    assert "No leaf is a tensor instruction" in shown.note
    with pytest.raises(FigureError, match="not a choice"):
        tensor(3).plot.fragments(operand="middle")
