"""Reorder and interchange: the permuted lexicographic order, and buffers that keep their depth or move out."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import pytest

from benchmarks.product_programs import product_nn
from explorer.errors import TransformError
from explorer.ir.dtype import DTYPES
from explorer.ir.plan import Buffer, initial
from explorer.ir.text import loops_text
from explorer.transforms.bind import Bind
from explorer.transforms.interchange import Interchange
from explorer.transforms.reorder import Reorder
from explorer.transforms.split import Split
from explorer.transforms.vectorize import Vectorize
from tests.oracle import check_plan, run_order
from tests.transforms.nests import copy_2d, cube, matmul, plan, refusal, siblings


@pytest.mark.parametrize("order", [p for p in permutations("ijk") if p != ("i", "j", "k")])
def test_the_order_is_the_permuted_one(order: tuple[str, ...]) -> None:
    new = plan(cube(3), Reorder(order))
    check_plan(new)
    sizes = {"i": 3, "j": 4, "k": 5}
    expected = [tuple(dict(zip(order, v, strict=True))[d] for d in "ijk") for v in product(*(range(sizes[d]) for d in order))]
    assert [point for *_, point in run_order(new)] == expected


def test_unlisted_loops_stay() -> None:
    assert list(plan(cube(), Reorder(("k", "i"))).loops) == ["k", "j", "i"]
    assert plan(cube(), Interchange("i", "k")) == plan(cube(), Interchange("k", "i")) == plan(cube(), Reorder(("k", "i")))


def test_interchange_twice_is_nothing() -> None:
    assert plan(cube(), Interchange("i", "j"), Interchange("i", "j")) == initial(cube())


def test_buffers_keep_their_depth_if_the_same_loops_are_around_them() -> None:
    scoped = replace(initial(cube()), buffers=tuple(Buffer(s, DTYPES["f32"], (), "register", scope=s) for s in "ijk"))
    scopes = {b.name: b.scope for b in Reorder(("j", "i")).rewrite(scoped).buffers}
    assert scopes == {"i": "", "j": "i", "k": "k"}


def test_tree(golden) -> None:
    golden(f"{loops_text(initial(cube()))}\n\n{loops_text(plan(cube(), Reorder(('k', 'i', 'j'))))}")


def test_refusals() -> None:
    base = initial(cube())
    assert "at least two" in refusal(base, Reorder(("i",))).what
    assert "already in this order" in refusal(base, Reorder(("i", "k"))).what
    assert "named twice" in refusal(base, Reorder(("i", "j", "i"))).what
    assert "with itself" in refusal(base, Interchange("i", "i")).what
    assert "there is no loop 'q'" in refusal(base, Interchange("i", "q")).what
    assert "not nested" in refusal(initial(siblings()), Interchange("i", "j")).what
    verdict = refusal(initial(matmul()), Interchange("j", "k"))
    assert verdict.why == "j also holds S0 and S2 beside k"


def test_vector_loops_stay_innermost_and_host_loops_outermost() -> None:
    wide = plan(copy_2d(), Split("j", 4), Vectorize("j.i"))
    verdict = refusal(wide, Interchange("j", "j.i"))
    assert verdict.what == "j.i is a vector loop and must stay innermost"
    assert verdict.hint == "bind('j.i', 'seq') makes it an ordinary loop again"
    hosted = plan(cube(), Bind("i", "launch"))
    assert "must stay outermost" in refusal(hosted, Interchange("i", "k")).what
    assert Interchange("j", "k").check(hosted)


def test_offers_and_candidates() -> None:
    assert "S1 is a statement" in Interchange.offers(initial(matmul()), "S1").what
    assert Interchange.offers(initial(matmul()), "matmul").what == "matmul is a kernel, not a loop"
    assert not Reorder.offers(initial(matmul()), "k")
    assert list(Interchange.candidates(initial(cube()), "i")) == [Interchange("i", "j"), Interchange("i", "k")]
    assert Reorder(("j", "k", "i")) in list(Reorder.candidates(initial(cube()), "i"))


def test_a_proposal_that_is_not_enough_is_said_as_that() -> None:
    """What stands beside the inner loop is in the way, and so is what then stands beside the outer one."""
    s = product_nn.schedule(M=32, N=32, K=32).split("i", 16).split("j", 8).split("k", 16)
    with pytest.raises(TransformError) as refused:
        s.reorder(("i", "j", "k", "i.i", "j.i", "k.i"))
    assert refused.value.hint.startswith("distribute('j.i', 'k') and ")
    assert refused.value.hint.endswith("(and more steps then)")
