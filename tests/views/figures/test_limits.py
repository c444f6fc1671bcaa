"""Roofline and occupancy: the numbers under the pictures."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from typing import Any

import pytest

from explorer.errors import FigureError
from explorer.gpu.occupancy import occupancy as fill_of
from explorer.gpu.spec import catalogue, gpu
from explorer.poly.traffic import traffic
from explorer.run.result import Run
from explorer.views.figures import picture
from explorer.views.figures.asked import Asked, Look
from explorer.views.figures.occupancy import draw as draw_occupancy
from explorer.views.figures.occupancy import occupancy
from explorer.views.figures.palette import LIGHT
from explorer.views.figures.roofline import draw, roofline
from tests.transforms.multiblock import spread
from tests.views.figures.support import matmul, written


@dataclass(frozen=True)
class Fixed:
    """A timing with one number."""

    net_us: float

    @property
    def median_us(self) -> float:
        return self.net_us


def test_intensity_is_arithmetic_over_compulsory_bytes():
    data = roofline(written("matmul", M=64, N=32, K=16), Asked({"gpu": "H200"}), Look())
    flops, bytes_ = 2 * 64 * 32 * 16, 4 * (64 * 16 + 16 * 32 + 64 * 32)
    point = data.points[0]
    assert (data.flops, data.compulsory_bytes) == (flops, bytes_)
    assert point.intensity == pytest.approx(flops / bytes_)
    assert data.roof.bound == "memory"
    requested = data.points[1]
    assert requested.intensity == pytest.approx(flops / data.requested_bytes)
    assert data.requested_bytes > bytes_


def test_the_roof_is_that_of_the_chosen_gpu_and_the_lines_reach_it():
    s = matmul()
    for name, card in catalogue().items():
        data = roofline(s, Asked({"gpu": name}), Look())
        assert data.gpu == name
        assert data.datasheet.bandwidth_bytes_per_s == card.memory_bandwidth_bytes_per_s
        spec = draw(data, LIGHT)
        solid = next(t for t in spec["data"] if t.get("name") == "reachable")
        assert solid["y"][-1] == pytest.approx(data.roof.peak_flops_per_s)
        for p, line in zip(data.points, (t for t in spec["data"] if t["mode"] == "lines" and "name" not in t), strict=False):
            assert line["y"][1] == pytest.approx(min(p.intensity * data.roof.bandwidth_bytes_per_s, data.roof.peak_flops_per_s))
        low, high = (10**v for v in spec["layout"]["xaxis"]["range"])
        assert all(low < p.intensity < high for p in data.points)


def test_a_measured_point_stands_at_its_time_on_its_gpu_only():
    s = matmul()
    run = Run("matmul", "H200", (), (), timings={"cold": Fixed(2.0)}, bytes=1000, flops=4000)  # type: ignore[dict-item]
    data = roofline(s, Asked(), Look(run=run))
    measured = next(p for p in data.points if p.name == "measured")
    assert (measured.intensity, measured.flops_per_s) == (4.0, pytest.approx(2e9))
    mark = next(t for t in draw(data, LIGHT)["data"] if t["mode"] == "markers" and t["marker"]["symbol"] == "triangle-up")
    assert (mark["x"], mark["y"]) == ([4.0], [pytest.approx(2e9)])
    assert log10(2e9) > draw(data, LIGHT)["layout"]["yaxis"]["range"][0]
    assert not any(p.name == "measured" for p in roofline(s, Asked({"gpu": "T4"}), Look(run=run)).points)
    assert "Measured on the H200, which has another roof." in picture(s, "roofline", {"gpu": "T4"}, run=run).note
    assert "another roof" not in picture(s, "roofline", run=run).note


@pytest.mark.parametrize(("name", "of_t4", "of_l4"), [
    ("roofline", "under the roof of the T4", "under the roof of the L4"), ("occupancy", "on the T4", "on the L4"),
    ("partials", "blocks on the T4", "blocks on the L4")])
def test_figures_follow_the_gpu_that_is_planned_for_unless_another_is_asked_for(name: str, of_t4: str, of_l4: str) -> None:
    s = spread("rows")
    run = Run("rows", "H200", (), (), timings={"cold": Fixed(2.0)}, bytes=1000, flops=4000)  # type: ignore[dict-item]

    def shown(options: dict[str, str], target: str | None) -> tuple[str, dict[str, Any]]:
        found = picture(s, name, options, run=run, target=gpu(target) if target else None)
        return str((found.title, found.note, found.table)), next(c for c in found.options if c["name"] == "gpu")

    text, option = shown({}, "T4")
    assert of_t4 in text
    assert (option["value"], option["choices"]) == ("target", ["target", *catalogue()])
    assert option["labels"][0] == "target: T4"
    assert of_l4 in shown({}, "L4")[0]
    text, option = shown({"gpu": "L4"}, "T4")
    assert of_l4 in text
    assert (option["value"], option["labels"][0]) == ("L4", "target: T4")
    assert of_t4 in shown({"gpu": "target"}, "T4")[0]
    text, option = shown({}, None)
    assert "H200" in text
    assert (option["value"], option["choices"]) == ("H200", list(catalogue())), "without a target there is none to follow"


def test_a_program_without_arithmetic_gets_a_sentence():
    import explorer as ex

    n = ex.sizes("n")

    @ex.program
    def flip(x: ex.f32[n], y: ex.f32[n]):
        for i in range(n):
            y[i] = x[n - 1 - i]

    shown = picture(flip.schedule(n=64), "roofline")
    assert shown.spec == {}
    assert "512 B" in shown.note


@pytest.mark.parametrize("name", ["T4", "H200"])
def test_occupancy_is_that_of_the_arithmetic(name):
    s = matmul()
    data = occupancy(s, Asked({"gpu": name, "registers": 80}), Look())
    assert (data.threads, data.shared_bytes) == (4, 128)
    assert data.fill == fill_of(gpu(name), 4, 80, 128)
    threads, registers, shared = data.curves
    assert threads.now == 4
    assert registers.now == 80
    assert dict(zip(registers.values, registers.fractions, strict=True))[200] == fill_of(gpu(name), 4, 200, 128).fraction
    assert dict(zip(threads.values, threads.fractions, strict=True))[512] == fill_of(gpu(name), 512, 80, 128).fraction
    assert shared.fractions[-1] == fill_of(gpu(name), 4, 80, shared.values[-1]).fraction
    assert list(shared.fractions) == sorted(shared.fractions, reverse=True)


def test_the_limiting_resource_is_named_and_marked():
    shown = picture(matmul(), "occupancy", {"gpu": "H200"})
    limiter = next(row for row in shown.table if row[3] == "limits")
    assert limiter[1] == "block slots"
    bar = shown.spec["data"][0]
    assert [c == LIGHT.thread for c in bar["marker"]["color"]] == [row[3] == "limits" for row in shown.table]
    assert "◀ limits" in str(shown.spec["layout"]["annotations"])


def test_a_block_that_does_not_fit_says_so_and_an_unknown_gpu_is_an_error():
    s = written("matmul", M=8, N=8, K=32768).bind("i", "block.x").bind("j", "thread.x").stage("a", "i")
    small = picture(s, "occupancy", {"gpu": "T4"})
    assert small.title == "Occupancy of matmul on the T4: 0%"
    assert small.note.startswith("No block fits: shared memory is exceeded (8 × 1 × 1 threads, 131,072 bytes")
    assert ": 1 block, 1 of 64 warps" in picture(s, "occupancy", {"gpu": "H200"}).note
    with pytest.raises(FigureError, match="gpu='H900' is not a choice"):
        s.plot.roofline(gpu="H900")


def test_each_access_has_its_row_of_requested_traffic():
    s = matmul(stages=2)
    shown = picture(s, "roofline")
    asked = [a for a in traffic(s.plan) if a.space == "global" and a.bytes]
    facts = {f"{a.leaf} {'writes' if a.writes else 'reads'} {a.array}": a for a in asked}
    rows = {row[1]: row for row in shown.table if row[0] is not None}
    assert rows.keys() == facts.keys()
    assert {"a_s reads a", "S2 writes c"} <= rows.keys()
    for name, row in rows.items():
        assert row[0] == facts[name].leaf
        assert f"{facts[name].sectors_per_request:.3g} sectors a request, at least {facts[name].minimum:.3g}" in row[4]
    sizes = [facts[row[1]].bytes for row in shown.table if row[0] is not None]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(float(row[4].split(", ")[1].split("%")[0]) for row in rows.values()) == pytest.approx(100, abs=3)


def test_shared_memory_has_its_unit_on_the_axis_and_at_every_point() -> None:
    data = occupancy(written("matmul", M=64, N=32, K=16), Asked({"gpu": "H200"}), Look())
    page = draw_occupancy(data, LIGHT)
    named = [t for t in page["layout"]["xaxis4"]["ticktext"] if t]
    assert named
    assert all(t.endswith(" KiB") for t in named)
    said = [t for trace in page["data"] for t in trace.get("hovertext", ()) if "shared memory per block" in t]
    assert said
    assert all(" B of shared memory per block" in t for t in said)
