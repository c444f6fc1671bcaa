"""A measured search, with a real kernel side and a clock of the test's own: by mouse, by keys, stopped, narrow and dark."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect

from explorer.app import searching
from explorer.strategies.auto import auto
from tests.app.front import schedule
from tests.app.test_searching import by_clock as by_clock
from tests.app.test_searching import halting
from tests.browser.shown import OVERFLOW, Open, Shown, focused, serious


@pytest.fixture
def searched(opened: Open, own_memory: Path) -> Shown:
    """A softmax, its search tab open."""
    stage = opened(schedule("softmax", M=6, N=64))
    stage.page.get_by_role("tab", name="Search", exact=True).click()
    stage.calm()
    return stage


@pytest.mark.usefixtures("by_clock")
def test_the_best_is_found_and_taken_by_mouse(searched: Shown) -> None:
    page = searched.page
    pane = page.locator(".search")
    expect(pane).to_contain_text("whose times say nothing about a GPU")
    expect(pane.locator("[data-go=stop]")).to_be_hidden()
    pane.locator("input").fill("5")
    pane.locator("[data-go=search]").click()
    searched.calm()
    expect(pane.locator(".sverdict")).to_contain_text("2.00× faster than the start")
    rows = pane.locator(".trial")
    expect(rows).to_have_count(5)
    expect(rows.first).to_contain_text("5 µs (5 to 5)")
    assert "the best" in (rows.first.get_attribute("aria-label") or "")
    expect(rows.last).to_contain_text("wrong: y[0]")
    assert searched.steps == [], "a search changes nothing"
    assert serious(page) == []
    pane.locator("[data-go=best]").click()
    searched.calm()
    assert len(searched.steps) > 3
    expect(page.locator(".undo")).to_contain_text("search ·")
    expect(rows.first).to_have_attribute("aria-current", "step")
    expect(pane.locator("[data-go=best]")).to_be_disabled()
    page.locator(".undo").click()
    searched.calm()
    assert searched.steps == []
    expect(pane.locator("[data-go=best]")).to_be_enabled()


@pytest.mark.usefixtures("by_clock")
def test_by_keys_alone_and_remembered(searched: Shown) -> None:
    page, keys = searched.page, searched.page.keyboard
    start = searched.session.schedule
    page.get_by_role("button", name="Strategies").focus()
    keys.press("ArrowDown")
    keys.press("End")
    keys.press("Enter")
    searched.calm()
    assert focused(page, "dataset.go") == "search"
    keys.press("Enter")
    searched.calm()
    assert focused(page, "dataset.go") == "best"
    for _ in range(4):
        keys.press("Tab")
        if focused(page, "dataset.trial"):
            break
    keys.press("End")
    keys.press("Home")
    for _ in range(40):
        if focused(page, "dataset.trial") == "0":
            break
        keys.press("ArrowDown")
    keys.press("Enter")
    searched.calm()
    assert searched.session.schedule.steps == auto(start).steps
    assert focused(page, "dataset.trial") == "0", "the focus stays"
    keys.press("Control+z")
    searched.calm()
    page.locator(".search [data-go=search]").click()
    searched.calm()
    expect(page.locator(".search .found")).to_contain_text("remembered from an earlier search")
    expect(page.locator(".search [data-go=again]")).to_be_visible()


def test_stop_keeps_the_best_so_far(searched: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, page = threading.Event(), searched.page
    monkeypatch.setattr(searching, "search", halting(inside, 3))
    page.locator(".search input").fill("6")
    page.locator(".search [data-go=search]").click()
    while not inside.is_set():
        searched.settle(50, 1)
    searched.settle(100, 2)
    expect(page.locator(".search [role=progressbar]")).to_have_attribute("aria-valuenow", "67")
    expect(page.locator(".search .phead [role=status]")).to_contain_text("4 of 6: best")
    expect(page.locator(".trial")).to_have_count(4)
    page.locator(".headrun").click()
    searched.settle(100, 2)
    expect(page.locator(".alert")).to_contain_text("a search is going on")
    page.locator(".search [data-go=stop]").click()
    searched.calm()
    expect(page.locator(".search .found")).to_contain_text("cancelled: the best so far")
    assert focused(page, "dataset.go") == "best"


@pytest.mark.usefixtures("by_clock")
def test_narrow_and_dark(searched: Shown) -> None:
    page = searched.page
    page.locator(".search input").fill("5")
    page.locator(".search [data-go=search]").click()
    searched.calm()
    for width in (1440, 620, 380):
        page.set_viewport_size({"width": width, "height": 1000})
        assert page.evaluate(OVERFLOW) <= 0
        assert page.evaluate(OVERFLOW.replace(".exw", ".search")) <= 0
    page.emulate_media(color_scheme="dark")
    searched.settle(200)
    assert serious(page) == []
