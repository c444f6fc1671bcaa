"""Makes the pictures of the explorer from a real session on a plain page: light, dark and narrow.

``python docs/make_explorer.py`` writes ``explorer-*.png`` into ``docs/pictures/``.  It needs the extra ``docs`` (Playwright and
Pillow) and Chromium.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from examples.softmax import softmax  # noqa: E402
from explorer import workloads  # noqa: E402
from explorer.app.dispatcher import Dispatcher  # noqa: E402
from explorer.app.session import Session  # noqa: E402
from tests.browser.stage import Stage  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
STEPS = ("bind('i', 'block.x')", "split('k', 32)", "bind('k.i', 'thread.x')", "collect('peak', 'shuffle')")
COLOURS = 250
"""Of the PNG files: text in a few hues with smooth edges."""


def picture(browser: Browser, name: str, width: int, view: str, dark: bool) -> None:
    """One picture: a loop selected, a split previewed, a figure, the CUDA text, a run and the history."""
    session = Session(softmax.schedule(M=64, N=1000))
    for step in STEPS:
        session.apply(step)
    dispatchers: list[Dispatcher] = []

    def kernel(send: Callable[[Any, list[bytes]], None]) -> Callable[[Any], None]:
        dispatchers.append(Dispatcher(session, send))
        return dispatchers[0].handle

    page = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme="dark" if dark else "light",
                            reduced_motion="reduce")  # fmt: skip
    stage = Stage(page, kernel)
    if dark:
        page.add_style_tag(content="body { background: #0d1117 }")

    def settle() -> None:
        stage.settle(400)
        dispatchers[0].wait()
        stage.settle(600)

    settle()
    page.get_by_role("button", name="Run and time").click()
    settle()
    page.locator(".exw [role=tree][aria-label=loops] .row[data-node='k']").click()
    settle()
    page.get_by_role("tab", name=view, exact=True).click()
    settle()
    if view == "Domain":
        page.locator(".exw .vmain [data-option=size]:visible").select_option("small")
        settle()
    page.locator(".exw li.move[data-name=split] .mmain").click()
    page.mouse.move(0, 0)
    settle()
    page.evaluate("() => document.activeElement.blur()")
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    taken = Image.open(io.BytesIO(page.screenshot(full_page=True)))
    taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURES / f"explorer-{name}.png", optimize=True)
    dispatchers[0].close()
    page.close()


def page_of(browser: Browser, session: Session, width: int) -> tuple[Any, Callable[[], None], Callable[[str], None]]:
    """A page with a session, what waits for it, and what keeps its picture."""
    dispatchers: list[Dispatcher] = []

    def kernel(send: Callable[[Any, list[bytes]], None]) -> Callable[[Any], None]:
        dispatchers.append(Dispatcher(session, send))
        return dispatchers[0].handle

    page = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme="light", reduced_motion="reduce")
    stage = Stage(page, kernel)

    def settle() -> None:
        stage.settle(400)
        dispatchers[0].wait()
        stage.settle(600)

    def keep(name: str) -> None:
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)
        taken = Image.open(io.BytesIO(page.locator(".exw .main").screenshot()))
        taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURES / f"explorer-{name}.png", optimize=True)
        dispatchers[0].close()
        page.close()

    settle()
    return page, settle, keep


def reduction(browser: Browser) -> None:
    """The ways to combine a sum over blocks, beside its partial results; the statement is selected."""
    start = workloads.get("sum_columns").definition.schedule(M=1000, N=512)
    session = Session(start)
    for step in ("launch('sum_columns', after='j')", "interchange('i', 'j_2')", "split('j_2', 32)", "bind('j_2', 'block.x')",
                 "bind('j_2.i', 'thread.x')", "reorder(('i', 'j_2.i'))", "split('i', 64)", "bind('i', 'block.y')"):  # fmt: skip
        session.apply(step)
    page, settle, keep = page_of(browser, session, 1600)
    page.get_by_role("tab", name="Partials", exact=True).click()
    page.locator(".exw [role=tree][aria-label=loops] .row[data-node='S1']").click()
    settle()
    page.locator(".wayname[data-how=kernel]").focus()
    settle()
    keep("reduction")


def stitching(browser: Browser) -> None:
    """A scheme for every edge of a layer normalisation, one of them refused."""
    start = workloads.get("layernorm").definition.schedule(M=8192, N=1024)
    page, settle, keep = page_of(browser, Session(start), 1600)
    page.get_by_role("tab", name="Strategies", exact=True).click()
    page.locator(".kind", has_text="Stitch").click()
    page.get_by_role("tab", name="Stitching", exact=True).click()
    settle()
    page.locator("[data-edge='mean->y'] [data-scheme=cut]").last.click()
    settle()
    page.locator("[data-edge='mean->spread'] [data-scheme=shuffle]").last.focus()
    settle()
    keep("stitching")


def search(browser: Browser) -> None:
    """The variants of a softmax with their times on the CPU device; the best is taken."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["EXPLORER_CACHE_DIR"] = cache  # nothing is remembered
        page, settle, keep = page_of(browser, Session(softmax.schedule(M=64, N=1000)), 1600)
        page.get_by_role("tab", name="Search", exact=True).click()
        page.locator(".search input").fill("8")
        page.locator(".search [data-go=search]").click()
        settle()
        page.locator(".search [data-go=best]").click()
        page.get_by_role("tab", name="Memory", exact=True).click()
        settle()
        keep("search")


def main() -> None:
    """Write the pictures."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium") or shutil.which("google-chrome"),
                                       args=["--no-sandbox"])  # fmt: skip
        picture(browser, "light", 1440, "Domain", dark=False)
        picture(browser, "dark", 1440, "Domain", dark=True)
        picture(browser, "narrow", 900, "Memory", dark=False)
        reduction(browser)
        stitching(browser)
        search(browser)
        browser.close()


if __name__ == "__main__":
    main()
