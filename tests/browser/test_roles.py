"""The figure of roles in the front end: predicted at once, an order from the CPU device, a GPU's times, or why there are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from explorer.app import devices, measuring
from explorer.run.stamps import stamps
from explorer.schedule import Schedule
from tests.browser.shown import Open
from tests.browser.test_figures import settle, tab, traces
from tests.kernel.test_stamps import made


def shown(stage: Any) -> Any:
    tab(stage, "Pipeline")
    stage.page.locator("select[data-which=pipeline]").select_option("roles")
    settle(stage)
    return stage.page.locator(".exw .vmain .figure:visible")


def test_without_a_gpu_the_roles_are_predicted_and_the_button_says_why(opened: Open, tmp_path: Path,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_driver", lambda: False)
    stage = opened(made("roles"))
    figure = shown(stage)
    expect(figure.locator("h4")).to_have_text("Roles of matmul on the H200, predicted · from tile to tile")
    button = figure.get_by_role("button", name="Measure")
    expect(button).to_be_disabled()
    expect(figure.locator(".measure [role=status]")).to_contain_text("Not measured: ")
    figure.get_by_role("button", name="order on the CPU").click()
    settle(stage)
    settle(stage)
    expect(figure.locator("h4")).to_contain_text("Roles of matmul on the CPU device, in their order")
    expect(figure.locator(".astable")).to_contain_text("waits for a free slot")
    for width, theme in ((1440, "light"), (620, "dark")):
        stage.page.set_viewport_size({"width": width, "height": 1000})
        stage.page.evaluate("theme => document.querySelector('.exw').dataset.theme = theme", theme)
        settle(stage)
        stage.page.screenshot(path=tmp_path / f"roles_{width}.png")


def test_measured_times_stand_over_predicted_ones(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of a measurement to the figure; what is measured here is the CPU device's order, under a GPU's name."""
    asked: list[str] = []

    def on_a_gpu(schedule: Schedule, device: str) -> Any:
        asked.append(device)
        return replace(stamps(schedule, device="cpu"), device="H200", plain_us=10.0, stamped_us=10.3)

    monkeypatch.setattr(devices, "_gpu", lambda _: devices._choice("cuda", "NVIDIA H200", ""))
    monkeypatch.setattr(measuring, "stamps", on_a_gpu)
    stage = opened(made("roles"))
    figure = shown(stage)
    figure.get_by_role("button", name="Measure").click()
    settle(stage)
    settle(stage)
    expect(figure.locator("h4")).to_contain_text("on the H200, measured over predicted")
    assert asked == ["cuda"]
    expect(figure.locator(".note").last).to_contain_text("10 µs without stamps, 10.3 µs with them (+3.0%)")
    heights = {y for t in traces(stage.page) for y in t["y"]}
    assert heights <= {n + d for n in range(3) for d in (-0.2, 0.2)}
    assert len(heights) == 6
    stage.page.screenshot(path=tmp_path / "measured.png")
