"""Roles of warps: a producer's copies and consumers, in every size right; what is refused with which instances; the text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import explorer as ex
from benchmarks.product_programs import bias_gelu
from explorer.errors import TransformError
from explorer.ir.plan import Plan
from explorer.ir.tree import Sync, walk
from explorer.kernel.emit import emit
from explorer.poly.judge import judge
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.contraction import ranked
from explorer.strategies.contraction.arrange import ways
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling, tilings
from explorer.transforms.specialise import Specialise
from tests.strategies.products import product
from tests.transforms.test_overlap import tiled

ONE = Tiling("warpgroup", 64, 64, 64, 1, 1, 3, producer=True)
SHAPES = {
    "a tile a block": ONE,
    "tiles in turn": replace(ONE, persistent=4),
    "two groups, results through shared memory": replace(ONE, rows=128, down=2, stages=4, through=True, persistent=3),
    "three groups": replace(ONE, rows=192, down=3, stages=5, persistent=2),
    "more slots than steps of a tile": replace(ONE, rows=128, down=2, stages=5, persistent=3),
    "two slots": replace(ONE, stages=2, persistent=4),
}


def made(t: Tiling, left: str = "n", right: str = "n", **sizes: int) -> ex.Schedule:
    written = product(ex.f16, ex.f32, left, right).schedule(**{"M": 317, "N": 160, "K": 200, **sizes})
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    return build(written, form, t)


def staged(m: int = 317, n: int = 160, k: int = 200) -> ex.Schedule:
    """Up to `specialise`."""
    steps = made(ONE).steps
    first = next(n for n, step in enumerate(steps) if isinstance(step, Specialise))
    return product(ex.f16, ex.f32, "n", "n").schedule(M=m, N=n, K=k).replay(steps[:first])


def sync(plan: Plan, kind: str) -> Sync:
    (found,) = (n for n in walk(plan.kernels[0].body) if isinstance(n, Sync) and n.kind == kind)
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_products_are_right_as_early_and_as_late_as_can_be(name: str) -> None:
    s = made(SHAPES[name])
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False, checked=True).correct
    (kernel,) = compile_module(emit(s.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes


@pytest.mark.parametrize(("left", "right"), [("n", "t"), ("t", "n"), ("t", "t")])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (136, 72, 328)])
def test_every_order_of_the_operands(left: str, right: str, m: int, n: int, k: int) -> None:
    s = made(replace(ONE, stages=2) if k > 64 else replace(ONE, stages=2, persistent=0), left, right, M=m, N=n, K=max(k, 128))
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False).correct


def test_the_text_has_two_roles() -> None:
    s = made(SHAPES["two groups, results through shared memory"])
    text = s.cuda[s.cuda.index('extern "C"'):]
    producer, consumers = text[text.index("the producer"):].split("} else {", 1)
    assert [x for x in re.findall(r"\w+", producer) if x in ("mbarrier_wait", "bulk_copy_2d", "mbarrier_arrive")] == [
        "mbarrier_wait", "bulk_copy_2d", "bulk_copy_2d", "mbarrier_arrive"]
    assert not {"bulk_copy_2d", "__syncthreads"} & set(re.findall(r"\w+", consumers))
    issued, waited, released, done, met = (consumers.index(x) for x in (
        "wgmma_m64n64", "wgmma_wait<1>", "mbarrier_release(released[", "wgmma_wait<0>", "barrier_of<1, 256>();\n      if"))
    assert issued < waited < released < done < met
    assert "mbarrier_begin(released, 8);" in text  # an arrival of each of the consumers' eight warps
    launch = emit(s.plan).launches[0]
    assert (launch.grid, launch.block) == ((3, 1, 1), (128, 3, 1))


def test_slots_follow_each_other_from_tile_to_tile() -> None:
    """Four steps of a tile and five slots: the first step of a tile is in the slot behind the last one's of the tile before."""
    s = made(SHAPES["more slots than steps of a tile"])
    assert "x_s[(4*j + k) % 5" in str(s)


def test_consumers_take_registers_of_the_producer() -> None:
    t = Tiling("warpgroup", 128, 256, 64, 2, 1, 3, through=True, persistent=132, producer=True)
    s = made(t, M=4096, N=4096, K=4096)
    assert next(step for step in s.steps if isinstance(step, Specialise)).registers == 232
    assert "registers_give<40>();" in s.cuda
    assert "registers_take<232>();" in s.cuda
    (kernel,) = compile_module(emit(s.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes
    assert kernel.registers == 168


def test_blocks_of_a_multiprocessor_share_its_registers() -> None:
    """Three blocks of two warpgroups: 80 registers a thread at the launch, and what the producer gives up is the consumer's."""
    s = staged(256, 256, 512).specialise("k", 3, 128, blocks=3)
    assert "__launch_bounds__(256, 3)" in s.cuda
    assert "registers_give<32>();" in s.cuda
    assert "registers_take<128>();" in s.cuda
    (kernel,) = compile_module(emit(s.plan), "sm_90").kernels.values()
    assert kernel.registers <= 80
    assert not kernel.spill_store_bytes
    with pytest.raises(TransformError, match="specialise with blocks"):
        s.launch_bounds(s.plan.kernels[0].id, blocks=2)


# -- what the judge says -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiles in turn", "more slots than steps of a tile", "two slots"])
def test_one_release_less_is_a_slot_too_early(name: str) -> None:
    plan = made(SHAPES[name]).plan
    acquire = sync(plan, "acquire")
    (found, *_) = judge(plan.replace_node(acquire.id, replace(acquire, pending=acquire.pending + 1))).refusals
    assert "before" in found.what
    assert "has ended" in found.what
    assert found.source is not None
    assert found.sink is not None
    assert f"{acquire.id} with at most {acquire.pending} pending releases instead of {acquire.pending + 1}" in found.hints


@pytest.mark.parametrize("name", ["tiles in turn", "two groups, results through shared memory", "two slots"])
def test_mutants_are_refused(name: str) -> None:
    plan = made(SHAPES[name]).plan
    loop, found = plan.loops["k"], {kind: sync(plan, kind) for kind in ("acquire", "commit", "wait", "release")}
    body = loop.body

    def moved(node: Sync, place: int) -> Plan:
        rest = [n for n in body if n is not node]
        return plan.replace_node("k", replace(loop, body=(*rest[:place], node, *rest[place:])))

    mutants = {f"no {kind}": plan.replace_node(node.id) for kind, node in found.items()}
    products = next(n for n in body if isinstance(n, Sync) and n.kind == "wait_products")
    mutants |= {
        "acquired behind the copies": moved(found["acquire"], 2), "acquired at the end": moved(found["acquire"], len(body) - 1),
        "released before the wait": moved(found["release"], [*body].index(found["wait"]) - 1),
        "released before the product is waited for": moved(found["release"], [*body].index(products) - 1),
        "waits for one group less": plan.replace_node(found["wait"].id, replace(found["wait"], pending=1)),
        "committed before the copies": moved(found["commit"], 1),
        "a slot less": replace(plan, buffers=tuple(
            replace(b, shape=(b.shape[0] - 1, *b.shape[1:])) if b.space == "shared" and len(b.shape) == 3 else b
            for b in plan.buffers)),
    }  # fmt: skip
    for kind, mutant in mutants.items():
        if name == "two groups, results through shared memory" and kind == "a slot less":
            continue
        assert not judge(mutant).legal, kind


def test_a_release_before_the_products_wait_is_too_early_by_one() -> None:
    plan = made(replace(ONE, stages=4, persistent=4)).plan
    products = next(n for n in walk(plan.kernels[0].body) if isinstance(n, Sync) and n.kind == "wait_products" and n.pending)
    (found, *_) = judge(plan.replace_node(products.id, replace(products, pending=2))).refusals
    assert re.match(r"[xy]_s\[.*\] may write .* before S1\[.*\], which reads it, has ended", found.what)


# -- what the move refuses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "what"), [
    (("i", 3), "i is block.x"), (("k", 1), "with 1 slot nobody runs ahead"),
    (("k", 5), "5 slots are more than k fills"), (("k", 3, 100), "a consumer's thread cannot have 100 registers"),
    (("k", 3, 488), "a consumer's thread cannot have 488 registers"), (("x", 3), "there is no loop 'x'"),
    (("k", 3, 152, 3), "a consumer's thread cannot have 152 registers"),
    (("k", 3, 0, -1), "a multiprocessor holds a number of blocks"),
    (("k", 3, 0, 9), "a multiprocessor cannot hold 9 blocks of 256 threads"),
])  # fmt: skip
def test_refusals(arguments: tuple[object, ...], what: str) -> None:
    verdict = Specialise(*arguments).check(staged().plan)  # type: ignore[arg-type]
    assert not verdict
    assert verdict.what.startswith(what)


def test_what_runs_ahead_already_has_no_producer() -> None:
    s = made(replace(ONE, producer=False))
    with pytest.raises(TransformError, match=r"run ahead already|neither in k nor in front of it"):
        s.specialise("k", 3)
    with pytest.raises(TransformError, match="has roles already"):
        made(ONE).specialise("k", 3)


def test_a_copy_of_threads_has_no_producer() -> None:
    s = ex.workloads.get("matmul").definition.schedule(M=64, N=64, K=64).tile(("i", "j"), (32, 32))
    s = s.bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y").bind("j.i", "thread.x")
    s = s.contract("total").split("k", 16)
    with pytest.raises(TransformError, match="no bulk copies are made in the body of k"):
        s.specialise("k", 2)
    with pytest.raises(TransformError, match="no bulk copies are made in the body of k"):
        s.stage("a", "k").specialise("k", 2)


def test_it_is_taken_where_tiles_follow_each_other_and_the_model_says_so() -> None:
    written = product(ex.f16, ex.f32, "n", "n")

    def cheapest(**sizes: int) -> Tiling:
        s = written.schedule(**sizes)
        form = product_form(s, s.plan.kernels[0].id)
        assert form is not None
        return ranked(form, ex.gpu("H200"))[0][0]

    chosen = Tiling("warpgroup", 128, 256, 64, 2, 1, 3, through=True, persistent=128, producer=True, bulk_stores=True)
    assert cheapest(M=4096, N=4096, K=4096) == chosen
    assert not cheapest(M=2048, N=2048, K=2048).producer  # one round of tiles


@pytest.mark.parametrize(("m", "grid"), [(4096, 128), (4224, 132), (4352, None)])
def test_a_gelu_follows_tiles_in_turn_where_all_blocks_have_as_many(m: int, grid: int | None) -> None:
    """512 tiles are four for each of 128 blocks, 528 four for each of 132; 544 are four or five."""
    written = bias_gelu.schedule(M=m, N=4096, K=1024)
    form = next(ways(written, written.plan.kernels[0].id, ex.gpu("H200"))).form
    assert form.long
    found = {t.persistent for t in tilings(form, ex.gpu("H200"))
             if (t.rows, t.columns, t.stages) == (128, 256, 3) and t.persistent}
    assert found == ({grid} if grid else set())
    assert all(t.bulk_stores == t.through for t in tilings(form, ex.gpu("H200")) if t.persistent)


@pytest.mark.parametrize("stages", [2, 3])
def test_a_pipeline_is_none_for_a_producer_whatever_its_depth(stages: int) -> None:
    """Of two stages no wait leaves anything pending, but the copies run ahead all the same (chain 2032:215)."""
    verdict = tiled(stages, M=64, N=64, K=256).try_step(Specialise("k", 2))[0]
    assert not verdict
    assert verdict.what == "the copies or products of k run ahead already"
