"""Fragments stored by stmatrix: which copies are such stores, what is refused, and what the judge of the IR notices."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import explorer as ex
from explorer.errors import ResourceError, TransformError
from explorer.ir.expr import const, quotient, var
from explorer.ir.tree import Loop
from explorer.ir.tree import walk as walk_plan
from explorer.kernel.launches import plan_ir
from explorer.kernel.nodes import MoveMatrix
from explorer.kernel.traverse import walk
from explorer.kernel.validate import judged
from explorer.kernel.validate.instructions import check_instructions
from explorer.poly.matrix_move import STORE, MatrixMove, NoMove, is_uniform, matrix_move
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.contraction import contraction
from explorer.strategies.contraction.shapes import Tiling
from tests.strategies.products import product
from tests.transforms.results import COPY, GROUP, WARPS, left, turned


@pytest.mark.parametrize("tiling", [WARPS, GROUP], ids=["warp", "warpgroup"])
@pytest.mark.parametrize("registers", [2, 4, 8])
def test_one_two_and_four_matrices(tiling: Tiling, registers: int) -> None:
    s = left(tiling, registers).store_matrix(COPY)
    assert f"store_matrix<{registers // 2}, false>(&z_t" in s.cuda
    assert s.run(device="cpu", time=False).correct
    assert b"ELF" in compile_module(s.module("sm_90"), "sm_90").cubin
    assert not [x for launch in plan_ir(s.plan).launches for x in judged(launch)]


@pytest.mark.parametrize("tiling", [WARPS, GROUP], ids=["warp", "warpgroup"])
def test_results_across_the_fragment_are_transposed(tiling: Tiling) -> None:
    s = left(tiling, 8, turned).store_matrix(COPY)
    assert "store_matrix<4, true>(&z_t" in s.cuda
    assert s.run(device="cpu", time=False).correct
    assert b"ELF" in compile_module(s.module("sm_90"), "sm_90").cubin


def test_the_instruction_asks_for_a_register_of_each_matrix() -> None:
    leaf, above, _ = left().store_matrix(COPY).plan.resolve(COPY)  # type: ignore[misc]
    found = matrix_move(left().store_matrix(COPY).plan, leaf, above, STORE)
    assert isinstance(found, MatrixMove)
    assert (found.count, found.transposed) == (4, False)


def test_what_is_no_such_store() -> None:
    s = left(registers=16)
    with pytest.raises(TransformError, match="stores 16 elements of 2 bytes a lane") as refused:
        s.store_matrix(COPY)
    assert refused.value.hint == f"split('{s.plan.resolve(COPY)[1][-2].id}', 8)"  # type: ignore[index]
    with pytest.raises(TransformError, match="copies no fragment to shared memory"):
        s.store_matrix("S2")
    with pytest.raises(TransformError, match="is ldmatrix already"):
        s.store_matrix("x_r")
    with pytest.raises(TransformError, match="copies no fragment from shared memory"):
        left().load_matrix(COPY)


def test_older_architectures_have_none() -> None:
    with pytest.raises(ResourceError, match="sm_80 has no stmatrix, which S2_store_2 needs"):
        left().store_matrix(COPY).module("sm_80")


def test_a_later_step_cannot_take_it_apart() -> None:
    s = left().store_matrix(COPY)
    loop = s.plan.resolve(COPY)[1][-2].id  # type: ignore[index]
    with pytest.raises(TransformError, match="take the tile of S2_store_2 apart"):
        s.bind(loop, "seq")
    with pytest.raises(TransformError, match="is already tensor"):
        s.split(loop, 4)


def test_rows_of_threads_that_are_no_whole_warps_store_none() -> None:
    """The 32 threads of a row of 48 are in two warps, but for the first row."""
    plan = left(GROUP).store_matrix(COPY).plan
    _, above, kernel = plan.resolve(COPY)  # type: ignore[misc]
    other = next(x for x in walk_plan(kernel.body) if isinstance(x, Loop) and x.role == "thread.x" and x.id != above[-1].id)
    odd = plan.replace_node(other.id, replace(other, extent=144))
    found = matrix_move(odd, odd.resolve(COPY)[0], above, STORE)  # type: ignore[index]
    assert isinstance(found, NoMove)


@pytest.mark.parametrize("change", ["count", "transposed", "row", "first"])
def test_the_judge_of_the_ir_notices_another_instruction(change: str) -> None:
    s = left(GROUP).store_matrix(COPY)
    (launch,) = plan_ir(s.plan).launches
    (low,), (body,) = launch.lows, launch.bodies
    (node,) = [n for n in walk(body) if isinstance(n, MoveMatrix)]
    one = const(1)
    wrong = {"count": 2, "transposed": True, "row": replace(node.row, index=(one, *node.row.index[1:])),
             "first": replace(node.first, index=(*node.first.index[:-1], one))}
    assert not [*check_instructions(s.plan, low, (node,))]
    assert [*check_instructions(s.plan, low, (replace(node, **{change: wrong[change]}),))]


@pytest.mark.parametrize("tiling", [
    Tiling("warpgroup", 128, 64, 64, 2, 1, 2, through=True, matrix=True, persistent=2, producer=True),
    Tiling("warp", 64, 64, 32, 2, 2, 2, 16, through=True, matrix=True)])
def test_tiles_that_are_left_out_whole(tiling: Tiling) -> None:
    """Three tiles for two blocks: what is left out is the same for all that an instruction moves."""
    s = contraction(product(ex.f16, ex.f32, "n", "n").schedule(M=128, N=192, K=128), tiling=tiling)
    assert any(step.name == "store_matrix" for step in s.steps)
    assert s.run(device="cpu", time=False, ragged=False).correct


def test_a_condition_that_is_alike_for_a_fragment() -> None:
    """Against all values, of conditions drawn at random; some are is_uniform, and all that are not are refused."""
    rng, scope, told = random.Random(7), {"i": (0, 5), "r": (0, 3), "t": (0, 7)}, [0, 0]
    for _ in range(400):
        step = rng.choice((1, 2, 4, 8, 16))
        own = quotient(var("r"), 2) * rng.choice((-4, 4, 8)) - var("t") * rng.choice((0, 1, 2))
        e = var("i") * (step * rng.choice((-2, -1, 1))) + own + rng.randrange(-20, 90)
        kept = [{e.evaluate({"i": i, "r": r, "t": t}) >= 0 for r in range(4) for t in range(8)} for i in range(6)]
        found, right = is_uniform(e, ("r", "t"), scope), all(len(x) == 1 for x in kept)
        assert right or not found, str(e)
        told[found] += 1
    assert min(told) > 40
