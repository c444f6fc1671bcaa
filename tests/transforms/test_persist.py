"""Persist: every tile runs once, in the order chosen, dealt out in turn; whole products too, and what is refused."""

from __future__ import annotations

import pytest

import explorer as ex
from explorer.errors import TransformError
from explorer.ir.plan import Plan, initial
from explorer.kernel.emit import emit
from explorer.run.nvrtc.compiler import compile_module
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build, tile_order
from explorer.strategies.contraction.shapes import Tiling
from explorer.transforms.bind import Bind
from explorer.transforms.persist import Persist
from tests.oracle import check_plan, run_order
from tests.strategies.products import product
from tests.transforms.nests import copy_2d, cube, plan, refusal

ROWS, COLUMNS = 6, 10
"""Rows and columns of tiles: groups of 4 rows are not whole."""


def tiles_of(blocks: int, order: str, rows: int = 4) -> list[list[tuple[int, int]]]:
    """What each block takes, in its order, by the definition."""
    flat = [(i, j) for i in range(ROWS) for j in range(COLUMNS)]
    if order == "columns":
        flat = [(i, j) for j in range(COLUMNS) for i in range(ROWS)]
    if order == "grouped":
        flat = [(first + i, j) for first in range(0, ROWS, rows) for j in range(COLUMNS) for i in range(rows)]
    return [[tile for tile in flat[b::blocks] if tile[0] < ROWS] for b in range(blocks)]


def taken(made: Plan, blocks: int) -> list[list[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = [[] for _ in range(blocks)]
    for _, place, _, point in run_order(made):
        found[dict(place)["block.x"]].append((point[0], point[1]))
    return found


@pytest.mark.parametrize("blocks", [1, 7, 12, 59])
@pytest.mark.parametrize("order", ["rows", "columns", "grouped"])
@pytest.mark.parametrize("bound", [False, True])
def test_each_block_takes_every_so_many_th_tile(blocks: int, order: str, bound: bool) -> None:
    steps = (Bind("i", "block.y"), Bind("j", "block.x")) if bound else ()
    made = plan(copy_2d(ROWS, COLUMNS), *steps, Persist(("i", "j"), blocks, order, rows=4))
    check_plan(made)
    assert taken(made, blocks) == tiles_of(blocks, order)


def test_a_batch_is_outermost_and_one_loop_is_dealt_out_too() -> None:
    made = plan(cube(), Persist(("i", "j", "k"), 7, "grouped", rows=2))
    check_plan(made)
    (first, *_) = [point for _, place, _, point in run_order(made) if dict(place)["block.x"] == 1]
    assert first == (0, 1, 0)
    check_plan(plan(copy_2d(ROWS, COLUMNS), Persist(("i",), 4)))


@pytest.mark.parametrize(("step", "what"), [
    (Persist((), 4), "no loop over tiles is named"),
    (Persist(("i",), 4, "grouped"), "tiles of one loop have no order 'grouped'"),
    (Persist(("i", "j"), 4, "snake"), "there is no order 'snake'"),
    (Persist(("i", "j"), 0), "tiles are dealt out to at least 1 block, not 0"),
    (Persist(("i", "j"), 60), "there are 60 tiles for 60 blocks"),
    (Persist(("i", "j"), 4, "grouped", rows=1), "a group has at least 2 rows of tiles, not 1"),
    (Persist(("i", "x"), 4), "there is no loop 'x'"),
])  # fmt: skip
def test_refusals(step: Persist, what: str) -> None:
    assert refusal(initial(copy_2d(ROWS, COLUMNS)), step).what == what


def test_threads_take_no_tiles() -> None:
    assert refusal(plan(copy_2d(ROWS, COLUMNS), Bind("j", "thread.x")), Persist(("i", "j"), 4)).what == "j is thread.x"


def products(tiling: Tiling, **sizes: int) -> ex.Schedule:
    written = product(ex.f16, ex.f32, "n", "n").schedule(**sizes)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    return build(written, form, tiling)


def test_a_guard_does_not_take_an_instruction_apart() -> None:
    made = products(Tiling("warpgroup", 64, 64, 64, 1, 1, 3), M=317, N=160, K=136)
    with pytest.raises(TransformError, match="do this before tensorize"):
        made.persist(("i", "j"), 4)


@pytest.mark.parametrize("order", ["rows", "columns", "grouped"])
def test_whole_tiles_of_a_product_are_dealt_out_behind_tensorize(order: str) -> None:
    made = products(Tiling("warpgroup", 64, 64, 64, 1, 1, 3), M=250, N=160, K=136).persist(("i", "j"), 6, order=order, rows=2)
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct
    (kernel,) = compile_module(emit(made.plan), "sm_90").kernels.values()
    assert not kernel.spill_store_bytes
    assert emit(made.plan).launches[0].grid == (6, 1, 1)


def test_candidates_are_offered_at_the_outermost_loop() -> None:
    s = ex.workloads.get("matmul").definition.schedule(M=96, N=96, K=4).tile(("i", "j"), (4, 4))
    found = [str(step) for step in Persist.candidates(s.plan, "i")]
    assert found == ["persist(('i', 'j', 'i.i'), 132)", "persist(('i', 'j', 'i.i'), 132, order='columns')",
                     "persist(('i', 'j', 'i.i'), 132, order='grouped')", "persist(('i', 'j'), 132)",
                     "persist(('i', 'j'), 132, order='columns')", "persist(('i', 'j'), 132, order='grouped')"]
    bound = s.bind("i", "block.y").bind("j", "block.x")
    assert [step.loops for step in Persist.candidates(bound.plan, "i")] == [("i", "j")] * 3


@pytest.mark.parametrize("tiling", [
    Tiling("warpgroup", 64, 64, 64, 1, 1, 3, persistent=4), Tiling("warpgroup", 128, 64, 64, 2, 1, 2, through=True, persistent=3),
    Tiling("warp", 32, 32, 32, 2, 2, 2, persistent=7), Tiling("plain", 16, 16, 8, 8, 8, 2, persistent=7),
    Tiling("warpgroup", 64, 64, 64, 1, 1, 2, slices=2, persistent=5),
], ids=["groups", "through", "warps", "threads", "slices"])  # fmt: skip
@pytest.mark.parametrize(("m", "n", "k"), [(250, 160, 136), (317, 72, 200)])
def test_ragged_products_in_turn(tiling: Tiling, m: int, n: int, k: int) -> None:
    made = products(tiling, M=m, N=n, K=k)
    assert any(step.name == "persist" for step in made.steps)
    assert made.judgement.emittable
    assert made.run(device="cpu", time=False).correct
    for kernel in compile_module(emit(made.plan), "sm_90").kernels.values():
        assert not kernel.spill_store_bytes


@pytest.mark.parametrize(("rows", "order"), [
    (64, {"order": "grouped", "rows": 8}), (12, {"order": "grouped", "rows": 6}), (7, {"order": "columns"}),
    (1, {"order": "rows"}),
    (37, {"order": "rows"}), (8, {"order": "columns"}), (26, {"order": "grouped", "rows": 13}),
])  # fmt: skip
def test_groups_of_rows_are_whole(rows: int, order: dict[str, object]) -> None:
    assert tile_order(rows) == order


def test_one_tile_is_no_more_than_one_block() -> None:
    verdict = Persist(("i", "j"), 1).check(product(ex.f16, ex.f32, "n", "n").schedule(M=1, N=1, K=8).plan)
    assert verdict.what == "there is 1 tile for 1 block"
    assert verdict.hint == "bind('i', 'block.x') instead"
