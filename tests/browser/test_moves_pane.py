"""The moves pane with a real kernel side: a variant's form, one step a click, and what is folded away."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.app.front import schedule
from tests.browser.shown import Open, Shown


def row(stage: Shown, node: str) -> None:
    stage.page.locator(f".exw [role=tree][aria-label=loops] .row[data-node='{node}']").click()
    stage.calm()


def move(stage: Shown, name: str) -> Locator:
    return stage.page.locator(f".exw li.move.ok[data-name='{name}']")


def test_a_chosen_variant_reaches_its_form(opened: Open) -> None:
    stage = opened(schedule("sum_rows"))
    page = stage.page
    row(stage, "k")
    move(stage, "split").locator(".mmain").click()
    for variant in page.locator(".exw .variant").all():
        variant.click()
        stage.calm()
        call = page.locator(".exw .mapply .call").text_content() or ""
        factor = page.locator(".exw [data-field=factor]").input_value()
        assert call == f".split('k', {factor})"
    row(stage, "i")
    move(stage, "bind").locator(".mmain").click()
    page.locator(".exw .variant", has_text="thread.x").click()
    expect(page.locator(".exw [data-field=to]")).to_have_value("thread.x")
    # another field is changed, and the variant's other values stay
    page.locator(".exw [data-field=count]").fill("4")
    stage.calm()
    page.locator(".exw .mdetail").get_by_role("button", name="Apply").click()
    stage.calm()
    assert stage.steps == ["bind('i', 'thread.x', count=4)"]


def test_a_double_click_takes_one_step(opened: Open) -> None:
    stage = opened(schedule("sum_rows"))
    page = stage.page
    row(stage, "k")
    move(stage, "split").locator(".mmain").click()
    stage.calm()
    page.locator(".exw .mdetail").get_by_role("button", name="Apply").dblclick()
    stage.calm()
    assert len(stage.steps) == 1
    assert page.locator(".exw .mdetail").count() == 0, "nothing is armed where the button was"
    move(stage, "split").hover()
    move(stage, "split").locator(".quick").dblclick()
    stage.calm()
    assert len(stage.steps) == 2
    move(stage, "reverse").locator(".mmain").dblclick()
    stage.calm()
    assert len(stage.steps) == 2, "a row opens and closes, it does not apply"


def test_no_preview_opens_under_a_mouse_that_rests(opened: Open) -> None:
    stage = opened(schedule("sum_rows"))
    page = stage.page
    row(stage, "k")
    move(stage, "split").locator(".mmain").click()
    stage.calm()
    page.locator(".exw .mdetail").get_by_role("button", name="Apply").click()
    stage.calm()
    box = move(stage, "reverse").bounding_box()
    assert box
    card = page.locator(".exw .card")
    page.wait_for_timeout(600)
    assert not card.is_visible(), "after a step nothing covers the views unasked"
    page.mouse.move(box["x"] + 40, box["y"] + 10)
    page.mouse.move(box["x"] + 44, box["y"] + 12)
    page.wait_for_timeout(300)
    stage.calm()
    expect(card).to_be_visible()


def test_after_a_step_enter_opens_before_it_applies(opened: Open) -> None:
    stage = opened(schedule("sum_rows"))
    page = stage.page
    row(stage, "k")
    page.keyboard.press("m")
    page.keyboard.press("/")
    page.keyboard.type("split")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    stage.calm()
    assert len(stage.steps) == 1
    page.keyboard.press("Enter")
    stage.calm()
    assert len(stage.steps) == 1, "the same key again takes no second step"
    page.keyboard.press("Enter")
    stage.calm()
    assert len(stage.steps) == 2


def test_bind_offers_blocks_and_threads_before_anything_else(opened: Open) -> None:
    stage = opened(schedule("sum_rows"))
    row(stage, "i")
    expect(move(stage, "bind").locator("code").first).to_have_text("'i', 'block.x'")
    move(stage, "bind").locator(".quick").click(force=True)
    stage.calm()
    assert stage.steps == ["bind('i', 'block.x')"]
    found = stage.page.locator(".exw li.move.ok[data-name=bind] code").first.text_content() or ""
    assert "seq" not in found, "undoing the step that was just taken is not what the same button offers next"


def test_moves_that_cannot_concern_a_node_are_folded_with_their_count(opened: Open) -> None:
    stage = opened(schedule("sum_rows"))
    page = stage.page
    row(stage, "S1")
    visible = page.locator(".exw li.move.no:visible")
    folded = page.locator(".exw .mfold")
    expect(folded).to_contain_text("that cannot concern S1")
    assert visible.count() < 8
    count = int((folded.text_content() or "").split()[1])
    before = visible.count()
    folded.click()
    assert visible.count() == before + count
    folded.click()
    assert visible.count() == before
    # a filter finds them all the same
    page.locator(".exw .filter").fill("interchange")
    expect(page.locator(".exw li.move.no[data-name=interchange]")).to_be_visible()


def test_statements_carry_their_names(opened: Open) -> None:
    stage = opened(schedule("sum_rows"))
    shown = stage.page.locator(".exw [role=tree][aria-label=loops] .row[data-node=S1] .code")
    assert (shown.text_content() or "").startswith("S1")
