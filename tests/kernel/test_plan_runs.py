"""The emitted text computes what the program says: many chains of steps, at ragged, prime and single sizes, on the CPU device."""

from __future__ import annotations

import numpy as np
import pytest

from explorer import workloads
from explorer.ir.plan import initial
from tests.kernel.plan_run import Case, Step, differences, follow
from tests.kernel.schedules import elements, gemm, grid, rows, warps


def case(name: str, workload: str, steps: list[Step], **sizes: int) -> Case:
    w = workloads.get(workload)
    every = {**w.tiny, **sizes}
    program = w.definition.at(**every)
    return Case(f"{name} {sizes}", program, follow(program, steps), w.arrays(every))


def test_every_workload_as_written() -> None:
    cases = []
    for name in workloads.names():
        w = workloads.get(name)
        program = w.definition.at(**w.tiny)
        cases.append(Case(name, program, initial(program), w.arrays(w.tiny)))
    assert not differences(cases, seeds=1)


def test_sizes_of_one() -> None:
    cases = []
    for name in ("matmul", "softmax", "sum_columns", "triangular_matmul"):
        w = workloads.get(name)
        sizes = dict.fromkeys(w.tiny, 1)
        program = w.definition.at(**sizes)
        cases.append(Case(name, program, initial(program), w.arrays(sizes)))
    assert not differences(cases, seeds=1)


SHAPES = [(16, 16, 8), (13, 11, 7), (1, 1, 1), (9, 20, 5), (8, 3, 17)]


def test_matmul_in_tiles() -> None:
    cases = []
    for m, n, k in SHAPES:
        sizes = {"M": m, "N": n, "K": k}
        cases += [
            case("grid", "matmul", [*grid(), ("contract", "total")], **sizes),
            case("split k", "matmul", [*grid(), ("contract", "total"), ("split", "k", 4)], **sizes),
            case("staged", "matmul", gemm(), **sizes),
            case("padded", "matmul", gemm(pad=1), **sizes),
            case("odd tile", "matmul", gemm((6, 10, 3), (3, 2)), **sizes),
            case("registers", "matmul", [*gemm(), ("stage", "a_s", "k.i", {"space": "register"}),
                                         ("stage", "b_s", "k.i", {"space": "register"})], **sizes),
        ]
    assert not differences(cases)


def test_matmul_with_wide_and_asynchronous_copies() -> None:
    cases = []
    for m, n, k in ((16, 16, 16), (13, 12, 20), (9, 8, 12)):
        sizes = {"M": m, "N": n, "K": k}
        cases.append(case("wide", "matmul", gemm(width=4), **sizes))
        for stages in (2, 3):
            cases.append(case(f"{stages} stages", "matmul", [*gemm(width=4), ("pipeline", "k", stages)], **sizes))
        cases.append(case("plain", "matmul", [*gemm(width=4), ("pipeline", "k", 2, {"asynchronous": False})], **sizes))
    assert not differences(cases)


def test_dynamic_shared_memory() -> None:
    assert not differences([case("64 KiB", "matmul", gemm((128, 128, 64), (8, 16), width=4), M=20, N=24, K=8)], seeds=1)


def test_asynchronous_copies_become_plain_ones_on_old_gpus() -> None:
    steps = [*gemm(width=4), ("pipeline", "k", 2)]
    assert not differences([case("old", "matmul", steps, M=13, N=12, K=20)], arch="sm_75")


def test_reductions_across_threads() -> None:
    cases = []
    columns = rows({"total": "k"}, threads=64)[1:]
    two_axes = [("split", "i", 4), ("bind", "i", "block.x"), ("bind", "i.i", "thread.y"), ("split", "k", 32),
                ("bind", "k.i", "thread.x"), ("collect", "total", "shuffle"), ("contract", "total")]
    for m, n in ((5, 70), (7, 64), (1, 1), (3, 129)):
        for how in ("shuffle", "shared"):
            cases += [
                case(how, "sum_rows", rows({"total": "k"}, threads=64, how=how), M=m, N=n),
                case(f"{how} odd block", "sum_rows", rows({"total": "k"}, threads=48, how=how), M=m, N=n),
                case(f"{how} in memory", "sum_rows", rows({"total": "k"}, threads=32, how=how)[:-1], M=m, N=n),
            ]
        cases += [
            case("warps", "max_rows", warps("peak"), M=m, N=n),
            case("two axes", "sum_rows", two_axes, M=m, N=n),
            case("grid stride", "sum_rows", [("bind", "i", "block.x", {"count": min(3, m)}), *columns], M=m, N=n),
            case("softmax", "softmax", rows({"peak": "k", "total": "k_2"}, ("k_3",)), M=m, N=n),
        ]
    assert not differences(cases)


def test_reductions_across_blocks() -> None:
    cases = []
    for m, n in ((9, 70), (1, 1), (4, 33)):
        threads: list[Step] = [("split", "j", 32), ("bind", "j.i", "thread.x")]
        cases += [
            case("atomic", "sum_all", [("bind", "i", "block.x"), *threads, ("collect", "y", "atomic")], M=m, N=n),
            case("atomic maximum", "max_all", [("bind", "i", "block.x"), *threads, ("collect", "y", "atomic")], M=m, N=n),
            case("one block", "sum_all", [*threads, ("collect", "y", "shuffle")], M=m, N=n),
            case("two launches", "sum_all", [("bind", "i", "block.x"), ("collect", "y", "kernel")], M=m, N=n),
        ]
    assert not differences(cases)


def test_vectors() -> None:
    cases = []
    for n in (64, 40, 4, 12):
        cases.append(case("adam", "adam", elements("i", 4), N=n))
    for m, n in ((3, 16), (2, 8)):
        steps = [("contract", "v"), ("split", "j", 8), ("vectorize", "j.i"), ("bind", "i", "block.x"), ("bind", "j", "thread.x")]
        cases.append(case("gelu", "bias_gelu", steps, M=m, N=n))
    assert not differences(cases)


def test_triangles_stencils_and_loops_of_the_host() -> None:
    cases = [
        case("triangle", "triangular_matmul",
             [("split", "i", 4), ("bind", "i", "block.x"), ("bind", "i.i", "thread.x"), ("contract", "total")], M=9, N=7),
        case("staged triangle", "triangular_matmul",
             [*grid(), ("contract", "total"), ("split", "k", 3), ("stage", "a", "k"), ("stage", "b", "k")], M=9, N=7),
        case("launches", "jacobi2d", [("bind", "t", "launch")]),
        case("wavefront", "gauss_seidel", [("skew", "j", "i", 1), ("interchange", "i", "j"), ("bind", "i", "thread.x")]),
    ]
    assert not differences(cases)


@pytest.mark.parametrize("sizes", [{"H": 5, "W": 6}, {"H": 16, "W": 9}, {"H": 1, "W": 1}])
def test_padded_convolution_needs_no_guard_in_its_inner_loops(sizes: dict[str, int]) -> None:
    steps: list[Step] = [
        ("tile", ("h", "w"), (4, 4)), ("bind", "k", "block.y"), ("bind", "h", "block.x"), ("bind", "n", "block.z"),
        ("bind", "h.i", "thread.y"), ("bind", "w.i", "thread.x"), ("contract", "total"), ("stage", "x", "c"),
        ("stage", "f", "c")]
    built = case("conv", "conv2d", steps, **sizes)
    assert not differences([built])


def test_bits_of_half_precision() -> None:
    """f16 and bf16 are rounded when stored and nowhere else."""
    w = workloads.get("softmax")
    program = w.definition.at(M=4, N=9)
    arrays = {"x": (np.arange(36).reshape(4, 9) * 3.7).astype(np.float16)}
    assert not differences([Case("half", program, initial(program), arrays)], seeds=1)
