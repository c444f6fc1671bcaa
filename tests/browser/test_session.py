"""A session in a real JupyterLab: select, preview, be refused, apply what is suggested, undo, run, compare, edit, export.

Once by mouse and once by keyboard alone; both end at the same schedule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import Notebook
from tests.programs import ROW_SUM_CELL

CELL = f"{ROW_SUM_CELL}\n\ne = ex.explore(row_sum, M=37, N=100)\ne"

Make = Callable[..., Notebook]


def row(page: Page, node: str) -> Locator:
    return page.locator(f".exw [role=tree]:visible .row[data-node='{node}']")


def move(page: Page, name: str, kind: str = "ok") -> Locator:
    return page.locator(f".exw li.move.{kind}[data-name='{name}']")


def tab_to(page: Page, what: str) -> None:
    """Press Tab until the focused element is `what`."""
    for _ in range(15):
        if page.evaluate(f"() => Boolean(document.activeElement.{what})"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {what}")


def walk_to(page: Page, node: str) -> None:
    """Walk down the loops from the top until the row of a node has the focus."""
    page.keyboard.press("Home")
    for _ in range(15):
        if page.evaluate("() => document.activeElement.dataset.node") == node:
            return
        page.keyboard.press("ArrowDown")
    raise AssertionError(f"the arrow keys do not reach {node}")


def ran(page: Page) -> None:
    """Wait for the end of the run, which was right."""
    expect(page.locator(".exw .run")).to_have_attribute("data-status", re.compile("done|failed|cancelled"), timeout=120_000)
    expect(page.locator(".exw .verdict")).to_contain_text("✓")


def steps(book: Notebook) -> list[str]:
    return json.loads(book.python("import json; print(json.dumps([str(s) for s in e.schedule.steps]))"))


def test_by_mouse(notebook: Make) -> None:
    book = notebook(CELL)
    page = book.page
    page.locator(".exw").scroll_into_view_if_needed()

    # select: the lines of the loop are marked
    row(page, "k").click()
    book.settle()
    marked = page.locator(".exw .cl.on").all_inner_texts()
    assert any("for (int k" in line for line in marked)
    assert not any("int i" in line for line in marked)

    # preview: hovering changes nothing and shows before and after
    move(page, "split").hover()
    expect(page.locator(".exw .card .dl.add").first).to_contain_text("for k")
    assert steps(book) == []
    page.mouse.move(0, 0)

    # the form: another factor, its preview, apply
    move(page, "split").locator(".mmain").click()
    page.locator(".exw [data-field=factor]").fill("32")
    expect(page.locator(".exw .mdetail .mapply .call")).to_have_text(".split('k', 32)")
    expect(page.locator(".exw .mdetail .dl.add").first).to_be_visible()
    page.locator(".exw .mdetail").get_by_role("button", name="Apply").click()
    expect(row(page, "k.i")).to_be_visible()
    assert steps(book) == ["split('k', 32)"]

    # refused, with the pair; the counterexample runs
    row(page, "k").click()
    book.settle()
    refused = page.locator(".exw li.move.no", has=page.locator("code", has_text="block.x")).first
    refused.locator(".mmain").click()
    expect(refused.locator(".problem dl")).to_contain_text("S0[0] → S1[0, 32]")
    refused.get_by_role("button", name="run the counterexample").click()
    expect(page.locator(".exw .executed .ocell.wrong b.bad").first).to_contain_text("✗", timeout=60_000)

    # an enabling move, as a button
    row(page, "k.i").click()
    book.settle()
    move(page, "bind").locator(".mmain").click()
    page.locator(".exw .variant", has_text="thread.x").first.click()
    page.locator(".exw .mdetail").get_by_role("button", name="Apply").click()
    hint = page.locator(".exw .obligation .hint[data-call=\"collect('y', 'shuffle')\"]")
    expect(hint).to_be_visible()
    hint.click()
    expect(page.locator(".exw .obligation")).to_have_count(0)
    assert steps(book) == ["split('k', 32)", "bind('k.i', 'thread.x')", "collect('y', 'shuffle')"]

    # undo by name, redo
    page.locator(".exw").get_by_role("button", name="undo collect").click()
    book.settle()
    assert len(steps(book)) == 2
    page.locator(".exw").get_by_role("button", name="redo collect").click()
    book.settle()
    assert len(steps(book)) == 3

    # run on the CPU
    page.locator(".exw").get_by_role("button", name="Run and time").click()
    ran(page)
    expect(page.locator(".exw .badge.earned", has_text="emulated")).to_be_visible()
    book.settle()

    # compare any two
    page.locator(".exw").get_by_role("button", name="compare with").click()
    page.locator(".exw .state").first.click()
    expect(page.locator(".exw .compared .dl.add").first).to_be_visible(timeout=60_000)

    # edit the script: an error changes nothing, a good text is taken
    page.locator(".exw").get_by_role("tab", name="Script").click()
    area = page.get_by_label("the schedule as Python")
    before = area.input_value()
    area.fill(before.replace("32", "thirty"))
    page.locator(".exw .script").get_by_role("button", name="Apply").click()
    expect(page.locator(".exw .serror .problem")).to_be_visible()
    assert len(steps(book)) == 3
    area.fill(before.replace("32", "64"))
    page.locator(".exw .script").get_by_role("button", name="Apply").click()
    expect(page.locator(".exw .script [role=status]")).to_contain_text("makes the schedule shown")
    book.settle()
    assert steps(book)[0] == "split('k', 64)"

    # export
    page.locator(".exw").get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="CUDA file").click()
    assert "__global__" in download.value.path().read_text()
    page.locator(".exw").get_by_role("button", name="Export").click()
    page.get_by_role("menuitem", name="copy the Python script").click()
    expect(page.locator(".exw .toast")).to_have_text("script copied")
    assert ".split('k', 64)" in page.evaluate("() => navigator.clipboard.readText()")


def test_by_keyboard_alone(notebook: Make) -> None:
    book = notebook(CELL)
    page = book.page
    keys = page.keyboard

    # into the widget by Tab, to the loops by their key
    page.locator(".exw .headrun").focus()
    keys.press("l")
    assert page.evaluate("() => document.activeElement.getAttribute('role')") == "treeitem"
    walk_to(page, "k")
    book.settle()

    # to the moves, filter, down into the list, into the form, apply
    keys.press("/")
    keys.type("split")
    keys.press("ArrowDown")
    expect(page.locator(".exw .move.active .mdetail")).to_be_visible()
    tab_to(page, "dataset.field === 'factor'")
    keys.press("Control+a")
    keys.type("32")
    keys.press("Enter")
    expect(row(page, "k.i")).to_be_visible()
    book.settle()
    assert steps(book) == ["split('k', 32)"]
    assert page.evaluate("() => Boolean(document.activeElement.closest('.exw'))"), "the focus left the widget"

    # undo and redo by keys, help and back
    keys.press("Escape")
    keys.press("Control+z")
    book.settle()
    expect(row(page, "k.i")).to_have_count(0)
    keys.press("Control+Shift+z")
    book.settle()
    expect(row(page, "k.i")).to_be_visible()
    page.locator(".exw .headrun").focus()
    keys.press("?")
    expect(page.get_by_role("dialog", name="keyboard help")).to_be_visible()
    keys.press("Escape")

    # a refused move says why, and its enabling move is a button in reach
    keys.press("l")
    walk_to(page, "k.i")
    book.settle()
    keys.press("/")
    keys.press("Control+a")
    keys.type("vectorize")
    keys.press("ArrowDown")
    expect(page.locator(".exw .move.active .problem")).to_be_visible()
    tab_to(page, "dataset.call")
    keys.press("Enter")
    book.settle()
    assert len(steps(book)) == 2
    keys.press("Control+z")
    book.settle()

    # run, history, return, script
    keys.press("Control+Enter")
    ran(page)
    book.settle()
    page.locator(".exw .headrun").focus()
    keys.press("h")
    keys.press("ArrowLeft")
    keys.press("Enter")
    book.settle()
    assert steps(book) == []
    keys.press("Control+Shift+z")
    book.settle()
    page.get_by_role("tab", name="Loops").focus()
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    keys.press("Tab")
    keys.press("Control+End")
    keys.type("\ns = s.reverse('k')")
    keys.press("Control+Enter")
    expect(page.locator(".exw .script [role=status]")).to_contain_text("makes the schedule shown")
    book.settle()
    assert steps(book) == ["split('k', 32)", "reverse('k')"]

    # compare with another state
    page.locator(".exw").get_by_role("button", name="compare with").focus()
    keys.press("Enter")
    tab_to(page, "matches?.('.state')")
    keys.press("ArrowLeft")
    keys.press("Enter")
    expect(page.locator(".exw .compared .dl.add").first).to_be_visible(timeout=60_000)

    # a failing line of the script, and back
    page.get_by_role("tab", name="Script").focus()
    keys.press("Tab")
    keys.press("Control+End")
    keys.type("\ns = s.reverse('q')")
    keys.press("Control+Enter")
    expect(page.locator(".exw .serror .problem")).to_be_visible()
    assert steps(book) == ["split('k', 32)", "reverse('k')"]

    # export
    page.locator(".exw").get_by_role("button", name="Export").focus()
    keys.press("Enter")
    with page.expect_download() as download:
        tab_to(page, "getAttribute('role') === 'menuitem'")
        keys.press("Enter")
    assert "__global__" in download.value.path().read_text()


def test_a_counterexample_by_keyboard(notebook: Make) -> None:
    book = notebook(CELL)
    page = book.page
    keys = page.keyboard
    page.locator(".exw .headrun").focus()
    keys.press("l")
    walk_to(page, "S0")
    book.settle()
    keys.press("/")
    keys.press("Control+a")
    keys.type("sequence")
    keys.press("ArrowDown")
    expect(page.locator(".exw .move.active .problem")).to_be_visible()
    tab_to(page, "textContent.includes('counterexample')")
    keys.press("Enter")
    expect(page.locator(".exw .executed .ocell.wrong b.bad").first).to_contain_text("✗", timeout=60_000)
