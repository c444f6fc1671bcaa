"""Coalesce: same order, quotients and remainders that fold, buffers that outlive what they must."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.ir.dtype import DTYPES
from explorer.ir.plan import Buffer, initial
from explorer.ir.text import loops_text
from explorer.transforms.bind import Bind
from explorer.transforms.coalesce import Coalesce
from explorer.transforms.shift import Shift
from explorer.transforms.split import Split
from tests.oracle import check_plan, run_order
from tests.transforms.nests import copy_2d, cube, matmul, plan, refusal, siblings, triangle


@pytest.mark.parametrize("loops", [("i", "j"), ("j", "k"), ("i", "j", "k")])
def test_the_order_does_not_change(loops: tuple[str, ...]) -> None:
    joined = plan(cube(3), Coalesce(loops))
    check_plan(joined)
    assert run_order(joined) == run_order(initial(cube(3)))
    assert list(joined.loops) == [n for n in ("i", "j", "k") if n not in loops[1:]]


def test_starts_and_triangles() -> None:
    moved = plan(triangle(), Shift("i", 3), Shift("j", -2), Coalesce(("i", "j")))
    check_plan(moved)
    assert run_order(moved) == run_order(initial(triangle()))
    assert (moved.loops["i"].start, moved.loops["i"].extent) == (0, 49)


def test_splitting_again_folds_away() -> None:
    again = plan(copy_2d(6, 16), Coalesce(("i", "j")), Split("i", 16))
    assert [str(e) for _, e in again.leaves[0][0].at] == ["i", "i.i"]
    check_plan(again)


def test_buffers_move_out_of_a_loop_that_is_gone() -> None:
    base = initial(cube(3))
    scoped = replace(base, buffers=tuple(Buffer(f"b{s}", DTYPES["f32"], (4,), "register", scope=s) for s in ("i", "j", "k")))
    joined = Coalesce(("j", "k")).rewrite(scoped)
    assert {b.name: b.scope for b in joined.buffers} == {"bi": "i", "bj": "i", "bk": "j"}
    assert {b.name: b.scope for b in Coalesce(("i", "j")).rewrite(scoped).buffers} == {"bi": "", "bj": "i", "bk": "k"}


def test_tree(golden) -> None:
    golden(f"{loops_text(initial(cube(3)))}\n\n{loops_text(plan(cube(3), Coalesce(('i', 'j'))))}")


def test_refusals() -> None:
    base = initial(cube())
    assert "at least two" in refusal(base, Coalesce(("i",))).what
    verdict = refusal(base, Coalesce(("i", "k")))
    assert verdict.what == "i and k are not adjacent"
    assert verdict.why == "j stands between them"
    assert "coalesce(('i', 'j', 'k'))" in verdict.hint
    assert "nested as i, j" in refusal(base, Coalesce(("j", "i"))).what
    assert "already thread.x" in refusal(plan(cube(), Bind("j", "thread.x")), Coalesce(("i", "j"))).what
    assert "not perfectly nested" in refusal(initial(matmul()), Coalesce(("j", "k"))).what


def test_siblings_are_sent_to_fuse() -> None:
    verdict = refusal(initial(siblings()), Coalesce(("i", "j")))
    assert verdict.what == "i and j are not nested"
    assert "fuse('i', 'j')" in verdict.hint
    assert "fuse joins" in Coalesce.offers(initial(siblings()), "i").hint
