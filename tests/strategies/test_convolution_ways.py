"""Convolutions whose channels are no neighbours in memory: factors exchanged, and copied with the channels last."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import explorer as ex
from benchmarks import product_programs
from explorer.gpu.spec import gpu
from explorer.strategies import auto
from explorer.strategies.contraction import contraction, ranked
from explorer.strategies.contraction.arrange import COMMUTED, COPIED, ONE, TURNED, WALKED, Way, ways
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling
from explorer.strategies.price import price
from explorer.transforms.commute import Commute
from explorer.transforms.rearrange import Rearrange
from tests.strategies.products import product
from tests.strategies.test_convolution import written

BOTH = f"{COPIED}, {COMMUTED}"
GROUPS = Tiling("warpgroup", 64, 64, 64, 1, 1, 2)
WARPS = Tiling("warp", 32, 32, 32, 2, 2, 2, 16)
H200 = gpu("H200")


def way(label: str, stride: int = 1, **sizes: int) -> Way:
    schedule = written(stride=stride, program=product_programs.conv, **sizes)
    return next(w for w in ways(schedule, schedule.plan.kernels[0].id, H200) if w.label == label)


@pytest.mark.parametrize(("label", "tiling", "stride", "sizes"), [
    (COMMUTED, WARPS, 1, {"B": 2, "H": 6, "W": 8, "C": 40, "K": 24, "R": 3, "S": 3, "A": 1}),
    (COMMUTED, replace(WARPS, through=True), 1, {"B": 2, "H": 6, "W": 8, "C": 40, "K": 24, "R": 3, "S": 3, "A": 1}),
    (COMMUTED, WARPS, 2, {"B": 2, "H": 9, "W": 11, "C": 19, "K": 24, "R": 3, "S": 2, "A": 1}),
    (COPIED, GROUPS, 1, {"B": 2, "H": 7, "W": 7, "C": 64, "K": 40, "R": 3, "S": 3, "A": 1}),
    (BOTH, GROUPS, 1, {"B": 2, "H": 5, "W": 9, "C": 72, "K": 40, "R": 3, "S": 1, "A": 1}),
    (BOTH, replace(GROUPS, through=True), 1, {"B": 1, "H": 6, "W": 8, "C": 64, "K": 72, "R": 3, "S": 3, "A": 1}),
    (BOTH, GROUPS, 2, {"B": 2, "H": 9, "W": 11, "C": 40, "K": 64, "R": 3, "S": 3, "A": 1}),
    (BOTH, WARPS, 1, {"B": 3, "H": 6, "W": 7, "C": 24, "K": 20, "R": 3, "S": 3, "A": 2}),
])
def test_every_way_is_right(label: str, tiling: Tiling, stride: int, sizes: dict[str, int]) -> None:
    found = way(label, stride, **sizes)
    made = build(found.schedule, found.form, tiling)
    assert made.judgement.emittable
    assert "mma_m" in made.cuda
    assert made.run(device="cpu", time=False).correct


def test_the_model_takes_the_copy_where_it_pays() -> None:
    sizes = {"B": 32, "H": 28, "W": 28, "C": 128, "K": 128, "R": 3, "S": 3, "A": 1}
    made = contraction(written(program=product_programs.conv, **sizes), gpu=H200)
    assert [s.array for s in made.steps if isinstance(s, Rearrange)] == ["x", "f"]
    assert len(made.plan.launched) == 2
    assert " wgmma_m" in made.cuda
    sizes |= {"H": 56, "W": 56, "C": 64, "K": 256}
    pointwise = contraction(written(program=product_programs.conv, **sizes | {"R": 1, "S": 1, "A": 0}), gpu=H200)
    assert len(pointwise.plan.launched) == 1
    last = contraction(written(**sizes), gpu=H200)
    assert not any(isinstance(s, (Rearrange, Commute)) for s in last.steps)


def test_a_copy_reads_and_writes_along_memory() -> None:
    """Lanes take pairs of neighbours on both sides."""
    found = way(COPIED, B=2, H=8, W=8, C=64, K=64, R=3, S=3, A=1)
    copy, _ = found.schedule.plan.kernels
    text = found.schedule.cuda.split('extern "C"')[1]
    assert copy.id in text
    assert len(re.findall(r"\*\((?:vec|packed)<__half, 2>\*\)&x_s\[.* \*\(const (?:vec|packed)<__half, 2>\*\)&x\[", text)) == 1
    assert text.count("*(vec<__half, 2>*)&x_a[") == 1


def test_which_ways_there_are() -> None:
    schedule = written(program=product_programs.conv, B=2, H=8, W=8, C=64, K=64, R=3, S=3, A=1)
    labels = [w.label for w in ways(schedule, "conv", H200)]
    assert labels == ["", COMMUTED, COPIED, BOTH, TURNED]
    grouped = written(program=product_programs.conv, B=2, H=8, W=8, C=64, D=32, K=64, E=32, R=3, S=3, A=1)
    assert COMMUTED not in [w.label for w in ways(grouped, "conv", H200)]


@pytest.mark.parametrize("depth", [64, 128])
def test_a_product_in_flight_runs_in_a_turn_without_a_tile(depth: int) -> None:
    """Three tiles for two blocks: its group is counted in the last turn, too."""
    tiling = Tiling("warpgroup", 64, 64, 64, 1, 1, 2, persistent=2, producer=True)
    made = contraction(product(ex.f16, ex.f32, "n", "n").schedule(M=192, N=64, K=depth), tiling=tiling)
    lines = made.cuda.splitlines()
    place = next(n for n, text in enumerate(lines) if text.endswith("// S1"))
    assert "wgmma_m64n64" in lines[place]
    assert not lines[place - 1].lstrip().startswith("if")
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize("name", ["conv_weights", "conv_weights_nhwc"])
def test_gradients_of_weights_are_summed_in_slices(name: str) -> None:
    """Few tiles, and a depth of three loops: one of these is cut, and a launch adds the slices up."""
    program = getattr(product_programs, name)
    large = auto(program.schedule(B=16, C=64, K=64, H=28, W=28, R=3, S=3, A=1))
    assert price(large.plan, H200).total_us < 45  # 155 and more without slices
    assert any(step.name == "rfactor" for step in large.steps)
    s = program.schedule(B=16, C=24, K=40, H=8, W=8, R=3, S=3, A=1)
    sliced = [w for w in ways(s, name, H200) if w.slices > 1]
    assert {w.slices for w in sliced} == {8, 2}
    for w in sliced:
        made = contraction(s, gpu=H200, tiling=ranked(w.form, H200)[0][0], way=w.label)
        assert made.run(device="cpu", time=False).correct


B, C, H, W, K, R = ex.sizes("B C H W K R")


@ex.program
def weights_by_filter(x: ex.f16[B, H, W, C], g: ex.f16[B, H, W, K], y: ex.f16[K, C, R, R]):
    """Channels last, and loops in the order of the results: the filter's are innermost."""
    for k in range(K):
        for c in range(C):
            for r in range(R):
                for s in range(R):
                    total = ex.local(ex.f32)
                    total = 0.0
                    for n in range(B):
                        for h in range(H):
                            for w in range(W):
                                if 0 <= h + r - 1 < H and 0 <= w + s - 1 < W:
                                    total += g[n, h, w, k] * x[n, h + r - 1, w + s - 1, c]
                    y[k, c, r, s] = total


@pytest.mark.parametrize(("program", "label"), [(product_programs.conv_weights, TURNED), (weights_by_filter, WALKED)])
def test_gradients_of_weights_run_along_the_channels(program: ex.Definition, label: str) -> None:
    """The loops of a tile are those that follow memory, whatever order the program has."""
    sizes = {"B": 16, "C": 64, "K": 40, "H": 6, "W": 6, "R": 3} | ({"S": 3, "A": 1} if label == TURNED else {})
    s = program.schedule(**sizes)
    found = next(w for w in ways(s, s.plan.kernels[0].id, H200) if w.label == label)
    assert found.form.columns[-1] == found.form.right.along
    tilings = [t for t, _ in ranked(found.form, H200) if t.engine == "warpgroup"]
    assert {t.depth for t in tilings} == {16}  # of 16 images, and no more
    made = build(found.schedule, found.form, tilings[0])
    assert made.judgement.emittable
    assert " wgmma_m" in made.cuda
    assert made.run(device="cpu", time=False).correct


@pytest.mark.parametrize(("channels", "image", "most"), [(128, 28, 40), (512, 7, 25)])  # 59 and 34 without copies
def test_gradients_of_weights_are_copied_first_where_that_pays(channels: int, image: int, most: float) -> None:
    made = auto(product_programs.conv_weights.schedule(B=32, C=channels, K=channels, H=image, W=image, R=3, S=3, A=1))
    assert {step.array for step in made.steps if isinstance(step, Rearrange)} >= {"g", "x"}
    assert price(made.plan, H200).total_us < most


M, N, A, L = ex.sizes("M N A L")


@ex.program
def pairs_summed(a: ex.f16[M, A, L], b: ex.f16[N, A, L], c: ex.f16[M, N]):
    """A sum over two axes that lie together in both factors."""
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(A):
                for m in range(L):
                    total += a[i, k, m] * b[j, k, m]
            c[i, j] = total


POINTWISE = {"C": 64, "K": 72, "H": 8, "W": 10, "R": 1, "S": 1, "A": 0}


@pytest.mark.parametrize(("program", "sizes", "depth", "others"), [
    (product_programs.conv_weights, POINTWISE | {"B": 3}, 80, (3,)),
    (product_programs.conv_weights_nhwc, POINTWISE | {"B": 3}, 240, ()),
    (pairs_summed, {"M": 40, "N": 72, "A": 5, "L": 40}, 200, ()),
])
def test_loops_of_the_depth_that_lie_together_are_one(program: ex.Definition, sizes: dict[str, int], depth: int,
                                                     others: tuple[int, ...]) -> None:
    s = program.schedule(**sizes)
    found = next(w for w in ways(s, s.plan.kernels[0].id, H200) if w.label == ONE)
    assert found.form.extents[2] == depth
    assert found.form.outer_extents == others
    every = [t for t, _ in ranked(found.form, H200)]
    groups = [t for t in every if t.engine == "warpgroup"]
    staged, sliced = [t for t in groups if t.stages > 3 and t.slices == 1], [t for t in groups if t.slices > 1]
    for tiling in (staged[0], *sliced[:1], replace(WARPS, depth=64, stages=3)):
        made = build(found.schedule, found.form, tiling)
        assert made.judgement.emittable
        assert "mma_m" in made.cuda
        assert "bulk" in made.cuda or tiling.engine == "warp"
        assert made.run(device="cpu", time=False).correct


def test_loops_of_the_depth_with_a_filter_between_are_several() -> None:
    s = product_programs.conv_weights.schedule(**POINTWISE | {"B": 3, "R": 3, "A": 1})
    assert ONE not in {w.label for w in ways(s, "conv_weights", H200)}
