"""Products whose factors have rows of odd length: copied to rows that begin where bulk copies can, then multiplied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import product_programs
from explorer.gpu.spec import gpu
from explorer.kernel.emit import emit
from explorer.kernel.export.tensor_maps import row_strides
from explorer.run.cpu.device import CpuDevice
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from explorer.strategies.auto import auto
from explorer.strategies.contraction.arrange import PADDED, ways
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from explorer.transforms.rearrange import Rearrange

H200 = gpu("H200")


def padded(orders: str, **sizes: int) -> Schedule:
    """The product of padded copies, in one tiling."""
    start = getattr(product_programs, f"product_{orders}").schedule(**sizes)
    way = next(w for w in ways(start, start.plan.kernels[0].id, H200) if w.label == PADDED)
    return build(way.schedule, way.form, Tiling("warpgroup", 64, 64, 64, 1, 1, 3), H200)


@pytest.mark.parametrize("orders", ["nn", "nt", "tn", "tt"])
def test_rows_of_odd_length_are_padded_for_bulk_copies(orders: str) -> None:
    """Of both factors, in any order of theirs, to whole lines of the cache; what lies behind the rows is never read."""
    made = padded(orders, M=131, N=67, K=133)
    arrays = {a.name: a for a in made.plan.program.arrays}
    for name in "ab":
        assert arrays[f"{name}_a"].pitch == -(-arrays[name].shape[1] // 64) * 64
    assert made.judgement.emittable
    assert "bulk_copy_2d" in made.cuda
    assert made.run(device="cpu", time=False, checked=True).correct


def test_rows_whose_length_is_a_multiple_of_16_bytes_are_not() -> None:
    start = product_programs.product_nn.schedule(M=131, N=72, K=136)
    assert PADDED not in [w.label for w in ways(start, start.plan.kernels[0].id, H200)]


def test_auto_pads_long_odd_rows() -> None:
    made = auto(product_programs.product_nt.schedule(M=1688, N=53, K=8161))
    assert [s.pad for s in made.steps if isinstance(s, Rearrange)] == [31, 31]
    assert any(leaf.mechanism == "bulk" for leaf, _, _ in made.plan.leaves)
    assert made.judgement.emittable


def test_a_tensor_map_has_the_extents_of_the_array_and_the_pitch_of_its_rows() -> None:
    module = emit(padded("nn", M=70, N=67, K=69).plan)
    assert {(m.shape, m.pitch) for m in module.tensor_maps} == {((70, 69), 128), ((69, 67), 128)}
    assert {row_strides(m.stored, 2) for m in module.tensor_maps} == {(256,)}
    assert {b.shape for b in module.buffers if b.kind == "workspace"} == {(70, 128), (69, 128)}


@pytest.mark.parametrize("what", ["pitch", "shape"])
def test_a_map_that_takes_one_for_the_other_is_caught(what: str) -> None:
    s = padded("nn", M=70, N=67, K=69)
    module = emit(s.plan)
    wrong = [replace(m, pitch=m.shape[-1]) if what == "pitch" else replace(m, shape=m.stored) for m in module.tensor_maps]
    device, arrays = CpuDevice(checked=False), seeded_arrays(s.source, 3)
    right = device.run(device.build(module), arrays)["c"]
    found = device.run(device.build(replace(module, tensor_maps=tuple(wrong))), arrays)["c"]
    assert not np.array_equal(right, found)  # what lies behind a row is poisoned
