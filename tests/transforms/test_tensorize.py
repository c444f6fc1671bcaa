"""Tensorize: products in tiles of every instruction, run and proved; what it refuses; what later steps may not break."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import ExplorerError, IllegalSchedule, ResourceError, TransformError
from explorer.ir.coding import SMALL
from explorer.ir.expr import var
from explorer.ir.instructions import INSTRUCTIONS, Mma
from explorer.kernel.emit import emit
from explorer.kernel.interpreter import execute
from explorer.poly.judge import judge
from explorer.poly.tensor import WHOLE, misshapen_tiles
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule import Schedule
from explorer.transforms.tensorize import Tensorize, tile_of
from tests.frontend.support import body
from tests.properties.programs import define, products_in_tiles
from tests.properties.tally import ACCEPTED
from tests.properties.trial import Trial

ROWS = list(INSTRUCTIONS.values())


class Always(random.Random):
    """Picks one row of the table; everything else as a seed has it."""

    def __init__(self, row: Mma, seed: int) -> None:
        super().__init__(seed)
        self.row = row

    def choice(self, seq):  # type: ignore[no-untyped-def]
        return self.row if isinstance(seq[0], Mma) else super().choice(seq)


def tiles(row: Mma, seed: int = 0) -> Schedule:
    return products_in_tiles(Always(row, seed), f"tiles{seed}").schedule


def ready(row: Mma) -> Schedule:
    """The first that is no instruction yet."""
    return next(s for s in (tiles(row, seed) for seed in range(9)) if s.plan.loops["k.i"].role == "seq")


HALVES = INSTRUCTIONS["m16n8k16_f16_f16_f32"]
PRODUCT = """@ex.program
def f(a: ex.f16[M, K], b: ex.f16[K, N], c: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            acc = ex.local(ex.f32)
            acc = 0.0
            for k in range(K):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc
"""


def in_tiles(m: int, n: int, k: int, dtype: str = "f16") -> Schedule:
    """A product in tiles of 16 x 8 x 16, its sums in registers."""
    s = define(PRODUCT.replace("f16", dtype), f"tiles_{dtype}.py").schedule(M=m, N=n, K=k).tile(("i", "j"), (16, 8))
    for loop in ("j.i", "i.i"):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    s = s.reorder(("k", "i.i.3", "j.i.3")).split("k", 16).reorder(("k", "i.i.3", "j.i.3", "k.i"))
    return s.contract("acc", "register")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_is_right_in_every_order(row: Mma) -> None:
    trial = Trial(shrinks=0)
    for seed in (0, 1, 2):
        made = tiles(row, seed)
        trial.conclude(f"{seed}:0", made if made.plan.loops["k.i"].role == "tensor" else made.tensorize("S1"))
    trial.flush()
    assert not trial.tally.found, "\n".join(map(str, trial.tally.found))
    assert list(trial.tally.pairs.values()) == [ACCEPTED] * len(trial.tally.pairs)
    assert trial.tally.pairs


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_interpreter_and_nvrtc_take_it(row: Mma) -> None:
    s = ready(row).tensorize("S1")
    draw = np.random.default_rng(1)
    sizes = dict(s.source.sizes)
    a = draw.integers(0, 5, (sizes["M"], sizes["K"]))
    b = draw.integers(0, 5, s.plan.array_of["b"].shape)
    bits = {**{n: lambda v, small=small: small.encode(v.astype(np.float64)) for n, small in SMALL.items()},
            "bf16": lambda v: (v.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)}
    given = {n: bits.get(str(d), lambda v, d=d: v.astype(d.numpy))(v) for n, v, d in (("a", a, row.a), ("b", b, row.b))}
    done = execute(s.plan, given, exact=True)
    assert not done.hazards
    assert (done.outputs["c"] == a @ (b if b.shape[0] == sizes["K"] else b.T)).all()
    for arch in sorted({row.arch, 90}):
        assert not next(iter(compile_module(emit(s.plan, arch=f"sm_{arch}"), f"sm_{arch}").kernels.values())).spill_store_bytes


def test_the_text_is_one_call() -> None:
    s = ready(HALVES).tensorize("S1")
    assert "mma_m16n8k16_f16_f16_f32(acc, a_r, b_r);  // S1" in s.cuda
    assert s.plan.buffer_of["acc"].shape == (4,)
    assert "for k.i in 0…16  tensor" in str(s)


def test_warps_have_tiles_of_their_own_and_copies_in_shared_memory() -> None:
    s = define(PRODUCT, "warps.py").schedule(M=64, N=32, K=64).split("i", 16, inner="ti").split("j", 8, inner="tj")
    s = s.split("i", 2, inner="wi").split("j", 2, inner="wj").reorder(("i", "j", "wi", "wj", "ti", "tj"))
    s = s.bind("i", "block.y").bind("j", "block.x").coalesce(("wi", "wj")).bind("wi", "warp")
    for loop in ("tj", "ti"):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    inner = [x.id for x in s.plan.resolve("S1")[1][-3:]]  # type: ignore[index]
    s = s.reorder((inner[2], *inner[:2])).split("k", 16).reorder(("k", *inner[:2], "k.i")).contract("acc", "register")
    s = s.stage("a", "k", vector=8).stage("b", "k", vector=8).pipeline("k", 2)
    s = s.stage("a_s", "k", space="register").stage("b_s", "k", space="register").tensorize("S1")
    assert s.plan.extents["f"] == (2, 2, 1, 128, 1, 1)
    assert "async_copy<16>" in s.cuda
    assert s.run(device="cpu").correct


def test_what_is_no_tile() -> None:
    with pytest.raises(TransformError, match="not alone in three sequential loops"):
        define(PRODUCT, "none.py").schedule(M=16, N=8, K=16).tensorize("S1")
    with pytest.raises(TransformError, match="no sum of products"):
        ready(HALVES).tensorize("S0")
    with pytest.raises(TransformError, match="not run in all iterations"):
        in_tiles(15, 8, 16).tensorize("S1")
    with pytest.raises(TransformError, match="a is in global memory"):
        in_tiles(16, 8, 16).tensorize("S1")
    with pytest.raises(TransformError, match=r"binds thread\.x around"):
        in_tiles(32, 8, 16).bind("i", "thread.x").tensorize("S1")
    staged = in_tiles(16, 8, 16).stage("a", "k", space="register").stage("b", "k", space="register")
    with pytest.raises(TransformError, match=r"not two loops of the tile|tile is 16 x 8 x 8"):
        staged.split("k.i", 8).tensorize("S1")
    with pytest.raises(TransformError, match="already"):
        staged.tensorize("S1").tensorize("S1")


def test_types_are_asked_first() -> None:
    """No chain of steps is proposed whose end is refused."""
    plain = define(PRODUCT.replace("f16", "f32"), "plain.py").schedule(M=32, N=16, K=32)
    with pytest.raises(TransformError, match="no tensor instruction multiplies f32 by f32") as caught:
        plain.tensorize("S1")
    assert "approximate('S1', factors='tf32') first" in caught.value.hint
    assert "arrays of f16, bf16" in caught.value.hint
    assert "distribute" not in caught.value.hint
    with pytest.raises(TransformError, match="not alone in three sequential loops"):
        plain.approximate("S1", factors="tf32").tensorize("S1")
    with pytest.raises(TransformError, match="no tensor instruction multiplies i8 by i8 into f32") as caught:
        define(PRODUCT.replace("f16", "i8"), "bytes.py").schedule(M=32, N=16, K=32).tensorize("S1")
    assert caught.value.hint == "a sum in i32"


def test_types_are_named() -> None:
    s = in_tiles(16, 8, 16, "i8").stage("a", "k", space="register").stage("b", "k", space="register")
    with pytest.raises(TransformError, match=r"no tensor instruction multiplies i8 by i8 into f32[\s\S]*f16 \* f16 into f32"):
        s.tensorize("S1")
    assert tile_of(ready(HALVES).plan, "S1").row is HALVES  # type: ignore[union-attr]


@pytest.mark.parametrize("step", [
    lambda s: s.interchange("i.i.3", "j.i.3"), lambda s: s.bind("k.i", "seq"), lambda s: s.bind("i.i.3", "warp"),
    lambda s: s.bind("j.i", "seq"), lambda s: s.bind("a_r.1", "seq"), lambda s: s.bind("i", "thread.x"),
    lambda s: s.reverse("k.i"), lambda s: s.shift("i.i.3", 1),
])
def test_a_later_step_cannot_take_the_tile_apart(step: Callable[[Schedule], Schedule]) -> None:
    """It is refused, or has no text until it is whole again, or changes nothing that counts."""
    s = ready(HALVES).tensorize("S1")
    try:
        changed = step(s)
    except ExplorerError:
        return
    if judge(changed.plan).emittable:
        assert changed.run(device="cpu").correct
    else:
        with pytest.raises(IllegalSchedule):
            emit(changed.plan)


def test_fragments_in_other_lanes_are_refused() -> None:
    """The judge asks where each element is: a lane further, the instruction would read another one."""
    s = ready(HALVES).tensorize("S1")
    def moved(leaf):  # type: ignore[no-untyped-def]
        if leaf.id != "a_r":
            return leaf
        at = {d: e.substitute({"a_r.1": (var("a_r.1") + 1) % 32}) for d, e in leaf.at}
        when = {x: ((e - 1) % 32 if x == "a_r.1" else e) for x, e in leaf.when}
        return replace(leaf, at=tuple(at.items()), when=tuple(when.items()))

    found = judge(s.plan.map_leaves(moved))
    assert not found.legal
    assert found.refusals[0].question == "flow"


def test_an_older_architecture_is_named() -> None:
    s = ready(HALVES).tensorize("S1")
    with pytest.raises(ResourceError, match="sm_75 has no m16n8k16"):
        emit(s.plan, arch="sm_75")
    older = ready(INSTRUCTIONS["m16n8k8_f16_f16_f32"]).tensorize("S1")
    assert emit(older.plan, arch="sm_75").text


def test_it_is_offered_at_the_update() -> None:
    plan = ready(HALVES).plan
    assert list(Tensorize.candidates(plan, "S1")) == [Tensorize("S1")]
    assert not list(Tensorize.candidates(plan, "S0"))


def test_a_register_array_for_a_product_may_be_large_until_it_is_spread() -> None:
    s = define(PRODUCT, "large.py").schedule(M=64, N=64, K=64).tile(("i", "j"), (64, 64))
    for loop in ("j.i", "i.i"):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    s = s.reorder(("k", "i.i.3", "j.i.3")).split("k", 16).reorder(("k", "i.i.3", "j.i.3", "k.i")).contract("acc", "register")
    (found,) = s.judgement.obligations
    assert "acc would take 16,384 bytes of registers a thread" in found.what
    assert any("tensorize('S1')" in hint for hint in found.hints)
    s = s.split("i.i.3", 16).split("j.i.3", 8).reorder(("i.i.3", "j.i.3", "i.i.3.i", "j.i.3.i", "k.i"))
    s = s.stage("a", "k", space="register").stage("b", "k", space="register").tensorize("S1")
    assert s.plan.buffer_of["acc"].shape == (4, 8, 4)
    assert not s.judgement.obligations
    assert s.run(device="cpu", time=False).correct


def test_a_warpgroup_reads_swizzled_rows_alone() -> None:
    s = define(PRODUCT, "group.py").schedule(M=64, N=64, K=128).tile(("i", "j"), (64, 64))
    for loop in ("j.i", "i.i"):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    s = s.reorder(("k", "i.i.3", "j.i.3")).split("k", 64).reorder(("k", "i.i.3", "j.i.3", "k.i")).contract("acc", "register")
    s = s.stage("a", "k").stage("b", "k")
    with pytest.raises(TransformError, match="cannot read a_s as it lies") as refused:
        s.tensorize("S1")
    assert "swizzle('a_s', mode=128)" in str(refused.value.hint)
    s = s.swizzle("a_s", 128).swizzle("b_s", 128).tensorize("S1")
    assert "fence_proxy_async();" in s.cuda  # threads wrote what the tensor cores read by themselves
    assert s.plan.extents["f"][3:] == (128, 1, 1)
    assert s.run(device="cpu", time=False).correct
    for arch in ("sm_80", "sm_100"):
        with pytest.raises(ResourceError, match="sm_90 alone"):
            emit(s.plan, arch=arch)


def test_a_warpgroup_is_not_bound_to_warps() -> None:
    """The four warps of one instruction would have taken different iterations (chain 840574:75)."""
    s = body("for i in range(M):\n    for j in range(N):\n        acc = ex.local(ex.f32)\n        acc = 0\n"
             "        for k in range(K):\n            acc += x[i, k] * y[j, k]\n        z[i, j] = acc",
             "x: ex.f16[M, K], y: ex.f16[N, K], z: ex.f32[M, N]").schedule(M=72, K=64, N=8)
    s = s.tile(("i", "j"), (128, 8)).split("i.i", 64).distribute("j.i", "S1").distribute("j.i", "S0")
    s = s.distribute("i.i.i", "S1").distribute("i.i.i", "S0").split("k", 64).reorder(("k", "i.i.i.3", "j.i.3", "k.i"))
    s = s.contract("acc").stage("x", "k", engine="bulk", swizzle=128).stage("y", "k", engine="bulk", swizzle=128).tensorize("S1")
    with pytest.raises(TransformError, match="its 128 threads are four warps"):
        s.bind("k", "warp")
    assert s.bind("k", "thread.y").run(device="cpu", time=False).correct


def test_an_instruction_reads_as_many_bits_as_the_statement() -> None:
    """Of tf32 the statement has to say that the rest is cut off: the instruction drops it."""
    s = ready(INSTRUCTIONS["m16n8k8_tf32_tf32_f32"])
    statement = s.plan.statement_of["S1"]
    whole = replace(statement, value=WHOLE)
    program = replace(s.plan.program, statements=tuple(whole if x is statement else x for x in s.plan.program.statements))
    verdict = tile_of(replace(s.plan, program=program), "S1")
    assert "no tensor instruction multiplies f32" in verdict.what  # type: ignore[union-attr]
    assert "approximate('S1', factors='tf32')" in verdict.advice  # type: ignore[union-attr]
    done = s.tensorize("S1").plan
    assert not list(misshapen_tiles(done))
    wrong = replace(done, program=program)
    assert "reads 11 bits" in next(why for _, why in misshapen_tiles(wrong))


def test_each_refusal_names_the_next_step_to_a_tile() -> None:
    """Followed one after the other they end in the instruction."""
    s = define(PRODUCT, "led.py").schedule(M=32, N=16, K=32).tile(("i", "j"), (16, 8)).bind("i", "block.x").bind("j", "warp")
    said: list[str] = []
    while (verdict := Tensorize("S1").check(s.plan)).hint.startswith("distribute("):
        said.append(f"{verdict.what.partition(': ')[2]}: {verdict.hint}")
        s = eval(f"s.{verdict.hint}")
    assert said == ["S0, S2 stand beside it in j.i: distribute('j.i', 'S0')",
                    "j.i stands beside it in i.i: distribute('i.i', 'j.i')",
                    "S2 stands beside it in j.i.2: distribute('j.i.2', 'k')",
                    "j.i.3 stands beside it in i.i.2: distribute('i.i.2', 'j.i.2')"]
    s = s.split("k", 16).reorder(("k", "i.i.2", "j.i.2", "k.i"))
    for array in ("a", "b"):
        with pytest.raises(TransformError, match=f"{array} is in global memory") as caught:
            s.tensorize("S1")
        assert f"stage('{array}', 'k', space='register')" in str(caught.value)
        s = s.stage(array, "k", space="register")
    with pytest.raises(TransformError, match="acc is in global memory") as caught:
        s.tensorize("S1")
    assert str(caught.value).endswith("try: contract('acc')")
    assert s.contract("acc").tensorize("S1").run(device="cpu", time=False).correct
