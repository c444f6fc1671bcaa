"""Bulk stores as text: what they compute in every order, the text itself, and what compilers and both executors make of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import KernelFault, ResourceError, TransformError
from explorer.ir.finding import YES, Verdict
from explorer.ir.plan import Plan
from explorer.kernel import passes
from explorer.kernel.emit import emit
from explorer.kernel.interpreter import Order, execute
from explorer.kernel.launches import plan_ir
from explorer.kernel.nodes import BulkStore, For, If, Node
from explorer.kernel.validate import judged
from explorer.poly.bulk_store import BULK_STORE, bulk_store
from explorer.poly.pure_load import Never
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule.step import taken
from explorer.transforms.approximate import as_computed
from tests.kernel.plan_run import Case, differences
from tests.kernel.stored_schedules import SCHEDULES, before_the_array, panels, tiles
from tests.properties.equal import difference

ORDERS = (Order(), Order(sequence="descending", early=True), Order("block", "descending"),
          Order("warp", "shuffled", 3, early=True), Order("thread"))


def test_they_store_what_the_program_says_in_every_order() -> None:
    made = {name: make() for name, make in SCHEDULES.items()}
    cases = [Case(name, s.source, s.plan, seeded_arrays(s.source, 1)) for name, s in made.items()]
    assert not differences(cases, seeds=5)


def test_the_fast_build_computes_the_same() -> None:
    s, device = SCHEDULES["in turn"](), CpuDevice(checked=False)
    arrays = seeded_arrays(s.source, 1)
    assert not difference(s.source, arrays, device.run(device.build(emit(s.plan)), arrays))


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_interpreter_does_what_the_text_does(name: str) -> None:
    s = SCHEDULES[name]()
    arrays, wanted = seeded_arrays(s.source, 1), as_computed(s.source, s.plan)
    for order in ORDERS:
        run = execute(s.plan, arrays, order)
        assert not run.hazards, f"{order}: {run.hazards[0]}"
        assert not difference(wanted, arrays, run.outputs), str(order)


@pytest.mark.parametrize("after", passes.names())
def test_after_every_pass_it_is_the_same(after: str) -> None:
    s = SCHEDULES["in turn"]()
    arrays, wanted = seeded_arrays(s.source, 1), as_computed(s.source, s.plan)
    run = execute(plan_ir(s.plan, after=after), arrays)
    assert not run.hazards
    assert not difference(wanted, arrays, run.outputs)


@pytest.mark.parametrize("name", ["in turn", "panels"])
def test_the_text(name: str, golden) -> None:
    text = emit(SCHEDULES[name]().plan).text
    golden(text[text.index('extern "C"'):])


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_compiler_takes_it(name: str) -> None:
    assert compile_module(emit(SCHEDULES[name]().plan, arch="sm_90"), "sm_90").kernels


def test_a_box_that_begins_before_its_array_is_none() -> None:
    """A negative coordinate of a bulk store is an illegal instruction on an H200, though a part of the box lies inside."""
    s = before_the_array()
    (store,) = [(leaf, above) for leaf, above, _ in s.plan.leaves if leaf.mechanism == BULK_STORE]
    assert [x.role for x in store[1]][-2:] == ["seq", "tensor"]  # a box of one row: the rows before the array have none
    whole = s.plan.replace_node("d.i.2", replace(s.plan.loops["d.i.2"], role="tensor"))
    leaf, above = next((leaf, above) for leaf, above, _ in whole.leaves if leaf.id == "S0_store")
    refused = bulk_store(whole, leaf, above)
    assert isinstance(refused, Never)
    assert "copies a part of a box" in refused.what or "begin before" in refused.what


def test_everybody_finds_a_box_that_begins_before_its_array() -> None:
    s, device = before_the_array(), CpuDevice()
    arrays, module = seeded_arrays(s.source, 1), emit(s.plan)
    text = module.text.replace("d_i_2 = max(0, 3 - 16 * d)", "d_i_2 = 0")
    assert text != module.text
    with pytest.raises(KernelFault, match="begins before its array, at -3"):
        device.run(device.build(replace(module, text=text)), arrays)
    ir = plan_ir(s.plan)
    (launch,) = ir.launches
    wrong = replace(launch, bodies=tuple(map(without_limits, launch.bodies)))
    assert wrong.bodies != launch.bodies
    assert any("S0_store" in str(finding) for finding in judged(wrong))
    assert "begins before y" in str(execute(replace(ir, launches=(wrong,)), arrays).hazards[0])


def without_limits(body: tuple[Node, ...]) -> tuple[Node, ...]:
    """Loops over boxes without what keeps them from running before the array."""
    return tuple(replace(n, limits=(), body=n.body) if isinstance(n, For) and any(isinstance(x, BulkStore) for x in n.body)
                 else replace(n, body=without_limits(n.body)) if isinstance(n, (For, If)) else n for n in body)


def test_gpus_without_bulk_copies_are_refused() -> None:
    with pytest.raises(ResourceError, match="sm_80 has no bulk stores, which S0_store needs"):
        SCHEDULES["vector"]().module("sm_80")


def test_what_is_no_box_is_refused() -> None:
    with pytest.raises(TransformError, match="already"):
        SCHEDULES["vector"]().store_bulk("S0_store")


def test_a_value_that_is_computed_in_its_box_is_in_an_ordinary_loop() -> None:
    s = panels().compute_at("S0", "e.i.2")
    hit = s.plan.resolve("S0")
    assert hit is not None
    assert "tensor" not in [x.role for x in hit[1]]
    assert s.run(device="cpu", time=False).correct


def test_a_step_that_leaves_an_ordinary_statement_in_a_box_is_not_taken() -> None:
    class Unmade:
        def check(self, plan: Plan) -> Verdict:
            return YES

        def rewrite(self, plan: Plan) -> Plan:
            return plan.map_leaves(lambda leaf: replace(leaf, mechanism="plain") if leaf.mechanism == BULK_STORE else leaf)

        def __str__(self) -> str:
            return "unmade()"

    verdict, plan = taken(panels().plan, Unmade())
    assert plan is None
    assert not verdict
    assert "would leave S0_store in d.i.2" in verdict.what
    assert "a loop of an instruction or of a bulk copy's box" in verdict.what


def test_a_swizzle_of_other_rows_names_what_lays_out_a_contracted_array() -> None:
    with pytest.raises(TransformError, match=r"a row of the box of y_t has 128 bytes") as refused:
        tiles(swizzle=32)
    assert "swizzle('y_t'" in str(refused.value)
    assert "stage" not in str(refused.value)
