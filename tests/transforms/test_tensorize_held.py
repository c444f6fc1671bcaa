"""Products of a warpgroup whose left factor is in registers: layouts, results, refusals, and what notices errors in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import IllegalSchedule, TransformError
from explorer.ir.expr import var
from explorer.ir.instructions import Wgmma, instruction
from explorer.ir.layout import GROUP, group_fragment
from explorer.kernel.emit import emit
from explorer.kernel.interpreter import execute
from explorer.kernel.interpreter.order import Order
from explorer.poly.judge import judge
from explorer.poly.products import check_products
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule import Schedule
from tests.properties.programs import define
from tests.transforms.test_tensorize import PRODUCT


def tile(dtype: str = "f16", step: int = 64, right: str = "k", plain: bool = False, **sizes: int) -> Schedule:
    """A product in tiles of 64 x 64, its sums in registers, its right factor in shared memory for a step or for a whole tile."""
    deep = dtype in ("i8", "tf32")  # the depth along the rows, as elements of other than 16 bits need it
    text = PRODUCT.replace("f16", "f32" if dtype == "tf32" else dtype)
    for was, now in (("[K, N]", "[N, K]"), ("[k, j]", "[j, k]")) if deep else ():
        text = text.replace(was, now)
    for was, now in (("f32", "i32"), ("0.0", "0")) if dtype == "i8" else ():
        text = text.replace(was, now)
    s = define(text, f"held_{dtype}.py").schedule(**{"M": 72, "N": 40, "K": 144, **sizes}).tile(("i", "j"), (64, 64))
    for loop in ("j.i", "i.i"):
        s = s.distribute(loop, after="S1").distribute(loop, after="S0")
    s = s.reorder(("k", "i.i.3", "j.i.3")).split("k", step).reorder(("k", "i.i.3", "j.i.3", "k.i")).contract("acc", "register")
    s = s.approximate("S1", factors="tf32") if dtype == "tf32" else s
    s = s.stage("b", right, vector=4 if dtype == "tf32" else 8)
    return s if plain else s.swizzle("b_s", step * (4 if dtype == "tf32" else 1) if deep else 128)


def held(**options) -> Schedule:  # type: ignore[no-untyped-def]
    return tile(**options).stage("a", "k", space="register").tensorize("S1")


@pytest.mark.parametrize(("columns", "packed"), [(16, 2), (32, 4), (256, 2), (8, 1), (32, 1)])
def test_the_layout_is_that_of_the_manual(columns: int, packed: int) -> None:
    """PTX ISA, "Register Fragments" of wgmma: D, and A for elements of 16, 8 and 32 bits (tf32), word by word."""
    layout = group_fragment(columns, packed)
    assert layout.is_bijective
    for thread in range(GROUP):
        warp, group, four = thread // 32, thread % 32 // 4, thread % 4
        for i in range(layout.registers):
            at = {"lane": thread, "register": i}
            row = 16 * warp + group + (8 if i // packed % 2 else 0)
            column = i // (2 * packed) * 4 * packed + four * packed + i % packed
            assert (layout.row.evaluate(at), layout.column.evaluate(at)) == (row, column)


def test_what_a_product_leaves_is_the_left_factor_of_the_next() -> None:
    first, second = instruction("m64n64k16_f16_f16_f32"), instruction("m64n8k64_f16_f16_f32_rs_async")
    assert isinstance(first, Wgmma)
    assert isinstance(second, Wgmma)
    assert second.left == first.accumulator
    assert (second.held, second.in_flight, second.name) == (True, True, "m64n8k64_f16_f16_f32_rs_async")
    assert first.left is None


@pytest.mark.parametrize(("dtype", "step"), [("f16", 32), ("f16", 64), ("bf16", 32), ("bf16", 64), ("i8", 32), ("i8", 64),
                                             ("tf32", 16), ("tf32", 32)])
def test_it_is_right_and_compiles_without_spills(dtype: str, step: int) -> None:
    s = held(dtype=dtype, step=step)
    assert s.judgement.emittable
    assert f"m64n64k{step}_{dtype}_{dtype}_{'i32' if dtype == 'i8' else 'f32'}_rs" in {x.mechanism for x, _, _ in s.plan.leaves}
    assert s.run(device="cpu", time=False).correct
    (kernel,) = compile_module(emit(s.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize(("dtype", "step"), [("f16", 64), ("tf32", 32)])
def test_the_interpreter_multiplies(dtype: str, step: int, early: bool) -> None:
    s = held(dtype=dtype, step=step).overlap("k", steps=0)
    draw = np.random.default_rng(1)
    a, b = draw.integers(0, 5, (72, 144)), draw.integers(0, 5, (144, 40))
    kind = np.float16 if dtype == "f16" else np.float32
    given = {"a": a.astype(kind), "b": (b if dtype == "f16" else b.T).astype(kind)}
    done = execute(s.plan, given, exact=True, order=Order(early=early))
    assert not done.hazards
    assert (done.outputs["c"] == a @ b).all()


def test_a_tf32_is_cut_off_in_registers_too() -> None:
    """What the 13 low bits of an f32 hold is not multiplied: on the CPU device as by the instruction (PTX ISA, "tf32")."""
    a, b = np.full((72, 144), 1 + 2.0**-11, np.float32), np.ones((40, 144), np.float32)
    s = held(dtype="tf32", step=32)
    for now in (s, s.overlap("k", steps=0)):
        run = now.run({"a": a, "b": b}, device="cpu", time=False)
        assert run.correct
        assert (run.outputs["c"] == 144.0).all()


def test_elements_in_other_lanes_are_refused() -> None:
    s = held()

    def moved(leaf):  # type: ignore[no-untyped-def]
        if leaf.id != "a_r":
            return leaf
        at = {d: e.substitute({"a_r.1": (var("a_r.1") + 1) % GROUP}) for d, e in leaf.at}
        when = {x: ((e - 1) % GROUP if x == "a_r.1" else e) for x, e in leaf.when}
        return replace(leaf, at=tuple(at.items()), when=tuple(when.items()))

    found = judge(s.plan.map_leaves(moved))
    assert not found.legal
    assert found.refusals[0].question == "flow"


def waiting() -> Schedule:
    """The right factor is there for all steps: of what a product in flight reads, the left one's registers alone change."""
    return held(right="j", K=256).overlap("k", steps=0)


def test_the_registers_are_not_written_before_the_wait() -> None:
    with pytest.raises(IllegalSchedule) as refused:
        held(right="j", K=256).overlap("k")
    assert "a_r[0, 0, 1, 0, 0] may write a_r[0] while S1[0, 0, 0] is in flight" in str(refused.value)
    assert "try: overlap('k', steps=0) instead" in str(refused.value)
    s = waiting()
    assert s.judgement.emittable
    assert s.run(device="cpu", time=False).correct
    (kernel,) = compile_module(emit(s.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes


def test_a_missing_wait_has_a_witness() -> None:
    found = check_products(waiting().plan.replace_node("k.products"))
    assert any(f.kind == "anti" and f.array == "a_r" and str(f.sink).startswith("a_r") for f in found)
    assert all("in flight" in f.what for f in found)


def test_the_interpreter_notices_a_missing_wait() -> None:
    a, b = np.ones((72, 256), np.float16), np.ones((256, 40), np.float16)
    done = execute(waiting().plan.replace_node("k.products"), {"a": a, "b": b}, exact=True)
    assert any(h.kind == "in flight" and h.array == "a_r" and "reading it" in h.what for h in done.hazards)


@pytest.mark.parametrize(("now", "right"), [("wgmma_wait<0>(acc)", True), ("wgmma_wait<1>(acc)", False)])
def test_the_cpu_device_reads_the_registers_as_late_as_the_wait_allows(now: str, right: bool) -> None:
    """One product more in flight, and the registers hold the next step's elements: in the order in which it reads late."""
    s = waiting()
    module, arrays = emit(s.plan), seeded_arrays(s.source, 1)
    first = module.text.index("wgmma_wait<0>(acc)")
    text = module.text[:first] + now + module.text[first + len(now):]
    device = CpuDevice(seeds=(0, 1, 2, 3), time_limit_s=20.0)
    late, *_ = device.run_seeds(device.build(replace(module, text=text)), arrays)
    wanted = np.asarray(arrays["a"], float) @ np.asarray(arrays["b"], float)
    assert np.allclose(np.asarray(late["c"], float), wanted, 4e-3, 0.05) == right


def test_what_it_refuses() -> None:
    with pytest.raises(TransformError, match="a_s is in shared memory and b_r in registers") as refused:
        tile().stage("a", "k").swizzle("a_s", 128).stage("b_s", "k", space="register").tensorize("S1")
    assert "leave b_r in shared memory" in str(refused.value.hint)
    with pytest.raises(TransformError, match="cannot read b_s as it lies"):
        tile(plain=True).stage("a", "k", space="register").tensorize("S1")
    with pytest.raises(TransformError, match="a warpgroup multiplies 64 rows"):
        tile(step=512, K=512, M=64, N=64).stage("a", "k", space="register").tensorize("S1")
