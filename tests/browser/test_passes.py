"""The stepper over the CUDA text: passes, marks, brushing, keyboard."""

from __future__ import annotations

import pytest

from explorer import strategies
from explorer.kernel import passes
from tests.app.front import schedule
from tests.browser.shown import OVERFLOW, Open, Shown, focused, serious

NAMES = passes.names()


@pytest.fixture
def stage(opened: Open) -> Shown:
    shown = opened(strategies.auto(schedule("layernorm", M=8, N=1024)))
    shown.calm()
    return shown


def text(stage: Shown) -> list[str]:
    return stage.page.locator(".cl code").all_text_contents()


def marked(stage: Shown) -> tuple[int, ...]:
    """Numbers of the lines with a mark."""
    return tuple(stage.page.locator(".cl").evaluate_all(
        "all => all.flatMap((one, n) => one.querySelector('.was').textContent === '›' ? [n + 1] : [])"))


def wanted(stage: Shown, name: str) -> None:
    """What is shown is what `ir` says."""
    stage.calm()
    found = stage.session.schedule.ir(after=name)
    assert text(stage) == found.text.split("\n")
    assert marked(stage) == found.changed
    assert stage.page.locator(".passed").inner_text() == f"{found.what} {found.change}."


def test_buttons_step_and_changed_lines_are_marked_and_brushed(stage: Shown) -> None:
    page, whole = stage.page, text(stage)
    back, after = (page.get_by_role("button", name=f"{word} pass") for word in ("previous", "next"))
    choice = page.get_by_label("text after the pass")
    assert choice.input_value() == ""
    assert not marked(stage)
    assert page.locator(".passed").is_hidden()
    for name in reversed(NAMES):
        back.click()
        assert choice.input_value() == name
        wanted(stage, name)
    back.click(force=True)
    assert choice.input_value() == NAMES[0], "there is none before the first"
    assert focused(page, "ariaLabel") == "previous pass", "the focus stays"
    choice.select_option("vectorize")
    wanted(stage, "vectorize")
    first = page.locator(".cl.changed").first
    assert first.get_attribute("aria-label") == f"changed: {first.locator('code').inner_text().strip()}"
    assert first.evaluate("one => getComputedStyle(one).boxShadow").endswith("inset"), "a bar beside the sign"
    page.locator(".cl code", has_text="// S5").click()
    stage.calm()
    assert stage.session.selected == "S5"
    lit = page.locator(".cl.on code").all_text_contents()
    assert lit
    assert all("S5" in line for line in lit)
    assert not serious(page)
    for _ in NAMES[NAMES.index("vectorize"):]:
        after.click()
    stage.calm()
    assert text(stage) == whole
    assert not marked(stage)


def test_by_keyboard(stage: Shown) -> None:
    page = stage.page
    choice = page.get_by_label("text after the pass")
    choice.focus()
    page.keyboard.press("Home")
    wanted(stage, NAMES[0])
    for name in NAMES[1:5]:
        page.keyboard.press("ArrowRight")
        assert focused(page, "value") == name
    wanted(stage, NAMES[4])
    page.keyboard.press("Tab")
    assert focused(page, "ariaLabel") == "next pass"
    page.keyboard.press("Enter")
    wanted(stage, NAMES[5])
    page.keyboard.press("ArrowLeft")
    wanted(stage, NAMES[4])
    assert focused(page, "ariaLabel") == "next pass", "the focus stays"
    page.keyboard.press("End")
    stage.calm()
    assert text(stage) == stage.session.schedule.cuda.rstrip("\n").split("\n")


def test_the_pass_stays_while_the_schedule_changes(stage: Shown) -> None:
    page = stage.page
    page.get_by_label("text after the pass").select_option("first_writes")
    wanted(stage, "first_writes")
    page.locator("button.undo").click()
    wanted(stage, "first_writes")
    page.get_by_role("button", name="PTX").click()
    assert page.locator(".stepper").is_hidden()
    assert page.locator(".passed").is_hidden()
    page.get_by_role("button", name="PTX").click()
    stage.calm()
    assert page.locator(".passed").is_visible()


def test_without_a_text_there_are_no_passes(stage: Shown) -> None:
    page = stage.page
    page.get_by_label("text after the pass").select_option("first_writes")
    stage.calm()
    stage.session.goto("h0")
    stage.session.apply("bind('k', 'thread.x')")
    stage.calm()
    assert page.locator(".cproblem").is_visible()
    assert page.locator(".stepper").is_hidden()
    assert page.locator(".passed").is_hidden()
    stage.session.undo()
    wanted(stage, "first_writes")


@pytest.mark.parametrize(("width", "dark"), [(600, False), (1180, True)])
def test_narrow_and_dark(page, opened: Open, width: int, dark: bool) -> None:  # type: ignore[no-untyped-def]
    page.set_viewport_size({"width": width, "height": 1000})
    page.emulate_media(color_scheme="dark" if dark else "light")
    stage = opened(strategies.auto(schedule("layernorm", M=8, N=1024)))
    if width < 1120:
        page.get_by_role("tab", name="CUDA").click()
    page.get_by_label("text after the pass").select_option("vectorize")
    wanted(stage, "vectorize")
    assert page.evaluate(OVERFLOW) == 0
    box = page.locator(".stepper").bounding_box()
    assert box is not None
    assert box["height"] < 40, "on one line"
    assert not serious(page)
