"""Bulk copies on a real GPU: dimensions, types, swizzles, ragged edges, pipelines; bit for bit what the CPU device computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.cuda.device import CudaDevice, available
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from tests.kernel import stored_schedules
from tests.kernel.bulk_schedules import BYTES, SCHEDULES, rows_of, several_tiles, tiled_product, tiles, vector, window

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    assert available() is None
    made = CudaDevice(limit_s=20)
    yield made
    made.close()


def same(device: CudaDevice, schedule: Schedule, seed: int = 1) -> None:
    """The GPU's results are the CPU device's."""
    module, arrays, fast = emit(schedule.plan), seeded_arrays(schedule.source, seed), CpuDevice(checked=False)
    expected = fast.run(fast.build(module), arrays)
    for name, got in device.run(device.build(module), arrays).items():
        assert got.view(np.uint8).tobytes() == expected[name].view(np.uint8).tobytes(), name


@pytest.mark.parametrize("name", SCHEDULES)
def test_small_schedules(device: CudaDevice, name: str) -> None:
    same(device, SCHEDULES[name]())


@pytest.mark.parametrize("name", stored_schedules.SCHEDULES)
def test_small_stores(device: CudaDevice, name: str) -> None:
    same(device, stored_schedules.SCHEDULES[name]())


def test_stores_of_many_tiles(device: CudaDevice) -> None:
    same(device, stored_schedules.tiles(d=1000, e=4104, swizzle=128))
    same(device, stored_schedules.in_turn(1000, 4104))


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("dtype", BYTES)
def test_types_and_swizzles(device: CudaDevice, dtype: str, swizzle: int) -> None:
    for schedule in rows_of(dtype, swizzle):
        same(device, schedule)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("c", [64, 72, 520])
def test_pipelines(device: CudaDevice, stages: int, c: int) -> None:
    same(device, tiled_product(stages, c, 100, 200, (16, 32, 16), (32, 64)))


def test_many_blocks_and_long_rows(device: CudaDevice) -> None:
    same(device, vector(1_000_004, 1024))
    same(device, tiles(d=1000, e=4104, tile=(16, 256), swizzle=128))
    same(device, window(700, 1004))
    same(device, several_tiles(4))


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_dynamic_shared_memory(device: CudaDevice, stages: int) -> None:
    """More than 48 KiB: arrays that begin at multiples of 1024 bytes, in panels, boxes of 128 bytes a row."""
    s = tiled_product(stages, 520, 64, 264, (16, 64, 128), (128, 128))
    assert emit(s.plan).launches[0].dynamic_shared_bytes > 48 * 1024 or stages < 3
    same(device, s)


def test_it_is_verified_and_timed() -> None:
    run = tiled_product(3, 520, 512, 512, (16, 32, 64), (128, 64)).run(device="cuda")
    assert run.correct
