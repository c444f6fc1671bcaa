"""Bulk copies as text: what they compute in every order, the text itself, what compilers and the interpreter make of it."""

from __future__ import annotations

import re

import pytest

import explorer as ex
from explorer.errors import ResourceError, ScheduleError
from explorer.ir.finding import Finding
from explorer.kernel import passes
from explorer.kernel.emit import emit
from explorer.kernel.interpreter import Order, execute
from explorer.kernel.launches import plan_ir
from explorer.kernel.validate import judged
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.nvrtc.compiler import compile_module
from explorer.transforms.approximate import as_computed
from tests.kernel.bulk_schedules import BYTES, SCHEDULES, rows_of, several_tiles, tiled_product, tiles, vector
from tests.kernel.plan_run import Case, differences
from tests.mutants.ir import ir_mutants, no_barrier
from tests.mutants.test_ir_judged import faults
from tests.properties.equal import difference

ORDERS = (Order(), Order(sequence="descending", early=True), Order("block", "descending"),
          Order("warp", "shuffled", 3, early=True))


def test_it_computes_what_the_program_says_in_every_order() -> None:
    made = {name: make() for name, make in SCHEDULES.items()}
    cases = [Case(name, s.source, s.plan, seeded_arrays(s.source, 1)) for name, s in made.items()]
    assert not differences(cases, seeds=5)


def test_the_fast_build_computes_the_same() -> None:
    s, device = SCHEDULES["three stages"](), CpuDevice(checked=False)
    arrays = seeded_arrays(s.source, 1)
    assert not difference(s.source, arrays, device.run(device.build(emit(s.plan)), arrays))


@pytest.mark.parametrize("name", [
    "long vector", "panels", "halo", "five dimensions", "rows apart", "rows as one", "product", "three stages",
    "tile after tile"])
def test_the_interpreter_does_what_the_text_does(name: str) -> None:
    s = SCHEDULES[name]()
    arrays, wanted = seeded_arrays(s.source, 1), as_computed(s.source, s.plan)
    for order in ORDERS:
        run = execute(s.plan, arrays, order)
        assert not run.hazards, f"{order}: {run.hazards[0]}"
        assert not difference(wanted, arrays, run.outputs), str(order)


def test_after_every_pass_it_is_the_same() -> None:
    s = SCHEDULES["three stages"]()
    arrays, wanted = seeded_arrays(s.source, 1), as_computed(s.source, s.plan)
    for after in passes.names():
        run = execute(plan_ir(s.plan, after=after), arrays)
        assert not run.hazards, after
        assert not difference(wanted, arrays, run.outputs), after


def test_the_text(golden) -> None:
    text = emit(tiled_product(3).plan).text
    golden(text[text.index('extern "C"'):])


def test_groups_of_one_tile_follow_those_of_the_tile_before(golden) -> None:
    text = emit(several_tiles().plan).text
    golden(text[text.index('extern "C"'):])


def test_a_map_is_made_for_each_array_box_and_swizzle() -> None:
    module = emit(tiled_product(3).plan)
    assert [(m.name, m.buffer, m.box, m.swizzle) for m in module.tensor_maps] == [
        ("product.x_map", "x", (8, 16), 32), ("product.y_map", "y", (16, 32), 64)]
    assert module.launches[0].arguments == ("z", "product.x_map", "product.y_map")


def test_one_barrier_a_step_and_none_between_a_wait_and_what_it_is_for() -> None:
    text = emit(vector().plan).text
    assert re.search(r"mbarrier_wait\(arrived\[0\], 0\);[^\n]*\n  if \(64 \* e \+ e_i < 300\)", text)
    steady = emit(tiled_product(3).plan).text.split("// k\n")[1]
    assert steady.count("__syncthreads") == 1


def test_no_thread_is_two_phases_behind() -> None:
    """With more slots than stages no cell wants a barrier in every step; the mbarriers do."""
    s = tiled_product(3, 104, slots=6)
    ir = plan_ir(s.plan)
    assert faults(ir) == []
    dropped = [faults(m.ir) for m in ir_mutants(ir, {"no barrier": no_barrier})]
    assert any("ends the phase behind the one that threads may still wait for" in found for said in dropped for found in said)


def reused(k: int) -> list[Finding]:
    """What is said of the phases once the barriers of a step are gone, in so many elements of depth."""
    mutants = ir_mutants(plan_ir(tiled_product(3, k, slots=6).plan), {"no barrier": no_barrier})
    return [found for m in mutants for launch in m.ir.launches for found in judged(launch) if "ends the phase" in found.what]


def test_an_mbarrier_that_is_used_again_too_early_has_its_trip_counts_and_its_pair() -> None:
    (found,) = reused(104)
    proof = found.proof
    assert proof is not None
    assert proof.condition == "legal iff K <= 3"
    assert str(proof.source) == "k.wait at k = 0 (every thread) waits on mbarrier 0 for group 0"
    assert str(proof.sink) == "k.commit at k = 1 (the first thread) arrives on it for group 3"
    assert [bool(reused(16 * trips)) for trips in (2, 3, 4, 9)] == [False, False, True, True]


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("dtype", BYTES)
def test_rows_of_every_type_and_swizzle(dtype: str, swizzle: int) -> None:
    """What tests/gpu_only runs on a GPU has a text here; rows of just the swizzle's bytes run."""
    rows, wide = rows_of(dtype, swizzle)
    assert {m.swizzle for s in (rows, wide) for m in emit(s.plan).tensor_maps} == {swizzle}
    assert rows.run(device="cpu", time=False).correct


@pytest.mark.parametrize("name", ["vector", "swizzled tiles", "f64 32", "halo", "images", "five dimensions", "rows apart",
                                  "rows as one", "three stages"])
def test_the_compiler_takes_it_and_counts_the_same_bytes(name: str) -> None:
    module = emit(SCHEDULES[name]().plan, arch="sm_90")
    (kernel,) = compile_module(module, "sm_90").kernels.values()
    assert 0 <= module.launches[0].static_shared_bytes - kernel.static_shared_bytes < 16


def test_gpus_without_bulk_copies_are_refused() -> None:
    with pytest.raises(ResourceError, match="sm_80 has no bulk copies, which x_s needs") as refused:
        emit(tiles().plan, arch="sm_80")
    assert refused.value.why == "bulk copies (TMA) begin with sm_90: stage(…, engine='bulk') wrote them"
    assert "engine='async'" in refused.value.hint


def test_what_was_not_judged_is_not_written() -> None:
    s = tiles(swizzle=128)
    broken = s.plan.map_leaves(lambda leaf: leaf)
    broken = broken.replace_node("x_s.1", *broken.loops["x_s.1"].body)
    with pytest.raises((ScheduleError, KeyError)):
        emit(broken)


A, B = ex.sizes("A B")


@ex.program
def mirrored(x: ex.f64[A + 2, B + 2], y: ex.f64[A, B]):
    t = ex.local(ex.f64, A, B)
    for i in range(A):
        for j in range(B):
            t[i, j] = x[i, j] + x[i + 1, j]
    for i in range(A):
        for j in range(B):
            y[i, j] = abs(t[i, B - 1 - j])


def test_a_copy_that_never_runs_needs_no_map() -> None:
    """Its groups are counted all the same, by a text that compiles."""
    s = mirrored.schedule(A=0, B=4).bind("i_2", "lane").unroll("j").stage("x", "i", engine="bulk", swizzle=32).outline("S1")
    s = s.interchange("i_2", "j_2").stage("y_t", "j_2").pipeline("j_2", 3)
    kernel = s.cuda[s.cuda.index('extern "C"'):]
    assert "tensor_map" not in kernel
    assert "mbarrier_begin(arrived)" in kernel
    assert s.run(device="cpu", time=False).correct
