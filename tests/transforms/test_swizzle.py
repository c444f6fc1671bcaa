"""Swizzle: which patterns fit, which one is chosen, and what the banks of shared memory have of it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import explorer as ex
from explorer.app.panes.preview import effects
from explorer.ir.dtype import DTYPES
from explorer.ir.finding import Verdict
from explorer.ir.plan import Buffer, Plan
from explorer.ir.text import buffer_text, loops_text
from explorer.poly.request import warp_request
from explorer.poly.traffic import bank_passes, traffic
from explorer.run.facts import scaled
from explorer.steps.saved import read
from explorer.transforms import swizzle as module
from explorer.transforms.swizzle import Swizzle
from explorer.views.loops import loops_html
from tests.ir.test_swizzle import by_hand
from tests.kernel.plan_run import Case, differences
from tests.oracle import check_plan
from tests.properties.programs import define
from tests.properties.walk import cell, executions

TURN = """@ex.program
def turn(x: ex.{0}[M, N], y: ex.{0}[N, M]):
    for i in range(M):
        for j in range(N):
            y[j, i] = x[i, j]
"""
PRODUCT = """@ex.program
def product(x: ex.{0}[M, K], y: ex.{0}[K, N], z: ex.f32[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += x[i, k] * y[k, j]
            z[i, j] = total
"""


PIXELS = """@ex.program
def pixels(x: ex.f16[N, P, C], y: ex.f16[N, P, C]):
    for n in range(N):
        for p in range(P):
            for c in range(C):
                y[n, p, c] = x[n, p, c] + 1.0
"""


def turned(dtype: str = "f32", rows: int = 32, columns: int = 32, vector: int = 1, **sizes: int) -> ex.Schedule:
    """Tiles that are written along their rows and read along their columns, a thread for each row."""
    s = define(TURN.format(dtype), "turn.py").schedule(**{"M": rows, "N": columns, **sizes})
    s = s.tile(("i", "j"), (rows, columns)).bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.x")
    return s.stage("x", "j", vector=vector)


def product(**sizes: int) -> ex.Schedule:
    """Tiles of 16 x 16 with 64 of k in shared memory, and threads that read columns of x."""
    s = define(PRODUCT.format("f16"), "product.py").schedule(**{"M": 16, "N": 16, "K": 64, **sizes})
    s = s.tile(("i", "j"), (16, 16)).bind("i", "block.y").bind("j", "block.x").bind("i.i", "thread.x").bind("j.i", "thread.y")
    s = s.contract("total").split("k", 64)
    return s.stage("x", "k", vector=8).stage("y", "k", vector=8)


def place(s: ex.Schedule, name: str = "x_s") -> tuple[int, int]:
    return s.plan.buffer_of[name].panel, s.plan.buffer_of[name].swizzle


def refused(s: ex.Schedule, *args: Any) -> Verdict:
    verdict = Swizzle(*args).check(s.plan)
    assert not verdict
    return verdict


# -- what is made ------------------------------------------------------------------------------------------------


def test_it_says_where_and_the_loops_show_it(golden) -> None:
    s = product().swizzle("x_s", 128).swizzle("y_s", 32)
    assert (place(s), place(s, "y_s")) == ((0, 128), (0, 32))
    check_plan(s.plan)
    golden(loops_text(s.plan))
    html = loops_html(turned("f16", columns=128).swizzle("x_s", 128).plan)
    assert "panel 64, swizzle 128" in html
    assert buffer_text(Buffer("b", DTYPES["f16"], (8, 64), "shared", swizzle=128)) == "shared b: f16[8, 64]  swizzle 128"


def test_rows_that_are_longer_lie_in_panels() -> None:
    s = turned("f16", 16, 256)
    assert place(s.swizzle("x_s", 128)) == (64, 128)
    assert place(s.swizzle("x_s", 32)) == (16, 32)
    assert place(s.swizzle("x_s", 64, 32)) == (32, 64)
    assert place(s.swizzle("x_s", 64).swizzle("x_s", 128)) == (64, 128)


def test_a_tile_of_pixels_is_one_of_rows() -> None:
    """Its last axis but one is no multiple of 8, so the pattern would begin in the midst of it."""
    s = define(PIXELS, "pixels.py", ("N", "P", "C")).schedule(N=4, P=8, C=64).split("n", 2).split("p", 4)
    s = s.reorder(("n", "p", "n.i", "p.i", "c"))
    s = s.bind("n", "block.x").bind("p", "block.y").bind("c", "thread.x").outline("S0").distribute("c", "S0")
    s = s.distribute("p.i", "c").distribute("n.i", "p.i").contract("y_t", "shared")
    assert s.plan.buffer_of["y_t"].shape == (2, 4, 64)
    laid = s.swizzle("y_t", 128)
    assert (laid.plan.buffer_of["y_t"].shape, laid.plan.buffer_of["y_t"].swizzle) == ((8, 64), 128)
    assert {str(v.index[0]) for leaf, _, _ in laid.plan.leaves for _, v in leaf.views} == {"4*n.i + p.i", "4*n.i.2 + p.i.2"}
    check_plan(laid.plan)
    assert laid.run(device="cpu", time=False, checked=True).correct


def test_slots_of_a_pipeline_keep_their_layout_before_or_behind() -> None:
    first, then = product(K=200).swizzle("x_s", 128).pipeline("k", 2), product(K=200).pipeline("k", 2).swizzle("x_s", 128)
    assert first.plan.buffer_of["x_s"] == then.plan.buffer_of["x_s"]
    assert first.plan == then.plan
    assert [leaf.mechanism for leaf, _, _ in then.plan.leaves if leaf.statement == "x_s"] == ["async", "async"]


def test_it_is_kept_in_files_and_scripts() -> None:
    s = turned("f16", 16, 256).swizzle("x_s", 128)
    assert str(s.steps[-1]) == "swizzle('x_s', mode=128)"
    assert read(s.to_json())[3] == s.steps
    assert "swizzle('x_s', mode=128)" in s.script()


def test_contract_lays_the_array_out_anew() -> None:
    text = PRODUCT.format("f32").replace("z[i, j] = total", "z[i, j] = total * 2.0")
    s = define(text, "again.py").schedule(M=8, N=8, K=3).contract("total", "shared", at="product")
    laid = s.swizzle("total", 32)
    assert place(laid, "total") == (0, 32)
    assert place(laid.contract("total", "shared", at="product"), "total") == (0, 0)


# -- the mode that is chosen ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("s", "chosen"), [
    (product(), (0, 128)), (turned("f32"), (0, 128)), (turned("f16", columns=16, vector=8), (0, 32)),
    (turned("f16", columns=32, vector=8), (0, 64))], ids=["product", "f32", "f16 of 32 bytes", "f16 of 64 bytes"])
def test_the_smallest_mode_without_conflicts_or_the_best(s: ex.Schedule, chosen: tuple[int, int]) -> None:
    before, fewest = bank_passes(s.plan, "x_s")
    assert before > fewest
    laid = s.swizzle("x_s")
    assert place(laid) == chosen
    assert str(laid.steps[-1]) == "swizzle('x_s')"
    after = bank_passes(laid.plan, "x_s")[0]
    for mode in (32, 64, 128):
        if Swizzle("x_s", mode).check(s.plan):
            assert after <= bank_passes(s.swizzle("x_s", mode).plan, "x_s")[0]


def test_the_preview_counts_passes_before_and_after() -> None:
    s = product()
    (before, fewest), (after, _) = bank_passes(s.plan, "x_s"), bank_passes(s.swizzle("x_s", 128).plan, "x_s")
    (said,) = effects(s, s.swizzle("x_s", 128).plan)
    assert said == f"passes over the banks for x_s {scaled(before)} → {scaled(after)}, {scaled(fewest)} at best"
    assert after < before / 4
    assert not effects(s, s.plan)


def test_it_is_offered_where_it_helps() -> None:
    s = product()
    for node in ("k", "x_s", s.plan.kernels[0].id):
        calls = [str(m.step) for m in s.moves(node) if m.name == "swizzle" and m.applies]
        assert calls[:2] == ["swizzle('x_s')", "swizzle('x_s', mode=128)"], node
    (no,) = [m for m in define(TURN.format("f32"), "t.py").schedule(M=4, N=4).moves("i") if m.name == "swizzle"]
    assert no.verdict.what == "i uses no shared memory"


# -- the banks ---------------------------------------------------------------------------------------------------


def by_thread(plan: Plan, name: str) -> dict[tuple[str, int], float]:
    """Mean passes of each access of a buffer, from every thread's bytes: 32 banks of 4 bytes, 128 bytes at a time."""
    b = plan.buffer_of[name]
    asked: dict[tuple[Any, ...], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for run in executions(plan):
        if run.leaf is None:
            continue
        vector = next((x for x in plan.find(run.leaf.id)[1] if x.role == "vector"), None)  # type: ignore[index]
        time = (*run.time[:-2], run.time[-1]) if vector else run.time
        width = (vector.extent if vector else 1) * b.dtype.bytes
        x, y, z = run.thread
        nx, ny, _ = plan.extents[plan.kernel_of(run.leaf.id).id][3:]  # type: ignore[union-attr]
        thread = x + nx * (y + ny * z)
        for slot, view in run.leaf.views:
            if view.buffer == name:
                first = by_hand(b, cell(plan, run, slot)[2])
                key = run.leaf.id, slot, width, run.block, time, thread // 32
                asked[key][thread % 32] |= {first // 4, (first + b.dtype.bytes - 1) // 4}
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for (leaf, slot, width, *_), lanes in asked.items():
        together = 32 if width <= 4 else 128 // width
        for start in range(0, 32, together):
            words = set().union(*(lanes[n] for n in range(start, start + together) if n in lanes))
            if words:
                banks = np.bincount([w % 32 for w in words])
                found[leaf, slot].append(int(banks.max()))
    return {key: float(np.mean(passes)) for key, passes in found.items()}


@pytest.mark.parametrize("mode", [0, 32, 64, 128])
@pytest.mark.parametrize(("dtype", "rows", "columns", "vector"), [
    ("f32", 8, 32, 1), ("f32", 8, 64, 4), ("f16", 16, 64, 8), ("f64", 8, 16, 2), ("u8", 8, 128, 16), ("f16", 32, 64, 2)])
def test_passes_are_those_of_a_count_thread_by_thread(dtype: str, rows: int, columns: int, vector: int, mode: int) -> None:
    s = turned(dtype, rows, columns, vector)
    s = s.swizzle("x_s", mode) if mode else s
    counted = {(f.leaf, f.slot): f.conflicts for f in traffic(s.plan) if f.storage == "x_s"}
    wanted = by_thread(s.plan, "x_s")
    assert counted.keys() == wanted.keys()
    assert counted == pytest.approx(wanted)


def test_a_column_asks_the_banks_of_eight_units() -> None:
    """A thread for each row: 32 rows of 128 bytes ask one bank, and in the pattern the banks of eight units."""
    s = turned("f16", 32, 64)
    column = {f.slot: f.conflicts for f in traffic(s.plan) if f.leaf == "S0" and f.space == "shared"}
    laid = {f.slot: f.conflicts for f in traffic(s.swizzle("x_s", 128).plan) if f.leaf == "S0" and f.space == "shared"}
    assert (column, laid) == ({0: 32.0}, {0: 4.0})


def test_one_request_shows_the_banks_that_it_really_asks() -> None:
    s = turned("f16", 32, 64).swizzle("x_s", 128)
    request = warp_request(s.plan, "S0", 0, 0, {"j.i": 8})
    for lane in request.lanes:
        assert lane.index == (lane.lane, 8)
        assert lane.first == by_hand(s.plan.buffer_of["x_s"], lane.index)
    assert request.passes(0) == 4


# -- it computes the same -----------------------------------------------------------------------------------------


def test_the_text_computes_the_same_at_odd_sizes() -> None:
    cases = []
    for dtype in ("f16", "f32"):
        for vector, sizes in ((1, {"M": 37, "N": 70}), (16 // DTYPES[dtype].bytes, {"M": 40, "N": 80})):
            for mode in (32, 64, 128):
                s = turned(dtype, 32, 64, vector, **sizes).swizzle("x_s", mode)
                x = np.random.default_rng(mode).standard_normal((sizes["M"], sizes["N"])).astype(dtype.replace("f", "float"))
                cases.append(Case(f"{dtype} {vector} {mode}", s.plan.program, s.plan, {"x": x}))
    rng = np.random.default_rng(0)
    for sizes in ({}, {"M": 13, "N": 24, "K": 152}, {"M": 35, "N": 8, "K": 200}):
        s = product(**sizes).swizzle("x_s").swizzle("y_s", 32)
        ring = product(**sizes)
        ring = ring.pipeline("k", 2).swizzle("x_s", 128).swizzle("y_s", 32)
        size = {"M": 16, "N": 16, "K": 64, **sizes}
        arrays = {"x": rng.standard_normal((size["M"], size["K"])).astype(np.float16),
                  "y": rng.standard_normal((size["K"], size["N"])).astype(np.float16)}
        cases += [Case(f"product {sizes}", s.plan.program, s.plan, arrays), Case("ring", ring.plan.program, ring.plan, arrays)]
    assert not differences(cases, seeds=2)


# -- refusals -----------------------------------------------------------------------------------------------------


def test_refusals() -> None:
    s = product()
    assert "only shared memory has banks" in refused(s, "total").what
    assert refused(s, "total").hint == "one of x_s, y_s"
    assert refused(s, "x").what == "x lies in global memory, which has no banks"
    assert refused(s, "q").what == "there is no buffer 'q'"
    assert refused(s, "x_s", 48).what == "a row of a pattern has 32, 64 or 128 bytes, not 48"
    assert refused(s, "y_s", 128).what == "rows of y_s are 16 f16, 32 bytes: no whole number of 128 bytes"
    assert refused(s, "y_s", 128).hint == "mode=32"
    assert refused(s, "x_s", 32, 64).what == "panels of 64 f16 have rows of 128 bytes, and the pattern has 32"
    assert refused(s, "x_s", 128, 48).what == "rows of x_s are 64 f16, 128 bytes: no whole number of panels of 48"
    assert refused(s.swizzle("x_s", 128), "x_s", 128).what == "x_s already lies so"
    assert refused(turned("f32", 12, 32), "x_s", 128).what == "x_s has 12 rows, and the pattern repeats after 8"
    assert "no whole number of 32 bytes" in refused(turned("f32", 8, 12), "x_s").what
    assert "no access of x_s has bank conflicts" in refused(turned("f32", 8, 8).bind("i.i", "seq"), "x_s").what


def test_padding_and_patterns_exclude_each_other() -> None:
    s = define(TURN.format("f32"), "padded.py").schedule(M=32, N=32).tile(("i", "j"), (32, 32)).bind("i.i", "thread.x")
    error = refused(s.stage("x", "j", pad=1), "x_s", 128)
    assert error.what == "x_s has 1 unused elements after each row"
    assert error.hint == "stage it with pad=0"


def test_no_pattern_helps_within_one_row() -> None:
    """Threads along a row of 256 bytes, two words apart: a pattern leaves a row's units in the same 32 banks."""
    s = define(TURN.format("f32"), "even.py").schedule(M=8, N=64).tile(("i", "j"), (8, 64)).split("j.i", 2, inner="v")
    s = s.bind("j.i", "thread.x").stage("x", "j", threads=False)
    verdict = refused(s, "x_s")
    assert "no pattern lowers the" in verdict.what
    assert verdict.hint == "swizzle('x_s', 128)"


def test_vectors_that_are_not_seen_to_stay_whole_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    s = product(M=48)  # sizes of its own: what a move makes of a plan is remembered
    monkeypatch.setattr(module, "contiguous", lambda plan, *_: plan is s.plan)
    verdict = refused(s, "x_s", 128)
    assert verdict.what.startswith("x_s accesses x_s in vectors")
    assert verdict.hint == "bind('x_s.v', 'seq') first"


def test_one_element_has_no_rows() -> None:
    s = define(PRODUCT.format("f16"), "product.py").schedule(M=4, N=4, K=4).contract("total", "shared")
    assert s.plan.buffer_of["total"].shape == ()
    assert not Swizzle("total", 128).check(s.plan)
    assert not list(Swizzle.candidates(s.plan, "S1"))
