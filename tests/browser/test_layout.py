"""The layout holds still, fits what a notebook shows at once, and hides nothing that cannot be reached; words do not collide."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import explorer as ex
from examples.matmul import schedule as tiled
from explorer.app.assets import css
from tests.app.front import schedule
from tests.browser.lab import Notebook
from tests.browser.shown import Open, Shown
from tests.browser.test_session import CELL

Make = Callable[..., Notebook]

PLACES = """() => Object.fromEntries(['.head', '.main', '.lbody', '.change', '.viewpane', '.dock']
    .map((one) => [one, document.querySelector(`.exw ${one}`).getBoundingClientRect()])
    .map(([name, box]) => [name, [box.x, box.y, box.width].map(Math.round)]))"""
CLIPPED = """() => [...document.querySelectorAll('.exw *')].filter((one) => {
    const style = getComputedStyle(one);
    const cut = ['hidden', 'clip'].includes(style.overflowX) && one.scrollWidth > one.clientWidth + 1;
    const words = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
        || style.textOverflow === 'ellipsis';
    return cut && words && one.checkVisibility() && !one.closest('[title]:not([title=""]), .ex-sr, svg');
}).map((one) => `${one.className}: ${one.textContent.slice(0, 60)}`)"""
WORDS = """() => {
    const plot = [...document.querySelectorAll('.exw .vmain .plot')].find((one) => one.offsetParent);
    const kinds = '.annotation-text, .xtick text, .ytick text, .x2tick text, .x3tick text, .x4tick text, .y2tick text,'
        + ' .y3tick text, .y4tick text, .xtitle, .ytitle, .slider-label, .updatemenu-button, .slider-rail-rect, .modebar-btn';
    return [plot.clientWidth, plot.getBoundingClientRect().x, [...plot.querySelectorAll(kinds)].filter((one) =>
        one.textContent.trim() || !one.matches('text')).map((one) => {
        const { x, y, width, height } = one.getBoundingClientRect();
        return { words: one.textContent.trim() || one.getAttribute('class'), x, y, width, height };
    })];
}"""


def row(stage: Shown, node: str) -> None:
    stage.page.locator(f".exw [role=tree][aria-label=loops] .row[data-node='{node}']").click()
    stage.calm()


@pytest.mark.parametrize("width", [1440, 700])
def test_nothing_moves_while_the_schedule_changes(opened: Open, width: int) -> None:
    stage = opened(schedule("sum_rows"))
    page = stage.page
    page.set_viewport_size({"width": width, "height": 1000})
    stage.calm()
    before = page.evaluate(PLACES)
    tops = "() => [...document.querySelectorAll('.exw [aria-label=loops] .row')].map((one) => one.getBoundingClientRect().y)"
    rows = page.evaluate(tops)
    row(stage, "S1")
    assert page.evaluate(tops) == rows, "what a loop is to a statement moves no row"
    row(stage, "k")
    for call in ("split('k', 2)", "bind('k.i', 'thread.x')"):
        stage.session.apply(call)
        stage.calm()
        assert page.evaluate(PLACES) == before, call
    expect(page.locator(".exw .obligation")).to_be_visible()
    page.locator(".exw .obligation .hint").first.click()
    stage.calm()
    page.locator(".exw").get_by_role("button", name="Check only").click()
    stage.calm()
    assert page.evaluate(PLACES) == before, "a run shows its result where it has room"
    page.locator(".exw .undo").click()
    stage.calm()
    assert page.evaluate(PLACES) == before


@pytest.mark.parametrize("width", [1600, 1000])
def test_all_of_it_fits_what_the_notebook_shows(notebook: Make, width: int) -> None:
    book = notebook(CELL)
    page = book.page
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(500)
    seen = page.evaluate("""() => {
        const one = document.querySelector('.exw'), outer = one.closest('.jp-WindowedPanel-outer, .jp-Notebook');
        return [one.offsetHeight, outer.clientHeight];
    }""")
    assert seen[0] <= seen[1]
    inside = page.evaluate("""() => {
        const one = document.querySelector('.exw').getBoundingClientRect();
        return ['.head', '.main', '.dock'].every((name) =>
            document.querySelector(`.exw ${name}`).getBoundingClientRect().bottom <= one.bottom + 1);
    }""")
    assert inside


@pytest.mark.parametrize("width", [1440, 900, 700])
def test_a_run_does_not_push_the_history_away(opened: Open, width: int) -> None:
    stage = opened(schedule("sum_rows", "bind('i', 'block.x')"))
    page = stage.page
    page.set_viewport_size({"width": width, "height": 1000})
    stage.calm()
    page.locator(".exw").get_by_role("button", name="Check only").click()
    stage.calm()
    expect(page.locator(".exw .verdict")).to_contain_text("right")
    card, dock = page.locator(".exw .state[aria-current]").bounding_box(), page.locator(".exw .dock").bounding_box()
    assert card
    assert dock
    assert card["y"] + card["height"] <= dock["y"] + dock["height"], "the card of the schedule that was run is in sight"


@pytest.mark.parametrize("width", [1440, 700])
def test_what_is_clipped_says_what_it_is(opened: Open, width: int) -> None:
    stage = opened(schedule("softmax", "split('k', 2)"))
    page = stage.page
    page.set_viewport_size({"width": width, "height": 1000})
    row(stage, "S2")
    page.locator(".exw li.move.ok .mmain").first.click()
    stage.calm()
    assert page.evaluate(CLIPPED) == []


def test_every_rule_of_the_stylesheet_is_read(opened: Open) -> None:
    text = re.sub(r"/\*.*?\*/", "", css(), flags=re.S)
    depth, prelude = 0, ""
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0, f"a brace closes nothing behind {prelude!r}"
        prelude = "" if letter in "{}" else prelude + letter if depth == 0 else ""
        assert letter != ";" or depth or prelude.strip().startswith("@"), f"a declaration outside of every rule: {prelude!r}"
    assert depth == 0
    stage = opened(schedule("sum_rows"))
    one = stage.page.locator(".exw [role=tree][aria-label=loops] .row[data-node='k']")
    colour = "(one) => getComputedStyle(one).backgroundColor"
    before = one.evaluate(colour)
    one.hover()
    assert one.evaluate(colour) != before, "the row under the mouse is marked"
    assert "gradient" in one.evaluate("(one) => getComputedStyle(one).backgroundImage"), "lines show the depth"


@pytest.mark.parametrize("width", [1440, 1170, 900, 500])
def test_no_tab_moves_when_another_is_opened(opened: Open, width: int) -> None:
    stage = opened(schedule("sum_rows"))
    page = stage.page
    page.set_viewport_size({"width": width, "height": 1000})
    stage.calm()
    places = """() => [...document.querySelectorAll('.exw .tab')].filter((one) => one.offsetParent)
        .map((one) => one.getBoundingClientRect()).map((box) => [box.x, box.width].map(Math.round))"""
    before = page.evaluate(places)
    if width >= 1170:
        assert page.locator(".exw .viewpane .tabs").evaluate("(one) => one.offsetHeight") < 50, "all views stand in one line"
    for name in ("Dependences", "Compare", "Strategies", "Schedule tree"):
        page.get_by_role("tab", name=name, exact=True).click()
        stage.calm()
        assert page.evaluate(places) == before, name


@pytest.mark.parametrize("width", [1600, 1170, 900, 600])
def test_schemes_have_room_in_their_buttons(opened: Open, width: int) -> None:
    stage = opened(schedule("softmax", M=64, N=1000))
    page = stage.page
    page.set_viewport_size({"width": width, "height": 1000})
    page.get_by_role("tab", name="Stitching", exact=True).click()
    stage.calm()
    outside = page.locator("button.gscheme").evaluate_all("""(all) => all.filter((one) => one.scrollWidth > one.clientWidth ||
        [...one.children].some((word) => word.getBoundingClientRect().width > one.clientWidth - 2) ||
        one.getBoundingClientRect().right > one.closest('.gedges').getBoundingClientRect().right + 1)
        .map((one) => one.textContent)""")
    assert outside == []


def test_borders_are_moved_by_mouse_and_keys(opened: Open) -> None:
    stage = opened(schedule("sum_rows"))
    page = stage.page
    bar = page.get_by_role("separator", name="width of the program and the moves")
    wide = "() => document.querySelector('.exw .left').getBoundingClientRect().width"
    before = page.evaluate(wide)
    bar.focus()
    page.keyboard.press("ArrowRight")
    after = page.evaluate(wide)
    assert after > before
    box = bar.bounding_box()
    assert box
    page.mouse.move(box["x"], box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 100)
    page.mouse.up()
    assert abs(page.evaluate(wide) - after - 90) < 4
    bar.dblclick()
    assert abs(page.evaluate(wide) - before) < 2


def collisions(page: Page) -> list[str]:
    """Pairs of words of the figure that is open that stand on each other, and words that leave it."""
    width, left, found = page.evaluate(WORDS)

    def over(a: dict[str, Any], b: dict[str, Any]) -> bool:
        return all(a[p] + 2 < b[p] + b[s] and b[p] + 2 < a[p] + a[s] for p, s in (("x", "width"), ("y", "height")))

    out = [f"{a['words']} | {b['words']}" for a, b in combinations(found, 2) if over(a, b)]
    return out + [f"cut: {a['words']}" for a in found if a["x"] < left - 1 or a["x"] + a["width"] > left + width + 1]


def test_a_figure_hidden_while_the_window_shrinks_fits_when_it_is_seen_again(opened: Open) -> None:
    stage = opened(schedule("softmax", M=64, N=1000))
    page = stage.page
    page.set_viewport_size({"width": 1440, "height": 1000})
    stage.calm()
    page.evaluate("""async () => {
        document.getElementById('host').style.width = '1200px';
        await new Promise((next) => setTimeout(next, 20));
        [...document.querySelectorAll('[role=tab]')].find((one) => one.textContent === 'Roofline').click();
    }""")
    stage.calm()
    page.get_by_role("tab", name="Domain", exact=True).click()
    stage.calm()
    assert collisions(page) == []


@pytest.mark.parametrize("width", [1440, 1200, 700])
@pytest.mark.parametrize("make", [lambda: schedule("softmax", M=64, N=1000), tiled])
def test_words_of_a_figure_do_not_collide(opened: Open, make: Callable[[], ex.Schedule], width: int) -> None:
    stage = opened(make())
    page = stage.page
    page.set_viewport_size({"width": width, "height": 1000})
    for name in ("Roofline", "Occupancy", "Domain"):
        page.get_by_role("tab", name=name, exact=True).click()
        stage.calm()
        assert collisions(page) == [], name
