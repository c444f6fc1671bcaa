"""Tables of schedules: bytes against counts by hand, launches in words, stored times, what is shown where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import explorer as ex
from explorer.run.cuda import device as cuda
from explorer.teach.tables import Table, launches, measured, moved, parts, time_us

M, N = ex.sizes("M N")


@ex.program
def total(x: ex.f32[N], y: ex.f32[1]):
    y[0] = 0.0
    for k in range(N):
        y[0] += x[k]


@ex.program
def twice(x: ex.f32[M, N], y: ex.f32[M], z: ex.f32[M]):
    for i in range(M):
        y[i] = 0.0
        z[i] = 0.0
        for k in range(N):
            y[i] += x[i, k]
            z[i] += x[i, k] * x[i, k]


@ex.program
def chosen(x: ex.f32[M, N], at: ex.i32[M], y: ex.f32[M]):
    for i in range(M):
        y[i] = x[i, at[i]]


@ex.program
def triangle(x: ex.f32[N, N], y: ex.f32[N, N]):
    for i in range(N):
        for k in range(i + 1):
            y[i, k] = x[i, k]


def over_blocks(how: str) -> ex.Schedule:
    s = total.schedule(N=1 << 14).launch("total", after="S0").split("k", 2048)
    return s.bind("k", "block.x").bind("k.i", "thread.x", count=128).collect("y", how)


def test_bytes_of_partial_results_are_counted() -> None:
    read, element, blocks = 4 << 14, 4, 8
    assert moved(over_blocks("last_block")) == (read + 2 * blocks * element + element, True)
    assert moved(over_blocks("atomic")) == (read + element + 2 * element, True)


def test_an_element_that_one_iteration_reads_several_times_counts_once() -> None:
    s = ex.strategies.auto(twice.schedule(M=16, N=64))
    assert moved(s) == (4 * (16 * 64 + 2 * 16), True)


def test_passes_over_an_array_count_each() -> None:
    one = twice.schedule(M=16, N=64)
    two = one.distribute("k", "S2")
    results = 2 * 16 * 3  # of two results: a first value, and an update that reads and writes
    assert moved(one).bytes == 4 * (16 * 64 + results)
    assert moved(two).bytes == 4 * (2 * 16 * 64 + results)


def test_only_elements_in_the_domain_count() -> None:
    assert moved(triangle.schedule(N=10)) == (2 * 4 * 55, True)


def test_the_end_of_a_staged_tile_beyond_the_row_does_not_count() -> None:
    s = twice.schedule(M=16, N=50).split("k", 32).stage("x", "k")
    assert moved(s).bytes == 4 * (16 * 50 + 2 * 16 * 3)


def test_a_data_dependent_read_is_an_upper_bound() -> None:
    assert moved(chosen.schedule(M=6, N=100)) == (4 * (6 + 6 + 6), False)


def test_launches_and_parts() -> None:
    assert launches(over_blocks("last_block")) == "8 × 128, then by the block that finishes last"
    assert parts(over_blocks("last_block")) == 8
    assert launches(over_blocks("kernel")).count(";") == 2
    assert parts(over_blocks("atomic")) == 1


def test_no_time_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "available", lambda: "no GPU")
    assert time_us(over_blocks("last_block")) is None


def test_text_and_picture_agree() -> None:
    t = Table.of("Title", [{"case": "a<b", "bytes": 12345, "µs": None, "right": True},
                           {"case": "c", "bytes": 7, "µs": None, "right": False}], "A note.")
    assert t.columns == ("case", "bytes", "right")
    assert str(t).splitlines() == ["Title", "case   bytes  right", "a<b   12,345  ✓", "c          7  ✗", "A note."]
    html = t._repr_html_()
    assert "a&lt;b" in html
    assert "12,345" in html
    assert html.count("✓") == html.count("✗") == 1


def test_stored_times(tmp_path: Path) -> None:
    rows = [{"suite": "reductions", "name": "P-all", "ours": 1.5, "torch": 3.0, "floor": 1.0, "ratio": 2.0},
            {"suite": "reductions", "name": "P-row", "ours": float("nan"), "torch": 4.0, "floor": 1.0, "ratio": 0.0},
            {"suite": "reductions", "name": "other", "ours": 1.0, "torch": 1.0, "floor": 1.0, "ratio": 1.0}]
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps({"gpu": "A GPU", "rows": rows}))
    found = measured([tmp_path / "absent.json", path], "reductions", "P-")
    assert found.title.startswith("A GPU")
    assert found.columns == ("case", "explorer µs", "torch µs", "floor µs", "best other / explorer")
    assert found.rows[0] == ("all", "1.5", "3", "1", "2")
    assert found.rows[1][1] is None
    assert len(found.rows) == 2
    assert not measured([path], "fused").rows
    assert not measured([tmp_path / "absent.json"], "reductions").rows


def test_a_time_is_said_only_of_a_right_result(monkeypatch: pytest.MonkeyPatch) -> None:
    class Run:
        correct, timing = True, type("Timing", (), {"net_us": 12.5})

    def refused(*_: object, **__: object) -> Run:
        raise ex.DeviceError("no memory left")

    monkeypatch.setattr(cuda, "available", lambda: None)
    monkeypatch.setattr("explorer.teach.tables.execute", lambda *_, **__: Run)
    assert time_us(over_blocks("last_block")) == 12.5
    Run.correct = False
    assert time_us(over_blocks("last_block")) == "wrong"
    monkeypatch.setattr("explorer.teach.tables.execute", refused)
    assert time_us(over_blocks("last_block")) == "no memory left"


def test_long_cells_may_break_lines() -> None:
    html = Table.of("T", [{"a": "word " * 20, "n": "-1.5"}, {"a": "short", "n": None}])._repr_html_()
    assert '<td class="w">word' in html
    assert '<td class="n">-1.5' in html
