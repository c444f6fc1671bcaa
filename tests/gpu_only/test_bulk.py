"""Bulk copies on a real GPU: dimensions, types, swizzles, ragged edges, pipelines; bit for bit what the CPU device computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import explorer as ex
from explorer.kernel.emit import emit
from explorer.run.cpu.device import CpuDevice
from explorer.run.cuda.device import CudaDevice, available
from explorer.run.inputs.arguments import seeded_arrays
from explorer.schedule import Schedule
from tests.kernel.bulk_schedules import SCHEDULES, several_tiles, tiled_product, tiles, vector, window

pytestmark = pytest.mark.gpu
SIZES = ex.sizes("D E")


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


def moved(dtype: str, d: int, e: int, tile: tuple[int, int], swizzle: int, threads: int) -> Schedule:
    """Elements just moved through shared memory, by a definition for this type."""
    kind = getattr(ex, dtype)

    @ex.program
    def through(x: kind[SIZES[0], SIZES[1]], y: kind[SIZES[0], SIZES[1]]):
        for i in range(SIZES[0]):
            for j in range(SIZES[1]):
                y[i, j] = x[i, j]

    s = through.schedule(D=d, E=e).split("i", tile[0]).split("j", tile[1]).reorder("i", "j", "i.i", "j.i")
    s = s.bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.y").split("j.i", threads, "t").bind("t", "thread.x")
    return s.stage("x", "j", engine="bulk", swizzle=swizzle)


@pytest.mark.parametrize("name", SCHEDULES)
def test_small_schedules(device: CudaDevice, name: str) -> None:
    same(device, SCHEDULES[name]())


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64"])
def test_types_and_swizzles(device: CudaDevice, dtype: str, swizzle: int) -> None:
    """Rows of just the swizzle's bytes, and four times as many; edges that hang over both ways."""
    size = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i32": 4, "i64": 8}[dtype]
    row = (swizzle or 64) // size
    for columns in (row, 4 * row):
        same(device, moved(dtype, 37, 3 * columns + 16 // size, (16, columns), swizzle, min(row, 16)))


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


def test_it_is_verified_and_timed(device: CudaDevice) -> None:
    run = tiled_product(3, 520, 512, 512, (16, 32, 64), (128, 64)).run(device=device)
    assert run.correct
