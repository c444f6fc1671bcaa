"""No accumulator of a warpgroup's product is read in machine code while the product may be in flight."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

import explorer as ex
from benchmarks.in_flight import early, read_in_flight
from benchmarks.product_programs import attention, bias_gelu, causal_attention, product_nn, product_nt, residual_rmsnorm
from explorer.run.nvrtc.compiler import compile_module
from explorer.schedule import Schedule
from explorer.strategies.attention import attention as attend
from explorer.strategies.auto import auto
from explorer.strategies.contraction.shapes import Tiling
from tests.strategies.products import built, product

GROUPS = Tiling("warpgroup", 64, 192, 64, 1, 1, 4, through=True)


def odd(tiling: Tiling, out: object = None) -> Schedule:
    """Rows of results of an odd length: neighbours are stored one by one."""
    return built(product(ex.f16, ex.f32, "n", "t", out), tiling, M=200, N=611, K=264)


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "odd rows through shared memory": lambda: odd(GROUPS),
    "odd rows, wide tiles, a warp that copies": lambda: odd(replace(GROUPS, columns=224, producer=True)),
    "odd rows, two warpgroups": lambda: odd(replace(GROUPS, rows=128, down=2, columns=128)),
    "odd rows by lanes": lambda: odd(replace(GROUPS, through=False)),
    "odd rows of floats": lambda: odd(replace(GROUPS, columns=128), ex.f32),
    "odd rows, tiles in turn": lambda: odd(replace(GROUPS, columns=64, persistent=9, producer=True)),
    "odd rows, two slots": lambda: odd(replace(GROUPS, stages=2)),
    "odd rows, nothing ahead": lambda: odd(replace(GROUPS, stages=1)),
    "whole rows": lambda: auto(product_nn.schedule(M=1024, N=1024, K=512)),
    "whole rows, wide": lambda: auto(product_nn.schedule(M=512, N=2304, K=768), gpu="H200"),
    "clusters": lambda: auto(product_nt.schedule(M=1000, N=1504, K=776)),
    "bias and GELU": lambda: auto(bias_gelu.schedule(M=1024, N=1024, K=512)),
    "bias and GELU, odd rows": lambda: auto(bias_gelu.schedule(M=1024, N=1001, K=512)),
    "residual and a norm": lambda: auto(residual_rmsnorm.schedule(M=1024, N=1024, K=512)),
    "attention": lambda: attend(attention.schedule(B=1, H=4, L=512, D=64)),
    "attention, ragged": lambda: attend(attention.schedule(B=1, H=4, L=500, D=64)),
    "causal attention": lambda: attend(causal_attention.schedule(B=1, H=4, L=512, D=128)),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_accumulators_are_read_behind_the_wait(name: str) -> None:
    text = SCHEDULES[name]().module()
    assert "wgmma_m64" in text.text
    found = read_in_flight(compile_module(text, "sm_90").cubin)
    assert not any(found.values()), found


def test_one_that_is_read_before_is_found() -> None:
    product, wait = "/*0d00*/ HGMMA.64x64x16.F32 R24, gdesc[UR4].tnspA, R24, gsb0 ;", "/*11f0*/ WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"
    packed, other = "/*0db0*/ F2FP.F16.F32.PACK_AB R5, R55, R54 ;", "/*0db0*/ @!P0 IADD3 R2, R23, R56, RZ ;"
    assert [*early("\n".join((product, other, packed, wait, packed)))] == ["F2FP.F16.F32.PACK_AB R5, R55, R54"]
    assert [*early("\n".join((product, wait.replace("0x0", "0x1"), packed, wait)))] == ["F2FP.F16.F32.PACK_AB R5, R55, R54"]
    assert not [*early("\n".join((packed, product, product, other, wait, packed)))]
    assert not [*early("\n".join((product.replace(".F32", ".F16"), packed)))]  # two sums of halves in a register


def test_only_halves_need_a_fence() -> None:
    held = re.compile(r"wgmma_wait<0>\(\w+\);  // \S+\s+fence_reads\(\);")
    whole = built(product(ex.f16, ex.f32, "n", "t"), GROUPS, M=200, N=616, K=264)
    for halves in (odd(GROUPS), whole):  # one by one, and in vectors
        assert held.search(halves.cuda)
    floats = odd(replace(GROUPS, columns=128), ex.f32)
    assert "wgmma_wait<0>(" in floats.cuda
    assert "fence_reads();" not in floats.cuda


def test_a_wait_in_a_loop_that_stores_nothing_needs_none() -> None:
    text = auto(causal_attention.schedule(B=4, H=16, L=2048, D=128), gpu="H200").cuda
    assert "wgmma_wait<0>(dot)" in text
    assert "fence_reads();" not in text
