"""Launch: kernels are cut at their top and packed with the next one."""

from __future__ import annotations

from dataclasses import replace

from explorer.ir.dtype import DTYPES
from explorer.ir.plan import Buffer, initial
from explorer.ir.text import loops_text
from explorer.ir.tree import View
from explorer.transforms.bind import Bind
from explorer.transforms.distribute import Distribute
from explorer.transforms.launch import Launch
from tests.oracle import check_plan, run_order
from tests.transforms.nests import copy, matmul, plan, refusal, siblings, softmax, triangle_sum


def test_a_cut_keeps_the_order_and_names_the_new_kernel() -> None:
    parts = plan(siblings(), Launch("siblings", after="i"))
    check_plan(parts)
    assert [k.id for k in parts.kernels] == ["siblings", "siblings.2"]
    assert [r[1:] for r in run_order(parts)] == [r[1:] for r in run_order(initial(siblings()))]
    assert {(k, s) for k, _, s, _ in run_order(parts)} == {("siblings", "S0"), ("siblings.2", "S1")}


def test_packing_undoes_a_cut() -> None:
    assert plan(siblings(), Launch("siblings", after="i"), Launch("siblings", pack="siblings.2")) == initial(siblings())


def test_inside_loops_distribute_comes_first() -> None:
    verdict = refusal(initial(softmax()), Launch("softmax", after="S2"))
    assert verdict.what == "S2 is not at the top of softmax: i is around it"
    assert verdict.hint == "distribute('i', after='S2') and launch('softmax', after='i') instead"
    deep = "distribute('j', after='S0') and distribute('i', after='j') and launch('matmul', after='i') instead"
    assert refusal(initial(matmul()), Launch("matmul", after="S0")).hint == deep
    verdict = refusal(initial(siblings()), Launch("siblings", after="S0"))
    assert verdict.hint == "launch('siblings', after='i') instead cuts behind all of i"
    check_plan(plan(softmax(), Distribute("i", after="S2"), Launch("softmax", after="i")))


def test_private_memory_does_not_outlive_a_kernel() -> None:
    base = initial(siblings())
    for name, slot in (("S0", 1), ("S1", 0)):
        base = base.replace_node(name, replace(base.resolve(name)[0], views=((slot, View("t_s", ())),)))
    for space in ("register", "shared"):
        stored = replace(base, buffers=(Buffer("t_s", DTYPES["f32"], (), space),))
        verdict = refusal(stored, Launch("siblings", after="i"))
        assert verdict.what == f"t_s in {space} memory is used on both sides of the cut"
        assert verdict.hint == "contract('t', 'global') first; or cut elsewhere"
    check_plan(plan(siblings(), Launch("siblings", after="i")))
    assert Launch("siblings", after="i").check(replace(base, buffers=(Buffer("t_s", DTYPES["f32"], (), "global"),)))


def test_tree(golden) -> None:
    golden(f"{loops_text(initial(triangle_sum()))}\n\n{loops_text(plan(triangle_sum(), Launch('triangle_sum', after='i0')))}")


def test_refusals() -> None:
    base = initial(siblings())
    assert "there is no kernel 'k'" in refusal(base, Launch("k", after="i")).what
    for both in (Launch("siblings"), Launch("siblings", after="i", pack="siblings")):
        assert refusal(base, both).hint == "give one of the two"
    assert "'q' is not in siblings" in refusal(base, Launch("siblings", after="q")).what
    assert refusal(base, Launch("siblings", after="j")).what == "nothing stands behind j in siblings"
    assert not refusal(initial(copy()), Launch("copy", after="i")).hint, "there is nothing to distribute"
    deep = "distribute('j', after='S0') and distribute('i', after='j')"
    assert refusal(initial(matmul()), Launch("matmul", after="i")).hint.startswith(f"{deep} first; or distribute('j', after='k')")
    parts = plan(siblings(), Launch("siblings", after="i"))
    assert "there is no kernel 'q'" in refusal(parts, Launch("siblings", pack="q")).what
    assert refusal(parts, Launch("siblings.2", pack="siblings")).why == "the kernels run as siblings, siblings.2"
    hosted = plan(siblings(), Launch("siblings", after="i"), Bind("i", "launch"))
    assert refusal(hosted, Launch("siblings", pack="siblings.2")).hint == "bind('i', 'seq') first"


def test_candidates_cut_and_pack() -> None:
    base = initial(siblings())
    assert list(Launch.candidates(base, "siblings")) == list(Launch.candidates(base, "i")) == [Launch("siblings", after="i")]
    assert list(Launch.candidates(base, "j")) == []
    parts = plan(siblings(), Launch("siblings", after="i"))
    assert list(Launch.candidates(parts, "siblings")) == [Launch("siblings", pack="siblings.2")]
    assert Launch.offers(base, "j").what == "nothing stands behind j in siblings"
    assert Launch.offers(initial(matmul()), "matmul").what == "matmul has one part only and no kernel comes behind it"
    deep = "distribute('j', after='{0}') and distribute('i', after='j')"
    assert Launch.offers(initial(matmul()), "matmul").hint == "; or ".join(deep.format(n) for n in ("S0", "k"))
    assert Launch.offers(initial(matmul()), "S1").hint == deep.format("k")
    assert not Launch.offers(initial(matmul()), "j").hint, "i ends with it, and so does the kernel"
    assert Launch.offers(base, "S0").hint == "select i, which ends with S0"
    assert not Launch.offers(initial(copy()), "copy").hint
