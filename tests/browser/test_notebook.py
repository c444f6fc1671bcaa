"""The explorer as a citizen of a notebook: saved, reopened, restarted, dark, narrow, read aloud, two in one notebook."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.lab import EXPLORER, Notebook
from tests.browser.test_session import CELL, move, ran, row

Make = Callable[..., Notebook]
MOST_SAVED = 300_000
"""Bytes of one saved explorer cell."""


def test_saved_and_reopened_shows_the_static_picture(notebook: Make) -> None:
    book = notebook(CELL)
    page = book.page
    row(page, "k").click()
    book.settle()
    move(page, "split").locator(".mmain").click()
    page.locator(".exw .mdetail").get_by_role("button", name="Apply").click()
    expect(row(page, "k.i")).to_be_visible()
    expect(page.locator(".ex-static")).to_be_hidden()
    page.wait_for_function("() => document.querySelector('.ex-static')?.textContent.includes('k.i')", timeout=20_000)
    path = book.save()
    saved = json.loads(path.read_text())
    assert len(json.dumps(saved["cells"][0]["outputs"])) <= MOST_SAVED
    assert len(path.read_text()) <= MOST_SAVED + 20_000
    assert "application/vnd.jupyter.widget-state+json" not in saved["metadata"].get("widgets", {})

    # a new kernel knows nothing of the widget: the picture stands for it, with the last schedule, and nothing else
    page.evaluate("async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }")
    page.reload()
    page.wait_for_selector(".ex-static", timeout=60_000)
    expect(page.locator(".ex-static")).to_be_visible()
    expect(page.locator(".ex-static")).to_contain_text("k.i")
    page.wait_for_timeout(3000)
    expect(page.get_by_text("model not found")).to_have_count(1)
    expect(page.get_by_text("model not found")).to_be_hidden()
    book.faults.clear()  # the widget manager itself reports the model that is gone

    # running the cell again brings the explorer back
    book.run_all()
    expect(page.locator(".ex-static")).to_be_hidden()


def violations(page: Page) -> list[str]:
    """Serious and critical findings of axe inside the explorer."""
    found = Axe().run(page, context=EXPLORER, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {one['help']}\n    "
        + "\n    ".join(f"{node['html'][:200]}\n      {node.get('failureSummary', '')}" for node in one["nodes"][:4])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


UNREACHED = """() => [...document.querySelectorAll('.exw *')].filter((one) => {
    const { overflowX, overflowY } = getComputedStyle(one);
    const scrolls = [overflowX, overflowY].some((way) => way === 'auto' || way === 'scroll');
    const stops = 'button, input, select, textarea, summary, a[href], [tabindex]:not([tabindex="-1"])';
    const seen = one.checkVisibility() && one.textContent.trim() || one.matches('.picture');
    return scrolls && seen && !one.matches(stops) && !one.querySelector(stops);
}).map((one) => `${one.localName}.${one.className}`)"""
"""What can scroll, now or once it holds more, and neither takes the focus nor holds what does."""


def test_the_keyboard_reaches_all_that_scrolls(notebook: Make) -> None:
    """Axe sees only what happens to scroll while it looks: a figure's picture is there until Plotly has drawn."""
    book = notebook(CELL)
    page = book.page
    row(page, "k").click()
    book.settle()
    assert page.evaluate(UNREACHED) == []
    page.locator(".exw li.move.no", has=page.locator("code", has_text="block.x")).first.locator(".mmain").click()
    expect(page.locator(".exw .problem").first).to_be_visible()
    assert page.evaluate(UNREACHED) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(notebook: Make, theme: str) -> None:
    book = notebook(CELL)
    page = book.page
    if theme == "dark":
        book.dark()
    row(page, "k").click()
    book.settle()
    assert not violations(page), "\n".join(violations(page))
    move(page, "split").locator(".mmain").click()
    expect(page.locator(".exw .mdetail .diff")).to_be_visible()
    page.locator(".exw").get_by_role("tab", name="Memory").click()
    page.wait_for_function("() => !document.querySelector('.exw .figure[aria-busy]')")
    assert not violations(page), "\n".join(violations(page))
    page.locator(".exw li.move.no", has=page.locator("code", has_text="block.x")).first.locator(".mmain").click()
    page.locator(".exw").get_by_role("tab", name="Script").click()
    page.locator(".exw").get_by_role("tab", name="Compare").click()
    assert not violations(page), "\n".join(violations(page))
    page.locator(".exw").get_by_role("tab", name="Schedule tree").click()
    page.locator(".exw").get_by_role("button", name="Check only").click()
    ran(page)
    page.locator(".exw").get_by_role("button", name="keyboard help").click()
    assert not violations(page), "\n".join(violations(page))


@pytest.mark.parametrize("width", [900, 1440, 1600])
def test_nothing_overflows_and_all_panes_are_there(notebook: Make, width: int) -> None:
    book = notebook(CELL)
    page = book.page
    page.set_viewport_size({"width": width, "height": 1000})
    page.wait_for_timeout(400)
    for name in ("program", "moves", "views", "run", "history"):
        box = page.locator(f".exw section[aria-label={name}]").bounding_box()
        assert box, name
        assert box["width"] >= 240, name
        assert box["height"] >= 60, name
    assert page.evaluate("() => { const one = document.querySelector('.exw'); return one.scrollWidth - one.clientWidth; }") <= 1
    cuda = page.locator(".exw .beside .cuda").count()
    if width == 1600:
        assert cuda == 1, "at 1600 px CUDA stands beside the figures"
        page.keyboard.press("Control+b")
    if width == 900:
        assert cuda == 0
        page.locator(".exw").get_by_role("tab", name="CUDA").click()
        expect(page.locator(".exw .vmain .cl").first).to_be_visible()


def test_dark_theme_follows_the_host(notebook: Make) -> None:
    book = notebook(CELL)
    page = book.page
    colours = """() => {
        const style = getComputedStyle(document.querySelector('.exw'));
        return [style.backgroundColor, style.color, style.colorScheme];
    }"""
    light = page.evaluate(colours)
    book.dark()
    dark = page.evaluate(colours)
    assert (light[2], dark[2]) == ("light", "dark")
    assert light[0] != dark[0]
    assert light[1] != dark[1]


def test_two_explorers_in_one_notebook_are_independent(notebook: Make) -> None:
    book = notebook(CELL, "e2 = ex.explore(row_sum, M=5, N=6)\ne2")
    page = book.page
    page.wait_for_function("() => document.querySelectorAll('.exw.ex-live .row').length > 8")
    book.settle()
    first, second = page.locator(EXPLORER).nth(0), page.locator(EXPLORER).nth(1)
    second.locator("[role=tree]:visible .row[data-node=i]").click()
    book.settle()
    second.locator("li.move.ok[data-name=reverse] .mmain").focus()
    page.keyboard.press("Enter")
    expect(second.locator(".state")).to_have_count(2)
    expect(first.locator(".state")).to_have_count(1)
    assert book.python("print(len(e.schedule.steps), len(e2.schedule.steps))").split() == ["0", "1"]


def test_notebook_7_shows_it_too(notebook: Make) -> None:
    book = notebook(CELL, run=False)
    page = book.page
    page.goto(f"{book.lab.url}/tree/{book.name}.ipynb?token={book.lab.token}".replace("/tree/", "/notebooks/"))
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
    page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'", timeout=60_000
    )
    book.run_all()
    row(page, "k").click()
    book.settle()
    expect(move(page, "split")).to_be_visible()
