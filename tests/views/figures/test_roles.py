"""The figure of roles: what is drawn of a prediction, of stamps from the CPU device, and of stamps with times."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from explorer import strategies, workloads
from explorer.errors import FigureError
from explorer.run.stamps import Stamps
from explorer.views.figures import picture
from tests.frontend.support import define
from tests.kernel.test_stamps import made


@cache
def order() -> Stamps:
    return made("roles").stamps(device="cpu")


def on_a_gpu(name: str = "H200") -> Stamps:
    """The CPU device's order under a GPU's name: what is drawn of it, not what it says."""
    return replace(order(), device=name, plain_us=10.0, stamped_us=10.3)


def heights(found: Any) -> set[float]:
    return {y for t in found.spec["data"] for y in t["y"]}


@pytest.mark.parametrize("part", ["start", "end", "all"])
def test_work_that_takes_no_time_by_the_model_is_drawn(part: str) -> None:
    """Threads that only compute in shared memory: their pieces end where they begin."""
    s = define("""
    @ex.program
    def f(x: ex.f32[N, 8], y: ex.f32[N, 8]):
        for i in range(N):
            t = ex.local(ex.f32, 8)
            for k in range(8):
                t[k] = x[i, k]
            for j in range(8):
                y[i, j] = t[j] - t[7 - j]
    """).schedule(N=32).contract("t", "shared")
    assert s.plot.roles(part=part).spec["data"] is not None


def test_predicted_rows_of_a_producer_and_its_consumers() -> None:
    found = made("roles").plot.roles()
    assert found.title == "Roles of matmul on the H200, predicted · from tile to tile"
    assert [t for t in found.spec["layout"]["yaxis"]["ticktext"]] == ["producer", "consumers 0", "consumers 1"]
    assert heights(found) == {0.0, 1.0, 2.0}
    does = {row[2] for row in found.table}
    assert {"waits for a free slot", "issues copies", "waits for copies", "product", "releases the slot"} <= does
    assert all(row[5] == "" and row[6] for row in found.table), "nothing is measured"
    assert "all of it is predicted" in found.note.lower()


def test_several_tiles_are_drawn() -> None:
    found = made("roles").plot.roles(part="tiles", steps=4)
    tiles = {row[3].split(",")[0] for row in found.table if row[2] == "waits for copies"}
    assert tiles == {"j=0", "j=1"}
    whole = made("roles").plot.roles(part="all")
    assert len(whole.table) == sum(len(k.pieces) for k in order().kept)


def test_an_order_has_no_times_beside_it() -> None:
    found = made("roles").plot.roles(part="all", stamps=order())
    assert found.title.startswith("Roles of matmul on the CPU device, in their order")
    assert found.spec["layout"]["xaxis"]["title"]["text"] == "turns of the block's threads: an order, and no time"
    assert "no time is measured" in found.note
    assert all(row[6] == "" for row in found.table)


def test_measured_bars_stand_over_predicted_ones() -> None:
    found = made("roles").plot.roles(part="all", stamps=on_a_gpu())
    assert "measured over predicted" in found.title
    assert heights(found) == {n + d for n in range(3) for d in (-0.2, 0.2)}
    assert all(row[5] and row[6] for row in found.table), "each piece has both times"
    assert "10 µs without stamps, 10.3 µs with them (+3.0%)" in found.note
    words = [text for t in found.spec["data"] for text in t["hovertext"]]
    assert any(text.startswith("consumers 1: waits for copies in j=1, k=3<br>") and text.endswith(" predicted") for text in words)


def test_another_gpus_times_are_not_drawn() -> None:
    found = made("roles").plot.roles(stamps=on_a_gpu("RTX 4090"), gpu="H200")
    assert found.title.startswith("Roles of matmul on the H200, predicted")
    assert "measured was another GPU, RTX 4090" in found.note


def test_a_kernel_without_roles_has_one_row() -> None:
    found = made("warps").plot.roles(steps=3)
    assert found.title == "Roles of matmul on the H200, predicted · the first steps"
    assert found.spec["layout"]["yaxis"]["ticktext"] == ["threads"]
    assert {r[3] for r in found.table if r[2] == "product"} == {"k=0", "k=1", "k=2"}


def test_words_fit_their_bars_in_a_narrow_figure() -> None:
    found = made("roles").plot.roles(part="all")
    first, last = found.spec["layout"]["xaxis"]["range"]
    inside = 470 - found.spec["layout"]["margin"]["l"] - 18
    for t in found.spec["data"]:
        for text, length in zip(t["text"], t["x"], strict=True):
            assert 7 * len(text) <= length / (last - first) * inside + 1e-6


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_lies_outside_of_the_axis(theme: str) -> None:
    for part in ("start", "tiles", "end", "all"):
        found = picture(made("roles"), "roles", {"part": part}, theme=theme)
        first, last = found.spec["layout"]["xaxis"]["range"]
        for t in found.spec["data"]:
            assert all(b >= first - 1e-9 for b in t["base"])
            assert all(b + n <= last + 0.004 * (last - first) for b, n in zip(t["base"], t["x"], strict=True))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(FigureError, match="stamps is a Stamps"):
        made("roles").plot.roles(stamps=3)  # type: ignore[arg-type]
    with pytest.raises(FigureError, match="part='middle' is not a choice"):
        made("roles").plot.roles(part="middle")


def test_a_kernel_without_steps_has_the_order_of_its_run() -> None:
    workload = workloads.get("softmax")
    s = strategies.auto(workload.definition.schedule(**workload.tiny))
    found = s.plot.roles(stamps=s.stamps(device="cpu"))
    assert found.title.startswith("Roles of softmax on the CPU device")
    assert "stores results" in {row[2] for row in found.table}


def test_a_schedule_without_steps_says_so() -> None:
    found = made("warps").undo(len(made("warps").steps)).plot.roles()
    assert found.spec == {}
    assert "No kernel computes in steps" in found.note
