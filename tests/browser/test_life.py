"""The explorer in a notebook that scrolls, and behind a kernel that goes away."""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.lab import EXPLORER, Notebook
from tests.browser.test_session import CELL, move, row, steps

Make = Callable[..., Notebook]
TALL = "print('\\n'.join(map(str, range(60))))"
COVERS = """() => {
    const one = document.querySelector('.exw.ex-live'), { innerWidth: w, innerHeight: h } = window;
    const box = one.getBoundingClientRect();
    const inside = [[8, 8], [w / 2, h / 2], [w - 8, h - 8]].every(([x, y]) => one.contains(document.elementFromPoint(x, y)));
    return [inside, Math.round(box.width) === w, Math.round(box.height) === h];
}"""
RESTART = "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
SCROLL = """() => {
    for (const one of document.querySelectorAll('.jp-WindowedPanel-outer')) one.scrollTop += 3000;
}"""


def split(book: Notebook) -> None:
    page = book.page
    row(page, "k").click()
    book.settle()
    move(page, "split").locator(".mmain").click()
    page.locator(".exw .mdetail").get_by_role("button", name="Apply").click()
    expect(row(page, "k.i")).to_be_visible()
    book.settle()


def test_a_filled_window_stays_filled_when_the_notebook_scrolls(notebook: Make) -> None:
    book = notebook(TALL, CELL, TALL, TALL, TALL)
    page = book.page
    page.locator(".exw .lbody").scroll_into_view_if_needed()
    row(page, "k").click()
    book.settle()
    page.locator(".exw .mbody").evaluate("one => one.scrollTo(0, 120)")
    page.get_by_role("button", name="fill the window").click()
    assert page.evaluate(COVERS) == [True, True, True]
    page.evaluate(SCROLL)
    page.wait_for_timeout(800)
    assert page.evaluate(COVERS) == [True, True, True], "scrolling the notebook takes it away"
    assert page.locator(".exw .mbody").evaluate("one => one.scrollTop") == 120
    assert page.evaluate("() => document.activeElement.closest('.exw') !== null")
    row(page, "i").click()
    book.settle()
    expect(page.locator(".exw .mtitle")).to_have_text("at i")
    page.keyboard.press("Escape")
    assert page.locator(f".jp-OutputArea {EXPLORER}").count() == 1, "it comes back in its cell"
    assert page.evaluate("() => document.querySelectorAll('body > .exw, .ex-away').length") == 0


def test_a_filled_window_goes_with_its_cell(notebook: Make) -> None:
    book = notebook(CELL)
    page = book.page
    page.get_by_role("button", name="fill the window").click()
    book.run_all()
    page.wait_for_function("() => document.querySelectorAll('body > .exw').length === 0")


def test_a_restart_is_noticed_and_one_click_brings_all_back(notebook: Make) -> None:
    book = notebook(CELL)
    page = book.page
    split(book)
    path = page.evaluate("() => document.querySelector('.exw .state[aria-current]').textContent")
    start = time.monotonic()
    page.evaluate(RESTART)
    expect(page.locator(".exw .lost")).to_contain_text("The kernel was restarted", timeout=2000)
    assert time.monotonic() - start < 4
    assert page.evaluate("() => document.querySelector('.exw .main').inert"), "nothing that does not answer can be clicked"
    page.locator(".exw .lost").get_by_role("button", name="Bring it back").click()
    expect(page.locator(".exw .lost:visible")).to_have_count(0, timeout=30_000)
    page.wait_for_selector(f"{EXPLORER} .row[data-node='k.i']", timeout=30_000)
    book.settle()
    assert page.locator(EXPLORER).count() == 1
    assert page.evaluate("() => document.querySelector('.exw .state[aria-current]').textContent") == path
    page.locator(".exw").get_by_role("button", name="undo split").click()
    expect(row(page, "k.i")).to_have_count(0)
    assert book.python("print('e' in globals(), 'row_sum' in globals())").split() == ["False", "False"], "names are left alone"

    # the picture that is saved follows, and running the cell again makes the explorer of the cell
    page.wait_for_function("() => !document.querySelector('.ex-static')?.textContent.includes('k.i')", timeout=20_000)
    book.run_all()
    assert steps(book) == []


def test_a_kernel_that_died_is_noticed(notebook: Make) -> None:
    book = notebook(CELL)
    page = book.page
    page.evaluate("""() => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute(
        { code: 'import os; os.kill(os.getpid(), 9)' }); }""")
    expect(page.locator(".exw .lost")).to_contain_text("restarted", timeout=15_000)


def test_without_a_kernel_to_ask_the_script_is_copied_whole(notebook: Make, page: Page) -> None:
    book = notebook(CELL)
    split(book)
    page.evaluate(RESTART)
    page.locator(".exw .lost").get_by_role("button", name="copy its script").click()
    text = page.evaluate("() => navigator.clipboard.readText()")
    assert "@ex.program" in text
    assert "s = s.split('k'" in text
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'")
    said = book.python(text.replace("ex.explore(", "found = ex.explore(") + "\nprint(found.schedule.steps)")
    assert "Split(" in said, said
