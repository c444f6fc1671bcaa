"""The text of shared arrays in panels and swizzled: where elements are, vectors and copies of 16 bytes, alignment, bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from explorer import workloads
from explorer.ir.plan import Plan
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.nvrtc.compiler import compile_module
from tests.kernel.plan_run import Case, Step, differences, follow
from tests.kernel.schedules import gemm
from tests.properties.programs import define

SIZES = {"M": 70, "N": 200, "K": 100}
ROWS: dict[str, Any] = {"a_s": {"swizzle": 128}, "b_s": {"panel": 32, "swizzle": 128}}
PANELS: dict[str, Any] = {"a_s": {"panel": 16, "swizzle": 64}, "b_s": {"panel": 8, "swizzle": 32}}
PLAIN_PANELS: dict[str, Any] = {"a_s": {"panel": 8}, "b_s": {"panel": 16}}
TILE = (32, 64, 32), (4, 4)


def laid(plan: Plan, how: dict[str, Any]) -> Plan:
    """The plan with its buffers laid out so."""
    return replace(plan, buffers=tuple(replace(b, **how.get(b.name, {})) for b in plan.buffers))


def case(how: dict[str, Any], steps: list[Step], **sizes: int) -> Case:
    w = workloads.get("matmul")
    every = {**SIZES, **sizes}
    program = w.definition.at(**every)
    return Case(f"{how} {every}", program, laid(follow(program, steps), how), w.arrays(every))


@pytest.mark.parametrize("how", [ROWS, PANELS, PLAIN_PANELS])
def test_it_computes_what_the_program_says(how: dict[str, Any]) -> None:
    ring: list[Step] = [("pipeline", "k", 3)]
    cases = [case(how, [*gemm(*TILE, width=width), *more], **sizes)
             for width, more, sizes in ((1, [], {"M": 32, "N": 64, "K": 32}), (4, [], {"M": 33, "N": 68, "K": 36}),
                                        (4, ring, {"M": 35, "N": 72, "K": 72}))]
    cases.append(case(how, [*gemm(*TILE), *ring], M=31, N=63, K=71))
    assert not differences(cases, seeds=2)


def test_dynamic_shared_memory_begins_at_a_multiple_of_1024() -> None:
    big = case(ROWS, [*gemm((64, 128, 32), (8, 8), width=4), ("pipeline", "k", 3)], M=64, N=128, K=72)
    text = emit(big.plan).text
    assert "extern __shared__ __align__(1024) unsigned char shared_memory[];" in text
    assert "float (&b_s)[12288] = *reinterpret_cast<float (*)[12288]>(shared_memory + 24576);" in text
    assert not differences([big], seeds=1)


def test_a_plain_array_stands_behind_those_that_are_aligned() -> None:
    mixed = case({"b_s": ROWS["b_s"]}, [*gemm((64, 128, 30), (8, 8)), ("pipeline", "k", 3)], M=64, N=128, K=70)
    (launch,), text = emit(mixed.plan).launches, emit(mixed.plan).text
    assert "a_s)[3][64][30] = *reinterpret_cast<float (*)[3][64][30]>(shared_memory + 46080)" in text
    assert launch.dynamic_shared_bytes == 46080 + 3 * 64 * 30 * 4
    assert not differences([mixed], seeds=1)


def test_the_text(golden) -> None:
    text = emit(case(ROWS, [*gemm(*TILE, width=4), ("pipeline", "k", 2)]).plan).text
    golden(text[text.index('extern "C"'):])


def test_every_access_is_at_its_swizzled_place() -> None:
    """No access of a swizzled array without the exchange of its pattern: one that forgets it reads another element."""
    for steps in (gemm(*TILE, width=4), [*gemm(*TILE), ("pipeline", "k", 3)]):
        for how in (ROWS, PANELS):
            text = emit(case(how, steps).plan).text
            for name, modes in (("a_s", how["a_s"]["swizzle"]), ("b_s", how["b_s"]["swizzle"])):
                used = re.findall(rf"(?<!float ){name}\[(\w+<\d+, float>)?", text)
                assert len(used) >= 2
                assert set(used) == {f"swizzled<{modes}, float>"}


@pytest.mark.parametrize("big", [False, True])
def test_arrays_really_begin_at_multiples_of_1024(big: bool) -> None:
    """Statically and dynamically: a kernel that gives its arrays' addresses, modulo 1024, on both CPU devices."""
    steps = [*gemm((64, 128, 32), (8, 8)), ("pipeline", "k", 3)] if big else gemm(*TILE)
    made = emit(case({"b_s": ROWS["b_s"]}, steps).plan)
    end = made.text.rindex("}")
    told = "  if (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0) c[0] = (float)((unsigned long long)b_s % 1024);\n"
    module = replace(made, text=f"{made.text[:end]}  __syncthreads();\n{told}{made.text[end:]}")
    w = workloads.get("matmul")
    for checked in (True, False):
        device = CpuDevice(checked=checked, seeds=1)
        (built,) = device.build_many([module])
        for results in device.run_seeds(built, w.arrays(SIZES)):
            assert results["c"][0, 0] == 0.0


def test_vectors_stay_vectors() -> None:
    for how in (ROWS, PANELS, PLAIN_PANELS):
        assert len(re.findall(r"\*\(vec<float, 4>\*\)&[ab]_s\[", emit(case(how, gemm(*TILE, width=4)).plan).text)) == 2
        text = emit(case(how, [*gemm(*TILE, width=4), ("pipeline", "k", 3)]).plan).text
        assert len(re.findall(r"async_copy<16>\(&[ab]_s\[", text)) == 4


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_the_compiler_takes_it_and_counts_the_same_bytes(arch: str) -> None:
    for steps in (gemm(*TILE, width=4), [*gemm(*TILE, width=4), ("pipeline", "k", 2)]):
        for how in (ROWS, PANELS, {"b_s": ROWS["b_s"]}):
            module = emit(case(how, steps).plan, arch=arch)
            (kernel,) = compile_module(module, arch).kernels.values()
            assert kernel.static_shared_bytes == module.launches[0].static_shared_bytes, how


def test_neighbours_stand_behind_their_unit() -> None:
    """As the compiler sees them, who then loads them at once; those of a loop that is unrolled, too."""
    text = emit(case(ROWS, gemm(*TILE)).plan).text
    assert "b_s[swizzled<128, float>(k_i * 32 + 4 * (j_i % 8)) + 1024 * (j_i / 8) + j_i_i_2]" in text
    wide = emit(case(ROWS, gemm((64, 128, 32), (8, 8))).plan).text
    assert "* 32 + 8 * (j_i % 4) + 4 * (j_i_i_2 / 4)) + 1024 * (j_i / 4) + j_i_i_2 % 4]" in wide
    assert "a_s[swizzled<128, float>(i_i_i_2 * 32 + k_i) + 256 * i_i]" in wide, "a division in the loop is no gain"


def test_what_a_place_in_panels_repeats_has_a_name() -> None:
    """The panel and the place within it are of one index, which holds a quotient."""
    text = """@ex.program
def f(x: ex.f16[16, 128], y: ex.f16[16, 49]):
    for i in range(16):
        for j in range(49):
            y[i, j] = x[i, j + (3 * j + i) // 2]
"""
    s = define(text, "quotient.py").schedule().bind("i", "thread.x").stage("x", "f").swizzle("x_s", 64)
    lines = emit(s.plan).text.splitlines()
    (named,) = [line for line in lines if "const int S0_at = (3 * j + tx) / 2;" in line]
    read = lines[lines.index(named) + 1]
    assert "x_s[swizzled<64, __half>(tx * 32 + (j + S0_at) % 32) + 512 * ((j + S0_at) / 32)]" in read
