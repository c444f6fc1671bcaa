"""Random clicks and keys, by a seed: whatever they do, nothing may break, and the script must rebuild what is shown."""

from __future__ import annotations

import random

from playwright.sync_api import Error

from tests.browser.lab import EXPLORER, Notebook

TARGETS = (
    ".mmain",
    ".quick, .mdetail button, .obligation .hint",
    ".row",
    ".cl",
    ".tab",
    ".state",
    ".undo, .redo",
    ".wayname, .kind, .sstep, .gscheme, [data-go]",
    "select, input",
    "button, summary",
)
"""Kinds of things to click; each is as likely as any other."""
KEYS = (
    "Enter",
    "Escape",
    "ArrowDown",
    "ArrowUp",
    "ArrowLeft",
    "ArrowRight",
    "Tab",
    "Shift+Tab",
    "Home",
    "End",
    "Control+z",
    "Control+Shift+z",
    "l",
    "m",
    "v",
    "h",
    "Space",
)
REBUILDS = """
_copy = ex.explore(row_sum, e.script)
print("SAME" if str(_copy.schedule) == str(e.schedule) else f"{_copy.schedule}\\n--- is not ---\\n{e.schedule}\\n{e.script}")
"""
CHOOSE = """([selector, pick, value]) => {
    const runs = '.headrun, .runbutton, .execute';
    const all = [...document.querySelectorAll(selector)].filter((one) => one.offsetParent && !one.matches(runs));
    const one = all[Math.floor(pick * all.length)];
    if (!one) return '';
    one.scrollIntoView({ block: 'nearest' });
    if (one.matches('select')) {
        one.selectedIndex = Math.floor(value * one.options.length);
        one.dispatchEvent(new Event('input', { bubbles: true }));
        one.dispatchEvent(new Event('change', { bubbles: true }));
    } else if (one.matches('input[type=number]')) {
        one.value = String(Math.floor(value * 70));
        one.dispatchEvent(new Event('input', { bubbles: true }));
    } else {
        one.focus();
        one.click();
    }
    return one.outerHTML.slice(0, 160);
}"""


def play(book: Notebook, seed: int, count: int, check_every: int = 25) -> list[str]:
    """Do `count` random things; returns the last of them, for the report."""
    chance = random.Random(seed)
    done: list[str] = []
    for number in range(1, count + 1):
        try:
            if chance.random() < 0.2:
                key = chance.choice(KEYS)
                inside = book.page.evaluate("() => Boolean(document.activeElement.closest('.exw'))")
                if inside:
                    book.page.keyboard.press(key)
                done.append(f"key {key}")
            else:
                done.append(
                    book.page.evaluate(
                        CHOOSE, [f"{EXPLORER} :is({chance.choice(TARGETS)}):not(:disabled)", chance.random(), chance.random()]
                    )
                )
        except Error as error:
            raise AssertionError(f"seed {seed}, step {number}: {error}\nlast: {done[-5:]}") from error
        book.page.wait_for_timeout(chance.choice((0, 5, 40, 150)))
        assert not book.faults, f"seed {seed}, step {number}: {book.faults}\nlast: {done[-5:]}"
        if number % check_every == 0 or number == count:
            book.settle()
            answer = book.python(REBUILDS)
            assert "SAME" in answer, f"seed {seed}, step {number}: {answer}\nlast: {done[-8:]}"
            alert = book.page.evaluate("() => document.querySelector('.exw .alert')?.textContent ?? ''")
            assert "front end failed" not in alert, alert
            assert "the explorer itself failed" not in alert, f"seed {seed}, step {number}: {alert}\nlast: {done[-8:]}"
    return done
