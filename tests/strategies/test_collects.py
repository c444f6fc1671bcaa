"""The facts of every way to combine updates, against the text that it becomes and the results that it computes."""

from __future__ import annotations

import re
from math import fsum

import numpy as np
import pytest

from explorer.errors import OutOfMemory, ResourceError
from explorer.gpu.spec import gpu
from explorer.ir.rounding import METHODS, gamma, sum_bound
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.run.kernel import Kernel
from explorer.schedule import Schedule
from explorer.strategies.collects import Way, table, ways
from tests.transforms.multiblock import NAMES, TOTAL, spread, start

U = 2.0**-24


def made(name: str, way: Way) -> Schedule:
    s = spread(name)
    for step in way.steps:
        s = s.apply(step)
    return s


@pytest.mark.parametrize("name", NAMES)
def test_the_facts_are_those_of_the_text(name: str) -> None:
    found = {w.how: w for w in ways(spread(name), "y")}
    assert {"atomic", "kernel", "last_block", "handoff", "grid"} <= found.keys()
    before = sum(b.nbytes for b in emit(spread(name).collect("y", "atomic").collect("y", "shuffle").plan).buffers) \
        if name in ("total", "rows") else None
    for how, way in found.items():
        if not way.verdict:
            assert how == "cluster"
            continue
        s = made(name, way)
        assert not s.obligations
        module = emit(s.plan)
        assert way.launches == len(module.launches), how
        words = sum(8 * int(n) for n in re.findall(r"__device__ unsigned long long \w+\[(\d+)\]", module.text))
        assert (words > 0) == (how == "handoff")
        assert way.workspace_bytes == sum(b.nbytes for b in module.buffers if b.kind == "workspace") + words, how
        kernels = module.text[module.text.index('extern "C"'):]
        assert way.grid_barriers == kernels.count("grid_barrier("), how
        counted = ("atomic_add(", "atomic_max(", "last_block(", "grid_barrier(")
        assert (way.atomics > 0) == any(word in kernels for word in counted)
        if how == "atomic" and before is not None:
            assert before == sum(b.nbytes for b in module.buffers)


def test_facts_by_hand() -> None:
    """250 terms, 16 blocks of 8 threads with 2 each: 2 in a row, 3 levels, then 16 parts; additions to a start count too."""
    found = {w.how: w for w in ways(spread("total"), "y")}
    assert [found[h].launches for h in ("atomic", "kernel", "last_block", "grid")] == [2, 3, 1, 1]
    assert [found[h].deterministic for h in ("atomic", "kernel", "last_block", "grid")] == [False, True, True, True]
    assert {found[h].parts for h in found if found[h].verdict} == {16}
    assert [found[h].workspace_bytes for h in ("atomic", "kernel", "last_block", "grid")] == [0, 64, 64, 64]
    assert [found[h].initial_bytes for h in ("atomic", "kernel", "last_block")] == [4, 68, 0]
    assert [found[h].atomics for h in ("atomic", "kernel", "last_block", "grid")] == [16, 0, 16, 16]
    assert found["atomic"].error == gamma(2 + 3 + 16, U)
    assert found["last_block"].error == gamma(2 + 4 + 2 + 4, U)
    assert dict(found["last_block"].errors)["pairwise"] == gamma(2 + 4 + 2 + 4, U), "two terms are one pair"
    assert found["grid"].grid_barriers == 1


def test_counters_are_shared_along_the_parts_alone() -> None:
    found = {w.how: w for w in ways(spread("columns"), "y")}
    assert found["last_block"].atomics == 7
    assert found["grid"].atomics == 3 * 7


def test_maxima_are_exact_and_the_same_in_every_order() -> None:
    found = [w for w in ways(spread("peaks"), "y") if w.verdict]
    assert len(found) >= 4
    assert all(w.deterministic and w.error == 0 for w in found)
    assert "exact" in table(found)


def test_over_threads_alone() -> None:
    s = start(TOTAL, N=64).bind("k", "thread.x")
    found = ways(s, "y")
    assert [w.how for w in found] == ["shuffle", "shared", "atomic"]
    assert found[0].error == gamma(6 + 1, U)
    assert found[2].atomics == 64
    assert not ways(start(TOTAL, N=64), "y"), "nothing is spread"
    assert not ways(s, "S0"), "no reduction"


@pytest.mark.parametrize("name", ["total", "total, many blocks", "columns"])
def test_results_stay_within_the_bound(name: str) -> None:
    """Numbers of very different sizes, so that additions do round."""
    for way in ways(spread(name), "y"):
        if not way.verdict:
            continue
        s = made(name, way)
        arrays = dict(seeded_arrays(s.source, 1))
        arrays["x"] = (arrays["x"] * 10.0 ** np.random.default_rng(2).integers(-4, 5, arrays["x"].shape)).astype(np.float32)
        got = CpuDevice(seeds=3).run(CpuDevice(seeds=3).build(emit(s.plan)), arrays)["y"]
        columns = arrays["x"].reshape(-1, got.size).astype(np.float64)
        exact = np.array([fsum(c) for c in columns.T])
        errors = np.abs(got.astype(np.float64) - exact) / np.abs(columns).sum(0)
        assert errors.max() <= way.error
        assert errors.max() > 0, "nothing was rounded"


def test_bounds_of_methods() -> None:
    assert sum_bound(1000, 0, U) == gamma(1000, U)
    assert sum_bound(1000, 0, U, "pairwise") == gamma(11, U)
    assert sum_bound(1000, 0, U, "kahan") < 2.01 * U
    assert sum_bound(1000, 5, U, "kahan") < sum_bound(1000, 5, U, "pairwise") < sum_bound(1000, 5, U)
    assert sum_bound(1 << 24, 0, U) == sum_bound(1 << 24, 0, U, "kahan") == float("inf"), "where h u reaches 1, theory ends"
    assert METHODS == ("plain", "pairwise", "kahan")


# -- workspaces that do not fit ------------------------------------------------------------------------------------


def wide() -> Schedule:
    """2^20 columns with 2^17 parts each: half a terabyte of parts."""
    text = """@ex.program
def wide(x: ex.f32[2, M], y: ex.f32[M]):
    for j in range(M):
        y[j] = 0.0
    for j in range(M):
        for k in range(N):
            y[j] += x[k % 2, j] * x[0, j]
"""
    s = start(text, M=1 << 20, N=1 << 17).split("j_2", 256).bind("j_2.i", "thread.x").bind("j_2", "block.y")
    return s.bind("k", "block.x")


def test_a_workspace_that_does_not_fit_is_refused_with_its_size() -> None:
    s = wide()
    found = {w.how: w for w in ways(s, "y", gpu("H200"))}
    for how in ("kernel", "last_block", "grid"):
        assert not found[how].verdict
        assert "549,755,813,888 bytes" in found[how].verdict.why
    assert found["atomic"].verdict
    with pytest.raises(ResourceError, match="549,755,813,888") as caught:
        Kernel.of(s.collect("y", "last_block"), "H200")
    assert "atomic" in caught.value.hint


def test_the_cpu_refuses_it_with_its_size() -> None:
    module = emit(wide().collect("y", "last_block").plan)
    built = CpuDevice(checked=False).build(module)
    with pytest.raises(OutOfMemory, match=r"5\d\d,\d{3},\d{3},\d{3} bytes"):
        CpuDevice(checked=False).run(built, {"x": np.zeros((2, 1 << 20), np.float32)})
