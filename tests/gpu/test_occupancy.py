"""Occupancy against NVIDIA's own calculator, compiled from the header in the CUDA wheel, and the refusals of a launch."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from explorer.errors import ResourceError
from explorer.gpu.occupancy import check_launch, occupancy, waves
from explorer.gpu.spec import Gpu, catalogue, gpu
from explorer.kernel.module import Launch
from explorer.run.nvrtc.compiler import include_folders

ORACLE = r"""
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
    int major, minor, threads_sm, regs_sm, shared_sm, optin, reserved, sms, threads, regs, shared, barriers;
    while (std::scanf("%d %d %d %d %d %d %d %d %d %d %d %d", &major, &minor, &threads_sm, &regs_sm, &shared_sm, &optin, &reserved,
                      &sms, &threads, &regs, &shared, &barriers) == 12) {
        cudaOccDeviceProp p;
        p.computeMajor = major; p.computeMinor = minor; p.maxThreadsPerBlock = 1024; p.maxThreadsPerMultiprocessor = threads_sm;
        p.regsPerBlock = 65536; p.regsPerMultiprocessor = regs_sm; p.warpSize = 32; p.sharedMemPerBlock = 49152;
        p.sharedMemPerMultiprocessor = shared_sm; p.numSms = sms; p.sharedMemPerBlockOptin = optin;
        p.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes a;
        a.maxThreadsPerBlock = 1024; a.numRegs = regs; a.sharedSizeBytes = 0; a.partitionedGCConfig = PARTITIONED_GC_OFF;
        a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; a.maxDynamicSharedSizeBytes = shared; a.numBlockBarriers = barriers;
        cudaOccDeviceState s;
        s.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        cudaOccResult r;
        cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, threads, shared);
        std::printf("%d\n", e == CUDA_OCC_SUCCESS ? r.activeBlocksPerMultiprocessor : -(int)e);
    }
}
"""


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("occupancy")
    (folder / "oracle.cpp").write_text(ORACLE)
    (headers,) = include_folders()
    subprocess.run(["g++", "-w", f"-I{headers}", "oracle.cpp", "-o", "oracle"], cwd=folder, check=True)
    return folder / "oracle"


@pytest.mark.parametrize("arch", sorted({g.arch for g in catalogue().values()}))
def test_it_agrees_with_nvidias_calculator(oracle: Path, arch: str) -> None:
    g = next(g for g in catalogue().values() if g.arch == arch)
    draw = random.Random(arch)
    limit = g.shared_bytes_per_block_optin
    cases = [(draw.choice([1, 31, 32, 33, 64, 96, 128, 250, 256, 384, 512, 640, 768, 1000, 1024]), draw.randint(1, 255),
              draw.choice([0, 0, draw.randint(1, 49152), draw.randint(1, limit), limit, limit // 2, limit // 3]),
              draw.choice([0, 1, 1, 2, 16])) for _ in range(3000)]
    lines = [" ".join(map(str, (*g.compute_capability, g.max_threads_per_sm, g.registers_per_sm, g.shared_bytes_per_sm, limit,
                                g.reserved_shared_bytes_per_block, g.multiprocessors, *case))) for case in cases]
    answer = subprocess.run([oracle], input="\n".join(lines), capture_output=True, text=True, check=True).stdout.split()
    assert len(answer) == len(cases)
    assert len(set(answer)) > 8
    for case, blocks in zip(cases, answer, strict=True):
        assert occupancy(g, *case).blocks_per_sm == int(blocks), f"{arch}: threads, registers, shared, barriers = {case}"


@pytest.mark.parametrize(("arguments", "blocks", "fraction", "limiter"), [
    ((256, 32, 0), 8, 1.0, "warps"),
    ((32, 32, 0), 32, 0.5, "blocks"),
    ((256, 64, 0), 4, 0.5, "registers"),
    ((256, 32, 100_000), 2, 0.25, "shared"),
    ((128, 32, 0, 16), 4, 0.25, "barriers"),
    ((384, 168, 230_656), 1, 12 / 64, "registers"),
])
def test_known_kernels_on_the_h200(arguments: tuple[int, ...], blocks: int, fraction: float, limiter: str) -> None:
    filled = occupancy(gpu("H200"), *arguments)
    assert (filled.blocks_per_sm, filled.fraction, filled.limiter) == (blocks, fraction, limiter)
    assert filled.active_warps == filled.fraction * 64
    assert filled.limits[limiter] == blocks


@pytest.mark.parametrize(("arguments", "limiter"), [
    ((1025, 16, 0), "warps"), ((1024, 65, 0), "registers"), ((32, 256, 0), "registers"), ((32, 16, 232_449), "shared")])
def test_a_block_that_does_not_fit_has_none(arguments: tuple[int, int, int], limiter: str) -> None:
    filled = occupancy(gpu("H200"), *arguments)
    assert (filled.blocks_per_sm, filled.fraction, filled.limiter) == (0, 0.0, limiter)


def test_unknown_registers_never_limit() -> None:
    assert occupancy(gpu("T4"), 1024, 0, 0).blocks_per_sm == 1


def test_an_empty_block_is_refused() -> None:
    with pytest.raises(ResourceError):
        occupancy(gpu("T4"), 0, 32, 0)


def test_waves_counts_how_often_the_grid_fills_the_gpu() -> None:
    assert waves(gpu("H200"), (264, 1, 1), 1) == 2.0
    assert waves(gpu("H200"), (133, 2, 1), 2) == pytest.approx(266 / 264)
    assert waves(gpu("H200"), (1, 1, 1), 0) == float("inf")


def launch(grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (256, 1, 1), static: int = 0,
           dynamic: int = 0) -> Launch:
    return Launch("k", grid, block, (), static_shared_bytes=static, dynamic_shared_bytes=dynamic)


@pytest.mark.parametrize(("asked", "registers", "words"), [
    (launch(block=(1025, 1, 1)), None, ["threads per block", "1,025", "1,024"]),
    (launch(block=(1, 1, 65)), None, ["block z", "65", "64"]),
    (launch(grid=(1, 65536, 1)), None, ["grid y", "65,536", "65,535", "block.x"]),
    (launch(grid=(1, 1, 70000)), None, ["grid z", "70,000"]),
    (launch(grid=(2**31, 1, 1)), None, ["grid x", "2,147,483,648"]),
    (launch(static=49153), None, ["static shared", "49,153", "49,152", "dynamic"]),
    (launch(dynamic=232_449), None, ["shared memory per block", "232,449", "232,448"]),
    (launch(static=40_000, dynamic=200_000), None, ["shared memory per block", "240,000"]),
    (launch(block=(1024, 1, 1)), 72, ["registers per block", "73,728", "65,536"]),
    (launch(), 256, ["registers per thread", "256", "255"]),
])
def test_a_launch_too_big_is_refused_with_the_numbers(asked: Launch, registers: int | None, words: list[str]) -> None:
    with pytest.raises(ResourceError) as caught:
        check_launch(gpu("H200"), asked, registers)
    for word in (*words, "kernel k on H200"):
        assert word in str(caught.value)
    assert caught.value.breaches


@pytest.mark.parametrize("empty", [launch(grid=(0, 1, 1)), launch(block=(32, 0, 1))])
def test_an_empty_launch_is_refused(empty: Launch) -> None:
    with pytest.raises(ResourceError, match="empty"):
        check_launch(gpu("H200"), empty)


@pytest.mark.parametrize("fits", [launch(grid=(2**31 - 1, 65535, 65535)), launch(block=(1024, 1, 1)), launch(static=49152),
                                  launch(dynamic=232_448)])
def test_a_launch_at_the_limit_is_taken(fits: Launch) -> None:
    check_launch(gpu("H200"), fits, 64)


def test_limits_differ_between_gpus() -> None:
    large = launch(dynamic=100_000)
    check_launch(gpu("RTX 4090"), large)
    with pytest.raises(ResourceError, match="T4"):
        check_launch(gpu("T4"), large)


def test_the_launch_check_rounds_warps_up_to_the_sub_partitions() -> None:
    """Nine warps of 216 registers would fit, but are checked as twelve."""
    g: Gpu = gpu("H200")
    assert 9 * 32 * 216 < g.registers_per_block < 12 * 32 * 216
    assert occupancy(g, 288, 216, 0).blocks_per_sm == 0
    with pytest.raises(ResourceError, match="registers per block"):
        check_launch(g, launch(block=(288, 1, 1)), 216)
