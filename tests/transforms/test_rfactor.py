"""Rfactor: partial results by associativity, for any order of loops, domain, target and operation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.expr import var
from explorer.ir.plan import initial
from explorer.ir.program import Program
from explorer.ir.scalar import Read
from explorer.ir.text import loops_text
from explorer.transforms.rfactor import Rfactor
from tests.oracle import check_plan
from tests.run_plan import run_plan
from tests.transforms.programs import (
    all_sum,
    array,
    column_sum,
    conv1d,
    inputs,
    leaf,
    loops,
    matmul,
    matmul_direct,
    program,
    read,
    row_sum,
    softmax,
    statement,
    triangle_sum,
)
from tests.transforms.storage import agree, refusal, rewritten, right

SPLIT = (("split", "k", 4),)


def test_partial_results_of_the_inner_loop(golden) -> None:
    golden(loops_text(right(row_sum(), *SPLIT, ("rfactor", "total", "k.i"))))


def test_partial_results_of_the_outer_loop(golden) -> None:
    golden(loops_text(right(row_sum(), *SPLIT, ("rfactor", "total", "k"))))


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_every_operation_starts_with_its_identity(op: str) -> None:
    right(row_sum(op=op), *SPLIT, ("rfactor", "S1", "k.i"))


def test_axes_stand_where_they_are_said_to() -> None:
    """As numpy.expand_dims places them, whatever the order in which the loops are named."""
    steps = (("split", "k", 4), ("split", "k", 2))
    plan = rewritten(column_sum(), *steps)
    inner, middle = [x for x in plan.loops if x.startswith("k.")][:2]
    sizes = {name: plan.loops[name].extent for name in (inner, middle)}
    columns = plan.array_of["y"].shape[0]
    for named in ((inner, middle), (middle, inner)):
        for axes in ((), (0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)):
            made = right(column_sum(), *steps, ("rfactor", "y", named, axes))
            found = made.array_of["y_p"].shape
            where = dict(zip(named, axes, strict=True)) if axes else {}
            wanted = [0, 0, 0]
            for name, place in where.items():
                wanted[place] = sizes[name]
            wanted = [n or columns for n in wanted] if axes else [columns, *found[1:]]
            assert list(found) == wanted, (named, axes)


def test_axes_count_from_the_end_as_in_numpy() -> None:
    steps = (*SPLIT, ("rfactor", "y", "k.i"))
    for negative, positive in ((-1, 1), (-2, 0)):
        made = right(column_sum(), *steps[:-1], ("rfactor", "y", "k.i", (negative,)))
        assert made == right(column_sum(), *steps[:-1], ("rfactor", "y", "k.i", (positive,)))


@pytest.mark.parametrize("axes", [(0, 1), (2,), (-3,), (0, 0), (0, -2)])
def test_axes_that_are_no_places_are_refused(axes: tuple[int, ...]) -> None:
    said = refusal(column_sum(), *SPLIT, ("rfactor", "y", "k.i", axes))
    assert "new axes stand among 2" in str(said)


def test_column_sums_keep_the_reduced_loop_outside(golden) -> None:
    golden(loops_text(right(column_sum(), ("split", "k", 4), ("split", "j", 2), ("rfactor", "y", "k.i"))))


def test_parts_without_instances_hold_the_identity() -> None:
    plan = right(triangle_sum(), ("split", "k", 4), ("rfactor", "y", "k.i"))
    assert plan.program.statement_of["S1_init"].origin == "init"
    assert plan.program.statement_of["S1_combine"].origin == "combine"
    right(triangle_sum(), ("split", "k", 4), ("interchange", "k", "k.i"), ("rfactor", "y", ("k", "k.i")))


def test_several_loops_at_once() -> None:
    plan = right(all_sum(), ("split", "k", 8), ("split", "k.i", 4), ("rfactor", "y", ("k", "k.i.i")))
    assert plan.program.array_of["y_p"].shape == (1, 3, 4)


def test_partial_results_of_partial_results() -> None:
    plan = right(all_sum(), ("split", "k", 8), ("split", "k.i", 4), ("rfactor", "y", "k"), ("rfactor", "y_p", "k.i.i"))
    assert plan.program.array_of["y_p_p"].shape == (1, 3, 4)
    right(matmul(), ("split", "k", 2), ("rfactor", "acc", "k.i"), ("rfactor", "S1_combine", "k.i.c"))


def test_targets_of_several_dimensions() -> None:
    right(matmul_direct(), ("rfactor", "C", "k"))
    swapped = (("interchange", "j", "k"), ("interchange", "i", "k"), ("split", "k", 2))
    for loop in ("k", "k.i", ("k", "k.i")):
        right(matmul_direct(init=False), *swapped, ("rfactor", "C", loop))


def test_a_target_that_several_dimensions_make_up() -> None:
    i, j = var("i"), var("j")
    s1 = statement("S1", {"i": 4, "j": 3}, read("y", i + j), Read(0), (read("x", i, j),), "sum")
    diagonals = program("diagonals", (array("x", 4, 3, role="in"), array("y", 6, role="inout")), (s1,),
                        loops({"i": 4, "j": 3}, leaf(s1)))
    for loop in ("i", "j"):
        plan = rewritten(diagonals, ("rfactor", "y", loop))
        check_plan(plan)
        given = inputs(diagonals)
        wanted = given["y"].copy()
        for a in range(4):
            for b in range(3):
                wanted[a + b] += given["x"][a, b]
        assert abs(run_plan(plan, given)["y"] - wanted).max() < 1e-5


def test_bound_loops_stay_bound() -> None:
    plan = right(row_sum(), *SPLIT, ("bind", "i", "block.x"), ("bind", "k.i", "thread.x"), ("rfactor", "total", "k.i"),
                 ("collect", "total", "shared"))
    assert [plan.loops[name].role for name in ("k.i", "k.i.z", "k.i.c")] == ["thread.x"] * 3


def test_strategies_move_to_the_joining_statement() -> None:
    plan = rewritten(row_sum(), ("bind", "k", "thread.x"), ("collect", "total", "shuffle"), ("rfactor", "S1", "k"))
    by_id = {x.id: x for x, _, _ in plan.leaves}
    assert by_id["S1"].collect == ()
    assert by_id["S1_combine"].collect == (("k", "shuffle"),)
    agree(plan)


def test_narrow_targets_have_wide_partial_results() -> None:
    base = row_sum()
    narrow = replace(base, arrays=tuple(replace(a, dtype=DTYPES["f16"]) for a in base.arrays))
    plan = rewritten(narrow, ("rfactor", "total", "k"))
    assert plan.program.array_of["total_p"].dtype.name == "f32"


def test_contracted_targets_keep_their_storage() -> None:
    plan = right(matmul(), ("split", "k", 2), ("contract", "acc"), ("rfactor", "acc", "k.i"), ("contract", "acc_p"))
    assert plan.buffer_of["acc_p"].shape == (2,)
    plan = right(conv1d(), ("split", "i", 4), ("bind", "i", "block.x"), ("contract", "acc"), ("rfactor", "acc", "t"))
    assert plan.buffer_of["acc"].shape == ()


def prefix_sum() -> Program:
    """``total += x[k]; y[k] = total``: every iteration needs the partial result."""
    k = var("k")
    s0 = statement("S0", {"k": 5}, read("t", 0), Read(0), (read("x", k),), "sum")
    s1 = statement("S1", {"k": 5}, read("y", k), Read(0), (read("t", 0),))
    arrays = (array("x", 5, role="in"), array("y", 5, role="out"), array("t", 1, role="inout"))
    return program("prefix", arrays, (s0, s1), loops({"k": 5}, leaf(s0), leaf(s1)))


@pytest.mark.parametrize(("base", "call", "words"), [
    (row_sum, ("rfactor", "total", "i"), "i does not carry the reduction"),
    (row_sum, ("rfactor", "total", "z"), "z is not a loop around S1"),
    (row_sum, ("rfactor", "total", ()), "no loop is named"),
    (row_sum, ("rfactor", "S2", "i"), "S2 is not a reduction"),
    (row_sum, ("rfactor", "nothing", "i"), "there is no statement 'nothing'"),
    (prefix_sum, ("rfactor", "t", "k"), "S1 uses t between its updates"),
])
def test_refusals(base, call: tuple, words: str) -> None:
    assert words in refusal(base(), call)


def test_statements_in_several_places_are_refused() -> None:
    assert "several places" in refusal(row_sum(), ("cut", "k", 4), ("rfactor", "S1", "k"))


def test_candidates_apply() -> None:
    plan = rewritten(softmax(), ("split", "k_3", 4))
    found = list(Rfactor.candidates(plan, "S4"))
    assert [c.loop for c in found] == ["k_3", "k_3.i"]
    assert all(c.check(plan) for c in found)
    assert not Rfactor.offers(initial(softmax()), "S3")


COALESCED = (("split", "k", 4), ("interchange", "k", "k.i"), ("rfactor", "y", "k.i"), ("interchange", "k", "j"),
             ("distribute", "k.i", "j.z"), ("coalesce", ("k.i.2", "j")), ("split", "k.i.2", 4, "v"))
"""Columns in groups of four rows, each row with results of its own, rows and columns of a group as one loop."""


def test_partial_results_whose_element_a_loop_tells_by_its_digits(golden) -> None:
    """``y_p[j, g]`` in a loop over ``5*g + j``: new partial results stay inside of it, and no loop of their own is made."""
    plan = right(column_sum(8), *COALESCED, ("rfactor", "S1", "k"))
    golden(loops_text(plan))


def test_threads_combine_where_the_element_is_told_by_digits() -> None:
    plan = right(column_sum(8), *COALESCED, ("launch", "column_sum", "k.i"), ("launch", "column_sum.2", "k.i.2"),
                 ("bind", "k.i.2", "block.x"), ("bind", "v", "thread.x"), ("bind", "k", "thread.y"), ("collect", "S1", "shuffle"))
    (collected,) = [above for leaf, above, _ in plan.leaves if leaf.collect]
    assert [(x.id, x.role) for x in collected] == [("k.i.2", "block.x"), ("v", "thread.x"), ("k", "thread.y")]
