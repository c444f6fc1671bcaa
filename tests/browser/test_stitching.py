"""A scheme for every edge, with a real kernel side: by mouse, by keys, on another GPU, at other sizes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from explorer.strategies.stitch import stitching
from tests.app.front import schedule
from tests.browser.shown import OVERFLOW, Open, focused, serious


def test_schemes_are_chosen_by_mouse(opened: Open) -> None:
    stage = opened(schedule("softmax", M=64, N=1024))
    page = stage.page
    page.get_by_role("tab", name="Stitching", exact=True).click()
    stage.calm()
    assert page.locator(".gedgerow").evaluate_all("all => all.map((one) => one.dataset.edge)") == ["peak->total", "peak->y",
                                                                                                 "total->y"]
    expect(page.locator(".gvalue")).to_have_count(3)
    edge = page.locator(".gedgerow[data-edge='peak->total']")
    expect(edge.locator("[aria-checked=true]")).to_have_attribute("data-scheme", "shuffle")
    edge.locator("[data-scheme=recompute]").click(force=True)
    stage.calm()
    expect(page.locator(".gdetail .problem")).to_contain_text("peak is not defined by one plain statement")
    expect(edge.locator("[aria-checked=true]")).to_have_attribute("data-scheme", "shuffle")
    edge.locator("[data-scheme=cut]").click()
    stage.calm()
    expect(edge.locator("[aria-checked=true]")).to_have_attribute("data-scheme", "cut")
    expect(page.locator(".gdetail")).to_contain_text("against a cut here")
    expect(page.locator(".gtotal")).to_contain_text("kernel 2")
    assert stage.steps == []
    page.locator(".stitching [data-go=apply]").click()
    stage.calm()
    assert len(stage.session.schedule.plan.kernels) == 2
    expect(page.locator(".undo")).to_contain_text("stitch ·")
    page.locator(".stitching [data-go=model]").click()
    stage.calm()
    expect(edge.locator("[aria-checked=true]")).to_have_attribute("data-scheme", "shuffle")


def test_schemes_are_chosen_by_keys_alone(opened: Open) -> None:
    stage = opened(schedule("softmax", M=64, N=1024))
    page, keys = stage.page, stage.page.keyboard
    page.locator(".headrun").focus()
    keys.press("v")
    for _ in range(10):
        if focused(page, "dataset.tab") == "stitching":
            break
        keys.press("ArrowRight")
    stage.calm()
    for _ in range(6):
        keys.press("Tab")
        if focused(page, "dataset.scheme"):
            break
    assert focused(page, "dataset.scheme") == "shuffle"
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    assert focused(page, "closest('.gedgerow').dataset.edge") == "total->y"
    keys.press("ArrowRight")
    keys.press("Enter")
    stage.calm()
    assert focused(page, "dataset.scheme") == "shared"
    assert focused(page, "getAttribute('aria-checked')") == "true"
    for _ in range(8):
        if focused(page, "dataset.go") == "apply":
            break
        keys.press("Shift+Tab")
    keys.press("Enter")
    stage.calm()
    assert "collect('S3', 'shared')" in stage.steps
    keys.press("Control+z")
    stage.calm()
    assert stage.steps == []


def test_another_gpu_keeps_the_choices_and_prices_them_anew(opened: Open) -> None:
    stage = opened(schedule("softmax", M=16, N=65536))
    page = stage.page
    page.get_by_role("tab", name="Stitching", exact=True).click()
    stage.calm()
    edge = page.locator(".gedgerow[data-edge='peak->total']")
    edge.locator("[data-scheme=cut]").click()
    stage.calm()
    before, other = page.locator(".gtotal b").inner_text(), edge.locator("[data-scheme=shared] .gsprice").inner_text()
    page.locator(".stitching").get_by_label("plan for the GPU").select_option("T4")
    stage.calm()
    expect(edge.locator(".fixed")).to_have_attribute("data-scheme", "cut")
    expect(page.locator(".gtotal")).to_contain_text("on the T4")
    assert page.locator(".gtotal b").inner_text() != before
    assert edge.locator("[data-scheme=shared] .gsprice").inner_text() != other, "the edges are tried again"
    assert page.get_by_label("plan for the GPU").evaluate_all("all => all.map((one) => one.value)") == ["T4", "T4"]
    page.locator(".stitching [data-go=apply]").click()
    stage.calm()
    wanted = stitching(schedule("softmax", M=16, N=65536), {"peak->total": "cut"}, "T4").schedule
    assert [str(step) for step in stage.session.schedule.steps] == [str(step) for step in wanted.steps]
    page.evaluate("() => { const one = document.querySelector('.stitching select');"
                  "one.append(new Option('Voodoo')); one.value = 'Voodoo'; one.dispatchEvent(new Event('change')); }")
    stage.calm()
    expect(page.locator(".alert")).to_contain_text("No GPU called 'Voodoo' is in the catalogue.")
    expect(page.locator(".stitching select")).to_have_value("T4")


def test_other_sizes_are_asked_anew(opened: Open) -> None:
    stage = opened(schedule("softmax", M=64, N=1024))
    page = stage.page
    page.get_by_role("tab", name="Stitching", exact=True).click()
    stage.calm()
    before = page.locator(".gtotal b").inner_text()
    stage.session.resize({"M": 4096})
    stage.calm()
    expect(page.locator(".gedgerow")).to_have_count(3)
    assert page.locator(".gtotal b").inner_text() != before


@pytest.mark.parametrize(("width", "dark"), [(900, False), (1600, True)])
def test_axe_on_the_stitching(opened: Open, page: Page, width: int, dark: bool) -> None:
    page.set_viewport_size({"width": width, "height": 1000})
    page.emulate_media(color_scheme="dark" if dark else "light")
    stage = opened(schedule("softmax", M=64, N=1024))
    page.get_by_role("tab", name="Stitching", exact=True).click()
    stage.calm()
    page.locator("[data-scheme=recompute]").first.focus()
    assert not serious(page), serious(page)
    assert page.evaluate(OVERFLOW) <= 1
