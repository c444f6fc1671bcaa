"""Bulk copies to several blocks of a cluster on the CPU device: right texts in every order, and every mistake found in some."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from explorer.errors import KernelFault, KernelTimeout
from explorer.ir.dtype import DTYPES
from explorer.kernel.device import library_text
from explorer.kernel.module import Buffer, CudaModule, Launch, SharedArray, TensorMap
from explorer.run.cpu.device import CpuDevice
from explorer.run.nvrtc.compiler import compile_module, compile_text
from tests.run.cpu.cpu_kernels import edited

CHECKED, FAST = CpuDevice(seeds=5), CpuDevice(checked=False, time_limit_s=20.0)
ROWS, COLUMNS, DEPTH = 32, 128, 192

PRODUCT = """
extern "C" __global__ void __launch_bounds__(96) __cluster_dims__(2, DOWN, 1)
kernel(const float* a, const float* b, float* c, const __grid_constant__ tensor_map a_map,
       const __grid_constant__ tensor_map b_map) {
  __shared__ __align__(128) float a_s[2][16][32];
  __shared__ __align__(128) float b_s[2][32][32];
  __shared__ unsigned long long full[2];
  __shared__ unsigned long long empty[2];
  __shared__ unsigned long long relay[2];
  const int t = threadIdx.x, w = threadIdx.y;
  const int across = blockIdx.x % 2, down = blockIdx.y % DOWN;
  const int i = 16 * blockIdx.y, j = 32 * blockIdx.x;
  if (w == 2 && t == 0) {
    mbarrier_begin(full);
    mbarrier_begin(relay, 2);
    mbarrier_begin(empty, 2 * BLOCKS);
  }
  cluster_begins();  // begun
  if (w == 2) {
    for (int k = 0; k < 6; ++k) {
      const int s = k % 2;
      if (t == 0 && k >= 2) mbarrier_wait_all(empty[s], (k / 2 - 1) % 2);
      if (t == 0) {
        multicast_2d<32, 8, 1, 2>(&a_s[s][8 * across][0], a_map, 32 * k, i + 8 * across, full[s]);
        LOAD_B
        mbarrier_arrive(full[s]);
      }
    }
  } else {
    float sum[8];
    for (int m = 0; m < 8; ++m) sum[m] = 0.0f;
    for (int k = 0; k < 6; ++k) {
      const int s = k % 2;
      mbarrier_wait(full[s], k / 2 % 2);
      for (int n = 0; n < 32; ++n)
        for (int m = 0; m < 8; ++m) sum[m] += a_s[s][8 * w + m][n] * b_s[s][n][t];
      mbarrier_release_all<BLOCKS>(empty[s]);
    }
    for (int m = 0; m < 8; ++m) c[(i + 8 * w + m) * 128 + j + t] = sum[m];
  }
  cluster_ends();  // ends
}
"""
OWN_B = "bulk_copy_2d<32, 32>(&b_s[s][0][0], b_map, j, 32 * k, full[s]);"
SHARED_B = "multicast_2d<32, 16, 2, 2>(&b_s[s][16 * down][0], b_map, j, 32 * k + 16 * down, full[s]);"

BEGUN, ENDS = "  cluster_begins();  // begun\n", "  cluster_ends();  // ends\n"
DRAINS = "  if (w == 2 && t == 0) mbarrier_drain<6>(empty);\n"
COUNT, RELEASE = "mbarrier_begin(empty, 2 * BLOCKS);", "mbarrier_release_all<BLOCKS>(empty[s]);"
EMPTY, FULL = "if (t == 0 && k >= 2) mbarrier_wait_all(empty[s], (k / 2 - 1) % 2);", "mbarrier_wait(full[s], k / 2 % 2);"
PART, ARRIVE = "&a_s[s][8 * across][0], a_map, 32 * k, i + 8 * across", "        mbarrier_arrive(full[s]);\n"
STEPS = "    for (int k = 0; k < 6; ++k) {\n      const int s = k % 2;\n      if"
Edits = Sequence[tuple[str, str]]


def product(down: int, edits: Edits = (), library_edits: Edits = ()) -> CudaModule:
    """c = a @ b by clusters of 2 x `down` blocks, which share tiles of a and, where `down` is 2, of b."""
    kernel = PRODUCT
    for old, new in edits:
        kernel = edited(kernel, old, new)
    kernel = kernel.replace("LOAD_B", OWN_B if down == 1 else SHARED_B)
    kernel = kernel.replace("DOWN", str(down)).replace("BLOCKS", str(2 * down))
    library = library_text(("bulk_copy", "roles", "multicast"), kernel)
    for old, new in library_edits:
        library = edited(library, old, new)
    f32 = DTYPES["f32"]
    buffers = (Buffer("a", f32, (ROWS, DEPTH), "in"), Buffer("b", f32, (DEPTH, COLUMNS), "in"),
               Buffer("c", f32, (ROWS, COLUMNS), "out"))
    maps = (TensorMap("a_map", "a", (ROWS, DEPTH), (8, 32), (1, 1), 0, DEPTH),
            TensorMap("b_map", "b", (DEPTH, COLUMNS), (32 // down, 32), (1, 1), 0, COLUMNS))
    launch = Launch("kernel", (4, 2, 1), (32, 3, 1), ("a", "b", "c", "a_map", "b_map"), cluster=(2, down, 1))
    shared = tuple(SharedArray("kernel", name, DTYPES["u64"], (2,)) for name in ("full", "empty"))
    return CudaModule("kernel", library + kernel, buffers, (launch,), {}, maps, shared=shared)


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    return {"a": random.integers(-4, 5, (ROWS, DEPTH)).astype(np.float32),
            "b": random.integers(-4, 5, (DEPTH, COLUMNS)).astype(np.float32)}


def outcome(module: CudaModule, device: CpuDevice = CHECKED) -> str:
    """The kind of the fault, or whether every order has the right result."""
    given = arrays()
    try:
        results = device.run_seeds(device.build(module), given)
    except KernelFault as fault:
        return str(fault.kind)
    return "right" if all(np.array_equal(r["c"], given["a"] @ given["b"]) for r in results) else "wrong"


RIGHT: dict[str, Edits] = {
    "each warp releases": (),
    "another lane waits": ((EMPTY, EMPTY.replace("t == 0", "t == 1") + " __syncwarp();"),),
    "one warp releases for all": ((RELEASE, f"barrier_of<1, 64>(); if (w == 0) {RELEASE}"), (COUNT, COUNT.replace("2 * ", ""))),
    "the producer passes on what is released": (
        (RELEASE, "mbarrier_release(relay[s]);"), (COUNT, COUNT.replace("2 * ", "")),
        (EMPTY, "if (k >= 2) { if (t == 0) mbarrier_wait(relay[s], (k / 2 - 1) % 2); " + RELEASE + " } " + EMPTY)),
    "the producer waits for all releases": ((ENDS, DRAINS),),
    "the cluster meets at each step": (
        (EMPTY, "if (k >= 2) cluster_ends();"), (FULL, f"if (k >= 2) cluster_ends(); {FULL}"), (RELEASE, "")),
}
"""What orders a part behind the reads of those to whom it goes."""


@pytest.mark.parametrize("down", [1, 2])
@pytest.mark.parametrize("name", RIGHT)
def test_right_texts_compute_the_product(name: str, down: int) -> None:
    module = product(down, RIGHT[name])
    assert outcome(module, CpuDevice(seeds=8)) == "right"
    assert outcome(module, FAST) == "right"


def test_the_fast_build_computes_it_again_and_again() -> None:
    module, given = product(2), arrays()
    built = FAST.build(module)
    assert len(FAST.time(built, given, repeats=100, warmup=0)) == 100


EARLY: Edits = ((RELEASE, "mbarrier_release(relay[s]);"), (FULL, f"{FULL} {RELEASE}"),
                (EMPTY, f"{EMPTY} if (t == 0 && k >= 2) mbarrier_wait(relay[s], (k / 2 - 1) % 2);"))
"""The block itself releases a slot in time, and to the others too early."""
UNREAD = ("race", "bulk-pending")
"""A part that comes while what it replaces is still read, or still on its way."""
MISTAKES: dict[str, tuple[Edits, tuple[str, ...]]] = {
    "no wait for releases": (((EMPTY, ""),), UNREAD),
    "release to the own block alone": (((RELEASE, "mbarrier_release(empty[s]);"),), ("mbarrier",)),
    "release to the own block alone, and count so": (
        ((RELEASE, "mbarrier_release(empty[s]);"), (COUNT, "mbarrier_begin(empty, 2);")), UNREAD),
    "release to a block less": (((RELEASE, RELEASE.replace("BLOCKS", "BLOCKS - 1")),), ("mbarrier",)),
    "release to a block more": (((RELEASE, RELEASE.replace("BLOCKS", "BLOCKS + 1")),), ("cluster-rank",)),
    "one arrival too few": (((COUNT, COUNT.replace("BLOCKS", "BLOCKS - 1")),), (*UNREAD, "mbarrier-again")),
    "one arrival too many": (((COUNT, COUNT.replace("BLOCKS", "BLOCKS + 1")),), ("mbarrier",)),
    "one warp does not release": (((RELEASE, f"if (w == 0) {RELEASE}"),), ("mbarrier",)),
    "one warp does not release, and is not counted": (
        ((RELEASE, f"if (w == 0) {RELEASE}"), (COUNT, COUNT.replace("2 * ", ""))), UNREAD),
    "release before the reads": (((f"      {RELEASE}\n", ""), (FULL, f"{FULL} {RELEASE}")), UNREAD),
    "release to the others before the reads": (EARLY, UNREAD),
    "wrong parity of releases": (((EMPTY, EMPTY.replace(" - 1", "")),), (*UNREAD, "mbarrier-again")),
    "always parity 0 of releases": (((EMPTY, EMPTY.replace("(k / 2 - 1) % 2", "0")),), (*UNREAD, "mbarrier-again")),
    "wrong parity of parts": (((FULL, FULL.replace("k / 2", "(k / 2 + 1)")),), ("uninitialised", "bulk-pending", "mbarrier")),
    "another lane waits": (((EMPTY, EMPTY.replace("t == 0", "t == 1")),), UNREAD),
    "the mbarriers are not ready": (((BEGUN, "  __syncthreads();\n"),), ("mbarrier-not-ready",)),
    "a block ends before the others": (((ENDS, ""),), ("cluster-ended",)),
    "the producer waits for all releases but one": (((ENDS, DRAINS.replace("6", "5")),), ("cluster-ended",)),
    "a block leaves at once": ((("  if (w == 2 && t == 0) {\n", "  if (across) return;\n  if (w == 2 && t == 0) {\n"),),
                               ("grid-divergence", "cluster-ended")),
    "a block leaves": (((BEGUN, f"{BEGUN}  if (across) return;\n"),), ("cluster-ended", "bulk-unfinished")),
    "a block does not meet the others at the end": (((ENDS, f"  if (!across)\n{ENDS}"),), ("cluster-ended", "grid-divergence")),
    "a block asks for one tile less": (((STEPS, STEPS.replace("6", "6 - across")),), ("mbarrier", "cluster-ended")),
    "both ask for the first half": (((PART, PART.replace("8 * across", "0")),), ("bulk-pending",)),
    "both ask for what is in the first half": (((PART, PART.replace("i + 8 * across", "i")),), ("wrong",)),
    "no wait for parts": (((FULL, ""),), ("uninitialised", "bulk-pending")),
    "the producer does not arrive": (((ARRIVE, ""),), ("mbarrier",)),
}


@pytest.mark.parametrize("down", [1, 2])
@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_is_found(name: str, down: int) -> None:
    edits, kinds = MISTAKES[name]
    assert outcome(product(down, edits)) in kinds


EXPECT = "mbarrier_expect(counted, BX * BY * MATES * (int)sizeof(T));"
OF_THE_LIBRARY: dict[str, tuple[Edits, tuple[str, ...]]] = {
    "the bytes of one part": (((EXPECT, EXPECT.replace(" * MATES", "")),), ("uninitialised", "bulk-pending", "wrong")),
    "the bytes of another part": (((EXPECT, EXPECT.replace("MATES", "(MATES + 1)")),), ("mbarrier",)),
    "a release before all lanes have read": ((("__syncwarp();\n    const unsigned rank", "const unsigned rank"),), UNREAD),
    "the mates of another direction": ((("rank / EACH % MATES * EACH", "rank / MATES % EACH * EACH"),),
                                       ("mbarrier", "cluster-rank", "bulk-pending", "uninitialised")),
}


@pytest.mark.parametrize("seed", range(12))
def test_a_block_that_ends_too_early_is_found_in_every_order(seed: int) -> None:
    assert outcome(product(1, ((ENDS, ""),)), CpuDevice(seeds=[seed])) == "cluster-ended"


@pytest.mark.parametrize("name", OF_THE_LIBRARY)
def test_every_mistake_of_the_library_is_found(name: str) -> None:
    edits, kinds = OF_THE_LIBRARY[name]
    assert outcome(product(2, (), edits)) in kinds


def failed(edits: Edits) -> KernelFault:
    with pytest.raises(KernelFault) as caught:
        CHECKED.run(CHECKED.build(product(1, edits)), arrays())
    return caught.value


def test_it_says_which_block_does_what() -> None:
    ended = failed(((ENDS, ""),))
    assert ended.what.startswith("kernel uses empty[")
    assert "of its cluster, which has ended" in ended.what
    race = failed(EARLY)
    assert race.kind == "race"
    assert race.array in ("a_s", "b_s")
    assert "of block number" in race.why
    assert "released the place" in race.hint
    unread = failed(((RELEASE, "mbarrier_release(empty[s]);"), (COUNT, "mbarrier_begin(empty, 2);")))
    assert "which need not have waited for the bulk copy to it" in unread.what
    alone = failed(((RELEASE, "mbarrier_release(empty[s]);"),))
    assert alone.kind == "mbarrier"
    assert "that never ends" in alone.what


def test_blocks_that_wait_for_each_other_for_ever_are_stopped_in_the_fast_build() -> None:
    quick = CpuDevice(checked=False, time_limit_s=1.0)
    with pytest.raises(KernelTimeout):
        quick.run(quick.build(product(1, ((RELEASE, "mbarrier_release(empty[s]);"),))), arrays())


def test_a_launch_without_a_cluster_copies_to_its_own_block() -> None:
    kernel = """
extern "C" __global__ void kernel(const float* x, float* y, const __grid_constant__ tensor_map x_map) {
  __shared__ __align__(128) float x_s[32];
  __shared__ unsigned long long full[1], empty[1];
  if (threadIdx.x == 0) { mbarrier_begin(full); mbarrier_begin(empty); }
  cluster_begins();
  if (threadIdx.x == 0) { multicast_1d<32, 1, 1>(&x_s[0], x_map, 0, full[0]); mbarrier_arrive(full[0]); }
  mbarrier_wait(full[0], 0);
  y[threadIdx.x] = x_s[threadIdx.x] + 1.0f;
  mbarrier_release_all<1>(empty[0]);
  mbarrier_drain<1>(empty);
}
"""
    f32 = DTYPES["f32"]
    module = CudaModule("kernel", library_text(("bulk_copy", "roles", "multicast")) + kernel,
                        (Buffer("x", f32, (32,), "in"), Buffer("y", f32, (32,), "out")),
                        (Launch("kernel", (1, 1, 1), (32, 1, 1), ("x", "y", "x_map")),), {},
                        (TensorMap("x_map", "x", (32,), (32,), (1,), 0, 32),))
    x = np.arange(32, dtype=np.float32)
    for device in (CHECKED, FAST):
        np.testing.assert_array_equal(device.run(device.build(module), {"x": x})["y"], x + 1)


def test_gpus_take_the_text() -> None:
    assert "multicast::cluster" in compile_module(product(2), "sm_90a").ptx
    calls = "\n".join(f"multicast_{n}d<16, {'2, ' * (n - 1)}1, 2>(s, map, {', '.join('0' * n)}, full[0]);" for n in range(1, 6))
    kernel = ('extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const __grid_constant__ tensor_map map) {\n'
              f"__shared__ __align__(128) float s[512];\n__shared__ unsigned long long full[1];\n{calls}\n}}\n")
    made = compile_text(library_text(("bulk_copy", "multicast"), kernel) + kernel, "sm_90a")
    assert all(f"tensor.{n}d.shared::cluster" in made.ptx for n in range(1, 6))
