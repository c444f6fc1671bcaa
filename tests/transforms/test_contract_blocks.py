"""Contract into shared memory where the accesses of a block do not all move with it: by a triangle's last part, for one."""

from __future__ import annotations

import pytest

import explorer as ex
from benchmarks.product_programs import causal_attention
from explorer.strategies.attention import attention
from explorer.strategies.attention.moves import Tiling

N = ex.sizes("N")


@ex.program
def last_part(x: ex.f32[N, N], y: ex.f32[N]):
    """A row sum in parts of 4 of a triangle: row i has parts up to i // 4, and only the last is read."""
    for i in range(N):
        so_far = ex.local(ex.f32, N + 1)
        so_far[0] = 0.0
        for k in range(N):
            if 4 * k <= i:
                so_far[k + 1] = so_far[k] + x[i, k]
        y[i] = so_far[i // 4 + 1]


@pytest.mark.parametrize("rows", [1, 4, 2, 8])
def test_an_access_that_moves_with_the_block_beside_some_that_do_not(rows: int) -> None:
    s = last_part.schedule(N=22).split("i", rows).bind("i", "block.x")
    made = s.contract("so_far", "shared", at="i")
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("tiling", [Tiling(32, 1, 64, 2), Tiling(16, 1, 32, 1)])
def test_a_causal_attention_whose_blocks_end_in_other_tiles(tiling: Tiling) -> None:
    s = attention(causal_attention.schedule(B=1, H=1, L=100, D=32), tiling=tiling)
    assert s.judgement.emittable
    assert s.plan.buffer_of["total_p_run"].space == "shared"
    assert s.run(device="cpu", time=False, ragged=False).correct
