"""What is asked only at the ends of rows: where an iteration can lie there, by its number alone."""

from __future__ import annotations

import re
from itertools import product

import pytest

from benchmarks.reduction_program import reduction
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.strategies.default import default
from explorer.strategies.reductions import Shape, reduce
from tests.properties.equal import difference

KEEP = re.compile(r"if \((.*)\) keep_between\(")
BEYOND = re.compile(r"\((r1[^?]*) \? load_within")
BATCH = re.compile(r"if \(([^\n]*)\) \{\n((?:[^\n]*\n){4}) *\} else \{\n((?:[^\n]*\n){4}) *\}\n")
ROWS = {
    "one batch of accesses": ((7, 411), Shape(8, 1, 4, 13, 1)),
    "several": ((7, 803), Shape(8, 1, 4, 5, 1)),
    "rows side by side": ((9, 411), Shape(8, 4, 4, 13, 1)),
    "parts": ((3, 2051), Shape(16, 1, 4, 8, 4)),
    "vectors of eight": ((5, 1029), Shape(8, 2, 8, 6, 1)),
}


def asked(condition: str, **at: int) -> bool:
    """Whether a condition of the text holds."""
    return bool(eval(condition.replace("&&", "and").replace("||", "or"), {}, at))


@pytest.mark.parametrize("name", ROWS)
def test_every_end_is_asked_for_and_little_else(name: str) -> None:
    """Of each row by brute force: where a vector holds elements of another row, and where it ends beyond the array."""
    (rows, length), shape = ROWS[name]
    dtype = "f16" if shape.vector == 8 else "f32"
    s = default(reduce(reduction((rows, length), (1,), dtype, "sum"), shape=shape))
    keep, beyond = KEEP.search(s.cuda), BEYOND.search(s.cuda)
    assert keep
    assert beyond
    step, batches = shape.x * shape.vector, -(-length // (shape.x * shape.vector * shape.unroll * shape.parts))
    kept = more = 0
    for r, u in product(range(batches), range(shape.unroll)):
        ends = over = False
        for row, part, thread in product(range(rows), range(shape.parts), range(shape.x)):
            first = ((r * shape.unroll + u) * shape.parts + part) * step + thread * shape.vector - row * length % shape.vector
            ends |= first < 0 <= first + shape.vector - 1 or first < length < first + shape.vector
            over |= first < length and row * length + first + shape.vector > rows * length
        assert asked(keep[1], r1=r, r1_u=u) >= ends, (r, u)
        assert asked(beyond[1], r1=r, r1_u=u) >= over, (r, u)
        kept, more = kept + asked(keep[1], r1=r, r1_u=u), more + asked(beyond[1], r1=r, r1_u=u)
    assert kept < batches * shape.unroll
    assert more < batches * shape.unroll
    device, arrays = CpuDevice(seeds=2), seeded_arrays(s.source, 3)
    for results in device.run_seeds(device.build(emit(s.plan)), arrays):
        assert not difference(s.source, arrays, results)


def test_an_end_between_vectors_is_the_threads_own() -> None:
    """Rows of two axes, 40 elements that begin where vectors do: a lane asks for nothing that its thread does not."""
    s = default(reduce(reduction((13, 8, 5), (1, 2), "f32", "sum"), shape=Shape(4, 8, 4, 3, 1)))
    assert "*(const vec<float, 4>*)&x[" in s.cuda
    assert not re.search(r"load_within<|keep_between\(x", s.cuda)
    device, arrays = CpuDevice(seeds=2), seeded_arrays(s.source, 3)
    for results in device.run_seeds(device.build(emit(s.plan)), arrays):
        assert not difference(s.source, arrays, results)


def test_where_nothing_lies_beyond_the_array_no_load_of_a_batch_asks() -> None:
    """The condition of a batch by brute force: its last vector ends inside of the array."""
    s = default(reduce(reduction((4099,), (0,), "f16", "max"), shape=Shape(64, 1, 8, 3, 2)))
    found = BATCH.search(s.cuda)
    assert found
    condition, whole, other = found.groups()
    assert "x[" in whole
    assert not re.search(r"load_within|\?", whole)
    assert "load_within" in other
    for r, part, thread in product(range(2), range(2), range(64)):
        last = ((r * 3 + 2) * 2 + part) * 512 + 8 * thread
        assert asked(condition, r0=r, r0_s=part, tx=thread) == (last + 8 <= 4099), (r, part, thread)
    device, arrays = CpuDevice(seeds=2), seeded_arrays(s.source, 3)
    for results in device.run_seeds(device.build(emit(s.plan)), arrays):
        assert not difference(s.source, arrays, results)


def test_where_every_iteration_is_an_end_nothing_is_asked() -> None:
    s = default(reduce(reduction((5, 43), (1,), "f32", "sum"), shape=Shape(16, 1, 4, 1, 1)))
    assert "keep_between(" in s.cuda or "load_within" in s.cuda
    assert not KEEP.search(s.cuda)
