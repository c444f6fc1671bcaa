"""Element by element: how wide an access may be."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.ir.tree import Loop, walk
from explorer.strategies.auto import auto
from explorer.strategies.default import default
from explorer.strategies.elementwise import elementwise
from explorer.strategies.stitch import stitch

from .stitched import two_nests

M, N = ex.sizes("M N")


@ex.program
def added(a: ex.f16[M, N], b: ex.f16[M, N], y: ex.f16[M, N]):
    for i in range(M):
        for k in range(N):
            y[i, k] = a[i, k] * 2.0 + b[i, k]


@ex.program
def kept(a: ex.f32[M], b: ex.f32[M], y: ex.f32[M], z: ex.f32[M]):
    for i in range(M):
        t = ex.local(ex.f32)
        t = a[i] * 2.0 + b[i]
        y[i] = t * t
        z[i] = t + 1.0


@ex.program
def turned(a: ex.f16[M, N], b: ex.f16[N, M], y: ex.f16[M, N]):
    for i in range(M):
        for k in range(N):
            y[i, k] = a[i, k] * 2.0 + b[k, i]


@ex.program
def biased(a: ex.f16[M, N], b: ex.f16[N], y: ex.f16[M, N]):
    for i in range(M):
        for k in range(N):
            y[i, k] = a[i, k] * 2.0 + b[k]


def lanes(schedule: ex.Schedule) -> int:
    """Elements of one access."""
    loops = (n for k in schedule.plan.kernels for n in walk(k.body) if isinstance(n, Loop))
    return max((n.extent for n in loops if n.role == "vector"), default=1)


@pytest.mark.parametrize(("definition", "rows", "columns", "wide"), [
    (added, 40, 71, 4), (added, 2, 71, 2), (added, 41, 71, 1), (added, 41, 72, 4),  # the size decides, not the row
    (turned, 40, 71, 1), (biased, 40, 71, 4), (biased, 41, 72, 4), (biased, 40, 68, 4)])  # fmt: skip
def test_width(definition: ex.Definition, rows: int, columns: int, wide: int) -> None:
    made = auto(definition.schedule(M=rows, N=columns))
    assert lanes(made) == wide
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("size", [256 * 512 + 1, 256 * 512 + 511, 4096 * 512 + 3])
def test_what_no_whole_access_takes_is_done_by_the_first_blocks(size: int) -> None:
    """Whole arrays of odd length are read in vectors all the same, in one launch, whatever a thread keeps."""
    made = auto(kept.schedule(M=size))
    assert lanes(made) == 4
    assert len(made.plan.kernels) == 1
    assert made.judgement.emittable
    body = made.plan.kernels[0].body
    whole, rest = (n for n in body if isinstance(n, Loop))
    assert rest.extent <= 16 < 256 <= whole.extent
    assert {a.width_bytes for a in made.facts.accesses if a.space == "global"} == {16, 4}
    if size < 1 << 20:
        assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("size", "each"), [(1 << 22, 2), (1 << 24, 1)])
def test_large_kernels_take_less_at_a_time(size: int, each: int) -> None:
    """A copy of 4 GiB was 4.8 % behind PyTorch with four accesses of a thread, level with one."""
    loops = [n for k in auto(kept.schedule(M=size)).plan.kernels for n in walk(k.body) if isinstance(n, Loop)]
    assert next((n.extent for n in loops if n.role == "unroll"), 1) == each


def test_few_halves_are_taken_four_at_a_time() -> None:
    assert lanes(auto(biased.schedule(M=32, N=8192))) == 4
    assert lanes(auto(biased.schedule(M=512, N=8192))) == 8


def test_few_elements_are_taken_one_by_one() -> None:
    made = auto(kept.schedule(M=256 * 512 - 1))
    assert lanes(made) == 1
    assert made.run(device="cpu", time=False).correct


def test_the_default_leaves_a_kernel_that_is_spread_whole() -> None:
    """The loop of what is left over is no kernel of its own; one that nothing is bound in still is."""
    spread = elementwise(kept.schedule(M=256 * 512 + 5))
    assert len(default(spread).plan.kernels) == 1
    assert len(default(kept.schedule(M=100).cut("i", 64)).plan.kernels) == 2


def test_odd_phases_of_one_launch() -> None:
    made = stitch(two_nests.schedule(M=521, N=509), {"t->z": "grid"})
    _, second = made.plan.kernels
    assert second.join == "grid"
    assert len(second.body) == 2
    assert made.judgement.emittable
    assert "grid_barrier" in made.cuda


def test_vectors_beside_a_bias_are_saved_and_read() -> None:
    """What a strategy made is a script and a file like any other schedule, the gathered lanes among its steps."""
    made = auto(biased.schedule(M=131, N=1301))
    assert "gather=True" in made.script()
    assert biased.load(made.share()).cuda == made.cuda


@ex.program
def widened(a: ex.f16[M], y: ex.f32[M]):
    for i in range(M):
        y[i] = a[i] * 2.0


def test_halves_beside_floats_are_taken_four_at_a_time() -> None:
    """Eight floats are no access; the lanes of both became a loop of single elements, eight neighbours for a thread."""
    made = auto(widened.schedule(M=1 << 12))
    assert lanes(made) == 4
    assert made.run(device="cpu", time=False).correct
