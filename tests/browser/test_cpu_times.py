"""A time on the CPU is no verdict: beside it stands what the schedule is priced at on the GPU."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.app.front import schedule
from tests.browser.shown import Open


def test_a_run_on_the_cpu_is_priced_and_not_judged(opened: Open) -> None:
    stage = opened(schedule("sum_rows", "bind('i', 'block.x')", "split('k', 2)"))
    page = stage.page
    page.locator(".exw .runbutton").click()
    stage.calm()
    run = page.locator(".exw .run")
    expect(run).to_have_attribute("data-status", "done")
    text = (run.text_content() or "").lower()
    for word in ("slower", "faster", "noise", "ratio"):
        assert word not in text, word
    expect(run.locator(".timing")).to_contain_text("on the H200, by the model")
    assert "says nothing about a gpu" in text
    cells = run.locator(".against tbody tr").evaluate_all("rows => rows.map((row) => [...row.cells].map((c) => c.textContent))")
    named = {name: (priced, taken) for name, priced, taken in cells}
    assert named["the step before"][0].startswith("about ")
    assert named["as written, one thread"][0].startswith("about ")
    card = page.locator(".exw .state[aria-current]")
    expect(card.locator(".sfacts")).to_contain_text("H200")
    assert card.locator(".sfacts").evaluate("one => one.scrollWidth <= one.clientWidth"), "nothing of it is cut"
    assert "✓ correct" in (card.get_attribute("title") or "")
    assert "on the CPU" in (card.get_attribute("title") or ""), "a CPU's time stands nowhere without the other"
    page.get_by_role("tab", name="Compare", exact=True).click()
    stage.calm()
    rows = page.locator(".compared .facts tr").evaluate_all("rows => rows.map((row) => [...row.cells].map((c) => c.textContent))")
    assert {"price on the H200", "time on the CPU"} <= {name for name, *_ in rows}
    priced = next(cells for name, *cells in rows if name == "price on the H200")
    assert all(cell.startswith("about ") for cell in priced)
