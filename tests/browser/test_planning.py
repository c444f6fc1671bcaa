"""Many steps at once, with a real kernel side: ways to collect, a strategy's steps, what loops are to a statement."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.front import schedule
from tests.app.test_walks import flat
from tests.browser.shown import OVERFLOW, Open, focused, serious
from tests.transforms.multiblock import spread

# -- ways to collect -----------------------------------------------------------------------------------------------


def test_a_way_is_chosen_from_the_table(opened: Open) -> None:
    stage = opened(spread("rows"))
    page = stage.page
    page.locator("[role=tree][aria-label=loops] .row[data-node=k]").click()
    stage.calm()
    rows = page.locator(".ways tr.way")
    assert rows.locator(".wayname").all_inner_texts() == ["atomic", "kernel", "last_block", "handoff", "grid", "cluster"]
    assert rows.nth(0).locator("td").all_inner_texts()[0] == "✗ no"
    assert rows.nth(1).locator("td").all_inner_texts() == ["✓ yes", "6.6e−7", "3", "4", "112 B", "140 B", "0"]
    rows.nth(4).hover()
    expect(page.locator(".waynote")).to_contain_text("1 barrier of the whole grid")
    before = len(stage.steps)
    page.locator(".wayname[data-how=kernel]").click()
    stage.calm()
    assert stage.steps[before:] == ["collect('S1', 'kernel')", "collect('S1', 'shuffle')"]
    expect(page.locator(".ways")).to_be_hidden()
    expect(page.locator(".undo")).to_contain_text("collect y by kernel · 2 steps")
    page.locator(".undo").click()
    stage.calm()
    assert len(stage.steps) == before
    expect(page.locator(".ways")).to_be_visible()


def test_a_way_by_keyboard_and_one_that_is_refused(opened: Open) -> None:
    stage = opened(spread("total, many blocks"))
    page, keys = stage.page, stage.page.keyboard
    page.locator("[role=tree][aria-label=loops] .row[data-node=k]").click()
    stage.calm()
    page.locator(".wayname").first.focus()
    keys.press("End")
    assert focused(page, "dataset.how") == "cluster"
    expect(page.locator(".waynote")).to_contain_text("divide k before it is bound")
    before = len(stage.steps)
    keys.press("Enter")
    stage.calm()
    assert len(stage.steps) == before, "a refused way is not taken"
    for _ in range(3):
        keys.press("ArrowUp")
    assert focused(page, "dataset.how") == "last_block"
    keys.press("Enter")
    stage.calm()
    assert stage.steps[-1] == "collect('S1', 'last_block')"
    assert focused(page, "closest('.movepane') !== null"), "the focus stays in the moves"


# -- strategies ----------------------------------------------------------------------------------------------------


def test_a_strategy_is_replayed_by_mouse(opened: Open) -> None:
    stage = opened(schedule("softmax", M=6, N=64))
    page = stage.page
    page.get_by_role("button", name="Strategies").click()
    page.get_by_role("menuitem", name="Default").click()
    stage.calm()
    count = page.locator(".sstep").count()
    assert count >= 3
    expect(page.locator(".swhere")).to_have_text(f"step 0 of {count}")
    for number in range(1, 3):
        page.get_by_role("button", name="one step forward").click()
        stage.calm()
        expect(page.locator(".sstep[aria-current=step] code")).to_have_text(stage.steps[-1])
        assert len(stage.steps) == number
    expect(page.locator(".state")).to_have_count(3)
    page.get_by_role("button", name="one step back").click()
    stage.calm()
    assert len(stage.steps) == 1
    page.locator(".sstep").nth(count - 2).click()
    stage.calm()
    assert len(stage.steps) == count - 1
    page.get_by_role("button", name="apply all").click()
    stage.calm()
    assert len(stage.steps) == count
    loops = page.locator("[role=tree][aria-label=loops] .row").all_inner_texts()
    assert any("thread.x" in text for text in loops), "the loops show the state"
    expect(page.locator(".swhere")).to_have_text(f"step {count} of {count}")
    expect(page.locator(".cl").first).to_be_visible()


def test_a_strategy_is_replayed_by_keys_alone(opened: Open) -> None:
    stage = opened(schedule("softmax", M=6, N=64))
    page, keys = stage.page, stage.page.keyboard
    page.locator(".headrun").focus()
    keys.press("s")
    assert focused(page, "dataset.strategy") == "auto"
    keys.press("Enter")
    stage.calm()
    keys.press("Tab")
    for _ in range(4):
        if focused(page, "dataset.go") == "next":
            break
        keys.press("Tab")
    assert focused(page, "dataset.go") == "next"
    keys.press("Enter")
    stage.calm()
    assert focused(page, "dataset.go") == "next"
    keys.press("Enter")
    stage.calm()
    assert len(stage.steps) == 2
    keys.press("Tab")
    keys.press("Tab")
    assert focused(page, "classList.contains('sstep')")
    keys.press("End")
    keys.press("Enter")
    stage.calm()
    assert len(stage.steps) == page.locator(".sstep").count()
    keys.press("Control+z")
    stage.calm()
    assert len(stage.steps) == page.locator(".sstep").count() - 1


def test_a_whole_strategy_is_one_card(opened: Open) -> None:
    stage = opened(schedule("softmax", M=6, N=64))
    page = stage.page
    page.get_by_role("tab", name="Strategies", exact=True).click()
    page.locator(".kind", has_text="Auto").click()
    stage.calm()
    page.get_by_role("button", name="apply all").click()
    stage.calm()
    expect(page.locator(".state")).to_have_count(2)
    expect(page.locator(".state[aria-current=step] .stitle")).to_have_text(f"auto · {len(stage.steps)} steps")


def test_another_gpu_by_keys_makes_the_steps_again(opened: Open) -> None:
    stage = opened(schedule("sum_rows", M=4, N=65536))
    page, keys = stage.page, stage.page.keyboard
    page.get_by_role("tab", name="Strategies", exact=True).click()
    page.locator(".kind", has_text="Auto").click()
    stage.calm()
    before, count = page.locator(".sest").last.inner_text(), page.locator(".sstep").count()
    page.locator(".kind").last.focus()
    keys.press("Tab")
    assert focused(page, "getAttribute('aria-label')") == "plan for the GPU"
    keys.press("l")
    stage.calm()
    assert focused(page, "value") == "L4", "the letter chooses; it is no shortcut here"
    expect(page.locator(".shelp b")).to_contain_text("on the L4")
    assert page.locator(".sest").last.inner_text() != before
    assert page.locator(".sstep").count() != count, "rows are cut for many multiprocessors alone"
    expect(page.locator(".strategies select")).to_have_attribute("title", re.compile("58 multiprocessors, 0.3 TB/s"))


# -- loops and partial results -------------------------------------------------------------------------------------


def test_a_statement_tells_what_its_loops_are_to_it(opened: Open) -> None:
    steps = ("launch('sum_columns', after='j')", "interchange('i', 'j_2')", "bind('j_2', 'block.x')", "split('i', 4)",
             "bind('i.i', 'thread.x')")
    stage = opened(schedule("sum_columns", *steps, M=16, N=64))
    page, keys = stage.page, stage.page.keyboard
    tree = page.locator("[role=tree][aria-label=loops]")
    expect(tree.locator(".walk")).to_have_count(0)
    place = tree.locator(".row[data-node=S1]").bounding_box()
    tree.locator(".row[data-node=S1]").hover()
    expect(tree.locator(".walk.above")).to_have_count(3)
    assert tree.locator(".row[data-node=S1]").bounding_box() == place, "hovering moves nothing"
    expect(page.locator(".walknote:visible")).to_have_count(0)
    page.mouse.move(0, 0)
    expect(tree.locator(".walk")).to_have_count(0)
    tree.locator(".row").first.focus()
    for _ in range(12):
        if focused(page, "dataset.node") == "S1":
            break
        keys.press("ArrowDown")
    stage.calm()
    found = {row.get_attribute("data-node"): row.locator(".walk").inner_text().split() for row in tree.locator(".walked").all()}
    assert {node: words[:2] for node, words in found.items()} == {"j_2": ["∥", "parallel"], "i": ["Σ", "reduced"],
                                                                  "i.i": ["Σ", "reduced"]}
    assert found["i.i"][2:5] == ["x", "64", "✗"]
    expect(tree.locator(".row[data-node='i.i']")).to_have_attribute("aria-label", re.compile("to S1: reduced; x stride 64"))
    expect(page.locator(".walknote:visible")).to_contain_text("transpose x")
    assert not serious(page), serious(page)
    tree.locator(".row[data-node=j_2]").click()
    stage.calm()
    page.mouse.move(0, 0)
    expect(tree.locator(".walk")).to_have_count(0)


def test_partials_follow_the_brush(opened: Open) -> None:
    stage = opened(spread("rows"))
    page = stage.page
    page.get_by_role("tab", name="Partials", exact=True).click()
    stage.calm()
    figure = page.locator(".vmain > :not([hidden])")
    expect(figure).to_contain_text("Partial results of y: 700 terms")
    expect(figure).to_contain_text("21.9% of the lanes' slots are idle")
    figure.locator(".astable summary").click()
    figure.locator("tr[data-node=S1] .nodelink").first.click()
    stage.calm()
    expect(page.locator("[role=tree][aria-label=loops] .row[data-node=S1]")).to_have_attribute("aria-selected", "true")


# -- all of it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "dark"), [(900, True), (1600, False)])
def test_axe_and_nothing_overflows(opened: Open, page: Page, width: int, dark: bool) -> None:
    page.set_viewport_size({"width": width, "height": 1000})
    page.emulate_media(color_scheme="dark" if dark else "light")
    stage = opened(spread("rows"))
    page.locator("[role=tree][aria-label=loops] .row[data-node=k]").click()
    stage.calm()
    page.locator(".wayname").nth(1).focus()
    assert not serious(page), serious(page)
    page.get_by_role("tab", name="Strategies", exact=True).click()
    page.locator(".kind", has_text="Default").click()
    stage.calm()
    page.get_by_role("button", name="one step forward").click()
    stage.calm()
    assert not serious(page), serious(page)
    assert page.evaluate(OVERFLOW) <= 1


def test_a_coalesced_loop_shows_the_stride_of_each_index_in_it(opened: Open) -> None:
    stage = opened(flat())
    tree = stage.page.locator("[role=tree][aria-label=loops]")
    tree.locator(".row[data-node=S1]").click()
    stage.calm()
    row = tree.locator(".row[data-node='p.2']")
    expect(row).to_contain_text("x 1×32 256×3")
    expect(row).to_have_attribute("aria-label", re.compile("x 32 steps of 1, then 3 steps of 256, contiguous in memory"))
    assert tree.locator(".t-com").count() == 0, "what divides is no comment"
