"""A browser and a JupyterLab server for the whole session; a page, a notebook or a stage for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import explorer as ex
from explorer.app.dispatcher import Dispatcher
from explorer.app.session import Session
from tests.browser.lab import Lab, Notebook
from tests.browser.shown import Open, Shown


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, or else Playwright's own."""
    with sync_playwright() as play:
        chromium = play.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab server."""
    server = Lab.start(tmp_path_factory.mktemp("lab"))
    yield server
    server.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page 1440 px wide that may use the clipboard."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 1000},
        accept_downloads=True,
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(30_000)
    yield context.new_page()
    context.close()


@pytest.fixture
def notebook(lab: Lab, page: Page, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Notebook]]:
    """Write a notebook of these cells and open it; afterwards no exception may have been seen, and its kernel is ended.

    How the page looked at the end is kept as ``page.png`` in the test's folder.
    """
    opened: list[Notebook] = []

    def make(*cells: str, run: bool = True) -> Notebook:
        name = "".join(c if c.isalnum() else "_" for c in request.node.name)
        lab.write(name, *cells)
        opened.append(Notebook(lab, page, name).open(run))
        return opened[-1]

    yield make
    for book in opened:
        book.page.screenshot(path=tmp_path / "page.png")
        book.command("notebook:shutdown-kernel")
        assert not book.faults, "\n".join(book.faults)


@pytest.fixture
def opened(page: Page) -> Iterator[Open]:
    """Show a schedule on a stage; afterwards its page may have reported no fault."""
    made: list[Shown] = []

    def make(start: ex.Schedule) -> Shown:
        dispatchers: list[Dispatcher] = []

        def kernel(send: Callable[[Any, list[bytes]], None]) -> Callable[[Any], None]:
            dispatchers.append(Dispatcher(Session(start), send))
            return dispatchers[0].handle

        made.append(Shown(page, kernel))
        made[-1].dispatcher, made[-1].session = dispatchers[0], dispatchers[0].session
        made[-1].calm()
        return made[-1]

    yield make
    for one in made:
        one.dispatcher.close()
        assert not one.faults, one.faults
