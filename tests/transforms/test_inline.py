"""Inline: a definition in place of its reads, exact by value flow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.expr import const, var
from explorer.ir.plan import initial
from explorer.ir.program import Program
from explorer.ir.scalar import IndexValue, Read
from explorer.ir.text import loops_text
from explorer.transforms.inline import Inline
from tests.run_plan import run_plan
from tests.transforms.programs import array, blur, call, chain, leaf, lit, loops, program, read, row_sum, softmax, statement
from tests.transforms.storage import refusal, rewritten, right


def test_the_definition_replaces_every_read(golden) -> None:
    plan = right(blur(), ("inline", "t"))
    assert [s.name for s in plan.program.statements] == ["S1"]
    assert [r.array for r in plan.program.statements[0].reads] == ["x", "x", "x"]
    golden(loops_text(plan))


def test_exponentials_are_computed_twice(golden) -> None:
    golden(loops_text(right(softmax(), ("inline", "e"))))


def test_storage_of_what_stays_is_kept() -> None:
    plan = right(softmax(), ("bind", "i", "block.x"), ("contract", "peak"), ("contract", "total"), ("contract", "e"),
                 ("inline", "e"))
    assert {b.name for b in plan.buffers} == {"peak", "total"}
    views = {x.id: [v.buffer for _, v in x.views] for x, _, _ in plan.leaves}
    assert views["S4"] == ["peak", "total"]


def test_launches_that_become_empty_disappear() -> None:
    plan = right(chain(), ("launch", "chain", {"after": "i"}), ("inline", "t"))
    assert len(plan.kernels) == 1


def test_a_narrow_temporary_still_rounds() -> None:
    base = chain()
    narrow = replace(base, arrays=tuple(replace(a, dtype=DTYPES["f16"]) if a.name == "t" else a for a in base.arrays))
    x = np.full((6, 8), 0.1, np.float32)
    stored, inlined = run_plan(initial(narrow), {"x": x}), run_plan(rewritten(narrow, ("inline", "t")), {"x": x})
    assert (stored["y"] == inlined["y"]).all()
    assert (stored["y"] != (2 * x + 1)).any()


def shifted() -> Program:
    """``t[i] = i + 1``, ``y[j] = t[n - 1 - j]``: indices as numbers, read backwards."""
    i, j = var("i"), var("j")
    s0 = statement("S0", {"i": 5}, read("t", i), call("mul", IndexValue(i + 1), lit(1.0)))
    s1 = statement("S1", {"j": 5}, read("y", j), Read(0), (read("t", const(4) - j),))
    return program("shifted", (array("t", 5), array("y", 5, role="out")), (s0, s1), loops({"i": 5}, leaf(s0)),
                   loops({"j": 5}, leaf(s1)))


def test_indices_used_as_numbers_follow() -> None:
    plan = rewritten(shifted(), ("inline", "t"))
    assert run_plan(plan, {})["y"].tolist() == [5, 4, 3, 2, 1]


def overwritten() -> Program:
    """``t[i] = x[i]``, then ``x[i] = 0``, then ``y[i] = t[i]``."""
    i, j, k = var("i"), var("j"), var("k")
    s0 = statement("S0", {"i": 4}, read("t", i), Read(0), (read("x", i),))
    s1 = statement("S1", {"j": 4}, read("x", j), lit(0.0))
    s2 = statement("S2", {"k": 4}, read("y", k), Read(0), (read("t", k),))
    arrays = (array("x", 4, role="inout"), array("y", 4, role="out"), array("t", 4))
    return program("overwritten", arrays, (s0, s1, s2), loops({"i": 4}, leaf(s0)), loops({"j": 4}, leaf(s1)),
                   loops({"k": 4}, leaf(s2)))


def test_a_source_that_changes_in_between_is_refused() -> None:
    said = refusal(overwritten(), ("inline", "t"))
    assert "x changes between S0 and S2" in said
    assert "S1 writes x" in said


@pytest.mark.parametrize(("base", "call", "words"), [
    (row_sum, ("inline", "total"), "not defined by one plain statement"),
    (row_sum, ("inline", "x"), "x is a parameter"),
    (row_sum, ("inline", "q"), "there is no array 'q'"),
])
def test_refusals(base, call: tuple, words: str) -> None:
    assert words in refusal(base(), call)


def test_staged_temporaries_are_refused() -> None:
    assert "before staging it" in refusal(chain(), ("stage", "t", "i_2"), ("inline", "t"))


def test_candidates_apply() -> None:
    assert [c.array for c in Inline.candidates(initial(softmax()), "S4")] == ["e"]
    assert [c.array for c in Inline.candidates(initial(softmax()), "e")] == ["e"]
    assert not Inline.offers(initial(chain()), "x")


def result_read_again() -> Program:
    """`chain` whose ``t`` is a result, too, of 16 bits."""
    base = chain()
    return replace(base, arrays=tuple(replace(a, role="out", dtype=DTYPES["f16"]) if a.name == "t" else a for a in base.arrays))


def test_a_result_is_stored_still(golden) -> None:
    plan = rewritten(result_read_again(), ("inline", "t"))
    golden(loops_text(plan))
    x = np.full((6, 8), 0.1, np.float32)
    before, after = run_plan(initial(result_read_again()), {"x": x}), run_plan(plan, {"x": x})
    assert before.keys() == after.keys() == {"t", "y"}
    assert all((before[name] == after[name]).all() for name in before)
    assert (after["y"] != (2 * x + 1)).any(), "rounded as it is stored"
    assert [c.array for c in Inline.candidates(initial(result_read_again()), "S1")] == ["t"]
    assert not list(Inline.candidates(plan, "S1")), "nothing reads it any more"
