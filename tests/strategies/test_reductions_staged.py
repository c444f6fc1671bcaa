"""Rows that no vector divides: a block copies its own to shared memory in vectors, and each thread adds up one there."""

from __future__ import annotations

import re

import pytest

import explorer as ex
from benchmarks.reduction_program import reduction
from explorer.gpu.spec import gpu
from explorer.strategies.auto import auto
from explorer.strategies.default import default
from explorer.strategies.reductions import Shape, priced, reduce, reduction_form
from explorer.strategies.reductions.families import LONGEST, SHORTEST, STAGED, candidates
from explorer.strategies.reductions.shapes import Problem
from tests.strategies.device import right

HERE = gpu("H200")
M, N = ex.sizes("M N")
CASES = {
    "whole blocks": (((128, 31), (1,), "f32", "sum"), Shape(32, 1, 4, 31, 1, True, staged=True)),
    "the last block has fewer rows": (((403, 31), (1,), "f32", "max"), Shape(64, 1, 4, 31, 1, True, staged=True)),
    "vectors of eight": (((301, 33), (1,), "f16", "sum"), Shape(128, 1, 8, 33, 1, True, staged=True)),
    "rows of two axes": (((90, 5, 7), (1, 2), "f32", "sum"), Shape(32, 1, 4, 35, 1, True, staged=True)),
    "rows along two axes": (((24, 19, 19), (2,), "f16", "max"), Shape(32, 1, 8, 19, 1, True, staged=True)),
    "both": (((5, 7, 3, 5), (2, 3), "f32", "sum"), Shape(32, 1, 4, 15, 1, True, staged=True)),
    "an even divisor": (((19, 6, 12), (2,), "f16", "min"), Shape(64, 1, 8, 12, 1, True, staged=True)),
    "one block": (((2, 19, 9), (2,), "f32", "sum"), Shape(64, 1, 4, 9, 1, True, staged=True)),
    "doubles": (((33, 19), (1,), "f64", "min"), Shape(64, 1, 2, 19, 1, True, staged=True)),
}
COPY = re.compile(r"if \(([^\n]*)\) \{\n((?:[^\n]*\n){4,5}) *\} else \{\n((?:[^\n]*\n){4,5}) *\}\n")


@ex.program
def twice(x: ex.f32[M, N], y: ex.f32[M, N], z: ex.f32[M]):
    for i in range(M):
        total = ex.local(ex.f32)
        total = 0.0
        for k in range(N):
            total += x[i, k] * y[i, k]
        z[i] = total


def test_rows_that_fit_and_that_no_vector_divides() -> None:
    for length in range(2, 300):
        p = Problem(True, length, 10_000, length, 4, beside=10_000)
        found = [s for s in candidates(p, 4, HERE) if s.staged]
        assert bool(found) == (length % 4 > 0 and SHORTEST <= 4 * length <= LONGEST)
        for s in found:
            assert length % s.unroll == 0
            assert 4 * s.x * length <= STAGED
            assert s.blocks(p) * s.x >= 10_000 > (s.blocks(p) - 1) * s.x
            assert s.accesses(p) * s.vector >= length
    assert not [s for s in candidates(Problem(True, 62, 900, 31, 4, 31, 900, 27_900), 4, HERE) if s.staged]


def test_every_way_is_right_and_reads_vectors() -> None:
    made = [default(reduce(reduction(*case), shape=shape)) for case, shape in CASES.values()]
    for s, (_, shape) in zip(made, CASES.values(), strict=True):
        text = s.cuda[s.cuda.index('extern "C"'):]
        wide = rf"vec<\w+, {shape.vector}>"
        assert re.search(rf"(?:= \*\(const {wide}\*\)&|[=:?] load_(?:within|first)<{wide}, {shape.vector}>\(&)x\[", text)
        assert len(re.findall(r"\bx\[", text)) <= 2, "nothing else reads the array"
        assert s.judgement.emittable
    right(made)


@pytest.mark.parametrize("name", ["the last block has fewer rows", "rows along two axes", "both"])
def test_whether_a_block_ends_beyond_is_asked_once(name: str) -> None:
    """The condition by brute force: where it holds, no vector of the block ends beyond the array."""
    (shape, axes, dtype, op), spread = CASES[name]
    s = default(reduce(reduction(shape, axes, dtype, op), shape=spread))
    found = COPY.search(s.cuda)
    assert found
    condition, plain, other = found.groups()
    assert not re.search(r"load_within|\?", plain)
    assert "load_within" in other
    size, length = 1, 1
    for n, extent in enumerate(shape):
        size, length = size * extent, length * extent if n in axes else length
    blocks = -(-size // length // spread.x)
    holds = [bool(eval(condition, {}, {"p0": p})) for p in range(blocks)]
    assert all(not h or (p + 1) * spread.x * length <= size for p, h in enumerate(holds))
    assert sum(holds) >= blocks - 2


def test_a_text_is_readable(golden) -> None:
    case, shape = CASES["rows along two axes"]
    s = default(reduce(reduction(*case), shape=shape))
    golden(s.cuda[s.cuda.index('extern "C"'):])


def test_two_arrays_stay_where_they_are() -> None:
    s = twice.schedule(M=100_000, N=31)
    form = reduction_form(s, "twice")
    assert form is not None
    assert not any(x.staged for x, _ in priced(s, form, HERE))


def test_many_odd_rows_lie_in_shared_memory() -> None:
    """On an H200 these took 41.6 and 13.8 µs by threads of their own or several to a row, and 33.3 and 10.4 so."""
    for case in (((1_048_576, 31), (1,), "f32", "sum"), ((500_009, 33), (1,), "f16", "max")):
        assert "__shared__ __align__(16)" in auto(reduction(*case), "H200").cuda
