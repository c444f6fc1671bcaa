"""What a module knows of its text is what stands in the text: where the kernels begin, their shared arrays, their barriers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.product_programs import attention as product
from explorer.kernel.emit import emit
from explorer.kernel.launches import plan_ir
from explorer.schedule import Schedule
from explorer.strategies.attention import attention
from explorer.strategies.attention.moves import Tiling
from explorer.strategies.auto import auto
from tests.programs import row_sum


def long_rows() -> Schedule:
    """More elements of a row than threads, so that a scratch array is used again."""
    return row_sum.schedule(M=4, N=2048).split("k", 1024).bind("k.i", "thread.x")


def joined() -> Schedule:
    """Sums of rows by threads, and behind these by blocks."""
    s = row_sum.schedule(M=4, N=256).split("k", 64).distribute("i", "S0").launch("row_sum", after="i")
    return s.bind("i.2", "block.x").bind("k.i", "thread.x").bind("k", "block.y").collect("y", "last_block")


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "nothing shared": lambda: row_sum.schedule(M=4, N=8),
    "a staged tile": lambda: row_sum.schedule(M=64, N=96).bind("i", "thread.x").split("k", 32).stage("x", "k"),
    "scratch": lambda: row_sum.schedule(M=4, N=256).bind("k", "thread.x").collect("y", "shared"),
    "scratch again and again": lambda: long_rows().collect("y", "shared"),
    "the last block": joined,
    "several kernels": lambda: auto(row_sum.schedule(M=2, N=2**20)),
    "turns": lambda: attention(product.schedule(B=1, H=1, L=128, D=32), tiling=Tiling(128, 8, 32, 2, 2, turns=True)),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_a_module_knows_stands_in_the_text(name: str) -> None:
    plan = SCHEDULES[name]().plan
    module, launches = emit(plan), plan_ir(plan).launches
    first = 'extern "C" __global__ void'
    assert module.kernels_text.startswith(first)
    assert module.kernels_text.count(first) == module.text.count(first) == len({x.kernel for x in module.launches})
    assert sum(x.barriers for x in launches) == module.kernels_text.count("__syncthreads();")
    for s in module.shared:
        extents = "".join(f"[{n}]" for n in s.shape)
        declared = (f"{s.dtype.cuda} {s.name}{extents};", f"{s.dtype.cuda} (&{s.name}){extents} =")
        assert any(text in module.kernels_text for text in declared), s
    static = module.kernels_text.count("__shared__") - module.kernels_text.count("extern __shared__")
    assert static in (0, len(module.shared))
