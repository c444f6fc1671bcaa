"""A stage with a real session behind it, and what tests ask of its page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

import explorer as ex
from explorer.app.dispatcher import Dispatcher
from explorer.app.session import Session
from tests.browser.stage import Stage

OVERFLOW = "() => { const one = document.querySelector('.exw'); return one.scrollWidth - one.clientWidth; }"


class Shown(Stage):
    """A stage with the session behind it."""

    session: Session
    dispatcher: Dispatcher

    @property
    def steps(self) -> list[str]:
        return [str(s) for s in self.session.schedule.steps]

    def calm(self) -> None:
        """Until both sides and the kernel's threads are quiet."""
        self.settle(150)
        assert self.dispatcher.wait()
        self.settle(200)


Open = Callable[[ex.Schedule], Shown]


def serious(page: Page) -> list[str]:
    found = Axe().run(page, context=".exw").response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found if v["impact"] in ("serious", "critical")]


def focused(page: Page, what: str) -> Any:
    return page.evaluate(f"() => document.activeElement.{what}")
