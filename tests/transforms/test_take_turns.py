"""Warpgroups that multiply in turn: what is written, what is refused, what the judge, the validator and the device notice."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from benchmarks.product_programs import attention as plain
from benchmarks.product_programs import causal_attention
from explorer.errors import KernelFault, TransformError
from explorer.ir.plan import Plan
from explorer.ir.tree import Loop, Node, Sync, walk
from explorer.kernel.emit import emit
from explorer.kernel.launches import plan_ir
from explorer.kernel.nodes import AwaitTurn, Barrier, PassTurn
from explorer.kernel.traverse import map_bodies
from explorer.kernel.validate import judged
from explorer.poly.judge import judge
from explorer.poly.turns import check_turns
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.strategies.attention import attention
from explorer.strategies.attention.moves import Tiling
from explorer.transforms.bind import Bind
from explorer.transforms.distribute import Distribute
from explorer.transforms.take_turns import TakeTurns
from explorer.views.figures.registry import FIGURES, picture
from tests.properties.programs import define

TWO = Tiling(128, 8, 32, 2, 2)
IN_TURNS = replace(TWO, turns=True)


@cache
def made(tiling: Tiling = IN_TURNS, length: int = 128, causal: bool = False) -> Schedule:
    return attention((causal_attention if causal else plain).schedule(B=1, H=1, L=length, D=32), tiling=tiling)


def kinds(plan: Plan) -> list[str]:
    return [n.kind for n in walk(plan.kernels[0].body) if isinstance(n, Sync) and n.kind in ("turn", "pass")]


def without(nodes: tuple[Node, ...], name: str) -> tuple[Node, ...]:
    """The plan's nodes but one."""
    kept = [n for n in nodes if n.id != name]
    return tuple(replace(n, body=without(n.body, name)) if isinstance(n, Loop) else n for n in kept)


def test_turns_stand_between_the_products_of_one_step_and_the_next() -> None:
    s = made()
    assert kinds(s.plan) == ["turn", "pass", "turn", "pass"]
    consumers = s.cuda[s.cuda.index("barrier_of<1, 256>();"):]
    order = ("barrier_of<1, 256>();", "turn_wait<2, true>();", "mbarrier_wait", "wgmma_m64n32_f16_f16_f32", "turn_pass<2>();",
             "fused_exp", "turn_wait<2>();", "wgmma_m64n32_f16_f16_f32_rs", "mbarrier_release", "turn_pass<2, true>();")
    at = [consumers.index(word) for word in order]
    assert at == sorted(at)


@pytest.mark.parametrize(("length", "causal", "tiling"), [
    (128, False, IN_TURNS), (256, True, IN_TURNS), (100, False, IN_TURNS), (200, True, IN_TURNS),
    (384, False, Tiling(192, 12, 32, 2, 3, turns=True)),
])
@pytest.mark.parametrize("checked", [False, True])
def test_it_is_right(length: int, causal: bool, tiling: Tiling, checked: bool) -> None:
    s = made(tiling, length, causal)
    assert s.judgement.emittable
    assert kinds(s.plan)
    assert s.run(device="cpu", time=False, checked=checked, ragged=False).correct


def test_a_trimmed_loop_has_turns_before_or_after_it_is_trimmed() -> None:
    s = made(IN_TURNS, 256, True)
    assert [x.name for x in s.steps if x.name in ("take_turns", "trim")] == ["take_turns", "trim"]
    after = made(TWO, 256, True)
    assert after.steps[-1].name == "trim"
    turned = after.take_turns("j")
    assert kinds(turned.plan) == ["turn", "pass", "turn", "pass"]
    assert turned.plan.loops["j"].trimmed
    assert turned.run(device="cpu", time=False, ragged=False).correct


def test_what_is_refused() -> None:
    with pytest.raises(TransformError, match="take turns already"):
        made().take_turns("j")
    with pytest.raises(TransformError, match="a block of attention has rows of 128 threads, 1 of them"):
        made(Tiling(64, 4, 32, 2, 1)).take_turns("j")
    with pytest.raises(TransformError, match="has no producer"):
        made(replace(TWO, keys=128, stages=1)).take_turns(next(iter(
            x.id for x in made(replace(TWO, keys=128, stages=1)).plan.loops.values() if x.role == "seq")))
    from tests.strategies.test_padded_rows import padded

    alone = padded("nn", M=140, N=67, K=133)
    assert "has no producer" in str(TakeTurns("k").check(alone.plan))


def test_a_product_alone_has_no_turns() -> None:
    s = made(TWO)
    one = replace(s.plan, kernels=tuple(replace(k, body=without(k.body, "j_4.i")) for k in s.plan.kernels))
    assert "1 part of the body of j multiplies" in str(TakeTurns("j").check(one))


def test_a_barrier_while_somebody_has_his_turn_is_a_race_that_none_can_order() -> None:
    s = made()
    (place,) = (x.id for x in s.plan.loops.values() if x.role == "thread.y" and "j.begin" in {n.id for n in x.body})
    rows = s.plan.loops[place]
    begin = next(n for n in rows.body if n.id == "j.begin")
    early = replace(rows, body=(begin, *(n for n in rows.body if n is not begin)))
    refused = judge(s.plan.replace_node(place, early)).refusals
    assert any(f.question == "race" for f in refused)
    assert not judge(s.plan).refusals


@pytest.mark.parametrize("name", ["j.begin", "j.pass", "j.turn", "j.end"])
def test_waits_and_passes_alternate(name: str) -> None:
    dropped = tuple(replace(k, body=without(k.body, name)) for k in made().plan.kernels)
    assert any("do not alternate" in f.what for f in judge(replace(made().plan, kernels=dropped)).refusals)


def test_later_moves_keep_their_order_or_are_refused() -> None:
    s = made()
    halves = s.split("j", 2)
    assert kinds(halves.plan) == ["turn", "pass", "turn", "pass"]
    assert halves.run(device="cpu", time=False, ragged=False).correct
    parts = Distribute("j", after="j.pass").rewrite(s.plan)
    assert judge(parts).refusals
    assert "do not alternate" in next(check_turns(parts, parts.kernels[0])).what
    (place,) = (x for x in s.plan.loops.values() if x.role == "thread.y" and "j.begin" in {n.id for n in x.body})
    begin = next(n for n in place.body if n.id == "j.begin")
    again = replace(place, body=tuple(Loop("again", 2, (n,)) if n is begin else n for n in place.body))
    hosted = Bind("b", "launch").rewrite(s.plan)
    assert not list(check_turns(hosted, hosted.kernels[0]))
    looped = s.plan.replace_node(place.id, again)
    assert judge(looped).refusals
    assert list(check_turns(looped, looped.kernels[0]))
    assert not list(check_turns(s.plan, s.plan.kernels[0]))


@pytest.mark.parametrize("kind", [AwaitTurn, PassTurn])
def test_the_validator_notices_a_turn_that_is_missing(kind: type) -> None:
    (launch,) = plan_ir(made().plan).launches

    def dropped(nodes):  # type: ignore[no-untyped-def]
        return tuple(map_bodies(n, dropped) for n in nodes if not isinstance(n, kind))

    assert not list(judged(launch))
    assert list(judged(replace(launch, bodies=tuple(map(dropped, launch.bodies)))))


def test_the_validator_notices_a_barrier_in_a_turn() -> None:
    (launch,) = plan_ir(made().plan).launches

    def more(nodes):  # type: ignore[no-untyped-def]
        return tuple(x for n in nodes for x in (
            (n, Barrier()) if isinstance(n, AwaitTurn) and n.begun else (map_bodies(n, more),)))

    found = list(judged(replace(launch, bodies=tuple(map(more, launch.bodies)))))
    assert any("a deadlock" in f.what for f in found)


@pytest.mark.parametrize("text", ["turn_pass<2>();", "turn_pass<2, true>();"])
def test_the_device_notices_that_nobody_passes(text: str) -> None:
    s = made()
    module = emit(s.plan)
    assert module.text.count(f"    {text}  //") == 1
    broken = replace(module, text=module.text.replace(f"    {text}  //", "    //"))
    device = CpuDevice(checked=False)
    with pytest.raises(KernelFault, match=r"can go on|wait"):
        device.run(device.build(broken), seeded_arrays(s.source, 1))


def test_products_of_a_tile_that_land_before_its_slot_is_released() -> None:
    """Several in flight at a time: the release behind their wait is the one that the producer waits for."""
    s = attention(plain.schedule(B=1, H=1, L=192, D=128), tiling=TWO)
    flying = s.overlap("d")
    assert flying.judgement.emittable
    assert "wgmma_wait<1>(dot);" in flying.cuda  # sums of the other product are in no flight there
    assert flying.run(device="cpu", time=False, ragged=False).correct
    for name in ("d.products", "d.done"):
        dropped = tuple(replace(k, body=without(k.body, name)) for k in flying.plan.kernels)
        refusals = judge(replace(flying.plan, kernels=dropped)).refusals
        assert bool(refusals) == (name == "d.done")


@pytest.mark.parametrize("figure", FIGURES)
def test_every_picture_of_it_is_drawn(figure: str) -> None:
    for node in (None, "j", "j.turn"):
        assert picture(made(), figure, node=node).title
    if figure == "pipeline":
        note = picture(made(), figure, node="j").note
        assert "wait for one's turn" in note
        assert "pass the turn" in note


def test_products_side_by_side_have_no_turns() -> None:
    """Nothing stands between them that the others could do meanwhile; once the products were written twice there."""
    text = """@ex.program
def f(a: ex.f16[M, K], b: ex.f16[N, K], d: ex.f16[N, K], c: ex.f32[M, N], e: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            two = ex.local(ex.f32)
            acc = 0
            two = 0
            for k in range(K):
                acc += a[i, k] * b[j, k]
                two += a[i, k] * d[j, k]
            c[i, j] = acc
            e[i, j] = two
"""
    s = define(text, "side_by_side.py").schedule(M=128, N=8, K=128).tile(("i", "j"), (128, 8)).split("i.i", 64)
    s = s.bind("i.i", "thread.y").bind("i", "block.y").bind("j", "block.x")
    for loop in ("j.i", "i.i.i"):
        for last in ("S4", "k", "S1", "S0"):
            s = s.distribute(loop, after=last)
    rows, columns = (x.id for x in s.plan.leaves[2][1][-3:-1])
    s = s.reorder(("k", rows, columns)).split("k", 64).reorder(("k", rows, columns, "k.i"))
    s = s.contract("acc", "register").contract("two", "register")
    for array in "abd":
        s = s.stage(array, "k", engine="bulk", swizzle=128)
    for loop in ("k.i", columns, rows):
        s = s.distribute(loop, after="S2")
    s = s.tensorize("S2").tensorize("S3").specialise("k", 2)
    verdict = TakeTurns("k").check(s.plan)
    assert not verdict
    assert verdict.what == "nothing stands between the products of k"
    assert s.run(device="cpu", time=False).correct
