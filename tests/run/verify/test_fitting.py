"""Where steps do not apply at sizes that nothing divides, they run at small sizes of whole vectors and tiles."""

from __future__ import annotations

from dataclasses import replace

import pytest

import explorer as ex
from benchmarks.product_programs import product_nn
from explorer.kernel.emit import emit
from explorer.kernel.reference.slices import cost
from explorer.run.execute import execute
from explorer.run.verify import ragged
from explorer.run.verify.fitting import ATTEMPTS, Span, fitting_sizes, spans
from explorer.schedule import Schedule
from explorer.strategies.contraction.form import product_form
from explorer.strategies.contraction.moves import build
from explorer.strategies.contraction.shapes import Tiling

M, N, K, R = ex.sizes("M N K R")


@ex.program
def scaled(x: ex.f32[N], y: ex.f32[N]):
    for i in range(N):
        y[i] = 2.0 * x[i]


@ex.program
def products(a: ex.f16[M, K], b: ex.f16[K, N], bias: ex.f16[N], y: ex.f16[M, N]):
    for i in range(M):
        for j in range(N):
            total = ex.local(ex.f32)
            total = 0.0
            for k in range(K):
                total += a[i, k] * b[k, j]
            h = total + bias[j]
            y[i, j] = 0.5 * h * (1.0 + ex.erf(h * 0.7071067811865476))


@ex.program
def windows(x: ex.f8e4m3[M, N], y: ex.f32[M, N - R + 1]):
    for i in range(M):
        for j in range(N - R + 1):
            y[i, j] = 0.0
            for r in range(R):
                y[i, j] += x[i, j + r]


def vectors(n: int = 2**20, tile: int = 64) -> Schedule:
    """Four elements a thread: no other sizes than multiples of four."""
    s = scaled.schedule(N=n).split("i", tile).bind("i", "block.x").split("i.i", 4, inner="v")
    return s.bind("i.i", "thread.x").vectorize("v")


def large_products(n: int) -> Schedule:
    return ex.strategies.auto(products.schedule(M=n, N=n, K=n), gpu="H200")


def test_spans_are_tiles_and_what_copies_run_ahead() -> None:
    assert spans(vectors()) == {"N": Span(64, False, True)}
    s = products.schedule(M=256, N=256, K=256).split("i", 16).split("j", 32).reorder("i", "j", "i.i", "j.i")
    assert spans(s) == {"M": Span(16, False, False), "N": Span(32, False, True), "K": Span(1, False, True)}
    s = products.schedule(M=64, N=64, K=256).bind("i", "block.x").bind("j", "thread.x").split("k", 16)
    s = s.stage("a", "k", vector=2).pipeline("k", 4)
    assert spans(s)["K"] == Span(3 * 16, True, True), "four stages need three iterations"
    assert spans(replace(s, definition=None)) == {}, "sizes have no loops then"


def test_the_size_of_a_window_grows_its_own_loop_alone() -> None:
    s = windows.schedule(M=64, N=64, R=12).split("r", 4).split("j", 16)
    assert spans(s) == {"M": Span(1, False, False), "N": Span(16, False, True), "R": Span(4, False, True)}


def test_sizes_are_whole_vectors_with_a_tile_and_a_rest_first() -> None:
    assert fitting_sizes(vectors(), 1e6) == [{"N": 72}, {"N": 40}]
    assert fitting_sizes(vectors(tile=4096), 1e6)[0] == {"N": 4104}
    assert fitting_sizes(vectors(tile=4096), 1e4)[0] == {"N": 72}, "a smaller tile where the first takes too long"
    assert fitting_sizes(vectors(n=64), 1e6) == [{"N": 40}], "one tile is all there is"
    of_bytes = windows.schedule(M=64, N=64, R=3).split("j", 16)
    assert fitting_sizes(of_bytes, 1e6)[0] == {"M": 80, "N": 32, "R": 3}, "16 elements are a vector, windows are kept"


@pytest.mark.parametrize("n", [256, 1024, 2048])
def test_products_on_tensor_cores_apply_at_few_tries(n: int) -> None:
    s = large_products(n)
    limit = ragged.RAGGED_LIMIT / 2
    found = fitting_sizes(s, limit)
    assert found == fitting_sizes(s, limit), "the same each time"
    assert 0 < len(found) <= ATTEMPTS
    assert all(cost(products.at(**sizes)) <= limit for sizes in found)
    assert "tensorize" in [step.name for step in s.at(**found[0]).steps]
    with pytest.raises(ex.ExplorerError):
        s.at(M=37, N=31, K=29)


def test_a_schedule_for_tensor_cores_is_emulated_by_default() -> None:
    run = large_products(256).run(device="cpu", time=False)
    assert run
    (where,) = run.evidence.emulated
    assert where == "M=24, K=200, N=16"
    assert f"run at {where} instead, as the steps do not apply at M=37, K=29, N=31; M=7, K=5, N=11: " in run.notes[-1]


def test_they_run_where_nothing_else_is_emulated_alone() -> None:
    run = execute(vectors(n=4096), device="cpu", time=False)
    assert run.evidence.emulated == ("these sizes",)
    assert sum("the steps do not apply at" in note for note in run.notes) == 2
    run = execute(vectors(n=4096), device="cpu", time=False, checked=False)
    assert run.evidence.emulated == ("N=72",)
    asked = execute(vectors(n=4096), device="cpu", time=False, checked=False, ragged_sizes=[{"N": 7}])
    assert asked.evidence.emulated == (), "sizes that were asked for have no others instead"


def test_what_is_wrong_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(plan, **options):
        built = emit(plan, **options)
        assert "2.0f" in built.text
        return replace(built, text=built.text.replace("2.0f", "3.0f"))

    monkeypatch.setattr(ragged, "emit", wrong)
    run = execute(vectors(n=4096), device="cpu", time=False, checked=False)
    assert all(run.checks)
    assert run.correct is False
    assert "at N=72: " in str(run)
    assert "emulated" in run.evidence.refuted


def test_what_the_cpu_device_cannot_hold_is_tried_at_other_sizes() -> None:
    """180 blocks that wait for each other have more threads than it holds: the next set of sizes has fewer."""
    written = product_nn.schedule(M=64, N=128, K=512)
    form = product_form(written, written.plan.kernels[0].id)
    assert form is not None
    made = build(written, form, Tiling("warpgroup", 64, 64, 64, 1, 1, 2, slices=2))
    run = made.join(made.plan.kernels[1].id, "grid").run(device="cpu", time=False)
    assert run.correct
    assert run.evidence.emulated
